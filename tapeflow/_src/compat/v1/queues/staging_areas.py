"""Staging areas: graphs put tuples of tensors in and take them out later, in order or by key."""

from __future__ import annotations

from typing import Any

from tapeflow._src.compat.v1.queues.queues import PerSession, component_shapes, full_name, named_call, named_effect
from tapeflow._src.compat.v1.queues.staging_contents import StagedMap, StagedTuples
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.dtypes import as_dtype, int32, int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.variables import session_graph


class BaseStagingArea:
    """What both staging areas have."""

    def __init__(
        self, dtypes: Any, shapes: Any = None, names: Any = None, shared_name: str | None = None, capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:  # fmt: skip
        kind, graph = type(self).__name__, session_graph()
        if shared_name is not None and not isinstance(shared_name, str):
            raise ValueError(f"shared_name must be a string, got {shared_name}")
        self._name = shared_name or (kind if graph is None else full_name(graph, kind))
        self._dtypes = [as_dtype(dtype) for dtype in dtypes]
        if shapes is not None and len(shapes) != len(self._dtypes):
            raise ValueError("StagingArea shapes must be the same length as dtypes")
        if names is not None and len(names) != len(self._dtypes):
            raise ValueError("StagingArea names must be the same length as dtypes")
        self._shapes = component_shapes(shapes, self._dtypes)
        self._names = names
        self._capacity, self._memory_limit = capacity, memory_limit
        self._contents = PerSession(self._make, (kind, shared_name) if shared_name else None)

    name = property(lambda self: self._name, doc="The name of the staging area.")
    dtypes = property(lambda self: self._dtypes, doc="The dtypes of the components.")
    shapes = property(lambda self: self._shapes, doc="The shapes of the components.")
    names = property(lambda self: self._names, doc="The names of the components, or None.")
    capacity = property(lambda self: self._capacity, doc="How many tuples it holds at most; 0 means any number.")
    memory_limit = property(lambda self: self._memory_limit, doc="How many bytes it holds at most; 0 means any number.")

    def _make(self) -> Any:
        raise NotImplementedError

    def _node_name(self, ending: str) -> str:
        return f"{self._name.rpartition('/')[2]}_{ending}"

    def _checked(self, vals: Any, indices: Any) -> tuple[list[Any], list[int]]:
        """The tensors to put in, and the places of their components."""
        if isinstance(vals, dict):
            if not self._names:
                raise ValueError("Staging areas must have names to enqueue a dictionary")
            if not set(vals) <= set(self._names):
                raise ValueError(
                    f"Keys in dictionary to put do not match names of staging area. Dictionary: {sorted(vals)}"
                    f"Queue: {sorted(self._names)}"
                )
            indices = [i for i, name in enumerate(self._names) if name in vals]
            vals = [vals[self._names[i]] for i in indices]
        elif self._names:
            raise ValueError("You must enqueue a dictionary in a staging area with names")
        elif indices is None:
            raise ValueError("Indices must be supplied when inserting a list of tensors")
        elif len(indices) != len(vals):
            raise ValueError(f"Number of indices {len(indices)} doesn't match number of values {len(vals)}")
        if len(vals) > len(self._dtypes):
            raise ValueError(f"Unexpected number of inputs {len(vals)} vs {len(self._dtypes)}")
        tensors = [convert_to_tensor(value) for value in vals]
        for tensor, i in zip(tensors, indices):
            if tensor.dtype != self._dtypes[i]:
                raise ValueError(
                    f"Datatypes do not match. Received val.dtype {tensor.dtype} and dtype {self._dtypes[i]}"
                )
            tensor.shape.assert_is_compatible_with(self._shapes[i])
        return tensors, list(indices)

    def _outputs(self, indices: list[int]) -> list[tuple[Any, Any]]:
        return [(self._dtypes[i], self._shapes[i]) for i in indices]

    def _arranged(self, tensors: list[Any], indices: list[int]) -> Any:
        return {self._names[i]: tensor for tensor, i in zip(tensors, indices)} if self._names else tensors

    def size(self, name: str | None = None) -> Any:
        """How many whole tuples it holds."""
        return self._count(name or self._node_name("size"), len)

    def _count(self, name: str, ask: Any) -> Any:
        return named_call(name, lambda: [convert_to_tensor(ask(self._contents.now()), int32)], [], [(int32, [])])[0]

    def clear(self, name: str | None = None) -> Any:
        """Drops what it holds."""
        return named_effect(name or self._node_name("clear"), lambda: self._contents.now().clear(), [])


class StagingArea(BaseStagingArea):
    """Tuples of tensors in the order in which they were put in; `get` waits until there is one.

    `put` waits while there are `capacity` tuples or `memory_limit` bytes.
    """

    def _make(self) -> Any:
        return StagedTuples(f"StagingArea '{self._name}'", self._capacity, self._memory_limit)

    def put(self, values: Any, name: str | None = None) -> Any:
        """Adds a tuple."""
        values = values if isinstance(values, list | tuple | dict) else [values]
        tensors, _ = self._checked(values, range(len(values)))

        def run(*parts: Any) -> None:
            self._contents.now().put(list(parts))

        return named_effect(name or self._node_name("put"), run, tensors)

    def get(self, name: str | None = None) -> Any:
        """Takes the oldest tuple out."""
        indices = [*range(len(self._dtypes))]
        name = name or self._node_name("get")
        return self._arranged(named_call(name, lambda: self._contents.now().get(), [], self._outputs(indices)), indices)

    def peek(self, index: Any, name: str | None = None) -> Any:
        """The tuple at a place; it stays there."""
        indices = [*range(len(self._dtypes))]
        place = convert_to_tensor(index, int32)
        found = named_call(
            name or self._node_name("peek"),
            lambda place: self._contents.now().peek(int(place)), [place], self._outputs(indices),
        )  # fmt: skip
        return self._arranged(found, indices)


class MapStagingArea(BaseStagingArea):
    """Tuples of tensors by an int64 key, put in and taken out component by component.

    An ordered one gives the smallest key first to a `get` without a key.
    """

    def __init__(
        self, dtypes: Any, shapes: Any = None, names: Any = None, shared_name: str | None = None,
        ordered: bool = False, capacity: int = 0, memory_limit: int = 0,
    ) -> None:  # fmt: skip
        self._ordered = ordered
        super().__init__(dtypes, shapes, names, shared_name, capacity, memory_limit)

    def _make(self) -> Any:
        return StagedMap(f"MapStagingArea '{self._name}'", self._capacity, self._memory_limit, self._ordered)

    def put(self, key: Any, vals: Any, indices: Any = None, name: str | None = None) -> Any:
        """Sets components of a key: those of a dictionary's names, or of these indices."""
        tensors, places = self._checked(vals, indices)
        count = len(self._dtypes)

        def run(key: Any, *parts: Any) -> None:
            self._contents.now().put(_key_of(key), places, list(parts), count)

        return named_effect(name or self._node_name("put"), run, [convert_to_tensor(key, int64), *tensors])

    def _places(self, indices: Any) -> list[int]:
        if indices is None:
            return [*range(len(self._dtypes))]
        if not isinstance(indices, list | tuple):
            raise TypeError(f"Invalid indices type {type(indices)}")
        if not indices:
            raise ValueError("Empty indices")
        if all(isinstance(i, int) for i in indices):
            return list(indices)
        if not all(isinstance(i, str) for i in indices):
            raise TypeError(f"Mixed types in indices {indices}. May only be str or int")
        if self._names is None:
            raise ValueError(f"String indices provided {indices}, but this Staging Area was not created with names.")
        if not set(indices) <= set(self._names):
            raise ValueError(f"Named index not in Staging Area names {self._names}")
        return [self._names.index(i) for i in indices]

    def peek(self, key: Any, indices: Any = None, name: str | None = None) -> Any:
        """Components of a key, which stay there; waits until the key is whole."""
        places = self._places(indices)
        found = named_call(
            name or self._node_name("pop"),
            lambda key: self._contents.now().peek(_key_of(key), places),
            [convert_to_tensor(key, int64)], self._outputs(places),
        )  # fmt: skip
        return self._arranged(found, places)

    def get(self, key: Any = None, indices: Any = None, name: str | None = None) -> Any:
        """Takes components of a key out, of any one if none is given; gives the key and them."""
        places = self._places(indices)
        if key is not None:
            key = convert_to_tensor(key, int64)
            found = named_call(
                name or self._node_name("get"),
                lambda key: self._contents.now().get(_key_of(key), places)[1], [key], self._outputs(places),
            )  # fmt: skip
            return key, self._arranged(found, places)

        def run() -> list[Any]:
            known, parts = self._contents.now().get(None, places)
            return [convert_to_tensor(known, int64), *parts]

        key, *found = named_call(name or self._node_name("get_nokey"), run, [], [(int64, []), *self._outputs(places)])
        return key, self._arranged(found, places)

    def incomplete_size(self, name: str | None = None) -> Any:
        """How many keys lack a component that did not come yet."""
        return self._count(name or self._node_name("incomplete_size"), StagedMap.incomplete_count)


def _key_of(key: Any) -> int:
    if key.shape.rank != 0:
        raise InvalidArgumentError.of(f"MapStagingArea: key must be an int64 scalar; got shape {key.shape}")
    return int(key)
