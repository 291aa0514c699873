"""Raw operations on text and features: characters and their code points, n-grams, crossed and counted features."""

from __future__ import annotations

import functools
from collections import namedtuple
from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src.compat.raw_ops.count_checks import check_elements, check_size, check_splits
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.ops.math import segments
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.ops.sparse.crosses import crossed_rows, hash_features, join_features
from tapeflow._src.ops.strings.hashing import combined_fingerprint, fingerprint64, siphash
from tapeflow._src.ops.strings.strings import ngrams
from tapeflow._src.ops.strings.unicode import unicode_decode, unicode_decode_with_offsets, unicode_encode
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor

UnicodeDecode = namedtuple("UnicodeDecode", ["row_splits", "char_values"])
UnicodeDecodeWithOffsets = namedtuple("UnicodeDecodeWithOffsets", ["row_splits", "char_values", "char_to_byte_starts"])
StringNGrams = namedtuple("StringNGrams", ["ngrams", "ngrams_splits"])
SparseCross = namedtuple("SparseCross", ["output_indices", "output_values", "output_shape"])
RaggedCross = namedtuple("RaggedCross", ["output_values", "output_row_splits"])


def _decoded(text: Any, encoding: str, errors: str, replacement: int, control: bool, splits: Any) -> UnicodeDecode:
    def run(text: Any) -> list[Any]:
        found = unicode_decode(primitives.Reshape(text, [-1]), encoding, errors, replacement, control)
        return [cast(found.row_splits, splits), found.values]

    return UnicodeDecode(*host_call(run, [convert_to_tensor(text)], [(splits, [None]), ("int32", [None])]))


def _decoded_with_offsets(
    text: Any, encoding: str, errors: str, replacement: int, control: bool, splits: Any
) -> UnicodeDecodeWithOffsets:
    def run(text: Any) -> list[Any]:
        found, starts = unicode_decode_with_offsets(
            primitives.Reshape(text, [-1]), encoding, errors, replacement, control
        )
        return [cast(found.row_splits, splits), found.values, starts.values]

    specs = [(splits, [None]), ("int32", [None]), ("int64", [None])]
    return UnicodeDecodeWithOffsets(*host_call(run, [convert_to_tensor(text)], specs))


def _encoded(values: Any, splits: Any, errors: str, encoding: str, replacement: int) -> Any:
    def run(values: Any, splits: Any) -> list[Any]:
        return [unicode_encode(RaggedTensor(values, splits), encoding, errors, replacement)]

    given = [convert_to_tensor(values), convert_to_tensor(splits)]
    rows = given[1].shape[0] if given[1].shape.rank == 1 else None
    return host_call(run, given, [("string", [None if rows is None else rows - 1])])[0]


def _check_splits(splits: Any, count: int) -> None:
    """Raises unless the borders of rows begin at 0, ascend and end at the number of texts."""
    if not splits.size:
        return
    if splits[0] != 0:
        raise InvalidArgumentError.of(f"StringNGrams: First split value must be 0, got {splits[0]}")
    wrong = (splits[1:] < splits[:-1]) | (splits[1:] > count)
    if wrong.any():
        at = int(wrong.argmax())
        raise InvalidArgumentError.of(
            f"StringNGrams: Invalid split value {splits[at + 1]}, must be in [{splits[at]}, {count}]"
        )
    if splits[-1] != count:
        raise InvalidArgumentError.of(
            f"StringNGrams: Last split value must be data size. Expected {count}, got {splits[-1]}"
        )


def _grams(
    data: Any, splits: Any, separator: Any, widths: Any, left: Any, right: Any, pad_width: int, keeps_short: bool
) -> StringNGrams:
    texts = [x.decode() if isinstance(x, bytes) else x for x in (separator, left, right)]
    # A width of -1 means as many as there are places beside the outermost n-gram; 0 means none.
    pads = None if pad_width == 0 else (texts[1], texts[2])

    def run(data: Any, splits: Any) -> list[Any]:
        _check_splits(splits.numpy(), data.shape[0])
        found = ngrams(
            RaggedTensor(data, splits), list(widths), texts[0], pads, pad_width if pad_width > 0 else None, keeps_short
        )
        return [found.values, cast(found.row_splits, splits.dtype)]

    given = [convert_to_tensor(data), convert_to_tensor(splits)]
    return StringNGrams(*host_call(run, given, [("string", [None]), (given[1].dtype, given[1].shape)]))


# ---- crossed features


def _inputs(count: int, parts: list[Any]) -> list[Any]:
    """Sparse and dense features of a list with indices, values, shapes and dense tensors, one group after the other."""
    groups = [parts[i * count : (i + 1) * count] for i in range(3)]
    return [*(SparseTensor(*part) for part in zip(*groups)), *parts[3 * count :]]


def _rows_as_sparse(rows: list[list[Any]], dtype: Any) -> list[Any]:
    places = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    values = np.asarray([v for row in rows for v in row], object if dtype == "string" else np.int64)
    shape = np.asarray([len(rows), max((len(row) for row in rows), default=0)], np.int64)
    indices = np.asarray(places, np.int64).reshape(-1, 2)
    return [convert_to_tensor(indices), convert_to_tensor(values, dtype), convert_to_tensor(shape)]


def _crossed(indices: Any, values: Any, shapes: Any, dense: Any, join: Any, dtype: Any) -> SparseCross:
    given = [convert_to_tensor(x) for group in (indices, values, shapes, dense) for x in group]

    def run(*tensors: Any) -> list[Any]:
        return _rows_as_sparse(crossed_rows(_inputs(len(indices), list(tensors)), join), dtype)

    specs = [("int64", [None, 2]), (dtype, [None]), ("int64", [2])]
    return SparseCross(*host_call(run, given, specs))


def _sparse_cross(
    indices: Any, values: Any, shapes: Any, dense: Any, hashed: bool, buckets: int, key: int, out_type: Any, _: Any
) -> SparseCross:
    if hashed:
        return _crossed(indices, values, shapes, dense, lambda f: hash_features(f, buckets, key), "int64")
    return _crossed(indices, values, shapes, dense, lambda f: join_features(f, "_X_"), "string")


def _sparse_cross_hashed(
    indices: Any, values: Any, shapes: Any, dense: Any, buckets: Any, strong: Any, salt: Any
) -> SparseCross:
    number, is_strong = int(convert_to_tensor(buckets, "int64")), bool(convert_to_tensor(strong))
    key = [int(n) % 2**64 for n in convert_to_tensor(salt, "int64").numpy()]
    if len(key) != 2:
        raise InvalidArgumentError.of(f"SparseCrossHashed: salt must be two numbers; got {len(key)}")

    def bits_of(feature: Any, is_sparse: bool) -> int:
        if isinstance(feature, bytes):
            return siphash(feature, (key[0], key[1])) if is_strong else fingerprint64(feature)
        number: int = feature % 2**64  # TensorFlow takes the low four bytes of numbers that are sparse
        return fingerprint64(number.to_bytes(8, "little")[:4]) if is_sparse else number

    def hashed(features: list[Any]) -> int:
        if is_strong and not all(isinstance(feature, bytes) for feature in features):
            raise InvalidArgumentError.of("SparseCrossHashed: strong_hash is for texts; got a number")
        bits = [bits_of(feature, i < len(indices)) for i, feature in enumerate(features)]
        value: int = functools.reduce(combined_fingerprint, bits)
        return value % number if number else value % (2**63 - 1)

    return _crossed(indices, values, shapes, dense, hashed, "int64")


def _ragged_cross(
    values: Any, splits: Any, indices: Any, sparse_values: Any, shapes: Any, dense: Any, order: str, hashed: bool,
    buckets: int, key: int, out_type: Any, splits_type: Any,
) -> RaggedCross:  # fmt: skip
    counts = [len(values), len(indices)]
    given = [convert_to_tensor(x) for group in (values, splits, indices, sparse_values, shapes, dense) for x in group]
    join = (lambda f: hash_features(f, buckets, key)) if hashed else (lambda f: join_features(f, "_X_"))

    def run(*tensors: Any) -> list[Any]:
        n = counts[0]
        ragged = [RaggedTensor(v, s) for v, s in zip(tensors[:n], tensors[n : 2 * n])]
        rest = _inputs(counts[1], list(tensors[2 * n :]))
        queues = {"R": iter(ragged), "S": iter(rest[: counts[1]]), "D": iter(rest[counts[1] :])}
        rows = crossed_rows([next(queues[c]) for c in order], join)
        flat = np.asarray([v for row in rows for v in row], np.int64 if hashed else object)
        ends = np.cumsum([0, *map(len, rows)]).astype(as_dtype(splits_type).as_numpy_dtype)
        return [convert_to_tensor(flat, out_type), convert_to_tensor(ends)]

    return RaggedCross(*host_call(run, given, [(out_type, [None]), (splits_type, [None])]))


# ---- counted features


def _sparse_counted(indices: Any, values: Any, shape: Any, size: Any, weights: Any, binary: bool) -> Any:
    check_size("raw_ops.SparseBincount", size)
    check_elements("raw_ops.SparseBincount", indices, values, shape)
    given = [convert_to_tensor(x) for x in (indices, values, shape, size, weights)]
    matrix = given[2].shape[0] != 1

    def run(indices: Any, values: Any, shape: Any, size: Any, weights: Any) -> list[Any]:
        rows = cast(indices[:, 0], "int64") if matrix else cast(indices[:, 0] * 0, "int64")
        return [_counts(values, rows, int(shape[0]) if matrix else 1, size, weights, binary, matrix)]

    return host_call(run, given, [(given[4].dtype, [None] * (1 + matrix))])[0]


def _ragged_counted(splits: Any, values: Any, size: Any, weights: Any, binary: bool) -> Any:
    check_size("raw_ops.RaggedBincount", size)
    check_splits("raw_ops.RaggedBincount", splits, values)
    given = [convert_to_tensor(x) for x in (splits, values, size, weights)]

    def run(splits: Any, values: Any, size: Any, weights: Any) -> list[Any]:
        rows = primitives.SearchSorted(splits[None, 1:], cast(_places(values), splits.dtype)[None], True, "int64")[0]
        return [_counts(values, rows, splits.shape[0] - 1, size, weights, binary, True)]

    return host_call(run, given, [(given[3].dtype, [None, None])])[0]


def _counts(values: Any, rows: Any, row_count: int, size: Any, weights: Any, binary: bool, matrix: bool) -> Any:
    """How often each number from 0 to size - 1 is there in each row."""
    length = int(size)
    given = primitives.Reshape(weights, [-1]) if weights.shape.num_elements() else None
    numbers = cast(primitives.Reshape(values, [-1]), "int64")
    found = segments.count_bins(numbers, rows, row_count, given, length, binary, weights.dtype)
    return primitives.Reshape(found, [row_count, length] if matrix else [length])


def _places(values: Any) -> Any:
    """0, 1, ... for each element of a vector."""
    ones = primitives.BroadcastTo(convert_to_tensor(1, "int64"), primitives.Shape(convert_to_tensor(values), "int64"))
    return primitives.Cumsum(ones, 0, True, False)


ROWS: list[tuple[str, str, Any]] = [
    (
        "UnicodeDecode",
        "input, input_encoding, errors='replace', replacement_char=65533, replace_control_characters=False, "
        "Tsplits='int64'",
        _decoded,
    ),
    (
        "UnicodeDecodeWithOffsets",
        "input, input_encoding, errors='replace', replacement_char=65533, replace_control_characters=False, "
        "Tsplits='int64'",
        _decoded_with_offsets,
    ),
    (
        "UnicodeEncode",
        "input_values, input_splits, output_encoding, errors='replace', replacement_char=65533",
        lambda values, splits, encoding, errors, replacement: _encoded(values, splits, errors, encoding, replacement),
    ),
    (
        "StringNGrams",
        "data, data_splits, separator, ngram_widths, left_pad, right_pad, pad_width, preserve_short_sequences",
        _grams,
    ),
    (
        "SparseCross",
        "indices, values, shapes, dense_inputs, hashed_output, num_buckets, hash_key, out_type, internal_type",
        _sparse_cross,
    ),
    (
        "SparseCrossHashed",
        "indices, values, shapes, dense_inputs, num_buckets, strong_hash, salt",
        _sparse_cross_hashed,
    ),
    (
        "RaggedCross",
        "ragged_values, ragged_row_splits, sparse_indices, sparse_values, sparse_shape, dense_inputs, input_order, "
        "hashed_output, num_buckets, hash_key, out_values_type, out_row_splits_type",
        _ragged_cross,
    ),
    ("SparseBincount", "indices, values, dense_shape, size, weights, binary_output=False", _sparse_counted),
    ("RaggedBincount", "splits, values, size, weights, binary_output=False", _ragged_counted),
]
