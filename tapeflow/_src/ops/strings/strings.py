"""`tf.strings`: operations on byte strings, element by element."""

from __future__ import annotations

import base64
import codecs
import functools
import math
import operator
import re
import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dims_of
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.ops.strings.hashing import fingerprint64, murmur64, siphash
from tapeflow._src.types.dtypes import as_dtype, float32, int32, int64
from tapeflow._src.types.errors import InvalidArgumentError


def _strings(x: Any) -> Any:
    tensor = convert_to_tensor(x, dtype=None if _core.is_tensor(x) else "string")
    if tensor.dtype.name != "string":
        raise InvalidArgumentError(
            None,
            None,
            f"strings: Value for attr 'T' of {tensor.dtype.name} is not in the list of allowed values: string",
        )
    return tensor


def _bytes(value: Any, argument: str) -> bytes:
    """An argument that is one string."""
    if _core.is_tensor(value):
        value = value.numpy()
    if not isinstance(value, str | bytes):
        raise TypeError(f"Expected string for argument {argument!r} not {value!r}.")
    return value.encode() if isinstance(value, str) else value


def _elements(x: Any) -> list[Any]:
    return np.asarray(x.numpy(), dtype=object).reshape(-1).tolist()


def _tensor(values: list[Any], dtype: Any, shape: Any) -> Any:
    flat = _core.convert_to_tensor(values, as_dtype(dtype), None, "strings")
    return primitives.Reshape(flat, list(shape))


def _each(x: Any, function: Callable[[bytes], Any], dtype: Any = "string") -> Any:
    """`function` of every element; a ragged tensor keeps its rows."""
    if isinstance(x, RaggedTensor):
        return x.with_flat_values(_each(x.flat_values, function, dtype))
    tensor = _strings(x)
    return host_call(_Each(function, dtype), [tensor], [(dtype, tensor.shape)])[0]


class _Each:
    """A function of every element; it can be written into a saved model if the function pickles."""

    def __init__(self, function: Callable[[bytes], Any], dtype: Any) -> None:
        self._function, self._dtype = function, dtype

    def __call__(self, tensor: Any) -> list[Any]:
        return [_tensor([self._function(v) for v in _elements(tensor)], self._dtype, tensor.shape.as_list())]


def _lower_text(value: bytes) -> str:
    return value.decode("utf-8", "replace").lower()


def _upper_text(value: bytes) -> str:
    return value.decode("utf-8", "replace").upper()


def _count_of(unit: str, value: bytes) -> int:
    return len(_characters(value, unit))


def _replaced(pattern: Any, text: Any, count: int, value: bytes) -> bytes:
    return pattern.sub(text, value, count)


def _matches(pattern: Any, value: bytes) -> bool:
    return pattern.fullmatch(value) is not None


def _bucket_of(function: Callable[[bytes], int], buckets: int, value: bytes) -> int:
    return function(value) % buckets


def _characters(value: bytes, unit: str) -> list[bytes]:
    """The bytes, or the UTF-8 characters, one by one."""
    if unit == "BYTE":
        return [value[i : i + 1] for i in range(len(value))]
    if unit == "UTF8_CHAR":
        return [c.encode() for c in value.decode("utf-8", "replace")]
    raise ValueError(f"unit must be 'BYTE' or 'UTF8_CHAR'; got {unit!r}")


@public("strings.lower")
def lower(input: Any, encoding: str = "", name: str | None = None) -> Any:
    """Small letters: of ASCII alone, or of all characters if `encoding` is "utf-8".

    >>> tf.strings.lower(["aB"])
    [b'ab']
    """
    if encoding not in ("", "utf-8"):
        raise InvalidArgumentError(None, None, f"lower: encoding must be '' or 'utf-8', got {encoding!r}")
    return _each(input, _lower_text if encoding else bytes.lower)


@public("strings.upper")
def upper(input: Any, encoding: str = "", name: str | None = None) -> Any:
    """Capital letters: of ASCII alone, or of all characters if `encoding` is "utf-8".

    >>> tf.strings.upper(["aB"])
    [b'AB']
    """
    if encoding not in ("", "utf-8"):
        raise InvalidArgumentError(None, None, f"upper: encoding must be '' or 'utf-8', got {encoding!r}")
    return _each(input, _upper_text if encoding else bytes.upper)


@public("strings.strip")
def strip(input: Any, name: str | None = None) -> Any:
    """Without white space at both ends.

    >>> tf.strings.strip([" a "])
    [b'a']
    """
    return _each(input, bytes.strip)


@public("strings.length")
def length(input: Any, unit: str = "BYTE", name: str | None = None) -> Any:
    """The number of bytes, or of characters with `unit="UTF8_CHAR"`.

    >>> tf.strings.length(["ab", "c"])
    [2, 1]
    """
    return _each(input, functools.partial(_count_of, unit), int32)


@public("strings.substr")
def substr(input: Any, pos: Any, len: Any, unit: str = "BYTE", name: str | None = None) -> Any:
    """`len` bytes (or characters) from the place `pos`; a negative place counts from the end.

    >>> tf.strings.substr("hello", 1, 3)
    b'ell'
    """
    text = _strings(input)
    values, starts, counts = np.broadcast_arrays(
        np.asarray(text.numpy(), dtype=object), np.asarray(convert_to_tensor(pos)), np.asarray(convert_to_tensor(len))
    )
    result = []
    for i, (value, start, count) in enumerate(zip(values.reshape(-1), starts.reshape(-1), counts.reshape(-1))):
        parts = _characters(value, unit)
        size = parts.__len__()
        if not -size <= start <= size:
            raise InvalidArgumentError(
                None, None, f"substr: pos {start} out of range for string {value!r} at index {i}"
            )
        begin = int(start) if start >= 0 else int(start) + size
        result.append(b"".join(parts[begin : begin + int(count)] if count >= 0 else parts[begin:]))
    return _tensor(result, "string", values.shape)


@public("strings.join")
def join(inputs: Any, separator: str = "", name: str | None = None) -> Any:
    """Elements of several tensors joined; scalars go with every element.

    >>> tf.strings.join(["a", ["b", "c"]], "-")
    [b'a-b', b'a-c']
    """
    if any(isinstance(x, RaggedTensor) for x in inputs):
        first = next(x for x in inputs if isinstance(x, RaggedTensor))
        flat = [x.flat_values if isinstance(x, RaggedTensor) else x for x in inputs]
        return first.with_flat_values(join(flat, separator))
    tensors = [_strings(x) for x in inputs]
    shapes = [t.shape.as_list() for t in tensors if t.shape.rank]
    if any(shape != shapes[0] for shape in shapes):
        raise InvalidArgumentError(None, None, f"join: Input shapes do not match: {shapes}")
    shape = shapes[0] if shapes else []
    count = int(np.prod(shape, dtype=np.int64))
    columns = [_elements(t) if t.shape.rank else _elements(t) * count for t in tensors]
    between = _bytes(separator, "separator")
    return _tensor([between.join(row) for row in zip(*columns)], "string", shape)


@public("strings.reduce_join")
def reduce_join(
    inputs: Any, axis: Any = None, keepdims: bool = False, separator: str = "", name: str | None = None
) -> Any:
    """Elements joined along `axis`; along several in the order in which they are given.

    >>> tf.strings.reduce_join([["a", "b"], ["c", "d"]], axis=1)
    [b'ab', b'cd']
    """
    values = np.asarray(_strings(inputs).numpy(), dtype=object)
    rank = values.ndim
    axes = (
        list(range(rank - 1, -1, -1)) if axis is None else [a % rank if -rank <= a < rank else a for a in dims_of(axis)]
    )
    if any(not 0 <= a < rank for a in axes):
        raise InvalidArgumentError(
            None, None, f"reduce_join: Invalid reduction dimension {axis} for input with {rank} dimension(s)"
        )
    kept = [i for i in range(rank) if i not in axes]
    shape = [values.shape[i] for i in kept]
    rows = (
        values.transpose([*kept, *reversed(axes)]).reshape(int(np.prod(shape, dtype=np.int64)), -1)
        if rank
        else values.reshape(1, 1)
    )
    full = [1 if i in axes else values.shape[i] for i in range(rank)] if keepdims else shape
    between = _bytes(separator, "separator")
    return _tensor([between.join(row.tolist()) for row in rows], "string", full)


@public("strings.unsorted_segment_join")
def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: str = "", name: str | None = None
) -> Any:
    """Elements that share a number in `segment_ids` joined.

    >>> tf.strings.unsorted_segment_join(["a", "b", "c"], [0, 1, 0], 2, ":")
    [b'a:c', b'b']
    """
    words, segments, count = _strings(inputs), np.asarray(convert_to_tensor(segment_ids)), int(num_segments)
    if segments.ndim == 0:
        raise InvalidArgumentError(None, None, "unsorted_segment_join: Segment_id cannot have rank 0")
    if words.shape.as_list()[: segments.ndim] != list(segments.shape):
        raise InvalidArgumentError(
            None,
            None,
            f"unsorted_segment_join: Segment_ids shape {list(segments.shape)} must be the beginning of that of inputs, "
            f"{words.shape.as_list()}",
        )
    if segments.size and not 0 <= segments.min() <= segments.max() < count:
        raise InvalidArgumentError(
            None,
            None,
            "unsorted_segment_join: segment_ids are not allowed to exceed num_segments or to have negative values; "
            f"got {segments.min()} to {segments.max()} for {count} segments",
        )
    inner = words.shape.as_list()[segments.ndim :]
    width = math.prod(inner)
    cells: list[list[bytes]] = [[] for _ in range(count * width)]
    for place, value in enumerate(_elements(words)):
        cells[segments.flat[place // width] * width + place % width].append(value)
    between = _bytes(separator, "separator")
    return _tensor([between.join(cell) for cell in cells], "string", [count, *inner])


# ---- patterns


def _pattern(pattern: Any) -> re.Pattern[bytes]:
    text = _bytes(pattern, "pattern")
    try:
        return re.compile(text)
    except re.error as error:
        raise InvalidArgumentError(None, None, f"Invalid pattern: {pattern}, error: {error}") from error


@public("strings.regex_replace")
def regex_replace(input: Any, pattern: Any, rewrite: Any, replace_global: bool = True, name: str | None = None) -> Any:
    r"""Each match of a regular expression (or the first) replaced; `\1` stands for the first group.

    >>> tf.strings.regex_replace(["a1b22"], "[0-9]+", "#")
    [b'a#b#']
    """
    compiled = _pattern(pattern)
    text = re.sub(rb"\\0", rb"\\g<0>", _bytes(rewrite, "rewrite"))
    return _each(input, functools.partial(_replaced, compiled, text, 0 if replace_global else 1))


@public("strings.regex_full_match")
def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Any:
    """Whether a regular expression matches the whole string.

    >>> tf.strings.regex_full_match(["a1", "b"], "[a-z][0-9]")
    [True, False]
    """
    compiled = _pattern(pattern)
    return _each(input, functools.partial(_matches, compiled), "bool")


@public("strings.to_number")
def to_number(input: Any, out_type: Any = float32, name: str | None = None) -> Any:
    """The number that each string spells.

    >>> tf.strings.to_number(["1.5", "2"])
    [1.5, 2.]
    """
    dtype = as_dtype(out_type)

    def number(value: bytes) -> Any:
        try:
            return (int if dtype.is_integer else float)(value.decode("utf-8", "replace").strip())
        except ValueError as error:
            text = value.decode("utf-8", "replace")
            raise InvalidArgumentError(
                None, None, f"to_number: StringToNumberOp could not correctly convert string: {text}"
            ) from error

    return _each(input, number, dtype)


# ---- taking apart


def _split_rows(
    x: Any, function: Callable[[bytes], list[Any]], dtype: Any = "string", splits_dtype: Any = int64
) -> Any:
    """A row of parts for each string: a vector for a scalar, else a ragged tensor."""
    if isinstance(x, RaggedTensor):
        return x.with_values(_split_rows(x.values, function, dtype, splits_dtype))
    tensor = _strings(x)
    rows = [function(v) for v in _elements(tensor)]
    flat = _tensor([part for row in rows for part in row], dtype, [sum(map(len, rows))])
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
    [b'a', b'b', b'c']
    """
    between = None if sep is None else _bytes(sep, "sep")
    return _split_rows(input, lambda v: v.split(between or None, maxsplit))


@public("strings.bytes_split")
def bytes_split(input: Any, name: str | None = None) -> Any:
    """The single bytes.

    >>> tf.strings.bytes_split("abc")
    [b'a', b'b', b'c']
    """
    return _split_rows(input, lambda v: _characters(v, "BYTE"))


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
    [b'a b', b'b c']
    """
    widths = [int(width) for width in np.atleast_1d(ngram_width)]
    if not isinstance(data, RaggedTensor):
        data = _strings(data)
        if data.shape.rank == 0:
            raise ValueError("ngrams: Data must have rank>0")
    if any(w < 1 for w in widths):
        raise ValueError(f"All ngram_widths must be greater than 0. Received: ngram_width={ngram_width}")
    left, right = (pad_values, pad_values) if isinstance(pad_values, str | bytes) else pad_values or (None, None)
    between = _bytes(separator, "separator")

    def grams(row: list[bytes]) -> list[bytes]:
        result: list[bytes] = []
        for width in widths:
            pads = 0 if pad_values is None else width - 1 if padding_width is None else min(padding_width, width - 1)
            edge = [v if isinstance(v, bytes) else (v or "").encode() for v in (left, right)]
            full = [edge[0]] * pads + row + [edge[1]] * pads
            result += [between.join(full[i : i + width]) for i in range(len(full) - width + 1)]
        if preserve_short_sequences and not result and row:
            result.append(between.join(row))
        return result

    if isinstance(data, RaggedTensor):
        if isinstance(data.values, RaggedTensor):
            return data.with_values(
                ngrams(data.values, ngram_width, separator, pad_values, padding_width, preserve_short_sequences)
            )
        rows = [grams(row) for row in data.to_list()]
        return RaggedTensor(
            _tensor(functools.reduce(operator.iadd, rows, []), "string", [sum(map(len, rows))]),
            cast(np.cumsum([0, *map(len, rows)]), int64),
        )
    values = np.asarray(_strings(data).numpy(), dtype=object)
    rows = [grams(row) for row in values.reshape(math.prod(values.shape[:-1]), values.shape[-1]).tolist()]
    count = len(rows[0]) if rows else 0
    return _tensor(functools.reduce(operator.iadd, rows, []), "string", [*values.shape[:-1], count])


# ---- characters


def _encoding(name: Any) -> str:
    """The name of an encoding that exists."""
    try:
        return codecs.lookup(name).name
    except LookupError as error:
        raise InvalidArgumentError(None, None, f"Could not create converter for input encoding: {name}") from error


def _decode(value: bytes, encoding: str, errors: str, replacement: int, control: bool) -> str:
    if errors not in ("strict", "replace", "ignore"):
        raise ValueError(f"errors must be 'strict', 'replace' or 'ignore'; got {errors!r}")
    try:
        text = value.decode(_encoding(encoding), errors)
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(None, None, f"Invalid formatting on input string: {error}") from error
    if errors == "replace" and replacement != 0xFFFD:
        text = text.replace("\ufffd", chr(replacement))
    if control:
        text = "".join(chr(replacement) if unicodedata.category(c) == "Cc" and c not in "\t\n\r" else c for c in text)
    return text


def _offsets(text: str, encoding: str) -> list[int]:
    sizes = [len(c.encode(encoding)) for c in text]
    return np.cumsum([0, *sizes])[:-1].tolist()


@public("strings.unicode_decode")
def unicode_decode(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """The code points of the characters.

    >>> tf.strings.unicode_decode("ab", "UTF-8")
    [97, 98]
    """

    def points(value: bytes) -> list[int]:
        return [ord(c) for c in _decode(value, input_encoding, errors, replacement_char, replace_control_characters)]

    return _split_rows(input, points, int32)


@public("strings.unicode_decode_with_offsets")
def unicode_decode_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The code points of the characters, and the byte at which each begins.

    >>> tf.strings.unicode_decode_with_offsets("ab", "UTF-8")[1]
    [0, 1]
    """
    points = unicode_decode(input, input_encoding, errors, replacement_char, replace_control_characters)
    return points, _split_rows(input, lambda v: _offsets(v.decode(input_encoding, "replace"), input_encoding), int64)


@public("strings.unicode_split")
def unicode_split(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """The single characters, in the same encoding.

    >>> tf.strings.unicode_split("ab", "UTF-8")
    [b'a', b'b']
    """

    def characters(value: bytes) -> list[bytes]:
        return [c.encode(input_encoding) for c in _decode(value, input_encoding, errors, replacement_char, False)]

    return _split_rows(input, characters)


@public("strings.unicode_split_with_offsets")
def unicode_split_with_offsets(
    input: Any,
    input_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The single characters, and the byte at which each begins.

    >>> tf.strings.unicode_split_with_offsets("ab", "UTF-8")[1]
    [0, 1]
    """
    characters = unicode_split(input, input_encoding, errors, replacement_char)
    return characters, _split_rows(
        input, lambda v: _offsets(v.decode(input_encoding, "replace"), input_encoding), int64
    )


@public("strings.unicode_encode")
def unicode_encode(
    input: Any,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """Text from the code points in the last dimension.

    >>> tf.strings.unicode_encode([97, 98], "UTF-8")
    b'ab'
    """
    if output_encoding not in ("UTF-8", "UTF-16-BE", "UTF-32-BE"):
        raise ValueError(f"output_encoding must be UTF-8, UTF-16-BE or UTF-32-BE; got {output_encoding!r}")
    if not isinstance(input, RaggedTensor):
        input = convert_to_tensor(input)
        if input.shape.rank == 0:
            raise ValueError("unicode_encode: input_tensor's rank must be at least 1.")

    def character(point: int) -> str:
        if 0 <= point <= 0x10FFFF and not 0xD800 <= point <= 0xDFFF:
            return chr(point)
        if errors == "strict":
            raise InvalidArgumentError(
                None, None, f"unicode_encode: Code point is out of range for Unicode, or a noncharacter: {point}"
            )
        return "" if errors == "ignore" else chr(replacement_char)

    def text(points: list[int]) -> bytes:
        return "".join(character(p) for p in points).encode(output_encoding)

    if isinstance(input, RaggedTensor):
        if isinstance(input.values, RaggedTensor):
            return input.with_values(unicode_encode(input.values, output_encoding, errors, replacement_char))
        return _tensor([text(row) for row in input.to_list()], "string", [int(input.nrows())])
    values = np.asarray(convert_to_tensor(input))
    rows = [text(row) for row in values.reshape(-1, values.shape[-1]).tolist()]
    return _tensor(rows, "string", values.shape[:-1])


@public("strings.unicode_transcode")
def unicode_transcode(
    input: Any,
    input_encoding: str,
    output_encoding: str,
    errors: str = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """Text in another encoding.

    >>> tf.strings.unicode_transcode("a", "UTF-8", "UTF-16-BE")
    b'\\x00a'
    """

    def transcode(value: bytes) -> bytes:
        return _decode(value, input_encoding, errors, replacement_char, replace_control_characters).encode(
            output_encoding
        )

    return _each(input, transcode)


# ---- hashes


def _buckets(input: Any, num_buckets: int, function: Callable[[bytes], int]) -> Any:
    if int(num_buckets) < 1:
        raise InvalidArgumentError(None, None, f"to_hash_bucket: num_buckets must be at least 1; got {num_buckets}")
    return _each(input, functools.partial(_bucket_of, function, int(num_buckets)), int64)


@public("strings.to_hash_bucket_fast")
def to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Any:
    """A number below `num_buckets` for each string, by FarmHash's fingerprint.

    >>> tf.strings.to_hash_bucket_fast(["hello"], 10)
    [6]
    """
    return _buckets(input, num_buckets, fingerprint64)


@public("strings.to_hash_bucket")
def to_hash_bucket(input: Any, num_buckets: int, name: str | None = None) -> Any:
    """A number below `num_buckets` for each string, by Murmur's hash.

    >>> tf.strings.to_hash_bucket(["a"], 1000)
    [868]
    """
    return _buckets(input, num_buckets, murmur64)


@public("strings.to_hash_bucket_strong")
def to_hash_bucket_strong(input: Any, num_buckets: int, key: Any, name: str | None = None) -> Any:
    """A number below `num_buckets` for each string, by SipHash with a key of two numbers.

    >>> tf.strings.to_hash_bucket_strong(["a"], 1000, [1, 2])
    [646]
    """
    numbers = [int(k) for k in key]
    if len(numbers) != 2:
        raise InvalidArgumentError(None, None, f"to_hash_bucket_strong: Key must have 2 elements; got {len(numbers)}")
    return _buckets(input, num_buckets, lambda v: siphash(v, (numbers[0], numbers[1])))


@public("fingerprint")
def fingerprint(data: Any, method: str = "farmhash64", name: str | None = None) -> Any:
    """The eight bytes of FarmHash's fingerprint of each row.

    >>> tf.fingerprint(["a"])
    [[227, 117, 223, 182, 101, 66, 69, 179]]
    """
    if method != "farmhash64":
        raise InvalidArgumentError(None, None, f"fingerprint: Unsupported fingerprint method {method!r}")
    tensor = convert_to_tensor(data)
    if tensor.shape.rank == 0:
        raise InvalidArgumentError(None, None, "fingerprint: data must have at least one dimension")
    rows = tensor.shape[0]
    if tensor.dtype.name == "string":
        parts = [
            b"".join(v.to_bytes(8, "little") for v in map(fingerprint64, row)) if tensor.shape.rank > 1 else row[0]
            for row in np.asarray(tensor.numpy(), dtype=object).reshape(rows, -1).tolist()
        ]
    else:
        parts = [row.tobytes() for row in np.ascontiguousarray(tensor.numpy()).reshape(rows, -1)]
    numbers = [list(fingerprint64(part).to_bytes(8, "little")) for part in parts]
    return convert_to_tensor(np.asarray(numbers, np.uint8).reshape(rows, 8))


@public("io.encode_base64")
def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Any:
    """Bytes as web-safe base64 text.

    >>> tf.io.encode_base64("hello")
    b'aGVsbG8'
    """
    return _each(input, lambda v: base64.urlsafe_b64encode(v) if pad else base64.urlsafe_b64encode(v).rstrip(b"="))


@public("io.decode_base64")
def decode_base64(input: Any, name: str | None = None) -> Any:
    """The bytes that web-safe base64 text stands for.

    >>> tf.io.decode_base64("aGVsbG8")
    b'hello'
    """
    return _each(input, lambda v: base64.urlsafe_b64decode(v + b"=" * (-len(v) % 4)))


@public("io.decode_raw")
def decode_raw(
    input_bytes: Any,
    out_type: Any,
    little_endian: bool = True,
    fixed_length: int | None = None,
    name: str | None = None,
) -> Any:
    """Bytes as numbers of a type, in a new last dimension.

    >>> tf.io.decode_raw(["ab"], tf.uint8)
    [[97, 98]]
    """
    tensor, dtype = _strings(input_bytes), as_dtype(out_type)
    order = np.dtype(dtype.as_numpy_dtype).newbyteorder("<" if little_endian else ">")

    def run(tensor: Any) -> list[Any]:
        values = _elements(tensor)
        if fixed_length is not None:
            values = [v[:fixed_length].ljust(fixed_length, b"\0") for v in values]
        sizes = {len(v) for v in values}
        if len(sizes) > 1 or any(size % dtype.size for size in sizes):
            raise InvalidArgumentError(
                None, None,
                f"decode_raw: all strings must have one length that {dtype.size} divides; got {sorted(sizes)}",
            )  # fmt: skip
        shape = [*tensor.shape.as_list(), (sizes.pop() if sizes else 0) // dtype.size]
        numbers = np.frombuffer(b"".join(values), order).astype(dtype.as_numpy_dtype)
        return [convert_to_tensor(numbers.reshape(shape))]

    known = None if fixed_length is None else fixed_length // dtype.size
    return host_call(run, [tensor], [(dtype, tensor.shape.concatenate([known]))])[0]
