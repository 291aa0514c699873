"""How TensorFlow's operations on arrays, their arithmetic and reductions are written as ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src.compat.onnx.graph_builder import Builder, Node, converts, rule_by_op

_SAME = {
    "AddV2": "Add", "Add": "Add", "Sub": "Sub", "Mul": "Mul", "RealDiv": "Div", "Div": "Div", "MatMul": "MatMul",
    "Pow": "Pow", "Maximum": "Max", "Minimum": "Min", "Neg": "Neg", "Exp": "Exp", "Log": "Log", "Sqrt": "Sqrt",
    "Tanh": "Tanh", "Sigmoid": "Sigmoid", "Relu": "Relu", "Softplus": "Softplus", "Softsign": "Softsign", "Erf": "Erf",
    "Abs": "Abs", "Floor": "Floor", "Ceil": "Ceil", "Round": "Round", "Rint": "Round", "Sign": "Sign", "Sin": "Sin",
    "Cos": "Cos", "Tan": "Tan", "Asin": "Asin", "Acos": "Acos", "Atan": "Atan", "Sinh": "Sinh", "Cosh": "Cosh",
    "Asinh": "Asinh", "Acosh": "Acosh", "Atanh": "Atanh", "Reciprocal": "Reciprocal", "Inv": "Reciprocal",
    "Equal": "Equal", "Less": "Less", "Greater": "Greater", "LessEqual": "LessOrEqual", "LogicalAnd": "And",
    "GreaterEqual": "GreaterOrEqual", "LogicalOr": "Or", "LogicalNot": "Not", "SelectV2": "Where", "Select": "Where",
    "Elu": "Elu", "IsNan": "IsNaN", "IsInf": "IsInf", "AddN": "Sum",
}  # fmt: skip


def _same(n: Node) -> Any:
    return n.b.add(_SAME[n.op], *n.inputs)


rule_by_op.update(dict.fromkeys(_SAME, _same))


@converts("Const")
def _constant(n: Node) -> Any:
    return n.b.constant(n.tensor(), hint=n.message.name)


@converts("NoOp", "Assert")
def _nothing(n: Node) -> Any:
    return []


@converts("ReadVariableOp", "Identity", "StopGradient", "CheckNumerics", "EnsureShape")
def _same_value(n: Node) -> Any:
    return n[0]


@converts("IdentityN")
def _identities(n: Node) -> Any:
    return list(n.inputs)


@converts("NotEqual")
def _not_equal(n: Node) -> Any:
    return n.b.add("Not", n.b.add("Equal", n[0], n[1]))


@converts("Square")
def _square(n: Node) -> Any:
    return n.b.add("Mul", n[0], n[0])


@converts("SquaredDifference")
def _squared_difference(n: Node) -> Any:
    d = n.b.add("Sub", n[0], n[1])
    return n.b.add("Mul", d, d)


@converts("Rsqrt")
def _rsqrt(n: Node) -> Any:
    return n.b.add("Reciprocal", n.b.add("Sqrt", n[0]))


def _scalar(n: Node, value: Any, name: str = "T") -> str:
    return n.b.constant(value, n.dtype(name).as_numpy_dtype)


@converts("Expm1")
def _expm1(n: Node) -> Any:
    return n.b.add("Sub", n.b.add("Exp", n[0]), _scalar(n, 1))


@converts("Log1p")
def _log1p(n: Node) -> Any:
    return n.b.add("Log", n.b.add("Add", n[0], _scalar(n, 1)))


@converts("Erfc")
def _erfc(n: Node) -> Any:
    return n.b.add("Sub", _scalar(n, 1), n.b.add("Erf", n[0]))


@converts("Relu6")
def _relu6(n: Node) -> Any:
    return n.b.add("Clip", n[0], _scalar(n, 0), _scalar(n, 6))


@converts("LeakyRelu")
def _leaky(n: Node) -> Any:
    return n.b.add("LeakyRelu", n[0], alpha=float(n.attribute("alpha", 0.2)))


@converts("Selu")
def _selu(n: Node) -> Any:
    return n.b.add("Selu", n[0])


@converts("FloorDiv")
def _floor_div(n: Node) -> Any:
    if n.dtype().is_floating:
        return n.b.add("Floor", n.b.add("Div", n[0], n[1]))
    wide = [n.b.add("Cast", x, to=n.b.onnx.TensorProto.DOUBLE) for x in n.inputs]
    return n.b.add("Cast", n.b.add("Floor", n.b.add("Div", *wide)), to=n.b.onnx_dtype(n.dtype()))


@converts("FloorMod")
def _floor_mod(n: Node) -> Any:
    if not n.dtype().is_floating:
        return n.b.add("Mod", n[0], n[1])
    return n.b.add("Sub", n[0], n.b.add("Mul", n.b.add("Floor", n.b.add("Div", n[0], n[1])), n[1]))


@converts("DivNoNan")
def _div_no_nan(n: Node) -> Any:
    zero = _scalar(n, 0)
    return n.b.add("Where", n.b.add("Equal", n[1], zero), zero, n.b.add("Div", n[0], n[1]))


@converts("Cast")
def _cast(n: Node) -> Any:
    source, target = n.dtype("SrcT"), n.dtype("DstT")
    known = n.known(0)
    if known is not None and target.name != "string":
        return n.b.constant(known, target.as_numpy_dtype)
    return n[0] if source == target else n.b.add("Cast", n[0], to=n.b.onnx_dtype(target))


@converts("IsFinite")
def _is_finite(n: Node) -> Any:
    return n.b.add("Not", n.b.add("Or", n.b.add("IsNaN", n[0]), n.b.add("IsInf", n[0])))


@converts("LowerBound", "UpperBound")
def _bound(n: Node) -> Any:
    """How many of the sorted numbers of a row stand before each value."""
    b = n.b
    rows, values = b.add("Unsqueeze", n[0], b.ints([1])), b.add("Unsqueeze", n[1], b.ints([2]))
    before = b.add("Less" if n.op == "LowerBound" else "LessOrEqual", rows, values)
    dtype = n.dtype("out_type")
    number = b.add("Cast", before, to=b.onnx.TensorProto.INT32)
    return b.add("Cast", b.add("ReduceSum", number, b.ints([2]), keepdims=0), to=b.onnx_dtype(dtype))


@converts("DenseBincount")
def _bincount(n: Node) -> Any:
    """Numbers of each row, or of a vector, counted by one-hot rows; those outside are not counted."""
    b, dtype = n.b, n.dtype()
    known = n.known(2)
    if known is None or known.size:
        raise n.refused("weights")
    size = b.add("Reshape", n.ints64(1), b.ints([1]))
    bins = b.add("Range", b.ints(0), b.add("Squeeze", size), b.ints(1))
    found = b.add("Equal", b.add("Unsqueeze", b.add("Cast", n[0], to=b.onnx.TensorProto.INT64), b.ints([-1])), bins)
    op = "ReduceMax" if n.attribute("binary_output", False) else "ReduceSum"
    return b.add(op, b.add("Cast", found, to=b.onnx_dtype(dtype)), b.ints([-2]), keepdims=0)


@converts("ZerosLike", "OnesLike")
def _like(n: Node) -> Any:
    return n.b.add("Expand", _scalar(n, 0 if n.op == "ZerosLike" else 1), n.b.add("Shape", n[0]))


# ---- products


def _transposed(b: Builder, x: str, rank: int | None) -> str:
    if rank == 2:
        return str(b.add("Transpose", x, perm=[1, 0]))
    letters = b.add("Einsum", x, equation="...ij->...ji")
    return str(letters)


@converts("MatMul")
def _matmul(n: Node) -> Any:
    sides = list(n.inputs)
    for place, flag in enumerate(("transpose_a", "transpose_b")):
        if n.attribute(flag, False):
            sides[place] = _transposed(n.b, sides[place], 2)
    return n.b.add("MatMul", *sides)


@converts("BatchMatMulV2", "BatchMatMul", "BatchMatMulV3")
def _batch_matmul(n: Node) -> Any:
    sides = list(n.inputs)
    for place, flag in enumerate(("adj_x", "adj_y")):
        if n.attribute(flag, False):
            sides[place] = _transposed(n.b, sides[place], None)
    return n.b.add("MatMul", *sides)


@converts("Einsum")
def _einsum(n: Node) -> Any:
    equation = n.attribute("equation")
    return n.b.add("Einsum", *n.inputs, equation=equation.decode() if isinstance(equation, bytes) else equation)


@converts("MatrixBandPart")
def _band(n: Node) -> Any:
    lower, upper = int(n.required(1, "a bound")), int(n.required(2, "a bound"))
    found = n[0]
    if upper >= 0:
        found = n.b.add("Trilu", found, n.b.constant(upper, np.int64), upper=0)
    if lower >= 0:
        found = n.b.add("Trilu", found, n.b.constant(-lower, np.int64), upper=1)
    return found


# ---- reductions

_REDUCTIONS = {"Sum": "ReduceSum", "Mean": "ReduceMean", "Max": "ReduceMax", "Min": "ReduceMin", "Prod": "ReduceProd"}


@converts(*_REDUCTIONS)
def _reduce(n: Node) -> Any:
    keep = int(n.attribute("keep_dims", False))
    known = n.known(1)
    if known is not None and known.size == 0:
        return n.b.add("Identity", n[0])
    axes = n.b.ints(np.atleast_1d(known)) if known is not None else n.ints64(1)
    return n.b.add(_REDUCTIONS[n.op], n[0], axes, keepdims=keep)


@converts("All", "Any")
def _logical(n: Node) -> Any:
    number = n.b.add("Cast", n[0], to=n.b.onnx.TensorProto.INT32)
    axes = n.b.ints(np.atleast_1d(n.required(1, "an axis")))
    op = "ReduceMin" if n.op == "All" else "ReduceMax"
    found = n.b.add(op, number, axes, keepdims=int(n.attribute("keep_dims", False)))
    return n.b.add("Cast", found, to=n.b.onnx.TensorProto.BOOL)


@converts("ArgMax", "ArgMin")
def _arg(n: Node) -> Any:
    found = n.b.add(n.op, n[0], axis=int(n.required(1, "an axis")), keepdims=0)
    return n.b.add("Cast", found, to=n.b.onnx_dtype(n.dtype("output_type")))


@converts("Cumsum")
def _cumsum(n: Node) -> Any:
    options = {key: int(n.attribute(key, False)) for key in ("exclusive", "reverse")}
    return n.b.add("CumSum", n[0], n.b.constant(n.required(1, "an axis"), np.int64), **options)


@converts("TopKV2")
def _top_k(n: Node) -> Any:
    count = n.b.add("Reshape", n.ints64(1), n.b.ints([1]))
    values, places = n.b.add("TopK", n[0], count, outputs=2)
    return [values, n.b.add("Cast", places, to=n.b.onnx.TensorProto.INT32)]


# ---- shapes


@converts("Shape")
def _shape(n: Node) -> Any:
    return n.b.add("Cast", n.b.add("Shape", n[0]), to=n.b.onnx_dtype(n.dtype("out_type")))


@converts("Size")
def _size(n: Node) -> Any:
    return n.b.add("Cast", n.b.add("Size", n[0]), to=n.b.onnx_dtype(n.dtype("out_type")))


@converts("Rank")
def _rank(n: Node) -> Any:
    return n.b.add("Cast", n.b.add("Size", n.b.add("Shape", n[0])), to=n.b.onnx.TensorProto.INT32)


@converts("Reshape")
def _reshape(n: Node) -> Any:
    known, shape = n.known(0), n.known(1)
    if known is not None and shape is not None:
        return n.b.constant(known.reshape(shape.tolist()))
    return n.b.add("Reshape", n[0], n.ints64(1), allowzero=1)


@converts("Transpose")
def _transpose(n: Node) -> Any:
    return n.b.add("Transpose", n[0], perm=[int(p) for p in n.required(1, "a permutation")])


@converts("ExpandDims")
def _expand_dims(n: Node) -> Any:
    return n.b.add("Unsqueeze", n[0], n.b.ints(np.atleast_1d(n.required(1, "an axis"))))


@converts("Squeeze")
def _squeeze(n: Node) -> Any:
    axes = n.attribute("squeeze_dims") or []
    return n.b.add("Squeeze", n[0], n.b.ints(axes)) if axes else n.b.add("Squeeze", n[0])


@converts("ConcatV2")
def _concat(n: Node) -> Any:
    axis = int(n.required(len(n.inputs) - 1, "an axis"))
    return n.b.add("Concat", *n.inputs[:-1], axis=axis)


@converts("Pack")
def _pack(n: Node) -> Any:
    axis = n.attribute("axis", 0)
    parts = [n.b.add("Unsqueeze", x, n.b.ints([axis])) for x in n.inputs]
    return n.b.add("Concat", *parts, axis=axis)


@converts("Unpack")
def _unpack(n: Node) -> Any:
    axis, count = n.attribute("axis", 0), n.attribute("num")
    parts = n.b.add("Split", n[0], n.b.ints([1] * count), axis=axis, outputs=count)
    return [n.b.add("Squeeze", x, n.b.ints([axis])) for x in (parts if count > 1 else [parts])]


@converts("SplitV")
def _split(n: Node) -> Any:
    count = n.attribute("num_split")
    found = n.b.add("Split", n[0], n.ints64(1), axis=int(n.required(2, "an axis")), outputs=count)
    return found if count > 1 else [found]


@converts("Tile")
def _tile(n: Node) -> Any:
    return n.b.add("Tile", n[0], n.ints64(1))


@converts("BroadcastTo")
def _broadcast(n: Node) -> Any:
    return n.b.add("Expand", n[0], n.ints64(1))


@converts("ReverseV2")
def _reverse(n: Node) -> Any:
    axes = [int(a) for a in np.atleast_1d(n.required(1, "an axis"))]
    if not axes:
        return n[0]
    far = [2**40] * len(axes)
    bounds = (n.b.ints(far), n.b.ints([-f for f in far]), n.b.ints(axes), n.b.ints([-1] * len(axes)))
    return n.b.add("Slice", n[0], *bounds)


@converts("Roll")
def _roll(n: Node) -> Any:
    """The exporter writes shifts below the length of their axes."""
    found = n[0]
    for shift, axis in zip(np.ravel(n.required(1, "a shift")), np.ravel(n.required(2, "an axis"))):
        cut, axes = n.b.ints([-int(shift)]), n.b.ints([int(axis)])
        parts = n.b.add("Slice", found, cut, n.b.ints([2**40]), axes), n.b.add("Slice", found, n.b.ints([0]), cut, axes)
        found = n.b.add("Concat", *parts, axis=int(axis))
    return found


@converts("Fill")
def _fill(n: Node) -> Any:
    return n.b.add("Expand", n[1], n.ints64(0))


@converts("Range")
def _range(n: Node) -> Any:
    return n.b.add("Range", *n.inputs)


@converts("GatherV2")
def _gather(n: Node) -> Any:
    if n.attribute("batch_dims", 0):
        raise n.refused("batch_dims")
    return n.b.add("Gather", n[0], n[1], axis=int(n.required(2, "an axis")))


@converts("GatherNd")
def _gather_nd(n: Node) -> Any:
    _refuse_ignored_indices(n)
    return n.b.add("GatherND", n[0], n.ints64(1))


@converts("TensorScatterUpdate")
def _scatter(n: Node) -> Any:
    _refuse_ignored_indices(n)
    return n.b.add("ScatterND", n[0], n.ints64(1), n[2])


def _refuse_ignored_indices(n: Node) -> None:
    if n.attribute("bad_indices_policy", "") == "IGNORE":
        raise n.refused("bad_indices_policy='IGNORE'")


@converts("OneHot")
def _one_hot(n: Node) -> Any:
    values = n.b.add("Concat", *(n.b.add("Unsqueeze", n[i], n.b.ints([0])) for i in (3, 2)), axis=0)
    return n.b.add("OneHot", n[0], n[1], values, axis=n.attribute("axis", -1))


@converts("PadV2", "Pad")
def _pad(n: Node) -> Any:
    known, b = n.known(1), n.b
    if known is not None:
        pads = b.ints(known.reshape(-1, 2).T.reshape(-1))
    else:
        pads = b.add("Reshape", b.add("Transpose", n.ints64(1), perm=[1, 0]), b.ints([-1]))
    return b.add("Pad", n[0], pads, *n.inputs[2:3])


@converts("MirrorPad")
def _mirror_pad(n: Node) -> Any:
    if n.attribute("mode") not in ("REFLECT", b"REFLECT"):
        raise n.refused("the mode SYMMETRIC")
    pairs = np.asarray(n.required(1, "paddings")).reshape(-1, 2)
    return n.b.add("Pad", n[0], n.b.ints(pairs.T.reshape(-1)), mode="reflect")


@converts("Slice")
def _plain_slice(n: Node) -> Any:
    begin, size = n.ints64(1), n.required(2, "a size")
    ends = n.b.add("Add", begin, n.b.ints([2**40 if s < 0 else s for s in size]))
    return n.b.add("Slice", n[0], begin, ends, n.b.ints(list(range(len(size)))))


@converts("StridedSlice")
def _slice(n: Node) -> Any:
    """Slices first, then axes that are taken away, then new ones."""
    masks = {k: n.attribute(f"{k}_mask", 0) for k in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    strides = n.required(3, "strides")
    if masks["ellipsis"] or masks["new_axis"]:
        return _general_slice(n, masks, strides)
    count, b = len(strides), n.b
    if not count:
        return n[0]
    marked = {k: [bool(mask >> i & 1) for i in range(count)] for k, mask in masks.items()}
    far = [2**40 if stride > 0 else -(2**40) for stride in strides]
    starts = _chosen(b, marked["begin"], b.ints([0 if stride > 0 else 2**40 for stride in strides]), n.ints64(1))
    ends = _chosen(b, marked["end"], b.ints(far), n.ints64(2))
    one = b.add("Add", starts, b.ints([1]))
    behind = b.add("Where", b.add("Equal", one, b.ints([0])), b.ints([2**40]), one)
    names = starts, _chosen(b, marked["shrink_axis"], behind, ends)
    # A single element is taken with any stride.
    strides = [1 if gone else stride for gone, stride in zip(marked["shrink_axis"], strides)]
    found = b.add("Slice", n[0], *names, b.ints(list(range(count))), b.ints(strides))
    gone = [i for i in range(count) if masks["shrink_axis"] & 1 << i]
    return b.add("Squeeze", found, b.ints(gone)) if gone else found


def _chosen(b: Builder, marked: list[bool], this: str, other: str) -> str:
    """This where it is marked, the other elsewhere."""
    if not any(marked):
        return other
    return this if all(marked) else str(b.add("Where", b.constant(marked, bool), this, other))


def _general_slice(n: Node, masks: dict[str, int], strides: list[int]) -> Any:
    b, far = n.b, 2**40
    begin, end = n.required(1, "a beginning"), n.required(2, "an end")
    parts = list(range(len(strides)))
    hole = next((i for i in parts if masks["ellipsis"] >> i & 1), None)
    taken = [i for i in parts if i != hole and not masks["new_axis"] >> i & 1]
    # Axes behind the ellipsis are counted from the end.
    behind = [i for i in taken if hole is not None and i > hole]
    axes = [taken.index(i) if i not in behind else behind.index(i) - len(behind) for i in taken]
    starts, ends, steps, gone = [], [], [], []
    for i, axis in zip(taken, axes):
        start, stop, step = begin[i], end[i], strides[i]
        if masks["shrink_axis"] >> i & 1:
            gone.append(axis)
            stop, step = (start + 1 if start != -1 else far), 1
        else:
            start = (0 if step > 0 else far) if masks["begin"] >> i & 1 else start
            stop = (far if step > 0 else -far) if masks["end"] >> i & 1 else stop
        starts.append(start)
        ends.append(stop)
        steps.append(step)
    found = n[0]
    if axes:
        found = b.add("Slice", found, b.ints(starts), b.ints(ends), b.ints(axes), b.ints(steps))
    if gone:
        found = b.add("Squeeze", found, b.ints(gone))
    kept = [i for i in parts if i == hole or not masks["shrink_axis"] >> i & 1]
    for place, i in enumerate(kept):
        if masks["new_axis"] >> i & 1:
            behind_hole = hole is not None and i > hole
            found = b.add("Unsqueeze", found, b.ints([place - len(kept) if behind_hole else place]))
    return found
