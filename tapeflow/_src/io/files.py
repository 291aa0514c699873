"""Whole files as strings: `tf.io.read_file`, `write_file`, `matching_files`, `decode_compressed`."""

from __future__ import annotations

import os
import zlib
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.io.atomic_files import atomic_file
from tapeflow._src.io.gfile import glob
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call, host_effect
from tapeflow._src.types.errors import DataLossError, InvalidArgumentError
from tapeflow._src.types.file_errors import file_errors, file_name


def _strings(value: Any) -> Any:
    return convert_to_tensor(value, None if _core.is_tensor(value) else "string")


def _read(filename: Any) -> list[Any]:
    name = file_name(filename)
    with file_errors(name), open(name, "rb") as file:
        return [convert_to_tensor(file.read())]


@public("io.read_file", "compat.v1.io.read_file", "compat.v1.read_file")
def read_file(filename: Any, name: str | None = None) -> Any:
    """The bytes of a file, as a string.

    Args:
        filename: The path, a string or a string tensor.
        name: A name for the operation in graphs.

    Returns:
        A tensor: a string scalar with the bytes of the file.

    Gradient:
        None.

    >>> tf.io.write_file("greeting.txt", "hello")
    >>> tf.io.read_file("greeting.txt")
    <tf.Tensor: shape=(), dtype=string, numpy=b'hello'>
    """
    return host_call(_read, [_strings(filename)], [("string", [])], reads=True)[0]


def _write(filename: Any, contents: Any) -> None:
    name = file_name(filename)
    with file_errors(name):
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        path = os.path.realpath(name)
        whole = os.path.isfile(path) or not os.path.exists(path)  # others, such as pipes, stay what they are
        with atomic_file(path, durable=False) if whole else open(path, "wb") as file:
            file.write(contents.numpy())


@public("io.write_file", "compat.v1.io.write_file", "compat.v1.write_file")
def write_file(filename: Any, contents: Any, name: str | None = None) -> Any:
    """Makes a file of a string; folders that are missing are made too.

    >>> tf.io.write_file("notes/first.txt", "a")
    >>> tf.io.gfile.exists("notes/first.txt")
    True
    """
    return host_effect(_write, [_strings(filename), _strings(contents)])


def _match(pattern: Any) -> list[Any]:
    patterns = [p.decode() for p in np.atleast_1d(pattern.numpy()).reshape(-1)]
    return [convert_to_tensor(np.asarray(sorted(glob(patterns)), dtype=object).reshape(-1), "string")]


@public("io.matching_files", "compat.v1.io.matching_files", "compat.v1.matching_files")
def matching_files(pattern: Any, name: str | None = None) -> Any:
    """The sorted names of the files that a pattern, or any of several, fits.

    >>> tf.io.write_file("a.txt", "")
    >>> tf.io.matching_files("*.txt")
    <tf.Tensor: shape=(1,), dtype=string, numpy=array([b'a.txt'], dtype=object)>
    """
    return host_call(_match, [_strings(pattern)], [("string", [None])], reads=True)[0]


_WINDOW = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS | 16}


@public("io.decode_compressed", "compat.v1.io.decode_compressed", "compat.v1.decode_compressed")
def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> Any:
    """Strings that were compressed with "ZLIB" or "GZIP", as they were before.

    >>> import zlib
    >>> tf.io.decode_compressed([zlib.compress(b"abc")], "ZLIB")
    <tf.Tensor: shape=(1,), dtype=string, numpy=array([b'abc'], dtype=object)>
    """
    if compression_type not in ("", "NONE", *_WINDOW):
        raise InvalidArgumentError.of(
            f"decode_compressed: Only ZLIB, GZIP or NONE are supported compressions; got {compression_type!r}",
        )
    tensor = _strings(bytes)
    if compression_type not in _WINDOW:
        return tensor

    def run(tensor: Any) -> list[Any]:
        values = np.asarray(tensor.numpy(), dtype=object).reshape(-1)
        try:
            found = [zlib.decompress(value, _WINDOW[compression_type]) for value in values]
        except zlib.error as error:
            raise DataLossError.of(f"decode_compressed: inflate() failed: {error}") from None
        return [convert_to_tensor(np.asarray(found, dtype=object).reshape(tensor.shape.as_list()), "string")]

    return host_call(run, [tensor], [("string", tensor.shape)])[0]
