"""Operations that TensorFlow shows at its top without a friendlier function: `tf.conv`, `tf.ragged_fill_empty_rows`."""

from __future__ import annotations

from typing import Any, NamedTuple

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays import sorting
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import int64


class RaggedFillEmptyRows(NamedTuple):
    """Rows and values with one value for each row that was empty, which rows those were, and where values went."""

    output_value_rowids: Any
    output_values: Any
    empty_row_indicator: Any
    reverse_index_map: Any


@public("ragged_fill_empty_rows")
def ragged_fill_empty_rows(
    value_rowids: Any, values: Any, nrows: Any, default_value: Any, name: str | None = None
) -> RaggedFillEmptyRows:
    """Values with sorted row numbers, and `default_value` in each of the `nrows` rows that has none.

    >>> tf.ragged_fill_empty_rows([0, 2], [5., 6.], 3, -1.).output_values
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([ 5., -1.,  6.], dtype=float32)>
    """
    rows = convert_to_tensor(value_rowids, None if _core.is_tensor(value_rowids) else int64)
    values = convert_to_tensor(values)
    default = convert_to_tensor(default_value, values.dtype)
    ones = primitives.BroadcastTo(convert_to_tensor(1, int64), primitives.Shape(rows))
    empty = primitives.Equal(primitives.UnsortedSegmentSum(ones, rows, nrows), 0)
    missing = cast(primitives.Reshape(primitives.Where(empty), [-1]), rows.dtype)
    filled = primitives.BroadcastTo(default, primitives.Shape(missing))
    together = primitives.ConcatV2([rows, missing], 0)
    order = sorting.argsort(together, stable=True)
    places = cast(sorting.argsort(order), int64)
    return RaggedFillEmptyRows(
        primitives.GatherV2(together, order),
        primitives.GatherV2(primitives.ConcatV2([values, filled], 0), order),
        empty,
        places[: primitives.Shape(rows)[0]],
    )


class RaggedFillEmptyRowsGrad(NamedTuple):
    """The gradients by the values and by the default value."""

    d_values: Any
    d_default_value: Any


@public("ragged_fill_empty_rows_grad")
def ragged_fill_empty_rows_grad(
    reverse_index_map: Any, grad_values: Any, name: str | None = None
) -> RaggedFillEmptyRowsGrad:
    """The gradient of `tf.ragged_fill_empty_rows`.

    >>> tf.ragged_fill_empty_rows_grad([0, 2], [5., 7., 6.])
    RaggedFillEmptyRowsGrad(d_values=<tf.Tensor: shape=(2,), dtype=float32, numpy=array([5., 6.], dtype=float32)>,
     d_default_value=<tf.Tensor: shape=(), dtype=float32, numpy=7.0>)
    """
    places, dy = convert_to_tensor(reverse_index_map, dtype_hint=int64), convert_to_tensor(grad_values)
    d_values = primitives.GatherV2(dy, places)
    one = convert_to_tensor(1, dy.dtype)
    taken = primitives.UnsortedSegmentSum(
        primitives.BroadcastTo(one, primitives.Shape(places)), places, primitives.Shape(dy)[0]
    )
    return RaggedFillEmptyRowsGrad(d_values, primitives.Sum(dy * (1 - taken), None, False))


@public("random_index_shuffle")
def random_index_shuffle(index: Any, seed: Any, max_index: Any, rounds: int = 4, name: str | None = None) -> Tensor:
    """Where `index` goes in a permutation of 0 to `max_index` that three numbers as `seed` choose.

    >>> tf.sort(tf.random_index_shuffle(tf.range(4), [1, 2, 3], 3))
    <tf.Tensor: shape=(4,), dtype=int32, numpy=array([0, 1, 2, 3], dtype=int32)>
    """
    index = convert_to_tensor(index)
    return primitives.RandomIndexShuffle(
        index, convert_to_tensor(seed), convert_to_tensor(max_index, dtype_hint=index.dtype), rounds
    )
