"""The transformations of `tf.data.Dataset` that need one pipe after another; what each stage does is in `pipes/`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src.data.options import AUTOTUNE
from tapeflow._src.data.pipes import batching, choosing, flattening, mapping, ordering, padding, sources
from tapeflow._src.data.pipes.buckets import Bucketed, Buckets
from tapeflow._src.data.pipes.pipe import Pipe
from tapeflow._src.data.pipes.sampling import Resampled
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import int64
from tapeflow._src.types.logging import get_logger


class Transformations:
    """The methods of datasets that return a dataset with one more stage."""

    _pipe: Pipe
    _preserves_count = True  # `map` gives as many elements as it takes; in TensorFlow 1 its function may end them

    def _then(self, pipe: Pipe, *others: Any) -> Any:
        raise NotImplementedError

    # ---- order

    def shuffle(
        self, buffer_size: Any, seed: Any = None, reshuffle_each_iteration: bool | None = True, name: str | None = None
    ) -> Any:
        """Elements in random order: each comes from a buffer of `buffer_size`, in TensorFlow's order for a seed.

        >>> tf.random.set_seed(1)
        >>> list(tf.data.Dataset.range(4).shuffle(4, seed=1).as_numpy_iterator())
        [2, 3, 0, 1]
        """
        changes = reshuffle_each_iteration is None or bool(reshuffle_each_iteration)
        return self._then(ordering.Shuffled(self._pipe, buffer_size, seed, changes))

    def repeat(self, count: Any = None, name: str | None = None) -> Any:
        """All elements `count` times, or without end.

        >>> list(tf.data.Dataset.range(2).repeat(2).as_numpy_iterator())
        [0, 1, 0, 1]
        """
        return self._then(ordering.Repeated(self._pipe, count))

    def take(self, count: Any, name: str | None = None) -> Any:
        """At most the first `count` elements; -1 means all."""
        return self._then(ordering.Taken(self._pipe, count))

    def skip(self, count: Any, name: str | None = None) -> Any:
        """The elements after the first `count`; -1 skips all."""
        return self._then(ordering.Skipped(self._pipe, count))

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Any:
        """The elements number `index`, `index + num_shards`, ..."""
        return self._then(ordering.Sharded(self._pipe, num_shards, index))

    def concatenate(self, dataset: Any, name: str | None = None) -> Any:
        """The elements of this dataset, then those of another one."""
        return self._then(ordering.Joined(self._pipe, dataset._pipe), dataset)

    def enumerate(self, start: Any = 0, name: str | None = None) -> Any:
        """Elements with their numbers.

        >>> list(tf.data.Dataset.range(5, 7).enumerate().as_numpy_iterator())
        [(0, 5), (1, 6)]
        """
        return self._then(ordering.Numbered(self._pipe, sources.Numbers(start, None, 1)))

    def cache(self, filename: Any = "", name: str | None = None) -> Any:
        """Elements that are computed once: kept in memory, or in the folder `filename`."""
        filename = os.fsdecode(filename.numpy() if _core.is_tensor(filename) else filename)
        return self._then(ordering.Cached(self._pipe, filename))

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Any:
        """The dataset; where elements take long, a thread computes up to `buffer_size` of them ahead."""
        return self._then(ordering.Prefetched(self._pipe, buffer_size))

    # ---- batches

    def batch(
        self,
        batch_size: Any,
        drop_remainder: Any = False,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Any:
        """`batch_size` elements as the rows of one; the last may be shorter, unless `drop_remainder`.

        >>> list(tf.data.Dataset.range(3).batch(2).as_numpy_iterator())
        [array([0, 1]), array([2])]
        """
        pipe = batching.Batched(self._pipe, batch_size, drop_remainder, num_parallel_calls, deterministic)
        return self._in_batches(pipe, batch_size, drop_remainder)

    def _in_batches(self, pipe: Any, batch_size: Any, drop_remainder: Any) -> Any:
        """The batches of a pipe, with the attributes by which Keras tells that a dataset is batched."""
        made = self._then(pipe)
        made._batch_size = cast(batch_size, int64)
        made._drop_remainder = convert_to_tensor(drop_remainder, "bool")
        return made

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: Any = False,
        name: str | None = None,
    ) -> Any:
        """Batches of elements that are padded to the longest, or to `padded_shapes`.

        >>> dataset = tf.data.Dataset.range(1, 4).map(lambda n: tf.fill([n], n)).padded_batch(3)
        >>> dataset.get_single_element()
        [[1, 0, 0], [2, 2, 0], [3, 3, 3]]
        """
        pipe = padding.PaddedBatched(self._pipe, batch_size, padded_shapes, padding_values, drop_remainder)
        return self._in_batches(pipe, batch_size, drop_remainder)

    def ragged_batch(
        self, batch_size: Any, drop_remainder: Any = False, row_splits_dtype: Any = int64, name: str | None = None
    ) -> Any:
        """Batches in which dimensions of unknown size are ragged."""
        pipe = batching.RaggedBatched(self._pipe, batch_size, drop_remainder, row_splits_dtype)
        return self._in_batches(pipe, batch_size, drop_remainder)

    def sparse_batch(self, batch_size: Any, row_shape: Any, name: str | None = None) -> Any:
        """Batches as sparse tensors, of which the rows are the elements."""
        return self._then(batching.SparseBatched(self._pipe, batch_size, row_shape))

    def unbatch(self, name: str | None = None) -> Any:
        """The rows of each element.

        >>> list(tf.data.Dataset.from_tensors([1, 2]).unbatch().as_numpy_iterator())
        [1, 2]
        """
        return self._then(batching.Unbatched(self._pipe))

    def rebatch(self, batch_size: Any, drop_remainder: bool = False, name: str | None = None) -> Any:
        """Batches of another size, of elements that are batches."""
        return self._then(batching.Rebatched(self._pipe, batch_size, drop_remainder))

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Any,
        bucket_batch_sizes: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Any:
        """Padded batches of elements of similar length."""
        given = Buckets(
            element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes, padding_values,
            pad_to_bucket_boundary, no_padding, drop_remainder,
        )  # fmt: skip
        return self._then(Bucketed(self._pipe, given))

    # ---- functions

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Any:
        """`map_func` of each element; it is traced once. A tuple is passed as several arguments.

        >>> list(tf.data.Dataset.range(3).map(lambda x: x + 1).as_numpy_iterator())
        [1, 2, 3]
        """
        pipe = mapping.Mapped(self._pipe, map_func, num_parallel_calls, deterministic, self._preserves_count)
        return self._then(pipe)

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Any:
        """The elements for which `predicate` holds.

        >>> list(tf.data.Dataset.range(5).filter(lambda x: x % 2 == 0).as_numpy_iterator())
        [0, 2, 4]
        """
        return self._then(mapping.Filtered(self._pipe, predicate))

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Any:
        """The elements before the first for which `predicate` does not hold."""
        return self._then(mapping.TakenWhile(self._pipe, predicate))

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Any:
        """The elements of the datasets that `map_func` makes of elements.

        >>> list(tf.data.Dataset.range(3).flat_map(tf.data.Dataset.range).as_numpy_iterator())
        [0, 0, 1]
        """
        return self._then(flattening.FlatMapped(self._pipe, map_func))

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: Any = None,
        block_length: Any = None,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Any:
        """Elements of `cycle_length` datasets, which `map_func` makes of elements, in turn."""
        if cycle_length is None or (isinstance(cycle_length, int) and cycle_length == AUTOTUNE):
            cycle_length = os.cpu_count() or 1
        block = 1 if block_length is None else block_length
        pipe = flattening.Interleaved(self._pipe, map_func, cycle_length, block, num_parallel_calls, deterministic)
        return self._then(pipe)

    def scan(self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None) -> Any:
        """`state, output = scan_func(state, element)` for each element; gives the outputs.

        >>> sums = tf.data.Dataset.range(4).scan(tf.constant(0, tf.int64), lambda total, x: (total + x, total + x))
        >>> list(sums.as_numpy_iterator())
        [0, 1, 3, 6]
        """
        return self._then(mapping.Scanned(self._pipe, initial_state, scan_func))

    def unique(self, name: str | None = None) -> Any:
        """Each element once."""
        return self._then(choosing.Unique(self._pipe))

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Any:
        """The elements that can be computed without an error."""
        return self._then(mapping.WithoutErrors(self._pipe, get_logger().warning if log_warning else None))

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: Any = None,
        name: str | None = None,
    ) -> Any:
        """Pairs of class and element; some are left out, so that classes come as often as `target_dist` says."""
        return self._then(Resampled(self._pipe, class_func, target_dist, initial_dist, seed))
