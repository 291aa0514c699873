"""How functions on sparse tensors, and on rows of code points, are written: as operations on their parts."""

from __future__ import annotations

from typing import Any

from tapeflow._src.compat.graph_def.emitter import Ref
from tapeflow._src.compat.graph_def.export_rules.features import refused, writes_function
from tapeflow._src.compat.graph_def.export_rules.python import Parts, as_ref
from tapeflow._src.compat.graph_def.exporter import ExportedNode
from tapeflow._src.ops.linalg.factorizations import lstsq
from tapeflow._src.ops.sparse import binary, reductions, sparse
from tapeflow._src.ops.strings.unicode import unicode_encode


def _int64(n: ExportedNode, value: Any) -> Ref:
    """Numbers, some of which may be references, as one int64 tensor."""
    if isinstance(value, list | tuple) and not isinstance(value, Ref):
        if any(isinstance(item, Ref) for item in value):
            return n.e.one("Pack", [_int64(n, item) for item in value], axis=0)
        return n.e.ints(list(value), "int64")
    ref = as_ref(n.e, value, None)
    return ref if ref.dtype.name == "int64" else n.e.one("Cast", ref, DstT="int64")


def _rank(n: ExportedNode, parts: Parts) -> int:
    shape = parts[0].shape
    if shape.rank != 2 or shape[1] is None:
        raise refused(n, "a function on a sparse tensor of unknown rank")
    return int(shape[1])


def _extreme(op: str) -> Any:
    def write(n: ExportedNode, given: dict[str, Any]) -> list[Ref]:
        a, b = given["sp_a"], given["sp_b"]
        return [*n.e.node(op, *a, *b), a[2]]

    return write


writes_function(binary.maximum)(_extreme("SparseSparseMaximum"))
writes_function(binary.minimum)(_extreme("SparseSparseMinimum"))


def _reduction(op: str) -> Any:
    def write(n: ExportedNode, given: dict[str, Any]) -> list[Ref]:
        parts, axis = given["sp_input"], given["axis"]
        axes = list(range(_rank(n, parts))) if axis is None else axis
        axes = axes if isinstance(axes, list | tuple) and not isinstance(axes, Ref) else [axes]
        name = f"{op}Sparse" if given.get("output_is_sparse") else op
        return n.e.node(name, *parts, n.e.ints(list(axes)), keep_dims=bool(given["keepdims"]))

    return write


writes_function(reductions.reduce_sum)(_reduction("SparseReduceSum"))
writes_function(reductions.reduce_max)(_reduction("SparseReduceMax"))


@writes_function(sparse.reorder)
def _reorder(n: ExportedNode, given: dict[str, Any]) -> list[Ref]:
    indices, values, shape = given["sp_input"]
    return [*n.e.node("SparseReorder", indices, values, shape), shape]


@writes_function(lstsq)
def _least_squares(n: ExportedNode, given: dict[str, Any]) -> Ref:
    regularizer = as_ref(n.e, given["l2_regularizer"], None)
    wide = regularizer if regularizer.dtype.name == "float64" else n.e.one("Cast", regularizer, DstT="float64")
    matrix, rhs = (as_ref(n.e, given[key], None) for key in ("matrix", "rhs"))
    return n.e.one("MatrixSolveLs", matrix, rhs, wide, fast=given["fast"])


@writes_function(reductions.softmax)
def _softmax(n: ExportedNode, given: dict[str, Any]) -> list[Ref]:
    indices, values, shape = given["sp_input"]
    return [indices, n.e.one("SparseSoftmax", indices, values, shape), shape]


@writes_function(sparse.slice_)
def _slice(n: ExportedNode, given: dict[str, Any]) -> list[Ref]:
    return n.e.node("SparseSlice", *given["sp_input"], _int64(n, given["start"]), _int64(n, given["size"]))


@writes_function(sparse.reshape)
def _reshape(n: ExportedNode, given: dict[str, Any]) -> list[Ref]:
    indices, values, shape = given["sp_input"]
    moved, size = n.e.node("SparseReshape", indices, shape, _int64(n, given["shape"]))
    return [moved, values, size]


@writes_function(sparse.expand_dims)
def _expand(n: ExportedNode, given: dict[str, Any]) -> list[Ref]:
    e, (indices, values, shape) = n.e, given["sp_input"]
    rank = _rank(n, given["sp_input"])
    axis = (-1 if given["axis"] is None else int(given["axis"])) % (rank + 1)
    head = e.one("StridedSlice", shape, e.ints([0]), e.ints([axis]), e.ints([1]))
    tail = e.one("StridedSlice", shape, e.ints([axis]), e.ints([0]), e.ints([1]), end_mask=1)
    wanted = e.one("ConcatV2", [head, e.ints([1], "int64"), tail], e.ints(0))
    moved, size = e.node("SparseReshape", indices, shape, wanted)
    return [moved, values, size]


@writes_function(sparse.split)
def _split(n: ExportedNode, given: dict[str, Any]) -> list[Ref]:
    count = int(given["num_split"])
    axis = int(given["axis"]) % _rank(n, given["sp_input"])
    found = n.e.node("SparseSplit", n.e.ints(axis, "int64"), *given["sp_input"], num_split=count)
    return [found[part * count + i] for i in range(count) for part in range(3)]


@writes_function(sparse.fill_empty_rows)
def _fill(n: ExportedNode, given: dict[str, Any]) -> list[Ref]:
    indices, values, shape = given["sp_input"]
    default = as_ref(n.e, given["default_value"], values.dtype)
    places, filled, empty, _ = n.e.node("SparseFillEmptyRows", indices, values, shape, default)
    return [places, filled, shape, empty]


@writes_function(unicode_encode)
def _encode(n: ExportedNode, given: dict[str, Any]) -> list[Ref]:
    parts = given["input"]
    if not isinstance(parts, Parts) or len(parts) != 2:
        raise refused(n, "strings.unicode_encode of a dense tensor, or of rows in rows,")
    attributes = {key: given[key] for key in ("errors", "output_encoding", "replacement_char")}
    return n.e.node("UnicodeEncode", *parts, **attributes)
