"""`Defun`, which made functions of graphs before `tf.function`: the dtypes of its arguments are given."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tapeflow._src.namespace import find_public
from tapeflow._src.types.tensor_spec import TensorSpec


def defun(
    *input_types: Any,
    func_name: str | None = None,
    grad_func: Callable[..., Any] | None = None,
    python_grad_func: Callable[..., Any] | None = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], DefinedFunction]:
    """Makes a graph of a function whose arguments are tensors of the given dtypes.

    `grad_func` takes the arguments and the cotangents of the results and gives those of the arguments;
    `python_grad_func` takes the operation, with its `inputs` and `outputs`, and the cotangents. Other options name
    things or say where they run.
    """
    if options.get("shape_func") is not None:
        raise NotImplementedError("Defun: shape_func is not supported; shapes are inferred from the function")
    if grad_func is not None and python_grad_func is not None:
        raise ValueError("Gradient defined twice")
    rule = python_grad_func if grad_func is None else lambda op, *dys: grad_func(*op.inputs, *dys)

    def decorate(function: Callable[..., Any]) -> DefinedFunction:
        return DefinedFunction(function, input_types, func_name or function.__name__, rule)

    return decorate


class DefinedFunction:
    """A function of tensors of given dtypes, which runs as a graph."""

    def __init__(
        self, function: Callable[..., Any], input_types: Any, name: str, rule: Callable[..., Any] | None
    ) -> None:
        functools.update_wrapper(self, function)
        self.name = name
        self.declared_input_types = [find_public("as_dtype")(dtype) for dtype in input_types]
        self._traced = find_public("function")(function, autograph=False)
        self._run = self._traced if rule is None else _with_rule(self._traced, rule)

    def __call__(self, *args: Any, name: str | None = None) -> Any:
        if self.declared_input_types and len(args) != len(self.declared_input_types):
            raise ValueError(f"Expected number of arguments: {len(self.declared_input_types)}, received: {len(args)}")
        convert = find_public("convert_to_tensor")
        types = self.declared_input_types or [None] * len(args)
        result = self._run(*(convert(value, dtype) for value, dtype in zip(args, types)))
        return result[0] if isinstance(result, list | tuple) and len(result) == 1 else result

    @functools.cached_property
    def definition(self) -> Any:
        """The function as a message, for arguments of any shape."""
        specs = [TensorSpec(None, dtype) for dtype in self.declared_input_types]
        message = self._traced.get_concrete_function(*specs).function_def
        message.signature.name = self.name
        return message


def _with_rule(function: Callable[..., Any], rule: Callable[..., Any]) -> Callable[..., Any]:
    """The function with cotangents that the rule gives of its operation and the cotangents of its results."""

    @find_public("custom_gradient")  # type: ignore[untyped-decorator]
    def run(*inputs: Any) -> Any:
        outputs = function(*inputs)
        listed = list(outputs) if isinstance(outputs, list | tuple) else [outputs]

        def backward(*dys: Any) -> Any:
            return rule(SimpleNamespace(inputs=list(inputs), outputs=listed), *dys)

        return outputs, backward

    return run  # type: ignore[no-any-return]
