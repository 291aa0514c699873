"""The wire format of protocol buffers: numbers, strings and fields as bytes, and back; it knows no messages."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

VARINT, EIGHT_BYTES, LENGTH, FOUR_BYTES = 0, 1, 2, 5
_MASK = (1 << 64) - 1


class WireError(ValueError):
    """Bytes that are no message."""


def encode_varint(number: int) -> bytes:
    """Seven bits a byte, lowest first; negative numbers take ten bytes.

    >>> encode_varint(300)
    b'\\xac\\x02'
    """
    number &= _MASK
    if number < 0x80:
        return bytes((number,))
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def decode_varint(data: bytes, at: int) -> tuple[int, int]:
    """The unsigned number that starts at `at`, and where the next byte is.

    >>> decode_varint(b"\\xac\\x02", 0)
    (300, 2)
    """
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise WireError("a number has no end")
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & _MASK, at
        shift += 7


def signed(number: int) -> int:
    """A 64-bit number as two's complement.

    >>> signed((1 << 64) - 2)
    -2
    """
    return number - (1 << 64) if number >> 63 else number


def encode_field(number: int, wire: int, body: bytes) -> bytes:
    """One field: its number and kind, then its bytes; a length goes first where there is one."""
    head = encode_varint(number << 3 | wire)
    return head + (encode_varint(len(body)) + body if wire == LENGTH else body)


def fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """(number, kind, value) of each field: an unsigned integer, or bytes.

    >>> list(fields(encode_field(1, LENGTH, b"x")))
    [(1, 2, b'x')]
    """
    at, end = 0, len(data)
    while at < end:
        head, at = decode_varint(data, at)
        number, wire = head >> 3, head & 7
        value: Any
        if wire == VARINT:
            value, at = decode_varint(data, at)
        else:
            if wire == LENGTH:
                size, at = decode_varint(data, at)
            elif wire in (EIGHT_BYTES, FOUR_BYTES):
                size = 8 if wire == EIGHT_BYTES else 4
            else:
                raise WireError(f"a field of unknown kind {wire}")
            if number == 0 or at + size > end:
                raise WireError("a field has no end")
            value, at = data[at : at + size], at + size
        yield number, wire, value


def encode_integers(values: Iterable[int]) -> bytes:
    """The body of a packed field of integers."""
    return b"".join(map(encode_varint, values))


def decode_integers(wire: int, value: Any) -> list[int]:
    """The integers of one field: several if it is packed."""
    if wire == VARINT:
        return [signed(value)]
    if wire != LENGTH:
        raise WireError("integers are expected")
    if value.isascii():  # every number takes one byte
        return list(value)
    found, at = [], 0
    while at < len(value):
        number, at = decode_varint(value, at)
        found.append(signed(number))
    return found


def encode_floats(values: Iterable[float]) -> bytes:
    """The body of a packed field of float32."""
    return np.asarray(list(values), "<f4").tobytes()


def decode_floats(wire: int, value: Any) -> list[float]:
    """The float32 numbers of one field: several if it is packed."""
    if wire not in (LENGTH, FOUR_BYTES) or len(value) % 4:
        raise WireError("floats are expected")
    return list(struct.unpack(f"<{len(value) // 4}f", value))
