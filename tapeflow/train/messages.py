"""Protocol buffers, as far as checkpoint files need them: fields of numbers, bytes and other messages."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any


def varint(number: int) -> bytes:
    """A whole number that is not negative, seven bits in each byte."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def read_varint(data: Any, place: int) -> tuple[int, int]:
    """The number that begins at `place`, and the place after it."""
    number = shift = 0
    while True:
        byte = data[place]
        place += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, place
        shift += 7


def number_field(field: int, number: int) -> bytes:
    """A field that holds a number; left out if it is zero."""
    return varint(field << 3) + varint(number) if number else b""


def bytes_field(field: int, content: bytes | str) -> bytes:
    """A field that holds bytes, a text or another message."""
    data = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(data)) + data


def fixed_field(field: int, data: bytes) -> bytes:
    """A field that holds four bytes."""
    return varint(field << 3 | 5) + data


def fields(data: Any) -> Iterator[tuple[int, Any]]:
    """The fields of a message, each with its number."""
    place = 0
    while place < len(data):
        tag, place = read_varint(data, place)
        kind = tag & 7
        if kind == 0:
            value, place = read_varint(data, place)
        elif kind == 2:
            length, place = read_varint(data, place)
            value, place = bytes(data[place : place + length]), place + length
        elif kind == 5:
            value, place = struct.unpack("<I", data[place : place + 4])[0], place + 4
        elif kind == 1:
            value, place = struct.unpack("<Q", data[place : place + 8])[0], place + 8
        else:
            raise ValueError(f"a message has a field of the unknown kind {kind}")
        yield tag >> 3, value
