"""How arithmetic, reductions, linear algebra, Fourier transforms and random numbers are written."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapeflow._src.compat.graph_def.emitter import Emitter, Ref
from tapeflow._src.compat.graph_def.exporter import ExportedNode, writes
from tapeflow._src.ops.random.seeds import Stream


def axes_of(n: ExportedNode, place: int) -> Ref:
    """The axes of a reduction; all of them where none are given."""
    if n.is_given(place):
        return n.tensor(place)
    rank = n.shape(0).rank
    if rank is not None:
        return n.e.ints(list(range(rank)))
    return n.e.one("Range", n.e.ints(0), n.e.one("Rank", n[0]), n.e.ints(1))


@writes("Sum", "Mean", "Prod", "Max", "Min", "Any", "All", "EuclideanNorm")
def _reduce(n: ExportedNode) -> Any:
    return n.e.one(n.op, n[0], axes_of(n, 0), keep_dims=n.param(1))


@writes("AddV2")
def _add(n: ExportedNode) -> Any:
    return n.e.one("Add" if n[0].dtype.name == "string" else "AddV2", n[0], n[1])


@writes("SumOfSquares")
def _sum_of_squares(n: ExportedNode) -> Any:
    return n.e.one("Sum", n.e.one("Square", n[0]), axes_of(n, 0), keep_dims=n.param(1))


@writes("ArgMax", "ArgMin")
def _arg(n: ExportedNode) -> Any:
    axis = n.param(0)
    axis = (axis[0] if axis else 0) if isinstance(axis, list) else axis or 0
    return n.e.one(n.op, n[0], n.e.ints(axis), output_type=n.kind[0])


@writes("Cumsum", "Cumprod", "CumulativeLogsumexp")
def _cumulative(n: ExportedNode) -> Any:
    return n.e.one(n.op, n[0], n.tensor(0), exclusive=n.param(1), reverse=n.param(2))


@writes("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin")
def _segments(n: ExportedNode) -> Any:
    return n.e.one(n.op, n[0], n[1], n.tensor(0))


@writes("CountValues")
def _count_values(n: ExportedNode) -> Any:
    e, x = n.e, n[0]
    flat = e.one("Reshape", x, e.ints([-1]))
    size = e.one("Cast", n.tensor(0, "int64"), DstT=x.dtype)
    return e.one("DenseBincount", flat, size, e.constant(np.zeros([0], np.int64), "int64"), binary_output=False)


@writes("AddN")
def _add_n(n: ExportedNode) -> Any:
    return n.e.one("AddN", n.inputs)


@writes("EqualAsNumber")
def _equal(n: ExportedNode) -> Any:
    return n.e.one("Cast", n.e.one("Equal", n[0], n[1]), DstT=n[0].dtype)


@writes("ComplexAbs")
def _complex_abs(n: ExportedNode) -> Any:
    return n.e.one("ComplexAbs", n[0], Tout=n.kind[0])


@writes("Real", "Imag")
def _part(n: ExportedNode) -> Any:
    return n.e.one(n.op, n[0], Tout=n.kind[0])


@writes("Complex")
def _complex(n: ExportedNode) -> Any:
    return n.e.one("Complex", n[0], n[1], Tout=n.kind[0])


@writes("Conj")
def _conj(n: ExportedNode) -> Any:
    return n.e.one("Conj" if n[0].dtype.is_complex else "Identity", n[0])


@writes("ReciprocalGrad", "RsqrtGrad", "SqrtGrad")
def _root_gradient(n: ExportedNode) -> Any:
    """TensorFlow's operation conjugates the result of the forward pass; ours is given the conjugate."""
    y = n.e.one("Conj", n[0]) if n[0].dtype.is_complex else n[0]
    return n.e.one(n.op, *_alike(n, [y, n[1]]))


@writes("EluGrad", "Relu6Grad", "ReluGrad", "SeluGrad", "SigmoidGrad", "SoftplusGrad", "SoftsignGrad", "TanhGrad")
def _activation_gradient(n: ExportedNode) -> Any:
    return n.e.one(n.op, *_alike(n, n.inputs))


def _alike(n: ExportedNode, inputs: list[Ref]) -> list[Ref]:
    """Two inputs of one shape: TensorFlow's operations do not broadcast where ours do, as in a Jacobian."""
    first, second = n.shape(0), n.shape(1)
    if first.rank is None or (first.rank == second.rank and first.is_compatible_with(second)):
        return inputs
    e = n.e
    shape = e.one("BroadcastArgs", *(e.one("Shape", x, out_type="int32") for x in inputs))
    return [e.one("BroadcastTo", x, shape) for x in inputs]


# ---- matrices


@writes("MatMul")
def _matmul(n: ExportedNode) -> Any:
    e, sides = n.e, list(n.inputs)
    flags = []
    for place in (0, 1):
        transposed, adjoint = n.param(place), n.param(place + 2)
        if transposed and sides[place].dtype.is_complex:
            sides[place] = e.one("Conj", sides[place])
        flags.append(bool(transposed or adjoint))
    wanted = n.param(6)
    plain = all(n.shape(place).rank == 2 for place in (0, 1))
    if wanted is not None and n.kind[0] != sides[0].dtype:
        return e.one("BatchMatMulV3", *sides, Tout=n.kind[0], adj_x=flags[0], adj_y=flags[1])
    if plain and not sides[0].dtype.is_complex:
        return e.one("MatMul", *sides, transpose_a=flags[0], transpose_b=flags[1])
    return e.one("BatchMatMulV2", *sides, adj_x=flags[0], adj_y=flags[1])


@writes("SelfAdjointEigV2")
def _eigh(n: ExportedNode) -> Any:
    return n.e.node(n.op, n[0], compute_v=n.param(0))


@writes("Eig")
def _eig(n: ExportedNode) -> Any:
    return n.e.node(n.op, n[0], compute_v=n.param(0), Tout=n.kind[0])


@writes("MatrixInverse")
def _inverse(n: ExportedNode) -> Any:
    return n.e.one(n.op, n[0], adjoint=n.param(0))


@writes("MatrixSolve")
def _solve(n: ExportedNode) -> Any:
    return n.e.one(n.op, n[0], n[1], adjoint=n.param(0))


@writes("MatrixTriangularSolve")
def _triangular(n: ExportedNode) -> Any:
    return n.e.one(n.op, n[0], n[1], lower=n.param(0), adjoint=n.param(1))


@writes("TridiagonalSolve")
def _tridiagonal(n: ExportedNode) -> Any:
    return n.e.one(n.op, n[0], n[1], partial_pivoting=n.param(0), perturb_singular=n.param(1))


@writes("Lu")
def _lu(n: ExportedNode) -> Any:
    return n.e.node(n.op, n[0], output_idx_type=n.param(0) or "int32")


@writes("Qr")
def _qr(n: ExportedNode) -> Any:
    return n.e.node(n.op, n[0], full_matrices=n.param(0))


@writes("Svd")
def _svd(n: ExportedNode) -> Any:
    return n.e.node(n.op, n[0], compute_uv=n.param(0), full_matrices=n.param(1))


@writes("SparseTensorDenseMatMul")
def _sparse_matmul(n: ExportedNode) -> Any:
    shape = n.tensor(0, "int64")
    return n.e.one(n.op, n[0], n[1], shape, n[2], adjoint_a=n.param(1), adjoint_b=False)


# ---- Fourier transforms


@writes("Fourier")
def _fourier(n: ExportedNode) -> Any:
    rank = n.param(0)
    name = "FFT" if rank == 1 else f"FFT{rank}D"
    return n.e.one(f"I{name}" if n.param(1) else name, n[0])


@writes("RealFourier")
def _real_fourier(n: ExportedNode) -> Any:
    rank, e = n.param(0), n.e
    length = e.one("StridedSlice", e.one("Shape", n[0]), e.ints([-rank]), e.ints([0]), e.ints([1]), end_mask=1)
    return e.one("RFFT" if rank == 1 else f"RFFT{rank}D", n[0], length, Tcomplex=n.kind[0])


@writes("FourierToReal")
def _fourier_to_real(n: ExportedNode) -> Any:
    rank, e = n.param(0), n.e
    sizes = e.one("Shape", n[0])
    if n.is_given(1):
        length = e.one("ExpandDims", n.tensor(1), e.ints(0))
    else:  # of an even length
        last = e.one("StridedSlice", sizes, e.ints([-1]), e.ints([0]), e.ints([1]), end_mask=1)
        length = e.one("Mul", e.one("Sub", last, e.ints(1)), e.ints(2))
    if rank > 1:
        outer = e.one("StridedSlice", sizes, e.ints([-rank]), e.ints([-1]), e.ints([1]))
        length = e.one("ConcatV2", [outer, length], e.ints(0))
    return e.one("IRFFT" if rank == 1 else f"IRFFT{rank}D", n[0], length, Treal=n.kind[0])


# ---- random numbers


_STATEFUL_BY_STATELESS = {
    "StatelessRandomUniformV2": "RandomUniform", "StatelessRandomNormalV2": "RandomStandardNormal",
    "StatelessTruncatedNormalV2": "TruncatedNormal", "StatelessRandomUniformIntV2": "RandomUniformInt",
    "PhiloxShuffle": "RandomShuffle",
}  # fmt: skip


def drawn(n: ExportedNode, key: Ref, *inputs: Ref, **attributes: Any) -> Ref | None:
    """The operation of TensorFlow that draws its numbers itself, if the key comes of a stream; else None."""
    seeds = n.writer.stream_seeds_by_key.get(key.node)
    if seeds is None:
        return None
    n.writer.stateful = True
    return n.e.one(_STATEFUL_BY_STATELESS[n.op], *inputs, seed=seeds[0], seed2=seeds[1], **attributes)


@writes("StatelessRandomUniformV2", "StatelessRandomNormalV2", "StatelessTruncatedNormalV2")
def _stateless(n: ExportedNode) -> Any:
    shape, dtype = n.tensor(0), n.kind[0]
    return drawn(n, n[0], shape, dtype=dtype) or n.e.one(n.op, shape, n[0], n[1], n.tensor(1), dtype=dtype)


@writes("StatelessRandomUniformFullIntV2")
def _stateless_full(n: ExportedNode) -> Any:
    return n.e.one(n.op, n.tensor(0), n[0], n[1], n.tensor(1), dtype=n.kind[0])


@writes("StatelessRandomUniformIntV2")
def _stateless_ints(n: ExportedNode) -> Any:
    shape, limits = n.tensor(0), n.inputs[2:4]
    return drawn(n, n[0], shape, *limits) or n.e.one(n.op, shape, n[0], n[1], n.tensor(1), *limits)


@writes("StatelessRandomGammaV3")
def _stateless_gamma(n: ExportedNode) -> Any:
    return n.e.one(n.op, n.tensor(0), n[0], n[1], n.tensor(1), n[2])


@writes("RandomIndexShuffle")
def _index_shuffle(n: ExportedNode) -> Any:
    return n.e.one(n.op, n[0], n[1], n[2], rounds=n.param(0))


@writes("PhiloxAdvance")
def _advance(n: ExportedNode) -> Any:
    """Key and counter of a generator's state, and the state after so many blocks: the counter has 128 bits.

    The streams behind `tf.random.uniform` and the like are no variables of the model: an operation of TensorFlow with
    the same seeds draws in their place, or a seed is drawn for those that it has with a seed alone.
    """
    e, state = n.e, n[0]
    if state.node.startswith("stream"):
        n.writer.stateful = True
        seeds = _seeds_of_stream(n)
        readers = [op for op, numbers, *_ in n.writer.data[2] if n.first in numbers or n.first + 1 in numbers]
        if len(readers) == 1 and readers[0] in _STATEFUL_BY_STATELESS:
            name = f"stream_key_{n.first}"
            n.writer.stream_seeds_by_key[name] = seeds
            kinds = [n.writer.kind(n.first + i) for i in range(2)]
            return [*(Ref(name, "key", i, i, *kind) for i, kind in enumerate(kinds)), state]
        limits = e.constant(-(2**62), "int64"), e.constant(2**62, "int64")
        seed = e.one("RandomUniformInt", e.ints([2]), *limits, seed=seeds[0], seed2=seeds[1])
        key, counter = e.node("StatelessRandomGetKeyCounter", seed)
        n.writer.seed_by_key[key.node] = seed
        return [key, counter, state]
    words = e.one("Bitcast", state, type="uint64")
    low, high, key = (
        e.one("StridedSlice", words, e.ints([i]), e.ints([i + 1]), e.ints([1]), shrink_axis_mask=1) for i in range(3)
    )
    blocks = e.one("Bitcast", e.one("Cast", n[1], DstT="int64"), type="uint64")
    after = e.one("AddV2", low, blocks)
    carried = e.one("AddV2", high, e.one("Cast", e.one("Less", after, low), DstT="uint64"))
    new = e.one("Bitcast", e.one("Pack", [after, carried, key], axis=0), type="int64")
    return [e.one("Reshape", key, e.ints([1])), e.one("Pack", [low, high], axis=0), new]


def _seeds_of_stream(n: ExportedNode) -> tuple[int, int]:
    """The seeds of the stream whose state a node takes; zeros if it has none, or if the state comes from outside."""
    node = n.writer.node_of(n._numbers[0])
    while node is not None and node[0] == "Identity":
        node = n.writer.node_of(node[1][0])
    held = None if node is None or node[0] != "ReadVariableOp" else node[2][0][1]
    return held.seeds if isinstance(held, Stream) else (0, 0)


# ---- special functions without an operation of TensorFlow's


def scaled(e: Emitter, x: Ref, factor: float) -> Ref:
    """A multiple of a tensor."""
    return e.one("Mul", x, e.constant(factor, x.dtype))


@writes("SigmoidCrossEntropy")
def _sigmoid_entropy(n: ExportedNode) -> Any:
    e, logits, labels = n.e, n[0], n[1]
    rest = e.one("Log1p", e.one("Exp", e.one("Neg", e.one("Abs", logits))))
    return e.one("AddV2", e.one("Sub", e.one("Relu", logits), e.one("Mul", logits, labels)), rest)


@writes("GeluErf")
def _gelu(n: ExportedNode) -> Any:
    e, x = n.e, n[0]
    tail = e.one("Erfc", scaled(e, x, -math.sqrt(0.5)))
    return e.one("Mul", scaled(e, x, 0.5), tail)


@writes("GeluTanh")
def _gelu_tanh(n: ExportedNode) -> Any:
    e, x = n.e, n[0]
    cube = e.one("Mul", x, e.one("Mul", x, x))
    inner = scaled(e, e.one("AddV2", x, scaled(e, cube, 0.044715)), math.sqrt(2 / math.pi))
    return e.one("Mul", scaled(e, x, 0.5), e.one("AddV2", e.one("Tanh", inner), e.constant(1.0, x.dtype)))


@writes("GeluErfGrad")
def _gelu_gradient(n: ExportedNode) -> Any:
    e, dy, x = n.e, n[0], n[1]
    below = scaled(e, e.one("Erfc", scaled(e, x, -math.sqrt(0.5))), 0.5)
    density = scaled(e, e.one("Exp", scaled(e, e.one("Square", x), -0.5)), 1 / math.sqrt(2 * math.pi))
    return e.one("Mul", dy, e.one("AddV2", below, e.one("Mul", x, density)))


@writes("GeluTanhGrad")
def _gelu_tanh_gradient(n: ExportedNode) -> Any:
    """With u = c (x + a x^3): (1 + tanh u) / 2 + x (1 - tanh^2 u) c (1 + 3 a x^2) / 2."""
    e, dy, x = n.e, n[0], n[1]
    one, factor = e.constant(1.0, x.dtype), math.sqrt(2 / math.pi)
    square = e.one("Square", x)
    curve = e.one("AddV2", one, scaled(e, square, 0.044715))
    tanh = e.one("Tanh", scaled(e, e.one("Mul", x, curve), factor))
    derivative = scaled(e, e.one("AddV2", one, scaled(e, square, 3 * 0.044715)), factor)
    rest = e.one("Mul", e.one("Mul", x, derivative), e.one("Sub", one, e.one("Square", tanh)))
    return e.one("Mul", dy, scaled(e, e.one("AddV2", e.one("AddV2", one, tanh), rest), 0.5))


@writes("SoftmaxGrad")
def _softmax_gradient(n: ExportedNode) -> Any:
    e, y, dy = n.e, n[0], n[1]
    total = e.one("Sum", e.one("Mul", y, dy), e.ints([-1]), keep_dims=True)
    return e.one("Mul", e.one("Sub", dy, total), y)


@writes("LeakyRelu", "LeakyReluGrad")
def _leaky(n: ExportedNode) -> Any:
    return n.e.one(n.op, *n.inputs, alpha=n.param(0))


@writes("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits")
def _cross_entropy(n: ExportedNode) -> Any:
    """One row for each distribution: TensorFlow's operation takes matrices."""
    e, (features, labels) = n.e, n.inputs
    rank = n.shape(0).rank
    if rank == 2:
        return e.node(n.op, features, labels)[: n.count]
    whole = e.one("Shape", features)
    classes = e.one("StridedSlice", whole, e.ints([-1]), e.ints([0]), e.ints([1]), end_mask=1)
    outer = e.one("StridedSlice", whole, e.ints([0]), e.ints([-1]), e.ints([1]), begin_mask=1)
    matrix = e.one("ConcatV2", [e.ints([-1]), classes], e.ints(0))
    flat = e.ints([-1]) if n.op.startswith("Sparse") else matrix
    loss, backprop = e.node(n.op, e.one("Reshape", features, matrix), e.one("Reshape", labels, flat))
    return [e.one("Reshape", loss, outer), e.one("Reshape", backprop, whole)][: n.count]
