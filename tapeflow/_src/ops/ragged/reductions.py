"""Reductions of ragged tensors over all elements, over rows, or over positions in the rows."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.ops.arrays.constants import dims_of
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.math.reductions import reduce_variance
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.ops.ragged.row_splits import spans, splits_from_lengths
from tapeflow._src.ops.ragged.rows import axis_in, expand_dims
from tapeflow._src.types.dtypes import float64, int32


def reduction(fold: Any, whole: Any, over_several: Any = None) -> Any:
    """A reduction by name: over all elements, over the rows, or over positions in the rows.

    One after the other along several axes, unless `over_several(x, axes, reduce)` says otherwise.
    """

    def reduce(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
        x, rank = input_tensor, input_tensor.shape.rank
        axes = None if axis is None else sorted({axis_in(a, rank) for a in dims_of(axis)})
        if axes is None or len(axes) == rank:
            result = whole(x.flat_values, None, False)
            return primitives.Reshape(result, [1] * rank) if keepdims else result
        if over_several and len(axes) != 1:
            result = over_several(x, axes, reduce)
            for a in axes if keepdims else ():
                result = _expanded(result, a)
            return result
        for a in reversed(axes):
            x = one(x, a, keepdims) if isinstance(x, RaggedTensor) else whole(x, a, keepdims)
        return x

    def one(x: RaggedTensor, axis: int, keepdims: bool) -> Any:
        if axis > 1:
            inner = (
                one(x.values, axis - 1, keepdims)
                if isinstance(x.values, RaggedTensor)
                else whole(x.values, axis - 1, keepdims)
            )
            return x.with_values(inner)
        ids, count = (x.value_rowids(), x.nrows()) if axis == 1 else (x._places_in_rows(), x.bounding_shape(1))
        result = segment_fold(fold, x.values, ids, _plain_count(count))
        return _expanded(result, axis) if keepdims else result

    return reduce


def _expanded(x: Any, axis: int) -> Any:
    return expand_dims(x, axis) if isinstance(x, RaggedTensor) else primitives.ExpandDims(x, axis)


def mean_over_several(x: RaggedTensor, axes: list[int], _: Any) -> Any:
    """The sum by the number of elements: rows of several lengths have several weights."""
    total = reduction(primitives.UnsortedSegmentSum, with_axis(primitives.Sum))
    values = as_inexact(x.flat_values)
    ones = primitives.BroadcastTo(cast(1, values.dtype), primitives.Shape(values))
    count = total(x.with_flat_values(ones), axes)
    return total(x.with_flat_values(values), axes) / count


def variance_over_several(x: RaggedTensor, axes: list[int], reduce: Any) -> Any:
    """That of dimensions merged into one, or else the mean of the squares without the square of the mean."""
    values = as_inexact(x.flat_values)
    if not axes:
        return x.with_flat_values(values - values)
    if axes == [*range(axes[0], axes[-1] + 1)]:
        merged = x.merge_dims(axes[0], axes[-1])
        if isinstance(merged, RaggedTensor):
            return reduce(merged, axes[0])
        return reduce_variance(as_inexact(merged), axes[0])
    mean = mean_over_several(x, axes, reduce)
    squares = mean_over_several(x.with_flat_values(values * values), axes, reduce)
    return primitives.Maximum(squares - mean * mean, cast(0, values.dtype))


def _plain_count(count: Any) -> Any:
    return count if _core.is_symbolic(count) else int(count)


def segment_fold(fold: Any, data: Any, ids: Any, count: Any) -> Any:
    """The rows of `data` folded by their number in `ids`; ragged rows place by place, as far as the longest goes."""
    if not isinstance(data, RaggedTensor):
        return fold(data, ids, count)
    lengths = data.row_lengths()
    longest = primitives.UnsortedSegmentMax(lengths, ids, count)
    splits = splits_from_lengths(primitives.Maximum(longest, cast(0, lengths.dtype)))
    places = spans(primitives.GatherV2(splits, ids, 0, 0), lengths)
    return RaggedTensor(segment_fold(fold, data.values, places, _plain_count(splits[-1])), splits)


def segment_mean(values: Any, ids: Any, count: int) -> Any:
    total = primitives.UnsortedSegmentSum(values, ids, count)
    number = cast(primitives.UnsortedSegmentSum(ids - ids + 1, ids, count), total.dtype)
    for _ in range(total.shape.rank - 1):
        number = primitives.ExpandDims(number, -1)
    return total / number


def as_inexact(values: Any) -> Any:
    """Values that have a mean: of integers as float64, as by true division."""
    return cast(values, float64) if values.dtype.is_integer else values


def of_inexact(whole: Any) -> Any:
    """A reduction of all elements to a mean of some kind."""
    return lambda x, axis, keepdims: whole(as_inexact(x), axis, keepdims)


def _as_bool(values: Any) -> Any:
    """Whether elements are true: of numbers, as TensorFlow has it, whether their integer part is not zero."""
    return values if values.dtype.is_bool else cast(cast(values, int32), "bool")


def of_bool(whole: Any) -> Any:
    """A reduction of all elements as booleans."""
    return lambda x, axis, keepdims: whole(_as_bool(x), axis, keepdims)


def segment_deviations(values: Any, ids: Any, of_segments: Any) -> Any:
    return values - primitives.GatherV2(of_segments, ids, 0, 0)


def segment_variance(values: Any, ids: Any, count: int) -> Any:
    values = as_inexact(values)
    deviations = segment_deviations(values, ids, segment_mean(values, ids, count))
    return segment_mean(deviations * deviations, ids, count)


def segment_std(values: Any, ids: Any, count: int) -> Any:
    return primitives.Sqrt(segment_variance(values, ids, count))


def segment_logsumexp(values: Any, ids: Any, count: int) -> Any:
    largest = primitives.StopGradient(primitives.UnsortedSegmentMax(values, ids, count))
    total = primitives.UnsortedSegmentSum(primitives.Exp(segment_deviations(values, ids, largest)), ids, count)
    return primitives.Log(total) + largest


def segment_bool(fold: Any) -> Any:
    def run(values: Any, ids: Any, count: int) -> Any:
        return primitives.Greater(fold(cast(_as_bool(values), int32), ids, count), 0)

    return run


def with_axis(primitive: Any) -> Any:
    return lambda x, axis, keepdims: primitive(x, axis, keepdims)
