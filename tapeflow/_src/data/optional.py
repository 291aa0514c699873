"""`tf.experimental.Optional`: an element that may be missing. In a graph it is a number, as iterators are."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.data.handles import HandleSpec, Recent, from_handle, handle_of, tensor_specs, tensors_of
from tapeflow._src.data.pipes.structure import as_element, map_leaves, spec_of_leaf
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import bool_, int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.tensor_spec import CompositeTensor

_recent = Recent(16)  # each may hold a batch
_MISSING = object()


@public("OptionalSpec")
class OptionalSpec(HandleSpec):
    """The specification of an optional: that of its value.

    >>> tf.OptionalSpec(tf.TensorSpec([], tf.int32)).is_compatible_with(tf.experimental.Optional.from_value(1))
    True
    """

    value_type = property(lambda self: Optional)


@public("experimental.Optional", "data.experimental.Optional")
class Optional(CompositeTensor):
    """A value that may be missing, as at the end of a dataset.

    >>> some = tf.experimental.Optional.from_value(42)
    >>> some.has_value()
    <tf.Tensor: shape=(), dtype=bool, numpy=True>
    >>> some.get_value()
    <tf.Tensor: shape=(), dtype=int32, numpy=42>
    """

    def __init__(self, element: Any, element_spec: Any, number: Any = None) -> None:
        self._element, self._element_spec, self._handle = element, element_spec, number

    element_spec = property(lambda self: self._element_spec, doc="The specification of the value.")
    _type_spec = property(lambda self: OptionalSpec(self._element_spec))
    _trace_key = property(lambda self: repr(self._element_spec))

    @staticmethod
    def held(optional: Optional) -> Optional:
        """The optional, which a graph has made and which a graph will ask for."""
        result: Optional = _recent.hold(optional)
        return result

    @staticmethod
    def from_value(value: Any) -> Optional:
        """An optional with a value."""
        element = as_element(value)
        spec = map_leaves(spec_of_leaf, element)
        if not _core.is_tracing():
            return Optional(element, spec)

        pack = nest.packer(spec)

        def make(tensors: list[Any]) -> list[Any]:
            return [Optional.held(Optional(pack(iter(tensors)), spec))._handle_tensor()]

        parts = tensors_of([element])
        return Optional(None, spec, _core.call_python(make, parts, [int64], [TensorShape([])], None, True)[0])

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """An optional without a value."""
        return Optional(_MISSING, element_spec, _nothing()._handle) if _core.is_tracing() else _without(element_spec)

    def has_value(self, name: str | None = None) -> Any:
        """Whether there is a value, as a tensor."""
        if not _core.is_symbolic(self._handle):
            return convert_to_tensor(self._element is not _MISSING)

        def look(inputs: list[Any]) -> list[Any]:
            return [convert_to_tensor(from_handle(inputs[0])._element is not _MISSING)]

        return _core.call_python(look, [self._handle], [bool_], [TensorShape([])], None, True)[0]

    def get_value(self, name: str | None = None) -> Any:
        """The value; InvalidArgumentError if there is none."""
        if not _core.is_symbolic(self._handle):
            return self._value()

        def look(inputs: list[Any]) -> list[Any]:
            return tensors_of([from_handle(inputs[0])._value()])

        found = _core.call_python(look, [self._handle], *tensor_specs([self._element_spec]), None, True)
        return nest.pack_sequence_as(self._element_spec, found, expand_composites=True)

    def _value(self) -> Any:
        if self._element is _MISSING:
            raise InvalidArgumentError.of("The given optional does not have a value.")
        return self._element

    def _handle_tensor(self) -> Any:
        if self._handle is None:
            self._handle = handle_of(self)
        return self._handle

    def __repr__(self) -> str:
        return f"<tf.experimental.Optional element_spec={self._element_spec}>"


def _without(element_spec: Any) -> Optional:
    return Optional(_MISSING, element_spec)


_empty: list[Optional] = []


def _nothing() -> Optional:
    """The optional that graphs know as the empty one."""
    if not _empty:
        _empty.append(_without(None))
        _empty[0]._handle_tensor()
    return _empty[0]


@public("data.experimental.get_next_as_optional")
def get_next_as_optional(iterator: Any) -> Optional:
    """The next element of an iterator in an optional, which is empty at the end.

    >>> iterator = iter(tf.data.Dataset.range(0))
    >>> tf.data.experimental.get_next_as_optional(iterator).has_value()
    <tf.Tensor: shape=(), dtype=bool, numpy=False>
    """
    optional: Optional = iterator.get_next_as_optional()
    return optional
