"""`tf.experimental.numpy`: functions of one operand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.numpy.promotion import as_bool, document, promoted, tensor_of
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.math import arithmetic as arithmetic

# ---- one operand


def _unary(
    names: str, compute: Callable[[Any], Any], sentence: str, example: str, floats: bool = True, argument: str = "x"
) -> None:
    """Defines a function of one array, whose argument NumPy calls `x`, `a` or `val`."""

    def of_x(x: Any) -> Any:
        return compute(promoted(x, floats=floats)[0])

    def of_a(a: Any) -> Any:
        return of_x(a)

    def of_val(val: Any) -> Any:
        return of_x(val)

    function = {"x": of_x, "a": of_a, "val": of_val}[argument]
    document(function, sentence, example)
    public(*(f"experimental.numpy.{name}" for name in names.split()))(function)


_unary("sin", primitives.Sin, "Sine.", "sin([0.]) = [0.]")
_unary("cos", primitives.Cos, "Cosine.", "cos([0.]) = [1.]")
_unary("tan", primitives.Tan, "Tangent.", "tan([0.]) = [0.]")
_unary("arcsin", primitives.Asin, "Inverse sine.", "arcsin([0.]) = [0.]")
_unary("arccos", primitives.Acos, "Inverse cosine.", "arccos([1.]) = [0.]")
_unary("arctan", primitives.Atan, "Inverse tangent.", "arctan([0.]) = [0.]")
_unary("sinh", primitives.Sinh, "Hyperbolic sine.", "sinh([0.]) = [0.]")
_unary("cosh", primitives.Cosh, "Hyperbolic cosine.", "cosh([0.]) = [1.]")
_unary("tanh", primitives.Tanh, "Hyperbolic tangent.", "tanh([0.]) = [0.]")
_unary("arcsinh", primitives.Asinh, "Inverse hyperbolic sine.", "arcsinh([0.]) = [0.]")
_unary("arccosh", primitives.Acosh, "Inverse hyperbolic cosine.", "arccosh([1.]) = [0.]")
_unary("arctanh", primitives.Atanh, "Inverse hyperbolic tangent.", "arctanh([0.]) = [0.]")
_unary("exp", primitives.Exp, "e to the power x.", "exp([0]) = [1.]")
_unary("exp2", lambda x: primitives.Pow(cast(2, x.dtype), x), "2 to the power x.", "exp2([3]) = [8.]")
_unary("expm1", primitives.Expm1, "exp(x) - 1.", "expm1([0.]) = [0.]")
_unary("log", primitives.Log, "Natural logarithm.", "log([1]) = [0.]")
_unary("log1p", primitives.Log1p, "log(1 + x).", "log1p([0.]) = [0.]")
_unary("log2", lambda x: primitives.Log(x) * (1 / math.log(2)), "Logarithm of base 2.", "log2([8]) = [3.]")
_unary("log10", lambda x: primitives.Log(x) * (1 / math.log(10)), "Logarithm of base 10.", "log10([1]) = [0.]")
_unary("sqrt", primitives.Sqrt, "Square root.", "sqrt([4]) = [2.]")
_unary(
    "cbrt",
    lambda x: primitives.Sign(x) * primitives.Pow(primitives.Abs(x), convert_to_tensor(1 / 3, x.dtype)),
    "Cube root.",
    "cbrt([-8.]) = [-2.]",
)
_unary("floor", primitives.Floor, "Largest integer not above x.", "floor([1.5]) = [1.]")
_unary("ceil", primitives.Ceil, "Smallest integer not below x.", "ceil([1.5]) = [2.]")
_unary(
    "fix",
    lambda x: primitives.SelectV2(x < 0, primitives.Ceil(x), primitives.Floor(x)),
    "Rounded towards zero.",
    "fix([-1.5]) = [-1.]",
)
_unary("deg2rad", lambda x: x * (math.pi / 180), "Degrees as radians.", "deg2rad([0.]) = [0.]")
_unary("rad2deg", lambda x: x * (180 / math.pi), "Radians as degrees.", "rad2deg([0.]) = [0.]")
_unary("isnan", primitives.IsNan, "Whether an element is NaN.", "isnan([1.]) = [False]")
_unary("isinf", primitives.IsInf, "Whether an element is infinite.", "isinf([1.]) = [False]")
_unary("isfinite", primitives.IsFinite, "Whether an element is finite.", "isfinite([1.]) = [True]")
_unary(
    "isposinf", lambda x: primitives.Equal(x, cast(math.inf, x.dtype)), "Whether x is +inf.", "isposinf([1.]) = [False]"
)
_unary(
    "isneginf",
    lambda x: primitives.Equal(x, cast(-math.inf, x.dtype)),
    "Whether x is -inf.",
    "isneginf([1.]) = [False]",
)
_unary("abs absolute", arithmetic.abs, "Absolute value.", "abs([-1]) = [1]", floats=False)
_unary("fabs", arithmetic.abs, "Absolute value as a float.", "fabs([-1]) = [1.]")
_unary("negative", primitives.Neg, "-x.", "negative([1]) = [-1]", floats=False)
_unary("positive", primitives.Identity, "x.", "positive([1]) = [1]", floats=False)
_unary("square", primitives.Square, "x times x.", "square([3]) = [9]", floats=False)
_unary("reciprocal", primitives.Reciprocal, "1 / x.", "reciprocal([2.]) = [0.5]")
_unary("conj conjugate", arithmetic.conj, "Complex conjugate.", "conj([1]) = [1]", floats=False)
_unary("real", arithmetic.real, "Real part.", "real([1]) = [1]", floats=False, argument="val")
_unary("imag", arithmetic.imag, "Imaginary part.", "imag([1]) = [0]", floats=False, argument="val")
_unary(
    "logical_not",
    lambda x: primitives.LogicalNot(as_bool(x)),
    "Whether x is false.",
    "logical_not([0]) = [True]",
    floats=False,
)


def _flipped(x: Any) -> Tensor:
    return primitives.LogicalNot(x) if x.dtype.is_bool else primitives.Invert(x)


_unary("bitwise_not", _flipped, "Every bit flipped.", "bitwise_not([0]) = [-1]", floats=False)
_unary(
    "ravel flatten",
    lambda x: primitives.Reshape(x, [-1]),
    "All elements in a row.",
    "ravel([[1, 2]]) = [1, 2]",
    floats=False,
    argument="a",
)
_unary("copy", primitives.Identity, "The same values.", "copy([1]) = [1]", floats=False, argument="a")


@public("experimental.numpy.sign")
def sign(x: Any, out: Any = None, where: Any = None, **kwargs: Any) -> Tensor:
    """-1, 0 or 1 by the sign.

    >>> tf.experimental.numpy.sign([-2, 0, 5])
    <tf.Tensor: shape=(3,), dtype=int64, numpy=array([-1,  0,  1])>
    """
    if out is not None or where is not None or kwargs:
        raise ValueError("sign: tf.experimental.numpy takes neither `out` nor `where`.")
    return primitives.Sign(tensor_of(x))
