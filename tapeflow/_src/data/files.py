"""Files that datasets read and write: lines, records, and the elements of a dataset that is saved."""

from __future__ import annotations

import glob
import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from tapeflow._src import _core
from tapeflow._src.data.pipes.pipe import Iteration, Pipe, as_count
from tapeflow._src.data.pipes.structure import Leaves, as_leaf
from tapeflow._src.io.records import records_in
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import string
from tapeflow._src.types.errors import DataLossError, InvalidArgumentError, NotFoundError
from tapeflow._src.types.tensor_spec import TensorSpec


def texts(value: Any) -> list[str]:
    """Names given as one text, several, or a tensor of them."""
    if _core.is_tensor(value):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        value = value.reshape(-1).tolist()
    many = value if isinstance(value, list | tuple) else [value]
    return [os.fsdecode(one.numpy() if _core.is_tensor(one) else one) for one in many]


def matching_files(pattern: Any) -> list[str]:
    """The names of the files that match a pattern or one of several, in order."""
    patterns = texts(pattern)
    found = sorted({name for one in patterns for name in glob.glob(one)})
    if not found:
        raise InvalidArgumentError.of(f"No files matched pattern: {', '.join(patterns)}")
    return found


@contextmanager
def opened_file(name: str, compression: str | None) -> Iterator[BinaryIO]:
    """The file, unpacked if it is packed; what is no packed file gives DataLossError."""
    try:
        with _opened(name, compression) as file:
            yield file
    except FileNotFoundError:
        raise NotFoundError.of(f"{name}; No such file or directory") from None
    except (zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise DataLossError.of(f"{name}; the compressed file ({compression}) is damaged: {error}") from None


def _opened(name: str, compression: str | None) -> BinaryIO:
    if compression == "GZIP":
        return gzip.open(name, "rb")  # type: ignore[return-value]
    if compression == "ZLIB":
        with open(name, "rb") as packed:
            return io.BytesIO(zlib.decompress(packed.read()))
    return open(name, "rb")


@contextmanager
def packed_file(name: Any, compression: str | None) -> Iterator[Any]:
    """A file to be written, packed at its end if asked for."""
    content = io.BytesIO()
    yield content
    data = content.getvalue()
    packed = gzip.compress(data) if compression == "GZIP" else zlib.compress(data) if compression == "ZLIB" else data
    with open(texts(name)[0], "wb") as file:
        file.write(packed)


class FromFiles(Pipe):
    """Byte strings that `read` finds in files, one file after the other."""

    def __init__(
        self, filenames: Any, compression: Any, read: Callable[[BinaryIO, Iteration], Iterator[bytes]], name: str
    ) -> None:
        super().__init__(TensorSpec([], string))
        self.name = name
        self._files = getattr(filenames, "_pipe", None)
        if isinstance(self._files, Pipe):
            self.inputs = (self._files,)
            self._check_names(self._files.spec)
        else:
            given = nest.map_structure(lambda x: os.fspath(x) if isinstance(x, os.PathLike) else x, filenames)
            is_empty = isinstance(given, list | tuple) and not given  # no name tells the dtype
            self._names = convert_to_tensor(given, string) if is_empty else as_leaf(given)
            if self._names.dtype.name != "string":
                raise TypeError(
                    "The `filenames` argument must contain `tf.string` elements. Got "
                    f"`tf.{self._names.dtype.name}` elements."
                )
            self.symbols = [self._names] if _core.is_symbolic(self._names) else []
        self._compression, self._read = compression or "", read
        if self._compression not in ("", "GZIP", "ZLIB"):
            raise InvalidArgumentError.of(f"Unsupported compression_type: {compression}")

    @staticmethod
    def _check_names(spec: Any) -> None:
        if not isinstance(spec, TensorSpec):
            raise TypeError(f"The `filenames` argument must be a dataset of strings; got elements {spec}")
        if spec.dtype != string:
            raise TypeError(
                "The `filenames` argument must contain `tf.string` elements. Got a dataset of "
                f"`tf.{spec.dtype.name}` elements."
            )
        if spec.shape.rank not in (0, None):
            raise TypeError(
                "The `filenames` argument must contain `tf.string` elements of shape [] (i.e. scalars). Got a dataset "
                f"of elements of shape {spec.shape}."
            )

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        if isinstance(self._files, Pipe):
            names: Iterator[str] = (name for (one,) in self._files.begin(iteration) for name in texts(one))
        else:
            names = iter(texts(iteration.value(self._names)))
        return _Records(names, lambda name: self._of_file(name, iteration))

    def _of_file(self, name: str, iteration: Iteration) -> Iterator[Leaves]:
        with opened_file(name, self._compression) as file:
            for record in self._read(file, iteration):
                yield (convert_to_tensor(record, string),)


class _Records:
    """The records of one file after the other. After an error it goes on with the next file."""

    def __init__(self, names: Iterator[str], of_file: Callable[[str], Iterator[Leaves]]) -> None:
        self._names, self._of_file = names, of_file
        self._open: Iterator[Leaves] = iter(())

    def __iter__(self) -> _Records:
        return self

    def __next__(self) -> Leaves:
        while True:
            record = next(self._open, None)  # nothing more once it has raised
            if record is not None:
                return record
            self._open = self._of_file(next(self._names))


def text_lines(filenames: Any, compression: Any) -> Pipe:
    """The lines of text files."""

    def read(file: BinaryIO, iteration: Iteration) -> Iterator[bytes]:
        for line in file:
            yield line.removesuffix(b"\n").removesuffix(b"\r")

    return FromFiles(filenames, compression, read, "TextLineDatasetV2")


def records(filenames: Any, compression: Any) -> Pipe:
    """The records of TFRecord files."""

    def read(file: BinaryIO, iteration: Iteration) -> Iterator[bytes]:
        name = getattr(file, "name", None)
        return records_in(file.read, "" if name is None else f" in {name}")

    return FromFiles(filenames, compression, read, "TFRecordDatasetV2")


def fixed_records(filenames: Any, length: Any, header: Any, footer: Any, compression: Any) -> Pipe:
    """The records of files in which all have one length."""
    sizes = [as_count(x or 0, "record_bytes") for x in (length, header, footer)]

    def read(file: BinaryIO, iteration: Iteration) -> Iterator[bytes]:
        size, before, after = (iteration.number(x) for x in sizes)
        data = file.read()
        body = len(data) - before - after
        if body < 0 or body % size:
            raise InvalidArgumentError.of(
                f"Excluding the header ({before} bytes) and footer ({after} bytes), input file "
                f'"{getattr(file, "name", "")}" has body length {body} bytes, which is not an exact multiple of the '
                f"record length ({size} bytes).",
            )
        for start in range(before, before + body, size):
            yield data[start : start + size]

    return FromFiles(filenames, compression, read, "FixedLengthRecordDatasetV2")
