"""`tf.experimental.Optional`: an element that may be missing."""

from __future__ import annotations

from typing import Any

from tapeflow import _core
from tapeflow.data.handles import blank, tensor_specs
from tapeflow.data.structure import as_element, map_leaves, spec_of_leaf
from tapeflow.namespace import public
from tapeflow.ops.conversion import convert_to_tensor
from tapeflow.ops.debugging import Assert
from tapeflow.types import nest
from tapeflow.types.dtypes import bool_
from tapeflow.types.errors import InvalidArgumentError
from tapeflow.types.tensor_spec import CompositeTensor, TensorSpec, TypeSpec

_MISSING = "The given optional does not have a value."


@public("OptionalSpec")
class OptionalSpec(TypeSpec):
    """The specification of an optional: that of its value.

    >>> tf.OptionalSpec(tf.TensorSpec([], tf.int32)).is_compatible_with(tf.experimental.Optional.from_value(1))
    True
    """

    def __init__(self, element_spec: Any) -> None:
        self._element_spec = element_spec

    value_type = property(lambda self: Optional)
    _component_specs = property(lambda self: (TensorSpec([], bool_), self._element_spec))

    def _serialize(self) -> tuple[Any, ...]:
        return (self._element_spec,)

    def _to_components(self, value: Any) -> Any:
        return value._components()

    def _from_components(self, components: Any) -> Any:
        return Optional(components[0], components[1], self._element_spec)


@public("experimental.Optional", "data.experimental.Optional")
class Optional(CompositeTensor):
    """A value that may be missing, as at the end of a dataset.

    >>> some = tf.experimental.Optional.from_value(42)
    >>> some.has_value()
    True
    >>> some.get_value()
    42
    """

    def __init__(self, has_value: Any, element: Any, element_spec: Any) -> None:
        self._has, self._element, self._element_spec = has_value, element, element_spec

    element_spec = property(lambda self: self._element_spec, doc="The specification of the value.")
    _type_spec = property(lambda self: OptionalSpec(self._element_spec))

    @staticmethod
    def from_value(value: Any) -> Optional:
        """An optional with a value."""
        element = as_element(value)
        return Optional(True, element, map_leaves(spec_of_leaf, element))

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """An optional without a value."""
        return Optional(False, None, element_spec)

    def has_value(self, name: str | None = None) -> Any:
        """Whether there is a value, as a tensor."""
        return convert_to_tensor(self._has) if isinstance(self._has, bool) else self._has

    def get_value(self, name: str | None = None) -> Any:
        """The value; InvalidArgumentError if there is none."""
        has = self._has
        if _core.is_symbolic(has):
            Assert(has, [_MISSING])
        elif not has:
            raise InvalidArgumentError(None, None, _MISSING)
        return self._element

    def _components(self) -> Any:
        if self._element is not None:
            return self.has_value(), self._element
        dtypes, shapes = tensor_specs([self._element_spec])
        blanks = [blank(dtype, shape) for dtype, shape in zip(dtypes, shapes)]
        return self.has_value(), nest.pack_sequence_as(self._element_spec, blanks, expand_composites=True)

    def __repr__(self) -> str:
        return f"<tf.experimental.Optional element_spec={self._element_spec}>"


@public("data.experimental.get_next_as_optional")
def get_next_as_optional(iterator: Any) -> Optional:
    """The next element of an iterator in an optional, which is empty at the end.

    >>> iterator = iter(tf.data.Dataset.range(0))
    >>> tf.data.experimental.get_next_as_optional(iterator).has_value()
    False
    """
    return iterator.get_next_as_optional()
