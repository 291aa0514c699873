"""Queues that a graph fills by itself: with strings, numbers or rows, in order or shuffled, for some epochs."""

from __future__ import annotations

from typing import Any

from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.eager_switch import name_scope
from tapeflow._src.compat.v1.queues.queue_runner import QueueRunner, add_queue_runner
from tapeflow._src.compat.v1.queues.queues import FIFOQueue
from tapeflow._src.compat.v1.summaries import scalar
from tapeflow._src.compat.v1.variables.variables import VariableV1, count_up_to
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import float32, int64


@public("compat.v1.train.match_filenames_once", "io.match_filenames_once", "compat.v1.io.match_filenames_once")
def match_filenames_once(pattern: Any, name: str | None = None) -> Any:
    """A local variable with the names of the files that match; they are looked for when it is initialised.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.train.match_filenames_once("data/*.csv").name
    'matching_filenames:0'
    """
    files = find_public("io.matching_files")(pattern)
    keys = [GraphKeys.LOCAL_VARIABLES]
    return VariableV1(files, trainable=False, collections=keys, validate_shape=False, name=name or "matching_filenames")


@public("compat.v1.train.limit_epochs")
def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Any:
    """The tensor, `num_epochs` times; then an OutOfRangeError. A local variable counts.

    >>> with tf.Graph().as_default():
    ...     x = tf.compat.v1.train.limit_epochs(tf.constant(1), num_epochs=2)
    ...     [v.name for v in tf.compat.v1.local_variables()]
    ['limit_epochs/epochs:0']
    """
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise ValueError(f"num_epochs must be > 0 not {num_epochs}.")
    with name_scope(name, "limit_epochs", [tensor]) as scope:
        epochs = VariableV1(
            convert_to_tensor(0, int64), name="epochs", trainable=False, collections=[GraphKeys.LOCAL_VARIABLES]
        )
        with find_public("control_dependencies")([count_up_to(epochs, num_epochs)]):
            return find_public("identity")(tensor, name=scope)


def how_full(queue: Any, name: str, capacity: int, reserve: int = 0) -> None:
    """A summary of the share of the capacity that is in use."""
    size = cast(find_public("maximum")(0, queue.size() - reserve), float32) if reserve else cast(queue.size(), float32)
    scalar(name, size * (1.0 / capacity))


@public("compat.v1.train.input_producer")
def input_producer(
    input_tensor: Any, element_shape: Any = None, num_epochs: int | None = None, shuffle: bool = True,
    seed: int | None = None, capacity: int = 32, shared_name: str | None = None, summary_name: str | None = None,
    name: str | None = None, cancel_op: Any = None,
) -> FIFOQueue:  # fmt: skip
    """A queue of the rows of a tensor, again and again, or `num_epochs` times.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.train.input_producer(tf.constant([1., 2.])).name
    'input_producer'
    """
    with name_scope(name, "input_producer", [input_tensor]) as scope:
        rows = convert_to_tensor(input_tensor, name="input_tensor")
        shape = rows.shape[1:] if element_shape is None else rows.shape[1:].merge_with(element_shape)
        if not shape.is_fully_defined():
            raise ValueError(
                "Either `input_tensor` must have a fully defined shape or `element_shape` must be specified."
            )
        if shuffle:
            rows = find_public("random.shuffle")(rows, seed=seed)
        rows = limit_epochs(rows, num_epochs)
        queue = FIFOQueue(capacity, [rows.dtype.base_dtype], [shape], shared_name=shared_name, name=scope)
        enqueue = queue.enqueue_many([rows])
        add_queue_runner(QueueRunner(queue, [enqueue], cancel_op=cancel_op))
        how_full(queue, summary_name or f"fraction_of_{capacity}_full", capacity)
        return queue


@public("compat.v1.train.string_input_producer")
def string_input_producer(
    string_tensor: Any, num_epochs: int | None = None, shuffle: bool = True, seed: int | None = None,
    capacity: int = 32, shared_name: str | None = None, name: str | None = None, cancel_op: Any = None,
) -> FIFOQueue:  # fmt: skip
    """A queue of strings, such as the names of files for a reader.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.train.string_input_producer(["a.csv", "b.csv"]).dtypes
    [tf.string]
    """
    if not isinstance(string_tensor, VariableV1) and not find_public("is_tensor")(string_tensor) and not string_tensor:
        raise ValueError("string_input_producer requires a non-null input tensor")
    with name_scope(name, "input_producer", [string_tensor]) as scope:
        strings = convert_to_tensor(string_tensor, "string")
        count = find_public("size")(strings)
        check = find_public("debugging.Assert")(
            find_public("greater")(count, 0), ["string_input_producer requires a non-null input tensor"]
        )
        with find_public("control_dependencies")([check]):
            strings = find_public("identity")(strings)
        return input_producer(
            strings, [], num_epochs, shuffle, seed, capacity, shared_name, f"fraction_of_{capacity}_full", scope,
            cancel_op,
        )  # fmt: skip


@public("compat.v1.train.range_input_producer")
def range_input_producer(
    limit: Any, num_epochs: int | None = None, shuffle: bool = True, seed: int | None = None, capacity: int = 32,
    shared_name: str | None = None, name: str | None = None,
) -> FIFOQueue:  # fmt: skip
    """A queue of the numbers from 0 to `limit` - 1.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.train.range_input_producer(3).dtypes
    [tf.int32]
    """
    with name_scope(name, "input_producer", [limit]) as scope:
        return input_producer(
            find_public("range")(limit), [], num_epochs, shuffle, seed, capacity, shared_name,
            f"fraction_of_{capacity}_full", scope,
        )  # fmt: skip


@public("compat.v1.train.slice_input_producer")
def slice_input_producer(
    tensor_list: Any, num_epochs: int | None = None, shuffle: bool = True, seed: int | None = None,
    capacity: int = 32, shared_name: str | None = None, name: str | None = None,
) -> list[Any]:  # fmt: skip
    """One row of each tensor, the next one in each run.

    >>> with tf.Graph().as_default():
    ...     x, y = tf.compat.v1.train.slice_input_producer([tf.zeros([5, 2]), tf.zeros([5])])
    ...     x.shape, y.shape
    (TensorShape([2]), TensorShape([]))
    """
    with name_scope(name, "input_producer", tensor_list):
        tensors = [convert_to_tensor(x) for x in tensor_list]
        if not tensors:
            raise ValueError("Expected at least one tensor in slice_input_producer().")
        rows = find_public("shape")(tensors[0])[0]
        place = range_input_producer(rows, num_epochs, shuffle, seed, capacity, shared_name).dequeue()
        return [find_public("gather")(x, place) for x in tensors]
