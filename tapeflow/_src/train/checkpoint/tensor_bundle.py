"""TensorFlow's checkpoint files: `<prefix>.index`, a sorted table of names, and `<prefix>.data-00000-of-00001`.

The table is one of LevelDB: blocks of entries, a block that lists them, and a footer that says where that one is.
"""

from __future__ import annotations

import glob
import math
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.io.atomic_files import AtomicFiles
from tapeflow._src.io.open_files import OpenFile, is_in_place
from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.wire import WireError, decode_varint, encode_varint
from tapeflow._src.io.records import masked
from tapeflow._src.train.checkpoint.sorted_table import read_table
from tapeflow._src.types.dtypes import DType, as_dtype
from tapeflow._src.types.errors import DataLossError, NotFoundError
from tapeflow._src.types.file_errors import file_errors

_MAGIC = struct.pack("<Q", 0xDB4775248B80FB57)
_RESTART_EVERY = 16
_MOST_SHARDS = 100_000  # their names have five digits
_MOST_OPEN = 16  # data files of one checkpoint that stay open
_TRIES = 5  # to open files of one checkpoint while another process replaces it


def bundle_exists(prefix: str) -> bool:
    """Whether there is a checkpoint at this path."""
    return os.path.exists(f"{prefix}.index")


def delete_bundle(prefix: str) -> None:
    """Deletes the files of a checkpoint."""
    for name in [f"{prefix}.index", *_data_files(prefix)]:
        if os.path.exists(name):
            os.remove(name)


# ---- writing


def _data_files(prefix: str) -> list[str]:
    return glob.glob(f"{glob.escape(prefix)}.data-?????-of-?????")


class PartsOfWhole:
    """A value that is written in parts, each with where it begins on every axis."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.shape = list(shape)
        self.parts: list[tuple[list[int], Any]] = []

    def add(self, offsets: Sequence[int], value: Any) -> None:
        """Adds a part."""
        self.parts.append((list(offsets), value))


def write_bundle(prefix: str, array_by_name: Mapping[str, Any]) -> None:
    """Writes arrays, or what functions give, under names; nobody ever sees half a checkpoint."""
    with AtomicFiles() as files:
        add_bundle(files, prefix, array_by_name)


def add_bundle(files: AtomicFiles, prefix: str, array_by_name: Mapping[str, Any]) -> bytes:
    """Writes the same as some of several files that belong together; gives the content of the index.

    The index says which files hold the data, so its renaming is the moment when the new checkpoint takes the place of
    an old one: the data never takes the name of a file that the old index refers to.
    """
    outdated = _data_files(prefix)
    shards = 2 if f"{prefix}.data-00000-of-00001" in outdated and bundle_exists(prefix) else 1
    path = f"{prefix}.data-00000-of-{shards:05d}"
    header = messages.BundleHeaderProto(num_shards=shards, version=messages.VersionDef(producer=1))
    entries = {b"": header.SerializeToString()}
    for name in outdated:
        if name != path:
            files.remove_afterwards(name)
    with files.open(path) as file:
        offset = 0
        for name in sorted(array_by_name, key=str.encode):
            for key, array, entry in _arrays_of(name, array_by_name[name]):
                if entry is None:
                    data, crc = _encoded(array)
                    file.write(data)
                    entry = _entry(array, offset, len(data), crc)
                    offset += len(data)
                entries[key] = entry.SerializeToString()
    index = table_bytes(entries)
    files.write(f"{prefix}.index", index)
    return index


def _arrays_of(name: str, value: Any) -> Iterator[tuple[bytes, np.ndarray, Any]]:
    """The keys of a value and the arrays below them; of a value in parts also its own entry, which lists the parts."""
    if not isinstance(value, PartsOfWhole):
        yield name.encode(), _storable(value() if callable(value) else value), None
        return
    parts = [(offsets, _storable(part)) for offsets, part in value.parts]
    if len(parts) == 1 and list(parts[0][1].shape) == value.shape:  # one that is the whole is no part
        yield name.encode(), parts[0][1], None
        return
    extents = [list(zip(offsets, array.shape)) for offsets, array in parts]
    extent = messages.TensorSliceProto.Extent
    slices = [
        messages.TensorSliceProto(extent=[extent(start=start, length=size) for start, size in pairs])
        for pairs in extents
    ]
    whole = _entry(parts[0][1], 0, 0, None)
    whole.shape.CopyFrom(_shape_message(value.shape))
    whole.slices.extend(slices)
    yield name.encode(), parts[0][1], whole
    for pairs, (_, array) in zip(extents, parts):
        yield slice_key(name, pairs), array, None


def _storable(value: Any) -> np.ndarray:
    array = np.asarray(value)
    return array.astype(object) if array.dtype.kind in "SU" else array


def _shape_message(shape: Sequence[int]) -> Any:
    dim = messages.TensorShapeProto.Dim
    return messages.TensorShapeProto(dim=[dim(size=size) for size in shape])


def _entry(array: np.ndarray, offset: int, size: int, crc: int | None) -> Any:
    dtype = as_dtype("string" if array.dtype == object else array.dtype)
    return messages.BundleEntryProto(
        dtype=dtype.as_datatype_enum,
        shape=_shape_message(array.shape),
        offset=offset,
        size=size,
        crc32c=0 if crc is None else int.from_bytes(masked(crc), "little"),
    )


def _encoded(array: np.ndarray) -> tuple[bytes | memoryview, int]:
    if array.dtype != object:
        data = np.ascontiguousarray(array).tobytes()
        return data, _core.crc32c(data)
    texts = [text if isinstance(text, bytes) else str(text).encode() for text in array.reshape(-1).tolist()]
    lengths = b"".join(encode_varint(len(text)) for text in texts)
    crc = _core.crc32c(_packed_lengths([len(text) for text in texts]))
    rest = masked(crc) + b"".join(texts)
    return lengths + rest, _core.crc32c(rest, crc)


def table_bytes(entries: dict[bytes, bytes]) -> bytes:
    """A sorted table of these entries, as a file."""
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
    """The values of a checkpoint, by name. Sizes are checked against the files before anything is read.

    The files are opened together and stay open, so that all values are of one checkpoint even if another process
    replaces or deletes its files meanwhile.
    """

    def __init__(self, prefix: Any) -> None:
        self.prefix = os.fspath(prefix)
        self._file_by_path: dict[str, OpenFile] = {}
        for _ in range(_TRIES):
            with self._opened_index() as index:
                self._parse(index.read())
                self._open_data()
                if is_in_place(index, f"{self.prefix}.index"):
                    break

    def _opened_index(self) -> Any:
        try:
            return open(f"{self.prefix}.index", "rb")
        except FileNotFoundError:
            if os.path.isfile(self.prefix):
                raise DataLossError.of(
                    f"Unable to open table file {self.prefix}: Data loss: not an sstable (bad magic number): perhaps "
                    "your file is in a different file format and you need to use a different restore operator?"
                ) from None
            raise NotFoundError.of(
                f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {self.prefix}"
            ) from None

    def _parse(self, content: bytes) -> None:
        index = f"{self.prefix}.index"
        entries = read_table(content, index)
        header = self._parsed(messages.BundleHeaderProto, entries.pop(b"", b""), index)
        self._shards = header.num_shards or 1
        if not 0 < self._shards < _MOST_SHARDS or header.endianness:
            raise DataLossError.of(
                f"{index}: {self._shards} shards and byte order {header.endianness} are not those of a checkpoint"
            )
        parsed = {key: self._parsed(messages.BundleEntryProto, value, index) for key, value in entries.items()}
        self._slice_by_key = {key: entry for key, entry in parsed.items() if key.startswith(_SLICE)}
        try:
            self._entry_by_name = {
                key.decode(): entry for key, entry in parsed.items() if key not in self._slice_by_key
            }
        except UnicodeDecodeError:
            raise DataLossError.of(f"{index}: a name is no text") from None

    def _open_data(self) -> None:
        """Opens the data files of the index; one that is missing is an error when a value of it is asked for."""
        self._file_by_path.clear()
        for shard in range(self._shards if self._shards <= _MOST_OPEN else 0):
            with suppress(OSError):
                self._file_by_path[self._data_path(shard)] = OpenFile(self._data_path(shard))

    def _data_path(self, shard: int) -> str:
        return f"{self.prefix}.data-{shard:05d}-of-{self._shards:05d}"

    def close(self) -> None:
        """Closes the files when no value is expected to be asked for any more; one that is opens its file again."""
        self._file_by_path.clear()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_file_by_path": {}}

    @staticmethod
    def _parsed(kind: Any, data: bytes, path: str) -> Any:
        try:
            return kind.FromString(data)
        except messages.decode_errors() as error:
            raise DataLossError.of(f"{path}: {error}") from None

    @property
    def names(self) -> list[str]:
        """The names of the values, in order."""
        return sorted(self._entry_by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._entry_by_name

    def shape(self, name: str) -> list[int]:
        """The shape of a value."""
        dims = [dim.size for dim in self._entry(name).shape.dim]
        if any(size < 0 for size in dims):
            raise DataLossError.of(f"{self.prefix}.index: {name} has a negative size")
        return dims

    def dtype(self, name: str) -> DType:
        """The dtype of a value."""
        try:
            return as_dtype(self._entry(name).dtype)
        except TypeError:
            raise DataLossError.of(f"{self.prefix}.index: {name} has an unknown dtype") from None

    def _entry(self, name: str) -> Any:
        if name not in self._entry_by_name:
            raise NotFoundError.of(f"Key {name} not found in checkpoint {self.prefix}")
        return self._entry_by_name[name]

    def _data(self, name: str, entry: Any) -> tuple[Any, str]:
        """The bytes of a value as an array, and the file that holds them."""
        if not 0 <= entry.shard_id < self._shards:
            raise DataLossError.of(f"{self.prefix}.index: {name} is in shard {entry.shard_id} of {self._shards}")
        path = self._data_path(entry.shard_id)
        with file_errors(path):
            file = self._file_by_path.get(path) or OpenFile(path)
            held = file.size()
            if not 0 <= entry.offset <= entry.offset + entry.size <= held or entry.size < 0:
                raise DataLossError.of(f"{path}: the end of the file is missing: {name} ends after {held} bytes")
            return file.read(entry.offset, entry.size), path

    def value(self, name: str) -> Any:
        """A value, as an array; DataLossError if the file is damaged."""
        entry = self._entry(name)
        if entry.slices:
            return self._joined_slices(name, entry)
        return self._value(name, entry, self.dtype(name), self.shape(name))

    def _joined_slices(self, name: str, entry: Any) -> Any:
        """The value of a partitioned variable, each part of which has an entry of its own."""
        dtype, shape = self.dtype(name), self.shape(name)
        index, parts = f"{self.prefix}.index", []
        for part in entry.slices:
            pairs = [(e.start, e.length if e.WhichOneof("has_length_hack") else -1) for e in part.extent]
            key = slice_key(name, pairs)
            if key not in self._slice_by_key or len(pairs) != len(shape):
                raise DataLossError.of(f"{index}: a part of {name} is missing")
            ends = [(start, size if n < 0 else start + n) for (start, n), size in zip(pairs, shape)]
            if any(not 0 <= start <= end <= size for (start, end), size in zip(ends, shape)):
                raise DataLossError.of(f"{index}: a part of {name} lies outside of its shape {shape}")
            sizes = [end - start for start, end in ends]
            value = self._value(name, self._slice_by_key[key], dtype, sizes)
            parts.append((tuple(slice(*pair) for pair in ends), value))
        if sum(value.size for _, value in parts) != math.prod(shape):
            raise DataLossError.of(f"{index}: the parts of {name} do not make up its shape {shape}")
        whole = np.zeros(shape, object if dtype.name == "string" else dtype.as_numpy_dtype)
        for place, value in parts:
            whole[place] = value
        return whole

    def _value(self, name: str, entry: Any, dtype: DType, shape: list[int]) -> Any:
        if dtype.name != "string":
            try:
                item = np.dtype(dtype.as_numpy_dtype).itemsize
            except (KeyError, TypeError):
                raise DataLossError.of(f"{self.prefix}.index: {name} has dtype {dtype.name}") from None
            if math.prod(shape) * item != entry.size:
                raise DataLossError.of(f"{self.prefix}.index: {name} of shape {shape} has {entry.size} bytes")
        data, path = self._data(name, entry)
        if dtype.name == "string":
            return self._texts(name, data.tobytes(), entry, shape, path)
        if int.from_bytes(masked(_core.crc32c(data)), "little") != entry.crc32c:
            raise DataLossError.of(f"Checksum does not match: {name} in {path}")
        return data.view(dtype.as_numpy_dtype).reshape(shape)

    def _texts(self, name: str, data: bytes, entry: Any, shape: list[int], path: str) -> Any:
        """Lengths, their checksum, and the texts; the checksum of the entry is of all of it."""
        count = math.prod(shape)
        if count > len(data):
            raise DataLossError.of(f"{path}: {name} of shape {shape} has {len(data)} bytes")
        lengths, place = [], 0
        try:
            for _ in range(count):
                length, place = decode_varint(data, place)
                lengths.append(length)
        except WireError:
            raise DataLossError.of(f"{path}: the lengths of {name} have no end") from None
        if place + 4 + sum(lengths) != len(data):
            raise DataLossError.of(f"{path}: {name}: the lengths of texts do not fit")
        crc = _core.crc32c(_packed_lengths(lengths))
        if masked(crc) != data[place : place + 4]:
            raise DataLossError.of(f"Checksum does not match: the lengths of {name} in {path}")
        if int.from_bytes(masked(_core.crc32c(data[place:], crc)), "little") != entry.crc32c:
            raise DataLossError.of(f"Checksum does not match: {name} in {path}")
        place += 4
        array = np.empty(count, object)
        for number, length in enumerate(lengths):
            array[number] = data[place : place + length]
            place += length
        return array.reshape(shape)


_SLICE = b"\0"  # how the keys of slices begin


def slice_key(name: str, extents: list[tuple[int, int]]) -> bytes:
    """The key of a part of a variable: its name and its extents, in an order-preserving code."""
    text = name.encode().replace(b"\xff", b"\xff\0").replace(b"\0", b"\0\xff")
    rank = len(extents)
    numbers = b"".join(_ordered(n) for extent in extents for n in extent)
    return _SLICE + text + b"\0\x01" + (bytes([1, rank]) if rank else b"\0") + numbers


def _ordered(number: int) -> bytes:
    """An integer whose code has the order of numbers: leading ones count the bytes, the rest is big-endian."""
    count = (number if number >= 0 else ~number).bit_length() // 7 + 1
    header = ((1 << count) - 1) << (8 * count - count)
    return ((number & ((1 << (8 * count)) - 1)) ^ header).to_bytes(count, "big")


def _packed_lengths(lengths: list[int]) -> bytes:
    """Lengths as their checksum takes them: four bytes each, eight for those that need them."""
    return b"".join(struct.pack("<I" if n < 1 << 32 else "<Q", n) for n in lengths)
