"""`tf.train.batch`, `shuffle_batch` and their variants: threads fill a queue with elements, steps take batches out."""

from __future__ import annotations

from typing import Any

from tapeflow._src import primitives
from tapeflow._src.compat.v1.graph.eager_switch import name_scope
from tapeflow._src.compat.v1.queues.input_producers import how_full
from tapeflow._src.compat.v1.queues.queue_runner import QueueRunner, add_queue_runner
from tapeflow._src.compat.v1.queues.queues import FIFOQueue, PaddingFIFOQueue, RandomShuffleQueue
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.tensor_shape import TensorShape, as_shape


class _Elements:
    """The tensors of each source of elements, as lists, and how a list becomes what the program gave."""

    def __init__(self, sources: list[Any], function: str, enqueue_many: bool) -> None:
        first = sources[0]
        self._keys = sorted(first) if isinstance(first, dict) else None
        self._bare = not isinstance(first, dict | list | tuple)
        self._function, self._enqueue_many = function, enqueue_many
        listed = [self._listed(source) for source in sources]
        self._sparse = self._sparse_kinds(listed)
        self.lists = [[self._in_queue(value) for value in values] for values in listed]

    def _listed(self, tensors: Any) -> list[Any]:
        if self._keys is not None:
            if not isinstance(tensors, dict) or sorted(tensors) != self._keys:
                raise ValueError(
                    f"{self._function}: all dictionaries in tensors_list must have the same keys; got {self._keys} and "
                    f"{sorted(tensors) if isinstance(tensors, dict) else tensors!r}"
                )
            tensors = [tensors[key] for key in self._keys]
        values = [tensors] if self._bare else list(tensors)
        if not values:
            raise ValueError(f"Expected at least one tensor in {self._function}().")
        return [value if isinstance(value, SparseTensor) else convert_to_tensor(value) for value in values]

    def _sparse_kinds(self, listed: list[list[Any]]) -> dict[int, tuple[Any, int | None]]:
        """The dtype and rank of a batch at each position where elements are sparse."""
        kinds: dict[int, tuple[Any, int | None]] = {}
        for position, values in enumerate(zip(*listed)):
            if len({isinstance(value, SparseTensor) for value in values}) > 1:
                raise TypeError(
                    f"{self._function}: a component must be sparse in all of tensors_list or in none; component "
                    f"{position} is sparse in some"
                )
            if isinstance(values[0], SparseTensor):
                ranks = {value.shape.rank for value in values}
                rank = ranks.pop() if len(ranks) == 1 else None
                kinds[position] = values[0].dtype, rank + 1 if rank is not None and not self._enqueue_many else rank
        return kinds

    def _in_queue(self, value: Any) -> Any:
        """The tensor that the queue keeps: for a sparse one, three strings an element."""
        if not isinstance(value, SparseTensor):
            return value
        return find_public("io.serialize_many_sparse" if self._enqueue_many else "io.serialize_sparse")(value)

    def shapes_in_queue(self, shapes: Any) -> list[Any]:
        """The shapes that a program gave, with those of the strings where elements are sparse."""
        return [[3] if position in self._sparse else shape for position, shape in enumerate(shapes)]

    def arranged(self, batch: Any) -> Any:
        """A batch as the program gave its elements."""
        values = list(batch) if isinstance(batch, list) else [batch]
        for position, (dtype, rank) in self._sparse.items():
            values[position] = find_public("io.deserialize_many_sparse")(values[position], dtype, rank)
        if self._keys is not None:
            return dict(zip(self._keys, values))
        return values[0] if self._bare or len(values) == 1 else values


def _element_shapes(lists: list[list[Any]], shapes: Any, enqueue_many: bool) -> list[TensorShape]:
    if shapes is not None:
        return [as_shape(shape) for shape in shapes]
    found = []
    for tensors in zip(*lists):
        for tensor in tensors:
            if tensor.shape.rank is None:
                raise ValueError(f"Cannot infer Tensor's rank: {tensor}")
        merged = tensors[0].shape
        for tensor in tensors[1:]:
            merged = TensorShape([a if a == b else None for a, b in zip(merged.as_list(), tensor.shape.as_list())])
        found.append(merged[1:] if enqueue_many else merged)
    return found


def _fill(queue: Any, lists: list[list[Any]], threads: int, enqueue_many: bool, keep_input: Any) -> None:
    put = queue.enqueue_many if enqueue_many else queue.enqueue

    def conditionally(tensors: list[Any]) -> Any:
        if keep_input is True:
            return put(tensors)
        if enqueue_many:
            rows = keep_input
            if rows.shape.rank == 0:
                rows = primitives.BroadcastTo(rows, find_public("shape")(tensors[0])[:1])
            return put([find_public("boolean_mask")(tensor, rows) for tensor in tensors])
        rows = primitives.Reshape(keep_input, [1])
        return queue.enqueue_many([find_public("boolean_mask")(primitives.ExpandDims(t, 0), rows) for t in tensors])

    add_queue_runner(QueueRunner(queue, [conditionally(tensors) for tensors in lists for _ in range(threads)]))


def _checked_keep_input(keep_input: Any, enqueue_many: bool) -> Any:
    """`keep_input`, which is one bool for an element, or one for each row of `enqueue_many`."""
    if keep_input is True:
        return True
    keep = convert_to_tensor(keep_input)
    rank = keep.shape.rank
    if rank is None:
        raise ValueError("`keep_input` dimensions must be known at graph construction.")
    if rank > 1 or (rank == 1 and not enqueue_many):
        vector = "cannot be a vector when `enqueue_many=False`" if rank == 1 else "must be 0 or 1 dimensions"
        raise ValueError(f"`keep_input` {vector}; got shape {keep.shape}.")
    return keep


def _batched(
    function: str, sources: list[Any], keep_input: Any, batch_size: Any, threads: int, capacity: int,
    enqueue_many: bool, shapes: Any, dynamic_pad: bool, smaller: bool, shared_name: str | None, name: str | None,
    shuffled: Any = None,
) -> Any:  # fmt: skip
    """The batches of a queue that threads fill from `sources`; `shuffled` is (min_after_dequeue, seed)."""
    elements = _Elements(sources, function, enqueue_many)
    with name_scope(name, function, elements.lists[0]) as scope:
        if shapes is not None:
            shapes = elements.shapes_in_queue(shapes)
        shapes = _element_shapes(elements.lists, shapes, enqueue_many)
        dtypes = [x.dtype.base_dtype for x in elements.lists[0]]
        if shuffled is not None:
            reserve, seed = shuffled
            queue: Any = RandomShuffleQueue(capacity, reserve, dtypes, shapes, seed=seed, shared_name=shared_name)
        else:
            kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue
            reserve, queue = 0, kind(capacity, dtypes, shapes, shared_name=shared_name)
        _fill(queue, elements.lists, threads, enqueue_many, _checked_keep_input(keep_input, enqueue_many))
        if shuffled is None:
            how_full(queue, f"fraction_of_{capacity}_full", capacity)
        else:
            room = capacity - reserve
            how_full(queue, f"fraction_over_{reserve}_of_{room}_full", room, reserve)
        take = queue.dequeue_up_to if smaller else queue.dequeue_many
        return elements.arranged(take(batch_size, name=scope))


@public("compat.v1.train.batch")
def batch(
    tensors: Any, batch_size: Any, num_threads: int = 1, capacity: int = 32, enqueue_many: bool = False,
    shapes: Any = None, dynamic_pad: bool = False, allow_smaller_final_batch: bool = False,
    shared_name: str | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of the values that the tensors have in run after run; threads collect them in a queue.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.train.batch([tf.constant([1., 2.])], batch_size=4).shape
    TensorShape([4, 2])
    """
    return maybe_batch(
        tensors, True, batch_size, num_threads, capacity, enqueue_many, shapes, dynamic_pad,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


@public("compat.v1.train.maybe_batch")
def maybe_batch(
    tensors: Any, keep_input: Any, batch_size: Any, num_threads: int = 1, capacity: int = 32,
    enqueue_many: bool = False, shapes: Any = None, dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False, shared_name: str | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of the values that the tensors have in those runs in which `keep_input` is true.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.train.maybe_batch([tf.constant(1.)], tf.constant(True), batch_size=4).shape
    TensorShape([4])
    """
    return _batched(
        "batch", [tensors], keep_input, batch_size, num_threads, capacity, enqueue_many, shapes, dynamic_pad,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


@public("compat.v1.train.batch_join")
def batch_join(
    tensors_list: Any, batch_size: Any, capacity: int = 32, enqueue_many: bool = False, shapes: Any = None,
    dynamic_pad: bool = False, allow_smaller_final_batch: bool = False, shared_name: str | None = None,
    name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of what several lists of tensors give, with a thread for each list.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.train.batch_join([[tf.constant(1.)], [tf.constant(2.)]], batch_size=4).shape
    TensorShape([4])
    """
    return maybe_batch_join(
        tensors_list, True, batch_size, capacity, enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch,
        shared_name, name,
    )  # fmt: skip


@public("compat.v1.train.maybe_batch_join")
def maybe_batch_join(
    tensors_list: Any, keep_input: Any, batch_size: Any, capacity: int = 32, enqueue_many: bool = False,
    shapes: Any = None, dynamic_pad: bool = False, allow_smaller_final_batch: bool = False,
    shared_name: str | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of what several lists of tensors give in those runs in which `keep_input` is true.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.train.maybe_batch_join([[tf.constant(1.)]], tf.constant(True), batch_size=4).shape
    TensorShape([4])
    """
    return _batched(
        "batch_join", list(tensors_list), keep_input, batch_size, 1, capacity, enqueue_many, shapes, dynamic_pad,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


def _check_capacity(capacity: int, min_after_dequeue: int) -> None:
    if capacity <= min_after_dequeue:
        raise ValueError(f"capacity {capacity} must be bigger than min_after_dequeue {min_after_dequeue}.")


@public("compat.v1.train.shuffle_batch")
def shuffle_batch(
    tensors: Any, batch_size: Any, capacity: int, min_after_dequeue: int, num_threads: int = 1,
    seed: int | None = None, enqueue_many: bool = False, shapes: Any = None, allow_smaller_final_batch: bool = False,
    shared_name: str | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Batches of the values that the tensors have in run after run, in a random order.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.train.shuffle_batch([tf.constant(1.)], 4, capacity=20, min_after_dequeue=10).shape
    TensorShape([4])
    """
    return maybe_shuffle_batch(
        tensors, batch_size, capacity, min_after_dequeue, True, num_threads, seed, enqueue_many, shapes,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


@public("compat.v1.train.maybe_shuffle_batch")
def maybe_shuffle_batch(
    tensors: Any, batch_size: Any, capacity: int, min_after_dequeue: int, keep_input: Any, num_threads: int = 1,
    seed: int | None = None, enqueue_many: bool = False, shapes: Any = None, allow_smaller_final_batch: bool = False,
    shared_name: str | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Batches, in a random order, of the values in those runs in which `keep_input` is true.

    >>> with tf.Graph().as_default():
    ...     keep = tf.constant(True)
    ...     tf.compat.v1.train.maybe_shuffle_batch([tf.constant(1.)], 4, 20, 10, keep).shape
    TensorShape([4])
    """
    _check_capacity(capacity, min_after_dequeue)
    return _batched(
        "shuffle_batch", [tensors], keep_input, batch_size, num_threads, capacity, enqueue_many, shapes, False,
        allow_smaller_final_batch, shared_name, name, (min_after_dequeue, seed),
    )  # fmt: skip


@public("compat.v1.train.shuffle_batch_join")
def shuffle_batch_join(
    tensors_list: Any, batch_size: Any, capacity: int, min_after_dequeue: int, seed: int | None = None,
    enqueue_many: bool = False, shapes: Any = None, allow_smaller_final_batch: bool = False,
    shared_name: str | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Batches, in a random order, of what several lists of tensors give, with a thread for each list.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.train.shuffle_batch_join([[tf.constant(1.)]], 4, 20, 10).shape
    TensorShape([4])
    """
    return maybe_shuffle_batch_join(
        tensors_list, batch_size, capacity, min_after_dequeue, True, seed, enqueue_many, shapes,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


@public("compat.v1.train.maybe_shuffle_batch_join")
def maybe_shuffle_batch_join(
    tensors_list: Any, batch_size: Any, capacity: int, min_after_dequeue: int, keep_input: Any,
    seed: int | None = None, enqueue_many: bool = False, shapes: Any = None, allow_smaller_final_batch: bool = False,
    shared_name: str | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Batches, in a random order, of what several lists give in those runs in which `keep_input` is true.

    >>> with tf.Graph().as_default():
    ...     keep = tf.constant(True)
    ...     tf.compat.v1.train.maybe_shuffle_batch_join([[tf.constant(1.)]], 4, 20, 10, keep).shape
    TensorShape([4])
    """
    _check_capacity(capacity, min_after_dequeue)
    return _batched(
        "shuffle_batch_join", list(tensors_list), keep_input, batch_size, 1, capacity, enqueue_many, shapes, False,
        allow_smaller_final_batch, shared_name, name, (min_after_dequeue, seed),
    )  # fmt: skip
