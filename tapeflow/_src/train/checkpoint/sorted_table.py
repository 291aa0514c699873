"""Sorted tables of LevelDB, as the index of a checkpoint is one: blocks of entries, and a block that lists them."""

from __future__ import annotations

import struct

from tapeflow._src import _core
from tapeflow._src.io.protos.wire import WireError, decode_varint
from tapeflow._src.io.records import masked
from tapeflow._src.types.errors import DataLossError

_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
_FOOTER = 48
_PLAIN, _SNAPPY = 0, 1


def read_table(data: bytes, path: str) -> dict[bytes, bytes]:
    """All entries of a table; DataLossError if it is damaged."""
    if len(data) < _FOOTER or data[-8:] != _MAGIC:
        raise DataLossError.of(f"{path}: not an sstable (bad magic number)")
    try:
        place = len(data) - _FOOTER
        for _ in range(2):
            _, place = decode_varint(data, place)
        offset, place = decode_varint(data, place)
        size, _ = decode_varint(data, place)
        entries: dict[bytes, bytes] = {}
        for handle in _read_block(data, offset, size, path).values():
            start, after = decode_varint(handle, 0)
            length, _ = decode_varint(handle, after)
            entries.update(_read_block(data, start, length, path))
    except (WireError, struct.error) as error:
        raise DataLossError.of(f"{path}: a block is damaged: {error}") from None
    return entries


def _read_block(data: bytes, offset: int, size: int, path: str) -> dict[bytes, bytes]:
    if offset + size + 5 > len(data):
        raise DataLossError.of(f"{path}: a block ends after the file")
    stored = data[offset : offset + size + 1]
    if masked(_core.crc32c(stored)) != data[offset + size + 1 : offset + size + 5]:
        raise DataLossError.of(f"{path}: block checksum mismatch")
    if stored[-1] == _SNAPPY:
        block = unpack_snappy(stored[:-1], path)
    elif stored[-1] == _PLAIN:
        block = stored[:-1]
    else:
        raise DataLossError.of(f"{path}: a block is compressed in an unknown way ({stored[-1]})")
    if len(block) < 4:
        raise DataLossError.of(f"{path}: a block has no end")
    (restarts,) = struct.unpack("<I", block[-4:])
    end, place, key = len(block) - 4 - 4 * restarts, 0, b""
    if end < 0:
        raise DataLossError.of(f"{path}: a block has no end")
    found = {}
    while place < end:
        shared, place = decode_varint(block, place)
        own, place = decode_varint(block, place)
        length, place = decode_varint(block, place)
        if shared > len(key) or place + own + length > end:
            raise DataLossError.of(f"{path}: an entry of a block has no end")
        key = key[:shared] + block[place : place + own]
        found[key] = block[place + own : place + own + length]
        place += own + length
    return found


def unpack_snappy(data: bytes, path: str) -> bytes:
    """Bytes that Snappy has compressed: literals, and copies of what came before."""
    size, place = decode_varint(data, 0)
    if size > 64 * len(data) + 64:  # a copy of 64 bytes takes two at least
        raise DataLossError.of(f"{path}: {len(data)} compressed bytes cannot be {size}")
    found = bytearray()
    while place < len(data):
        tag = data[place]
        place += 1
        if tag & 3 == 0:
            length = tag >> 2
            if length >= 60:
                extra = length - 59
                length = int.from_bytes(data[place : place + extra], "little")
                place += extra
            length += 1
            if place + length > len(data):
                raise DataLossError.of(f"{path}: compressed bytes have no end")
            found += data[place : place + length]
            place += length
        else:
            if tag & 3 == 1:
                length, width = 4 + (tag >> 2 & 7), 1
                high = tag >> 5 << 8
            else:
                length, width, high = (tag >> 2) + 1, 2 if tag & 3 == 2 else 4, 0
            back = high | int.from_bytes(data[place : place + width], "little")
            place += width
            if not 0 < back <= len(found) or place > len(data):
                raise DataLossError.of(f"{path}: compressed bytes refer to what is not there")
            for _ in range(length):
                found.append(found[-back])
        if len(found) > size:
            break
    if len(found) != size:
        raise DataLossError.of(f"{path}: compressed bytes have another size than they say")
    return bytes(found)
