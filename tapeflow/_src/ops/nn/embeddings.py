"""Embedding look-ups: rows of one table or of several parts of one, and their weighted sums over sparse ids."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dynamic_dims, holds_symbolic, shape_argument
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.indexing import gather
from tapeflow._src.ops.arrays.sorting import argsort, searchsorted, sort, unique
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.ops.sparse.sparse import fill_empty_rows
from tapeflow._src.types.dtypes import bfloat16, float16, float32, int32, int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor


def _clip_rows(rows: Any, ids_rank: int, max_norm: Any) -> Any:
    """Rows longer than `max_norm` shortened to it."""
    if max_norm is None:
        return rows
    axes = list(range(ids_rank, rows.shape.rank))
    norm = primitives.Sqrt(primitives.Sum(primitives.Square(rows), axes, True))
    limit = convert_to_tensor(max_norm, dtype=rows.dtype)
    return rows * limit / primitives.Maximum(norm, limit)


def _parts(params: Any) -> list[Any]:
    parts = list(params) if isinstance(params, list | tuple) else [params]
    if not parts:
        raise ValueError("Length of params is currently 0. Need at least one param.")
    return parts


def lookup(params: Any, ids: Any, strategy: str = "div", max_norm: Any = None) -> Any:
    """The rows with the numbers `ids` of a table, or of tables among which the rows are dealt by the strategy."""
    params, ids = _table(params), convert_to_tensor(ids)
    if max_norm is None and _core.is_tensor(params) and (ids.dtype is int32 or ids.dtype is int64):
        return primitives.GatherV2(params, ids)
    parts = _parts(params)
    if ids.dtype not in (int32, int64) and (ids.dtype.is_integer or len(parts) > 1):
        if not ids.dtype.is_integer:
            raise TypeError(f"embedding_lookup: ids must be integers; got {ids.dtype.name}")
        ids = cast(ids, int64)
    if len(parts) == 1:
        return _clip_rows(gather(parts[0], ids), ids.shape.rank, max_norm)
    flat = primitives.Reshape(ids, [-1])
    count = len(parts)
    parts = [part if _core.is_tensor(part) else convert_to_tensor(part) for part in parts]
    if strategy == "mod":
        owner, place = (
            primitives.FloorMod(flat, cast(count, ids.dtype)),
            primitives.FloorDiv(flat, cast(count, ids.dtype)),
        )
    elif strategy == "div":
        total = sum(int(part.shape[0]) for part in parts)
        each, larger = divmod(total, count)
        border = larger * (each + 1)
        ahead = flat < border
        owner = primitives.SelectV2(
            ahead,
            primitives.FloorDiv(flat, cast(each + 1, ids.dtype)),
            primitives.FloorDiv(flat - larger, cast(max(each, 1), ids.dtype)),
        )
        place = primitives.SelectV2(
            ahead,
            primitives.FloorMod(flat, cast(each + 1, ids.dtype)),
            primitives.FloorMod(flat - larger, cast(max(each, 1), ids.dtype)),
        )
    else:
        raise ValueError(f"Only 'mod' and 'div' are supported partition strategies. Got: {strategy}")
    # The ids of each part in turn; then every row back at its own place.
    found, rows = [], []
    for number, part in enumerate(parts):
        positions = primitives.Reshape(primitives.Where(primitives.Equal(owner, cast(number, ids.dtype))), [-1])
        found.append(positions)
        rows.append(gather(part, gather(place, positions)))
    positions = primitives.ConcatV2(found, 0)
    if not _core.is_symbolic(positions) and positions.shape[0] != flat.shape[0]:
        raise InvalidArgumentError.of("embedding_lookup: an id lies outside all of the given parts")
    # In a graph an id outside of all parts leaves too few rows for the shape of the ids.
    joined = gather(primitives.ConcatV2(rows, 0), argsort(positions))
    inner = primitives.Shape(joined, int32)[1:]
    shape = shape_argument(primitives.ConcatV2([primitives.Shape(ids, int32), inner], 0))
    return _clip_rows(primitives.Reshape(joined, shape), ids.shape.rank, max_norm)


@public("nn.embedding_lookup")
def embedding_lookup(params: Any, ids: Any, max_norm: Any = None, name: str | None = None) -> Any:
    """The rows of `params` with the numbers `ids`; a list of tables is one table cut into blocks of rows.

    Args:
        params: A matrix of embeddings, or a list of its parts.
        ids: Integers: which rows to take.
        max_norm: If given, rows with a larger Euclidean norm are scaled to it.
        name: A name for the operation in graphs.

    Returns:
        A tensor of shape `ids.shape + params.shape[1:]`.

    Gradient:
        `tf.IndexedSlices` for `params`.

    >>> tf.nn.embedding_lookup([[1., 2.], [3., 4.]], [1])
    <tf.Tensor: shape=(1, 2), dtype=float32, numpy=array([[3., 4.]], dtype=float32)>
    """
    return lookup(params, ids, "div", max_norm)


def _table(params: Any) -> Any:
    """A nested list of numbers is one table, not a list of tables."""
    if isinstance(params, list | tuple) and params and not any(_is_table(part) for part in params):
        return convert_to_tensor(params)
    return params


def _is_table(part: Any) -> bool:
    return _core.is_tensor(part) or isinstance(part, np.ndarray) or hasattr(part, "__tf_tensor__")


def _check_sparse(ids: Any, weights: Any, what: str) -> None:
    if isinstance(ids, RaggedTensor):
        if weights is not None and not isinstance(weights, RaggedTensor):
            raise TypeError(f"{what}_weights must be RaggedTensor as {what}_ids is, got {type(weights)}")
        return
    for given, called in ((ids, f"{what}_ids"), (weights, f"{what}_weights")):
        if not hasattr(given, "dense_shape") and (given is not None or given is ids):
            raise TypeError(f"{called} must be SparseTensor, got {type(given)}")


_COMBINERS = ("mean", "sqrtn", "sum")


@public("nn.embedding_lookup_sparse")
def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    combiner: str | None = None,
    max_norm: Any = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Any:
    """For each row of the sparse matrix `sp_ids`, the (weighted) mean, sum or sum by sqrt of squares of its embeddings.

    >>> tf.nn.embedding_lookup_sparse(tf.eye(3), tf.sparse.from_dense([[1, 2]]), None, combiner="sum")
    <tf.Tensor: shape=(1, 3), dtype=float32, numpy=array([[0., 1., 1.]], dtype=float32)>
    """
    return lookup_sparse(params, sp_ids, sp_weights, "div", combiner, max_norm)


def lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    strategy: str,
    combiner: str | None,
    max_norm: Any,
    segments: int | None = None,
) -> Any:
    combiner = "mean" if combiner is None else combiner
    if combiner not in _COMBINERS:
        raise ValueError(f"combiner must be one of 'mean', 'sqrtn' or 'sum', got {combiner}")
    _check_sparse(sp_ids, sp_weights, "sp")
    parts = _parts(_table(params))
    distinct, place = unique(sp_ids.values)
    if not all(isinstance(part, _core.Variable) for part in parts):
        # As in TensorFlow, the gradient names the rows of a tensor in order, those of a variable as they appear.
        distinct = sort(distinct)
        place = searchsorted(distinct, sp_ids.values)
    rows = gather(lookup(parts, distinct, strategy, max_norm), place)
    result_dtype = rows.dtype
    if result_dtype in (float16, bfloat16):
        rows = cast(rows, float32)
    segment = sp_ids.value_rowids() if isinstance(sp_ids, RaggedTensor) else sp_ids.indices[:, 0]
    count: Any = segments
    if count is None:
        last = primitives.Max(primitives.ConcatV2([segment, [-1]], 0), None, False)
        count = last + 1 if _core.is_symbolic(last) else int(last) + 1
    if sp_weights is None:
        weights = primitives.BroadcastTo(cast(1, rows.dtype), shape_argument(primitives.Shape(segment, int32)))
    else:
        weights = cast(sp_weights.values, rows.dtype)
    shape = [-1] + [1] * (rows.shape.rank - 1)
    if sp_weights is not None:
        rows = rows * primitives.Reshape(weights, shape)
    total = primitives.UnsortedSegmentSum(rows, segment, count)
    if combiner != "sum":
        scale = primitives.UnsortedSegmentSum(
            weights if combiner == "mean" else primitives.Square(weights), segment, count
        )
        scale = scale if combiner == "mean" else primitives.Sqrt(scale)
        total = primitives.DivNoNan(total, primitives.Reshape(scale, shape))
    return cast(total, result_dtype)


@public("nn.safe_embedding_lookup_sparse")
def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str | None = "mean",
    default_id: Any = None,
    max_norm: Any = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """As `embedding_lookup_sparse`, but bad ids and weights are left out, and an empty row gives zeros or `default_id`.

    >>> tf.nn.safe_embedding_lookup_sparse(tf.eye(2), tf.sparse.from_dense([[1], [0]]))
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[0., 1.],
           [0., 0.]], dtype=float32)>
    """
    return safe_lookup_sparse(embedding_weights, sparse_ids, sparse_weights, combiner, default_id, "div", max_norm)


def _sizes(dense_shape: Any) -> list[Any]:
    """The sizes of a sparse tensor: numbers, or scalars that running the graph gives."""
    if holds_symbolic(dense_shape) and dense_shape.shape[0] is not None:
        return [dense_shape[i] for i in range(dense_shape.shape[0])]
    return [int(d) for d in np.asarray(dense_shape)]


def safe_lookup_sparse(
    params: Any, ids: Any, weights: Any, combiner: str | None, default_id: Any, strategy: str, max_norm: Any
) -> Tensor:
    if params is None:
        raise ValueError(f"Missing embedding_weights {params}.")
    combiner = "mean" if combiner is None else combiner
    _check_sparse(ids, weights, "sparse")
    if isinstance(ids, RaggedTensor):
        ids, weights = ids.to_sparse(), None if weights is None else weights.to_sparse()
    parts = _parts(_table(params))
    dims = _sizes(ids.dense_shape)
    outer, rows = dims[:-1], prod(dims[:-1])
    # Several leading dimensions count as one.
    strides = [prod(outer[i + 1 :]) for i in range(len(outer))]
    segment = primitives.Sum(cast(ids.indices, int64)[:, :-1] * convert_to_tensor(strides, dtype=int64), [1], False)
    good = ids.values >= 0
    if weights is not None and combiner != "sum":
        good = primitives.LogicalAnd(good, weights.values > 0)
    positions = primitives.Reshape(primitives.Where(good), [-1])
    indices = primitives.Pack([gather(segment, positions), positions], 1)
    count = primitives.Shape(ids.values, int64)[0]
    shape = primitives.Pack([cast(rows, int64), primitives.Maximum(count, 1)], 0)
    filler = cast(0 if default_id is None else default_id, ids.values.dtype)
    filled, empty = fill_empty_rows(SparseTensor(indices, gather(ids.values, positions), shape), filler)
    filled_weights = None
    if weights is not None:
        kept = SparseTensor(indices, gather(weights.values, positions), shape)
        filled_weights, _ = fill_empty_rows(kept, cast(1, weights.values.dtype))
    y = lookup_sparse(parts, filled, filled_weights, strategy, combiner, max_norm, rows)
    inner = dynamic_dims(y)[1:]
    if default_id is None:
        y = primitives.SelectV2(primitives.Reshape(empty, [rows] + [1] * len(inner)), cast(0, y.dtype), y)
    return primitives.Reshape(y, [*outer, *inner])
