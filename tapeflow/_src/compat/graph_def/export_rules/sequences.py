"""How parsing of sequence examples, crosses of features, counts and windows of images are written."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src.compat.graph_def.emitter import Ref
from tapeflow._src.compat.graph_def.export_rules.features import default_of, refused, writes_function
from tapeflow._src.compat.graph_def.export_rules.python import Parts, as_ref
from tapeflow._src.compat.graph_def.exporter import ExportedNode
from tapeflow._src.compat.raw_ops.parsing_ops import parse_sequences_in_order
from tapeflow._src.io.examples import sequence_parsing
from tapeflow._src.io.examples.features import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, VarLenFeature
from tapeflow._src.ops.image import boxes
from tapeflow._src.ops.math.segments import bincount
from tapeflow._src.ops.ragged import construction
from tapeflow._src.ops.sparse import crosses
from tapeflow._src.ops.strings import encodings
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.tensor_shape import TensorShape, as_shape

_HASH_KEY = 0xDECAFCAFFE  # what TensorFlow begins a hash with


# ---- sequence examples


class _Group:
    """Features of one kind: the tensor of their keys, and their dtypes."""

    def __init__(self, n: ExportedNode, features: dict[str, Any], kinds: Any) -> None:
        self.features = {key: feature for key, feature in features.items() if isinstance(feature, kinds)}
        names = [getattr(f, "value_key", None) or key for key, f in self.features.items()]
        self.keys = n.e.constant(np.asarray(names, object).reshape(-1), "string")
        self.dtypes = [as_dtype(f.dtype) for f in self.features.values()]

    @property
    def split_dtypes(self) -> list[Any]:
        """The dtypes of the row splits of ragged features."""
        return [as_dtype(f.row_splits_dtype) for f in self.features.values()]

    @property
    def shapes(self) -> list[TensorShape]:
        """The shapes of dense features."""
        return [as_shape(f.shape) for f in self.features.values()]


_KINDS: dict[str, Any] = {
    "sparse": VarLenFeature,
    "dense": (FixedLenFeature, FixedLenSequenceFeature),
    "ragged": RaggedFeature,
}


def _groups(n: ExportedNode, features: dict[str, Any]) -> dict[str, _Group]:
    for feature in features.values():
        partitioned = isinstance(feature, RaggedFeature) and feature.partitions
        if partitioned or not any(isinstance(feature, kinds) for kinds in _KINDS.values()):
            raise refused(n, f"parse_sequence_example with {feature}")
    return {kind: _Group(n, features, kinds) for kind, kinds in _KINDS.items()}


def _parse_sequences(n: ExportedNode, given: dict[str, Any], in_order: bool = False) -> list[Ref]:
    e = n.e
    features = [given[name] or {} for name in ("context_features", "sequence_features")]
    whole, steps = features if in_order else (dict(sorted(group.items())) for group in features)
    context, lists = _groups(n, whole), _groups(n, steps)
    defaults = [
        e.constant(default_of(f, as_dtype(f.dtype), as_shape(f.shape).as_list(), False), f.dtype)
        for f in context["dense"].features.values()
    ]
    optional = [f.allow_missing for f in lists["dense"].features.values()]
    serialized = as_ref(e, given["serialized"], "string")
    names = given.get("example_names", given.get("example_name"))
    results = iter(
        e.node(
            "ParseSequenceExampleV2",
            serialized,
            e.constant(np.asarray([], object), "string") if names is None else as_ref(e, names, "string"),
            *(context[kind].keys for kind in ("sparse", "dense", "ragged")),
            *(lists[kind].keys for kind in ("sparse", "dense", "ragged")),
            e.constant(np.asarray(optional, bool).reshape(-1), "bool"),
            defaults,
            Ncontext_sparse=len(context["sparse"].features),
            Tcontext_dense=context["dense"].dtypes,
            context_sparse_types=context["sparse"].dtypes,
            context_ragged_value_types=context["ragged"].dtypes,
            context_ragged_split_types=context["ragged"].split_dtypes,
            context_dense_shapes=context["dense"].shapes,
            Nfeature_list_sparse=len(lists["sparse"].features),
            Nfeature_list_dense=len(lists["dense"].features),
            feature_list_dense_types=lists["dense"].dtypes,
            feature_list_sparse_types=lists["sparse"].dtypes,
            feature_list_ragged_value_types=lists["ragged"].dtypes,
            feature_list_ragged_split_types=lists["ragged"].split_dtypes,
            feature_list_dense_shapes=lists["dense"].shapes,
        )
    )
    single = n.writer.kind(n._numbers[0])[1].rank == 0
    unused = e.constant(0, "int64")
    found: dict[tuple[bool, str], list[Ref]] = {}

    def taken(group: _Group) -> list[Ref]:
        return [next(results) for _ in group.features]

    def keep(inside: bool, group: _Group, columns: list[list[Ref]]) -> None:
        for key, *parts in zip(group.features, *columns):
            found[inside, key] = parts

    for inside, groups in ((False, context), (True, lists)):
        sparse, dense, ragged = (groups[kind] for kind in ("sparse", "dense", "ragged"))
        counts = [[unused] * len(group.features) for group in (sparse, dense, ragged)] if inside else []
        columns = [taken(sparse) for _ in range(3)]
        keep(inside, sparse, [*columns, *counts[:1]])
        columns = [taken(dense) for _ in range(1 + inside)]
        keep(inside, dense, columns)
        values, outer = taken(ragged), taken(ragged)
        splits = [] if single else [outer]
        keep(inside, ragged, [values, *splits, *([taken(ragged)] if inside else []), *counts[2:]])
    return [
        ref for inside, features in ((False, whole), (True, steps)) for key in features for ref in found[inside, key]
    ]


for _function in (sequence_parsing.parse_sequence_example, sequence_parsing.parse_single_sequence_example):
    writes_function(_function)(_parse_sequences)
writes_function(parse_sequences_in_order)(lambda n, given: _parse_sequences(n, given, True))


# ---- crosses


def _features(n: ExportedNode, inputs: Any) -> tuple[list[Ref], list[Ref], list[Ref], list[Ref]]:
    """The indices, values and shapes of sparse inputs, and the dense ones; numbers are int64."""

    def as_feature(ref: Ref) -> Ref:
        return ref if ref.dtype.name in ("string", "int64") else n.e.one("Cast", ref, DstT="int64")

    sparse = [x for x in inputs if isinstance(x, Parts)]
    if any(len(x) != 3 for x in sparse):
        raise refused(n, "sparse.cross of ragged tensors")
    dense = [as_feature(as_ref(n.e, x, None)) for x in inputs if not isinstance(x, Parts)]
    return [x[0] for x in sparse], [as_feature(x[1]) for x in sparse], [x[2] for x in sparse], dense


@writes_function(crosses.cross)
def _cross(n: ExportedNode, given: dict[str, Any]) -> list[Ref]:
    separator = "_X_" if given["separator"] is None else given["separator"]
    return n.e.node("SparseCrossV2", *_features(n, given["inputs"]), n.e.constant(separator, "string"))


@writes_function(crosses.cross_hashed)
def _cross_hashed(n: ExportedNode, given: dict[str, Any]) -> list[Ref]:
    key = given["hash_key"]
    return n.e.node(
        "SparseCross",
        *_features(n, given["inputs"]),
        hashed_output=True,
        num_buckets=given["num_buckets"],
        hash_key=_HASH_KEY if key is None else key,
        out_type="int64",
        internal_type="int64",
    )


# ---- counts


@writes_function(bincount)
def _bincount(n: ExportedNode, given: dict[str, Any]) -> Any:
    """As many bins as the largest number needs, within the bounds that are given."""
    e, x, by_row = n.e, given["arr"], given["axis"] is not None
    parts = x if isinstance(x, Parts) else None
    numbers = (parts[1] if len(parts) == 3 else parts[0]) if parts is not None else as_ref(e, x, None)
    if numbers.dtype.name not in ("int32", "int64"):
        numbers = e.one("Cast", numbers, DstT="int32")._replace(shape=numbers.shape)
    flat = e.one("Reshape", numbers, e.ints([-1]))
    largest = e.one("Max", e.one("ConcatV2", [flat, e.constant([-1], numbers.dtype)], e.ints(0)), e.ints([0]))
    size = e.one("AddV2", largest, e.constant(1, numbers.dtype))
    for op, bound in (("Maximum", given["minlength"]), ("Minimum", given["maxlength"])):
        if bound is not None:
            limit = as_ref(e, bound, numbers.dtype)
            limit = limit if limit.dtype == numbers.dtype else e.one("Cast", limit, DstT=numbers.dtype)
            size = e.one(op, size, limit)
    weights = given["weights"]
    kind = as_dtype(given["dtype"])
    if isinstance(weights, Parts):
        weights = weights[1] if len(weights) == 3 else weights[0]
    if weights is None:
        weights = e.constant(np.zeros([0], kind.as_numpy_dtype), kind)
    weights = as_ref(e, weights, None)
    common = {"binary_output": given["binary_output"]}
    if not by_row:
        if given["weights"] is not None:
            weights = e.one("Reshape", weights, e.ints([-1]))
        return e.one("DenseBincount", flat, size, weights, **common)
    if parts is None:
        return e.one("DenseBincount", numbers, size, weights, **common)
    if len(parts) == 3:
        return e.one("SparseBincount", parts[0], numbers, parts[2], size, weights, **common)
    splits = parts[1] if parts[1].dtype.name == "int64" else e.one("Cast", parts[1], DstT="int64")
    return e.one("RaggedBincount", splits, numbers, size, weights, **common)


# ---- rows of numbers


@writes_function(construction.range_)
def _range(n: ExportedNode, given: dict[str, Any]) -> list[Ref]:
    e, starts, limits = n.e, given["starts"], given["limits"]
    if limits is None:
        starts, limits = 0, starts
    dtype = n.kind[0]
    refs = [as_ref(e, x, dtype) for x in (starts, limits, given["deltas"])]
    refs = [ref if ref.dtype == dtype else e.one("Cast", ref, DstT=dtype) for ref in refs]
    splits, values = e.node("RaggedRange", *refs, Tsplits=as_dtype(given["row_splits_dtype"]))
    return [values, splits]


# ---- bytes


@writes_function(encodings.decode_raw)
def _decode_raw(n: ExportedNode, given: dict[str, Any]) -> Ref:
    text = as_ref(n.e, given["input_bytes"], "string")
    common = {"out_type": as_dtype(given["out_type"]), "little_endian": given["little_endian"]}
    if given["fixed_length"] is None:
        return n.e.one("DecodeRaw", text, **common)
    return n.e.one("DecodePaddedRaw", text, as_ref(n.e, given["fixed_length"], "int32"), **common)


# ---- windows of images


@writes_function(boxes.extract_glimpse)
def _glimpse(n: ExportedNode, given: dict[str, Any]) -> Ref:
    size, offsets = as_ref(n.e, given["size"], "int32"), as_ref(n.e, given["offsets"], "float32")
    return n.e.one(
        "ExtractGlimpseV2",
        as_ref(n.e, given["input"], "float32"),
        size,
        offsets,
        centered=given["centered"],
        normalized=given["normalized"],
        noise=given["noise"],
        uniform_noise=False,
    )
