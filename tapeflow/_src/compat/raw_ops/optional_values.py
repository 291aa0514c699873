"""`OptionalFromValue` and the like: values that may be there or not."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.errors import InvalidArgumentError


class Optional:
    """A value that may be there or not. Its components are None if it surely is not; `has_value` may be symbolic."""

    def __init__(self, components: list[Any] | None, has_value: Any = True) -> None:
        self.components = components
        self.has_value = has_value if components is not None else False


def optional_of(components: list[Any]) -> Optional:
    """The value with these components."""
    return Optional([t if isinstance(t, Optional) or hasattr(t, "stack") else convert_to_tensor(t) for t in components])


def value_of(optional: Optional, output_types: Any, output_shapes: Any) -> list[Any]:
    """The components, which must be there."""
    text = "OptionalGetValue: The given optional does not have a value."
    if optional.components is None:
        raise InvalidArgumentError.of(text)
    present = convert_to_tensor(optional.has_value)
    found = []
    for component, shape in zip(optional.components, output_shapes):
        if not isinstance(component, _core.Tensor):
            found.append(component)
            continue
        value = (
            _core.required(component, present, text) if _core.is_symbolic(present) else primitives.Identity(component)
        )
        if _core.is_symbolic(value) and getattr(shape, "rank", None) is not None:
            value.set_shape(shape)
        found.append(value)
    return found


def has_value(optional: Optional) -> Any:
    """Whether the value is there."""
    return convert_to_tensor(optional.has_value)
