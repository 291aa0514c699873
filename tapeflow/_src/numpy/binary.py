"""`tf.experimental.numpy`: functions of two operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.numpy.promotion import as_bool, boolean, document, promoted
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.math import arithmetic as arithmetic

# ---- two operands


def _binary(names: str, compute: Callable[[Any, Any], Any], sentence: str, example: str, floats: bool = False) -> None:
    def function(x1: Any, x2: Any) -> Any:
        return compute(*promoted(x1, x2, floats=floats))

    document(function, sentence, example)
    public(*(f"experimental.numpy.{name}" for name in names.split()))(function)


def _boolean_or(numbers: Any, bools: Any) -> Callable[[Any, Any], Any]:
    """An operation that NumPy defines on bools, too."""
    return lambda x, y: bools(x, y) if x.dtype == boolean else numbers(x, y)


def _ordered(compare: Any) -> Callable[[Any, Any], Any]:
    """A comparison of sizes, where False comes before True."""
    return lambda x, y: compare(cast(x, "int8"), cast(y, "int8")) if x.dtype == boolean else compare(x, y)


def _hypot(x: Any, y: Any) -> Tensor:
    return primitives.Sqrt(primitives.Square(x) + primitives.Square(y))


def _log_add(x: Any, y: Any) -> Tensor:
    return primitives.Maximum(x, y) + primitives.Log1p(primitives.Exp(-primitives.Abs(x - y)))


_binary("add", _boolean_or(primitives.AddV2, primitives.LogicalOr), "Sum.", "add([1], 0.5) = [1.5]")
_binary("subtract", primitives.Sub, "Difference.", "subtract([3], 1) = [2]")
_binary("multiply", _boolean_or(primitives.Mul, primitives.LogicalAnd), "Product.", "multiply([3], 2) = [6]")
_binary("true_divide divide", primitives.RealDiv, "Quotient.", "divide([3], 2) = [1.5]", floats=True)
_binary("floor_divide", primitives.FloorDiv, "Quotient, rounded down.", "floor_divide([7], 2) = [3]")
_binary("mod remainder", primitives.FloorMod, "Remainder with the sign of x2.", "mod([-7], 3) = [2]")
_binary("power", primitives.Pow, "x1 to the power x2.", "power([2], 3) = [8]")
_binary("float_power", primitives.Pow, "x1 to the power x2, as floats.", "float_power([2], 3) = [8.]", floats=True)
_binary(
    "maximum", _boolean_or(primitives.Maximum, primitives.LogicalOr), "The larger one.", "maximum([1, 5], 3) = [3, 5]"
)
_binary(
    "minimum", _boolean_or(primitives.Minimum, primitives.LogicalAnd), "The smaller one.", "minimum([1, 5], 3) = [1, 3]"
)
_binary("arctan2", primitives.Atan2, "Angle of (x2, x1).", "arctan2([0.], 1.) = [0.]", floats=True)
_binary("hypot", _hypot, "sqrt(x1**2 + x2**2).", "hypot([3], 4) = [5.]", floats=True)
_binary("logaddexp", _log_add, "log(exp(x1) + exp(x2)).", "logaddexp([0.], -1000.) = [0.]", floats=True)
_binary(
    "logaddexp2",
    lambda x, y: _log_add(x * math.log(2), y * math.log(2)) * (1 / math.log(2)),
    "log2(2**x1 + 2**x2).",
    "logaddexp2([1.], 1.) = [2.]",
    floats=True,
)
_binary(
    "nextafter", primitives.NextAfter, "The next float after x1 towards x2.", "nextafter(0., 0.) = 0.0", floats=True
)
_binary("equal", primitives.Equal, "Whether equal.", "equal([1], 1.) = [True]")
_binary("not_equal", primitives.NotEqual, "Whether different.", "not_equal([1], 1.) = [False]")
_binary("less", _ordered(primitives.Less), "Whether x1 < x2.", "less([1], 2) = [True]")
_binary("less_equal", _ordered(primitives.LessEqual), "Whether x1 <= x2.", "less_equal([1], 1) = [True]")
_binary("greater", _ordered(primitives.Greater), "Whether x1 > x2.", "greater([1], 2) = [False]")
_binary("greater_equal", _ordered(primitives.GreaterEqual), "Whether x1 >= x2.", "greater_equal([1], 1) = [True]")
_binary(
    "logical_and",
    lambda x, y: primitives.LogicalAnd(as_bool(x), as_bool(y)),
    "Both.",
    "logical_and([1], 0) = [False]",
)
_binary(
    "logical_or", lambda x, y: primitives.LogicalOr(as_bool(x), as_bool(y)), "Either.", "logical_or([1], 0) = [True]"
)
_binary(
    "logical_xor",
    lambda x, y: primitives.NotEqual(as_bool(x), as_bool(y)),
    "One only.",
    "logical_xor([1], 0) = [True]",
)
_binary(
    "bitwise_and",
    _boolean_or(primitives.BitwiseAnd, primitives.LogicalAnd),
    "Bits in both.",
    "bitwise_and([6], 3) = [2]",
)
_binary(
    "bitwise_or", _boolean_or(primitives.BitwiseOr, primitives.LogicalOr), "Bits in either.", "bitwise_or([6], 3) = [7]"
)
_binary(
    "bitwise_xor",
    _boolean_or(primitives.BitwiseXor, primitives.NotEqual),
    "Bits in one only.",
    "bitwise_xor([6], 3) = [5]",
)
_binary(
    "heaviside",
    lambda x, y: primitives.SelectV2(primitives.Equal(x, cast(0, x.dtype)), y, cast(x > 0, x.dtype)),
    "0 below 0, 1 above, x2 at 0.",
    "heaviside([-1., 0.], 0.5) = [0., 0.5]",
    floats=True,
)


def _matmul(x: Any, y: Any) -> Tensor:
    if x.shape.rank == 0 or y.shape.rank == 0:
        raise ValueError("matmul: the operands must have at least one dimension; use multiply for scalars.")
    result = primitives.MatMul(x[None] if x.shape.rank == 1 else x, y[:, None] if y.shape.rank == 1 else y)
    if y.shape.rank == 1:
        result = primitives.Squeeze(result, [-1])
    return primitives.Squeeze(result, [-2 if y.shape.rank > 1 else -1]) if x.shape.rank == 1 else result


_binary("matmul", _matmul, "Matrix product.", "matmul([1, 2], [3, 4]) = 11")


@public("experimental.numpy.outer")
def outer(a: Any, b: Any) -> Any:
    """All products of two elements.

    >>> tf.experimental.numpy.outer([1, 2], [3])
    <tf.Tensor: shape=(2, 1), dtype=int64, numpy=
    array([[3],
           [6]])>
    """
    x, y = promoted(a, b)
    multiply = _boolean_or(primitives.Mul, primitives.LogicalAnd)
    return multiply(primitives.Reshape(x, [-1, 1]), primitives.Reshape(y, [1, -1]))


@public("experimental.numpy.isclose")
def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether elements agree within `atol + rtol * abs(b)`.

    >>> tf.experimental.numpy.isclose([1.], [1.000001])
    <tf.Tensor: shape=(1,), dtype=bool, numpy=array([ True])>
    """
    x, y = promoted(a, b, floats=True)
    size = arithmetic.abs(y)
    near = primitives.LogicalOr(
        primitives.Equal(x, y),
        primitives.LogicalAnd(primitives.IsFinite(size), arithmetic.abs(x - y) <= atol + rtol * size),
    )
    both = primitives.LogicalAnd(primitives.IsNan(arithmetic.abs(x)), primitives.IsNan(size))
    return primitives.LogicalOr(near, both) if equal_nan else near


@public("experimental.numpy.allclose")
def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Whether all elements agree within `atol + rtol * abs(b)`.

    >>> tf.experimental.numpy.allclose([1.], [1.000001])
    <tf.Tensor: shape=(), dtype=bool, numpy=True>
    """
    return primitives.All(isclose(a, b, rtol, atol, equal_nan))
