"""Numbers in the wire format of protocol buffers, which tables and checkpoints use as well."""

from __future__ import annotations

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
