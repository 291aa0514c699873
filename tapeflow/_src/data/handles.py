"""Resource handles: a dataset or an iterator in a graph is a scalar tensor, by which nodes find the Python object."""

from __future__ import annotations

import itertools
from collections import deque
from typing import Any
from weakref import WeakValueDictionary

from tapeflow._src import _core
from tapeflow._src.function.trace import running_at_once
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_spec import TensorSpec, TypeSpec

_numbers = itertools.count(1)
_object_by_handle: WeakValueDictionary[int, Any] = WeakValueDictionary()


class Recent:
    """Holds the last objects that a graph made: nobody else does."""

    def __init__(self, size: int) -> None:
        self._objects: deque[Any] = deque(maxlen=size)

    def hold(self, thing: Any) -> Any:
        """The object, held until `size` others have come."""
        self._objects.append(thing)
        return thing


def handle_of(thing: Any) -> Any:
    """A tensor by which graphs find the object as long as it lives."""
    number = next(_numbers)
    _object_by_handle[number] = thing
    with running_at_once():
        return convert_to_tensor(number, int64)


def hold_for_graph(thing: Any) -> None:
    """Lets the graph that is built hold an object of which it has the handle; nobody else may."""
    graph: Any = _core.current_graph()
    if graph is not None:
        graph.held.append(thing)


def from_handle(tensor: Any) -> Any:
    """The object that a tensor names."""
    found = _object_by_handle.get(int(tensor))
    if found is None:
        raise InvalidArgumentError.of("the dataset or iterator that a tensor names does not exist any more")
    return found


class HandleSpec(TypeSpec):
    """The specification of something that is a number in graphs: that of its elements."""

    _component_specs = TensorSpec([], int64)
    _trace_key = property(lambda self: repr(self._element_spec))

    def __init__(self, element_spec: Any) -> None:
        self._element_spec = element_spec

    def _serialize(self) -> tuple[Any, ...]:
        return (self._element_spec,)

    def _to_components(self, value: Any) -> Any:
        return value._handle_tensor()

    def _from_components(self, components: Any) -> Any:
        if isinstance(components, _core.Tensor) and not _core.is_symbolic(components):
            return from_handle(components)
        return self._named(components)

    def _named(self, number: Any) -> Any:
        """The object that a graph knows by this number."""
        return self.value_type(None, self._element_spec, number)

    def _batch(self, size: int | None) -> HandleSpec:
        """The specification of `size` such objects in one; only datasets have one."""
        raise TypeError(f"batch: elements of type {self.value_type.__name__} cannot be put together")

    def _unbatch(self) -> HandleSpec:
        raise TypeError(f"unbatch: elements of type {self.value_type.__name__} have no rows")

    def _stacked(self, parts: Any) -> Any:
        """Such objects as the rows of one."""
        raise TypeError(f"batch: elements of type {self.value_type.__name__} cannot be put together")


def tensor_specs(specs: list[TypeSpec]) -> tuple[list[Any], list[Any]]:
    """The dtypes and shapes of the tensors of which elements consist, as nodes of a graph declare them."""
    flat = nest.flatten(specs, expand_composites=True)
    return [spec.dtype for spec in flat], [spec.shape for spec in flat]


def tensors_of(leaves: Any) -> list[Any]:
    """The tensors of which an element consists."""
    found = list(leaves)
    if {*map(type, found)} == {_core.Tensor}:
        return found
    return [tensor for tensor in nest.flatten(found, expand_composites=True) if tensor is not None]
