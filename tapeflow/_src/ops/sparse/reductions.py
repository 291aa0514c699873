"""`tf.sparse`: reductions, softmax and counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public, public_as
from tapeflow._src.ops.arrays.constants import dims_of
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.indexing import take
from tapeflow._src.ops.arrays.sorting import argsort, unique
from tapeflow._src.ops.effects.assertions import assert_equal
from tapeflow._src.ops.math.segments import bin_count_length, count_bins
from tapeflow._src.ops.sparse.coordinates import (
    as_sparse,
    can_flatten,
    coordinates_of,
    dims_of_sparse,
    flat_positions,
    is_sparse,
)
from tapeflow._src.types.dtypes import int32, int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor

# ---- reductions


def _reduced(x: SparseTensor, axis: Any, keepdims: Any) -> tuple[Any, list[int], list[int]]:
    """The flat position of each element in the result, the kept dimensions and the shape of the result."""
    dims = dims_of_sparse(x)
    if not can_flatten(dims):
        raise InvalidArgumentError.of(f"tf.sparse: the dense shape must have less than 2**63 elements; got {dims}")
    rank = len(dims)
    axes = set(range(rank)) if axis is None else {a % rank for a in _checked_axes(axis, rank)}
    kept = [i for i in range(rank) if i not in axes]
    kept_dims = [dims[i] for i in kept]
    columns = primitives.GatherV2(x.indices, np.asarray(kept, np.int32), 1, 0)
    shape = [1 if i in axes else d for i, d in enumerate(dims)] if keepdims else kept_dims
    return flat_positions(columns, kept_dims), kept_dims, shape


def _checked_axes(axis: Any, rank: int) -> list[int]:
    axes = dims_of(axis)
    for a in axes:
        if not -rank <= a < rank:
            raise InvalidArgumentError.of(
                f"sparse reduction: Invalid reduction dimension {a} for a tensor of rank {rank}"
            )
    return axes


def _reduce(fold: Any, sp_input: Any, axis: Any, keepdims: Any, output_is_sparse: bool) -> Any:
    x = as_sparse(sp_input, "sparse.reduce")
    ids, kept_dims, shape = _reduced(x, axis, keepdims)
    cells, places = unique(ids, int64)
    values = fold(x.values, places, primitives.Shape(cells, int64)[0])
    if output_is_sparse:
        order = argsort(cells)
        return SparseTensor(coordinates_of(take(cells, order, 0), shape), take(values, order, 0), shape)
    total = int(np.prod(kept_dims, dtype=np.int64))
    dense = primitives.ScatterNd(primitives.ExpandDims(cells, 1), values, [total])
    return primitives.Reshape(dense, shape)


def _reduction(fold: Any, doc: str, path: str) -> Callable[..., Any]:
    @public_as(doc, path)
    def function(
        sp_input: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        output_is_sparse: bool = False,
        name: str | None = None,
    ) -> Any:
        return _reduce(fold, sp_input, axis, keepdims, output_is_sparse)

    return function


reduce_sum = _reduction(
    primitives.UnsortedSegmentSum,
    """The sums of the stored elements along `axis`, dense or sparse.

    >>> tf.sparse.reduce_sum(tf.SparseTensor([[0, 1], [1, 0]], [5., 6.], [2, 2]), 1)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([5., 6.], dtype=float32)>
    """,
    "sparse.reduce_sum",
)
reduce_max = _reduction(
    primitives.UnsortedSegmentMax,
    """The largest of the stored elements along `axis`; 0 where there are none.

    >>> tf.sparse.reduce_max(tf.SparseTensor([[0, 0], [0, 1]], [5., 6.], [2, 2]), 1)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([6., 0.], dtype=float32)>
    """,
    "sparse.reduce_max",
)


@public("sparse.softmax")
def softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """The softmax of the stored elements of each line of the last dimension.

    >>> tf.sparse.softmax(tf.SparseTensor([[0, 0], [0, 1]], [1., 1.], [1, 3])).values
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.5, 0.5], dtype=float32)>
    """
    x = as_sparse(sp_input, "softmax")
    dims = dims_of_sparse(x)
    if len(dims) < 2:
        raise InvalidArgumentError.of(f"sparse.softmax: input should have rank >= 2; got shape {dims}")
    if any(size < 0 for size in dims):
        raise InvalidArgumentError.of(f"sparse.softmax: Expected shape dimensions to be non-negative, got {min(dims)}")
    ids, _, _ = _reduced(x, len(dims) - 1, False)
    cells, lines = unique(ids, int64)
    count = primitives.Shape(cells, int64)[0]
    highest = primitives.UnsortedSegmentMax(primitives.StopGradient(x.values), lines, count)
    powers = primitives.Exp(x.values - primitives.GatherV2(highest, lines, 0, 0))
    sums = primitives.UnsortedSegmentSum(powers, lines, count)
    return x.with_values(powers / primitives.GatherV2(sums, lines, 0, 0))


_KIND = "sparse.bincount: `weights` must be a {0} if `values` is one; got a {1}"
_SAME = "'weights' and 'values' must have the same {}."


@public("sparse.bincount")
def bincount(
    values: Any,
    weights: Any = None,
    axis: int | None = 0,
    minlength: Any = None,
    maxlength: Any = None,
    binary_output: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """How often each number occurs, or the sum of its weights, as a sparse tensor; for each row if `axis` is -1.

    With `axis` 0 or None all numbers count together.

    >>> tf.sparse.bincount([1, 1, 3]).values
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([2, 1], dtype=int32)>
    """
    if axis not in (0, -1, None):
        raise ValueError(f"Unsupported value for argument axis={axis}. Only 0, -1 and None are currently supported.")
    rows = None
    if is_sparse(values):
        row_count = dims_of_sparse(values)[0]
        rows = values.indices[:, 0] if axis == -1 and values.shape.rank != 1 else None
        if weights is not None:
            if not is_sparse(weights):
                raise ValueError(_KIND.format("SparseTensor", type(weights).__name__))
            assert_equal(weights.dense_shape, values.dense_shape, _SAME.format("dense shape"))
            assert_equal(weights.indices, values.indices, _SAME.format("indices"))
        weights = getattr(weights, "values", weights)
        values = values.values
    elif hasattr(values, "row_splits"):
        if weights is not None:
            if not hasattr(weights, "row_splits"):
                raise ValueError(_KIND.format("RaggedTensor", type(weights).__name__))
            assert_equal(weights.row_splits, values.row_splits, _SAME.format("row splits"))
        row_count = int(values.nrows())
        rows = values.value_rowids() if axis == -1 else None
        weights = getattr(weights, "values", weights)
        values = values.values
    elif is_sparse(weights) or hasattr(weights, "row_splits"):
        raise ValueError(_KIND.format("tf.Tensor", type(weights).__name__))
    values = convert_to_tensor(values)
    numbers, given = cast(values, int64), values.dtype
    if rows is None and axis == -1 and numbers.shape.rank == 2:
        row_count = numbers.shape[0]
        rows = primitives.Reshape(primitives.BroadcastTo(np.arange(row_count)[:, None], numbers.shape.as_list()), [-1])
    by_row = rows is not None
    numbers = primitives.Reshape(numbers, [-1])
    weights = None if weights is None else primitives.Reshape(convert_to_tensor(weights), [-1])
    length = bin_count_length(numbers, minlength, maxlength)
    dtype = weights.dtype if weights is not None else int64 if given == int64 else int32
    row_count, rows = (
        (row_count, cast(rows, int64)) if by_row else (1, _core.convert_to_tensor(0, int64, None, "bincount"))
    )
    counts = count_bins(numbers, rows, row_count, weights, length, binary_output, dtype)
    hits = count_bins(numbers, rows, row_count, None, length, False, int32)
    found = primitives.Where(primitives.Greater(hits, 0))
    elements = primitives.GatherNd(counts, found, 0)
    return SparseTensor(found if by_row else found[:, 1:], elements, [row_count, length] if by_row else [length])
