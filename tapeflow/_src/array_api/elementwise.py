"""Functions of the standard that work element by element, and the operators of arrays made of them."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

import tapeflow as tf
from tapeflow._src.array_api.array import Array, in_common, tensor_of

_Tensor = Any


def _named(name: str, sentence: str, function: Any) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "tapeflow.array_api"
    function.__doc__ = sentence
    return function


def _unary(name: str, sentence: str, compute: Callable[[_Tensor], _Tensor]) -> Callable[[Any], Array]:
    def function(x: Any, /) -> Array:
        return Array(compute(tensor_of(x)))

    return _named(name, sentence, function)  # type: ignore[no-any-return]


def _binary(name: str, sentence: str, compute: Callable[[_Tensor, _Tensor], _Tensor]) -> Callable[[Any, Any], Array]:
    def function(x1: Any, x2: Any, /) -> Array:
        return Array(compute(*in_common(x1, x2)))

    return _named(name, sentence, function)  # type: ignore[no-any-return]


def _is_exact(x: _Tensor) -> builtins.bool:
    return bool(x.dtype.is_integer or x.dtype.is_bool)


def _of_floats(compute: Callable[[_Tensor], _Tensor]) -> Callable[[_Tensor], _Tensor]:
    """A rounding function: integers are what they are."""
    return lambda x: tf.identity(x) if _is_exact(x) else compute(x)


def _absolute(x: _Tensor) -> _Tensor:
    return tf.identity(x) if x.dtype.is_unsigned or x.dtype.is_bool else tf.abs(x)


def _parts(function: Callable[[_Tensor], _Tensor], combine: Callable[[_Tensor, _Tensor], _Tensor], exact: bool) -> Any:
    """A test of floats: complex numbers by their parts, integers always alike."""

    def test(x: _Tensor) -> _Tensor:
        if _is_exact(x):
            return tf.fill(tf.shape(x), exact)
        if x.dtype.is_complex:
            return combine(function(tf.math.real(x)), function(tf.math.imag(x)))
        return function(x)

    return test


def _sign(x: _Tensor) -> _Tensor:
    if x.dtype.is_unsigned:
        return tf.cast(x != 0, x.dtype)
    return tf.sign(x)


def _signbit(x: _Tensor) -> _Tensor:
    return tf.bitcast(x, tf.int64 if x.dtype == tf.float64 else tf.int32) < 0


def _copysign(x1: _Tensor, x2: _Tensor) -> _Tensor:
    return tf.where(_signbit(x1) == _signbit(x2), x1, -x1)


def _real_part(x: _Tensor) -> _Tensor:
    return tf.math.real(x) if x.dtype.is_complex else tf.identity(x)


def _rounded(x: _Tensor) -> _Tensor:
    if x.dtype.is_complex:
        return tf.complex(tf.round(tf.math.real(x)), tf.round(tf.math.imag(x)))
    return tf.round(x)


def _truncated(x: _Tensor) -> _Tensor:
    return _copysign(tf.floor(tf.abs(x)), x)


def _floor_divided(x1: _Tensor, x2: _Tensor) -> _Tensor:
    if x1.dtype.is_integer:
        return tf.math.floordiv(x1, x2)
    remainder = tf.math.floormod(x1, x2)
    quotient = tf.round((x1 - remainder) / x2)
    plain = tf.floor(x1 / x2)
    far = tf.math.is_inf(x2) | tf.math.is_inf(x1) | (x2 == 0) | (x1 == 0)
    return tf.where(far | tf.math.is_nan(quotient), plain, _copysign(quotient, x1 / x2))


def _remainder(x1: _Tensor, x2: _Tensor) -> _Tensor:
    if x1.dtype.is_integer:
        return tf.math.floormod(x1, x2)
    result = tf.math.floormod(x1, x2)
    return tf.where((result == 0) & (x2 != 0), _copysign(result, x2), result)


def _log_sum(x1: _Tensor, x2: _Tensor) -> _Tensor:
    larger, smaller = tf.maximum(x1, x2), tf.minimum(x1, x2)
    difference = tf.where(tf.math.is_inf(larger), tf.zeros_like(larger), smaller - larger)
    result = larger + tf.math.log1p(tf.exp(difference))
    return tf.where(tf.math.is_inf(larger), larger, result)


def _hypotenuse(x1: _Tensor, x2: _Tensor) -> _Tensor:
    return tf.abs(tf.complex(x1, x2))


def _logarithm(base: float) -> Callable[[_Tensor], _Tensor]:
    def logarithm(x: _Tensor) -> _Tensor:
        return tf.math.log(x) / tf.cast(np.log(base), x.dtype)

    return logarithm


def _bits(of_integers: Callable[..., _Tensor], of_bools: Callable[..., _Tensor]) -> Callable[..., _Tensor]:
    return lambda *x: of_bools(*x) if x[0].dtype.is_bool else of_integers(*x)


def _shifted(compute: Callable[[_Tensor, _Tensor], _Tensor], right: builtins.bool) -> Callable[..., _Tensor]:
    def shift(x1: _Tensor, x2: _Tensor) -> _Tensor:
        bits = x1.dtype.size * 8
        most = tf.cast(bits - 1, x1.dtype)
        far = x2 > most
        rest = tf.where(x1 < 0, tf.ones_like(x1) * -1, 0) if right and not x1.dtype.is_unsigned else tf.zeros_like(x1)
        return tf.where(far, tf.cast(rest, x1.dtype), compute(x1, tf.where(far, tf.zeros_like(x2), x2)))

    return shift


abs = _unary("abs", "The magnitude of each element.", _absolute)
acos = _unary("acos", "The inverse cosine of each element.", tf.acos)
acosh = _unary("acosh", "The inverse hyperbolic cosine of each element.", tf.acosh)
asin = _unary("asin", "The inverse sine of each element.", tf.asin)
asinh = _unary("asinh", "The inverse hyperbolic sine of each element.", tf.asinh)
atan = _unary("atan", "The inverse tangent of each element.", tf.atan)
atanh = _unary("atanh", "The inverse hyperbolic tangent of each element.", tf.atanh)
bitwise_invert = _unary(
    "bitwise_invert", "Each element with all bits inverted.", _bits(tf.bitwise.invert, tf.logical_not)
)
ceil = _unary("ceil", "The smallest integer that is not below each element.", _of_floats(tf.math.ceil))
conj = _unary("conj", "The complex conjugate of each element.", tf.math.conj)
cos = _unary("cos", "The cosine of each element.", tf.cos)
cosh = _unary("cosh", "The hyperbolic cosine of each element.", tf.cosh)
exp = _unary("exp", "The exponential of each element.", tf.exp)
expm1 = _unary("expm1", "`exp(x) - 1` of each element.", tf.math.expm1)
floor = _unary("floor", "The largest integer that is not above each element.", _of_floats(tf.floor))
imag = _unary("imag", "The imaginary part of each element.", tf.math.imag)
isfinite = _unary("isfinite", "Whether each element is finite.", _parts(tf.math.is_finite, tf.logical_and, True))
isinf = _unary("isinf", "Whether each element is infinite.", _parts(tf.math.is_inf, tf.logical_or, False))
isnan = _unary("isnan", "Whether each element is NaN.", _parts(tf.math.is_nan, tf.logical_or, False))
log = _unary("log", "The natural logarithm of each element.", tf.math.log)
log1p = _unary("log1p", "`log(1 + x)` of each element.", tf.math.log1p)
log2 = _unary("log2", "The logarithm to the base 2 of each element.", _logarithm(2.0))
log10 = _unary("log10", "The logarithm to the base 10 of each element.", _logarithm(10.0))
logical_not = _unary("logical_not", "The negation of each element.", tf.logical_not)
negative = _unary("negative", "Each element with the other sign.", tf.negative)
positive = _unary("positive", "Each element as it is.", tf.identity)
real = _unary("real", "The real part of each element.", _real_part)
reciprocal = _unary("reciprocal", "`1 / x` of each element.", tf.math.reciprocal)
round = _unary("round", "Each element rounded to an integer, halves to even.", _of_floats(_rounded))
sign = _unary("sign", "The sign of each element: -1, 0 or 1.", _sign)
signbit = _unary("signbit", "Whether the sign of each element is set, also of -0 and NaN.", _signbit)
sin = _unary("sin", "The sine of each element.", tf.sin)
sinh = _unary("sinh", "The hyperbolic sine of each element.", tf.sinh)
sqrt = _unary("sqrt", "The square root of each element.", tf.sqrt)
square = _unary("square", "The square of each element.", lambda x: x * x)
tan = _unary("tan", "The tangent of each element.", tf.tan)
tanh = _unary("tanh", "The hyperbolic tangent of each element.", tf.tanh)
trunc = _unary("trunc", "Each element without its fraction.", _of_floats(_truncated))

add = _binary("add", "The sum of elements.", tf.add)
atan2 = _binary("atan2", "The angle of the points with coordinates x2 and x1.", tf.atan2)
bitwise_and = _binary("bitwise_and", "The bits that both elements have.", _bits(tf.bitwise.bitwise_and, tf.logical_and))
bitwise_left_shift = _binary(
    "bitwise_left_shift", "x1 with its bits moved left by x2.", _shifted(tf.bitwise.left_shift, False)
)
bitwise_or = _binary(
    "bitwise_or", "The bits that one of the elements has.", _bits(tf.bitwise.bitwise_or, tf.logical_or)
)
bitwise_right_shift = _binary(
    "bitwise_right_shift", "x1 with its bits moved right by x2.", _shifted(tf.bitwise.right_shift, True)
)
bitwise_xor = _binary(
    "bitwise_xor", "The bits that just one of the elements has.", _bits(tf.bitwise.bitwise_xor, tf.math.logical_xor)
)
copysign = _binary("copysign", "The magnitude of x1 with the sign of x2.", _copysign)
divide = _binary("divide", "The quotient of elements.", tf.math.divide)
equal = _binary("equal", "Whether elements are equal.", tf.equal)
floor_divide = _binary("floor_divide", "The largest integer that is not above the quotient.", _floor_divided)
greater = _binary("greater", "Whether x1 > x2.", tf.greater)
greater_equal = _binary("greater_equal", "Whether x1 >= x2.", tf.greater_equal)
hypot = _binary("hypot", "The length of the hypotenuse, `sqrt(x1**2 + x2**2)`.", _hypotenuse)
less = _binary("less", "Whether x1 < x2.", tf.less)
less_equal = _binary("less_equal", "Whether x1 <= x2.", tf.less_equal)
logaddexp = _binary("logaddexp", "`log(exp(x1) + exp(x2))`.", _log_sum)
logical_and = _binary("logical_and", "Whether both elements hold.", tf.logical_and)
logical_or = _binary("logical_or", "Whether one of the elements holds.", tf.logical_or)
logical_xor = _binary("logical_xor", "Whether just one of the elements holds.", tf.math.logical_xor)
maximum = _binary("maximum", "The larger of two elements.", tf.maximum)
minimum = _binary("minimum", "The smaller of two elements.", tf.minimum)
multiply = _binary("multiply", "The product of elements.", tf.multiply)
nextafter = _binary("nextafter", "The next number after x1 in the direction of x2.", tf.math.nextafter)
not_equal = _binary("not_equal", "Whether elements are not equal.", tf.not_equal)
pow = _binary("pow", "x1 to the power of x2.", tf.pow)
remainder = _binary("remainder", "The remainder of the division, with the sign of x2.", _remainder)
subtract = _binary("subtract", "The difference of elements.", tf.subtract)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Array:
    """Each element, or the nearer of two limits if it lies outside of them."""
    value = tensor_of(x)
    for bound, choose in ((min, tf.maximum), (max, tf.minimum)):
        if bound is not None:
            value = choose(value, tensor_of(bound, value.dtype))
    return Array(tf.identity(value))
