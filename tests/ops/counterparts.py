"""NumPy and SciPy counterparts of all other primitives, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.special

from tests.ops.elementwise_counterparts import Array, axes_of, in_double

# --------------------------------------------------------------------------------------------- everything else


def adjoint_of(x: Array) -> Array:
    return np.conj(np.swapaxes(x, -1, -2))


def _matmul(a: Array, b: Array, transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False) -> Array:
    a = adjoint_of(a) if adjoint_a else np.swapaxes(a, -1, -2) if transpose_a else a
    b = adjoint_of(b) if adjoint_b else np.swapaxes(b, -1, -2) if transpose_b else b
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


def _nothing(shape: list[int], dtype: np.dtype) -> Array:
    return np.full(shape, b"", object) if dtype.kind == "O" else np.zeros(shape, dtype)


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
    return np.linalg.solve(adjoint_of(matrix) if adjoint else matrix, rhs)


def _tridiagonal_solve(diagonals: Array, rhs: Array) -> Array:
    upper, main, lower = diagonals
    return np.linalg.solve(np.diag(main) + np.diag(upper[:-1], 1) + np.diag(lower[1:], -1), rhs)


def _sparse_matmul(indices: Array, values: Array, b: Array, shape: list, adjoint: bool = False) -> Array:
    dense = np.zeros(shape, values.dtype)
    np.add.at(dense, tuple(indices.T), values)
    return (adjoint_of(dense) if adjoint else dense) @ b


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
    "GatherGrad": lambda dy, i, shape, axis, batch: _transposed(lambda x: _gather(x, i, axis, batch), shape, dy),
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
    "MatrixInverse": lambda x, adjoint=False: np.linalg.inv(adjoint_of(x) if adjoint else x),
    "MatrixLogarithm": _each(scipy.linalg.logm),
    "MatrixPseudoInverse": lambda x, rcond: np.linalg.pinv(x, rcond),
    "MatrixSolve": lambda a, b, adjoint=False: np.linalg.solve(adjoint_of(a) if adjoint else a, b),
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
    "RollAxis": np.roll,
    "ScatterNd": lambda indices, updates, shape: _scatter(_nothing(shape, updates.dtype), indices, updates, np.add),
    "CountValues": lambda x, size: np.bincount(x.ravel(), minlength=size)[:size],
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
    "Squeeze": lambda x, axis=None: np.squeeze(x, axes_of(axis)),
    "StitchRows": _stitch,
    "StopGradient": lambda x: x,
    "StraightThrough": lambda x, y: y,
    "StridedSlice": _strided,
    "Sort": lambda x, ascending=True: np.sort(x) if ascending else np.sort(x)[..., ::-1],
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
