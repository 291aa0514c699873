"""`tf.sparse`: between dense and sparse tensors."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import ones
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.sparse.coordinates import as_sparse, dims_of_sparse, row_major_strides
from tapeflow._src.types.dtypes import float32, int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor

# ---- between dense and sparse


@public("sparse.from_dense")
def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """The elements of a dense tensor that are not zero.

    >>> tf.sparse.from_dense([[0, 5], [6, 0]]).indices
    <tf.Tensor: shape=(2, 2), dtype=int64, numpy=
    array([[0, 1],
           [1, 0]])>
    """
    x = convert_to_tensor(tensor)
    zero = _core.convert_to_tensor(
        "" if x.dtype.name == "string" else False if x.dtype.is_bool else 0, x.dtype, None, "from_dense"
    )
    indices = primitives.Where(primitives.NotEqual(x, zero))
    sizes = x.shape.as_list() if x.shape.is_fully_defined() else primitives.Shape(x, int64)
    return SparseTensor(indices, primitives.GatherNd(x, indices, 0), sizes)


def _check_order(indices: Any, dims: list[int], who: str) -> None:
    """Refuses positions outside the shape, out of order or repeated."""
    at = indices.numpy()
    if not at.size:
        return
    outside = ((at < 0) | (at >= np.asarray(dims))).any(1)
    step = np.diff((at * row_major_strides(dims)).sum(1))

    def text(i: int) -> str:
        return f"{who}: indices[{i}] = [" + ",".join(str(n) for n in at[i]) + "]"

    if outside.any():
        shape = "[" + ",".join(str(d) for d in dims) + "]"
        raise InvalidArgumentError.of(f"{text(int(outside.argmax()))} is out of bounds: need 0 <= index < {shape}")
    if (step < 0).any():
        raise InvalidArgumentError.of(
            f"{text(int((step < 0).argmax()) + 1)} is out of order. Many sparse ops require sorted indices.\n"
            "    Use `tf.sparse.reorder` to create a correctly ordered copy.\n",
        )
    if (step == 0).any():
        raise InvalidArgumentError.of(f"{text(int((step == 0).argmax()) + 1)} is repeated")


@public("sparse.to_dense")
def to_dense(
    sp_input: Any, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """The dense tensor, with `default_value` (zero) where nothing is stored.

    >>> tf.sparse.to_dense(tf.SparseTensor([[1]], [5], [3]))
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([0, 5, 0], dtype=int32)>
    """
    x = as_sparse(sp_input, "to_dense")
    dims = dims_of_sparse(x)
    if validate_indices:
        _check_order(x.indices, dims, "to_dense")
    if default_value is None:
        if x.dtype.name != "string" and not x.dtype.is_bool and validate_indices:
            return primitives.ScatterNd(x.indices, x.values, dims)
        default_value = "" if x.dtype.name == "string" else False if x.dtype.is_bool else 0
    filler = convert_to_tensor(default_value, dtype=None if _core.is_tensor(default_value) else x.dtype)
    return primitives.TensorScatterUpdate(primitives.BroadcastTo(filler, dims), x.indices, x.values)


@public("sparse.to_indicator")
def to_indicator(sp_input: Any, vocab_size: Any, name: str | None = None) -> Tensor:
    """True at [..., v] for each stored number v, of shape [..., vocab_size].

    >>> tf.sparse.to_indicator(tf.SparseTensor([[0, 0]], tf.constant([1], tf.int64), [1, 1]), 3)
    <tf.Tensor: shape=(1, 3), dtype=bool, numpy=array([[False,  True, False]])>
    """
    x = as_sparse(sp_input, "to_indicator")
    values = cast(x.values, int64)
    if any(_core.is_symbolic(part) for part in (x.values, x.dense_shape, vocab_size)):
        inside = primitives.LogicalAnd(primitives.GreaterEqual(values, 0), primitives.Less(values, vocab_size))
        values = _core.required(values, primitives.All(inside), "to_indicator: values must be in [0, vocab_size)")
        last = primitives.Reshape(cast(vocab_size, int64), [1])
        dims: Any = primitives.ConcatV2([cast(x.dense_shape, int64)[:-1], last], 0)
        indices = primitives.ConcatV2([x.indices[:, :-1], primitives.ExpandDims(values, 1)], 1)
        return primitives.ScatterNd(indices, primitives.Equal(values, values), dims)
    dims = [*dims_of_sparse(x)[:-1], int(vocab_size)]
    numbers = values.numpy()
    if numbers.size and (numbers.min() < 0 or numbers.max() >= int(vocab_size)):
        raise InvalidArgumentError.of(f"to_indicator: values must be in [0, {int(vocab_size)}); got {numbers.tolist()}")
    indices = primitives.ConcatV2([x.indices[:, :-1], primitives.ExpandDims(values, 1)], 1)
    return primitives.ScatterNd(indices, primitives.BroadcastTo(True, [indices.shape[0]]), dims)


@public("sparse.eye")
def eye(num_rows: Any, num_columns: Any = None, dtype: Any = float32, name: str | None = None) -> SparseTensor:
    """The identity matrix.

    >>> tf.sparse.eye(2).values
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 1.], dtype=float32)>
    """
    rows = int(num_rows)
    columns = rows if num_columns is None else int(num_columns)
    count = builtins.min(rows, columns)
    places = np.arange(count, dtype=np.int64)
    return SparseTensor(np.stack([places, places], 1), ones([count], dtype), [rows, columns])
