"""Queues: operations of a graph put elements in and take them out. Each session has its own contents."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from tapeflow._src import _core
from tapeflow._src.compat.v1.queues.queue_contents import Contents, Elements, Shared, ShuffledElements, SortedElements
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call, host_effect
from tapeflow._src.types.dtypes import as_dtype, int32
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_shape import TensorShape, as_shape
from tapeflow._src.variables import session_graph


def named_call(
    name: str, run: Callable[..., list[Any]], inputs: list[Any], outputs: list[tuple[Any, Any]]
) -> list[Any]:
    """A node of this name that runs `run` each time it is asked for; eagerly, its results."""
    found: list[Any] = _named(name, host_call(run, inputs, outputs, effect=True))
    return found


def named_effect(name: str, run: Callable[..., None], inputs: list[Any]) -> Any:
    """An operation of this name that runs `run` each time; eagerly it runs at once, and gives None."""
    return _named(name, host_effect(run, inputs))


def _named(name: str, made: Any) -> Any:
    graph = _core.current_graph()
    if graph is not None and graph.graph_mode:
        graph.set_node_name(graph.node_count - 1, full_name(graph, name))
    return made


def full_name(graph: Any, name: str) -> str:
    """The name in the open scope, made unique; one that ends with a slash is the whole name."""
    return name[:-1] if name.endswith("/") else _core.Graph.unique_name(graph, graph.scope + name)


class PerSession:
    """Something that each session has its own of; what is made outside of graphs belongs to the program.

    Those of one `shared` key have the same in a session.
    """

    _shared_by_session: ClassVar[WeakKeyDictionary[Any, dict[Any, Any]]] = WeakKeyDictionary()
    _shared_of_program: ClassVar[dict[Any, Any]] = {}
    _making = threading.Lock()  # several threads may come first

    def __init__(self, make: Callable[[], Any], shared: Any = None) -> None:
        self._make = make
        self._key = self if shared is None else shared
        self._graph = session_graph()
        self._by_session: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self._of_program: Any = None
        if self._graph is not None:
            self._graph.per_session.append(self)

    def now(self) -> Any:
        """That of the session that runs."""
        session = None if self._graph is None else self._graph.held_by
        with self._making:
            if session is None:
                if self._of_program is None:
                    self._of_program = self._made_in(self._shared_of_program)
                return self._of_program
            if session not in self._by_session:
                self._by_session[session] = self._made_in(self._shared_by_session.setdefault(session, {}))
            return self._by_session[session]

    def _made_in(self, shared: dict[Any, Any]) -> Any:
        if self._key is self:
            return self._make()
        if self._key not in shared:
            shared[self._key] = self._make()
        return shared[self._key]

    def leave(self, session: Any) -> None:
        """The session ends: whoever waits in it is sent away."""
        left = self._by_session.pop(session, None)
        self._shared_by_session.pop(session, None)
        for part in left if isinstance(left, tuple) else (left,):
            if isinstance(part, Shared):
                part.abandon()


@public("queue.QueueBase", "compat.v1.QueueBase", "compat.v1.queue.QueueBase", "compat.v1.io.QueueBase", "io.QueueBase")
class QueueBase:
    """What all queues have.

    >>> issubclass(tf.queue.FIFOQueue, tf.queue.QueueBase)
    True
    """

    def __init__(
        self, kind: str, capacity: int, dtypes: Any, shapes: Any, names: Any, default_name: str, name: str | None,
        make: Callable[[], Elements], reserve: int = 0, shared_name: str | None = None, seed: int | None = None,
    ) -> None:  # fmt: skip
        self._dtypes = [as_dtype(d) for d in (dtypes if isinstance(dtypes, list | tuple) else [dtypes])]
        self._shapes = component_shapes(shapes, self._dtypes)
        self._names = _names(names, self._dtypes)
        graph, base = session_graph(), name or default_name
        self._full_name = base if graph is None else full_name(graph, base)
        label = f"{kind} '_0_{self._full_name}'"
        self._shared_name = shared_name
        self._declared = {
            "kind": kind,
            "capacity": capacity,
            "component types": [dtype.name for dtype in self._dtypes],
            "component shapes": [str(shape) for shape in self._shapes],
            "min_after_dequeue": reserve,
            "random seeds": seed,
        }
        self._contents_by_session = PerSession(
            lambda: (Contents(label, capacity, make(), reserve), self._declared),
            ("queue", shared_name) if shared_name else None,
        )

    name = property(lambda self: self._full_name, doc="The name of the queue.")
    dtypes = property(lambda self: self._dtypes, doc="The dtypes of the parts of an element.")
    shapes = property(lambda self: self._shapes, doc="The shapes of the parts of an element.")
    names = property(lambda self: self._names, doc="The names of the parts of an element, or None.")
    queue_ref = property(lambda self: self, doc="The queue.")

    def _now(self) -> Contents:
        """What the queue holds in the session that runs; with those of the same shared name it is one queue."""
        contents: Contents
        contents, declared = self._contents_by_session.now()
        for what, wanted in self._declared.items():
            if declared[what] != wanted:
                raise InvalidArgumentError.of(
                    f"Shared queue '{self._shared_name}' has {what} {declared[what]} but requested {what} {wanted}"
                )
        return contents

    @staticmethod
    def from_list(index: Any, queues: list[QueueBase]) -> QueueBase:
        """The queue of this place in the list."""
        return queues[int(find_public("get_static_value")(convert_to_tensor(index)))]

    def _node_name(self, ending: str) -> str:
        return f"{self._full_name.rpartition('/')[2]}_{ending}"

    # ---- putting in

    def enqueue(self, vals: Any, name: str | None = None) -> Any:
        """Puts one element in; waits while the queue is full."""
        parts = self._parts(vals)
        for part, shape in zip(parts, self._shapes):
            part.shape.assert_is_compatible_with(shape)

        def run(*values: Any) -> None:
            self._now().put([values])

        return named_effect(name or self._node_name("enqueue"), run, parts)

    def enqueue_many(self, vals: Any, name: str | None = None) -> Any:
        """Puts the rows of the parts in, one element each."""
        parts = self._parts(vals)
        rows = parts[0].shape[:1]
        for part, shape in zip(parts, self._shapes):
            rows = rows.merge_with(part.shape[:1])
            part.shape[1:].assert_is_compatible_with(shape)

        def run(*values: Any) -> None:
            count = values[0].shape[0]
            self._now().put([tuple(value[i] for value in values) for i in range(count)])

        return named_effect(name or self._node_name("EnqueueMany"), run, parts)

    def _parts(self, vals: Any) -> list[Any]:
        if isinstance(vals, dict):
            if not self._names:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if sorted(self._names) != sorted(vals):
                raise ValueError(
                    f"Keys in dictionary to enqueue do not match names of Queue.  Dictionary: {sorted(vals)},"
                    f"Queue: {sorted(self._names)}"
                )
            vals = [vals[key] for key in self._names]
        elif self._names:
            raise ValueError("You must enqueue a dictionary in a Queue with names")
        values = list(vals) if isinstance(vals, list | tuple) else [vals]
        if len(values) != len(self._dtypes):
            raise ValueError(f"enqueue: the elements of {self.name} have {len(self._dtypes)} parts; got {len(values)}")
        return [convert_to_tensor(value, dtype) for value, dtype in zip(values, self._dtypes)]

    # ---- taking out

    def dequeue(self, name: str | None = None) -> Any:
        """Takes one element out; waits while the queue is empty."""
        outputs = list(zip(self._dtypes, self._shapes))
        name = name or self._node_name("Dequeue")
        return self._arranged(named_call(name, lambda: list(self._now().take(1)[0]), [], outputs))

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """Takes `n` elements out, which become rows; waits until there are so many."""
        return self._take_rows(n, name or self._node_name("DequeueMany"), False)

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """Takes `n` elements out, or fewer if the queue is closed and no more come."""
        return self._take_rows(n, name or self._node_name("DequeueUpTo"), True)

    def _take_rows(self, n: Any, name: str, fewer_at_the_end: bool) -> Any:
        count = convert_to_tensor(n, int32)
        known = None if fewer_at_the_end else find_public("get_static_value")(count)
        rows = TensorShape([None if known is None else int(known)])
        outputs = [(dtype, rows.concatenate(shape)) for dtype, shape in zip(self._dtypes, self._shapes)]
        self._check_rows()

        def run(count: Any) -> list[Any]:
            wanted = int(count)
            elements = self._now().take(wanted, fewer_at_the_end) if wanted else []
            if not elements:
                empty = [[0, *(d or 0 for d in shape.as_list())] for shape in self._shapes]
                return [find_public("zeros")(sizes, dtype) for sizes, dtype in zip(empty, self._dtypes)]
            return [self._joined(list(parts)) for parts in zip(*elements)]

        return self._arranged(named_call(name, run, [count], outputs))

    def _check_rows(self) -> None:
        if not all(shape.is_fully_defined() for shape in self._shapes):
            raise ValueError(
                f"{self.name}: only single elements can be taken out of a queue whose parts have no known shapes; got "
                f"shapes {self._shapes}"
            )

    def _joined(self, parts: list[Any]) -> Any:
        return find_public("stack")(parts)

    def _arranged(self, parts: list[Any]) -> Any:
        if self._names:
            return dict(zip(self._names, parts))
        return parts[0] if len(parts) == 1 else parts

    # ---- the queue as a whole

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Any:
        """From now on nothing is put in; what is there can still be taken out."""
        name = name or self._node_name("Close")
        return named_effect(name, lambda: self._now().close(cancel_pending_enqueues), [])

    def is_closed(self, name: str | None = None) -> Any:
        """Whether it is closed."""
        return self._told("Is_Closed", name, "bool", Contents.is_closed)

    def size(self, name: str | None = None) -> Any:
        """How many elements it holds."""
        return self._told("Size", name, int32, len)

    def _told(self, ending: str, name: str | None, dtype: Any, ask: Callable[[Contents], Any]) -> Any:
        name = name or self._node_name(ending)
        return named_call(name, lambda: [convert_to_tensor(ask(self._now()), dtype)], [], [(dtype, [])])[0]


def component_shapes(shapes: Any, dtypes: list[Any]) -> list[TensorShape]:
    """The shape of each component; unknown ones if none are given."""
    if shapes is None:
        return [TensorShape(None) for _ in dtypes]
    listed = isinstance(shapes, list | tuple) and not (len(dtypes) == 1 and all(isinstance(d, int) for d in shapes))
    shapes = shapes if listed else [shapes]
    if len(shapes) != len(dtypes):
        raise ValueError(
            f"Queue shapes must have the same length as dtypes, received len(shapes)={len(shapes)}, "
            f"len(dtypes)={len(dtypes)}"
        )
    return [as_shape(shape) for shape in shapes]


def _names(names: Any, dtypes: list[Any]) -> list[str] | None:
    if not names:
        return None
    found = list(names) if isinstance(names, list | tuple) else [names]
    if len(found) != len(dtypes):
        raise ValueError(
            f"Queue names must have the same length as dtypes,received len(names)={len(found)},len {len(dtypes)}"
        )
    return found


@public("queue.FIFOQueue", "compat.v1.FIFOQueue", "compat.v1.queue.FIFOQueue")
class FIFOQueue(QueueBase):
    """A queue that gives its elements in the order in which they came.

    >>> queue = tf.queue.FIFOQueue(3, tf.float32)
    >>> queue.enqueue_many([[1., 2.]])
    >>> queue.dequeue()
    <tf.Tensor: shape=(), dtype=float32, numpy=1.0>
    """

    def __init__(
        self, capacity: int, dtypes: Any, shapes: Any = None, names: Any = None, shared_name: str | None = None,
        name: str = "fifo_queue",
    ) -> None:  # fmt: skip
        super().__init__(
            "FIFOQueue", capacity, dtypes, shapes, names, "fifo_queue", name, Elements, shared_name=shared_name
        )


@public(
    "queue.PaddingFIFOQueue", "compat.v1.PaddingFIFOQueue", "compat.v1.queue.PaddingFIFOQueue", "io.PaddingFIFOQueue",
    "compat.v1.io.PaddingFIFOQueue",
)  # fmt: skip
class PaddingFIFOQueue(QueueBase):
    """A queue in order whose elements, taken together, are filled up with zeros to one shape.

    >>> queue = tf.queue.PaddingFIFOQueue(3, tf.int32, shapes=[[None]])
    >>> queue.enqueue([[1]])
    >>> queue.enqueue([[2, 3]])
    >>> queue.dequeue_many(2)
    <tf.Tensor: shape=(2, 2), dtype=int32, numpy=
    array([[1, 0],
           [2, 3]], dtype=int32)>
    """

    def __init__(
        self, capacity: int, dtypes: Any, shapes: Any, names: Any = None, shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:  # fmt: skip
        kind = "PaddingFIFOQueue"
        super().__init__(
            kind, capacity, dtypes, shapes, names, "padding_fifo_queue", name, Elements, shared_name=shared_name
        )
        if shapes is None:
            raise ValueError("PaddingFIFOQueue: the shapes must be given; dimensions that vary are None")

    def _check_rows(self) -> None:
        if any(shape.rank is None for shape in self._shapes):
            raise ValueError(f"{self.name}: the ranks of the parts must be known; got shapes {self._shapes}")

    def _joined(self, parts: list[Any]) -> Any:
        arrays = [np.asarray(part.numpy()) for part in parts]
        sizes = [max(dims) for dims in zip(*(array.shape for array in arrays))]
        blank = b"" if parts[0].dtype.name == "string" else 0
        rows = np.full([len(arrays), *sizes], blank, object if blank == b"" else arrays[0].dtype)
        for i, array in enumerate(arrays):
            place: tuple[int | slice, ...] = (i, *(slice(size) for size in array.shape))
            rows[place] = array
        return convert_to_tensor(rows, parts[0].dtype)


@public(
    "queue.RandomShuffleQueue", "compat.v1.RandomShuffleQueue", "compat.v1.queue.RandomShuffleQueue",
    "io.RandomShuffleQueue", "compat.v1.io.RandomShuffleQueue",
)  # fmt: skip
class RandomShuffleQueue(QueueBase):
    """A queue that gives its elements in a random order, and keeps `min_after_dequeue` of them until it is closed.

    >>> queue = tf.queue.RandomShuffleQueue(5, 0, tf.int32)
    >>> queue.enqueue_many([[7, 7]])
    >>> queue.dequeue()
    <tf.Tensor: shape=(), dtype=int32, numpy=7>
    """

    def __init__(
        self, capacity: int, min_after_dequeue: int, dtypes: Any, shapes: Any = None, names: Any = None,
        seed: int | None = None, shared_name: str | None = None, name: str = "random_shuffle_queue",
    ) -> None:  # fmt: skip
        super().__init__(
            "RandomShuffleQueue", capacity, dtypes, shapes, names, "random_shuffle_queue", name,
            lambda: ShuffledElements(seed), min_after_dequeue, shared_name, seed,
        )  # fmt: skip


@public(
    "queue.PriorityQueue", "compat.v1.PriorityQueue", "compat.v1.queue.PriorityQueue", "io.PriorityQueue",
    "compat.v1.io.PriorityQueue",
)  # fmt: skip
class PriorityQueue(QueueBase):
    """A queue that gives the element with the smallest number first: the first part of each, an int64.

    >>> queue = tf.queue.PriorityQueue(3, [tf.string], [[]])
    >>> queue.enqueue_many([[2, 1], ["late", "early"]])
    >>> queue.dequeue()[1]
    <tf.Tensor: shape=(), dtype=string, numpy=b'early'>
    """

    def __init__(
        self, capacity: int, types: Any, shapes: Any, names: Any = None, shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:  # fmt: skip
        types = list(types) if isinstance(types, list | tuple) else [types]
        shapes = [TensorShape([]), *component_shapes(shapes, types)]
        super().__init__(
            "PriorityQueue", capacity, ["int64", *types], shapes, names, "priority_queue", name, SortedElements,
            shared_name=shared_name,
        )  # fmt: skip
