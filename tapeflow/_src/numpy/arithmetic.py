"""`tf.experimental.numpy`: numbers, differences, averages, and reductions without NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.numpy.promotion import axis_in_rank, boolean, document, dtype_or, promoted, tensor_of
from tapeflow._src.numpy.reductions import as_number_or_float, sum_of
from tapeflow._src.numpy.shaping import moveaxis
from tapeflow._src.ops.arrays import shaping
from tapeflow._src.ops.arrays.constants import dynamic_dims
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import complex64, float32, float64, int32, int64

# ---- numbers


@public("experimental.numpy.angle")
def angle(z: Any, deg: bool = False) -> Tensor:
    """The angle of complex numbers, in radians or degrees.

    >>> tf.experimental.numpy.angle([-1.])
    <tf.Tensor: shape=(1,), dtype=float64, numpy=array([3.14159265])>
    """
    x = as_number_or_float(tensor_of(z))
    if not x.dtype.is_complex:
        x = cast(x, complex64 if x.dtype == float32 else "complex128")
    y = primitives.Atan2(primitives.Imag(x), primitives.Real(x))
    return y * (180 / math.pi) if deg else y


@public("experimental.numpy.around", "experimental.numpy.round")
def around(a: Any, decimals: int = 0) -> Any:
    """Rounded to a number of decimals, halves to the even neighbour.

    >>> tf.experimental.numpy.around([1.256, 2.5], 0)
    <tf.Tensor: shape=(2,), dtype=float64, numpy=array([1., 2.])>
    """
    x = tensor_of(a)
    if x.dtype == boolean:
        raise TypeError("around: bools cannot be rounded.")
    scaled = cast(x, float64) if x.dtype.is_integer else x
    factor = cast(10.0 ** abs(decimals), scaled.dtype)
    scaled = primitives.Rint(scaled * factor) / factor if decimals >= 0 else primitives.Rint(scaled / factor) * factor
    return cast(scaled, x.dtype)


@public("experimental.numpy.array_equal")
def array_equal(a1: Any, a2: Any) -> Tensor:
    """Whether shapes and all elements are equal.

    >>> tf.experimental.numpy.array_equal([1, 2], [1, 2])
    <tf.Tensor: shape=(), dtype=bool, numpy=True>
    """
    x, y = promoted(a1, a2)
    dims = zip(x.shape.as_list(), y.shape.as_list())
    if x.shape.rank != y.shape.rank or any(m != n for m, n in dims if None not in (m, n)):
        different: Tensor = convert_to_tensor(False)
        return different
    if x.shape.is_fully_defined() and y.shape.is_fully_defined():
        return primitives.All(primitives.Equal(x, y), None, False)
    same = primitives.All(primitives.Equal(primitives.Shape(x), primitives.Shape(y)), None, False)
    # Arrays of different shapes are compared as if they had no elements.
    x, y = (primitives.Reshape(v, [-1])[: primitives.SelectV2(same, shaping.size(v), 0)] for v in (x, y))
    return primitives.LogicalAnd(same, primitives.All(primitives.Equal(x, y), None, False))


@public("experimental.numpy.average")
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False) -> Any:
    """The weighted mean and, if asked for, the sum of the weights.

    >>> tf.experimental.numpy.average([1, 2], weights=[1., 3.])
    <tf.Tensor: shape=(), dtype=float64, numpy=1.75>
    """
    if weights is None:
        x = as_number_or_float(tensor_of(a))
        mean = primitives.Mean(x, axis, False)
        if not returned:
            return mean
        count = cast(shaping.size(x), x.dtype) / cast(primitives.Maximum(shaping.size(mean), 1), x.dtype)
        return mean, primitives.BroadcastTo(count, dynamic_dims(mean))
    x, w = promoted(a, weights, floats=True)
    if w.shape.rank != x.shape.rank:
        if axis is None or w.shape.rank != 1:
            raise ValueError("average: the weights must have the shape of `a`, or be a vector for one axis.")
        place = axis_in_rank(axis, x.shape.rank, "average")
        w = primitives.Reshape(w, [-1 if i == place else 1 for i in range(x.shape.rank)])
    w = primitives.BroadcastTo(w, dynamic_dims(x))
    total = primitives.Sum(w, axis, False)
    mean = primitives.Sum(x * w, axis, False) / total
    return (mean, total) if returned else mean


@public("experimental.numpy.diff")
def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    """The differences of neighbours along `axis`, taken `n` times.

    >>> tf.experimental.numpy.diff([1, 3, 6])
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([2, 3])>
    """
    if n < 0:
        raise ValueError(f"diff: n must not be negative; got {n}")
    x = moveaxis(a, axis, -1)
    for _ in range(n if x.shape[-1] is None else min(n, x.shape[-1])):
        ends = x[..., 1:], x[..., :-1]
        x = primitives.NotEqual(*ends) if x.dtype == boolean else ends[0] - ends[1]
    return moveaxis(x, -1, axis)


@public("experimental.numpy.polyval")
def polyval(p: Any, x: Any) -> Any:
    """The polynomial with coefficients `p`, the highest first, at `x`.

    >>> tf.experimental.numpy.polyval([1, 2], 3)
    <tf.Tensor: shape=(), dtype=int64, numpy=5>
    """
    coefficients, points = promoted(p, x)
    result = cast(0, points.dtype)
    for coefficient in primitives.Unpack(coefficients, -1, 0):
        result = result * points + coefficient
    return result


@public("experimental.numpy.divmod")
def divmod_(x1: Any, x2: Any) -> tuple[Any, Any]:
    """The quotient, rounded down, and the remainder.

    >>> tf.experimental.numpy.divmod(7, 2)
    (<tf.Tensor: shape=(), dtype=int64, numpy=3>, <tf.Tensor: shape=(), dtype=int64, numpy=1>)
    """
    x, y = promoted(x1, x2)
    return primitives.FloorDiv(x, y), primitives.FloorMod(x, y)


def _integers(name: str, compute: Any, sentence: str, example: str) -> None:
    def function(x1: Any, x2: Any) -> Any:
        x, y = promoted(x1, x2)
        if not x.dtype.is_integer:
            raise ValueError(f"{name}: the arguments must be integers; got {x.dtype.name}")
        return convert_to_tensor(compute(x.numpy(), y.numpy()), dtype=x.dtype)

    document(function, sentence, example)
    public(f"experimental.numpy.{name}")(function)


_integers("gcd", np.gcd, "The greatest common divisor.", "gcd(12, 8) = 4")
_integers("lcm", np.lcm, "The least common multiple.", "lcm(4, 6) = 12")


def _one(name: str, compute: Any, sentence: str, example: str) -> None:
    def function(x: Any) -> Any:
        return compute(tensor_of(x))

    document(function, sentence, example)
    public(f"experimental.numpy.{name}")(function)


def _signbit(x: Any) -> Any:
    if x.dtype == boolean:
        return primitives.BroadcastTo(convert_to_tensor(False), x.shape.as_list())
    if not x.dtype.is_floating:
        return x < 0
    return primitives.LogicalOr(x < 0, primitives.Equal(primitives.Reciprocal(x), cast(-math.inf, x.dtype)))


def _sinc(x: Any) -> Tensor:
    x = as_number_or_float(x) * math.pi
    at_zero = primitives.Equal(x, cast(0, x.dtype))
    safe = primitives.SelectV2(at_zero, cast(1, x.dtype), x)
    # x times itself keeps the derivative at 0, which is 0.
    return primitives.SelectV2(at_zero, 1 - x * x / 6, primitives.Sin(safe) / safe)


def _has_imaginary(x: Any) -> Tensor:
    part = primitives.Imag(x) if x.dtype.is_complex else primitives.BroadcastTo(cast(0, int32), x.shape.as_list())
    return primitives.NotEqual(part, cast(0, part.dtype))


_one("signbit", _signbit, "Whether the sign is negative; that of -0 is.", "signbit([-1., 2.]) = [True, False]")
_one("sinc", _sinc, "sin(pi x) / (pi x).", "sinc([0.]) = [1.]")
_one("iscomplex", _has_imaginary, "Whether the imaginary part is not 0.", "iscomplex([1j, 1]) = [True, False]")
_one(
    "isreal",
    lambda x: primitives.LogicalNot(_has_imaginary(x)),
    "Whether the imaginary part is 0.",
    "isreal([1j, 1]) = [False, True]",
)
_one("iscomplexobj", lambda x: x.dtype.is_complex, "Whether the dtype is complex.", "iscomplexobj([1j]) = True")
_one("isrealobj", lambda x: not x.dtype.is_complex, "Whether the dtype is not complex.", "isrealobj([1j]) = False")


def _without_nan(name: str, compute: Any, neutral: int, sentence: str, example: str) -> None:
    def function(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        x = tensor_of(a)
        if x.dtype.is_floating or x.dtype.is_complex:
            x = primitives.SelectV2(primitives.NotEqual(x, x), cast(neutral, x.dtype), x)
        return compute(x, axis, dtype, keepdims)

    document(function, sentence, example)
    public(f"experimental.numpy.{name}")(function)


def _product(x: Any, axis: Any, dtype: Any, keepdims: bool) -> Tensor:
    if dtype is not None or x.dtype.is_integer or x.dtype == boolean:
        x = cast(x, dtype_or(dtype, int64))
    return primitives.Prod(x, axis, bool(keepdims))


_without_nan("nansum", sum_of, 0, "The sum without NaN.", "nansum([1., np.nan]) = 1.0")
_without_nan("nanprod", _product, 1, "The product without NaN.", "nanprod([2., np.nan]) = 2.0")


@public("experimental.numpy.nanmean")
def nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool | None = None) -> Tensor:
    """The mean of what is not NaN.

    >>> tf.experimental.numpy.nanmean([1., np.nan])
    <tf.Tensor: shape=(), dtype=float64, numpy=1.0>
    """
    x = as_number_or_float(tensor_of(a) if dtype is None else cast(tensor_of(a), dtype))
    absent = primitives.NotEqual(x, x)
    kept = primitives.SelectV2(absent, cast(0, x.dtype), x)
    count = primitives.Sum(cast(primitives.LogicalNot(absent), x.dtype), axis, bool(keepdims))
    return primitives.Sum(kept, axis, bool(keepdims)) / count
