"""Derivatives of and by operators: those of and by the tensors that they are made of."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.ops.arrays.constants import zeros_like


class OperatorGradient:
    """Which parts of an operator have a derivative, and the operator of the derivatives."""

    def get_gradient_components(self, value: Any) -> dict[str, Any]:
        """The tensors and operators among the arguments."""
        parts = value._divided_arguments()[0]
        return {name: part for name, part in parts.items() if not _core.is_tensor(part) or not part.dtype.is_integer}

    def replace_gradient_components(self, value: Any, component_grads: Any) -> Any:
        """The operator with derivatives in place of its tensors; zeros where there are none."""
        parts, plain = value._divided_arguments()
        found = {name: _replaced(part, component_grads.get(name)) for name, part in parts.items()}
        return type(value)(**found, **plain)


def _replaced(part: Any, gradient: Any) -> Any:
    if isinstance(part, list | tuple):
        given = [None] * len(part) if gradient is None else gradient
        return [_replaced(one, one_gradient) for one, one_gradient in zip(part, given)]
    if _core.is_tensor(part):
        if gradient is None:
            return part if part.dtype.is_integer else zeros_like(part)
        return gradient
    if type(part) is type(gradient):
        return gradient
    return part.__composite_gradient__.replace_gradient_components(part, gradient or {})
