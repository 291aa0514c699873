"""Sample inputs for every primitive, and what tests must know of it: where it is smooth, which inputs have no gradient.

The families unary, binary and reduction get their inputs from their domain; every other primitive has a row. A row is
a list of builders; a builder takes a `Maker` and returns the arguments of one call. Arrays of floats among them are
what gradients are asked for; a float that is a constant is given as a tensor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import tapeflow as tf
from tapeflow._src import primitives
from tapeflow._src.primitives import facts_by_name

Interval = tuple[float, float]
Domain = Sequence[Interval]

# Both sides of zero, but not zero itself, where many functions have a corner or a pole.
AROUND_ZERO: Domain = [(-2, -0.2), (0.2, 2)]
POSITIVE: Domain = [(0.2, 3)]


class Call(NamedTuple):
    """One call of a primitive: arrays of floats among the arguments are what a gradient may be asked for."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def run(self, name: str) -> Any:
        return getattr(primitives, name)(*self.args, **self.kwargs)


Builder = Callable[["Maker"], Call]


def call(*args: Any, **kwargs: Any) -> Call:
    return Call(args, kwargs)


class Maker:
    """Makes arrays of a dtype from a seed. `choose` picks one of several options: by chance or as hypothesis likes."""

    def __init__(self, seed: int, dtype: Any, choose: Callable[[Sequence[Any]], Any] | None = None):
        self.random = np.random.default_rng(seed)
        self.dtype = ml_dtypes.bfloat16 if dtype == "bfloat16" else "S" if dtype == "string" else np.dtype(dtype)
        self.choose = choose or (lambda options: options[self.random.integers(len(options))])

    @property
    def kind(self) -> str:
        return np.dtype(self.dtype).kind

    def __call__(self, *shape: int, within: Domain = AROUND_ZERO) -> np.ndarray:
        """An array of the dtype, with values from the domain; complex values lie above it, off all branch cuts."""
        if self.kind == "S":
            return self.random.choice(np.array([b"", b"a", b"tape", b"flow"], object), shape)
        if self.kind == "b":
            return self.random.random(shape) < 0.5
        low, high = np.array(within, float).T
        part = self.random.integers(len(low), size=shape)
        values = self.random.uniform(low[part], high[part])
        if self.kind in "iu":
            sign = np.sign(values) if self.kind == "i" else 1
            return np.asarray(sign * self.random.integers(1, 7, shape)).astype(self.dtype)
        if self.kind == "c":
            values = values + 1j * self.random.uniform(0.2, 1.0, shape)
        return np.asarray(values).astype(self.dtype)

    def distinct(self, *shape: int) -> np.ndarray:
        """Values of which no two are close: for extrema and sorting."""
        count = int(np.prod(shape))
        values = (self.random.permutation(count) - count // 2 + self.random.uniform(0.2, 0.8, count)).reshape(shape)
        if self.kind in "fV":
            return np.asarray(values * 0.5).astype(self.dtype)
        if self.kind in "iu":
            return np.asarray(np.floor(values) + (count // 2 if self.kind == "u" else 0)).astype(self.dtype)
        return self(*shape)

    def index(self, limit: int, *shape: int) -> np.ndarray:
        return self.random.integers(0, limit, shape)

    def places(self, limit: int, count: int) -> np.ndarray:
        """`count` different positions below `limit`, as a column."""
        return self.random.permutation(limit)[:count, None]

    def flags(self, *shape: int) -> np.ndarray:
        return self.random.random(shape) < 0.5

    def size(self, *options: int) -> int:
        return self.choose(options or (1, 2, 3))

    def shape(self) -> tuple[int, ...]:
        return tuple(self.size() for _ in range(self.size(1, 2, 0, 3)))

    def shape_pair(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Two shapes that broadcast: a dimension may be 1 in one of them, and one may lack leading dimensions."""
        first, second = [], []
        for dim in self.shape():
            narrow = self.choose(("neither", "first", "second"))
            first.append(1 if narrow == "first" else dim)
            second.append(1 if narrow == "second" else dim)
        missing = self.choose(range(len(first) + 1))
        shorter = self.choose(("second", "first"))
        return tuple(first[missing if shorter == "first" else 0 :]), tuple(
            second[missing if shorter == "second" else 0 :]
        )

    def regular(self, *shape: int) -> np.ndarray:
        """Square matrices far from singular, with eigenvalues well apart and off the negative axis."""
        n = shape[-1]
        return (self(*shape) * np.asarray(0.2, self.dtype) + np.diag(np.arange(2, n + 2))).astype(self.dtype)

    def hermitian(self, *shape: int) -> np.ndarray:
        half = self.regular(*shape)
        return half + np.conj(np.swapaxes(half, -1, -2))

    def triangular(self, *shape: int) -> np.ndarray:
        return np.tril(self.regular(*shape))


# ---------------------------------------------------------------------------------------------------------- families

domain_by_unary: dict[str, Domain] = {
    "Acos": [(-0.9, 0.9)],
    "Acosh": [(1.2, 4)],
    "Asin": [(-0.9, 0.9)],
    "Atanh": [(-0.9, 0.9)],
    "BesselK0": POSITIVE,
    "BesselK0e": POSITIVE,
    "BesselK1": POSITIVE,
    "BesselK1e": POSITIVE,
    "BesselY0": POSITIVE,
    "BesselY1": POSITIVE,
    "Digamma": POSITIVE,
    "Erfinv": [(-0.9, 0.9)],
    "Expint": POSITIVE,
    "Lgamma": POSITIVE,
    "Log": POSITIVE,
    "Log1p": [(-0.8, 3)],
    "Ndtri": [(0.15, 0.85)],
    "Relu6": [(-2, -0.2), (0.2, 5.8), (6.2, 8)],
    "Rsqrt": POSITIVE,
    "Spence": [(0.1, 0.9), (1.1, 3)],
    "Sqrt": POSITIVE,
    "Tan": [(-1.2, 1.2)],
}

_orders: Domain = [(1, 1), (2, 2), (3, 3)]
_interlaced: tuple[Domain, Domain] = ([(-2, -1), (0.2, 1)], [(-0.8, -0.2), (1.2, 2)])  # never equal
domain_by_binary: dict[str, tuple[Domain, Domain]] = {
    "FloorMod": ([(5.2, 5.8), (-5.8, -5.2)], [(2, 2.5)]),  # the quotient does not cross an integer
    "Igamma": ([(0.5, 4)], [(0.5, 5)]),
    "IgammaGradA": ([(0.5, 4)], [(0.5, 5)]),
    "IgammaGradAA": ([(0.5, 4)], [(0.5, 5)]),
    "Igammac": ([(0.5, 4)], [(0.5, 5)]),
    "LeftShift": (POSITIVE, POSITIVE),
    "Maximum": _interlaced,
    "Minimum": _interlaced,
    "Polygamma": (_orders, [(0.5, 4)]),
    "Pow": (POSITIVE, POSITIVE),
    "Relu6Grad": (AROUND_ZERO, domain_by_unary["Relu6"]),
    "RightShift": (POSITIVE, POSITIVE),
    "TruncateMod": ([(5.2, 5.8), (-5.8, -5.2)], [(2, 2.5)]),
    "Xlog1py": (AROUND_ZERO, [(-0.8, 3)]),
    "Xlogy": (AROUND_ZERO, POSITIVE),
    "Zeta": ([(1.5, 4)], [(0.5, 3)]),
}


def unary_domain(name: str) -> Domain:
    return domain_by_unary.get(name, AROUND_ZERO)


def binary_domain(name: str) -> tuple[Domain, Domain]:
    return domain_by_binary.get(name, (AROUND_ZERO, AROUND_ZERO))


def _unary(name: str) -> list[Builder]:
    return [lambda m: call(m(*m.shape(), within=unary_domain(name)))]


def _binary(name: str) -> list[Builder]:
    left, right = binary_domain(name)

    def build(m: Maker) -> Call:
        first, second = m.shape_pair()
        return call(m(*first, within=left), m(*second, within=right))

    return [build]


def _reduction(name: str) -> list[Builder]:
    def build(m: Maker) -> Call:
        shape = m.shape()
        axes = [None, *range(-len(shape), len(shape)), *([[0, -1]] if len(shape) > 1 else [])]
        return call(m.distinct(*shape), m.choose(axes), m.choose((False, True)))

    return [build]


# -------------------------------------------------------------------------------------------------------------- rows

SAME, VALID = (["SAME", []], ["VALID", []])
EXPLICIT = ["EXPLICIT", [1, 0]]
_philox = (np.array([7], np.uint64), np.array([0, 3], np.uint64))


def _conv(first: str, second: str, depthwise: bool = False) -> list[Builder]:
    """Convolutions of rank 1 and 2 in one of the three forms: from two of input, filter and output to the third."""

    def build(
        m: Maker, spatial: tuple[int, ...], window: tuple[int, ...], stride: int, dilation: int, padding: list
    ) -> Call:
        batch, inputs, outputs = m.size(1, 2), m.size(1, 2), m.size(2, 1)
        shape_by_role = {"input": (batch, *spatial, inputs), "filter": (*window, inputs, outputs)}
        reach = [(w - 1) * dilation + 1 for w in window]
        total = sum(padding[1][:2])
        out = [
            -(-s // stride) if padding[0] == "SAME" else (s + total - r) // stride + 1 for s, r in zip(spatial, reach)
        ]
        shape_by_role["output"] = (batch, *out, inputs * outputs if depthwise else outputs)
        (third,) = set(shape_by_role) - {first, second}
        rank = len(spatial)
        args = [m(*shape_by_role[first]), m(*shape_by_role[second]), [stride] * rank, padding[0], padding[1] * rank]
        args.append([dilation] * rank)
        return call(*args, *([list(shape_by_role[third])] if third != "output" else []))

    rows = [
        lambda m: build(m, (4, 3), (2, 2), 1, 1, SAME),
        lambda m: build(m, (5, 4), (3, 2), 2, 1, VALID),
        lambda m: build(m, (5, 5), (2, 2), 1, 2, SAME),
        lambda m: build(m, (4, 4), (3, 3), 1, 1, EXPLICIT),
    ]
    one_dimension = [lambda m: build(m, (6,), (3,), 2, 1, SAME)]
    return rows if depthwise else rows + one_dimension


def _pool(*roles: str, tail: Callable[..., list] = lambda shape: [], values: str = "distinct") -> list[Builder]:
    """Pools of rank 2 and 1; a role is the shape of the input or of the output."""

    def build(m: Maker, spatial: tuple[int, ...], window: int, stride: int, padding: list) -> Call:
        rank = len(spatial)
        out = [-(-s // stride) if padding[0] == "SAME" else (s - window) // stride + 1 for s in spatial]
        shape_by_role = {"input": (2, *spatial, m.size(1, 2))}
        shape_by_role["output"] = (2, *out, shape_by_role["input"][-1])
        arrays = [
            m.index(int(np.prod(shape_by_role["input"][1:])), *shape_by_role["output"])
            if role == "argmax"
            else getattr(m, values)(*shape_by_role[role])
            for role in roles
        ]
        return call(
            *arrays, [window] * rank, [stride] * rank, *padding, [1] * rank, *tail(list(shape_by_role["input"]))
        )

    return [
        lambda m: build(m, (4, 4), 2, 2, VALID),
        lambda m: build(m, (5, 3), 3, 1, SAME),
        lambda m: build(m, (5,), 2, 2, SAME),
    ]


def _segments(m: Maker, ids: np.ndarray, *more: Any) -> Call:
    return call(m.distinct(len(ids), m.size(1, 2)), ids, *more)


def _unsorted() -> list[Builder]:
    """No segment is empty: the extremum of nothing is too large for differences."""
    return [
        lambda m: _segments(m, m.random.permutation([0, 1, 2, 0, 1]), 3),
        lambda m: _segments(m, np.array([0, -1, 1, 0]), 2),
        lambda m: call(m.distinct(2, 3, 2), m.random.permutation([0, 1, 2, 3, 3, 0]).reshape(2, 3), 4),
    ]


def _unsorted_full() -> list[Builder]:
    """Every segment occurs: the extremum of an empty one is the last number of the dtype, which no step may follow."""
    return [
        lambda m: _segments(m, np.array([2, 0, 1, 0]), 3),
        lambda m: _segments(m, np.array([0, -1, 1, 0]), 2),
        lambda m: call(m.distinct(2, 3, 2), np.array([[0, 1, 1], [2, -1, 0]]), 3),
    ]


def _sorted() -> list[Builder]:
    return [lambda m: _segments(m, np.sort(m.index(3, 5))), lambda m: _segments(m, np.array([0, 0, 2]))]


def _scatter_call(m: Maker, shape: tuple[int, ...], indices: np.ndarray, updates: tuple[int, ...]) -> Call:
    """No element of the tensor is close to an update, so that the larger of the two is the larger nearby as well."""
    size = int(np.prod(shape))
    values = m.distinct(size + int(np.prod(updates)))
    return call(values[:size].reshape(shape), indices, values[size:].reshape(updates))


def _scatter() -> list[Builder]:
    def build(m: Maker, shape: tuple[int, ...], indices: np.ndarray, updates: tuple[int, ...]) -> Call:
        count = int(np.prod(shape))
        values = m.distinct(count + int(np.prod(updates)))  # no ties between the two
        return call(values[:count].reshape(shape), indices, values[count:].reshape(updates))

    return [
        lambda m: build(m, (4,), m.places(4, 2), (2,)),
        lambda m: build(m, (3, 2), m.places(3, 2), (2, 2)),
        lambda m: build(m, (3, 2), np.array([[0, 1], [2, 0]]), (2,)),
    ]


def _ctc(*arrays: Any) -> Call:
    return call(*arrays, np.array([[0, 1], [1, 0]]), np.array([2, 1]), np.array([4, 3]), 2)


def _matrices(*options: tuple[int, ...], **kwargs: Any) -> list[Builder]:
    return [lambda m: call(m.regular(*m.choose(options or ((2, 2), (3, 3), (2, 3, 3)))), **kwargs)]


def _cumulative(*exclusive: bool) -> list[Builder]:
    options = exclusive or (False, True)
    return [
        lambda m: call(m(m.size(), m.size(1, 3, 4)), m.choose((0, 1, -1)), m.choose(options), m.choose((False, True))),
    ]


_POSITIVE = [(0.5, 3)]

builders_by_name: dict[str, list[Builder]] = {
    # activations and losses
    "LeakyRelu": [lambda m: call(m(*m.shape())), lambda m: call(m(3), 0.4)],
    "LeakyReluGrad": [lambda m: call(m(2, 3), m(2, 3)), lambda m: call(m(3), m(3), 0.4)],
    "LogSoftmax": [lambda m: call(m(m.size(), m.size()))],
    "Softmax": [lambda m: call(m(m.size(), m.size()))],
    "SoftmaxGrad": [lambda m: call(m(2, 3), m(2, 3))],
    "SoftmaxCrossEntropyWithLogits": [  # the labels: see test_labels_have_a_gradient
        lambda m: call(m(2, 3), tf.constant(m.random.dirichlet([1, 1, 1], 2).astype(m.dtype)))
    ],
    "SparseSoftmaxCrossEntropyWithLogits": [lambda m: call(m(3, 4), m.index(4, 3)), lambda m: call(m(4), m.index(4))],
    "Moments": [
        lambda m: call(m(3, 4), [m.choose((0, 1, -1))]),
        lambda m: call(m(2, 3, 4), m.choose(([0, 1], [1, 2], [1], [0, 2], [0, 1, 2]))),
    ],
    "Normalize": [  # by rows, by columns, with single numbers, and by neither
        lambda m: call(m(3, 4), m(3, 1), m(3, 1, within=_POSITIVE), m(4), m(4), 0.5),
        lambda m: call(m(2, 3, 4), m(4), m(4, within=_POSITIVE), m(4), m(1, 4), 0.5),
        lambda m: call(m(2, 3), m(1, 3), m(1, 3, within=_POSITIVE), m(), m(3), 0.5),
        lambda m: call(m(2, 3), m(2, 1), m(3, within=_POSITIVE), m(2, 1), m(3), 0.5),
    ],
    "NormalizeGrad": [  # by rows, by columns, with a single number
        lambda m: call(m(3, 4), m(3, 1), m(3, 1, within=_POSITIVE), m(4), m(3, 4), 0.5),
        lambda m: call(m(2, 3, 4), m(4), m(4, within=_POSITIVE), m(1, 4), m(2, 3, 4), 0.5),
        lambda m: call(m(2, 3), m(2, 1), m(2, 1, within=_POSITIVE), m(), m(2, 3), 0.5),
    ],
    "CTCLossDense": [lambda m: _ctc(m(4, 2, 3))],
    "CTCLossCurvature": [lambda m: _ctc(tf.constant(m(4, 2, 3)), m(4, 2, 3))],
    "CTCBeamSearchDecoder": [lambda m: call(m(4, 2, 3), np.array([4, 3]), 4, 2)],
    "IsotonicRegression": [lambda m: call(m.distinct(m.size(), m.size(2, 4)))],
    # arithmetic outside the families
    "AddN": [lambda m: call([m(2, 3) for _ in range(m.size())])],
    "Betainc": [lambda m: call(m(3, within=[(0.5, 3)]), m(3, within=[(0.5, 3)]), m(3, within=[(0.1, 0.9)]))],
    "Cast": [lambda m: call(m(*m.shape()), m.dtype)],
    "Complex": [lambda m: call(*(m(*shape) for shape in m.shape_pair()))],
    "ComplexAbs": [lambda m: call(m(*m.shape()))],
    "IgammaGradAA": [lambda m: call(tf.constant(m(3, within=[(0.5, 4)])), m(3, within=[(0.5, 5)]))],
    "Imag": [lambda m: call(m(*m.shape()))],
    "LinearRecurrence": [lambda m: call(m(3, 2), m(3, 2), m.choose((0, 1)), m.choose((False, True)))],
    "Real": [lambda m: call(m(*m.shape()))],
    "SelectV2": [
        lambda m: call(m.flags(2, 3), *(m(*m.choose(((2, 3), (3,), (1, 3), ()))) for _ in range(2))),
        lambda m: call(m.flags(3, 1), m(2), m(3, 2)),
    ],
    # products and factorisations
    "MatMul": [
        lambda m: call(m(m.size(), 2), m(2, m.size())),
        lambda m: call(m(3, 2), m(4, 3), transpose_a=True, transpose_b=True),
        lambda m: call(m(2, 2, 3), m(3, 2)),
        lambda m: call(m(2, 1, 2, 3), m(3, 2, 3), adjoint_b=True),
        lambda m: call(m(2, 3, 2), m(2, 3, 4), adjoint_a=True),
    ],
    "Cholesky": [lambda m: call(m.hermitian(*m.choose(((3, 3), (2, 2, 2)))))],
    "Eig": _matrices((3, 3), compute_v=False),
    "LogMatrixDeterminant": _matrices(),
    "Lu": _matrices(),
    "MatrixBandPart": [lambda m: call(m(3, 4), m.choose((-1, 0, 1)), m.choose((-1, 0, 2)))],
    "MatrixDeterminant": _matrices(),
    "MatrixDiagPartV3": [
        lambda m: call(m(2, 3, 4), [m.choose((-1, 0, 2))], m()),
        lambda m: call(m(3, 4), [-1, 1], m(), m.choose(("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT"))),
    ],
    "MatrixDiagV3": [
        lambda m: call(m(2, 3), [m.choose((-1, 0, 1))], -1, -1, m()),
        lambda m: call(m(2, 3), [0, 1], -1, -1, m(), m.choose(("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT"))),
    ],
    "MatrixExponential": _matrices(),
    "MatrixInverse": [*_matrices(), *_matrices(adjoint=True)],
    "MatrixLogarithm": _matrices((2, 2), (3, 3)),
    "MatrixPseudoInverse": [
        lambda m: call(m(3, 2) + np.eye(3, 2).astype(m.dtype) * 3, np.asarray(1e-6, np.asarray(m()).real.dtype)),
        lambda m: call(m.regular(2, 3, 3), np.asarray(1e-6, np.asarray(m()).real.dtype)),
    ],
    "MatrixSetDiagV3": [
        lambda m: call(m(2, 3, 4), m(2, 3), [0]),
        lambda m: call(m(3, 3), m(2, 3), [0, 1]),
    ],
    "MatrixSolve": [
        lambda m: call(m.regular(3, 3), m(3, 2)),
        lambda m: call(m.regular(2, 2, 2), m(2, 2, 1), adjoint=True),
    ],
    "MatrixSquareRoot": _matrices((2, 2), (3, 3)),
    "MatrixTriangularSolve": [
        lambda m: call(m.triangular(3, 3), m(3, 2)),
        lambda m: call(m.triangular(2, 2, 2), m(2, 2, 2), adjoint=True),
        lambda m: call(np.swapaxes(m.triangular(3, 3), -1, -2), m(3, 1), lower=False),
    ],
    "Qr": [lambda m: call(m.regular(3, 3)), lambda m: call(m(4, 2) + np.eye(4, 2).astype(m.dtype) * 3)],
    "SelfAdjointEigV2": [lambda m: call(m.hermitian(*m.choose(((3, 3), (2, 2, 2)))))],
    "SparseTensorDenseMatMul": [
        lambda m: call(np.array([[0, 1], [1, 0], [2, 1]]), m(3), m(2, 2), [3, 2]),
        lambda m: call(np.array([[0, 1], [1, 0], [2, 1]]), m(3), m(3, 2), [3, 2], adjoint=True),
    ],
    "Svd": [
        lambda m: call(m.regular(3, 3)),
        lambda m: call(m.regular(3, 3)[:, :2]),
        lambda m: call(m.regular(2, 2), compute_uv=False),
    ],
    "TridiagonalSolve": [lambda m: call(m(3, 4) + np.array([[0], [5], [0]]).astype(m.dtype), m(4, 2))],
    # Fourier transforms
    "Fourier": [lambda m: call(m(2, m.size(1, 3, 4)), 1, m.choose((False, True))), lambda m: call(m(2, 3, 4), 2)],
    "FourierToReal": [lambda m: call(m(2, 3), 1, m.choose((4, 5))), lambda m: call(m(2, 3), 2, 5)],
    "RealFourier": [lambda m: call(m(2, m.size(1, 4, 5)), 1), lambda m: call(m(3, 4), 2)],
    # convolutions, pools and images
    "AvgPool": _pool("input"),
    "AvgPoolGrad": _pool("output", tail=lambda shape: [shape]),
    "Conv": _conv("input", "filter"),
    "ConvBackpropFilter": _conv("input", "output"),
    "ConvBackpropInput": _conv("filter", "output"),
    "DepthwiseConv": _conv("input", "filter", depthwise=True),
    "DepthwiseConvBackpropFilter": _conv("input", "output", depthwise=True),
    "DepthwiseConvBackpropInput": _conv("filter", "output", depthwise=True),
    "MaxPool": _pool("input"),
    "MaxPoolGrad": _pool("input", "output"),
    "MaxPoolGradGrad": _pool("input", "input"),
    "MaxPoolGradGradWithArgmax": _pool("input", "argmax"),
    "MaxPoolGradWithArgmax": _pool("output", "argmax", tail=lambda shape: [False, shape]),
    "MaxPoolWithArgmax": _pool("input"),
    "NonMaxSuppressionV5": [lambda m: call(m.distinct(4, 4), m(4), 3)],
    "NonMaxSuppressionWithOverlaps": [lambda m: call(m(3, 3), m(3), 2)],
    "CombinedNonMaxSuppression": [lambda m: call(m.distinct(1, 4, 1, 4), m(1, 4, 2), 2, 3)],
    "Resample": [lambda m: call(m(2, 4, 3), m(3, 2), np.array([0, 1, 2]), 1)],
    "ResampleTransposed": [lambda m: call(m(2, 3, 3), m(3, 2), np.array([0, 1, 2]), 1, 4)],
    # shapes
    "Bitcast": [lambda m: call(m(2, 3), m.dtype)],
    "BroadcastTo": [
        lambda m: call(m(m.size(1, 3), m.size(1, 2)), [*m.choose(((), (2,))), 3, 2]),
        lambda m: call(m(), [*m.shape()]),
    ],
    "CheckNumerics": [lambda m: call(m(*m.shape()), "broken")],
    "ExpandDims": [lambda m: call(m(2, 3), m.choose(range(-3, 3))), lambda m: call(m(), m.choose((0, -1)))],
    "GetItem": [
        lambda m: call(m(3, 4), [1, 1, 3, 2, 3, 0, -1, 0, 1, 0]),
        lambda m: call(m(4), [3, 0, 0, 1, 0, 1, 0, 0, -1, 0]),
    ],
    "EnsureShape": [lambda m: call(m(2, 3), m.choose(([2, 3], [-1, 3], None)))],
    "Range": [lambda m: call(np.array(1, m.dtype), np.array(6, m.dtype), np.array(2, m.dtype))],
    "Shape": [lambda m: call(m(2, 3)), lambda m: call(m(), "int64")],
    "Identity": [lambda m: call(m(*m.shape()))],
    "Reshape": [lambda m: call(m(2, 3), m.choose(([6], [-1, 2], [3, 1, 2])))],
    "Squeeze": [lambda m: call(m(1, 2, 1), m.choose((None, 0, [0, 2], -1)))],
    "StopGradient": [lambda m: call(m(*m.shape()))],
    "StraightThrough": [lambda m: call(m(2, 3), m(2, 3))],
    "Transpose": [
        lambda m: call(m(*m.shape())),
        lambda m: call(m(2, 3, 4), [int(i) for i in m.random.permutation(3)], m.choose((False, True))),
    ],
    # joining, splitting, repeating
    "ConcatV2": [
        lambda m: call([m(2, m.size()) for _ in range(m.size())], m.choose((1, -1))),
        lambda m: call([m(1), m(3)], 0),
    ],
    "Pack": [lambda m: call([m(2, 3) for _ in range(m.size())], m.choose((0, 1, 2, -1)))],
    "PadV2": [lambda m: call(m(2, 3), [m.size(0, 1), 1, 2, m.size(0, 1)], m()), lambda m: call(m(3), [0, 2], m())],
    "ReverseV2": [lambda m: call(m(2, 3), m.choose(([0], [1], [0, -1], [])))],
    "SplitV": [lambda m: call(m(2, 4), [1, 3], 1), lambda m: call(m(3), [1, 0, 2])],
    "Tile": [lambda m: call(m(2, 3), [m.size(), m.size()])],
    "Unpack": [lambda m: call(m(2, 3), -1, m.choose((0, 1, -1)))],
    # indexing
    "DynamicPartition": [lambda m: call(m(4, 2), m.index(3, 4).astype(np.int32), 3)],
    "GatherNd": [
        lambda m: call(m(2, 3), np.array([[0, 1], [1, 2]])),
        lambda m: call(m(3, 2), m.index(3, 4, 1)),
        lambda m: call(m(2, 3), m.index(3, 2, 1), 1),
    ],
    "GatherSpread": [
        lambda m: call(m(2, 4), m.index(3, 4), [2, 3], 1, 0),
        lambda m: call(m(2, 2), m.index(3, 2, 2), [2, 3], 1, 1),
        lambda m: call(m(9), m.index(2, 9), [2], 0, 0),
    ],
    "GatherV2": [
        lambda m: call(m(3, 2), m.index(3, *m.shape())),
        lambda m: call(m(2, 3, 2), m.index(3, 4), m.choose((1, -2))),
        lambda m: call(m(2, 3), m.index(3, 2, 2), 1, 1),
    ],
    "ScatterNd": [
        lambda m: call(m.index(4, 3, 1), m(3), [4]),
        lambda m: call(m.index(2, 9, 1), m(9), [2]),
        lambda m: call(np.array([[0, 1], [2, 0]]), m(2, 2), [3, 2, 2]),
    ],
    "StitchRows": [lambda m: call(np.array([2, 0, 1]), m(3, 2))],
    "StridedSlice": [
        lambda m: call(m(4, 5), [1, 4], [1, -2], [2, 2]),
        lambda m: call(m(4, 3), [1, 0], [1, 1], [2, 3]),
        lambda m: call(m(5), [0], [2], [3]),
    ],
    "StridedSliceGrad": [lambda m: call(m(2, 2), [4, 5], [1, 4], [1, -2]), lambda m: call(m(3), [5], [0], [2])],
    "TensorScatterAdd": _scatter(),
    "TensorScatterMax": _scatter(),
    "TensorScatterMin": _scatter(),
    "TensorScatterSub": _scatter(),
    "TensorScatterUpdate": _scatter(),
    "Where": [lambda m: call(m(*m.shape()))],
    # segments and sorting
    "SegmentMax": _sorted(),
    "SegmentMin": _sorted(),
    "SegmentProd": _sorted(),
    "SegmentSum": _sorted(),
    "UnsortedSegmentMax": _unsorted_full(),
    "UnsortedSegmentMin": _unsorted_full(),
    "UnsortedSegmentProd": _unsorted(),
    "UnsortedSegmentSum": _unsorted(),
    "DistinctElements": [lambda m: call(m.distinct(5)[m.index(5, 8)])],
    "SearchSorted": [lambda m: call(np.sort(m.distinct(2, 4)), m.distinct(2, 3), m.choose((False, True)))],
    "TopKV2": [lambda m: call(m.distinct(2, 4), m.size(0, 1, 3)), lambda m: call(m.distinct(4), 2, True, True)],
    # reductions that are not of the family
    "ArgMax": [lambda m: call(m.distinct(2, 3), m.choose((0, 1, -1)))],
    "ArgMin": [lambda m: call(m.distinct(2, 3), m.choose((0, 1, -1)))],
    "Cumprod": _cumulative(),
    "Cumsum": _cumulative(),
    "CumulativeLogsumexp": _cumulative(False),
    # random numbers: a key and a counter make them repeatable
    "PhiloxAdvance": [lambda m: call(np.array([0, 3, 7]), np.asarray(2))],
    "PhiloxBinomial": [
        lambda m: call([3], *_philox, dtype=tf.int32, counts=m(within=POSITIVE), probs=m(within=[(0.1, 0.9)]))
    ],
    "PhiloxBoundedNormal": [
        lambda m: call([4], *_philox, means=m(), stddevs=m(within=POSITIVE), minvals=m() * 0 - 9, maxvals=m() * 0 + 9)
    ],
    "PhiloxCandidates": [lambda m: call(np.array([[1]]), *_philox, np.ones(0, np.float32), 0, 3, True, 5)],
    "PhiloxMultinomial": [lambda m: call(m(2, 3), 4, *_philox, output_dtype=tf.int64)],
    "PhiloxPoisson": [lambda m: call([3], *_philox, dtype=tf.float32, lam=m(within=POSITIVE))],
    "PhiloxShuffle": [lambda m: call(m(4, 2), *_philox)],
    "RandomGammaGrad": [lambda m: call(m(3, within=POSITIVE), m(3, within=POSITIVE))],
    "RandomIndexShuffle": [
        lambda m: call(np.asarray(2, m.dtype), np.array([1, 2, 3], m.dtype), np.asarray(9, m.dtype))
    ],
    "StatelessRandomGammaV3": [lambda m: call([3], *_philox, alpha=m(within=POSITIVE))],
    "StatelessRandomGetKeyCounter": [lambda m: call(np.array([1, 2]))],
    "StatelessRandomNormalV2": [lambda m: call([2, 3], *_philox, dtype=tf.float32)],
    "StatelessRandomUniformFullIntV2": [lambda m: call([2, 3], *_philox, dtype=tf.uint32)],
    "StatelessRandomUniformIntV2": [lambda m: call([2, 3], *_philox, minval=np.asarray(-2), maxval=np.asarray(5))],
    "StatelessRandomUniformV2": [lambda m: call([2, 3], *_philox, dtype=tf.float32)],
    "StatelessTruncatedNormalV2": [lambda m: call([2, 3], *_philox, dtype=tf.float32)],
}

FAMILIES = {"unary": _unary, "binary": _binary, "reduction": _reduction}


def builders(name: str) -> list[Builder]:
    """The builders of a primitive's sample calls, by its family or from its row."""
    if name in builders_by_name:
        return builders_by_name[name]
    family = FAMILIES.get(facts_by_name[name]["family"])
    if family is None:
        raise LookupError(
            f"The primitive {name} has no sample inputs. Add a row to builders_by_name in tests/ops/samples.py: "
            f'"{name}": [lambda m: call(m(2, 3), ...)], where m(2, 3) makes an array that a gradient is asked for.'
        )
    return family(name)


# ------------------------------------------------------------------------------------------------------ dtypes

FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEXES = ("complex64", "complex128")
first_argument_decides = {"MatrixPseudoInverse"}  # a tolerance is real, whatever the matrix is

# Primitives that look at the dtype themselves, for TensorFlow's own message.
dtypes_by_name = {"All": ["bool"], "Any": ["bool"], "Complex": ["float32", "float64"]}
dtypes_by_name["MatMul"] = [*FLOATS, *COMPLEXES, "int32", "int64"]


def dtypes_of(name: str) -> list[str]:
    """The dtypes a sample of the primitive can be made in: those that all its tensor arguments allow, indices aside."""
    if name in dtypes_by_name:
        return dtypes_by_name[name]
    allowed = [list(dtypes) for dtypes in facts_by_name[name]["dtypes"]]
    data = [dtypes for dtypes in allowed if set(dtypes) - {"int32", "int64", "uint64", "bool"}] or allowed[:1]
    if name in first_argument_decides:
        return data[0]
    return [dtype for dtype in data[0] if all(dtype in dtypes for dtypes in data)]


def gradient_dtypes_of(name: str) -> list[str]:
    """float64 and complex128, as far as the primitive takes them."""
    return [dtype for dtype in ("float64", "complex128") if dtype in dtypes_of(name)]


# ------------------------------------------------------------------------------ what the gradient tests must know

# Inputs, counted among the float arrays, whose gradient is None although the value depends on them, as in TensorFlow.
undifferentiated_inputs = {
    "Betainc": {0, 1},
    "MatrixDiagPartV3": {1},
    "MatrixDiagV3": {1},
    "MatrixPseudoInverse": {1},
    "PadV2": {1},
    "Polygamma": {0},
    "Resample": {1},
    "ResampleTransposed": {1},
    "StraightThrough": {1},
    "Zeta": {0},
}

# Primitives whose rule is no derivative, on purpose. The other laws (linear, forward = reverse) hold.
rule_is_no_derivative = {
    ("Sign", "complex128"): "TensorFlow's gradient of a complex sign is 0",
    ("StraightThrough", None): "the value of y with the gradient of x",
    ("StatelessRandomGammaV3", None): "the gradient of the distribution, not of the rejection sampler",
}


def rule_is_derivative(name: str, dtype: str) -> bool:
    return (name, None) not in rule_is_no_derivative and (name, dtype) not in rule_is_no_derivative


# Primitives that are differentiated once only.
first_order_only = {
    "IgammaGradA": "Igamma has two derivatives by a",
    "IgammaGradAA": "Igamma has two derivatives by a",
    "StatelessRandomGammaV3": "RandomGammaGrad has no gradient, as in TensorFlow",
}


def _hermitian(x: Any) -> tuple[Any, ...]:
    transposed = tf.transpose(x, [*range(len(x.shape) - 2), -1, -2])
    return ((x + (primitives.Conj(transposed) if x.dtype.is_complex else transposed)) / 2,)


# What happens to the float inputs before the primitive, which sees one triangle only.
before_by_name: dict[str, Callable[..., tuple[Any, ...]]] = {"Cholesky": _hermitian, "SelfAdjointEigV2": _hermitian}


def _size(x: Any) -> Any:
    return tf.math.real(x * tf.math.conj(x))


# What happens to the results: factors are unique up to signs and phases, eigenvalues up to their order.
after_by_name: dict[str, Callable[..., list[Any]]] = {
    "Eig": lambda e: [tf.reduce_sum(e**k, -1) for k in (1, 2, 3)],
    "Qr": lambda q, r: [_size(q), _size(r)],
    "SelfAdjointEigV2": lambda e, v: [e, _size(v)],
    "Svd": lambda s, *uv: [s, *map(_size, uv)],
}
