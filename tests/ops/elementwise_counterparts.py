"""NumPy and SciPy counterparts of elementwise primitives and reductions, floats in a wider type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.special

Array = np.ndarray


def in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """SciPy's special functions know float64 and complex128 as their widest types."""

    def run(*args: Any) -> Any:
        return function(*(np.asarray(a, complex if np.iscomplexobj(a) else float) for a in args))

    run.ulps = 64
    return run


def where_nonzero(condition: Any, function: Callable[[], Any]) -> Any:
    """The function's value where the condition is not zero, else 0 with the sign that the condition has."""
    condition = np.asarray(condition)
    return np.where(condition == 0, condition, function())


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x)) if np.iscomplexobj(x) else np.exp(-np.logaddexp(0, -x))


def _gelu_slope(x: Any) -> Any:
    return scipy.special.ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)


_SCALE = np.longdouble("1.0507009873554804934193349852946")
_ALPHA = np.longdouble("1.6732632423543772848170429916717")
_ROOT = np.sqrt(np.longdouble(2) / np.pi)


def _gelu_tanh(x: Any) -> Any:
    return x / 2 * (1 + np.tanh(_ROOT * (x + 0.044715 * x**3)))


def _gelu_tanh_slope(x: Any) -> Any:
    t = np.tanh(_ROOT * (x + 0.044715 * x**3))
    return (1 + t) / 2 + x / 2 * (1 - t * t) * _ROOT * (1 + 3 * 0.044715 * x * x)


def sign_of(x: Any) -> Any:
    return np.where(x == 0, 0, x / np.where(x == 0, 1, np.abs(x))) if np.iscomplexobj(x) else np.sign(x)


def _truncated_quotient(x: Any, y: Any) -> Any:
    if np.issubdtype(np.asarray(x).dtype, np.integer):
        return ((x - np.fmod(x, y)) // y).astype(np.asarray(x).dtype)
    return np.trunc(x / y)


unary: dict[str, Callable[..., Any]] = {
    "Abs": np.abs,
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "BesselI0": in_double(scipy.special.i0),
    "BesselI0e": in_double(scipy.special.i0e),
    "BesselI1": in_double(scipy.special.i1),
    "BesselI1e": in_double(scipy.special.i1e),
    "BesselJ0": in_double(scipy.special.j0),
    "BesselJ1": in_double(scipy.special.j1),
    "BesselK0": in_double(scipy.special.k0),
    "BesselK0e": in_double(scipy.special.k0e),
    "BesselK1": in_double(scipy.special.k1),
    "BesselK1e": in_double(scipy.special.k1e),
    "BesselY0": in_double(scipy.special.y0),
    "BesselY1": in_double(scipy.special.y1),
    "Ceil": np.ceil,
    "Conj": np.conj,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Dawsn": in_double(scipy.special.dawsn),
    "Digamma": in_double(scipy.special.digamma),
    "Elu": lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x),
    "Erf": in_double(np.vectorize(math.erf, [float])),
    "Erfc": in_double(np.vectorize(math.erfc, [float])),
    "Erfinv": in_double(scipy.special.erfinv),
    "Exp": np.exp,
    "Expint": in_double(scipy.special.expi),
    "Expm1": np.expm1,
    "Floor": np.floor,
    "FresnelCos": in_double(lambda x: scipy.special.fresnel(x)[1]),
    "FresnelSin": in_double(lambda x: scipy.special.fresnel(x)[0]),
    "GeluErf": in_double(lambda x: x / 2 * np.vectorize(math.erfc, [float])(-x / math.sqrt(2))),
    "GeluTanh": _gelu_tanh,
    "Invert": np.invert,
    "IsFinite": np.isfinite,
    "IsInf": np.isinf,
    "IsNan": np.isnan,
    "Lgamma": in_double(scipy.special.gammaln),
    "Log": np.log,
    "Log1p": np.log1p,
    "LogicalNot": np.logical_not,
    "Ndtri": in_double(scipy.special.ndtri),
    "Neg": np.negative,
    "PopulationCount": lambda x: np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(np.uint8),
    "Reciprocal": lambda x: 1 / x,
    "Relu": lambda x: np.where(x < 0, np.zeros_like(x), x),
    "Relu6": lambda x: np.where(x < 0, np.zeros_like(x), np.where(x > 6, np.full_like(x, 6), x)),
    "Rint": np.rint,
    "Round": lambda x: np.round(x) if np.asarray(x).dtype.kind in "fc" else x,
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Selu": lambda x: _SCALE * np.where(x < 0, _ALPHA * np.expm1(np.minimum(x, 0)), x),
    "Sigmoid": sigmoid,
    "Sign": sign_of,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Softplus": lambda x: np.logaddexp(0, x),
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Spence": in_double(scipy.special.spence),
    "Sqrt": np.sqrt,
    "Square": np.square,
    "Tan": np.tan,
    "Tanh": np.tanh,
}

binary: dict[str, Callable[..., Any]] = {
    "AddV2": np.add,
    "Atan2": np.arctan2,
    "BitwiseAnd": np.bitwise_and,
    "BitwiseOr": np.bitwise_or,
    "BitwiseXor": np.bitwise_xor,
    "DivNoNan": lambda x, y: np.where(y == 0, 0, x / np.where(y == 0, 1, y)),
    "EluGrad": lambda dy, y: np.where(y < 0, dy * (y + 1), dy),
    "Equal": np.equal,
    "FloorDiv": lambda x, y: np.floor(x / y) if np.asarray(x).dtype.kind == "f" else np.floor_divide(x, y),
    "FloorMod": np.mod,
    "GeluErfGrad": in_double(lambda dy, x: dy * _gelu_slope(x)),
    "GeluTanhGrad": lambda dy, x: dy * _gelu_tanh_slope(x),
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
    "Igamma": in_double(scipy.special.gammainc),
    "Igammac": in_double(scipy.special.gammaincc),
    "LeftShift": np.left_shift,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "LogicalAnd": np.logical_and,
    "LogicalOr": np.logical_or,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Mul": np.multiply,
    "MulNoNan": lambda x, y: np.where(y == 0, 0, x * y),
    "NotEqual": np.not_equal,
    "Polygamma": in_double(lambda n, x: scipy.special.polygamma(n.astype(int), x)),
    "Pow": np.power,
    "RealDiv": np.divide,
    "ReciprocalGrad": lambda y, dy: np.where(dy == 0, 0, -dy * y * y),
    "Relu6Grad": lambda dy, x: np.where((x > 0) & (x < 6), dy, 0),
    "ReluGrad": lambda dy, x: np.where(x > 0, dy, 0),
    "RightShift": np.right_shift,
    "RsqrtGrad": lambda y, dy: np.where(dy == 0, 0, dy * y * y * y / -2),
    "SeluGrad": lambda dy, y: np.where(y < 0, dy * (y + _SCALE * _ALPHA), dy * _SCALE),
    "SigmoidGrad": lambda y, dy: dy * y * (1 - y),
    "SigmoidCrossEntropy": lambda x, z: np.logaddexp(0, x) - x * z,
    "SoftplusGrad": lambda dy, x: dy * sigmoid(x),
    "SoftsignGrad": lambda dy, x: dy / (1 + np.abs(x)) ** 2,
    "SqrtGrad": lambda y, dy: np.where(dy == 0, 0, dy / (2 * y)),
    "SquaredDifference": lambda x, y: (x - y) * np.conj(x - y),
    "Sub": np.subtract,
    "TanhGrad": lambda y, dy: dy * (1 - y * y),
    "TruncateDiv": _truncated_quotient,
    "TruncateMod": np.fmod,
    "Xdivy": lambda x, y: where_nonzero(x, lambda: x / y),
    "Xlog1py": lambda x, y: where_nonzero(x, lambda: x * np.log1p(y)),
    "Xlogy": lambda x, y: where_nonzero(x, lambda: x * np.log(y)),
    "Zeta": in_double(scipy.special.zeta),
}


def axes_of(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def _mean(x: Array, axis: Any, keepdims: bool) -> Array:
    if x.dtype.kind not in "iu":
        return np.mean(x, axis, keepdims=keepdims)
    return np.trunc(np.mean(x, axis, dtype=np.longdouble, keepdims=keepdims)).astype(x.dtype)


def _norm(x: Array, axis: Any, keepdims: bool) -> Array:
    squares = np.abs(x.astype(np.longdouble) if x.dtype.kind in "iu" else x) ** 2
    return np.sqrt(np.sum(squares, axis, keepdims=keepdims)).astype(x.dtype)


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Array, axis: Any = None, keepdims: bool = False) -> Any:
        return function(x, axes_of(axis), keepdims=keepdims)

    return run


reduction: dict[str, Callable[..., Any]] = {
    "All": _reduction(np.all),
    "Any": _reduction(np.any),
    "EuclideanNorm": _reduction(_norm),
    "SumOfSquares": _reduction(lambda x, axis, keepdims: np.sum(x * x, axis, x.dtype, keepdims=keepdims)),
    "Max": _reduction(np.max),
    "Mean": _reduction(_mean),
    "Min": _reduction(np.min),
    "Prod": _reduction(lambda x, axis, keepdims: np.prod(x, axis, dtype=x.dtype, keepdims=keepdims)),
    "Sum": _reduction(lambda x, axis, keepdims: np.sum(x, axis, dtype=x.dtype, keepdims=keepdims)),
}
