"""Operations without one of TensorFlow's, as compositions of others that are traced and written in their place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src.compat.graph_def.emitter import Ref
from tapeflow._src.compat.graph_def.export_rules.features import writes_function
from tapeflow._src.compat.graph_def.export_rules.python import as_ref
from tapeflow._src.compat.graph_def.exporter import ExportedNode, writes
from tapeflow._src.compat.graph_def.inlining import inlined, read_back
from tapeflow._src.control_flow.loops import while_loop
from tapeflow._src.control_flow.tensor_array import TensorArray
from tapeflow._src.ops.arrays import constants
from tapeflow._src.ops.arrays.constants import eye, zeros_like
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.arrays.indexing import where
from tapeflow._src.ops.arrays.shaping import meshgrid, shape
from tapeflow._src.ops.linalg.factorizations import pinv
from tapeflow._src.ops.signal.spectral import irfft, irfft2d, irfft3d


def _joined(*parts: Any) -> Any:
    """Vectors of integers one after the other."""
    return primitives.ConcatV2([cast(part, "int32") for part in parts], 0)


# ---- gathering


def gather_gradient(axis: int, batch: int, rank: int, index_rank: int) -> Callable[..., Any]:
    """Rows added up by their numbers; each batch has numbers of its own."""
    middle = index_rank - batch
    order = [*range(batch), *range(axis, axis + middle), *range(batch, axis), *range(axis + middle, rank - 1 + middle)]
    back = [*range(batch), *range(batch + 1, axis + 1), batch, *range(axis + 1, rank)]

    def run(dy: Any, indices: Any, sizes: Any) -> Any:
        outer, inner, behind = sizes[:batch], sizes[batch:axis], sizes[axis + 1 :]
        count, batches = sizes[axis], primitives.Prod(outer, 0)
        rows = primitives.Reshape(primitives.Transpose(dy, order), _joined([-1], inner, behind))
        numbers = primitives.Reshape(cast(indices, "int32"), primitives.Pack([batches, -1], 0))
        own = primitives.ExpandDims(constants.range(batches) * count, 1)
        found = primitives.UnsortedSegmentSum(rows, primitives.Reshape(numbers + own, [-1]), batches * count)
        found = primitives.Reshape(found, _joined(outer, [count], inner, behind))
        return primitives.Transpose(found, back)

    return run


@writes("GatherGrad")
def _gather(n: ExportedNode) -> Any:
    axis, batch = n.param(1) or 0, n.param(2) or 0
    rank, index_rank = n.kind[1].rank, n.shape(1).rank
    if rank is None or index_rank is None:
        raise n.unsupported("an unknown rank")
    run = gather_gradient(axis % rank, batch % (index_rank + 1), rank, index_rank)
    return inlined(n, run, [n[0], n[1], _as_int32(n, n.tensor(0))])


def _as_int32(n: ExportedNode, ref: Ref) -> Ref:
    return ref if ref.dtype.name == "int32" else n.e.one("Cast", ref, DstT="int32")._replace(shape=ref.shape)


def top_k_gradient(x: Any, indices: Any, dy: Any) -> Any:
    """The cotangents of the largest elements at their places in the last dimension of `x`."""
    rank = x.shape.rank
    return gather_gradient(rank - 1, rank - 1, rank, rank)(dy, indices, shape(x))


def places_with_batches(batch: int) -> Callable[[Any], Any]:
    """Indices of `gather_nd` with the numbers of the leading dimensions, of which each has indices of its own."""

    def run(indices: Any) -> Any:
        sizes = shape(indices, out_type=indices.dtype)
        grids = meshgrid(*(constants.range(sizes[i]) for i in range(batch)), indexing="ij")
        ones = [1] * (indices.shape.rank - batch)
        full = primitives.ConcatV2([sizes[:-1], [1]], 0)
        places = [primitives.Reshape(g, primitives.ConcatV2([sizes[:batch], ones], 0)) for g in grids]
        places = [primitives.BroadcastTo(place, full) for place in places]
        return primitives.ConcatV2([*places, indices], -1)

    return run


@writes("GatherNd")
def _gather_nd(n: ExportedNode) -> Any:
    batch, indices = n.param(0), n[1]
    if batch:
        if n.shape(1).rank is None:
            raise n.unsupported("indices of unknown rank")
        (indices,) = inlined(n, places_with_batches(batch), [indices])
    return n.e.one("GatherNd", n[0], indices, bad_indices_policy=n.param(1) or "")


# ---- pools with the places of their maxima


def _places_in_batch(argmax: Any, sizes: Any, has_batch: bool) -> Any:
    """Places that are counted in each image, counted in the whole batch."""
    if has_batch:
        return argmax
    image = primitives.Prod(cast(sizes[1:], "int64"), 0)
    first = cast(constants.range(sizes[0]), "int64") * image
    return cast(argmax, "int64") + primitives.Reshape(first, [-1] + [1] * (argmax.shape.rank - 1))


def places_gradient(has_batch: bool) -> Callable[..., Any]:
    """The cotangents of a pool at the places of its maxima."""

    def run(dy: Any, argmax: Any, sizes: Any) -> Any:
        places = primitives.Reshape(_places_in_batch(argmax, sizes, has_batch), [-1])
        found = primitives.UnsortedSegmentSum(primitives.Reshape(dy, [-1]), places, primitives.Prod(sizes, 0))
        return primitives.Reshape(found, sizes)

    return run


@writes("MaxPoolGradWithArgmax")
def _argmax_gradient(n: ExportedNode) -> Any:
    """TensorFlow's operation of this name has no derivative."""
    return inlined(n, places_gradient(bool(n.param(5))), [n[0], n[1], _as_int32(n, n.tensor(6))])


@writes("MaxPoolGradGradWithArgmax")
def _argmax_pick(n: ExportedNode) -> Any:
    has_batch = bool(n.param(5))

    def run(v: Any, argmax: Any) -> Any:
        places = _places_in_batch(argmax, shape(v), has_batch)
        return primitives.GatherV2(primitives.Reshape(v, [-1]), places, 0, 0)

    return inlined(n, run, [n[0], n[1]])


# ---- matrices


@writes("MatrixPseudoInverse")
def _pseudo_inverse(n: ExportedNode) -> Any:
    return inlined(n, pinv, [n[0], n[1]])


# The coefficients of the Padé approximant of order 13, and the norm up to which it holds in double precision.
_PADE = [math.comb(13, k) * math.factorial(26 - k) / math.factorial(26) for k in range(14)]
_PADE_NORM = 5.371920351148152


def _exponential(x: Any) -> Any:
    """exp(a) = exp(a / 2^s)^(2^s), where the inner one is a quotient of polynomials; in double precision."""
    a = cast(x, "complex128" if x.dtype.is_complex else "float64")
    norm = primitives.Max(primitives.Sum(primitives.Abs(a), -2))
    doublings = primitives.Ceil(primitives.Log(norm / _PADE_NORM) / math.log(2.0))
    doublings = primitives.Maximum(where(primitives.IsFinite(doublings), doublings, 0.0), 0.0)
    scaled = a * cast(2.0**-doublings, a.dtype)
    unit = eye(shape(a)[-1], dtype=a.dtype)
    square = primitives.MatMul(scaled, scaled)
    powers = [unit + zeros_like(scaled), square]
    for _ in range(5):
        powers.append(primitives.MatMul(powers[-1], square))
    even = sum(powers[k] * cast(_PADE[2 * k], a.dtype) for k in range(7))
    odd = primitives.MatMul(scaled, sum(powers[k] * cast(_PADE[2 * k + 1], a.dtype) for k in range(7)))
    found = primitives.MatrixSolve(even - odd, even + odd)
    count = cast(doublings, "int32")
    _, found = while_loop(lambda i, y: i < count, lambda i, y: (i + 1, primitives.MatMul(y, y)), [0, found])
    return cast(found, x.dtype)


@writes("MatrixExponential")
def _matrix_exponential(n: ExportedNode) -> Any:
    return inlined(n, _exponential, [n[0]])


def _real_of_half(rank: int) -> Callable[[ExportedNode, dict[str, Any]], Any]:
    """The inverse of a transform of real numbers; without a length, that of an even number of points."""

    def write(n: ExportedNode, given: dict[str, Any]) -> Any:
        e, x, length = n.e, as_ref(n.e, given["input_tensor"], None), given["fft_length"]
        if length is None:
            sizes = e.one("Shape", x)
            last = e.one("StridedSlice", sizes, e.ints([-1]), e.ints([0]), e.ints([1]), end_mask=1)
            length = e.one("Mul", e.one("Sub", last, e.ints(1)), e.ints(2))
            if rank > 1:
                outer = e.one("StridedSlice", sizes, e.ints([-rank]), e.ints([-1]), e.ints([1]))
                length = e.one("ConcatV2", [outer, length], e.ints(0))
        name = "IRFFT" if rank == 1 else f"IRFFT{rank}D"
        return e.one(name, x, as_ref(e, length, "int32"), Treal=n.kind[0])

    return write


for _rank, _function in enumerate((irfft, irfft2d, irfft3d), 1):
    writes_function(_function)(_real_of_half(_rank))


# ---- recurrences and normalisation


@writes("LinearRecurrence")
def _recurrence(n: ExportedNode) -> Any:
    """y[k] = b[k] + a[k] y[k-1], in as many steps as the length has binary digits: intervals of double length."""
    axis, rank = n.param(0) or 0, n.shape(1).rank
    if rank is None:
        raise n.unsupported("an unknown rank")
    axis, reverse = axis % rank, bool(n.param(1))

    def moved(x: Any, by: Any, filler: int) -> Any:
        """Elements at places that are higher by a number; the first ones are the filler."""
        before = np.zeros([rank, 2], np.int32)
        before[axis, 0] = 1
        wide = primitives.PadV2(x, primitives.Reshape(before * by, [-1]), cast(filler, x.dtype))
        return wide[tuple(slice(0, shape(x)[i]) if i == axis else slice(None) for i in range(rank))]

    def step(by: Any, a: Any, b: Any) -> Any:
        return by * 2, a * moved(a, by, 0), b + a * moved(b, by, 0)

    def run(a: Any, b: Any) -> Any:
        a, b = (primitives.ReverseV2(x, [axis]) if reverse else x for x in (a, b))
        length = shape(b)[axis]
        _, _, y = while_loop(lambda by, a, b: by < length, step, [1, a, b])
        return primitives.ReverseV2(y, [axis]) if reverse else y

    return inlined(n, run, n.inputs)


@writes("NormalizeGrad")
def _normalize_gradient(n: ExportedNode) -> Any:
    """With r = 1 / sqrt(variance + epsilon): what flows to x is dy r scale, and the others are sums of it."""
    epsilon = n.param(0) or 0.0
    columns = n.writer.kind(n.first + 3)[1]

    def run(x: Any, mean: Any, variance: Any, scale: Any, dy: Any) -> Any:
        r = primitives.Rsqrt(variance + epsilon)
        through, distance = dy * (r * scale), x - mean
        d_variance = through * distance * (r * r) * -0.5
        rows = primitives.Reshape(dy * distance * r, [-1, columns[0]]), primitives.Reshape(dy, [-1, columns[0]])
        return [
            through,
            -_summed(through, mean),
            _summed(d_variance, variance),
            *(primitives.Sum(t, 0) for t in rows),
        ]

    if not columns.is_fully_defined():
        raise n.unsupported("an unknown shape")
    return inlined(n, run, n.inputs)


def _summed(dx: Any, x: Any) -> Any:
    """A gradient summed to the shape of what was broadcast, where that shape is known."""
    sizes = x.shape.as_list()
    lead = dx.shape.rank - len(sizes)
    axes = [*range(lead), *(i + lead for i, size in enumerate(sizes) if size == 1)]
    return primitives.Reshape(primitives.Sum(dx, axes), shape(x)) if axes else dx


# ---- connectionist temporal classification


@writes("CTCLossDense")
def _ctc_loss(n: ExportedNode) -> Any:
    """By `CTCLoss`, which takes sparse labels and has the blank as its last class."""
    e, blank, merge = n.e, n.param(0), n.param(1)
    kind = n[0].dtype

    def prepared(logits: Any, labels: Any, label_length: Any, length: Any) -> Any:
        classes = [logits[..., :blank], logits[..., blank + 1 :], logits[..., blank : blank + 1]]
        logits = primitives.ConcatV2(classes, -1)
        labels, label_length, length = (cast(x, "int32") for x in (labels, label_length, length))
        columns = constants.range(shape(labels)[1])
        inside = primitives.ExpandDims(columns, 0) < primitives.ExpandDims(label_length, 1)
        places = primitives.Where(inside)
        repeats = primitives.LogicalAnd(primitives.Equal(labels[:, 1:], labels[:, :-1]), inside[:, 1:])
        needed = label_length + (primitives.Sum(cast(repeats, "int32"), 1) if merge else 0)
        values = primitives.GatherNd(labels, places, 0)
        values = where(values > blank, values - 1, values)
        wide = logits if kind.name == "float64" else cast(logits, "float32")
        return [wide, places, values, primitives.Minimum(length, shape(logits)[0]), needed > length]

    def finished(loss: Any, derivative: Any, impossible: Any) -> Any:
        parts = [derivative[..., :blank], derivative[..., -1:], derivative[..., blank:-1]]
        loss = where(impossible, cast(math.inf, loss.dtype), loss)
        return [cast(loss, kind), cast(primitives.ConcatV2(parts, -1), kind)]

    *given, impossible = inlined(n, prepared, n.inputs)
    given[0] = given[0]._replace(shape=n.shape(0))
    found = e.node("CTCLoss", *given, ctc_merge_repeated=merge, ignore_longer_outputs_than_inputs=True)
    shapes = n.writer.kind(n.first)[1], n.shape(0)
    found = [ref._replace(shape=known) for ref, known in zip(found, shapes)]
    return inlined(n, finished, [*found, impossible._replace(shape=shapes[0])])


@writes("CTCBeamSearchDecoder")
def _beam_search(n: ExportedNode) -> Any:
    width, paths = n.param(0), n.param(1)
    length = _as_int32(n, n[1])
    return n.e.node(n.op, n[0], length, beam_width=width, top_paths=paths, merge_repeated=n.param(2))


# ---- vectorised maps


@writes("BatchedCall")
def _rows(n: ExportedNode) -> Any:
    """A loop over the rows: TensorFlow has no operation that runs a graph with a leading batch dimension."""
    data, sliced = n._params[0][1]
    (call,) = read_back(n.writer.where, [data])

    def run(*tensors: Any) -> list[Any]:
        counts = [shape(x)[0] for x, yes in zip(tensors, sliced) if yes]
        rows = primitives.Max(primitives.Pack(counts, 0), 0)

        def row(i: Any) -> list[Any]:
            places = [primitives.Minimum(i, shape(x)[0] - 1) if yes else None for x, yes in zip(tensors, sliced)]
            return call([x if place is None else x[place] for x, place in zip(tensors, places)])

        return _for_rows(rows, row, data)

    return inlined(n, run, n.inputs)


def _for_rows(rows: Any, row: Callable[[Any], list[Any]], data: Any) -> list[Any]:
    """What a graph gives for each row of a batch, stacked."""
    kinds = [data[4][number] for number in data[3]]
    lists = [TensorArray(dtype, rows, element_shape=known) for dtype, known in kinds]
    body = lambda i, lists: (i + 1, [array.write(i, y) for array, y in zip(lists, row(i))])  # noqa: E731
    _, lists = while_loop(lambda i, lists: i < rows, body, [0, lists])
    return [array.stack() for array in lists]


@writes("JacobianRows")
def _jacobian(n: ExportedNode) -> Any:
    """A loop over the elements of the target: the backward pass for a cotangent of one such element."""
    data, by_example = n._params[0][1]
    (call,) = read_back(n.writer.where, [data])

    def run(like: Any, *captures: Any) -> list[Any]:
        sizes = shape(like)
        inner = sizes[1:] if by_example else sizes
        rows = primitives.Prod(inner, 0)

        def row(i: Any) -> list[Any]:
            unit = primitives.Reshape(cast(primitives.Equal(constants.range(rows), i), like.dtype), inner)
            return call([primitives.BroadcastTo(unit, sizes), *captures])

        found = []
        for dx, number in zip(_for_rows(rows, row, data), data[3]):
            source = data[4][number][1]
            if by_example:
                dx = primitives.Transpose(dx, [1, 0, *range(2, source.rank + 1)])
            found.append(primitives.Reshape(dx, _joined(sizes, shape(dx)[2 if by_example else 1 :])))
        return found

    return inlined(n, run, n.inputs)
