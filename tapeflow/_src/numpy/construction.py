"""`tf.experimental.numpy`: arrays like others, triangles and diagonals, evenly spaced numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.numpy.arrays import broadcast_to
from tapeflow._src.numpy.promotion import array, axis_in_rank, document, dtype_or, promoted, tensor_of
from tapeflow._src.numpy.reductions import sum_of
from tapeflow._src.numpy.shaping import broadcast_arrays, moveaxis
from tapeflow._src.ops.arrays import constants, indexing, padding, shaping
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import float64

# ---- like another, and along diagonals


def _like(name: str, value: int, sentence: str, example: str) -> None:
    def function(a: Any, dtype: Any = None) -> Tensor:
        x = tensor_of(a)
        kind = dtype_or(dtype, x.dtype)
        one = convert_to_tensor(str(value) if value else "") if kind.name == "string" else cast(value, kind)
        return primitives.BroadcastTo(one, constants.dynamic_dims(x))

    document(function, sentence, example)
    public(*(f"experimental.numpy.{n}" for n in name.split()))(function)


_like("zeros_like empty_like", 0, "Zeros of the shape and dtype of `a`.", "zeros_like([1, 2]) = [0, 0]")
_like("ones_like", 1, "Ones of the shape and dtype of `a`.", "ones_like([1, 2]) = [1, 1]")


@public("experimental.numpy.full_like")
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None
) -> Tensor:
    """One value in every place of the shape of `a`, in its dtype.

    >>> tf.experimental.numpy.full_like([1, 2], 7)
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([7, 7])>
    """
    if order != "K" or not subok or shape is not None:
        raise ValueError("full_like: only order='K', subok=True and shape=None exist.")
    x = tensor_of(a)
    return broadcast_to(array(fill_value, dtype_or(dtype, x.dtype)), constants.dynamic_dims(x))


@public("experimental.numpy.tri")
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """Ones up to the `k`-th diagonal, zeros above it.

    >>> tf.experimental.numpy.tri(2)
    <tf.Tensor: shape=(2, 2), dtype=float64, numpy=
    array([[1., 0.],
           [1., 1.]])>
    """
    return convert_to_tensor(np.tri(N, M, k), dtype_or(dtype, float64))


@public("experimental.numpy.eye")
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Any:
    """Ones on the `k`-th diagonal, zeros elsewhere.

    >>> tf.experimental.numpy.eye(2)
    <tf.Tensor: shape=(2, 2), dtype=float64, numpy=
    array([[1., 0.],
           [0., 1.]])>
    """
    return convert_to_tensor(np.eye(N, M, k), dtype_or(dtype, float64))


@public("experimental.numpy.identity")
def identity(n: int, dtype: Any = float) -> Any:
    """The square matrix with ones on its diagonal.

    >>> tf.experimental.numpy.identity(2)
    <tf.Tensor: shape=(2, 2), dtype=float64, numpy=
    array([[1., 0.],
           [0., 1.]])>
    """
    return eye(n, dtype=dtype)


def _numbers_of_diagonals(rows: Any, columns: Any) -> Tensor:
    """For each place of a matrix which diagonal it is on: 0 is the main one."""
    return constants.range(columns) - primitives.ExpandDims(constants.range(rows), 1)


def _triangle(name: str, lower: bool, sentence: str, example: str) -> None:
    def function(m: Any, k: int = 0) -> Tensor:
        x = tensor_of(m)
        if x.shape.rank < 2:
            raise ValueError(f"{name}: the argument must have at least 2 dimensions; got shape {x.shape}")
        number = _numbers_of_diagonals(*constants.dynamic_dims(x)[-2:])
        kept = primitives.LessEqual(number, k) if lower else primitives.GreaterEqual(number, k)
        return primitives.SelectV2(kept, x, cast(0, x.dtype))

    document(function, sentence, example)
    public(f"experimental.numpy.{name}")(function)


_triangle("tril", True, "What is above the `k`-th diagonal set to 0.", "tril([[1, 2], [3, 4]]) = [[1, 0], [3, 4]]")
_triangle("triu", False, "What is below the `k`-th diagonal set to 0.", "triu([[1, 2], [3, 4]]) = [[1, 2], [0, 4]]")


@public("experimental.numpy.diag")
def diag(v: Any, k: int = 0) -> Any:
    """A matrix with a vector on its `k`-th diagonal, or the `k`-th diagonal of a matrix.

    >>> tf.experimental.numpy.diag([1, 2])
    <tf.Tensor: shape=(2, 2), dtype=int64, numpy=
    array([[1, 0],
           [0, 2]])>
    """
    x = tensor_of(v)
    if x.shape.rank == 2:
        return diagonal(x, k)
    if x.shape.rank != 1:
        raise ValueError(f"diag: the argument must have 1 or 2 dimensions; got shape {x.shape}")
    column = padding.pad(x, [[max(k, 0), max(-k, 0)]])
    (size,) = constants.dynamic_dims(column)
    on_diagonal = primitives.Equal(_numbers_of_diagonals(size, size), k)
    return primitives.SelectV2(on_diagonal, primitives.Reshape(column, [1, size]), cast(0, x.dtype))


@public("experimental.numpy.diagflat")
def diagflat(v: Any, k: int = 0) -> Any:
    """A matrix with all elements on its `k`-th diagonal.

    >>> tf.experimental.numpy.diagflat([[1, 2]])
    <tf.Tensor: shape=(2, 2), dtype=int64, numpy=
    array([[1, 0],
           [0, 2]])>
    """
    return diag(primitives.Reshape(tensor_of(v), [-1]), k)


@public("experimental.numpy.diagonal")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The `offset`-th diagonal of two axes, as the last axis.

    >>> tf.experimental.numpy.diagonal([[1, 2], [3, 4]])
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([1, 4])>
    """
    x = tensor_of(a)
    first, second = axis_in_rank(axis1, x.shape.rank, "diagonal"), axis_in_rank(axis2, x.shape.rank, "diagonal")
    if first == second:
        raise ValueError("diagonal: axis1 and axis2 must differ.")
    x = moveaxis(x, (first, second), (-2, -1))
    *outer, rows, columns = constants.dynamic_dims(x)
    lengths = primitives.Pack([rows + min(offset, 0), columns - max(offset, 0), columns], 0)
    number = constants.range(primitives.Maximum(primitives.Min(lengths[:2], 0), 0))
    places = (number - min(offset, 0)) * lengths[2] + number + max(offset, 0)
    flat = primitives.Reshape(x, [*outer, rows * columns])
    return indexing.gather(flat, places, axis=-1)


@public("experimental.numpy.trace")
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """The sum of the `offset`-th diagonal of two axes.

    >>> tf.experimental.numpy.trace([[1, 2], [3, 4]])
    <tf.Tensor: shape=(), dtype=int64, numpy=5>
    """
    return sum_of(diagonal(a, offset, axis1, axis2), -1, dtype)


@public("experimental.numpy.diag_indices")
def diag_indices(n: int, ndim: int = 2) -> tuple[Any, ...]:
    """The places of the diagonal of an array with `ndim` dimensions of length `n`.

    >>> tf.experimental.numpy.diag_indices(2)
    (<tf.Tensor: shape=(2,), dtype=int32, numpy=array([0, 1], dtype=int32)>, <tf.Tensor: shape=(2,), dtype=int32,
     numpy=array([0, 1], dtype=int32)>)
    """
    if n < 0 or ndim < 0:
        raise ValueError(f"diag_indices: n and ndim must not be negative; got {n} and {ndim}")
    return (constants.range(n),) * ndim


@public("experimental.numpy.vander")
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of each element, the highest first unless `increasing`.

    >>> tf.experimental.numpy.vander([2, 3])
    <tf.Tensor: shape=(2, 2), dtype=int64, numpy=
    array([[2, 1],
           [3, 1]])>
    """
    values = tensor_of(x)
    if values.shape.rank != 1:
        raise ValueError(f"vander: x must be a vector; got shape {values.shape}")
    count = values.shape[0] if N is None else N
    if count < 0:
        raise ValueError(f"vander: N must not be negative; got {N}")
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    exponents = convert_to_tensor(powers.copy(), dtype=values.dtype)
    return primitives.Pow(primitives.ExpandDims(values, 1), primitives.ExpandDims(exponents, 0))


# ---- evenly spaced


@public("experimental.numpy.linspace")
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = float,
    axis: int = 0,
) -> Any:
    """`num` evenly spaced numbers from `start` to `stop`.

    >>> tf.experimental.numpy.linspace(0, 1, 3)
    <tf.Tensor: shape=(3,), dtype=float64, numpy=array([0. , 0.5, 1. ])>
    """
    if num < 0:
        raise ValueError(f"linspace: num must not be negative; got {num}")
    low, high = promoted(start, stop, floats=True)
    gaps = num - 1 if endpoint else num
    step = (high - low) / cast(gaps, low.dtype) if gaps > 0 else cast(math.nan, low.dtype)
    low, width = broadcast_arrays(low, high - low)
    rank = low.shape.rank
    place = axis if axis >= 0 else axis + rank + 1
    along = primitives.Reshape(
        cast(np.arange(num) / max(gaps, 1), low.dtype), [num if i == place else 1 for i in range(rank + 1)]
    )
    points = primitives.ExpandDims(low, place) + primitives.ExpandDims(width, place) * along
    points = cast(points, dtype_or(None if dtype is float else dtype, points.dtype))
    return (points, step) if retstep else points


@public("experimental.numpy.logspace")
def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """`base` to the power of evenly spaced numbers.

    >>> tf.experimental.numpy.logspace(0, 2, 3)
    <tf.Tensor: shape=(3,), dtype=float64, numpy=array([  1.,  10., 100.])>
    """
    powers = linspace(start, stop, num, endpoint, axis=axis)
    return cast(primitives.Pow(cast(base, powers.dtype), powers), dtype_or(dtype, powers.dtype))


@public("experimental.numpy.geomspace")
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """`num` numbers from `start` to `stop`, each the same multiple of the one before.

    >>> tf.experimental.numpy.geomspace(1, 4, 3)
    <tf.Tensor: shape=(3,), dtype=float64, numpy=array([1., 2., 4.])>
    """
    low, high = promoted(start, stop, floats=True)
    sign = primitives.Sign(low)
    points = primitives.Exp(linspace(primitives.Log(low * sign), primitives.Log(high * sign), num, endpoint, axis=axis))
    points = points * (sign if sign.shape.rank == 0 else primitives.ExpandDims(sign, axis))
    return cast(points, dtype_or(dtype, points.dtype))


@public("experimental.numpy.meshgrid")
def meshgrid(*xi: Any, **kwargs: Any) -> list[Any]:
    """The coordinates of a grid; `indexing` is "xy" or "ij".

    >>> tf.experimental.numpy.meshgrid([1, 2], [3])
    [<tf.Tensor: shape=(1, 2), dtype=int64, numpy=array([[1, 2]])>, <tf.Tensor: shape=(1, 2), dtype=int64,
     numpy=array([[3, 3]])>]
    """
    if kwargs.pop("sparse", False) or not kwargs.pop("copy", True):
        raise ValueError("meshgrid: only sparse=False and copy=True exist.")
    return shaping.meshgrid(*map(tensor_of, xi), **kwargs)
