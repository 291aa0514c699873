"""How operations on arrays are written: shapes, slices, gathering, scattering, sorting, lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src.compat.graph_def.emitter import Emitter, Ref
from tapeflow._src.compat.graph_def.exporter import ExportedNode, writes
from tapeflow._src.types.tensor_shape import TensorShape


@writes("Const")
def _constant(n: ExportedNode) -> Any:
    return n.e.constant(n._params[0][1])


@writes("BroadcastTo", "Tile", "Reshape")
def _with_shape(n: ExportedNode) -> Any:
    return n.e.one(n.op, n[0], n.tensor(0))


@writes("Cast")
def _cast(n: ExportedNode) -> Any:
    return n.e.one("Cast", n[0], DstT=n.param(0))


@writes("ConcatV2")
def _concat(n: ExportedNode) -> Any:
    return n.e.one("ConcatV2", n.inputs, n.tensor(0)) if len(n.inputs) > 1 else n.e.one("Identity", n[0])


@writes("SplitV")
def _split(n: ExportedNode) -> Any:
    return n.e.node("SplitV", n[0], n.tensor(0), n.tensor(1), num_split=n.count)


@writes("Pack")
def _pack(n: ExportedNode) -> Any:
    return n.e.one("Pack", n.inputs, axis=n.param(0))


@writes("Unpack")
def _unpack(n: ExportedNode) -> Any:
    return n.e.node("Unpack", n[0], num=n.count, axis=n.param(1))


@writes("MatrixDiagPartV3")
def _diag_part(n: ExportedNode) -> Any:
    return n.e.one(n.op, n[0], n.tensor(0), n[1], align=n.param(1))


@writes("MatrixDiagV3")
def _diag(n: ExportedNode) -> Any:
    return n.e.one(n.op, n[0], n.tensor(0), n.tensor(1), n.tensor(2), n[1], align=n.param(3))


@writes("MatrixSetDiagV3")
def _set_diag(n: ExportedNode) -> Any:
    return n.e.one(n.op, n[0], n[1], n.tensor(0), align=n.param(1))


@writes("MatrixBandPart")
def _band(n: ExportedNode) -> Any:
    return n.e.one(n.op, n[0], n.tensor(0, "int64"), n.tensor(1, "int64"))


@writes("GatherV2")
def _gather(n: ExportedNode) -> Any:
    return n.e.one("GatherV2", n[0], n[1], n.tensor(0), batch_dims=n.param(1))


def _as_int32(e: Emitter, ref: Ref) -> Ref:
    return ref if ref.dtype.name == "int32" else e.one("Cast", ref, DstT="int32")


@writes("StraightThrough")
def _straight_through(n: ExportedNode) -> Any:
    difference = n.e.one("StopGradient", n.e.one("Sub", n[1], n[0]))
    return n.e.one("AddV2", n[0], difference)


@writes("CheckNumerics")
def _check(n: ExportedNode) -> Any:
    return n.e.one("CheckNumerics", n[0], message=n.param(0))


@writes("Bitcast")
def _bitcast(n: ExportedNode) -> Any:
    return n.e.one("Bitcast", n[0], type=n.kind[0])


@writes("PadV2")
def _pad(n: ExportedNode) -> Any:
    paddings = n.e.one("Reshape", n.tensor(0), n.e.ints([-1, 2]))
    if n._params[0][0] == "n":
        paddings = n.e.ints(np.reshape(n.param(0), [-1, 2]))
    return n.e.one("PadV2", n[0], paddings, n[1])


@writes("DynamicPartition")
def _partition(n: ExportedNode) -> Any:
    return n.e.node("DynamicPartition", n[0], n[1], num_partitions=n.param(0))


@writes("StitchRows")
def _stitch(n: ExportedNode) -> Any:
    return n.e.one("DynamicStitch", [_as_int32(n.e, n[0])], [n[1]])


@writes("ScatterNd")
def _scatter(n: ExportedNode) -> Any:
    indices, updates = _at_places(n, n[0], n[1])
    return n.e.one("ScatterNd", indices, updates, n.tensor(0, n[0].dtype.name), bad_indices_policy=n.param(1) or "")


@writes("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMax", "TensorScatterMin")
def _tensor_scatter(n: ExportedNode) -> Any:
    policy = "" if n.op == "TensorScatterUpdate" else n.param(0) or ""
    return n.e.one(n.op, n[0], *_at_places(n, n[1], n[2]), bad_indices_policy=policy)


def _at_places(n: ExportedNode, indices: Ref, updates: Ref) -> tuple[Ref, Ref]:
    """Positions and updates; TensorFlow takes no single position, whose update may be a number."""
    if indices.shape.rank != 1:
        return indices, updates
    return n.e.one("ExpandDims", indices, n.e.ints(0)), n.e.one("ExpandDims", updates, n.e.ints(0))


@writes("ExpandDims")
def _expand(n: ExportedNode) -> Any:
    return n.e.one("ExpandDims", n[0], n.tensor(0))


@writes("Squeeze")
def _squeeze(n: ExportedNode) -> Any:
    return n.e.one("Squeeze", n[0], squeeze_dims=n.param(0) or [])


@writes("Shape")
def _shape(n: ExportedNode) -> Any:
    return n.e.one("Shape", n[0], out_type=n.kind[0])


@writes("EnsureShape")
def _ensure_shape(n: ExportedNode) -> Any:
    return n.e.one("EnsureShape", n[0], shape=n.kind[1])


@writes("TopKV2")
def _top_k(n: ExportedNode) -> Any:
    e, x = n.e, n[0]
    flip = ("Neg" if x.dtype.is_floating else "Invert") if n.param(2) else None
    x = e.one(flip, x) if flip else x
    index = n.param(3) or "int32"
    values, indices = e.node("TopKV2", x, n.tensor(0), sorted=n.param(1), index_type=index)
    return [e.one(flip, values) if flip else values, indices]


@writes("Sort")
def _sort(n: ExportedNode) -> Any:
    return ordered(n.e, n[0], n.param(0))[0]


def ordered(e: Emitter, x: Ref, ascending: bool) -> tuple[Ref, Ref]:
    """The elements in order along the last dimension, and the positions where they were."""
    size = x.shape.as_list()[-1] if x.shape.rank is not None else None
    if size is not None:
        count = e.ints(size)
    else:
        count = e.one("StridedSlice", e.one("Shape", x), e.ints([-1]), e.ints([0]), e.ints([1]), shrink_axis_mask=1)
    flip = ("Neg" if x.dtype.is_floating else "Invert") if ascending else None
    x = e.one(flip, x) if flip else x
    values, positions = e.node("TopKV2", x, count, sorted=True, index_type="int32")
    return e.one(flip, values) if flip else values, positions


@writes("SearchSorted")
def _search(n: ExportedNode) -> Any:
    op = "UpperBound" if n.param(0) else "LowerBound"
    return n.e.one(op, n[0], n[1], out_type=n.kind[0])


@writes("Transpose")
def _transpose(n: ExportedNode) -> Any:
    e, op = n.e, "ConjugateTranspose" if n.param(1) and n[0].dtype.is_complex else "Transpose"
    if n.is_given(0):
        return e.one(op, n[0], n.tensor(0))
    rank = n.shape(0).rank
    if rank is not None:
        return e.one(op, n[0], e.ints(list(range(rank))[::-1]))
    last = e.one("Sub", e.one("Rank", n[0]), e.ints(1))
    return e.one(op, n[0], e.one("Range", last, e.ints(-1), e.ints(-1)))


@writes("ReverseV2")
def _reverse(n: ExportedNode) -> Any:
    return n.e.one("ReverseV2", n[0], n.tensor(0))


@writes("RollAxis")
def _roll(n: ExportedNode) -> Any:
    return n.e.one("Roll", n[0], n.tensor(0), n.tensor(1))


@writes("DistinctElements")
def _distinct(n: ExportedNode) -> Any:
    e, index = n.e, n.kind[0]
    _, numbers, counts = e.node("UniqueWithCounts", n[0], out_idx=index)
    size = e.one("Size", counts, out_type=index)
    total = e.one("Size", numbers, out_type=index)
    zero, one = e.constant(0, index), e.constant(1, index)
    first = e.one("UnsortedSegmentMin", e.one("Range", zero, total, one), numbers, size)
    return [first, numbers, counts]


# ---- slices


@writes("StridedSlice", "GetItem")
def _slice(n: ExportedNode) -> Any:
    ends, masks = slice_arguments(n)
    return n.e.one("StridedSlice", n[0], *ends, **masks)


def slice_arguments(n: ExportedNode) -> tuple[list[Ref], dict[str, int]]:
    """Begin, end and strides of TensorFlow's `StridedSlice`, and its masks."""
    if n.op == "GetItem":
        return _key_arguments(n)
    if any(n.is_computed(place) for place in range(3)):
        return _computed_slice(n)
    begin, step, count = (np.asarray(n.param(place), np.int64) for place in range(3))
    end = begin + step * count
    mask = sum(1 << i for i, last in enumerate(end) if last < 0)
    return [n.e.ints(begin), n.e.ints(end), n.e.ints(step)], {"end_mask": mask}


def _computed_slice(n: ExportedNode) -> tuple[list[Ref], dict[str, int]]:
    """The same where begin or the number of elements is computed; an end before the first element has no number."""
    if n.is_computed(1) or min(n.param(1), default=1) < 0:
        raise n.unsupported("a negative step and a start or size that is computed")
    begin, step, count = (n.tensor(place) for place in range(3))
    return [begin, n.e.one("AddV2", begin, n.e.one("Mul", step, count)), step], {}


@writes("StridedSliceGrad")
def _strided_gradient(n: ExportedNode) -> Any:
    """Parameters: the shape, begin and step, for each dimension."""
    e, dy = n.e, n.shape(0)
    step = np.asarray(n.param(2), np.int64)
    if not dy.is_fully_defined() and (step > 0).all():
        first, size = n.tensor(1), e.one("Shape", n[0], out_type="int32")
        last = e.one("AddV2", first, e.one("Mul", e.ints(step), size))
        return e.one("StridedSliceGrad", n.tensor(0), first, last, e.ints(step), n[0])
    if not dy.is_fully_defined():
        raise n.unsupported("a negative step and an unknown shape")
    begin = np.asarray(n.param(1), np.int64)
    end = begin + step * np.asarray(dy.as_list(), np.int64)
    mask = sum(1 << i for i, last in enumerate(end) if last < 0)
    return e.one("StridedSliceGrad", n.tensor(0), e.ints(begin), e.ints(end), e.ints(step), n[0], end_mask=mask)


def _key_arguments(n: ExportedNode) -> tuple[list[Ref], dict[str, int]]:
    """The key has five numbers for each part: kind (index, slice, ellipsis, new axis), start, stop, step, and a mask
    that says which of start and stop are there."""
    kind, value = n._params[0]
    if kind == "n":
        return key_arguments(n.e, [list(value[i : i + 5]) for i in range(0, len(value), 5)])
    source = n.source(0)
    if source is None or source[0] != "Pack":
        raise n.unsupported("an index that is computed as a whole")
    parts = [list(source[1][i : i + 5]) for i in range(0, len(source[1]), 5)]
    return key_arguments(n.e, [[_number(n, item) for item in part] for part in parts])


def key_arguments(e: Emitter, parts: list[list[Any]]) -> tuple[list[Ref], dict[str, int]]:
    """Begin, end, strides and masks for the parts of a key, numbers or references."""
    begin: list[Any] = []
    end: list[Any] = []
    strides: list[Any] = []
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    for place, (what, start, stop, step, present) in enumerate(parts):
        bit = 1 << place
        if what == 0:
            masks["shrink_axis_mask"] |= bit
            strides.append(1)
            begin.append(start)
            if isinstance(start, Ref):
                end.append(e.one("AddV2", start, e.constant(1, start.dtype)))
            else:
                end.append(start + 1)
                masks["end_mask"] |= bit if start == -1 else 0
            continue
        if what == 1:
            masks["begin_mask"] |= 0 if present & 1 else bit
            masks["end_mask"] |= 0 if present & 2 else bit
        else:
            masks["ellipsis_mask" if what == 2 else "new_axis_mask"] |= bit
        begin.append(start)
        end.append(stop)
        strides.append(step if what == 1 else 1)
    kind = "int64" if any(isinstance(item, Ref) for item in (*begin, *end, *strides)) else "int32"
    return [_vector(e, items, kind) for items in (begin, end, strides)], masks


def _number(n: ExportedNode, value: int) -> Any:
    """A number of a key: itself if it is constant, else its reference."""
    constant = n.writer.constant_value(value)
    return n.writer.value(value) if constant is None else int(constant)


def _vector(e: Emitter, items: list[Any], kind: str) -> Ref:
    if not any(isinstance(item, Ref) for item in items):
        return e.ints(items, kind)
    refs = []
    for item in items:
        ref = item if isinstance(item, Ref) else e.ints(item, "int64")
        refs.append(ref if ref.dtype.name == "int64" else e.one("Cast", ref, DstT="int64"))
    return e.one("Pack", refs, axis=0)


# ---- lists: the rows of a tensor


@writes("TensorListSetItem")
def _list_set(n: ExportedNode) -> Any:
    """Makes the rows as many and as large as they must be, then writes one. A list without rows has none yet."""
    e, (buffer, index, item) = n.e, n.inputs
    known = n.shape(0)
    fits = known.rank is not None and known[1:].is_fully_defined() and known[1:].as_list() == n.shape(2).as_list()
    index = _as_int32(e, index)
    if n.param(0) or not fits:
        rows = _row_count(e, buffer)
        if n.param(0):
            rows = e.one("Maximum", rows, e.one("AddV2", index, e.ints(1)))
        buffer = _filled_up(e, buffer, rows, e.one("Shape", item, out_type="int32"))
    place = e.one("Reshape", index, e.ints([1, 1]))
    return e.one("TensorScatterUpdate", buffer, place, e.one("ExpandDims", item, e.ints(0)))


def _row_count(e: Emitter, buffer: Ref) -> Ref:
    sizes = e.one("Shape", buffer, out_type="int32")
    return e.one("StridedSlice", sizes, e.ints([0]), e.ints([1]), e.ints([1]), shrink_axis_mask=1)


def _filled_up(e: Emitter, buffer: Ref, rows: Ref, shape: Ref) -> Ref:
    """The buffer with so many rows of this shape; zeros are added at its end."""
    flat = e.one("Reshape", buffer, e.ints([-1]))
    wanted = e.one("Mul", rows, e.one("Prod", shape, e.ints([0])))
    more = e.one("Sub", wanted, e.one("Size", flat, out_type="int32"))
    paddings = e.one("Reshape", e.one("Pack", [e.ints(0), more], axis=0), e.ints([1, 2]))
    sizes = e.one("ConcatV2", [e.one("ExpandDims", rows, e.ints(0)), shape], e.ints(0))
    return e.one("Reshape", e.one("PadV2", flat, paddings, _zero(e, buffer)), sizes)


def _zero(e: Emitter, like: Ref) -> Ref:
    text = like.dtype.name == "string"
    return e.constant("" if text else np.zeros([], like.dtype.as_numpy_dtype), like.dtype)


def _with_rows(n: ExportedNode, element: TensorShape) -> Ref:
    """The buffer of a list with rows of this shape: one into which nothing was written has rows of no elements."""
    known = n.shape(0)
    if not element.is_fully_defined() or (known.rank is not None and known[1:].as_list() == element.as_list()):
        return n[0]
    return _filled_up(n.e, n[0], _row_count(n.e, n[0]), n.e.ints(element.as_list()))


@writes("TensorListGetItem")
def _list_get(n: ExportedNode) -> Any:
    return n.e.one("GatherV2", _with_rows(n, n.kind[1]), n[1], n.e.ints(0))


@writes("TensorListStack")
def _list_stack(n: ExportedNode) -> Any:
    shape = n.kind[1]
    return n.e.one("Identity", n[0] if shape.rank is None else _with_rows(n, shape[1:]))


@writes("Required")
def _required(n: ExportedNode) -> Any:
    return n.e.one("Identity", n[0])
