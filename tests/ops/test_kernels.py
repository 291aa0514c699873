"""Every primitive against NumPy or SciPy, in every dtype and layout; special values, integers, rounding.

First the counterparts, by operation name, or the reason why there is none; then the tests. A counterpart takes the
arguments of the primitive as arrays, floats in a wider type.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import scipy.special

import tapeflow as tf
from tapeflow._src import primitives
from tapeflow._src.primitives import facts_by_name
from tests.ops import samples
from tests.ops.samples import Maker

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


def _sigmoid(x: Any) -> Any:
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


def _sign(x: Any) -> Any:
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
    "Sigmoid": _sigmoid,
    "Sign": _sign,
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
    "SoftplusGrad": lambda dy, x: dy * _sigmoid(x),
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


def _axes(axis: Any) -> Any:
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
        return function(x, _axes(axis), keepdims=keepdims)

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


# --------------------------------------------------------------------------------------------- everything else


def _adjoint(x: Array) -> Array:
    return np.conj(np.swapaxes(x, -1, -2))


def _matmul(a: Array, b: Array, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False) -> Array:
    a = _adjoint(a) if adjoint_a else np.swapaxes(a, -1, -2) if transpose_a else a
    b = _adjoint(b) if adjoint_b else np.swapaxes(b, -1, -2) if transpose_b else b
    return np.matmul(a, b)


def _padded(x: Array, window: list, strides: list, padding: str, explicit: list, dilations: list, fill: float):
    """x with its padding, and the number of windows along each spatial dimension."""
    pads, counts = [], []
    for d, (size, stride, dilation) in enumerate(zip(window, strides, dilations)):
        reach, length = (size - 1) * dilation + 1, x.shape[d + 1]
        before, after = (0, 0) if padding != "EXPLICIT" else explicit[2 * d : 2 * d + 2]
        if padding == "SAME":
            total = max(0, (-(-length // stride) - 1) * stride + reach - length)
            before, after = total // 2, total - total // 2
        pads.append((before, after))
        counts.append((length + before + after - reach) // stride + 1)
    return np.pad(x, [(0, 0), *pads, (0, 0)], constant_values=fill), counts


def _windows(x: Array, window: list, strides: list, padding: str, explicit: list, dilations: list, fill: float = 0.0):
    """(offset in the window, the cells at that offset in all windows), for each offset."""
    wide, counts = _padded(x, window, strides, padding, explicit, dilations, fill)
    for offset in np.ndindex(*window):
        cut = [
            slice(o * dilation, o * dilation + (count - 1) * stride + 1, stride)
            for o, dilation, count, stride in zip(offset, dilations, counts, strides)
        ]
        yield offset, wide[(slice(None), *cut)]


def _conv(x: Array, f: Array, strides: list, padding: str, explicit: list, dilations: list) -> Array:
    windows = _windows(x, f.shape[:-2], strides, padding, explicit, dilations)
    return sum(cells @ f[offset] for offset, cells in windows)


def _depthwise(x: Array, f: Array, strides: list, padding: str, explicit: list, dilations: list) -> Array:
    windows = _windows(x, f.shape[:-2], strides, padding, explicit, dilations)
    parts = sum(cells[..., None] * f[offset] for offset, cells in windows)
    return parts.reshape(*parts.shape[:-2], -1)


def _transposed(function: Callable[..., Array], shape: list, dy: Array) -> Array:
    """The transpose of a linear function, applied to dy: its columns one by one."""
    result = np.zeros(shape, dy.dtype)
    for place in np.ndindex(*shape):
        unit = np.zeros(shape, dy.dtype)
        unit[place] = 1
        result[place] = np.sum(function(unit) * dy)
    return result


def _max_pool(x: Array, ksize: list, *geometry: Any) -> Array:
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    return np.max([cells for _, cells in _windows(x, ksize, *geometry, fill=lowest)], axis=0)


def _picked(x: Array, v: Array, ksize: list, *geometry: Any) -> Array:
    """The cells of v at the places where the windows of x have their largest cell."""
    values = np.array([cells for _, cells in _windows(x, ksize, *geometry, fill=-np.inf)])
    taken = np.array([cells for _, cells in _windows(v, ksize, *geometry)])
    return np.take_along_axis(taken, values.argmax(0)[None], 0)[0]


def _normalize_grad(x: Array, mean: Array, variance: Array, scale: Array, dy: Array, epsilon: float) -> tuple:
    factor = 1 / np.sqrt(variance + epsilon)
    columns = np.broadcast_to(mean, x.shape[-mean.ndim :]).shape[-1] if mean.ndim else 1

    def gathered(t: Array, shape: tuple) -> Array:
        t = np.broadcast_to(t, x.shape)
        wide = (1,) * (x.ndim - len(shape)) + shape
        return t.sum(tuple(i for i in range(x.ndim) if wide[i] == 1), keepdims=True).reshape(shape)

    dx = dy * scale * factor
    d_variance = gathered(-0.5 * dy * scale * (x - mean) * factor**3, variance.shape)
    per_column = [(t.reshape(-1, columns)).sum(0) for t in (dy * (x - mean) * factor, dy)]
    return dx, -gathered(dx, mean.shape), d_variance, *per_column


def _avg_pool(x: Array, ksize: list, *geometry: Any) -> Array:
    total = sum(cells for _, cells in _windows(x, ksize, *geometry))
    return total / sum(cells for _, cells in _windows(np.ones_like(x), ksize, *geometry))


def _max_pool_argmax(x: Array, ksize: list, *geometry: Any) -> tuple[Array, Array]:
    numbers = np.arange(x[0].size, dtype=float).reshape(1, *x.shape[1:]).repeat(len(x), 0)
    return _max_pool(x, ksize, *geometry), _picked(np.asarray(x, float), numbers, ksize, *geometry)


def _cross_entropy(logits: Array, labels: Array) -> tuple[Array, Array]:
    log = scipy.special.log_softmax(logits, -1)
    return -np.sum(labels * log, -1), np.exp(log) - labels


def _sparse_cross_entropy(logits: Array, labels: Array) -> tuple[Array, Array]:
    return _cross_entropy(logits, np.eye(logits.shape[-1])[labels])


def _gather(x: Array, indices: Array, axis: int = 0, batch_dims: int = 0) -> Array:
    if batch_dims == 0:
        return np.take(x, indices, axis)
    return np.stack([_gather(part, i, axis - 1, batch_dims - 1) for part, i in zip(x, indices)])


def _gather_nd(x: Array, indices: Array, batch_dims: int = 0) -> Array:
    if batch_dims == 0:
        return x[tuple(np.moveaxis(indices, -1, 0))]
    return np.stack([_gather_nd(part, i, batch_dims - 1) for part, i in zip(x, indices)])


def _scatter(x: Array, indices: Array, updates: Array, put: np.ufunc | None) -> Array:
    result = x.copy()
    places = tuple(np.moveaxis(indices, -1, 0))
    if put is None:
        result[places] = updates
    else:
        put.at(result, places, updates)
    return result


def _item(x: np.ndarray, numbers: list[int]) -> np.ndarray:
    parts: list[Any] = []
    for kind, begin, end, step, given in np.reshape(numbers, [-1, 5]).tolist():
        bounds = slice(begin if given & 1 else None, end if given & 2 else None, step)
        parts.append([begin, bounds, ..., None][kind])
    return x[tuple(parts)]


def _strided(x: Array, begin: list, step: list, count: list) -> Array:
    return x[np.ix_(*(b + s * np.arange(n) for b, s, n in zip(begin, step, count)))]


def _strided_spread(dy: Array, shape: list, begin: list, step: list) -> Array:
    result = np.zeros(shape, dy.dtype)
    result[np.ix_(*(b + s * np.arange(n) for b, s, n in zip(begin, step, dy.shape)))] = dy
    return result


def _segments(reduce: Callable[[Array], Array], empty: float) -> Callable[..., Array]:
    def run(data: Array, ids: Array, count: int | None = None) -> Array:
        count = int(ids.max()) + 1 if count is None else count
        rows = data.reshape(ids.size, *data.shape[ids.ndim :])
        parts = [rows[ids.ravel() == i] for i in range(count)]
        nothing = np.full(rows.shape[1:], empty, data.dtype)
        return np.stack([reduce(p).astype(data.dtype) if len(p) else nothing for p in parts])

    return run


def _scan(function: Callable[[Array], Array], start: float) -> Callable[..., Array]:
    def run(x: Array, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Array:
        lines = np.moveaxis(x, axis, 0)[:: -1 if reverse else 1]
        total = function(lines)
        if exclusive:
            total = np.concatenate([np.full_like(total[:1], start), total[:-1]])
        return np.moveaxis(total[:: -1 if reverse else 1], 0, axis)

    return run


def _recurrence(a: Array, b: Array, axis: int = 0, reverse: bool = False) -> Array:
    turn = -1 if reverse else 1
    a, b = (np.moveaxis(t, axis, 0)[::turn] for t in (a, b))
    rows = [b[0]]
    for k in range(1, len(b)):
        rows.append(b[k] + a[k] * rows[-1])
    return np.moveaxis(np.stack(rows)[::turn], 0, axis)


def _band(x: Array, lower: int, upper: int) -> Array:
    i, j = np.indices(x.shape[-2:])
    return np.where(((lower < 0) | (i - j <= lower)) & ((upper < 0) | (j - i <= upper)), x, np.zeros_like(x))


def _each(function: Callable[[Array], Array]) -> Callable[..., Array]:
    """A function of one matrix over a batch of them."""

    def run(x: Array) -> Array:
        matrices = x.reshape(-1, *x.shape[-2:])
        return np.stack([function(m) for m in matrices]).reshape(*x.shape[:-2], *x.shape[-2:])

    return run


def _exponential(x: Array) -> Array:
    """Taylor's series of x / 2^10 in extended precision, squared ten times."""
    x = x.astype(np.clongdouble if np.iscomplexobj(x) else np.longdouble) / 1024
    term = total = np.eye(len(x), dtype=x.dtype)
    for k in range(1, 20):
        term = term @ x / k
        total = total + term
    return np.linalg.matrix_power(total, 1024)


def _triangular_solve(matrix: Array, rhs: Array, lower: bool = True, adjoint: bool = False) -> Array:
    matrix = np.tril(matrix) if lower else np.triu(matrix)
    return np.linalg.solve(_adjoint(matrix) if adjoint else matrix, rhs)


def _tridiagonal_solve(diagonals: Array, rhs: Array) -> Array:
    upper, main, lower = diagonals
    return np.linalg.solve(np.diag(main) + np.diag(upper[:-1], 1) + np.diag(lower[1:], -1), rhs)


def _sparse_matmul(indices: Array, values: Array, b: Array, shape: list, adjoint: bool = False) -> Array:
    dense = np.zeros(shape, values.dtype)
    np.add.at(dense, tuple(indices.T), values)
    return (_adjoint(dense) if adjoint else dense) @ b


def _fourier(forward: Callable, inverse: Callable | None = None) -> Callable[..., Array]:
    def run(x: Array, rank: int, backwards: bool = False) -> Array:
        return (inverse if backwards else forward)(x, axes=range(-rank, 0))

    return run


def _split(x: Array, sizes: list, axis: int = 0) -> list[Array]:
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def _top_k(x: Array, k: int = 1, ordered: bool = True, ascending: bool = False) -> tuple[Array, Array]:
    order = np.argsort(x if ascending else -x.astype(float), -1, kind="stable")[..., :k]
    return np.take_along_axis(x, order, -1), order


def _stitch(indices: Array, rows: Array) -> Array:
    result = np.zeros((indices.max() + 1, *rows.shape[1:]), rows.dtype)
    result[indices] = rows
    return result


def _search(x: Array, values: Array, right: bool = False) -> Array:
    side = "right" if right else "left"
    return np.stack([np.searchsorted(row, v, side) for row, v in zip(x, values)])


others: dict[str, Callable[..., Any]] = {
    "AddN": lambda inputs: sum(inputs[1:], inputs[0]),
    "ArgMax": np.argmax,
    "ArgMin": np.argmin,
    "AvgPool": _avg_pool,
    "AvgPoolGrad": lambda dy, *g: _transposed(lambda x: _avg_pool(x, *g[:-1]), g[-1], dy),
    "Betainc": in_double(scipy.special.betainc),
    "BroadcastTo": np.broadcast_to,
    "Cast": lambda x, dtype: x,
    "CheckNumerics": lambda x, message: x,
    "Cholesky": np.linalg.cholesky,
    "Complex": lambda real, imag: real + 1j * imag,
    "ComplexAbs": np.abs,
    "ConcatV2": np.concatenate,
    "Conv": _conv,
    "ConvBackpropFilter": lambda x, dy, *g: _transposed(lambda f: _conv(x, f, *g[:-1]), g[-1], dy),
    "ConvBackpropInput": lambda f, dy, *g: _transposed(lambda x: _conv(x, f, *g[:-1]), g[-1], dy),
    "Cumprod": _scan(lambda x: np.cumprod(x, 0, dtype=x.dtype), 1),
    "Cumsum": _scan(lambda x: np.cumsum(x, 0, dtype=x.dtype), 0),
    "CumulativeLogsumexp": _scan(lambda x: np.logaddexp.accumulate(x, 0), -np.inf),
    "DepthwiseConv": _depthwise,
    "DepthwiseConvBackpropFilter": lambda x, dy, *g: _transposed(lambda f: _depthwise(x, f, *g[:-1]), g[-1], dy),
    "DepthwiseConvBackpropInput": lambda f, dy, *g: _transposed(lambda x: _depthwise(x, f, *g[:-1]), g[-1], dy),
    "DynamicPartition": lambda data, parts, count: [data[parts == i] for i in range(count)],
    "Eig": lambda x, compute_v: np.linalg.eigvals(x),
    "ExpandDims": np.expand_dims,
    "Fourier": _fourier(np.fft.fftn, np.fft.ifftn),
    "FourierToReal": lambda x, rank, n: np.fft.irfftn(x, [*x.shape[x.ndim - rank : -1], n], axes=range(-rank, 0)),
    "GatherNd": _gather_nd,
    "GatherSpread": lambda dy, i, shape, axis, batch: _transposed(lambda x: _gather(x, i, axis, batch), shape, dy),
    "GatherV2": _gather,
    "EnsureShape": lambda x, shape: x,
    "GetItem": _item,
    "Identity": lambda x: x,
    "Range": np.arange,
    "Shape": lambda x, out_type="int32": np.array(x.shape, out_type),
    "Imag": np.imag,
    "IsotonicRegression": lambda x: np.stack([-scipy.optimize.isotonic_regression(-row).x for row in x]),
    "LeakyRelu": lambda x, alpha=0.2: np.where(x > 0, x, alpha * x),
    "LeakyReluGrad": lambda dy, x, alpha=0.2: np.where(x > 0, dy, alpha * dy),
    "LinearRecurrence": _recurrence,
    "LogMatrixDeterminant": lambda x: tuple(np.linalg.slogdet(x)),
    "LogSoftmax": lambda x: scipy.special.log_softmax(x, -1),
    "MatMul": _matmul,
    "MatrixBandPart": _band,
    "MatrixDeterminant": np.linalg.det,
    "MatrixExponential": _each(_exponential),
    "MatrixInverse": lambda x, adjoint=False: np.linalg.inv(_adjoint(x) if adjoint else x),
    "MatrixLogarithm": _each(scipy.linalg.logm),
    "MatrixPseudoInverse": lambda x, rcond: np.linalg.pinv(x, rcond),
    "MatrixSolve": lambda a, b, adjoint=False: np.linalg.solve(_adjoint(a) if adjoint else a, b),
    "MatrixSquareRoot": _each(scipy.linalg.sqrtm),
    "MatrixTriangularSolve": _triangular_solve,
    "MaxPool": _max_pool,
    "MaxPoolGrad": lambda x, dy, *g: _transposed(lambda v: _picked(x, v, *g), list(x.shape), dy),
    "MaxPoolGradGrad": _picked,
    "MaxPoolWithArgmax": _max_pool_argmax,
    "EqualAsNumber": lambda x, y: (x == y).astype(np.result_type(x)),
    "Moments": lambda x, axes, _=True: (np.mean(x, tuple(axes), keepdims=True), np.var(x, tuple(axes), keepdims=True)),
    "Normalize": lambda x, m, v, k, b, e=0.0: (x - m) / np.sqrt(v + e) * k + b,
    "NormalizeGrad": _normalize_grad,
    "Pack": np.stack,
    "PadV2": lambda x, pads, value: np.pad(x, np.reshape(pads, (-1, 2)), constant_values=value),
    "Real": np.real,
    "RealFourier": _fourier(np.fft.rfftn),
    "Reshape": np.reshape,
    "ReverseV2": lambda x, axis: np.flip(x, tuple(axis)),
    "ScatterNd": lambda indices, updates, shape: _scatter(np.zeros(shape, updates.dtype), indices, updates, np.add),
    "SearchSorted": _search,
    "SegmentMax": _segments(lambda p: p.max(0), 0),
    "SegmentMin": _segments(lambda p: p.min(0), 0),
    "SegmentProd": _segments(lambda p: p.prod(0), 1),
    "SegmentSum": _segments(lambda p: p.sum(0), 0),
    "SelectV2": np.where,
    "Softmax": lambda x: scipy.special.softmax(x, -1),
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    "SoftmaxGrad": lambda y, dy: y * (dy - np.sum(y * dy, -1, keepdims=True)),
    "SparseSoftmaxCrossEntropyWithLogits": _sparse_cross_entropy,
    "SparseTensorDenseMatMul": _sparse_matmul,
    "SplitV": _split,
    "Squeeze": lambda x, axis=None: np.squeeze(x, _axes(axis)),
    "StitchRows": _stitch,
    "StopGradient": lambda x: x,
    "StraightThrough": lambda x, y: y,
    "StridedSlice": _strided,
    "StridedSliceGrad": _strided_spread,
    "TensorScatterAdd": lambda x, i, u: _scatter(x, i, u, np.add),
    "TensorScatterMax": lambda x, i, u: _scatter(x, i, u, np.maximum),
    "TensorScatterMin": lambda x, i, u: _scatter(x, i, u, np.minimum),
    "TensorScatterSub": lambda x, i, u: _scatter(x, i, u, np.subtract),
    "TensorScatterUpdate": lambda x, i, u: _scatter(x, i, u, None),
    "Tile": np.tile,
    "TopKV2": _top_k,
    "Transpose": lambda x, perm=None, conjugate=False: np.conj(x).transpose(perm) if conjugate else x.transpose(perm),
    "TridiagonalSolve": _tridiagonal_solve,
    "Unpack": lambda x, num=-1, axis=0: list(np.moveaxis(x, axis, 0)),
    "UnsortedSegmentProd": _segments(lambda p: p.prod(0), 1),
    "UnsortedSegmentSum": _segments(lambda p: p.sum(0), 0),
    "Where": lambda x: np.argwhere(x),
}

_random = "a stream of random numbers; test_random.py and the conformance values hold TensorFlow's"
_factors = "factors are unique up to signs only; see test_factors"
_diagonals = "NumPy has no stacks of diagonals with alignment; the conformance values cover it"
without_counterpart: dict[str, str] = {
    "Bitcast": "the bytes under another dtype",
    "CTCBeamSearchDecoder": "no counterpart; the conformance values cover it",
    "CTCLossCurvature": "the second derivative of CTCLossDense, which test_rules.py compares with differences",
    "CTCLossDense": "no counterpart; the conformance values cover it",
    "CombinedNonMaxSuppression": "no counterpart, and no test of its values yet",
    "DistinctElements": "in order of first appearance; np.unique sorts",
    "IgammaGradA": "the derivative of Igamma, which test_rules.py compares with differences",
    "IgammaGradAA": "the second derivative of Igamma, which test_rules.py compares with differences",
    "Lu": _factors,
    "MatrixDiagPartV3": _diagonals,
    "MatrixDiagV3": _diagonals,
    "MatrixSetDiagV3": _diagonals,
    "MaxPoolGradGradWithArgmax": "a gather by positions, whose rule test_rules.py checks",
    "MaxPoolGradWithArgmax": "a scatter by positions, whose rule test_rules.py checks",
    "NextAfter": "NumPy's works in the type of its operands only; see test_next_after",
    "NonMaxSuppressionV5": "no counterpart; the conformance values cover it",
    "NonMaxSuppressionWithOverlaps": "no counterpart, and no test of its values yet",
    "PhiloxAdvance": _random,
    "PhiloxBinomial": _random,
    "PhiloxBoundedNormal": _random,
    "PhiloxCandidates": _random,
    "PhiloxMultinomial": _random,
    "PhiloxPoisson": _random,
    "PhiloxShuffle": _random,
    "Qr": _factors,
    "RandomIndexShuffle": _random,
    "RandomGammaGrad": "SciPy has no derivative of a quantile by its parameter",
    "Resample": "a banded matrix product; the conformance values of tf.image.resize cover it",
    "ResampleTransposed": "the transpose of Resample, which test_rules.py checks",
    "SelfAdjointEigV2": _factors,
    "StatelessRandomGammaV3": _random,
    "StatelessRandomGetKeyCounter": _random,
    "StatelessRandomNormalV2": _random,
    "StatelessRandomUniformFullIntV2": _random,
    "StatelessRandomUniformIntV2": _random,
    "StatelessRandomUniformV2": _random,
    "StatelessTruncatedNormalV2": _random,
    "Svd": _factors,
    "UnsortedSegmentMax": "an empty segment is the dtype's lowest number; see the conformance values",
    "UnsortedSegmentMin": "an empty segment is the dtype's highest number; see the conformance values",
}


# ------------------------------------------------------------------------------------------------------- comparing

EPSILON = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
EPSILON |= {"complex64": EPSILON["float32"], "complex128": EPSILON["float64"]}
HALVES = ("float16", "bfloat16")
WIDER = {"float64": np.longdouble, "complex64": np.complex128, "complex128": np.clongdouble}
WIDER |= dict.fromkeys(("float16", "bfloat16", "float32"), np.float64)
LARGEST = {"float16": 65504.0, "bfloat16": 3.3895314e38, "float32": 3.4028235e38, "float64": 1.797e308}
LARGEST |= {"complex64": LARGEST["float32"], "complex128": LARGEST["float64"]}

# Units in the last place that an elementwise result may be away from the true value, where it is not 4.
ulps_by_name = {"Erf": 4, "Erfc": 4, "GeluErf": 16, "GeluTanh": 16, "Dawsn": 128, "Polygamma": 512}
ulps_by_name |= dict.fromkeys(["Zeta", "Igamma", "Igammac"], 1024)
COMPLEX_ULPS = 16

# A difference of close numbers is as exact as these numbers are.
cancelling = {name for name in facts_by_name if name.endswith("Grad")} | {"GeluTanh", "GeluErf", "SigmoidCrossEntropy"}
cancelling |= {"BesselJ0", "BesselJ1", "BesselY0", "BesselY1", "Digamma", "Expint", "Lgamma", "Ndtri"}  # near a root


def ulps_of(name: str) -> float:
    return ulps_by_name.get(name, getattr(counterpart_by_name[name], "ulps", 4))


def widened(value: Any) -> Any:
    """Float arrays in the wider type that the counterparts compute in; everything else as it is."""
    if isinstance(value, list):
        return [widened(v) for v in value]
    if tf.is_tensor(value):
        value = np.asarray(value)
    if isinstance(value, np.ndarray) and value.dtype.name in WIDER:
        return value.astype(WIDER[value.dtype.name])
    return value


def assert_near(got: Array, expected: Any, ulps: float, what: str, scale: Any = 0) -> None:
    """Equal but for rounding: `ulps` units of the dtype, or, for the half types, one rounding of a float32 result."""
    __tracebackhide__ = True
    expected = np.asarray(expected)
    assert got.shape == expected.shape, f"{what}: shape {got.shape}, expected {expected.shape}"
    if got.dtype.kind not in "fcV" and got.dtype.name not in HALVES:
        wrong = got != expected
    else:
        wide = got.astype(WIDER[got.dtype.name])
        size = np.maximum(np.where(np.isfinite(np.abs(expected)), np.abs(expected), 1), scale)
        unit = EPSILON[got.dtype.name]
        tiny = 2.0**-24 if got.dtype.name == "float16" else 1e-37 if got.dtype.itemsize <= 4 else 1e-300
        allowed = (unit * 0.5 + 8 * ulps * EPSILON["float32"]) if got.dtype.name in HALVES else ulps * unit
        with np.errstate(all="ignore"):
            near = np.abs(wide - expected) <= allowed * size + tiny
        overflow = np.abs(expected) >= LARGEST.get(got.dtype.name, np.inf) * (1 - unit)
        same = (wide == expected) | (np.isnan(wide) & np.isnan(expected)) | (overflow & ~np.isfinite(wide))
        wrong = ~(near | same)
    if wrong.any():
        i = tuple(map(int, np.argwhere(wrong)[0]))
        pytest.fail(f"{what} at {i}: got {got[i]!r}, expected {expected[i]!r} ({wrong.sum()} wrong)", pytrace=False)


def scale_of(name: str, operands: list[Array]) -> Any:
    return sum(np.abs(widened(x)) for x in operands) if name in cancelling else 0


def evaluate(name: str, *args: Any, **kwargs: Any) -> list[Array]:
    return [np.asarray(y) for y in tf.nest.flatten(getattr(primitives, name)(*args, **kwargs))]


# -------------------------------------------------------------------------------------------------- every primitive

counterpart_by_name = unary | binary | reduction | others
ELEMENTWISE = [n for n in facts_by_name if n in unary or n in binary]


@pytest.mark.parametrize("name", facts_by_name)
def test_every_primitive_has_a_counterpart_or_a_reason(name):
    known = (name in counterpart_by_name) + (name in without_counterpart)
    assert known == 1, (
        f"The primitive {name} must be compared with NumPy or SciPy: add it to a dict of counterparts in "
        f"tests/ops/test_kernels.py, or to without_counterpart with the reason."
    )


def domains_of(name: str) -> list[samples.Domain]:
    return list(samples.binary_domain(name)) if name in binary else [samples.unary_domain(name)]


PAIRS = [((), (7,)), ((7,), ()), ((3, 1), (1, 5)), ((2, 3, 5), (3, 1)), ((5,), (2, 3, 5)), ((0, 3), (1, 1))]


def layouts(name: str, dtype: str) -> Iterator[tuple[str, list[Array]]]:
    """Operands in all the forms that a kernel may treat apart."""
    m, domains = Maker(0, dtype), domains_of(name)
    for shape in [(), (0,), (2, 0, 3), (1,), (3,), (7,), (17,), (33,), (5, 13)]:
        yield f"shape {shape}", [m(*shape, within=domain) for domain in domains]
    yield "strided", [m(6, 10, within=domain)[::2, ::-3].T for domain in domains]
    if len(domains) == 2:
        for pair in PAIRS:
            yield f"broadcast {pair}", [m(*shape, within=domain) for shape, domain in zip(pair, domains)]
    if dtype in ("float32", "float64", "int32"):
        yield "large", [m(140_001, within=domain) for domain in domains]
        if len(domains) == 2:
            yield "large broadcast", [m(401, 1, within=domains[0]), m(403, within=domains[1])]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name):
    for dtype in samples.dtypes_of(name):
        if dtype == "string":
            continue
        ulps = max(ulps_of(name), COMPLEX_ULPS if dtype in samples.COMPLEXES else 0)
        for layout, operands in layouts(name, dtype):
            with np.errstate(all="ignore"):
                expected = counterpart_by_name[name](*map(widened, operands))
            (got,) = evaluate(name, *operands)
            assert_near(got, expected, ulps, f"{name} {dtype} {layout}", scale_of(name, operands))


@pytest.mark.parametrize("name", [n for n in ELEMENTWISE if n in unary and n not in samples.domain_by_unary])
def test_elementwise_over_many_magnitudes(name):
    """From 1e-6 to 1e4: reductions of the argument, cancellation near zero, overflow; SciPy is exact up to 5 or so."""
    largest = 5 if hasattr(unary[name], "ulps") else 1e4
    for dtype in ("float32", "float64"):
        if dtype in samples.dtypes_of(name):
            sizes = np.geomspace(1e-6, largest, 2001)
            x = np.concatenate([-sizes, sizes]).astype(dtype)
            with np.errstate(all="ignore"):
                expected = counterpart_by_name[name](widened(x))
            (got,) = evaluate(name, x)
            assert_near(got, expected, ulps_of(name), f"{name} {dtype}", scale_of(name, [x]))


REST = [n for n in facts_by_name if n in reduction or n in others]


@pytest.mark.parametrize("name", REST)
def test_others(name):
    for dtype in samples.dtypes_of(name):
        for seed in range(8):
            for builder in samples.builders(name):
                call = builder(Maker(seed, dtype))
                if np.asarray(tf.nest.flatten(list(call.args))[0]).dtype.kind in "OS":
                    continue
                compare(name, dtype, call)


def compare(name: str, dtype: str, call: samples.Call) -> None:
    args, kwargs = [widened(a) for a in call.args], {k: widened(v) for k, v in call.kwargs.items()}
    if name in others and name not in KEEPS_PRECISION:  # SciPy and LAPACK know no wider type
        args = [narrowed(a) for a in args]
    with np.errstate(all="ignore"):
        expected = counterpart_by_name[name](*args, **kwargs)
    expected = list(expected) if isinstance(expected, tuple | list) else [expected]
    for got, wanted in zip(evaluate(name, *call.args, **call.kwargs), expected):
        wanted = np.asarray(wanted)
        what = f"{name} {dtype} {[a.shape if isinstance(a, np.ndarray) else a for a in call.args]} {call.kwargs}"
        if got.dtype.kind == "c":
            wanted = wanted + 0j
        if got.dtype.kind in "fcV" or got.dtype.name in HALVES:
            # Sums: the error is measured against the largest number that takes part.
            parts = [wanted, *(a for a in tf.nest.flatten([args, list(kwargs.values())]) if is_float(a))]
            largest = max(float(np.max(np.abs(a), initial=0, where=np.isfinite(a))) for a in parts)
            assert got.shape == wanted.shape, f"{what}: shape {got.shape}, expected {wanted.shape}"
            unit = EPSILON[got.dtype.name]
            room = tolerance_by_name.get(name, 16) * (EPSILON["float32"] if got.dtype.name in HALVES else unit)
            room += unit / 2 if got.dtype.name in HALVES else 0
            np.testing.assert_allclose(got.astype(wanted.dtype), wanted, 0, room * (largest + 1e-30), err_msg=what)
        else:
            np.testing.assert_array_equal(got, wanted, err_msg=what)


def is_float(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc"


def narrowed(value: Any) -> Any:
    if isinstance(value, list):
        return [narrowed(v) for v in value]
    if isinstance(value, np.ndarray) and value.dtype.char in "gG":
        return value.astype(np.float64 if value.dtype.char == "g" else np.complex128)
    return value


# Counterparts that are plain NumPy, so that float64 is compared with a wider result.
KEEPS_PRECISION = {"AddN", "MatMul", "Cumsum", "Cumprod", "Conv", "AvgPool", "SoftmaxGrad"}
# In units of the dtype's epsilon, relative to the largest element.
tolerance_by_name = {"MatrixLogarithm": 1024, "Betainc": 512} | dict.fromkeys(
    ["Eig", "MatrixExponential", "MatrixInverse", "MatrixPseudoInverse", "MatrixSolve", "MatrixSquareRoot"], 256
)


# --------------------------------------------------------------------------------------- large enough for threads

large_by_name: dict[str, Callable[[Maker], samples.Call]] = {
    "BroadcastTo": lambda m: samples.call(m(257, 1, 3), [257, 301, 3]),
    "ConcatV2": lambda m: samples.call([m(301, 203), m(301, 77)], 1),
    "Conv": lambda m: samples.call(m(3, 29, 31, 17), m(3, 3, 17, 19), [1, 1], "SAME", [], [1, 1]),
    "Cumsum": lambda m: samples.call(m(201, 503), 1),
    "Cumprod": lambda m: samples.call(m(203, 501, within=[(0.9, 1.1)]), 1),
    "EuclideanNorm": lambda m: samples.call(m(30_011, 7), 0, False),
    "GatherV2": lambda m: samples.call(m(503, 67), m.index(503, 2001)),
    "LogSoftmax": lambda m: samples.call(m(301, 401)),
    "MatMul": lambda m: samples.call(m(301, 257), m(257, 283)),
    "Max": lambda m: samples.call(m(301, 503), 1, False),
    "MaxPool": lambda m: samples.call(m.distinct(4, 63, 65, 17), [3, 3], [2, 2], "SAME", [], [1, 1]),
    "Mean": lambda m: samples.call(m(301, 503), 0, True),
    "Moments": lambda m: samples.call(m(30_011, 7), [0]),
    "Normalize": lambda m: samples.call(m(301, 503), m(301, 1), m(301, 1, within=[(0.5, 3)]), m(503), m(503), 0.1),
    "NormalizeGrad": lambda m: samples.call(
        m(301, 503), m(301, 1), m(301, 1, within=[(0.5, 3)]), m(503), m(301, 503), 0.1
    ),
    "Pack": lambda m: samples.call([m(301, 203), m(301, 203)], -1),
    "Prod": lambda m: samples.call(m(301, 17, 29), [0, 2], False),
    "ReverseV2": lambda m: samples.call(m(301, 503), [0, 1]),
    "SelectV2": lambda m: samples.call(m.flags(301, 503), m(301, 503), m(503)),
    "Softmax": lambda m: samples.call(m(301, 401)),
    "Sum": lambda m: samples.call(*m.choose(((m(151_003), None, False), (m(30_011, 5), [0], False)))),
    "Transpose": lambda m: samples.call(m(61, 53, 47), [2, 0, 1]),
}


@pytest.mark.parametrize("name", large_by_name)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large(name, dtype):
    tolerance = tolerance_by_name.get(name, 16)
    tolerance_by_name[name] = 256
    try:
        compare(name, dtype, large_by_name[name](Maker(0, dtype)))
    finally:
        tolerance_by_name[name] = tolerance


# ---------------------------------------------------------------------------------- NaN, infinities and signed zeros

SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0])
any_zero = {"Maximum", "Minimum", "FloorMod", "Softsign"}  # which of two zeros is not said
elsewhere = {n for n in ELEMENTWISE if hasattr(counterpart_by_name[n], "ulps")}  # limits and poles are conventions
elsewhere |= {"GeluErf", "GeluErfGrad", "GeluTanh", "GeluTanhGrad", "EluGrad", "SeluGrad"}  # no limit at infinity
WITH_SPECIAL = [n for n in ELEMENTWISE if "float64" in samples.dtypes_of(n) and n not in elsewhere]


@pytest.mark.parametrize("name", WITH_SPECIAL)
def test_special_values(name):
    operands = [SPECIAL] if name in unary else [a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL)]
    for dtype in ("float32", "float64"):
        values = [a.astype(dtype) for a in operands]
        with np.errstate(all="ignore"):
            expected = np.asarray(counterpart_by_name[name](*values))
        (got,) = evaluate(name, *values)
        if got.dtype.kind == "b":
            np.testing.assert_array_equal(got, expected, err_msg=name)
            continue
        what = f"{name} {dtype} of {list(zip(*(v.tolist() for v in values)))}"
        np.testing.assert_allclose(got, expected.astype(dtype), rtol=1e-5, err_msg=what)
        if name not in any_zero:
            zero = (got == 0) & (expected == 0)
            np.testing.assert_array_equal(np.signbit(got)[zero], np.signbit(expected)[zero], f"sign of zero: {what}")


@pytest.mark.parametrize("name", ["Max", "Min", "Sum", "Prod", "Mean"])
@pytest.mark.parametrize("place", [0, 3, 70])
def test_reductions_keep_nan(name, place):
    for dtype in samples.FLOATS:
        x = np.ones(71).astype(dtype if dtype != "bfloat16" else ml_dtypes.bfloat16)
        x[place] = np.nan
        assert np.isnan(evaluate(name, x)[0].astype(float)), f"{name} {dtype}"


# ---------------------------------------------------------------------------------------------------------- integers

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_wrap(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    edges = np.array([low, low + 1, 0, 1, high - 1, high], dtype)
    a, b = (t.ravel() for t in np.meshgrid(edges, edges))
    with np.errstate(all="ignore"):
        for name in ("AddV2", "Sub", "Mul", "SquaredDifference", "Maximum", "Minimum"):
            np.testing.assert_array_equal(evaluate(name, a, b)[0], binary[name](a, b), name)
        for name in ("Neg", "Square", "Abs", "Sign"):
            np.testing.assert_array_equal(evaluate(name, edges)[0], unary[name](edges).astype(dtype), name)
        a, b = a[b != 0], b[b != 0]
        for name in ("FloorDiv", "FloorMod", "TruncateMod"):
            np.testing.assert_array_equal(evaluate(name, a, b)[0], binary[name](a, b), name)
        for name in ("Sum", "Prod"):
            np.testing.assert_array_equal(evaluate(name, edges)[0], reduction[name](edges), name)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["FloorDiv", "FloorMod", "TruncateDiv", "TruncateMod"])
def test_division_by_zero_is_an_error(name, dtype):
    with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
        evaluate(name, np.array([1], dtype), np.array([0], dtype))


@pytest.mark.parametrize("dtype", [dtype for dtype in INTEGERS if not dtype.endswith("64")])
def test_a_mean_of_integers_does_not_overflow(dtype):
    high = np.iinfo(dtype).max
    np.testing.assert_array_equal(evaluate("Mean", np.array([high, high, high - 3], dtype))[0], high - 1)


# ------------------------------------------------------------------------------------------------ one by one


def test_next_after():
    x = np.array([1.0, -1.0, 0.0, 5.0, np.inf, np.nan], np.float32)
    for direction in (10.0, -10.0, 5.0):
        other = np.full_like(x, direction)
        np.testing.assert_array_equal(evaluate("NextAfter", x, other)[0], np.nextafter(x, other))


@pytest.mark.parametrize("source", samples.dtypes_of("Cast"))
def test_casts(source):
    m = Maker(1, source)
    x = m(41)
    for target in samples.dtypes_of("Cast"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if source in samples.FLOATS + samples.COMPLEXES and target.startswith("uint"):
                x = np.abs(x).astype(x.dtype)
            expected = x.astype(ml_dtypes.bfloat16 if target == "bfloat16" else target)
        got = np.asarray(primitives.Cast(x, getattr(tf, target)))
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected, f"{source} to {target}")


@pytest.mark.parametrize("dtype", HALVES)
def test_floats_are_rounded_to_nearest_even(dtype):
    """Half types from float32: all ties, overflow and subnormals as ml_dtypes and NumPy round them."""
    target = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.float16
    bits = np.random.default_rng(0).integers(0, 2**32, 100_000, dtype=np.uint32)
    bits = np.concatenate([bits, bits & 0xFFFFF000 | 0x1000, bits & 0xFFFF0000 | 0x8000])
    x = bits.view(np.float32)
    with np.errstate(all="ignore"):
        expected = x.astype(target)
    got = np.asarray(primitives.Cast(x, getattr(tf, dtype)))
    np.testing.assert_array_equal(np.isnan(got), np.isnan(expected))
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(got.view(np.uint16)[number], expected.view(np.uint16)[number])


def _multiplied(lu: Array) -> Array:
    return (np.tril(lu, -1) + np.eye(lu.shape[-1])) @ np.triu(lu)


# Factors, multiplied out again: the factors themselves are unique up to signs.
product_by_name: dict[str, Callable[..., Array]] = {
    "Lu": lambda x, lu, p: _multiplied(lu) - np.take_along_axis(x, p[..., None], -2),
    "Qr": lambda x, q, r: q @ r - x,
    "SelfAdjointEigV2": lambda x, e, v: (v * e[..., None, :]) @ _adjoint(v) - x,
    "Svd": lambda x, s, u, v: (u * s[..., None, :]) @ _adjoint(v) - x,
}


@pytest.mark.parametrize("name", [name for name in product_by_name if name in facts_by_name] or [None])
def test_factors(name):
    if name is None:
        return
    for dtype in ("float32", "float64", "complex64", "complex128"):
        call = samples.builders(name)[0](Maker(0, dtype))
        error = product_by_name[name](call.args[0], *evaluate(name, *call.args, **call.kwargs))
        assert np.abs(error).max() < 100 * EPSILON[dtype], f"{name} {dtype}"
