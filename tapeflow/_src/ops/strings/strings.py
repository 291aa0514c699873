"""`tf.strings`: operations on byte strings, element by element."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dims_of
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor, get_static_value
from tapeflow._src.ops.arrays.shaping import broadcast_static_shape
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.ops.strings.elements import as_ragged, bytes_of, elements_of, map_bytes, string_tensor, tensor_from
from tapeflow._src.types.dtypes import as_dtype, float32, int32, int64
from tapeflow._src.types.errors import InvalidArgumentError, OutOfRangeError, refused_dtype
from tapeflow._src.types.tensor_spec import TensorSpec


def _lower_text(value: bytes) -> str:
    return value.decode("utf-8", "replace").lower()


def _upper_text(value: bytes) -> str:
    return value.decode("utf-8", "replace").upper()


def _count_of(unit: str, value: bytes) -> int:
    return len(_characters(value, unit))


def _characters(value: bytes, unit: str) -> list[bytes]:
    """The bytes, or the UTF-8 characters, one by one."""
    if unit == "BYTE":
        return [value[i : i + 1] for i in range(len(value))]
    if unit == "UTF8_CHAR":
        return [c.encode() for c in value.decode("utf-8", "replace")]
    raise InvalidArgumentError.of(
        f'Value for attr \'unit\' of "{unit}" is not in the list of allowed values: "BYTE", "UTF8_CHAR"'
    )


@public("strings.lower")
def lower(input: Any, encoding: str = "", name: str | None = None) -> Any:
    """Small letters: of ASCII alone, or of all characters if `encoding` is "utf-8".

    >>> tf.strings.lower(["aB"])
    <tf.Tensor: shape=(1,), dtype=string, numpy=array([b'ab'], dtype=object)>
    """
    if encoding not in ("", "utf-8"):
        raise InvalidArgumentError.of(f"lower: encoding must be '' or 'utf-8', got {encoding!r}")
    return map_bytes(input, _lower_text if encoding else bytes.lower)


@public("strings.upper")
def upper(input: Any, encoding: str = "", name: str | None = None) -> Any:
    """Capital letters: of ASCII alone, or of all characters if `encoding` is "utf-8".

    >>> tf.strings.upper(["aB"])
    <tf.Tensor: shape=(1,), dtype=string, numpy=array([b'AB'], dtype=object)>
    """
    if encoding not in ("", "utf-8"):
        raise InvalidArgumentError.of(f"upper: encoding must be '' or 'utf-8', got {encoding!r}")
    return map_bytes(input, _upper_text if encoding else bytes.upper)


@public("strings.strip")
def strip(input: Any, name: str | None = None) -> Any:
    """Without white space at both ends.

    >>> tf.strings.strip([" a "])
    <tf.Tensor: shape=(1,), dtype=string, numpy=array([b'a'], dtype=object)>
    """
    return map_bytes(input, bytes.strip)


@public("strings.length")
def length(input: Any, unit: str = "BYTE", name: str | None = None) -> Any:
    """The number of bytes, or of characters with `unit="UTF8_CHAR"`.

    >>> tf.strings.length(["ab", "c"])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([2, 1], dtype=int32)>
    """
    return map_bytes(input, functools.partial(_count_of, unit), int32)


@public("strings.substr")
def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE", name: str | None = None) -> Tensor:
    """`len` bytes (or characters) from the place `pos`; a negative place counts from the end.

    >>> tf.strings.substr("hello", 1, 3)
    <tf.Tensor: shape=(), dtype=string, numpy=b'ell'>
    """
    text = string_tensor(input)
    places, lengths = convert_to_tensor(pos), convert_to_tensor(len)
    for argument, given in (("pos", places), ("len", lengths)):
        if given.dtype not in (int32, int64):
            raise refused_dtype("substr", argument, "T", given.dtype, "int32, int64")
    if places.shape != lengths.shape:
        raise InvalidArgumentError.of(
            f"substr: pos and len should have the same shape, got: {places.shape.as_list()} vs. "
            f"{lengths.shape.as_list()}"
        )
    try:
        values, starts, counts = np.broadcast_arrays(
            np.asarray(text.numpy(), dtype=object), np.asarray(places), np.asarray(lengths)
        )
    except ValueError:
        raise InvalidArgumentError.of(
            f"substr: the shapes must broadcast; Incompatible shapes: {text.shape.as_list()} vs. "
            f"{places.shape.as_list()}"
        ) from None
    result = []
    for i, (value, start, count) in enumerate(zip(values.reshape(-1), starts.reshape(-1), counts.reshape(-1))):
        parts = _characters(value, unit)
        size = parts.__len__()
        if not -size <= start <= size:
            raise InvalidArgumentError.of(f"substr: pos {start} out of range for string {value!r} at index {i}")
        begin = int(start) if start >= 0 else int(start) + size
        result.append(b"".join(parts[begin : begin + int(count)] if count >= 0 else parts[begin:]))
    return tensor_from(result, "string", values.shape)


def _substr_spec(input: Any, pos: Any, len: Any, *_: Any, **__: Any) -> TensorSpec | None:
    shapes = [convert_to_tensor(x).shape for x in (input, pos, len)]
    if shapes[1] != shapes[2]:
        return None
    try:
        return TensorSpec(broadcast_static_shape(shapes[0], shapes[1]), "string")
    except ValueError:
        return None


substr.result_specs, substr.refuses_values = _substr_spec, True  # type: ignore[attr-defined]


@public("strings.join")
def join(inputs: Any, separator: str = "", name: str | None = None) -> Any:
    """Elements of several tensors joined; scalars go with every element.

    >>> tf.strings.join(["a", ["b", "c"]], "-")
    <tf.Tensor: shape=(2,), dtype=string, numpy=array([b'a-b', b'a-c'], dtype=object)>
    """
    if any(isinstance(x, RaggedTensor) for x in inputs):
        first = next(x for x in inputs if isinstance(x, RaggedTensor))
        flat = [x.flat_values if isinstance(x, RaggedTensor) else x for x in inputs]
        return first.with_flat_values(join(flat, separator))
    tensors = [string_tensor(x) for x in inputs]
    shapes = [t.shape.as_list() for t in tensors if t.shape.rank]
    if any(shape != shapes[0] for shape in shapes):
        raise InvalidArgumentError.of(f"join: Input shapes do not match: {shapes}")
    shape = shapes[0] if shapes else []
    if not tensors:
        return tensor_from([b""], "string", shape)
    count = int(np.prod(shape, dtype=np.int64))
    columns = [elements_of(t) if t.shape.rank else elements_of(t) * count for t in tensors]
    between = bytes_of(separator, "separator")
    return tensor_from([between.join(row) for row in zip(*columns)], "string", shape)


@public("strings.reduce_join")
def reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: str = "", name: str | None = None
) -> Tensor:
    """Elements joined along `axis`; along several in the order in which they are given.

    >>> tf.strings.reduce_join([["a", "b"], ["c", "d"]], axis=1)
    <tf.Tensor: shape=(2,), dtype=string, numpy=array([b'ab', b'cd'], dtype=object)>
    """
    values = np.asarray(string_tensor(inputs).numpy(), dtype=object)
    rank = values.ndim
    axes = (
        list(range(rank - 1, -1, -1)) if axis is None else [a % rank if -rank <= a < rank else a for a in dims_of(axis)]
    )
    if any(not 0 <= a < rank for a in axes):
        raise OutOfRangeError.of(f"reduce_join: Invalid reduction dimension {axis} for input with {rank} dimension(s)")
    kept = [i for i in range(rank) if i not in axes]
    shape = [values.shape[i] for i in kept]
    rows = (
        values.transpose([*kept, *reversed(axes)]).reshape(
            int(np.prod(shape, dtype=np.int64)), int(np.prod([values.shape[i] for i in axes], dtype=np.int64))
        )
        if rank
        else values.reshape(1, 1)
    )
    full = [1 if i in axes else values.shape[i] for i in range(rank)] if keepdims else shape
    between = bytes_of(separator, "separator")
    return tensor_from([between.join(row.tolist()) for row in rows], "string", full)


@public("strings.unsorted_segment_join")
def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: str = "", name: str | None = None
) -> Tensor:
    """Elements that share a number in `segment_ids` joined.

    >>> tf.strings.unsorted_segment_join(["a", "b", "c"], [0, 1, 0], 2, ":")
    <tf.Tensor: shape=(2,), dtype=string, numpy=array([b'a:c', b'b'], dtype=object)>
    """
    words, segments, count = string_tensor(inputs), np.asarray(convert_to_tensor(segment_ids)), int(num_segments)
    if segments.ndim == 0:
        raise InvalidArgumentError.of("unsorted_segment_join: Segment_id cannot have rank 0")
    if words.shape.as_list()[: segments.ndim] != list(segments.shape):
        raise InvalidArgumentError.of(
            f"unsorted_segment_join: Segment_ids shape {list(segments.shape)} must be the beginning of that of inputs, "
            f"{words.shape.as_list()}",
        )
    if segments.size and not 0 <= segments.min() <= segments.max() < count:
        raise InvalidArgumentError.of(
            "unsorted_segment_join: segment_ids are not allowed to exceed num_segments or to have negative values; "
            f"got {segments.min()} to {segments.max()} for {count} segments",
        )
    inner = words.shape.as_list()[segments.ndim :]
    width = math.prod(inner)
    words_by_cell: dict[int, list[bytes]] = {}
    for place, value in enumerate(elements_of(words)):
        words_by_cell.setdefault(int(segments.flat[place // width]) * width + place % width, []).append(value)
    between = bytes_of(separator, "separator")
    joined = np.full(count * width, b"", object)  # fails at once if there is no memory for it
    for cell, found in words_by_cell.items():
        joined[cell] = between.join(found)
    return tensor_from(joined.tolist(), "string", [count, *inner])


def _joined_segments_spec(inputs: Any, segment_ids: Any, num_segments: Any, *_: Any, **__: Any) -> TensorSpec:
    words, segments = convert_to_tensor(inputs).shape, convert_to_tensor(segment_ids).shape
    if words.rank is None or segments.rank is None:
        return TensorSpec(None, "string")
    count = get_static_value(num_segments)
    return TensorSpec([None if count is None else int(count), *words[segments.rank :]], "string")


unsorted_segment_join.result_specs = _joined_segments_spec  # type: ignore[attr-defined]


# ---- numbers


def _number_in(text: str, integer: bool) -> float:
    """The number that a text is; a real one may be hexadecimal. Python's underscores are not part of a number."""
    if "_" in text:
        raise ValueError(text)
    if integer:
        return int(text)
    return float.fromhex(text) if "x" in text.lower() else float(text)


@public("strings.to_number")
def to_number(input: Any, out_type: Any = float32, name: str | None = None) -> Any:
    """The number that each string spells.

    >>> tf.strings.to_number(["1.5", "2"])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1.5, 2. ], dtype=float32)>
    """
    dtype = as_dtype(out_type)

    def number(value: bytes) -> float:
        try:
            found = _number_in(value.decode("utf-8", "replace").strip(), dtype.is_integer)
            if dtype.is_integer and not dtype.min <= found <= dtype.max:
                raise ValueError("out of range")
            return found
        except ValueError as error:
            text = value.decode("utf-8", "replace")
            raise InvalidArgumentError.of(
                f"to_number: StringToNumberOp could not correctly convert string: {text}"
            ) from error

    return map_bytes(input, number, dtype)


# ---- taking apart


def split_rows(x: Any, function: Callable[[bytes], list[Any]], dtype: Any = "string", splits_dtype: Any = int64) -> Any:
    """A row of parts for each string: a vector for a scalar, else a ragged tensor."""
    x = as_ragged(x)
    if isinstance(x, RaggedTensor):
        return x.with_values(split_rows(x.values, function, dtype, splits_dtype))
    tensor = string_tensor(x)
    rows = [function(v) for v in elements_of(tensor)]
    flat = tensor_from([part for row in rows for part in row], dtype, [sum(map(len, rows))])
    if tensor.shape.rank == 0:
        return flat
    result = RaggedTensor(flat, cast(np.cumsum([0, *map(len, rows)]), splits_dtype))
    for size in reversed(tensor.shape.as_list()[1:]):
        result = RaggedTensor.from_uniform_row_length(result, size)
    return result


@public("strings.split")
def split(input: Any, sep: str | None = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """The parts between separators; between white space if none is given.

    >>> tf.strings.split("a b c")
    <tf.Tensor: shape=(3,), dtype=string, numpy=array([b'a', b'b', b'c'], dtype=object)>
    """
    between = None if sep is None else bytes_of(sep, "sep")
    return split_rows(input, lambda v: v.split(between or None, maxsplit))


@public("strings.bytes_split")
def bytes_split(input: Any, name: str | None = None) -> Any:
    """The single bytes.

    >>> tf.strings.bytes_split("abc")
    <tf.Tensor: shape=(3,), dtype=string, numpy=array([b'a', b'b', b'c'], dtype=object)>
    """
    return split_rows(input, lambda v: _characters(v, "BYTE"))


@public("strings.ngrams")
def ngrams(
    data: Any,
    ngram_width: Any,
    separator: str = " ",
    pad_values: Any = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Any:
    """Runs of `ngram_width` neighbouring strings of the last dimension, joined.

    >>> tf.strings.ngrams(["a", "b", "c"], 2)
    <tf.Tensor: shape=(2,), dtype=string, numpy=array([b'a b', b'b c'], dtype=object)>
    """
    widths = [int(width) for width in np.atleast_1d(ngram_width)]
    if not isinstance(data, RaggedTensor):
        data = string_tensor(data)
        if data.shape.rank == 0:
            raise ValueError("ngrams: Data must have rank>0")
    if any(w < 1 for w in widths):
        raise ValueError(f"All ngram_widths must be greater than 0. Received: ngram_width={ngram_width}")
    if not isinstance(separator, str | bytes):
        raise TypeError(f"ngrams: separator must be a string; got {separator!r}")
    if padding_width is not None and padding_width < 1:
        raise ValueError(f"ngrams: padding_width must be greater than 0. Got {padding_width}")
    if padding_width is not None and pad_values is None:
        raise ValueError("ngrams: pad_values must be provided if padding_width is set.")
    given = pad_values if isinstance(pad_values, list | tuple) else [pad_values]
    if not all(isinstance(value, str | bytes | None) for value in given):
        raise TypeError(f"ngrams: pad_values must be a string, tuple of strings, or None. Got {pad_values!r}")
    left, right = (pad_values, pad_values) if isinstance(pad_values, str | bytes) else pad_values or (None, None)
    between = bytes_of(separator, "separator")

    def grams(row: list[bytes]) -> list[bytes]:
        result: list[bytes] = []
        for width in widths:
            pads = 0 if pad_values is None else width - 1 if padding_width is None else min(padding_width, width - 1)
            edge = [v if isinstance(v, bytes) else (v or "").encode() for v in (left, right)]
            full = [edge[0]] * pads + row + [edge[1]] * pads
            result += [between.join(full[i : i + width]) for i in range(len(full) - width + 1)]
        if preserve_short_sequences and not result and row:
            pads = 0 if pad_values is None else padding_width or 0
            result.append(between.join([edge[0]] * pads + row + [edge[1]] * pads))
        return result

    if isinstance(data, RaggedTensor):
        if isinstance(data.values, RaggedTensor):
            return data.with_values(
                ngrams(data.values, ngram_width, separator, pad_values, padding_width, preserve_short_sequences)
            )
        rows = [grams(row) for row in data.to_list()]
        return RaggedTensor(
            tensor_from(functools.reduce(operator.iadd, rows, []), "string", [sum(map(len, rows))]),
            cast(np.cumsum([0, *map(len, rows)]), int64),
        )
    values = np.asarray(string_tensor(data).numpy(), dtype=object)
    rows = [grams(row) for row in values.reshape(math.prod(values.shape[:-1]), values.shape[-1]).tolist()]
    count = len(rows[0]) if rows else 0
    return tensor_from(functools.reduce(operator.iadd, rows, []), "string", [*values.shape[:-1], count])
