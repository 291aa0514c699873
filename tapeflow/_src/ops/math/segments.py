"""Counting and reducing by number: segments, bin counts, histograms, confusion matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public, public_as
from tapeflow._src.ops.arrays.constants import holds_symbolic, is_open
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor, get_static_value
from tapeflow._src.ops.arrays.indexing import take
from tapeflow._src.types.dtypes import as_dtype, int32, int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.types.tensor_spec import TensorSpec


def _over_rows(count: Any, data: Any) -> Any:
    """One number per segment, in a shape that broadcasts against the rows of the result."""
    for _ in range(data.shape.rank - count.shape.rank):
        count = primitives.ExpandDims(count, -1)
    return count


def _ones_for(segment_ids: Any, dtype: Any) -> Tensor:
    one = _core.convert_to_tensor(1, dtype, None, "segment")
    shape = primitives.Shape(segment_ids) if is_open(segment_ids) else segment_ids.shape.as_list()
    return primitives.BroadcastTo(one, shape)


def _divide(x: Any, y: Any) -> Tensor:
    return primitives.TruncateDiv(x, y) if x.dtype.is_integer else primitives.RealDiv(x, y)


@public("math.segment_mean")
def segment_mean(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """The mean of the rows of `data` that share a number in `segment_ids`, which is sorted; 0 where there are none.

    >>> tf.math.segment_mean([1., 3., 5.], [0, 0, 1])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 5.], dtype=float32)>
    """
    data, segment_ids = convert_to_tensor(data), convert_to_tensor(segment_ids, dtype_hint=int32)
    total = primitives.SegmentSum(data, segment_ids)
    count = primitives.SegmentSum(_ones_for(segment_ids, int32), segment_ids)
    return _divide(total, cast(_over_rows(primitives.Maximum(count, 1), total), total.dtype))


def _unsorted_count(data: Any, segment_ids: Any, num_segments: Any, total: Any) -> Any:
    count = primitives.UnsortedSegmentSum(_ones_for(segment_ids, int32), segment_ids, num_segments)
    return cast(_over_rows(primitives.Maximum(count, 1), total), total.dtype)


@public("math.unsorted_segment_mean")
def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
    """The mean of the rows of `data` that share a number in `segment_ids`; 0 where there are none.

    >>> tf.math.unsorted_segment_mean([1., 3., 5.], [0, 1, 0], 2)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 3.], dtype=float32)>
    """
    data, segment_ids = convert_to_tensor(data), convert_to_tensor(segment_ids, dtype_hint=int32)
    total = primitives.UnsortedSegmentSum(data, segment_ids, num_segments)
    return total / _unsorted_count(data, segment_ids, num_segments, total)


@public("math.unsorted_segment_sqrt_n")
def unsorted_segment_sqrt_n(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The sum of the rows that share a number in `segment_ids`, divided by the square root of how many they are.

    >>> tf.math.unsorted_segment_sqrt_n([1., 3., 5., 7.], [0, 0, 0, 0], 1)
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([8.], dtype=float32)>
    """
    data, segment_ids = convert_to_tensor(data), convert_to_tensor(segment_ids, dtype_hint=int32)
    total = primitives.UnsortedSegmentSum(data, segment_ids, num_segments)
    return total / primitives.Sqrt(_unsorted_count(data, segment_ids, num_segments, total))


# ---- sums over chosen rows


def _checked_rows(who: str, data: Any, indices: Any, segment_ids: Any) -> None:
    """Raises unless the arguments have ranks and sizes that fit and the indices, if known, are rows of `data`."""
    if data.shape.rank == 0:
        raise InvalidArgumentError.of(f"{who}: Shape must be at least rank 1 but is rank 0; got `data` of shape []")
    for what, x in (("indices", indices), ("segment_ids", segment_ids)):
        if x.shape.rank not in (None, 1):
            raise InvalidArgumentError.of(f"{who}: {what} should be a vector; got shape {x.shape}")
    if not segment_ids.shape.is_compatible_with(indices.shape):
        raise InvalidArgumentError.of(
            f"{who}: segment_ids and indices should have same size; got {segment_ids.shape} and {indices.shape}",
        )
    rows = data.shape[0]
    if rows is not None and not _core.is_symbolic(indices):
        places = np.asarray(indices)
        outside = (places < 0) | (places >= rows)
        if outside.any():
            at = int(outside.argmax())
            raise InvalidArgumentError.of(f"{who}: indices[{at}] == {places[at]} out of range [0, {rows})")


def _checked_ids(who: str, segment_ids: Any, num_segments: Any) -> Any:
    """The numbers of the segments; raises, in a graph when it runs, unless they ascend from 0 to below the limit."""
    if _core.is_symbolic(segment_ids) or _core.is_symbolic(num_segments):
        ascends = primitives.All(primitives.GreaterEqual(segment_ids[1:], segment_ids[:-1]))
        segment_ids = _core.required(segment_ids, ascends, f"{who}: segment ids are not increasing")
        inside = primitives.All(primitives.GreaterEqual(segment_ids, 0))
        return _core.required(segment_ids, inside, f"{who}: segment ids must be >= 0")
    ids, count = np.asarray(segment_ids), int(num_segments)
    if not ids.size:
        return segment_ids
    if ids[-1] < 0 or count < 0:
        raise InvalidArgumentError.of(f"{who}: segment ids must be >= 0; got {ids[-1]} and num_segments = {count}")
    if ids[-1] >= count:
        raise InvalidArgumentError.of(
            f"{who}: segment ids must be < num_segments; got num_segments = {count}. Segment id {ids[-1]} out of range "
            f"[0, {count})"
        )
    outside, falls = (ids < 0) | (ids >= count), np.append(ids[1:] < ids[:-1], False)
    if (outside | falls).any():
        at = int((outside | falls).argmax())
        if outside[at]:
            raise InvalidArgumentError.of(
                f"{who}: Segment id {ids[at]} out of range [0, {count}), possibly because 'segment_ids' input is not "
                "sorted."
            )
        raise InvalidArgumentError.of(
            f"{who}: segment ids are not increasing; segment_ids[{at + 1}] = {ids[at + 1]} follows {ids[at]}"
        )
    return segment_ids


def _chosen_sum(
    who: str, data: Any, indices: Any, segment_ids: Any, num_segments: Any, sparse_gradient: bool
) -> tuple[Any, Any]:
    """The sums of the rows `indices` of `data` by segment, and the number of rows in each."""
    data = convert_to_tensor(data)
    indices = convert_to_tensor(indices, dtype_hint=int32)
    segment_ids = convert_to_tensor(segment_ids, dtype_hint=int32)
    _checked_rows(who, data, indices, segment_ids)
    rows = primitives.GatherV2(data, indices, 0, 0) if sparse_gradient else take(data, indices, 0)
    ones = _ones_for(segment_ids, int32)
    if num_segments is None:
        total, count = primitives.SegmentSum(rows, segment_ids), primitives.SegmentSum(ones, segment_ids)
    else:
        if _core.is_tracing() and not _core.is_symbolic(num_segments) and int(num_segments) < 0:
            raise ValueError(f"{who}: Cannot specify a negative value for num_segments; got {int(num_segments)}")
        segment_ids = _checked_ids(who, segment_ids, num_segments)
        total = primitives.UnsortedSegmentSum(rows, segment_ids, num_segments)
        count = primitives.UnsortedSegmentSum(ones, segment_ids, num_segments)
    return total, cast(_over_rows(primitives.Maximum(count, 1), total), total.dtype)


def _chosen_reduction(finish: Callable[[Any, Any], Any], doc: str, path: str) -> Callable[..., Any]:
    """A reduction of chosen rows from their sum and number in each segment."""
    who = path.replace(".", "_")

    @public_as(doc, path)
    def function(
        data: Any,
        indices: Any,
        segment_ids: Any,
        num_segments: Any = None,
        name: str | None = None,
        sparse_gradient: bool = False,
    ) -> Any:
        return finish(*_chosen_sum(who, data, indices, segment_ids, num_segments, sparse_gradient))

    function.result_specs, function.refuses_values = _chosen_spec, True  # type: ignore[attr-defined]
    return function


def _chosen_spec(data: Any, indices: Any, segment_ids: Any, num_segments: Any = None, *_: Any, **__: Any) -> Any:
    """The rows for each segment; None if the ranks or sizes do not fit."""
    data, indices, segment_ids = (convert_to_tensor(x) for x in (data, indices, segment_ids))
    vectors = indices.shape.rank in (None, 1) and segment_ids.shape.rank in (None, 1)
    if data.shape.rank == 0 or not vectors or not segment_ids.shape.is_compatible_with(indices.shape):
        return None
    if data.shape.rank is None:
        return TensorSpec(None, data.dtype)
    count = None if num_segments is None else get_static_value(num_segments)
    return TensorSpec([None if count is None else int(count), *data.shape[1:]], data.dtype)


sparse_segment_sum = _chosen_reduction(
    lambda total, count: total,
    """The sums of the rows `indices` of `data` that share a number in `segment_ids`, which is sorted.

    >>> tf.sparse.segment_sum([[1.], [2.], [4.]], [0, 2], [0, 0])
    <tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[5.]], dtype=float32)>
    """,
    "sparse.segment_sum",
)
sparse_segment_mean = _chosen_reduction(
    lambda total, count: total / count,
    """The means of the rows `indices` of `data` that share a number in `segment_ids`, which is sorted.

    >>> tf.sparse.segment_mean([[1.], [2.], [4.]], [0, 2], [0, 0])
    <tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[2.5]], dtype=float32)>
    """,
    "sparse.segment_mean",
)
sparse_segment_sqrt_n = _chosen_reduction(
    lambda total, count: total / primitives.Sqrt(count),
    """As `tf.sparse.segment_sum`, divided by the square root of the number of rows.

    >>> tf.sparse.segment_sqrt_n([[1.], [2.], [4.]], [1, 1, 1, 1], [0, 0, 0, 0])
    <tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[4.]], dtype=float32)>
    """,
    "sparse.segment_sqrt_n",
)


# ---- counting


def count_bins(values: Any, rows: Any, row_count: int, weights: Any, length: int, binary: bool, dtype: Any) -> Tensor:
    """How often (or with which weight) each of `length` numbers occurs in each row; numbers beyond are left out."""
    inside = primitives.Less(values, length)
    places = primitives.SelectV2(inside, rows * length + values, -1)
    amounts = _ones_for(values, dtype) if weights is None or binary else weights
    counts = primitives.UnsortedSegmentSum(amounts, places, row_count * length)
    if binary:
        counts = cast(
            primitives.Greater(counts, _core.convert_to_tensor(0, counts.dtype, None, "bincount")), counts.dtype
        )
    return primitives.Reshape(counts, [row_count, length])


def bin_count_length(values: Any, minlength: Any, maxlength: Any) -> int:
    """The number of bins for the given values: one more than the largest, within the limits."""
    length = 0
    if values.shape.num_elements() != 0:
        if int(primitives.Min(values)) < 0:
            raise InvalidArgumentError.of("bincount: Input arr must be non-negative!")
        length = int(primitives.Max(values)) + 1
    if minlength is not None:
        length = max(length, int(minlength))
    if maxlength is not None:
        length = min(length, int(maxlength))
    return length


@public("math.bincount")
def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = int32,
    name: str | None = None,
    axis: int | None = None,
    binary_output: bool = False,
) -> Any:
    """How often each number occurs, or the sum of its weights; for each row if `axis` is -1.

    >>> tf.math.bincount([1, 1, 3])
    <tf.Tensor: shape=(4,), dtype=int32, numpy=array([0, 2, 0, 1], dtype=int32)>
    """
    if axis not in (None, 0, -1):
        raise ValueError(f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported.")
    if type(arr) is _core.Tensor and weights is None and axis is None and not binary_output and arr.dtype.is_integer:
        length = bin_count_length(arr, minlength, maxlength)
        values = arr if arr.dtype in (int32, int64) else cast(arr, int64)
        return cast(primitives.CountValues(values, length), as_dtype(dtype))
    if weights is not None and binary_output:
        raise ValueError("Arguments `binary_output` and `weights` are mutually exclusive. Please specify only one.")
    rows = None
    if isinstance(arr, IndexedSlices):
        arr = convert_to_tensor(arr)
    if hasattr(arr, "dense_shape") and hasattr(arr, "indices"):
        row_count = int(np.asarray(arr.dense_shape)[0])
        rows = arr.indices[:, 0] if axis == -1 and arr.indices.shape[1] > 1 else None
        weights = getattr(weights, "values", weights)
        arr = arr.values
    elif hasattr(arr, "row_splits"):
        row_count, rows = int(arr.nrows()), arr.value_rowids() if axis == -1 else None
        weights = getattr(weights, "values", weights)
        arr = arr.values
    values = convert_to_tensor(arr)
    if not values.dtype.is_integer:
        values = cast(values, int32)
    if weights is not None:
        weights = convert_to_tensor(weights)
        if weights.shape != values.shape:
            raise InvalidArgumentError.of(
                f"bincount: `weights` must be the same shape as `arr`; got {weights.shape} and {values.shape}",
            )
        dtype = weights.dtype
    length = bin_count_length(values, minlength, maxlength)
    if rows is None and axis is None and weights is not None and maxlength is None:
        places = values if values.dtype in (int32, int64) else cast(values, int64)
        return primitives.UnsortedSegmentSum(weights, places, length)  # no number is beyond the bins
    if rows is None and axis is None and weights is None:
        found = primitives.CountValues(cast(values, int64), length)
        return cast(found > 0 if binary_output else found, as_dtype(dtype))
    if rows is None and axis == -1 and values.shape.rank == 2:
        row_count = values.shape[0]
        rows = primitives.BroadcastTo(np.arange(row_count)[:, None], values.shape.as_list())
    by_row = rows is not None
    if not by_row:
        row_count, rows = 1, 0
        values = primitives.Reshape(values, [-1])
        weights = None if weights is None else primitives.Reshape(weights, [-1])
    values = cast(values, int64)
    rows = cast(rows, int64)
    counts = count_bins(values, rows, row_count, weights, length, binary_output, as_dtype(dtype))
    return counts if by_row else primitives.Reshape(counts, [length])


@public("math.confusion_matrix")
def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    weights: Any = None,
    dtype: Any = int32,
    name: str | None = None,
) -> Any:
    """How often (or with which weight) each class, a row, was predicted as each class, a column.

    >>> tf.math.confusion_matrix([0, 1], [0, 0])
    <tf.Tensor: shape=(2, 2), dtype=int32, numpy=
    array([[1, 0],
           [1, 0]], dtype=int32)>
    """
    labels, predictions = convert_to_tensor(labels), convert_to_tensor(predictions)
    if predictions.shape.rank == labels.shape.rank + 1 and predictions.shape[-1] == 1:
        predictions = primitives.Squeeze(predictions, [-1])
    elif labels.shape.rank == predictions.shape.rank + 1 and labels.shape[-1] == 1:
        labels = primitives.Squeeze(labels, [-1])
    labels, predictions = cast(labels, int64), cast(predictions, int64)
    if not labels.shape.is_compatible_with(predictions.shape):
        raise InvalidArgumentError.of(
            f"confusion_matrix: Shapes {labels.shape} and {predictions.shape} of labels and predictions differ; they "
            "must be equal",
        )
    pairs, classes = _checked_classes(labels, predictions, num_classes)
    dtype = as_dtype(dtype)
    amounts = _ones_for(predictions, dtype) if weights is None else cast(weights, dtype)
    return primitives.ScatterNd(pairs, amounts, [classes, classes])


def _checked_classes(labels: Any, predictions: Any, num_classes: Any) -> tuple[Any, Any]:
    """The pairs of numbers and the number of classes; raises, in graphs too, if a number is none of a class."""
    pairs = primitives.Pack([labels, predictions], 1)
    if holds_symbolic([labels, predictions, num_classes]):
        text = "confusion_matrix: `labels` or `predictions` contains negative values"
        pairs = _core.required(pairs, primitives.All(primitives.GreaterEqual(pairs, 0)), text)
        largest = primitives.Max(primitives.ConcatV2([primitives.Reshape(pairs, [-1]), [-1]], 0)) + 1
        if num_classes is None:
            return pairs, largest
        classes = cast(num_classes, int64)
        text = "confusion_matrix: `labels` or `predictions` out of bound"
        return _core.required(pairs, primitives.LessEqual(largest, classes), text), classes
    highest = 0
    for what, numbers in (("labels", np.asarray(labels)), ("predictions", np.asarray(predictions))):
        if numbers.size and numbers.min() < 0:
            raise InvalidArgumentError.of(
                f"`{what}` contains negative values.  \nCondition x >= 0 did not hold element-wise."
            )
        if num_classes is not None and numbers.size and numbers.max() >= int(num_classes):
            raise InvalidArgumentError.of(f"`{what}` out of bound\nCondition x < y did not hold.")
        highest = max(highest, int(numbers.max()) + 1 if numbers.size else 0)
    return pairs, highest if num_classes is None else int(num_classes)


def _checked_range(values: Tensor, value_range: Any, nbins: Any) -> tuple[Tensor, Tensor]:
    """The two ends of the range, as numbers of the values' dtype."""
    ends = convert_to_tensor(value_range, dtype=values.dtype)
    if ends.shape.rank not in (1, None):
        raise InvalidArgumentError.of(
            f"histogram_fixed_width: value_range should be a vector: Shape must be rank 1 but is rank {ends.shape.rank}"
        )
    low, high = primitives.Unpack(ends, -1, 0)
    if not _core.is_symbolic(low) and not _core.is_symbolic(high) and not bool(low < high):
        raise InvalidArgumentError.of(
            "histogram_fixed_width: value_range should satisfy value_range[0] < value_range[1], but got "
            f"'[{np.asarray(low)}, {np.asarray(high)}]'",
        )
    if np.ndim(nbins):
        raise InvalidArgumentError.of(f"histogram_fixed_width: nbins should be a scalar; got {nbins}")
    if int(nbins) < 1:
        raise InvalidArgumentError.of(
            f"histogram_fixed_width: nbins must > 0, it should be a positive number, but got '{int(nbins)}'"
        )
    return low, high


@public("histogram_fixed_width_bins")
def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = int32, name: str | None = None
) -> Any:
    """The number of the bin of each value, of `nbins` equal ones between the two numbers of `value_range`.

    >>> tf.histogram_fixed_width_bins([-1., 0.5, 9.], [0., 2.], nbins=4)
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([0, 1, 3], dtype=int32)>
    """
    values = convert_to_tensor(values)
    low, high = _checked_range(values, value_range, nbins)
    dtype = as_dtype(dtype)
    if values.dtype.is_floating:
        places = primitives.Floor((values - low) / (high - low) * cast(nbins, values.dtype))
        places = primitives.Minimum(primitives.Maximum(places, 0), cast(int(nbins) - 1, values.dtype))
        return cast(places, dtype)
    wide = primitives.RealDiv(cast(values - low, "float64"), cast(high - low, "float64")) * float(int(nbins))
    return cast(primitives.Minimum(primitives.Maximum(primitives.Floor(wide), 0), int(nbins) - 1), dtype)


def _bins_spec(values: Any, value_range: Any, nbins: Any = 100, dtype: Any = int32, *_: Any, **__: Any) -> TensorSpec:
    return TensorSpec(convert_to_tensor(values).shape, as_dtype(dtype))


histogram_fixed_width_bins.result_specs = _bins_spec  # type: ignore[attr-defined]


@public("histogram_fixed_width")
def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = int32, name: str | None = None
) -> Tensor:
    """How many values lie in each of `nbins` equal bins; what lies outside counts for the nearest.

    >>> tf.histogram_fixed_width([-1., 0.5, 9.], [0., 2.], nbins=4)
    <tf.Tensor: shape=(4,), dtype=int32, numpy=array([1, 1, 0, 1], dtype=int32)>
    """
    values = primitives.Reshape(convert_to_tensor(values), [-1])
    low, high = _checked_range(values, value_range, nbins)
    if values.dtype.is_floating:
        no_nan = primitives.LogicalNot(primitives.Any(primitives.IsNan(values)))
        values = _core.required(values, no_nan, "histogram_fixed_width: Histogram values must not contain NaN")
    # float32 would put numbers at an edge into the bin below, and a difference may be too large for it.
    values, low, high = (cast(x, "float64") for x in (values, low, high))
    places = (primitives.Maximum(values, low) - low) / ((high - low) / float(int(nbins)))
    places = cast(primitives.Minimum(places, float(int(nbins) - 1)), int32)
    return primitives.UnsortedSegmentSum(_ones_for(places, as_dtype(dtype)), places, int(nbins))


def _histogram_spec(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = int32, *_: Any, **__: Any
) -> TensorSpec:
    count = _core.known_value(convert_to_tensor(nbins))
    return TensorSpec([None if count is None else int(count)], as_dtype(dtype))


histogram_fixed_width.result_specs = _histogram_spec  # type: ignore[attr-defined]
