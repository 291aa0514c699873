"""TensorFlow's checkpoint files: `<prefix>.index`, a sorted table of names, and `<prefix>.data-00000-of-00001`.

The table is one of LevelDB: blocks of entries, a block that lists them, and a footer that says where that one is.
"""

from __future__ import annotations

import glob
import math
import os
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.io.atomic_files import atomic_file, write_atomically
from tapeflow._src.io.protos.wire import decode_varint, encode_varint
from tapeflow._src.io.records import masked
from tapeflow._src.train.checkpoint.messages import bytes_field, fields, fixed_field, number_field
from tapeflow._src.types.dtypes import DType, as_dtype, dtype_by_enum
from tapeflow._src.types.errors import DataLossError, NotFoundError

_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
_RESTART_EVERY = 16


def bundle_exists(prefix: str) -> bool:
    """Whether there is a checkpoint at this path."""
    return os.path.exists(f"{prefix}.index")


def delete_bundle(prefix: str) -> None:
    """Deletes the files of a checkpoint."""
    for name in [f"{prefix}.index", *glob.glob(f"{glob.escape(prefix)}.data-?????-of-?????")]:
        if os.path.exists(name):
            os.remove(name)


# ---- writing


def write_bundle(prefix: str, array_by_name: Mapping[str, Any]) -> None:
    """Writes arrays, or what functions give, under names; nobody ever sees half a checkpoint."""
    entries = {b"": number_field(1, 1) + bytes_field(3, number_field(1, 1))}
    with atomic_file(f"{prefix}.data-00000-of-00001") as file:
        offset = 0
        for name in sorted(array_by_name, key=str.encode):
            value = array_by_name[name]
            array = np.asarray(value() if callable(value) else value)
            data, crc = _encoded(array)
            file.write(data)
            entries[name.encode()] = _entry(array, offset, len(data), crc)
            offset += len(data)
    write_atomically(f"{prefix}.index", _table(entries))


def _entry(array: np.ndarray, offset: int, size: int, crc: int) -> bytes:
    dtype = as_dtype("string" if array.dtype == object else array.dtype)
    shape = b"".join(bytes_field(2, number_field(1, length)) for length in array.shape)
    return (
        number_field(1, dtype.as_datatype_enum)
        + bytes_field(2, shape)
        + number_field(4, offset)
        + number_field(5, size)
        + fixed_field(6, masked(crc))
    )


def _encoded(array: np.ndarray) -> tuple[bytes | memoryview, int]:
    if array.dtype != object:
        data = np.ascontiguousarray(array).tobytes()
        return data, _core.crc32c(data)
    texts = [text if isinstance(text, bytes) else str(text).encode() for text in array.reshape(-1).tolist()]
    lengths = b"".join(encode_varint(len(text)) for text in texts)
    crc = _core.crc32c(b"".join(struct.pack("<I", len(text)) for text in texts))
    rest = masked(crc) + b"".join(texts)
    return lengths + rest, _core.crc32c(rest, crc)


def _table(entries: dict[bytes, bytes]) -> bytes:
    data = _block(entries)
    nothing = _block({})
    first = encode_varint(0) + encode_varint(len(data) - 5)
    listing = _block({max(entries): first})
    footer = (
        encode_varint(len(data))
        + encode_varint(len(nothing) - 5)
        + encode_varint(len(data) + len(nothing))
        + encode_varint(len(listing) - 5)
    )
    return data + nothing + listing + footer.ljust(40, b"\0") + _MAGIC


def _block(entries: dict[bytes, bytes]) -> bytes:
    """A block with its checksum; keys are written whole."""
    content, restarts = bytearray(), []
    for number, key in enumerate(sorted(entries)):
        if number % _RESTART_EVERY == 0:
            restarts.append(len(content))
        content += encode_varint(0) + encode_varint(len(key)) + encode_varint(len(entries[key])) + key + entries[key]
    for place in restarts or [0]:
        content += struct.pack("<I", place)
    content += struct.pack("<I", len(restarts) or 1)
    content += b"\0"  # not compressed
    return bytes(content + masked(_core.crc32c(bytes(content))))


# ---- reading


class Bundle:
    """A checkpoint that exists: names, shapes and dtypes at once, values when they are asked for."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        if not bundle_exists(prefix):
            raise NotFoundError.of(
                "Unsuccessful TensorSliceReader constructor: Failed to find any matching files for " + prefix,
            )
        with open(f"{prefix}.index", "rb") as file:
            entries = _read_table(file.read(), prefix)
        shards = dict(fields(entries.pop(b"", b""))).get(1, 1)
        self._files = [f"{prefix}.data-{i:05d}-of-{shards:05d}" for i in range(shards)]
        self._entry_by_name = {key.decode(): _Entry(value) for key, value in entries.items()}

    @property
    def names(self) -> list[str]:
        """The names of the values, in order."""
        return sorted(self._entry_by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._entry_by_name

    def shape(self, name: str) -> list[int]:
        """The shape of a value."""
        return list(self._entry(name).shape)

    def dtype(self, name: str) -> DType:
        """The dtype of a value."""
        return self._entry(name).dtype

    def _entry(self, name: str) -> _Entry:
        if name not in self._entry_by_name:
            raise NotFoundError.of(f"Key {name} not found in checkpoint {self.prefix}")
        return self._entry_by_name[name]

    def value(self, name: str) -> Any:
        """A value, as an array; DataLossError if the file is damaged."""
        entry = self._entry(name)
        with open(self._files[entry.shard], "rb") as file:
            file.seek(entry.offset)
            data = file.read(entry.size)
        if len(data) != entry.size:
            raise DataLossError.of(f"{self._files[entry.shard]}: the end of the file is missing")
        if entry.dtype.name == "string":
            return self._texts(name, data, entry)
        if masked(_core.crc32c(data)) != entry.checksum:
            raise DataLossError.of(f"Checksum does not match: {name} in {self._files[entry.shard]}")
        return np.frombuffer(data, entry.dtype.as_numpy_dtype).reshape(entry.shape).copy()

    def _texts(self, name: str, data: bytes, entry: _Entry) -> Any:
        lengths, place = [], 0
        for _ in range(math.prod(entry.shape)):
            length, place = decode_varint(data, place)
            lengths.append(length)
        place += 4
        texts = []
        for length in lengths:
            texts.append(data[place : place + length])
            place += length
        if place != len(data):
            raise DataLossError.of(f"{name} in {self._files[entry.shard]}: the lengths of texts do not fit")
        array = np.empty(len(texts), object)
        array[:] = texts
        return array.reshape(entry.shape) if entry.shape else texts[0]


class _Entry:
    """Where one value is."""

    def __init__(self, message: bytes) -> None:
        self.dtype, self.shape, self.shard, self.offset, self.size, self.checksum = dtype_by_enum[1], (), 0, 0, 0, b""
        for field, value in fields(message):
            if field == 1:
                self.dtype = dtype_by_enum[value]
            elif field == 2:
                self.shape = tuple(dict(fields(dim)).get(1, 0) for number, dim in fields(value) if number == 2)
            elif field == 3:
                self.shard = value
            elif field == 4:
                self.offset = value
            elif field == 5:
                self.size = value
            elif field == 6:
                self.checksum = struct.pack("<I", value)


def _read_table(data: bytes, prefix: str) -> dict[bytes, bytes]:
    if len(data) < 48 or data[-8:] != _MAGIC:
        raise DataLossError.of(f"{prefix}.index: not an sstable (bad magic number)")
    place = len(data) - 48
    for _ in range(2):
        _, place = decode_varint(data, place)
    offset, place = decode_varint(data, place)
    size, _ = decode_varint(data, place)
    entries: dict[bytes, bytes] = {}
    for handle in _read_block(data, offset, size, prefix).values():
        start, after = decode_varint(handle, 0)
        length, _ = decode_varint(handle, after)
        entries.update(_read_block(data, start, length, prefix))
    return entries


def _read_block(data: bytes, offset: int, size: int, prefix: str) -> dict[bytes, bytes]:
    block = data[offset : offset + size + 1]
    if (
        len(block) != size + 1
        or block[-1]
        or masked(_core.crc32c(block)) != data[offset + size + 1 : offset + size + 5]
    ):
        raise DataLossError.of(f"{prefix}.index: a block is damaged or compressed")
    (restarts,) = struct.unpack("<I", block[size - 4 : size])
    end, place, key = size - 4 - 4 * restarts, 0, b""
    found = {}
    while place < end:
        shared, place = decode_varint(block, place)
        own, place = decode_varint(block, place)
        length, place = decode_varint(block, place)
        key = key[:shared] + block[place : place + own]
        found[key] = block[place + own : place + own + length]
        place += own + length
    return found
