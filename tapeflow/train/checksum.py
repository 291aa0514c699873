"""CRC-32C, the checksum of checkpoint files, at the speed of NumPy: many pieces of the data side by side."""

from __future__ import annotations

import struct
from functools import cache

import numpy as np

_POLYNOMIAL = 0x82F63B78
_LANES = 2048
_COLUMNS = 64  # are turned into rows at a time
_MASK = 0xA282EAD8


@cache
def _table() -> np.ndarray:
    """What one byte does to the checksum."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(_POLYNOMIAL), table >> 1).astype(np.uint32)
    return table


@cache
def _zeros(count: int) -> list[list[int]]:
    """What `count` zero bytes do to a checksum: a linear map, as a table for each of its four bytes."""
    state = np.array([1 << bit for bit in range(32)], np.uint32)
    table = _table()
    if count <= 64:
        for _ in range(count):
            state = table[state & 0xFF] ^ state >> 8
    else:
        half = _zeros(count // 2)
        columns = [_moved(half, _moved(half, int(bit))) for bit in state]
        if count % 2:
            columns = [int(table[column & 0xFF]) ^ column >> 8 for column in columns]
        state = np.array(columns, np.uint32)
    bits = [int(column) for column in state]
    return [
        [_folded(byte, bits[8 * place : 8 * place + 8]) for byte in range(256)]
        for place in range(4)
    ]  # fmt: skip


def _folded(byte: int, columns: list[int]) -> int:
    found = 0
    for bit, column in enumerate(columns):
        if byte >> bit & 1:
            found ^= column
    return found


def _moved(tables: list[list[int]], crc: int) -> int:
    first, second, third, fourth = tables
    return first[crc & 0xFF] ^ second[crc >> 8 & 0xFF] ^ third[crc >> 16 & 0xFF] ^ fourth[crc >> 24]


@cache
def _pair_table() -> np.ndarray:
    """What two bytes do to the checksum."""
    table, pairs = _table(), np.arange(65536, dtype=np.uint32)
    once = table[pairs & 0xFF] ^ pairs >> 8
    return table[once & 0xFF] ^ once >> 8


def _pieces(data: bytes | memoryview, length: int) -> np.ndarray:
    """The checksums, begun with zero, of pieces of `length` pairs of bytes, all at once."""
    lanes = np.frombuffer(data, "<u2", length * _LANES).reshape(_LANES, length)
    table = _pair_table()
    state, mixed, places = np.zeros(_LANES, np.uint32), np.empty(_LANES, np.uint32), np.empty(_LANES, np.intp)
    for start in range(0, length, _COLUMNS):
        for column in np.ascontiguousarray(lanes[:, start : start + _COLUMNS].T):
            np.bitwise_xor(state, column, out=mixed)
            np.bitwise_and(mixed, 0xFFFF, out=places, casting="unsafe")
            np.take(table, places, out=mixed, mode="clip")
            np.right_shift(state, 16, out=state)
            np.bitwise_xor(state, mixed, out=state)
    return state


def crc32c(data: bytes | memoryview, start: int = 0) -> int:
    """The checksum of bytes, after others of which the checksum is `start`.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = start ^ 0xFFFFFFFF
    table = _table()
    length = len(data) // (2 * _LANES)
    if length >= 16:
        zeros = _zeros(2 * length)
        for piece in _pieces(data, length).tolist():
            crc = _moved(zeros, crc) ^ piece
        data = data[2 * length * _LANES :]
    small = table.tolist()
    for byte in bytes(data):
        crc = small[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def masked(crc: int) -> bytes:
    """The checksum as it stands in files."""
    return struct.pack("<I", ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF)
