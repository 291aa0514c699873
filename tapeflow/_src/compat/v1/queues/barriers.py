"""Barriers: maps of strings to tuples whose components come one by one; complete tuples are taken out in order."""

from __future__ import annotations

from typing import Any, NamedTuple

from tapeflow._src.compat.v1.queues.queue_contents import Contents, SortedElements
from tapeflow._src.compat.v1.queues.queues import PerSession, component_shapes, full_name, named_call, named_effect
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.dtypes import as_dtype, int32, int64
from tapeflow._src.types.errors import CancelledError, InvalidArgumentError
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.variables import session_graph

_FIRST = -(2**63)


class _Contents(Contents):
    """The tuples of one session: the complete ones wait in the order in which their keys came first."""

    _size_word = "total size"

    def __init__(self, label: str, count: int) -> None:
        super().__init__(label, 0, SortedElements())
        self._count = count
        self._incomplete: dict[bytes, tuple[int, list[Any]]] = {}
        self._next = _FIRST
        self._refuses_new_keys = self._refuses_all = False

    def insert(self, component: int, keys: list[bytes], values: list[Any]) -> None:
        """Sets a component of each key; all keys that are new have the same place in the order."""
        with self._changed:
            self._check(component, keys)
            new = False
            for key, value in zip(keys, values):
                new = new or key not in self._incomplete
                place, parts = self._incomplete.setdefault(key, (self._next, [None] * self._count))
                parts[component] = value
                if all(part is not None for part in parts):
                    del self._incomplete[key]
                    self._elements.put((place, key, *parts))
            self._next += new
            self._close_when_done()
            self._changed.notify_all()

    def _check(self, component: int, keys: list[bytes]) -> None:
        if self._refuses_all:
            raise CancelledError.of(f"{self._label} is closed.")
        if not 0 <= component < self._count:
            raise InvalidArgumentError.of(
                f"{self._label}: the component must be at least 0 and below {self._count}; got {component}"
            )
        for key in keys:
            if key not in self._incomplete:
                if self._refuses_new_keys:
                    raise CancelledError.of(
                        f"{self._label} is closed, but attempted to insert a brand new key: {key.decode('latin1')}"
                    )
            elif self._incomplete[key][1][component] is not None:
                raise InvalidArgumentError.of(
                    f"Key {key.decode('latin1')} already has a value for component {component} in {self._label}"
                )

    def refuse(self, cancel_pending: bool) -> None:
        """Takes no more keys; with `cancel_pending`, no more components either."""
        with self._changed:
            self._refuses_new_keys = True
            self._refuses_all = self._refuses_all or cancel_pending
            self._close_when_done()
            self._changed.notify_all()

    def _close_when_done(self) -> None:
        self._closed = self._refuses_all or (self._refuses_new_keys and not self._incomplete)

    def take(self, count: int, fewer_at_the_end: bool = False) -> list[Any]:
        """`count` complete tuples; with `fewer_at_the_end`, those that a barrier without new keys has now."""
        with self._changed:
            if fewer_at_the_end and self._refuses_new_keys and self._elements:
                count = min(count, len(self._elements))
        return super().take(count, fewer_at_the_end)

    def incomplete_count(self) -> int:
        """How many keys lack a component."""
        return len(self._incomplete)


class BarrierTakeMany(NamedTuple):
    """Complete tuples: their places in the order, their keys, and the rows of each component."""

    indices: Any
    keys: Any
    values: Any


class Barrier:
    """A map of strings to tuples of tensors that graphs fill component by component; sessions have their own contents.

    `take_many` gives complete tuples, those first whose keys came first.
    """

    def __init__(self, types: Any, shapes: Any = None, shared_name: str | None = None, name: str = "barrier") -> None:
        self._types = [as_dtype(kind) for kind in (types if isinstance(types, list | tuple) else [types])]
        self._shapes = component_shapes(shapes, self._types)
        for i, shape in enumerate(self._shapes):
            if shape.num_elements() == 0:
                raise ValueError(f"Empty tensors are not supported, but received shape '{shape}' at index {i}")
        graph = session_graph()
        self._full_name = name if graph is None else full_name(graph, name)
        label, count = f"Barrier '_0_{self._full_name}'", len(self._types)
        self._contents = PerSession(
            lambda: _Contents(label, count), ("barrier", shared_name, *self._types) if shared_name else None
        )

    name = property(lambda self: self._full_name, doc="The name of the barrier.")
    barrier_ref = property(lambda self: self, doc="The barrier.")

    def _node_name(self, ending: str) -> str:
        return f"{self._full_name.rpartition('/')[2]}_Barrier{ending}"

    def insert_many(self, component_index: int, keys: Any, values: Any, name: str | None = None) -> Any:
        """Sets the component of each key to the row of `values` at its place."""
        index = int(component_index)
        if not 0 <= index < len(self._types):
            raise InvalidArgumentError.of(
                f"Barrier.insert_many: component_index must be at least 0 and below {len(self._types)}; got {index}"
            )
        labels = convert_to_tensor(keys, "string")
        rows = convert_to_tensor(values, self._types[index])
        rows.shape[1:].assert_is_compatible_with(self._shapes[index])

        def run(labels: Any, rows: Any) -> None:
            if labels.shape.rank != 1 or rows.shape[:1] != labels.shape:
                raise InvalidArgumentError.of(
                    f"{self._full_name}: there must be one row for each key; got {rows.shape} for {labels.shape}"
                )
            if rows.shape[1:].num_elements() == 0:
                raise InvalidArgumentError.of(
                    f"Tensors with no elements are not supported ({self._full_name}: received shape {rows.shape})"
                )
            known = [bytes(key) for key in labels.numpy().tolist()]
            self._contents.now().insert(index, known, [rows[i] for i in range(len(known))])

        return named_effect(name or self._node_name("InsertMany"), run, [labels, rows])

    def take_many(
        self, num_elements: Any, allow_small_batch: bool = False, timeout: int | None = None, name: str | None = None
    ) -> Any:
        """Waits for so many complete tuples; gives `(indices, keys, values)`.

        With `allow_small_batch`, a closed barrier gives those that are left.
        """
        if timeout is not None:
            raise NotImplementedError("Barrier.take_many: timeout is not supported; use the timeout of Session.run")
        count = convert_to_tensor(num_elements, int32)
        known = None if allow_small_batch else find_public("get_static_value")(count)
        rows = TensorShape([None if known is None else int(known)])
        outputs = [
            (int64, rows),
            (as_dtype("string"), rows),
            *((dtype, rows.concatenate(shape)) for dtype, shape in zip(self._types, self._shapes)),
        ]

        def run(count: Any) -> list[Any]:
            taken = self._contents.now().take(int(count), allow_small_batch)
            if not taken:
                sizes = [[0, *(size or 0 for size in shape.as_list() or [])] for shape in self._shapes]
                kinds = [int64, as_dtype("string"), *self._types]
                return [find_public("zeros")(size, dtype) for size, dtype in zip([[0], [0], *sizes], kinds)]
            places, keys, *components = zip(*taken)
            rows = [find_public("stack")(list(component)) for component in components]
            return [convert_to_tensor(list(places), int64), convert_to_tensor(list(keys), "string"), *rows]

        places, keys, *values = named_call(name or self._node_name("TakeMany"), run, [count], outputs)
        return BarrierTakeMany(places, keys, values)

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Any:
        """Takes no new keys from now on; with `cancel_pending_enqueues`, nothing at all."""
        return named_effect(
            name or self._node_name("Close"), lambda: self._contents.now().refuse(cancel_pending_enqueues), []
        )

    def ready_size(self, name: str | None = None) -> Any:
        """How many tuples are complete."""
        return self._count(name or self._node_name("ReadySize"), len)

    def incomplete_size(self, name: str | None = None) -> Any:
        """How many tuples lack a component."""
        return self._count(name or self._node_name("IncompleteSize"), _Contents.incomplete_count)

    def _count(self, name: str, ask: Any) -> Any:
        return named_call(name, lambda: [convert_to_tensor(ask(self._contents.now()), int32)], [], [(int32, [])])[0]
