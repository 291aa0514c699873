"""Rows of sample inputs: the builders of primitives that are in no family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tapeflow as tf
from tests.ops.sample_makers import POSITIVE, Builder, Call, Maker, call

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
    "RollAxis": [lambda m: call(m(2, 3), m.choose((0, 1, -1, 5)), m.choose((0, 1, -1)))],
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
    "GatherGrad": [
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
    "CountValues": [lambda m: call(m.index(5, 8), 4), lambda m: call(m.index(7, 2, 300), 7)],
    "DistinctElements": [lambda m: call(m.distinct(5)[m.index(5, 8)])],
    "SearchSorted": [lambda m: call(np.sort(m.distinct(2, 4)), m.distinct(2, 3), m.choose((False, True)))],
    "Sort": [lambda m: call(m.distinct(2, 4), m.choose((False, True)))],
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
