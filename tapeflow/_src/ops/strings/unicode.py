"""`tf.strings`: Unicode code points, characters and encodings."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src.namespace import public, public_as
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.ops.strings.elements import errors_when_run, map_bytes, tensor_from
from tapeflow._src.ops.strings.strings import split_rows
from tapeflow._src.types.dtypes import int32, int64, string
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


_MARK = 0xDC80  # lone surrogates, which no valid text holds: with the length of a malformed sequence added


def _mark_malformed(error: UnicodeError) -> tuple[str, int]:
    """One character for a malformed sequence, which says how long that is."""
    assert isinstance(error, UnicodeDecodeError)
    return chr(_MARK + error.end - error.start), error.end


codecs.register_error("tapeflow_mark_malformed", _mark_malformed)


def _characters(value: bytes, encoding: str, errors: str, replacement: int, control: bool) -> list[tuple[str, int]]:
    """The characters of a text, each with the byte at which it begins."""
    if errors not in ("strict", "replace", "ignore"):
        raise ValueError(f'Value for attr \'errors\' of {errors!r} not in: "strict", "replace", "ignore".')
    if not 0 <= replacement <= 0x10FFFF:
        raise InvalidArgumentError.of(f"replacement_char out of unicode codepoint range; got {replacement}")
    codec = _with_byte_order(value, _encoding(encoding))
    try:
        text = value.decode(codec, "strict" if errors == "strict" else "tapeflow_mark_malformed")
    except UnicodeDecodeError as error:
        raise InvalidArgumentError.of(f"Invalid formatting on input string: {error}") from error
    plain = f"{codec}-le" if codec in ("utf-16", "utf-32") else codec  # without a mark of the byte order
    found, place = [], 0
    for character in text:
        malformed = "\udc80" <= character <= "\udfff"
        if not malformed and not (control and character < " "):
            found.append((character, place))
        elif errors != "ignore":
            found.append((chr(replacement), place))
        place += ord(character) - _MARK if malformed else len(character.encode(plain))
    return found


def _decode(value: bytes, encoding: str, errors: str, replacement: int, control: bool) -> str:
    return "".join([character for character, _ in _characters(value, encoding, errors, replacement, control)])


def _parts(
    input: Any,
    characters: Callable[[bytes], list[tuple[str, int]]],
    part: Callable[[str], Any],
    dtype: Any,
    offsets: bool,
) -> Any:
    """`part` of each character, and with `offsets` also the byte at which each begins."""
    found = split_rows(input, lambda value: [part(character) for character, _ in characters(value)], dtype)
    if not offsets:
        return found
    return found, split_rows(input, lambda value: [place for _, place in characters(value)], int64)


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
        def characters(value: bytes) -> list[tuple[str, int]]:
            return _characters(value, input_encoding, errors, replacement_char, replace_control_characters)

        return _parts(input, characters, ord, int32, with_offsets)

    return function


def _splitter(with_offsets: bool, doc: str, path: str) -> Callable[..., Any]:
    @public_as(doc, path)
    def function(
        input: Any, input_encoding: str, errors: str = "replace", replacement_char: int = 65533, name: str | None = None
    ) -> Any:
        def characters(value: bytes) -> list[tuple[str, int]]:
            return _characters(value, input_encoding, errors, replacement_char, False)

        return _parts(input, characters, lambda character: character.encode(input_encoding), string, with_offsets)

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
        text = _decode(value, input_encoding, errors, replacement_char, replace_control_characters)
        try:
            return text.encode(output_encoding)
        except LookupError as error:
            raise InvalidArgumentError.of(
                f"Could not create converter for output encoding: {output_encoding}"
            ) from error

    return map_bytes(input, transcode)


errors_when_run(unicode_transcode, string)
