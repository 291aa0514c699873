"""Order: sorting, the k largest, search in sorted lines, distinct elements."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from math import prod
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public, public_as
from tapeflow._src.ops.arrays.constants import dynamic_dims, is_open
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.indexing import take
from tapeflow._src.ops.arrays.shaping import of_rank
from tapeflow._src.types.dtypes import as_dtype, int32
from tapeflow._src.types.errors import InvalidArgumentError

TopKV2 = namedtuple("TopKV2", ["values", "indices"])
Unique = namedtuple("Unique", ["y", "idx"])
UniqueWithCounts = namedtuple("UniqueWithCounts", ["y", "idx", "count"])


_DIRECTIONS = ("ASCENDING", "DESCENDING")


def _ordered_rows(values: Any, direction: str, output: int) -> Tensor:
    if output == 0 and not is_open(values):
        return primitives.Sort(values, direction == "ASCENDING")
    return primitives.TopKV2(values, dynamic_dims(values)[-1], True, direction == "ASCENDING")[output]


def _ordered(values: Any, axis: Any, direction: str, output: int) -> Tensor:
    values = convert_to_tensor(values)
    if type(axis) is int and axis == -1 and not _core.is_tracing() and values.ndim > 0 and direction in _DIRECTIONS:
        return _ordered_rows(values, direction, output)
    rank = values.shape.rank
    if direction not in _DIRECTIONS:
        raise ValueError(f"`direction` should be one of ASCENDING, DESCENDING. Received: direction={direction}")
    axis = int(axis)
    if rank == 0 or not -rank <= axis < rank:
        raise ValueError(f"sort: axis must be in [{-rank}, {rank}); got {axis} for shape {values.shape.as_list()}")
    axis = axis % rank
    last = axis == rank - 1
    swapped = [*range(axis), rank - 1, *range(axis + 1, rank - 1), axis]
    x = values if last else primitives.Transpose(values, swapped)
    y = _ordered_rows(x, direction, output)
    return y if last else primitives.Transpose(y, swapped)


@public("sort")
def sort(values: Any, axis: Any = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """Elements in order along `axis`; NaN comes last.

    Args:
        values: The tensor.
        axis: The dimension to sort along.
        direction: 'ASCENDING' or 'DESCENDING'.
        name: A name for the operation in graphs.

    Returns:
        A tensor of the shape of `values`.

    Gradient:
        `dy` at the places where the elements came from.

    >>> tf.sort([3, 1, 2])
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([1, 2, 3], dtype=int32)>
    """
    return _ordered(values, axis, direction, 0)


@public("argsort")
def argsort(
    values: Any, axis: Any = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """The positions of the elements in the order that `tf.sort` gives; equal elements keep their order.

    Args:
        values: The tensor.
        axis: The dimension to sort along.
        direction: 'ASCENDING' or 'DESCENDING'.
        stable: Whether equal elements keep their order; they always do.
        name: A name for the operation in graphs.

    Returns:
        A tensor of int32 positions, of the shape of `values`.

    Gradient:
        None.

    >>> tf.argsort([30, 10, 20])
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([1, 2, 0], dtype=int32)>
    """
    return _ordered(values, axis, direction, 1)


@public("math.top_k", "nn.top_k", node=primitives.TopKV2)
def top_k(input: Any, k: Any = 1, sorted: bool = True, index_type: Any = int32, name: str | None = None) -> Any:
    """The `k` largest elements along the last dimension and their positions; of equal ones the first.

    Args:
        input: The tensor.
        k: How many elements of the last dimension to take.
        sorted: Whether the largest comes first.
        index_type: The dtype of the positions.
        name: A name for the operation in graphs.

    Returns:
        A tuple `(values, indices)` of tensors.

    Gradient:
        `dy` at the places where the values came from.

    >>> tf.math.top_k([1, 5, 3], 2).values
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([5, 3], dtype=int32)>
    """
    return TopKV2(*primitives.TopKV2(input, k, sorted, False, index_type))


def _approximate_top_k(operand: Any, k: int, reduction_dimension: int, largest: bool) -> tuple[Any, Any]:
    x = convert_to_tensor(operand)
    rank = x.shape.rank
    if not -rank <= reduction_dimension < rank:
        raise ValueError(f"approx_top_k: reduction_dimension must be in [{-rank}, {rank}); got {reduction_dimension}")
    axis = reduction_dimension % rank
    swapped = [*range(axis), rank - 1, *range(axis + 1, rank - 1), axis] if axis != rank - 1 else None
    if swapped:
        x = primitives.Transpose(x, swapped)
    values, indices = primitives.TopKV2(x, k, True, not largest)
    if swapped:
        return primitives.Transpose(values, swapped), primitives.Transpose(indices, swapped)
    return values, indices


def _approximate_extrema(largest: bool, doc: str, *paths: str) -> Callable[..., Any]:
    @public_as(doc, *paths)
    def function(
        operand: Any,
        k: int,
        reduction_dimension: int = -1,
        recall_target: float = 0.95,
        reduction_input_size_override: int = -1,
        aggregate_to_topk: bool = True,
        name: str | None = None,
    ) -> tuple[Any, Any]:
        return _approximate_top_k(operand, k, reduction_dimension, largest)

    return function


approx_max_k = _approximate_extrema(
    True,
    """The `k` largest elements and their positions, exactly.

    >>> tf.math.approx_max_k([1., 5., 3.], 1)
    (<tf.Tensor: shape=(1,), dtype=float32, numpy=array([5.], dtype=float32)>, <tf.Tensor: shape=(1,), dtype=int32,
     numpy=array([1], dtype=int32)>)
    """,
    "math.approx_max_k",
    "nn.approx_max_k",
)
approx_min_k = _approximate_extrema(
    False,
    """The `k` smallest elements and their positions, exactly.

    >>> tf.math.approx_min_k([1., 5., 3.], 1)
    (<tf.Tensor: shape=(1,), dtype=float32, numpy=array([1.], dtype=float32)>, <tf.Tensor: shape=(1,), dtype=int32,
     numpy=array([0], dtype=int32)>)
    """,
    "math.approx_min_k",
    "nn.approx_min_k",
)


@public("approx_top_k")
def approx_top_k(
    input: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    is_max_k: bool = True,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The `k` largest (or smallest) elements and their positions, exactly.

    >>> tf.approx_top_k([1., 5., 3.], 1)
    (<tf.Tensor: shape=(1,), dtype=float32, numpy=array([5.], dtype=float32)>, <tf.Tensor: shape=(1,), dtype=int32,
     numpy=array([1], dtype=int32)>)
    """
    return _approximate_top_k(input, k, reduction_dimension, is_max_k)


def nth_element(input: Any, n: Any, reverse: bool = False, name: str | None = None) -> Any:
    """Element `n` of the sorted last dimension; equal elements share the gradient."""
    x, n = convert_to_tensor(input), int(n)
    if x.shape.rank < 1:
        raise InvalidArgumentError.of("nth_element: Shape must be at least rank 1 but is rank 0: Input must be >= 1-D")
    if n < 0:
        raise InvalidArgumentError.of(f"nth_element: n must be non-negative but is {n}")
    if n >= x.shape[-1]:
        raise InvalidArgumentError.of(
            f"nth_element: Input must have last dimension > n = {n}: at least n+1 columns; got {x.shape[-1]} columns"
        )
    found = primitives.TopKV2(primitives.StopGradient(x), n + 1, True, not reverse)[0][..., n]
    if not x.dtype.is_floating:
        return found
    equal = cast(primitives.Equal(x, primitives.ExpandDims(found, -1)), x.dtype)
    weights = equal / primitives.Sum(equal, -1, True)
    chosen = primitives.SelectV2(primitives.Greater(equal, 0), x, primitives.ExpandDims(found, -1))
    return primitives.StraightThrough(primitives.Sum(chosen * weights, -1, False), found)


@public("math.in_top_k", "nn.in_top_k")
def in_top_k(targets: Any, predictions: Any, k: Any, name: str | None = None) -> Tensor:
    """Whether fewer than `k` elements of each row of `predictions` are larger than the one at `targets`.

    >>> tf.math.in_top_k([0, 1], [[0.1, 0.9], [0.1, 0.9]], 1)
    <tf.Tensor: shape=(2,), dtype=bool, numpy=array([False,  True])>
    """
    predictions = of_rank(convert_to_tensor(predictions), 2)
    targets = of_rank(convert_to_tensor(targets, dtype_hint=int32), 1)
    if predictions.shape.rank != 2:
        raise InvalidArgumentError.of(f"in_top_k: predictions must be 2-dimensional; got {predictions.shape}")
    if targets.shape.rank != 1 or not targets.shape.is_compatible_with(predictions.shape[:1]):
        raise InvalidArgumentError.of(
            f"in_top_k: First dimension of predictions {predictions.shape} must match targets {targets.shape}",
        )
    classes = cast(dynamic_dims(predictions)[1], targets.dtype)
    valid = primitives.LogicalAnd(primitives.GreaterEqual(targets, 0), primitives.Less(targets, classes))
    safe = primitives.SelectV2(valid, targets, 0)
    chosen = primitives.GatherV2(predictions, primitives.ExpandDims(safe, 1), 1, 1)
    larger = primitives.Sum(cast(primitives.Greater(predictions, chosen), int32), 1, False)
    finite = primitives.All(primitives.IsFinite(predictions), 1, False)
    return primitives.LogicalAnd(primitives.LogicalAnd(valid, finite), primitives.Less(larger, cast(k, int32)))


@public("searchsorted")
def searchsorted(
    sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = int32, name: str | None = None
) -> Tensor:
    """Where each value would stand in the sorted last dimension: before (`left`) or after (`right`) equal ones.

    >>> tf.searchsorted([1, 3, 5], [3, 4])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>
    """
    if side not in ("left", "right"):
        raise ValueError(f"Argument `side` must be either 'right' or 'left'. Received: `side` = '{side}'.")
    lines = convert_to_tensor(sorted_sequence)
    values = convert_to_tensor(values, dtype_hint=lines.dtype)
    if lines.shape.rank == 1 and values.shape.rank == 1:
        line, wanted = primitives.ExpandDims(lines, 0), primitives.ExpandDims(values, 0)
        return primitives.Squeeze(primitives.SearchSorted(line, wanted, side == "right", out_type), 0)
    if lines.shape.rank == 0 or values.shape.rank == 0:
        raise InvalidArgumentError.of("searchsorted: sorted_sequence and values must have at least 1 dimension")
    shape, (*outer, length) = dynamic_dims(values), dynamic_dims(lines)
    rows, value_rows = prod(outer), prod(shape[:-1])
    count = shape[-1]
    found = primitives.SearchSorted(
        primitives.Reshape(lines, [rows, length]),
        primitives.Reshape(values, [value_rows, count]),
        side == "right",
        out_type,
    )
    return primitives.Reshape(found, shape)


@public("unique")
def unique(x: Any, out_idx: Any = int32, name: str | None = None) -> Any:
    """The distinct elements of a vector in the order in which they first occur, and which of them each element is.

    Args:
        x: A tensor of one dimension.
        out_idx: The dtype of `idx`.
        name: A name for the operation in graphs.

    Returns:
        A tuple `(y, idx)`: the different elements in the order of their first appearance, and for each of `x` its
        place in `y`.

    Gradient:
        None.

    >>> tf.unique([5, 3, 5]).y
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([5, 3], dtype=int32)>
    """
    x = convert_to_tensor(x)
    first, index, _ = primitives.DistinctElements(x, as_dtype(out_idx))
    return Unique(take(x, first, 0), index)


@public("unique_with_counts")
def unique_with_counts(x: Any, out_idx: Any = int32, name: str | None = None) -> Any:
    """The distinct elements of a vector, which of them each element is, and how often each occurs.

    >>> tf.unique_with_counts([5, 3, 5]).count
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([2, 1], dtype=int32)>
    """
    x = convert_to_tensor(x)
    first, index, count = primitives.DistinctElements(x, as_dtype(out_idx))
    return UniqueWithCounts(take(x, first, 0), index, count)
