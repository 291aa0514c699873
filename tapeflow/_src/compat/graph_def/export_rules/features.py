"""How functions on text, examples, features and sparse tensors are written, which are nodes that run Python here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src.compat.graph_def.emitter import Emitter, Ref
from tapeflow._src.compat.graph_def.export_rules.math import drawn
from tapeflow._src.compat.graph_def.export_rules.python import Parts, Rule, as_ref, rule_by_function
from tapeflow._src.compat.graph_def.exporter import ExportedNode, writes
from tapeflow._src.compat.raw_ops.parsing_ops import parse_in_order
from tapeflow._src.io.codecs.image_files import decode_image
from tapeflow._src.io.csv import decode_csv
from tapeflow._src.io.examples.example_parsing import parse_example, parse_single_example
from tapeflow._src.io.examples.features import FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, VarLenFeature
from tapeflow._src.ops.arrays import sets
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.printing import format_
from tapeflow._src.ops.random.seeds import seed_of
from tapeflow._src.ops.sparse import binary, conversion, sparse
from tapeflow._src.ops.strings.strings import bytes_split, join, ngrams, reduce_join, split
from tapeflow._src.ops.strings.unicode import (
    unicode_decode,
    unicode_decode_with_offsets,
    unicode_split,
    unicode_split_with_offsets,
)
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import UnimplementedError
from tapeflow._src.types.tensor_shape import TensorShape, as_shape


def writes_function(function: Any) -> Callable[[Callable[[ExportedNode, dict[str, Any]], Any]], Rule]:
    """Registers what writes nodes that run a function, given its arguments by name."""
    signature = inspect.signature(function)

    def register(rule: Callable[[ExportedNode, dict[str, Any]], Any]) -> Rule:
        def run(n: ExportedNode, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            return rule(n, dict(bound.arguments))

        rule_by_function[function] = run
        return run

    return register


def refused(n: ExportedNode, what: str) -> Exception:
    """The error for arguments of a function that cannot be written."""
    return UnimplementedError.of(f"{n.writer.where}: {what} cannot be written")


# ---- examples


def _parse(n: ExportedNode, given: dict[str, Any], in_order: bool = False) -> Any:
    e, features = n.e, given["features"] if in_order else dict(sorted(given["features"].items()))
    groups: dict[str, list[tuple[str, Any]]] = {"sparse": [], "dense": [], "ragged": []}
    for key, feature in features.items():
        if isinstance(feature, VarLenFeature):
            groups["sparse"].append((key, feature))
        elif isinstance(feature, FixedLenFeature | FixedLenSequenceFeature):
            groups["dense"].append((key, feature))
        elif isinstance(feature, RaggedFeature) and not feature.partitions:
            groups["ragged"].append((feature.value_key or key, feature))
        else:
            raise refused(n, f"parse_example with {feature}")
    names = {kind: e.constant(np.asarray([k for k, _ in group], object), "string") for kind, group in groups.items()}
    defaults, shapes = [], []
    for _, feature in groups["dense"]:
        dtype, dims = as_dtype(feature.dtype), as_shape(feature.shape).as_list()
        grows = isinstance(feature, FixedLenSequenceFeature)
        shapes.append(TensorShape([None, *dims] if grows else dims))
        defaults.append(e.constant(default_of(feature, dtype, dims, grows), dtype))
    serialized = as_ref(e, given["serialized"], "string")
    results = e.node(
        "ParseExampleV2",
        serialized,
        e.constant(np.asarray([], object), "string"),
        names["sparse"],
        names["dense"],
        names["ragged"],
        defaults,
        num_sparse=len(groups["sparse"]),
        sparse_types=[f.dtype for _, f in groups["sparse"]],
        Tdense=[f.dtype for _, f in groups["dense"]],
        ragged_value_types=[f.dtype for _, f in groups["ragged"]],
        ragged_split_types=[f.row_splits_dtype for _, f in groups["ragged"]],
        dense_shapes=shapes,
    )
    count, dense, ragged = (len(groups[kind]) for kind in ("sparse", "dense", "ragged"))
    rest = results[3 * count :]
    found: list[Ref] = []
    places = dict.fromkeys(groups, 0)
    single = n.writer.kind(n._numbers[0])[1].rank == 0
    for feature in features.values():
        kind = "sparse" if isinstance(feature, VarLenFeature) else "ragged" if isinstance(feature, RaggedFeature) else "dense"  # noqa: E501  # fmt: skip
        i = places[kind]
        places[kind] += 1
        if kind == "sparse":
            found += [results[i], results[count + i], results[2 * count + i]]
        elif kind == "dense":
            found.append(rest[i])
        else:
            found += [rest[dense + i]] if single else [rest[dense + i], rest[dense + ragged + i]]
    return found


for _function in (parse_example, parse_single_example):
    writes_function(_function)(_parse)
writes_function(parse_in_order)(lambda n, given: _parse(n, given, True))


def default_of(feature: Any, dtype: Any, dims: list[int], grows: bool) -> Any:
    """What a feature is where an example lacks it; nothing if it must be there."""
    empty: Any = "" if dtype.name == "string" else 0
    if feature.default_value is None:
        if grows:
            return np.asarray(empty, object if dtype.name == "string" else dtype.as_numpy_dtype)
        return np.asarray([], object if dtype.name == "string" else dtype.as_numpy_dtype)
    value = np.asarray(convert_to_tensor(feature.default_value, dtype).numpy())
    return value if grows else np.broadcast_to(value, dims) if value.size == 1 else value.reshape(dims)


@writes_function(decode_csv)
def _csv(n: ExportedNode, given: dict[str, Any]) -> Any:
    defaults = [n.e.constant(convert_to_tensor(d)) for d in given["record_defaults"]]
    defaults = [n.e.one("Reshape", d, n.e.ints([-1])) for d in defaults]
    return n.e.node(
        "DecodeCSV",
        as_ref(n.e, given["records"], "string"),
        defaults,
        field_delim=given["field_delim"],
        use_quote_delim=given["use_quote_delim"],
        na_value=given["na_value"],
        select_cols=list(given["select_cols"] or []),
    )


@writes_function(decode_image)
def _image(n: ExportedNode, given: dict[str, Any]) -> Any:
    return n.e.one(
        "DecodeImage",
        as_ref(n.e, given["contents"], "string"),
        channels=given["channels"] or 0,
        dtype=as_dtype(given["dtype"]),
        expand_animations=given["expand_animations"],
    )


# ---- text


def _by_string(n: ExportedNode, text: Any, parts_of: Callable[[Ref], list[Ref]]) -> list[Ref]:
    """The parts of each string: values and where rows begin, which for a ragged tensor are behind its own rows.

    `parts_of` gives the lists of values of a vector of strings, and then the splits that all of them have.
    """
    e, nested = n.e, text[1:] if isinstance(text, Parts) else []
    flat = text[0] if isinstance(text, Parts) else as_ref(e, text, "string")
    if not isinstance(text, Parts) and flat.shape.rank not in (0, 1):
        raise refused(n, f"a function on text of shape {flat.shape}")
    *lists, splits = parts_of(flat if flat.shape.rank == 1 else e.one("Reshape", flat, e.ints([-1])))
    if not nested and flat.shape.rank == 0:
        return lists
    return [part for values in lists for part in (values, *nested, splits)]


def _sparse_rows(e: Emitter, indices: Ref, values: Ref, shape: Ref) -> list[Ref]:
    """The values of a sparse matrix, and where its rows begin."""
    masks = {"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": 2}
    owners = e.one("StridedSlice", indices, e.ints([0, 0]), e.ints([0, 1]), e.ints([1, 1]), **masks)
    count = e.one("StridedSlice", shape, e.ints([0]), e.ints([1]), e.ints([1]), shrink_axis_mask=1)
    lengths = e.one("UnsortedSegmentSum", e.one("OnesLike", owners), owners, count)
    return [values, e.one("ConcatV2", [e.ints([0], "int64"), e.one("Cumsum", lengths, e.ints(0))], e.ints(0))]


@writes_function(split)
def _split(n: ExportedNode, given: dict[str, Any]) -> Any:
    text, separator, limit = list(given.values())[:3]
    between = as_ref(n.e, separator or "", "string")
    return _by_string(
        n, text, lambda rows: _sparse_rows(n.e, *n.e.node("StringSplitV2", rows, between, maxsplit=limit))
    )


@writes_function(bytes_split)
def _bytes(n: ExportedNode, given: dict[str, Any]) -> Any:
    none = n.e.constant("", "string")
    return _by_string(
        n,
        given["input"],
        lambda rows: _sparse_rows(n.e, *n.e.node("StringSplit", rows, none, skip_empty=False)),
    )


def _code_points(n: ExportedNode, given: dict[str, Any], name: str) -> Callable[[Ref], list[Ref]]:
    """What decodes a vector of strings: splits, code points, and with offsets where each begins."""
    return lambda rows: n.e.node(
        name,
        rows,
        input_encoding=given["input_encoding"],
        errors=given["errors"],
        replacement_char=given["replacement_char"],
        replace_control_characters=given.get("replace_control_characters", False),
        Tsplits="int64",
    )


@writes_function(unicode_decode)
def _points(n: ExportedNode, given: dict[str, Any]) -> Any:
    decoded = _code_points(n, given, "UnicodeDecode")
    return _by_string(n, given["input"], lambda rows: decoded(rows)[::-1])


@writes_function(unicode_decode_with_offsets)
def _points_with_offsets(n: ExportedNode, given: dict[str, Any]) -> Any:
    def parts_of(rows: Ref) -> list[Ref]:
        splits, values, starts = _code_points(n, given, "UnicodeDecodeWithOffsets")(rows)
        return [values, starts, splits]

    return _by_string(n, given["input"], parts_of)


def _characters(with_offsets: bool) -> Callable[[ExportedNode, dict[str, Any]], Any]:
    """Each code point is encoded again, by itself."""

    def write(n: ExportedNode, given: dict[str, Any]) -> Any:
        e, encoding = n.e, given["input_encoding"]

        def parts_of(rows: Ref) -> list[Ref]:
            splits, points, starts = _code_points(n, given, "UnicodeDecodeWithOffsets")(rows)
            count = e.one("AddV2", e.one("Size", points, out_type="int64"), e.ints(1, "int64"))
            alone = e.one("Range", e.ints(0, "int64"), count, e.ints(1, "int64"))
            characters = e.one("UnicodeEncode", points, alone, output_encoding=encoding, errors=given["errors"],
                               replacement_char=given["replacement_char"])  # fmt: skip
            return [characters, *([starts] if with_offsets else []), splits]

        if encoding not in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
            raise refused(n, f"strings.unicode_split of {encoding}")
        return _by_string(n, given["input"], parts_of)

    return write


writes_function(unicode_split)(_characters(False))
writes_function(unicode_split_with_offsets)(_characters(True))


@writes_function(ngrams)
def _grams(n: ExportedNode, given: dict[str, Any]) -> Any:
    e, data = n.e, given["data"]
    vector = not isinstance(data, Parts) and data.shape.rank == 1
    if vector:  # one row
        data = [data, e.one("Pack", [e.ints(0, "int64"), e.one("Size", data, out_type="int64")], axis=0)]
    if not isinstance(data, list) or len(data) != 2:
        raise refused(n, "strings.ngrams of a matrix, or of rows in rows,")
    pads = given["pad_values"]
    left, right = ("", "") if pads is None else (pads, pads) if isinstance(pads, str | bytes) else pads
    width = 0 if pads is None else -1 if given["padding_width"] is None else given["padding_width"]
    found = e.node(
        "StringNGrams",
        *data,
        separator=given["separator"],
        ngram_widths=[int(w) for w in np.atleast_1d(given["ngram_width"])],
        left_pad=left,
        right_pad=right,
        pad_width=width,
        preserve_short_sequences=given["preserve_short_sequences"],
    )
    return found[:1] if vector else found


@writes_function(join)
def _joined(n: ExportedNode, given: dict[str, Any]) -> Any:
    rows = next((x[1:] for x in given["inputs"] if isinstance(x, Parts)), [])
    flat = [x[0] if isinstance(x, Parts) else as_ref(n.e, x, "string") for x in given["inputs"]]
    return [n.e.one("StringJoin", flat, separator=given["separator"]), *rows]


@writes_function(reduce_join)
def _join(n: ExportedNode, given: dict[str, Any]) -> Any:
    e, x, axis = n.e, as_ref(n.e, given["inputs"], "string"), given["axis"]
    if axis is None:
        rank = e.one("Rank", x)
        axes = e.one("Range", e.one("Sub", rank, e.ints(1)), e.ints(-1), e.ints(-1))
        axes = e.one("ReverseV2", axes, e.ints([0]))
    else:
        axes = e.ints(axis)
    return e.one("ReduceJoin", x, axes, keep_dims=given["keepdims"], separator=given["separator"])


@writes_function(format_)
def _format(n: ExportedNode, given: dict[str, Any]) -> Any:
    inputs = [given["inputs"]] if isinstance(given["inputs"], Ref) else list(given["inputs"])
    return n.e.one(
        "StringFormat",
        [as_ref(n.e, x, None) for x in inputs],
        template=given["template"],
        placeholder=given["placeholder"],
        summarize=given["summarize"],
    )


# ---- sparse tensors


@writes_function(binary.add)
def _add(n: ExportedNode, given: dict[str, Any]) -> Any:
    a, b = given["a"], given["b"]
    if not (isinstance(a, Parts) and isinstance(b, Parts)):
        parts, dense = (a, b) if isinstance(a, Parts) else (b, a)
        return n.e.one("SparseTensorDenseAdd", *parts, as_ref(n.e, dense, parts[1].dtype))
    return n.e.node("SparseAdd", *a, *b, n.e.constant(given["threshold"], a[1].dtype))


@writes_function(sparse.concat)
def _concat(n: ExportedNode, given: dict[str, Any]) -> Any:
    if given["expand_nonconcat_dims"]:
        raise refused(n, "sparse.concat with expand_nonconcat_dims")
    indices, values, shapes = (list(part) for part in zip(*given["sp_inputs"]))
    return n.e.node("SparseConcat", indices, values, shapes, concat_dim=int(given["axis"]))


@writes_function(sparse.transpose)
def _transpose(n: ExportedNode, given: dict[str, Any]) -> Any:
    e, (indices, values, shape), perm = n.e, given["sp_input"], given["perm"]
    rank = indices.shape[1] if indices.shape.rank == 2 else None
    if perm is None:
        if rank is None:
            raise refused(n, "sparse.transpose of an unknown rank")
        perm = list(range(rank))[::-1]
    order = e.ints(perm)
    moved = e.one("GatherV2", indices, order, e.ints(1)), e.one("GatherV2", shape, order, e.ints(0))
    return [*e.node("SparseReorder", moved[0], values, moved[1]), moved[1]]


@writes_function(conversion.to_dense)
def _to_dense(n: ExportedNode, given: dict[str, Any]) -> Any:
    (indices, values, shape), default = given["sp_input"], given["default_value"]
    empty: Any = "" if values.dtype.name == "string" else 0
    default = as_ref(n.e, empty if default is None else default, values.dtype)
    return n.e.one("SparseToDense", indices, shape, values, default, validate_indices=given["validate_indices"])


def _set_operation(name: str) -> Callable[[ExportedNode, dict[str, Any]], Any]:
    def write(n: ExportedNode, given: dict[str, Any]) -> Any:
        a, b = given["a"], given["b"]
        if isinstance(a, Parts) or isinstance(b, Parts):
            raise refused(n, "a set operation on sparse tensors")
        text = "b-a" if name == "a-b" and not given.get("aminusb", True) else name
        sides = [as_ref(n.e, x, None) for x in (a, b)]
        return n.e.node("DenseToDenseSetOperation", *sides, set_operation=text, validate_indices=True)

    return write


@writes_function(sets.size)
def _set_size(n: ExportedNode, given: dict[str, Any]) -> Any:
    return n.e.one("SetSize", *given["a"], validate_indices=given["validate_indices"])


writes_function(sets.intersection)(_set_operation("intersection"))
writes_function(sets.union)(_set_operation("union"))
writes_function(sets.difference)(_set_operation("a-b"))


# ---- samplers, which TensorFlow has with a seed in place of key and counter


def _seed(n: ExportedNode, place: int) -> Ref:
    """The seed that a key and the counter behind it were made of."""
    source = n.writer.node_of(n._numbers[place])
    if source is not None and source[0] == "StatelessRandomGetKeyCounter":
        return n.writer.value(source[1][0])
    if n[place].node in n.writer.seed_by_key:
        return n.writer.seed_by_key[n[place].node]
    key, counter = (n.writer.constant_value(n._numbers[place + i]) for i in range(2))
    if key is None or counter is None or int(counter.numpy()[0]) != 0:
        raise n.unsupported("a key that is no seed's")
    return n.e.constant(seed_of(int(key.numpy()[0]), int(counter.numpy()[1])), "int64")


@writes("PhiloxMultinomial")
def _multinomial(n: ExportedNode) -> Any:
    return n.e.one("StatelessMultinomial", n[0], n.e.ints(n.param(0)), _seed(n, 1), output_dtype=n.kind[0])


@writes("PhiloxPoisson")
def _poisson(n: ExportedNode) -> Any:
    return n.e.one("StatelessRandomPoisson", n.tensor(0), _seed(n, 0), n[2], dtype=n.kind[0])


@writes("PhiloxBinomial")
def _binomial(n: ExportedNode) -> Any:
    return n.e.one("StatelessRandomBinomial", n.tensor(0), _seed(n, 0), n[2], n[3], dtype=n.kind[0])


@writes("PhiloxBoundedNormal")
def _bounded(n: ExportedNode) -> Any:
    return n.e.one("StatelessParameterizedTruncatedNormal", n.tensor(0), _seed(n, 0), *n.inputs[2:6])


@writes("PhiloxShuffle")
def _shuffle(n: ExportedNode) -> Any:
    return drawn(n, n[1], n[0]) or n.e.one("StatelessShuffle", n[0], n[1], n[2], n.e.ints(1))


# By the number of the kind. The classes of a table of weights (2) are written nowhere: it is one of aliases.
_SAMPLERS = {0: "UniformCandidateSampler", 1: "LogUniformCandidateSampler", 3: "LearnedUnigramCandidateSampler"}


@writes("PhiloxCandidates")
def _candidates(n: ExportedNode) -> Any:
    """TensorFlow's samplers keep their numbers to themselves: what comes of a stream is drawn anew."""
    if n[1].node not in n.writer.seed_by_key:
        raise n.unsupported("a key that is no stream's")
    kind, count, unique, classes = (n.param(i) for i in range(4))
    true_classes = n.shape(0)[1] if n.shape(0).rank == 2 else None
    if kind not in _SAMPLERS or true_classes is None:
        raise n.unsupported("weights of classes, or an unknown number of true classes,")
    n.writer.stateful = True
    attributes = {"num_true": true_classes, "num_sampled": count, "unique": bool(unique), "range_max": classes}
    return n.e.node(_SAMPLERS[kind], n[0], **attributes)
