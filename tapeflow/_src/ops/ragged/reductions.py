"""Reductions of ragged tensors over all elements, over rows, or over positions in the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.ops.arrays.constants import dims_of
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.ops.ragged.rows import expand_dims, gather_rows
from tapeflow._src.types.dtypes import float64, int32


def reduction(fold: Any, whole: Any, finish: Any = None) -> Any:
    """A reduction by name: over all elements, over the rows, or over positions in the rows."""

    def reduce(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
        x = input_tensor
        if axis is None:
            return whole(x.flat_values, None, keepdims)
        axes = sorted({a % x.shape.rank for a in dims_of(axis)}, reverse=True)
        if len(axes) == x.shape.rank:
            return whole(x.flat_values, None, False)
        for a in axes:
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
        if axis == 1:
            if isinstance(x.values, RaggedTensor):
                ids = primitives.GatherV2(x.value_rowids(), x.values.value_rowids(), 0, 0)
                places, width = x.values._places_in_rows(), int(x.values.bounding_shape(1))
                flat_ids = ids * width + places
                count = int(x.nrows())
                lengths = primitives.UnsortedSegmentMax(x.values.row_lengths(), x.value_rowids(), count)
                lengths = primitives.Maximum(lengths, 0)
                table = fold(x.values.values, flat_ids, count * width)
                table = primitives.Reshape(table, [count, width, *table.shape.as_list()[1:]])
                result = RaggedTensor.from_tensor(table, lengths=lengths)
                return expand_dims(result, 1) if keepdims else result
            result = fold(x.values, x.value_rowids(), x.nrows() if _core.is_symbolic(x.row_splits) else int(x.nrows()))
            return primitives.ExpandDims(result, 1) if keepdims else result
        if isinstance(x.values, RaggedTensor):
            return _as_dense_rows(x, keepdims)
        result = fold(x.values, x._places_in_rows(), int(x.bounding_shape(1)))
        return primitives.ExpandDims(result, 0) if keepdims else result

    def _as_dense_rows(x: RaggedTensor, keepdims: bool) -> Any:
        width = int(x.bounding_shape(1))
        places = x._places_in_rows()
        order = np.argsort(places.numpy(), kind="stable")
        rows = gather_rows(x.values, order)
        grouped = RaggedTensor.from_value_rowids(rows, primitives.GatherV2(places, order, 0, 0), width)
        result = one(grouped, 1, False)
        return expand_dims(result, 0) if keepdims else result

    return reduce


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
