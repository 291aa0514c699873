"""What NumPy and SciPy say each primitive must compute, by operation name; and why a primitive has no counterpart there.

A counterpart takes the arguments of the primitive as arrays. Elementwise ones are given arrays of a wider type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.special

Array = np.ndarray


def in_double(function: Callable[..., Any]) -> Callable[..., Any]:
    """SciPy's special functions know float64 and complex128 as their widest types."""

    def run(*args: Any) -> Any:
        return function(*(np.asarray(a, complex if np.iscomplexobj(a) else float) for a in args))

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
    "Erf": in_double(scipy.special.erf),
    "Erfc": in_double(scipy.special.erfc),
    "Erfinv": in_double(scipy.special.erfinv),
    "Exp": np.exp,
    "Expint": in_double(scipy.special.expi),
    "Expm1": np.expm1,
    "Floor": np.floor,
    "FresnelCos": in_double(lambda x: scipy.special.fresnel(x)[1]),
    "FresnelSin": in_double(lambda x: scipy.special.fresnel(x)[0]),
    "GeluErf": in_double(lambda x: x * scipy.special.ndtr(x)),
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
    "ReciprocalGrad": lambda y, dy: -dy * y * y,
    "Relu6Grad": lambda dy, x: np.where((x > 0) & (x < 6), dy, 0),
    "ReluGrad": lambda dy, x: np.where(x > 0, dy, 0),
    "RightShift": np.right_shift,
    "RsqrtGrad": lambda y, dy: dy * y * y * y / -2,
    "SeluGrad": lambda dy, y: np.where(y < 0, dy * (y + _SCALE * _ALPHA), dy * _SCALE),
    "SigmoidGrad": lambda y, dy: dy * y * (1 - y),
    "SoftplusGrad": lambda dy, x: dy * _sigmoid(x),
    "SoftsignGrad": lambda dy, x: dy / (1 + np.abs(x)) ** 2,
    "SqrtGrad": lambda y, dy: dy / (2 * y),
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


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Array, axis: Any = None, keepdims: bool = False) -> Any:
        return function(x, _axes(axis), keepdims=keepdims)

    return run


reduction: dict[str, Callable[..., Any]] = {
    "All": _reduction(np.all),
    "Any": _reduction(np.any),
    "EuclideanNorm": _reduction(
        lambda x, axis, keepdims: np.sqrt(np.sum((x * np.conj(x)), axis, keepdims=keepdims)).astype(x.dtype)
    ),
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
    parts = sum(
        cells[..., None] * f[offset] for offset, cells in _windows(x, f.shape[:-2], strides, padding, explicit, dilations)
    )
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


def _strided(x: Array, begin: list, step: list, count: list) -> Array:
    return x[np.ix_(*(b + s * np.arange(n) for b, s, n in zip(begin, step, count)))]


def _strided_spread(dy: Array, shape: list, begin: list, step: list) -> Array:
    result = np.zeros(shape, dy.dtype)
    result[np.ix_(*(b + s * np.arange(n) for b, s, n in zip(begin, step, dy.shape)))] = dy
    return result


def _segments(reduce: Callable[[Array], Array], empty: Callable[[np.dtype], Any]) -> Callable[..., Array]:
    def run(data: Array, ids: Array, count: int | None = None) -> Array:
        count = int(ids.max()) + 1 if count is None else count
        rows = data.reshape(ids.size, *data.shape[ids.ndim :])
        parts = [rows[ids.ravel() == i] for i in range(count)]
        return np.stack([reduce(p).astype(data.dtype) if len(p) else np.full(rows.shape[1:], empty(data.dtype)) for p in parts])

    return run


def _least(dtype: np.dtype) -> Any:
    return np.iinfo(dtype).min if dtype.kind in "iu" else np.asarray(np.finfo(float).min).astype(dtype) * 1


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
    "Identity": lambda x: x,
    "Imag": np.imag,
    "LeakyRelu": lambda x, alpha=0.2: np.where(x > 0, x, alpha * x),
    "LeakyReluGrad": lambda dy, x, alpha=0.2: np.where(x > 0, dy, alpha * dy),
    "LinearRecurrence": _recurrence,
    "LogMatrixDeterminant": lambda x: tuple(np.linalg.slogdet(x)),
    "LogSoftmax": lambda x: scipy.special.log_softmax(x, -1),
    "MatMul": _matmul,
    "MatrixBandPart": _band,
    "MatrixDeterminant": np.linalg.det,
    "MatrixExponential": _each(scipy.linalg.expm),
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
    "Pack": np.stack,
    "PadV2": lambda x, pads, value: np.pad(x, np.reshape(pads, (-1, 2)), constant_values=value),
    "Real": np.real,
    "RealFourier": _fourier(np.fft.rfftn),
    "Reshape": np.reshape,
    "ReverseV2": lambda x, axis: np.flip(x, tuple(axis)),
    "ScatterNd": lambda indices, updates, shape: _scatter(np.zeros(shape, updates.dtype), indices, updates, np.add),
    "SearchSorted": _search,
    "SegmentMax": _segments(lambda p: p.max(0), lambda _: 0),
    "SegmentMin": _segments(lambda p: p.min(0), lambda _: 0),
    "SegmentProd": _segments(lambda p: p.prod(0), lambda _: 1),
    "SegmentSum": _segments(lambda p: p.sum(0), lambda _: 0),
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
    "UnsortedSegmentProd": _segments(lambda p: p.prod(0), lambda _: 1),
    "UnsortedSegmentSum": _segments(lambda p: p.sum(0), lambda _: 0),
    "Where": lambda x: np.argwhere(x),
}

_random = "a stream of random numbers; tests/reference holds TensorFlow's"
_factors = "factors are unique up to signs only; tested by their product in test_linalg.py"
_diagonals = "NumPy has no stacks of diagonals with alignment; the conformance values cover it"
without_counterpart: dict[str, str] = {
    "Bitcast": "the bytes under another dtype",
    "CTCBeamSearchDecoder": "no counterpart; the conformance values cover it",
    "CTCLossCurvature": "the second derivative of CTCLossDense, which test_rules.py compares with differences",
    "CTCLossDense": "no counterpart; the conformance values cover it",
    "CombinedNonMaxSuppression": "no counterpart; the conformance values cover it",
    "DistinctElements": "in order of first appearance; np.unique sorts",
    "IgammaGradA": "the derivative of Igamma, which test_rules.py compares with differences",
    "IgammaGradAA": "the second derivative of Igamma, which test_rules.py compares with differences",
    "IsotonicRegression": "compared with scipy.optimize in test_nn.py",
    "Lu": _factors,
    "MatrixDiagPartV3": _diagonals,
    "MatrixDiagV3": _diagonals,
    "MatrixSetDiagV3": _diagonals,
    "MaxPoolGradGradWithArgmax": "a gather by positions, whose rule test_rules.py checks",
    "MaxPoolGradWithArgmax": "a scatter by positions, whose rule test_rules.py checks",
    "NextAfter": "NumPy's works in the type of its operands only; see test_next_after",
    "NonMaxSuppressionV5": "no counterpart; the conformance values cover it",
    "NonMaxSuppressionWithOverlaps": "no counterpart; the conformance values cover it",
    "PhiloxAdvance": _random,
    "PhiloxBinomial": _random,
    "PhiloxMultinomial": _random,
    "PhiloxPoisson": _random,
    "PhiloxShuffle": _random,
    "Qr": _factors,
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
