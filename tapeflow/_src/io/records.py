"""Files of records: a length and its checksum, the bytes and theirs, one record after the other."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from tapeflow._src import _core
from tapeflow._src.namespace import public
from tapeflow._src.types.errors import DataLossError, FailedPreconditionError
from tapeflow._src.types.file_errors import file_errors, file_name

_BLOCK = 1 << 20
_MASK_DELTA = 0xA282EAD8


def masked(crc: int) -> bytes:
    """A checksum as it stands in files: turned by 15 bits and shifted, so that it is not one of itself."""
    return struct.pack("<I", ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF)


def framed(record: bytes) -> bytes:
    """A record as it stands in a file."""
    length = struct.pack("<Q", len(record))
    return length + masked(_core.crc32c(length)) + record + masked(_core.crc32c(record))


@public("compat.v1.io.TFRecordCompressionType", "compat.v1.python_io.TFRecordCompressionType")
class TFRecordCompressionType:
    """The ways of compression by number, as the options and writers of TensorFlow 1 take them.

    >>> types = tf.compat.v1.io.TFRecordCompressionType
    >>> tf.io.TFRecordOptions(types.ZLIB).compression_type
    'ZLIB'
    """

    NONE = 0
    ZLIB = 1
    GZIP = 2


@public("io.TFRecordOptions", "compat.v1.io.TFRecordOptions", "compat.v1.python_io.TFRecordOptions")
class TFRecordOptions:
    """How a file of records is compressed: "ZLIB", "GZIP", or "" for not at all.

    >>> tf.io.TFRecordOptions(compression_type="GZIP").compression_type
    'GZIP'
    """

    def __init__(
        self,
        compression_type: Any = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        self.compression_type = _compression(compression_type)
        self.flush_mode, self.input_buffer_size, self.output_buffer_size = (
            flush_mode,
            input_buffer_size,
            output_buffer_size,
        )
        self.window_bits, self.compression_level, self.compression_method = (
            window_bits,
            compression_level,
            compression_method,
        )
        self.mem_level, self.compression_strategy = mem_level, compression_strategy


_COMPRESSION_BY_NUMBER: dict[int | None, str] = {
    None: "",
    TFRecordCompressionType.NONE: "",
    TFRecordCompressionType.ZLIB: "ZLIB",
    TFRecordCompressionType.GZIP: "GZIP",
}


def _compression(given: Any) -> str:
    kind = _COMPRESSION_BY_NUMBER.get(given, given) if not isinstance(given, TFRecordOptions) else None
    if isinstance(given, TFRecordOptions):
        kind = given.compression_type
    if kind not in ("", "NONE", "ZLIB", "GZIP"):
        raise ValueError(f'Not a valid compression_type: "{given}"; it must be "", "ZLIB" or "GZIP"')
    return "" if kind == "NONE" else kind


@public("io.TFRecordWriter", "compat.v1.io.TFRecordWriter", "compat.v1.python_io.TFRecordWriter")
class TFRecordWriter:
    """Writes records to a file.

    >>> with tf.io.TFRecordWriter("data.tfrecord") as writer:
    ...     writer.write(b"first")
    >>> tf.io.gfile.stat("data.tfrecord").length
    21
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        self._compression = _compression(options)
        level = getattr(options, "compression_level", None)
        bits = zlib.MAX_WBITS | (16 if self._compression == "GZIP" else 0)
        level = zlib.Z_DEFAULT_COMPRESSION if level is None else level
        self._compressor = zlib.compressobj(level, zlib.DEFLATED, bits) if self._compression else None
        with file_errors(path):
            self._file: Any = open(file_name(path), "wb")  # noqa: SIM115

    def write(self, record: Any) -> None:
        """Adds one record."""
        if self._file is None:
            raise FailedPreconditionError.of("Writer is closed.")
        data = framed(record.encode() if isinstance(record, str) else bytes(record))
        self._file.write(data if self._compressor is None else self._compressor.compress(data))

    def flush(self) -> None:
        """Writes buffered data."""
        if self._file is None:
            raise FailedPreconditionError.of("Writer is closed.")
        if self._compressor is not None:
            self._file.write(self._compressor.flush(zlib.Z_SYNC_FLUSH))
        self._file.flush()

    def close(self) -> None:
        """Ends the file."""
        if self._file is not None:
            if self._compressor is not None:
                self._file.write(self._compressor.flush())
            self._file.close()
            self._file = None

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()


class _Reader:
    """The bytes of a file, decompressed, in the sizes asked for."""

    def __init__(self, file: Any, compression: str) -> None:
        bits = zlib.MAX_WBITS | (16 if compression == "GZIP" else 0)
        self.file, self.inflater = file, zlib.decompressobj(bits) if compression else None
        self.held = b""

    def take(self, size: int) -> bytes:
        if self.inflater is None:
            return bytes(self.file.read(size))
        while len(self.held) < size and not self.inflater.eof:
            block = self.file.read(_BLOCK)
            if not block:
                break
            self.held += self.inflater.decompress(block)
        found, self.held = self.held[:size], self.held[size:]
        return found


def read_records(path: Any, compression: Any = None) -> Iterator[bytes]:
    """The records of a file; DataLossError where a checksum is wrong or the end is missing."""
    name = file_name(path)
    with file_errors(name), open(name, "rb") as file:
        try:
            yield from records_in(_Reader(file, _compression(compression)).take, f" in {name}")
        except zlib.error as error:
            raise DataLossError.of(f"{name}; the compressed file is damaged: {error}") from None


_PIECE = 1 << 26


def _read_at_most(read: Callable[[int], bytes], size: int) -> bytes:
    """So many bytes, or those that are left; a size that a damaged file claims takes no memory before they are seen."""
    if size <= _PIECE:
        return read(size)
    pieces = []
    while size > 0 and (piece := read(min(size, _PIECE))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def records_in(read: Callable[[int], bytes], where: str = "") -> Iterator[bytes]:
    """The records among the bytes that `read` gives, in the sizes asked for."""
    place = 0
    while head := read(12):
        record, length = b"", 0
        if len(head) == 12:
            (length,) = struct.unpack("<Q", head[:8])
            if head[8:] != masked(_core.crc32c(head[:8])):
                raise DataLossError.of(f"corrupted record at {place}{where}")
            record = _read_at_most(read, length + 4)
        if len(head) < 12 or len(record) < length + 4:
            raise DataLossError.of(f"truncated record at {place}{where}")
        if record[length:] != masked(_core.crc32c(record[:length])):
            raise DataLossError.of(f"corrupted record at {place}{where}")
        place += 16 + length
        yield record[:length]


@public("compat.v1.io.tf_record_iterator", "compat.v1.python_io.tf_record_iterator")
def tf_record_iterator(path: Any, options: Any = None) -> Iterator[bytes]:
    """The records of a file, one after the other.

    >>> with tf.io.TFRecordWriter("data.tfrecord") as writer:
    ...     writer.write(b"first")
    >>> list(tf.compat.v1.io.tf_record_iterator("data.tfrecord"))
    [b'first']
    """
    return read_records(path, options)
