"""`tf.strings`: Unicode code points, characters and encodings."""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src.namespace import public, public_as
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.ops.strings.elements import map_bytes, tensor_from
from tapeflow._src.ops.strings.strings import split_rows
from tapeflow._src.types.dtypes import int32, int64
from tapeflow._src.types.errors import InvalidArgumentError

# ---- characters


def _encoding(name: Any) -> str:
    """The name of an encoding that exists."""
    try:
        return codecs.lookup(name).name
    except LookupError as error:
        raise InvalidArgumentError.of(f"Could not create converter for input encoding: {name}") from error


def _with_byte_order(value: bytes, encoding: str) -> str:
    """UTF-16 and UTF-32 without a mark of the byte order begin with the high byte."""
    marks = {"utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)}
    return f"{encoding}-be" if encoding in marks and not value.startswith(marks[encoding]) else encoding


def _decode(value: bytes, encoding: str, errors: str, replacement: int, control: bool) -> str:
    if errors not in ("strict", "replace", "ignore"):
        raise ValueError(f'Value for attr \'errors\' of {errors!r} not in: "strict", "replace", "ignore".')
    if not 0 <= replacement <= 0x10FFFF:
        raise ValueError(f"replacement_char out of unicode codepoint range; got {replacement}")
    try:
        text = value.decode(_with_byte_order(value, _encoding(encoding)), errors)
    except UnicodeDecodeError as error:
        raise InvalidArgumentError.of(f"Invalid formatting on input string: {error}") from error
    if errors == "replace" and replacement != 0xFFFD:
        text = text.replace("\ufffd", chr(replacement))
    if control:
        text = "".join(chr(replacement) if unicodedata.category(c) == "Cc" and c not in "\t\n\r" else c for c in text)
    return text


def _offsets(text: str, encoding: str) -> list[int]:
    sizes = [len(c.encode(encoding)) for c in text]
    found: list[int] = np.cumsum([0, *sizes])[:-1].tolist()
    return found


def _starts(input: Any, encoding: str) -> Any:
    """The byte at which each character begins."""
    return split_rows(input, lambda value: _offsets(value.decode(encoding, "replace"), encoding), int64)


def _decoder(with_offsets: bool, doc: str, path: str) -> Callable[..., Any]:
    @public_as(doc, path)
    def function(
        input: Any,
        input_encoding: str,
        errors: str = "replace",
        replacement_char: int = 65533,
        replace_control_characters: bool = False,
        name: str | None = None,
    ) -> Any:
        def points(value: bytes) -> list[int]:
            text = _decode(value, input_encoding, errors, replacement_char, replace_control_characters)
            return [ord(character) for character in text]

        found = split_rows(input, points, int32)
        return (found, _starts(input, input_encoding)) if with_offsets else found

    return function


def _splitter(with_offsets: bool, doc: str, path: str) -> Callable[..., Any]:
    @public_as(doc, path)
    def function(
        input: Any,
        input_encoding: str,
        errors: str = "replace",
        replacement_char: int = 65533,
        name: str | None = None,
    ) -> Any:
        def characters(value: bytes) -> list[bytes]:
            return [c.encode(input_encoding) for c in _decode(value, input_encoding, errors, replacement_char, False)]

        found = split_rows(input, characters)
        return (found, _starts(input, input_encoding)) if with_offsets else found

    return function


unicode_decode = _decoder(
    False,
    """The code points of the characters.

    >>> tf.strings.unicode_decode("ab", "UTF-8")
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([97, 98], dtype=int32)>
    """,
    "strings.unicode_decode",
)
unicode_decode_with_offsets = _decoder(
    True,
    """The code points of the characters, and the byte at which each begins.

    >>> tf.strings.unicode_decode_with_offsets("ab", "UTF-8")[1]
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([0, 1])>
    """,
    "strings.unicode_decode_with_offsets",
)
unicode_split = _splitter(
    False,
    """The single characters, in the same encoding.

    >>> tf.strings.unicode_split("ab", "UTF-8")
    <tf.Tensor: shape=(2,), dtype=string, numpy=array([b'a', b'b'], dtype=object)>
    """,
    "strings.unicode_split",
)
unicode_split_with_offsets = _splitter(
    True,
    """The single characters, and the byte at which each begins.

    >>> tf.strings.unicode_split_with_offsets("ab", "UTF-8")[1]
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([0, 1])>
    """,
    "strings.unicode_split_with_offsets",
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
    <tf.Tensor: shape=(), dtype=string, numpy=b'ab'>
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
            raise InvalidArgumentError.of(
                f"unicode_encode: Code point is out of range for Unicode, or a noncharacter: {point}"
            )
        return "" if errors == "ignore" else chr(replacement_char)

    def text(points: list[int]) -> bytes:
        return "".join(character(p) for p in points).encode(output_encoding)

    if isinstance(input, RaggedTensor):
        if isinstance(input.values, RaggedTensor):
            return input.with_values(unicode_encode(input.values, output_encoding, errors, replacement_char))
        return tensor_from([text(row) for row in input.to_list()], "string", [int(input.nrows())])
    values = np.asarray(convert_to_tensor(input))
    rows = [text(row) for row in values.reshape(-1, values.shape[-1]).tolist()]
    return tensor_from(rows, "string", values.shape[:-1])


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
    <tf.Tensor: shape=(), dtype=string, numpy=b'\\x00a'>
    """

    def transcode(value: bytes) -> bytes:
        return _decode(value, input_encoding, errors, replacement_char, replace_control_characters).encode(
            output_encoding
        )

    return map_bytes(input, transcode)
