"""How derivative rules that wait for shapes are written: with the shapes computed in the graph, as TensorFlow does.

A rule that asks for no shapes is traced on symbolic tensors and written as it is. Elementwise rules get inputs that are
broadcast to the shape of the result, and their results are summed back. The others have a formula here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.compat.graph_def.emitter import Ref
from tapeflow._src.compat.graph_def.export_rules.arrays import ordered, slice_arguments
from tapeflow._src.compat.graph_def.export_rules.compositions import (
    gather_gradient,
    places_with_batches,
    top_k_gradient,
)
from tapeflow._src.compat.graph_def.export_rules.math import axes_of
from tapeflow._src.compat.graph_def.export_rules.nn import (
    Window,
    conv_attributes,
    depthwise_gradient,
    pool_attributes,
)
from tapeflow._src.compat.graph_def.exporter import ExportedNode, writes
from tapeflow._src.compat.graph_def.inlining import inlined, written_trace
from tapeflow._src.ops.arrays.constants import dynamic_dims
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.arrays.padding import pad
from tapeflow._src.types.tensor_shape import TensorShape

# Rules that ask for no shape: the results of all their operations follow from the operands.
_SHAPELESS = frozenset(
    ("AddN", "CheckNumerics", "Cholesky", "Complex", "ComplexAbs", "Cumsum", "EluGrad")
    + ("GatherGrad", "GeluErfGrad", "GeluTanhGrad", "Identity", "Imag", "LeakyRelu")
    + ("LogMatrixDeterminant", "LogSoftmax", "MatrixBandPart", "MatrixDeterminant", "MatrixInverse")
    + ("MatrixPseudoInverse",)
    + ("MatrixSolve", "MatrixTriangularSolve", "MaxPool", "Pack", "Real", "ReciprocalGrad", "Relu6Grad")
    + ("ReluGrad", "ReverseV2", "RollAxis", "RsqrtGrad", "ScatterNd", "SegmentMax", "SegmentMin", "SegmentProd")
    + ("SeluGrad", "SigmoidCrossEntropy", "SigmoidGrad", "Sign", "Softmax", "SoftmaxCrossEntropyWithLogits")
    + ("SoftmaxGrad", "SoftplusGrad", "SoftsignGrad", "SparseSoftmaxCrossEntropyWithLogits")
    + ("SparseTensorDenseMatMul", "SqrtGrad", "StitchRows", "StraightThrough", "TanhGrad", "TensorScatterAdd")
    + ("TensorScatterSub", "TensorScatterUpdate", "Transpose")
)
_ELEMENTWISE = frozenset(
    ("AddV2", "Sub", "Mul", "RealDiv", "DivNoNan", "MulNoNan", "Pow", "Maximum", "Minimum", "SquaredDifference")
    + ("FloorMod", "TruncateMod", "Atan2", "SelectV2", "Xlogy", "Xdivy", "Xlog1py", "Igamma", "Igammac", "NextAfter")
    + ("Betainc", "Polygamma", "Zeta")
)

Formula = Callable[["Rule"], list[Any]]
_formula_by_op: dict[str, Formula] = {}


def formula(*ops: str) -> Callable[[Formula], Formula]:
    """Registers what writes the deferred rules of these operations."""

    def register(formula: Formula) -> Formula:
        _formula_by_op.update(dict.fromkeys(ops, formula))
        return formula

    return register


class Rule:
    """A deferred rule: inputs `x` and outputs `y` of the operation, and the cotangents `dys` (None: none flows)."""

    def __init__(self, n: ExportedNode) -> None:
        name, inputs, outputs, flows, self.wanted, self.handle = n._params[0][1]
        self.outer, self.e, self.op = n, n.e, name
        self.x, self.y = n.inputs[:inputs], n.inputs[inputs : inputs + outputs]
        rest = iter(n.inputs[inputs + outputs :])
        self.dys = [next(rest) if flow else None for flow in flows]
        first = n._numbers[inputs] if outputs else n.first
        # The operation itself, whose parameters the formulas read.
        self.node = ExportedNode(n.writer, (name, n._numbers[:inputs], n._params[1:], first, outputs, None, n.number))

    @property
    def dy(self) -> Ref:
        """The cotangent of an operation with one output."""
        found = self.dys[0]
        if found is None:
            raise self.outer.unsupported(f"the rule of {self.op} without a cotangent")
        return found

    def shape(self, x: Ref) -> Ref:
        """The shape of a tensor, when the graph runs."""
        return self.e.one("Shape", x, out_type="int32")

    def traced(self, tensors: list[Ref]) -> list[Ref]:
        """What the rule gives for these tensors, written into the graph: one for each input that wants a gradient."""
        if self.handle is None:
            raise self.outer.unsupported(f"the rule of {self.op} with a parameter that is computed")
        return written_trace(self.outer, lambda given: _core.trace_deferred(self.handle, given), tensors)


@writes("Deferred")
def _deferred(n: ExportedNode) -> Any:
    rule = Rule(n)
    if rule.op in _formula_by_op:
        found = _formula_by_op[rule.op](rule)
        gradients = [dx for dx, wanted in zip(found, rule.wanted) if wanted]
    elif rule.op in _SHAPELESS:
        gradients = rule.traced(n.inputs)
    elif rule.op in _ELEMENTWISE:
        gradients = _elementwise(rule)
    else:
        raise n.unsupported(f"the gradient of {rule.op} where shapes are unknown")
    sources = [x for x, wanted in zip(rule.x, rule.wanted) if wanted]
    return [n.e.one("ZerosLike", x) if dx is None else dx for x, dx in zip(sources, gradients)]


# ---- broadcasting


def _unbroadcast(rule: Rule, dx: Ref, x: Ref, out: Ref) -> Ref:
    """A gradient of the shape of the result, summed to the shape of an operand."""
    e, shape = rule.e, rule.shape(x)
    axes, _ = e.node("BroadcastGradientArgs", shape, rule.shape(out))
    return e.one("Reshape", e.one("Sum", dx, axes), shape)._replace(shape=x.shape)


def _elementwise(rule: Rule) -> list[Ref]:
    y = rule.y[0]
    sizes = rule.shape(y)
    wide = [rule.e.one("BroadcastTo", x, sizes)._replace(shape=y.shape) for x in rule.x]
    found = rule.traced([*wide, y, rule.dy._replace(shape=y.shape)])
    sources = [x for x, wanted in zip(rule.x, rule.wanted) if wanted]
    return [_unbroadcast(rule, dx, x, y) for dx, x in zip(found, sources)]


@formula("BroadcastTo")
def _broadcast(rule: Rule) -> list[Any]:
    return [_unbroadcast(rule, rule.dy, rule.x[0], rule.y[0])]


@formula("Cast")
def _cast(rule: Rule) -> list[Any]:
    return [rule.e.one("Cast", rule.dy, DstT=rule.x[0].dtype)]


# ---- shapes


@formula("Reshape", "ExpandDims", "Squeeze", "EnsureShape")
def _reshape(rule: Rule) -> list[Any]:
    return [rule.e.one("Reshape", rule.dy, rule.shape(rule.x[0]))]


@formula("Unpack")
def _unpack(rule: Rule) -> list[Any]:
    e = rule.e
    parts = [e.one("ZerosLike", y) if dy is None else dy for y, dy in zip(rule.y, rule.dys)]
    return [e.one("Pack", parts, axis=rule.node.param(1) or 0)]


@formula("Tile")
def _tile(rule: Rule) -> list[Any]:
    e, shape = rule.e, rule.shape(rule.x[0])
    multiples = rule.node.tensor(0)
    pairs = e.one(
        "Reshape", e.one("Transpose", e.one("Pack", [multiples, shape], axis=0), e.ints([1, 0])), e.ints([-1])
    )
    axes = e.one("Range", e.ints(0), e.one("Size", pairs, out_type="int32"), e.ints(2))
    return [e.one("Reshape", e.one("Sum", e.one("Reshape", rule.dy, pairs), axes), shape)]


@formula("ConcatV2")
def _concat(rule: Rule) -> list[Any]:
    e, shapes = rule.e, [rule.shape(x) for x in rule.x]
    axis = rule.node.tensor(0)
    rank = next((x.shape.rank for x in rule.x if x.shape.rank is not None), None)
    if rank is not None:
        axis = e.one("FloorMod", axis, e.ints(rank))
    if len(rule.x) == 1:
        return [rule.dy]
    offsets = e.node("ConcatOffset", axis, shapes)
    return [e.one("Slice", rule.dy, offset, shape) for offset, shape in zip(offsets, shapes)]


@formula("SplitV")
def _split(rule: Rule) -> list[Any]:
    e = rule.e
    parts = [e.one("ZerosLike", y) if dy is None else dy for y, dy in zip(rule.y, rule.dys)]
    return [e.one("ConcatV2", parts, rule.node.tensor(1))]


@formula("StridedSlice", "GetItem")
def _slice(rule: Rule) -> list[Any]:
    (begin, end, strides), masks = slice_arguments(rule.node)
    shape = rule.e.one("Shape", rule.x[0], out_type=begin.dtype)
    return [rule.e.one("StridedSliceGrad", shape, begin, end, strides, rule.dy, **masks)]


@formula("PadV2")
def _pad(rule: Rule) -> list[Any]:
    e, node = rule.e, rule.node
    pairs = e.one("Reshape", node.tensor(0), e.ints([-1, 2]))
    masks = {"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": 2}
    before = e.one("StridedSlice", pairs, e.ints([0, 0]), e.ints([0, 1]), e.ints([1, 1]), **masks)
    before = before if before.dtype.name == "int32" else e.one("Cast", before, DstT="int32")
    return [e.one("Slice", rule.dy, before, rule.shape(rule.x[0])), None]


# ---- reductions


def _kept(rule: Rule, value: Ref) -> Ref:
    """A result of a reduction with dimensions of size 1 in place of those that were reduced."""
    if rule.node.param(1):
        return value
    e, shape = rule.e, rule.shape(rule.x[0])
    rank = e.one("Size", shape, out_type="int32")
    axes = e.one("FloorMod", e.one("Reshape", axes_of(rule.node, 0), e.ints([-1])), rank)
    places = e.one("Range", e.ints(0), rank, e.ints(1))
    ones = e.one("Fill", e.one("Shape", axes, out_type="int32"), e.ints(1))
    return e.one("Reshape", value, e.one("DynamicStitch", [places, axes], [shape, ones]))


@formula("Sum")
def _sum(rule: Rule) -> list[Any]:
    return [rule.e.one("BroadcastTo", _kept(rule, rule.dy), rule.shape(rule.x[0]))]


@formula("Mean")
def _mean(rule: Rule) -> list[Any]:
    e, (dx,) = rule.e, _sum(rule)
    sizes = [e.one("Size", t, out_type="int32") for t in (rule.x[0], rule.y[0])]
    count = e.one("FloorDiv", sizes[0], e.one("Maximum", sizes[1], e.ints(1)))
    return [e.one("RealDiv", dx, e.one("Cast", count, DstT=dx.dtype))]


@formula("SumOfSquares")
def _sum_of_squares(rule: Rule) -> list[Any]:
    e, x = rule.e, rule.x[0]
    return [e.one("Mul", e.one("Mul", x, e.constant(2, x.dtype)), _kept(rule, rule.dy))]


@formula("EuclideanNorm")
def _norm(rule: Rule) -> list[Any]:
    e = rule.e
    return [e.one("DivNoNan", e.one("Mul", rule.x[0], _kept(rule, rule.dy)), _kept(rule, rule.y[0]))]


@formula("Max", "Min")
def _extreme(rule: Rule) -> list[Any]:
    e, x = rule.e, rule.x[0]
    chosen = e.one("Cast", e.one("Equal", _kept(rule, rule.y[0]), x), DstT=x.dtype)
    count = e.one("Sum", chosen, axes_of(rule.node, 0), keep_dims=True)
    return [e.one("Mul", e.one("RealDiv", chosen, count), _kept(rule, rule.dy))]


def _other_factors(axes: list[int]) -> Callable[[Any], Any]:
    """The product of the other elements over several axes, which become the last one for it."""

    def run(x: Any) -> Any:
        rank = x.shape.rank
        reduced = sorted({a % rank for a in axes})
        kept = [i for i in range(rank) if i not in reduced]
        order = [*kept, *reduced]
        moved = primitives.Transpose(x, order)
        sizes = primitives.Shape(moved)
        rows = primitives.Reshape(moved, primitives.ConcatV2([sizes[: len(kept)], [-1]], 0))
        rows = rows if kept else primitives.Reshape(rows, [-1])
        found = primitives.Cumprod(rows, -1, True, False) * primitives.Cumprod(rows, -1, True, True)
        found = primitives.Conj(found) if x.dtype.is_complex else found
        return primitives.Transpose(primitives.Reshape(found, sizes), np.argsort(order).tolist())

    return run


@formula("Prod")
def _product(rule: Rule) -> list[Any]:
    """The product of the others, without division: those before, times those behind."""
    e, x = rule.e, rule.x[0]
    axes = rule.node.param(0)
    shape, source = rule.shape(x), x
    if axes is None or x.shape.rank == 1:
        source, axis = e.one("Reshape", x, e.ints([-1])), e.ints(0)
    elif len(np.atleast_1d(axes)) == 1:
        axis = e.ints(int(np.atleast_1d(axes)[0]))
    else:
        (others,) = inlined(rule.outer, _other_factors([int(a) for a in axes]), [x])
        return [e.one("Mul", others, _kept(rule, rule.dy))]
    before = e.one("Cumprod", source, axis, exclusive=True)
    behind = e.one("Cumprod", source, axis, exclusive=True, reverse=True)
    others = e.one("Reshape", e.one("Mul", before, behind), shape)
    others = e.one("Conj", others) if x.dtype.is_complex else others
    return [e.one("Mul", others, _kept(rule, rule.dy))]


@formula("Moments")
def _moments(rule: Rule) -> list[Any]:
    """Both results keep their dimensions: d mean / n + 2 (x - mean) d variance / n."""
    e, x, (mean, _) = rule.e, rule.x[0], rule.y
    shape = rule.shape(x)
    sizes = [e.one("Cast", e.one("Size", t, out_type="int32"), DstT=x.dtype) for t in (mean, x)]
    share = e.one("RealDiv", *sizes)
    parts = []
    if rule.dys[0] is not None:
        parts.append(e.one("BroadcastTo", rule.dys[0], shape))
    if rule.dys[1] is not None:
        twice = e.one("Mul", e.one("Sub", x, mean), e.constant(2, x.dtype))
        parts.append(e.one("Mul", twice, rule.dys[1]))
    total = e.one("AddV2", *parts) if len(parts) == 2 else parts[0]
    return [e.one("Mul", total, share)]


@formula("Normalize")
def _normalize(rule: Rule) -> list[Any]:
    """y = (x - mean) r scale + offset with r = 1 / sqrt(variance + epsilon), everything broadcast to x."""
    e, (x, mean, variance, scale, offset) = rule.e, rule.x
    y, kind = rule.y[0], variance.dtype
    wide = [t if t.dtype == kind else e.one("Cast", t, DstT=kind) for t in (x, rule.dy)]
    r = e.one("Rsqrt", e.one("AddV2", variance, e.constant(rule.node.param(0), kind)))
    centered, dy = e.one("Sub", wide[0], mean), wide[1]
    through = e.one("Mul", dy, e.one("Mul", r, scale))
    d_scale = e.one("Mul", e.one("Mul", dy, centered), r)
    cube = e.one("Mul", e.one("Mul", r, r), e.constant(-0.5, kind))
    d_variance = e.one("Mul", e.one("Mul", e.one("Mul", dy, centered), e.one("Mul", r, scale)), cube)
    parts = [(through, x), (e.one("Neg", through), mean), (d_variance, variance), (d_scale, scale), (dy, offset)]
    found = [_unbroadcast(rule, dx, source, y) for dx, source in parts]
    return [
        dx if dx.dtype == source.dtype else e.one("Cast", dx, DstT=source.dtype) for dx, source in zip(found, rule.x)
    ]


# ---- rows


@formula("GatherV2")
def _gather(rule: Rule) -> list[Any]:
    axis, batch = rule.node.param(0), rule.node.param(1)
    e, x, indices, rank = rule.e, rule.x[0], rule.x[1], rule.x[0].shape.rank
    if rank is None or indices.shape.rank is None:
        raise rule.outer.unsupported("the gradient of gather of unknown rank")
    if batch:
        batch %= indices.shape.rank + 1
        run = gather_gradient((axis or 0) % rank, batch, rank, indices.shape.rank)
        return [*inlined(rule.outer, run, [rule.dy, indices, rule.shape(x)._replace(shape=TensorShape([rank]))]), None]
    axis, shape, dy = (axis or 0) % rank, rule.shape(x), rule.dy
    if axis:  # the gathered dimensions come first
        count = indices.shape.rank
        order = [*range(axis, axis + count), *range(axis), *range(axis + count, rank - 1 + count)]
        dy = e.one("Transpose", dy, e.ints(order))
    inner = e.one("GatherV2", shape, e.ints([i for i in range(rank) if i != axis]), e.ints(0))
    rows = e.one("Reshape", dy, e.one("ConcatV2", [e.ints([-1]), inner], e.ints(0)))
    count = e.one("GatherV2", shape, e.ints(axis), e.ints(0))
    found = e.one("UnsortedSegmentSum", rows, e.one("Reshape", indices, e.ints([-1])), count)
    if axis:
        found = e.one("Transpose", found, e.ints([*range(1, axis + 1), 0, *range(axis + 1, rank)]))
    return [found, None]


@formula("TopKV2")
def _top_k(rule: Rule) -> list[Any]:
    if rule.x[0].shape.rank is None:
        raise rule.outer.unsupported("the gradient of top_k of unknown rank")
    return inlined(rule.outer, top_k_gradient, [rule.x[0], rule.y[1], rule.dy])


@formula("Sort")
def _sort(rule: Rule) -> list[Any]:
    if rule.x[0].shape.rank is None:
        raise rule.outer.unsupported("the gradient of sort of unknown rank")
    _, positions = ordered(rule.e, rule.x[0], rule.node.param(0))
    return inlined(rule.outer, top_k_gradient, [rule.x[0], positions, rule.dy])


@formula("GatherNd")
def _gather_nd(rule: Rule) -> list[Any]:
    indices, batch = rule.x[1], rule.node.param(0)
    if batch:
        if indices.shape.rank is None:
            raise rule.outer.unsupported("the gradient of gather_nd for indices of unknown rank")
        (indices,) = inlined(rule.outer, places_with_batches(batch), [indices])
    shape = rule.e.one("Shape", rule.x[0], out_type=indices.dtype)
    return [rule.e.one("ScatterNd", indices, rule.dy, shape, bad_indices_policy=rule.node.param(1) or ""), None]


@formula("SegmentSum", "UnsortedSegmentSum")
def _segment_sum(rule: Rule) -> list[Any]:
    e, indices = rule.e, rule.x[1]
    zero = e.constant(0, indices.dtype)
    rows = e.one("GatherV2", rule.dy, e.one("Maximum", indices, zero), e.ints(0))
    inside = e.one("GreaterEqual", indices, zero)
    rank = rows.shape.rank if rows.shape.rank is not None else rule.x[0].shape.rank
    if rank is None:
        raise rule.outer.unsupported("the gradient of a segment sum of unknown rank")
    inside = e.one("Reshape", inside, e.one("ConcatV2", [rule.shape(indices), e.ints([1] * (rank - (indices.shape.rank or 1)))], e.ints(0)))  # fmt: skip  # noqa: E501
    return [e.one("SelectV2", inside, rows, e.constant(0, rows.dtype)), None]


# ---- products


@formula("MatMul")
def _matmul(rule: Rule) -> list[Any]:
    e, n, dy = rule.e, rule.node, rule.dy
    a, b = rule.x
    if n.param(6) is not None and n.kind[0] != a.dtype:
        raise rule.outer.unsupported("the gradient of a product of another dtype where shapes are unknown")
    if a.dtype.is_complex:
        found = inlined(rule.outer, _complex_product([bool(n.param(i)) for i in range(4)]), [a, b, dy])
        return [_sum_batches(rule, dx, x) for dx, x in zip(found, (a, b))]
    ta, tb = (bool(n.param(i) or n.param(i + 2)) for i in (0, 1))

    def product(x: Ref, y: Ref, transpose_x: bool, transpose_y: bool) -> Ref:
        if a.shape.rank == b.shape.rank == 2:
            return e.one("MatMul", x, y, transpose_a=transpose_x, transpose_b=transpose_y)
        return e.one("BatchMatMulV2", x, y, adj_x=transpose_x, adj_y=transpose_y)

    da = product(b, dy, tb, True) if ta else product(dy, b, False, not tb)
    db = product(dy, a, True, ta) if tb else product(a, dy, not ta, False)
    if a.shape.rank == b.shape.rank == 2:
        return [da, db]
    return [_sum_batches(rule, da, a), _sum_batches(rule, db, b)]


def _complex_product(flags: list[bool]) -> Callable[..., Any]:
    """The cotangents of both sides of a product, each of which may be transposed or adjoint."""

    def turned(x: Any, place: int) -> Any:
        last = [*range(x.shape.rank - 2), x.shape.rank - 1, x.shape.rank - 2]
        transposed = primitives.Transpose(x, last) if flags[place] or flags[place + 2] else x
        return primitives.Conj(transposed) if flags[place + 2] else transposed

    def run(a: Any, b: Any, dy: Any) -> list[Any]:
        da = primitives.MatMul(dy, turned(b, 1), False, False, False, True)
        db = primitives.MatMul(turned(a, 0), dy, False, False, True, False)
        return [turned(da, 0), turned(db, 1)]

    return run


def _sum_batches(rule: Rule, dx: Ref, x: Ref) -> Ref:
    e, shape = rule.e, rule.shape(x)
    heads = [e.one("StridedSlice", s, e.ints([0]), e.ints([-2]), e.ints([1]), begin_mask=1) for s in (shape, rule.shape(dx))]  # fmt: skip  # noqa: E501
    axes, _ = e.node("BroadcastGradientArgs", *heads)
    return e.one("Reshape", e.one("Sum", dx, axes), shape)


@formula("Conv")
def _conv(rule: Rule) -> list[Any]:
    e, w, (x, filters), dy = rule.e, Window(rule.node, 0, False), rule.x, rule.dy
    if w.rank == 5 and w.explicit:
        raise rule.outer.unsupported("explicit paddings of three dimensions")
    x, filters, dy = w.widened(e, x), w.widened(e, filters, 0), w.widened(e, dy)
    names = ("Conv2DBackpropInput", "Conv2DBackpropFilter") if w.rank == 4 else ("Conv3DBackpropInputV2", "Conv3DBackpropFilterV2")  # fmt: skip  # noqa: E501
    attributes = conv_attributes(w)
    dx = e.one(names[0], rule.shape(x), filters, dy, **attributes)
    df = e.one(names[1], x, rule.shape(filters), dy, **attributes)
    return [w.narrowed(e, dx), w.narrowed(e, df, 0)]


@formula("ConvBackpropInput")
def _conv_input(rule: Rule) -> list[Any]:
    """Linear in both: a convolution by the cotangent, and by the filters."""
    e, w, (filters, x) = rule.e, Window(rule.node, 0, False), rule.x
    filters, x, dy = w.widened(e, filters, 0), w.widened(e, x), w.widened(e, rule.dy)
    by_filter = "Conv2DBackpropFilter" if w.rank == 4 else "Conv3DBackpropFilterV2"
    d_filters = e.one(by_filter, dy, rule.shape(filters), x, **conv_attributes(w))
    dx = e.one(f"Conv{w.dims()}", dy, filters, **conv_attributes(w))
    return [w.narrowed(e, d_filters, 0), w.narrowed(e, dx)]


@formula("ConvBackpropFilter")
def _conv_filter(rule: Rule) -> list[Any]:
    e, w, (x, y) = rule.e, Window(rule.node, 0, False), rule.x
    x, y, d_filters = w.widened(e, x), w.widened(e, y), w.widened(e, rule.dy, 0)
    by_input = "Conv2DBackpropInput" if w.rank == 4 else "Conv3DBackpropInputV2"
    dx = e.one(by_input, rule.shape(x), d_filters, y, **conv_attributes(w))
    dy = e.one(f"Conv{w.dims()}", x, d_filters, **conv_attributes(w))
    return [w.narrowed(e, dx), w.narrowed(e, dy)]


@formula("DepthwiseConv")
def _depthwise(rule: Rule) -> list[Any]:
    e, w, (x, filters), dy = rule.e, Window(rule.node, 0, False), rule.x, rule.dy
    x, filters, dy = w.widened(e, x), w.widened(e, filters, 0), w.widened(e, dy)
    dx, df = (depthwise_gradient(e, w, x, filters, dy, None, by_filter) for by_filter in (False, True))
    return [w.narrowed(e, dx), w.narrowed(e, df, 0)]


@formula("AvgPool")
def _average_pool(rule: Rule) -> list[Any]:
    e, w = rule.e, Window(rule.node, 0, True)
    x, dy = w.widened(e, rule.x[0]), w.widened(e, rule.dy)
    name = "AvgPoolGrad" if w.rank == 4 else "AvgPool3DGrad"
    return [w.narrowed(e, e.one(name, rule.shape(x), dy, **pool_attributes(rule.node, w, False)))]


# ---- lists


@formula("TensorListStack", "Required")
def _passed(rule: Rule) -> list[Any]:
    return [rule.dy, *[None] * (len(rule.x) - 1)]


@formula("TensorListGetItem")
def _row(rule: Rule) -> list[Any]:
    e, (rows, index) = rule.e, rule.x
    place, dy = e.one("Reshape", index, e.ints([1, 1])), e.one("ExpandDims", rule.dy, e.ints(0))
    return [e.one("ScatterNd", place, dy, e.one("Shape", rows, out_type=index.dtype)), None]


@formula("TensorListSetItem")
def _set_row(rule: Rule) -> list[Any]:
    """The row goes to the item, the others to the list, which may have had fewer, or rows without elements."""
    e, (rows, index, item), dy = rule.e, rule.x, rule.dy
    d_item = e.one("Reshape", e.one("GatherV2", dy, index, e.ints(0)), rule.shape(item))
    blank = e.one("ExpandDims", e.one("ZerosLike", d_item), e.ints(0))
    others = e.one("TensorScatterUpdate", dy, e.one("Reshape", index, e.ints([1, 1])), blank)
    flat = e.one("Reshape", others, e.ints([-1]))
    count = e.one("Reshape", e.one("Size", rows, out_type="int32"), e.ints([1]))
    return [e.one("Reshape", e.one("Slice", flat, e.ints([0]), count), rule.shape(rows)), None, d_item]


# ---- extremes


@formula("TensorScatterMax", "TensorScatterMin")
def _scattered_extreme(rule: Rule) -> list[Any]:
    """The old element and the updates that equal the result share its cotangent."""
    e, (x, indices, updates), y = rule.e, rule.x, rule.y[0]
    policy = {"bad_indices_policy": rule.node.param(0) or ""}
    kept = e.one("Cast", e.one("Equal", x, y), DstT=x.dtype)
    taken = e.one("Cast", e.one("Equal", updates, e.one("GatherNd", y, indices, **policy)), DstT=x.dtype)
    share = e.one("RealDiv", rule.dy, e.one("TensorScatterAdd", kept, indices, taken, **policy))
    return [e.one("Mul", kept, share), None, e.one("Mul", taken, e.one("GatherNd", share, indices, **policy))]


@formula("UnsortedSegmentMax", "UnsortedSegmentMin")
def _segment_extreme(rule: Rule) -> list[Any]:
    """The elements that equal the extreme of their segment share its cotangent."""

    def run(x: Any, ids: Any, y: Any, dy: Any) -> Any:
        safe = primitives.Maximum(ids, cast(0, ids.dtype))
        extra = [1] * (x.shape.rank - ids.shape.rank)
        inside = primitives.Reshape(primitives.GreaterEqual(ids, cast(0, ids.dtype)), [*dynamic_dims(ids), *extra])
        chosen = primitives.LogicalAnd(primitives.Equal(x, primitives.GatherV2(y, safe, 0, 0)), inside)
        chosen = cast(chosen, x.dtype)
        count = primitives.UnsortedSegmentSum(chosen, ids, dynamic_dims(y)[0])
        return chosen * primitives.GatherV2(primitives.DivNoNan(dy, count), safe, 0, 0)

    if rule.x[0].shape.rank is None or rule.x[1].shape.rank is None:
        raise rule.outer.unsupported("the gradient of a segment maximum of unknown rank")
    return [*inlined(rule.outer, run, [rule.x[0], rule.x[1], rule.y[0], rule.dy]), None]


# ---- Fourier transforms


def _points(x: Any, rank: int) -> Any:
    """The number of points of a transform over the last dimensions."""
    return cast(primitives.Prod(primitives.Pack(dynamic_dims(x)[-rank:], 0), 0), x.dtype)


@formula("Fourier")
def _fourier(rule: Rule) -> list[Any]:
    rank, inverse = rule.node.param(0), bool(rule.node.param(1))

    def run(dy: Any) -> Any:
        y = primitives.Fourier(dy, rank, not inverse)
        return y / _points(dy, rank) if inverse else y * _points(dy, rank)

    return inlined(rule.outer, run, [rule.dy._replace(shape=rule.x[0].shape)])


@formula("RealFourier")
def _real_fourier(rule: Rule) -> list[Any]:
    """The other half of the spectrum gets no cotangent; what flows to real numbers is real."""
    rank = rule.node.param(0)

    def run(x: Any, dy: Any) -> Any:
        missing = dynamic_dims(x)[-1] - dynamic_dims(dy)[-1]
        whole = pad(dy, [*[[0, 0]] * (x.shape.rank - 1), [0, missing]])
        return primitives.Real(primitives.Fourier(whole, rank, True)) * _points(x, rank)

    return inlined(rule.outer, run, [rule.x[0], rule.dy._replace(shape=rule.y[0].shape)])


@formula("FourierToReal")
def _fourier_to_real(rule: Rule) -> list[Any]:
    """All frequencies but the first, and the last of an even length, count twice."""
    rank = rule.node.param(0)

    def run(x: Any, dy: Any) -> Any:
        length, place = dynamic_dims(dy)[-1], primitives.Range(0, dynamic_dims(x)[-1], 1)
        once = primitives.LogicalOr(primitives.Equal(place, 0), primitives.Equal(2 * place, length))
        weight = cast(primitives.SelectV2(once, 1, 2), x.dtype) / cast(_points(dy, rank), x.dtype)
        return primitives.RealFourier(dy, rank) * weight

    return inlined(rule.outer, run, [rule.x[0], rule.dy._replace(shape=rule.y[0].shape)])
