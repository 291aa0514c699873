"""Fields of the messages in checkpoint files, in the wire format of protocol buffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tapeflow._src.io.protos import wire


def number_field(field: int, number: int) -> bytes:
    """A field that holds a number; left out if it is zero."""
    return wire.encode_field(field, wire.VARINT, wire.encode_varint(number)) if number else b""


def bytes_field(field: int, content: bytes | str) -> bytes:
    """A field that holds bytes, a text or another message."""
    return wire.encode_field(field, wire.LENGTH, content.encode() if isinstance(content, str) else content)


def fixed_field(field: int, data: bytes) -> bytes:
    """A field that holds four bytes."""
    return wire.encode_field(field, wire.FOUR_BYTES, data)


def fields(data: Any) -> Iterator[tuple[int, Any]]:
    """The fields of a message, each with its number; those of four or eight bytes as integers."""
    for number, kind, value in wire.fields(bytes(data)):
        yield number, int.from_bytes(value, "little") if kind in (wire.FOUR_BYTES, wire.EIGHT_BYTES) else value
