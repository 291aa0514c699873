"""TFRecord files: a length, its checksum, the bytes and theirs, one record after the other."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cache
from typing import BinaryIO

from tapeflow.types.errors import DataLossError


@cache
def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


def _checksum(data: bytes) -> int:
    """The masked CRC-32C of bytes."""
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def framed(record: bytes) -> bytes:
    """A record as it stands in a file."""
    length = struct.pack("<Q", len(record))
    return length + struct.pack("<I", _checksum(length)) + record + struct.pack("<I", _checksum(record))


def read_records(file: BinaryIO) -> Iterator[bytes]:
    """The records of a file; DataLossError where it is damaged."""
    place = 0
    while head := file.read(12):
        if len(head) < 12:
            raise DataLossError(None, None, f"truncated record at {place}")
        if struct.unpack("<I", head[8:])[0] != _checksum(head[:8]):
            raise DataLossError(None, None, f"corrupted record at {place}")
        (length,) = struct.unpack("<Q", head[:8])
        record, end = file.read(length), file.read(4)
        if len(record) < length or len(end) < 4:
            raise DataLossError(None, None, f"truncated record at {place}")
        if struct.unpack("<I", end)[0] != _checksum(record):
            raise DataLossError(None, None, f"corrupted record at {place + 12}")
        yield record
        place += 16 + length
