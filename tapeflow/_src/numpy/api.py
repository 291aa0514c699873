"""`tf.experimental.numpy`: the operations under NumPy's names, with NumPy's dtype promotion."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays import constants
from tapeflow._src.ops.arrays import shaping as arrays
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.math import arithmetic as arithmetic
from tapeflow._src.ops.math import reductions
from tapeflow._src.types.dtypes import as_dtype, float64, int64

_WEAK = (bool, int, float, complex)
boolean = as_dtype("bool")


# ---- arrays and their dtypes


def _kind(value: Any) -> Any:
    """What `np.result_type` is asked about: a dtype, or a Python number, which gives way to the dtypes beside it."""
    if _core.is_tensor(value):
        return value.dtype.as_numpy_dtype
    if isinstance(value, _WEAK):
        return type(value)(0)
    if isinstance(value, list | tuple):
        kinds = [_kind(v) for v in value]
        if not kinds:
            return np.dtype(float)
        return np.result_type(*kinds).type(0).item() if all(isinstance(k, _WEAK) for k in kinds) else _joined(kinds)
    return np.asarray(value).dtype


def _joined(kinds: Sequence[Any]) -> Any:
    """The dtype that NumPy gives to a mix of dtypes and Python numbers."""
    return np.result_type(*kinds) if kinds else np.dtype(float)


def promoted(*values: Any, floats: bool = False) -> list[Any]:
    """The values as tensors of their common dtype; with `floats`, whole numbers become float64."""
    dtype = as_dtype(_joined([_kind(v) for v in values]))
    if floats and (dtype.is_integer or dtype.is_bool):
        dtype = float64
    return [cast(tensor_of(v), dtype) for v in values]


def tensor_of(value: Any) -> Any:
    if _core.is_tensor(value):
        return convert_to_tensor(value)
    if isinstance(value, list | tuple) and any(_core.is_tensor(v) for v in value):
        return primitives.Pack(promoted(*value))
    return convert_to_tensor(np.asarray(value))


def document(function: Any, sentence: str, example: str) -> None:
    call, _, result = example.partition(" = ")
    function.__doc__ = f"{sentence}\n\n    >>> tf.experimental.numpy.{call}\n    {result}\n    "


@public("experimental.numpy.array")
def array(val: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0) -> Any:
    """A tensor from any value, with NumPy's dtypes: float64 and int64 for Python numbers.

    >>> tf.experimental.numpy.array([1, 2], ndmin=2)
    [[1, 2]]
    """
    x = tensor_of(val)
    if dtype is not None:
        x = cast(x, dtype)
    return primitives.Reshape(x, [1] * (ndmin - x.shape.rank) + x.shape.as_list()) if x.shape.rank < ndmin else x


@public("experimental.numpy.asarray", "experimental.numpy.asanyarray", "experimental.numpy.ascontiguousarray")
def asarray(a: Any, dtype: Any = None) -> Any:
    """A tensor from any value.

    >>> tf.experimental.numpy.asarray([1., 2.])
    [1., 2.]
    """
    return array(a, dtype)


@public("experimental.numpy.result_type")
def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype of an operation on the given arrays, dtypes and Python numbers.

    >>> tf.experimental.numpy.result_type(tf.float32, 1.5) == tf.float32
    True
    """

    def kind(value: Any) -> Any:
        is_dtype = isinstance(value, type | np.dtype) or hasattr(value, "as_numpy_dtype")
        return as_dtype(value).as_numpy_dtype if is_dtype else _kind(value)

    return as_dtype(_joined([kind(v) for v in arrays_and_dtypes]))


@public("experimental.numpy.promote_types")
def promote_types(type1: Any, type2: Any) -> Any:
    """The smallest dtype that holds both.

    >>> tf.experimental.numpy.promote_types(tf.int32, tf.float32) == tf.float64
    True
    """
    return result_type(as_dtype(type1), as_dtype(type2))


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


def as_truth(x: Any) -> Any:
    return x if x.dtype == boolean else primitives.NotEqual(x, cast(0, x.dtype))


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
    lambda x: primitives.LogicalNot(as_truth(x)),
    "Whether x is false.",
    "logical_not([0]) = [True]",
    floats=False,
)


def _flipped(x: Any) -> Any:
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
def sign(x: Any, out: Any = None, where: Any = None, **kwargs: Any) -> Any:
    """-1, 0 or 1 by the sign.

    >>> tf.experimental.numpy.sign([-2, 0, 5])
    [-1, 0, 1]
    """
    if out is not None or where is not None or kwargs:
        raise ValueError("sign: tf.experimental.numpy takes neither `out` nor `where`.")
    return primitives.Sign(tensor_of(x))


# ---- two operands


def _binary(names: str, compute: Callable[[Any, Any], Any], sentence: str, example: str, floats: bool = False) -> None:
    def function(x1: Any, x2: Any) -> Any:
        return compute(*promoted(x1, x2, floats=floats))

    document(function, sentence, example)
    public(*(f"experimental.numpy.{name}" for name in names.split()))(function)


def _boolean_or(numbers: Any, truth: Any) -> Callable[[Any, Any], Any]:
    """An operation that NumPy defines on truth values too."""
    return lambda x, y: truth(x, y) if x.dtype == boolean else numbers(x, y)


def _ordered(compare: Any) -> Callable[[Any, Any], Any]:
    """A comparison of sizes, where False comes before True."""
    return lambda x, y: compare(cast(x, "int8"), cast(y, "int8")) if x.dtype == boolean else compare(x, y)


def _hypot(x: Any, y: Any) -> Any:
    return primitives.Sqrt(primitives.Square(x) + primitives.Square(y))


def _log_add(x: Any, y: Any) -> Any:
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
    lambda x, y: primitives.LogicalAnd(as_truth(x), as_truth(y)),
    "Both.",
    "logical_and([1], 0) = [False]",
)
_binary(
    "logical_or", lambda x, y: primitives.LogicalOr(as_truth(x), as_truth(y)), "Either.", "logical_or([1], 0) = [True]"
)
_binary(
    "logical_xor",
    lambda x, y: primitives.NotEqual(as_truth(x), as_truth(y)),
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


def _matmul(x: Any, y: Any) -> Any:
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
    [[3], [6]]
    """
    x, y = promoted(a, b)
    multiply = _boolean_or(primitives.Mul, primitives.LogicalAnd)
    return multiply(primitives.Reshape(x, [-1, 1]), primitives.Reshape(y, [1, -1]))


# ---- reductions


def _reduction(name: str, compute: Callable[..., Any], sentence: str, example: str, wide: bool) -> Any:
    """With `wide`, whole numbers are summed as int64 (or uint64), as NumPy does."""

    def function(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool | None = None) -> Any:
        x = tensor_of(a) if dtype is None else cast(tensor_of(a), dtype)
        if wide and dtype is None and (x.dtype.is_integer or x.dtype.is_bool):
            x = cast(x, "uint64" if x.dtype.is_unsigned else int64)
        return compute(x, axis, bool(keepdims))

    def plain(a: Any, axis: Any = None, keepdims: bool | None = None) -> Any:
        return function(a, axis, None, keepdims)

    chosen = function if wide else plain
    document(chosen, sentence, example)
    return public(f"experimental.numpy.{name}")(chosen)


def as_number_or_float(x: Any) -> Any:
    return cast(x, float64) if x.dtype.is_integer or x.dtype.is_bool else x


def _extremum(numbers: Any, truth: Any) -> Callable[..., Any]:
    return lambda x, axis, keepdims: (truth if x.dtype == boolean else numbers)(x, axis, keepdims)


sum_of = _reduction("sum", primitives.Sum, "Sum over axes.", "sum([1, 2]) = 3", wide=True)
_reduction("prod", primitives.Prod, "Product over axes.", "prod([2, 3]) = 6", wide=True)
_reduction("max", _extremum(primitives.Max, primitives.Any), "Largest element.", "max([1, 2]) = 2", wide=False)
_reduction("min", _extremum(primitives.Min, primitives.All), "Smallest element.", "min([1, 2]) = 1", wide=False)
_reduction(
    "all", lambda x, *r: primitives.All(as_truth(x), *r), "Whether all are true.", "all([1, 0]) = False", wide=False
)
_reduction(
    "any", lambda x, *r: primitives.Any(as_truth(x), *r), "Whether any is true.", "any([1, 0]) = True", wide=False
)
_reduction(
    "std",
    lambda x, *r: reductions.reduce_std(as_number_or_float(x), *r),
    "Standard deviation.",
    "std([1, 3]) = 1.0",
    wide=False,
)
_reduction(
    "ptp",
    lambda x, *r: primitives.Max(x, *r) - primitives.Min(x, *r),
    "Largest less smallest.",
    "ptp([1, 3]) = 2",
    wide=False,
)


def _extreme(name: str, numbers: Any, truth: Any, sentence: str, example: str) -> None:
    def function(a: Any, axis: Any = None, out: Any = None, keepdims: bool | None = None) -> Any:
        if out is not None:
            raise ValueError(f"{name}: tf.experimental.numpy does not take `out`.")
        return _extremum(numbers, truth)(tensor_of(a), axis, bool(keepdims))

    document(function, sentence, example)
    public(f"experimental.numpy.{name}")(function)


_extreme("amax", primitives.Max, primitives.Any, "Largest element.", "amax([1, 2]) = 2")
_extreme("amin", primitives.Min, primitives.All, "Smallest element.", "amin([1, 2]) = 1")


@public("experimental.numpy.mean")
def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool | None = None) -> Any:
    """The mean over axes; whole numbers give float64.

    >>> tf.experimental.numpy.mean([1, 2])
    1.5
    """
    x = tensor_of(a) if dtype is None else cast(tensor_of(a), dtype)
    return primitives.Mean(as_number_or_float(x), axis, bool(keepdims))


@public("experimental.numpy.var")
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: int = 0, keepdims: bool | None = None
) -> Any:
    """The variance over axes, with the divisor n - `ddof`.

    >>> tf.experimental.numpy.var([1, 3], ddof=1)
    2.0
    """
    x = as_number_or_float(tensor_of(a) if dtype is None else cast(tensor_of(a), dtype))
    variance = reductions.reduce_variance(x, axis, bool(keepdims))
    count = x.shape.num_elements() / max(1, variance.shape.num_elements())
    return variance * (count / (count - ddof)) if ddof else variance


@public("experimental.numpy.count_nonzero")
def count_nonzero(a: Any, axis: Any = None) -> Any:
    """The number of elements that are not zero.

    >>> tf.experimental.numpy.count_nonzero([0, 1, 2])
    2
    """
    return reductions.count_nonzero(tensor_of(a), axis)


def _position(name: str, find: Any, sentence: str, example: str) -> None:
    def function(a: Any, axis: int | None = None) -> Any:
        x = tensor_of(a)
        return find(primitives.Reshape(x, [-1]) if axis is None else x, 0 if axis is None else axis)

    public(f"experimental.numpy.{name}")(function)
    document(function, sentence, example)


_position("argmax", primitives.ArgMax, "Position of the largest element.", "argmax([1, 3, 2]) = 1")
_position("argmin", primitives.ArgMin, "Position of the smallest element.", "argmin([2, 1, 3]) = 1")


def _scan(name: str, accumulate: Any, sentence: str, example: str) -> None:
    def function(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
        x = tensor_of(a) if dtype is None else cast(tensor_of(a), dtype)
        if dtype is None and (x.dtype.is_integer or x.dtype.is_bool):
            x = cast(x, int64)
        return accumulate(primitives.Reshape(x, [-1]) if axis is None else x, 0 if axis is None else axis)

    public(f"experimental.numpy.{name}")(function)
    document(function, sentence, example)


_scan("cumsum", primitives.Cumsum, "Running sum.", "cumsum([1, 2]) = [1, 3]")
_scan("cumprod", primitives.Cumprod, "Running product.", "cumprod([2, 3]) = [2, 6]")


# ---- making and shaping


@public("experimental.numpy.zeros", "experimental.numpy.empty")
def zeros(shape: Any, dtype: Any = float) -> Any:
    """Zeros of a shape.

    >>> tf.experimental.numpy.zeros([2])
    [0., 0.]
    """
    return constants.zeros(shape, as_dtype(np.dtype(float) if dtype is float else dtype))


@public("experimental.numpy.ones")
def ones(shape: Any, dtype: Any = float) -> Any:
    """Ones of a shape.

    >>> tf.experimental.numpy.ones([2])
    [1., 1.]
    """
    return constants.ones(shape, as_dtype(np.dtype(float) if dtype is float else dtype))


@public("experimental.numpy.full")
def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    """One value in every place of a shape.

    >>> tf.experimental.numpy.full([2], 3)
    [3, 3]
    """
    return primitives.BroadcastTo(array(fill_value, dtype), shape)


@public("experimental.numpy.arange")
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    """Evenly spaced numbers from `start` up to, not including, `stop`.

    >>> tf.experimental.numpy.arange(3)
    [0, 1, 2]
    """
    if not step:
        raise ValueError("arange: step must be non-zero.")
    return convert_to_tensor(np.arange(*((0, start) if stop is None else (start, stop)), step), dtype)


@public("experimental.numpy.where")
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Elements of `x` where the condition holds, of `y` elsewhere.

    >>> tf.experimental.numpy.where([True, False], 1, 2.5)
    [1., 2.5]
    """
    condition = as_truth(tensor_of(condition))
    if (x is None) != (y is None):
        raise ValueError("where: both `x` and `y` must be given, or neither.")
    if x is None:
        return [cast(places, int64) for places in primitives.Unpack(primitives.Where(condition), axis=1)]
    return primitives.SelectV2(condition, *promoted(x, y))


@public("experimental.numpy.clip")
def clip(a: Any, a_min: Any, a_max: Any) -> Any:
    """Values brought into the range from `a_min` to `a_max`.

    >>> tf.experimental.numpy.clip([-1, 5], 0, 3)
    [0, 3]
    """
    given = [v for v in (a, a_min, a_max) if v is not None]
    x, *bounds = promoted(*given)
    if a_min is not None:
        x = primitives.Maximum(x, bounds.pop(0))
    return x if a_max is None else primitives.Minimum(x, bounds.pop(0))


@public("experimental.numpy.reshape")
def reshape(a: Any, newshape: Any, order: str = "C") -> Any:
    """The elements in another shape.

    >>> tf.experimental.numpy.reshape([1, 2], [2, 1])
    [[1], [2]]
    """
    if order != "C":
        raise ValueError(f"reshape: only the order 'C' exists; got {order!r}.")
    return primitives.Reshape(tensor_of(a), newshape)


@public("experimental.numpy.transpose")
def transpose(a: Any, axes: Any = None) -> Any:
    """The dimensions in another order; reversed if `axes` is None.

    >>> tf.experimental.numpy.transpose([[1, 2]])
    [[1], [2]]
    """
    return primitives.Transpose(tensor_of(a), axes)


@public("experimental.numpy.expand_dims")
def expand_dims(a: Any, axis: int) -> Any:
    """A dimension of length 1 put in at `axis`.

    >>> tf.experimental.numpy.expand_dims([1, 2], 0)
    [[1, 2]]
    """
    return primitives.ExpandDims(tensor_of(a), axis)


@public("experimental.numpy.squeeze")
def squeeze(a: Any, axis: Any = None) -> Any:
    """Dimensions of length 1 taken out.

    >>> tf.experimental.numpy.squeeze([[1, 2]])
    [1, 2]
    """
    return primitives.Squeeze(tensor_of(a), axis)


@public("experimental.numpy.concatenate")
def concatenate(arys: Any, axis: int | None = 0) -> Any:
    """Arrays joined along an axis.

    >>> tf.experimental.numpy.concatenate([[1], [2.5]])
    [1., 2.5]
    """
    parts = promoted(*arys)
    if axis is None:
        parts, axis = [primitives.Reshape(part, [-1]) for part in parts], 0
    return primitives.ConcatV2(parts, axis)


@public("experimental.numpy.stack")
def stack(arrays: Any, axis: int = 0) -> Any:
    """Arrays joined along a new axis.

    >>> tf.experimental.numpy.stack([[1], [2.5]])
    [[1.], [2.5]]
    """
    return primitives.Pack(promoted(*arrays), axis)


@public("experimental.numpy.broadcast_to")
def broadcast_to(array: Any, shape: Any) -> Any:
    """The array repeated to a shape.

    >>> tf.experimental.numpy.broadcast_to([1], [2])
    [1, 1]
    """
    return primitives.BroadcastTo(tensor_of(array), shape)


@public("experimental.numpy.take")
def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "clip") -> Any:
    """Elements at places along an axis; places outside are clipped, or wrapped with mode="wrap".

    >>> tf.experimental.numpy.take([1, 2], [5])
    [2]
    """
    x, places = tensor_of(a), tensor_of(indices)
    if axis is None:
        x, axis = primitives.Reshape(x, [-1]), 0
    length = cast(x.shape[axis], places.dtype)
    if mode == "wrap":
        places = primitives.FloorMod(places, length)
    elif mode == "clip":
        places = primitives.Minimum(primitives.Maximum(places, cast(0, places.dtype)), length - 1)
    else:
        raise ValueError(f"take: mode must be 'clip' or 'wrap'; got {mode!r}.")
    return arrays.gather(x, places, axis=axis)


@public("experimental.numpy.shape")
def shape(a: Any) -> Any:
    """The shape.

    >>> tf.experimental.numpy.shape([[1, 2]])
    [1, 2]
    """
    return tensor_of(a).shape


@public("experimental.numpy.ndim")
def ndim(a: Any) -> int:
    """The number of dimensions.

    >>> tf.experimental.numpy.ndim([[1, 2]])
    2
    """
    return tensor_of(a).shape.rank


@public("experimental.numpy.isscalar")
def isscalar(num: Any) -> bool:
    """Whether a value is a single number.

    >>> tf.experimental.numpy.isscalar(1.)
    True
    """
    return num.shape.rank == 0 if _core.is_tensor(num) else np.isscalar(num)


@public("experimental.numpy.isclose")
def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """Whether elements agree within `atol + rtol * abs(b)`.

    >>> tf.experimental.numpy.isclose([1.], [1.000001])
    [True]
    """
    x, y = promoted(a, b, floats=True)
    near = primitives.LogicalOr(
        primitives.Equal(x, y),
        primitives.LogicalAnd(primitives.IsFinite(y), arithmetic.abs(x - y) <= atol + rtol * arithmetic.abs(y)),
    )
    both = primitives.LogicalAnd(primitives.IsNan(x), primitives.IsNan(y))
    return primitives.LogicalOr(near, both) if equal_nan else near


@public("experimental.numpy.allclose")
def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """Whether all elements agree within `atol + rtol * abs(b)`.

    >>> tf.experimental.numpy.allclose([1.], [1.000001])
    True
    """
    return primitives.All(isclose(a, b, rtol, atol, equal_nan))


@public("experimental.numpy.finfo")
def finfo(dtype: Any) -> np.finfo:
    """The limits of a type of floating-point numbers.

    >>> tf.experimental.numpy.finfo(tf.float32).bits
    32
    """
    return np.finfo(as_dtype(dtype).as_numpy_dtype)


@public("experimental.numpy.iinfo")
def iinfo(int_type: Any) -> np.iinfo:
    """The limits of a type of integers.

    >>> tf.experimental.numpy.iinfo(tf.int8).max
    127
    """
    return np.iinfo(as_dtype(int_type).as_numpy_dtype)


_CONSTANTS = {"pi": math.pi, "e": math.e, "inf": math.inf, "newaxis": None, "ndarray": _core.Tensor}
_DTYPES = ["bool_", "complex64", "complex128", "float16", "float32", "float64", "int8", "int16", "int32", "int64"]
_DTYPES += ["object_", "uint8", "uint16", "uint32", "uint64", "inexact", "issubdtype"]
_DTYPES_BY_OLD_NAME = {
    "int_": "int64",
    "float_": "float64",
    "complex_": "complex128",
    "string_": "bytes_",
    "unicode_": "str_",
}
for _name, _value in [
    *_CONSTANTS.items(),
    *((old, getattr(np, new)) for old, new in _DTYPES_BY_OLD_NAME.items()),
    *((name, getattr(np, name)) for name in _DTYPES),
]:
    public(f"experimental.numpy.{_name}")(_value)
