"""`tf.io.gfile`: files and folders of this machine under TensorFlow's names, with its errors."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

from tapeflow._src.namespace import public
from tapeflow._src.types.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
)
from tapeflow._src.types.file_errors import file_errors, file_name


@public("io.gfile.GFile", "compat.v1.gfile.GFile", "compat.v1.gfile.Open", "compat.v1.io.gfile.GFile")
class GFile:
    """A file that is open for reading ("r", "rb"), writing ("w", "wb") or adding ("a", "ab").

    >>> with tf.io.gfile.GFile("note.txt", "w") as file:
    ...     file.write("two\\nlines")
    >>> [line for line in tf.io.gfile.GFile("note.txt")]
    ['two\\n', 'lines']
    """

    _file: Any = None

    def __init__(self, name: Any, mode: str = "r") -> None:
        if mode not in ("r", "w", "a", "r+", "w+", "a+", "rb", "wb", "ab", "rb+", "wb+", "ab+", "r+b", "w+b", "a+b"):
            raise InvalidArgumentError.of(
                f"GFile: mode is not 'r' or 'w' or 'a' or 'r+' or 'w+' or 'a+', with 'b' where wanted; got {mode!r}"
            )
        self._name, self._mode = name, mode
        self._binary = "b" in mode

    @property
    def name(self) -> Any:
        """The name that was given.

        >>> tf.io.gfile.GFile("a").name
        'a'
        """
        return self._name

    @property
    def mode(self) -> str:
        """How the file is open.

        >>> tf.io.gfile.GFile("a").mode
        'r'
        """
        return self._mode

    def _opened(self, for_reading: bool) -> Any:
        readable = "r" in self._mode or "+" in self._mode
        if for_reading and not readable:
            raise PermissionDeniedError.of("File isn't open for reading")
        if not for_reading and self._mode in ("r", "rb"):
            raise PermissionDeniedError.of("File isn't open for writing")
        if self._file is None:
            name = file_name(self._name)
            with file_errors(name):
                self._file = open(name, self._mode.replace("b", "") + "b")  # noqa: SIM115
                if os.path.isdir(name):
                    raise IsADirectoryError(21, "Is a directory")
        return self._file

    def _shown(self, data: bytes) -> Any:
        return data if self._binary else data.decode()

    def read(self, n: int = -1) -> Any:
        """The next `n` characters, or all that are left."""
        file = self._opened(True)
        if self._binary or n < 0:
            return self._shown(file.read(n))
        data = file.read(n)
        while True:  # a character may lie across the end
            try:
                return data.decode()
            except UnicodeDecodeError as error:
                more = file.read(1)
                if not more or error.end < len(data):
                    raise
                data += more

    def readline(self) -> Any:
        """The next line with its end; empty after the last."""
        return self._shown(self._opened(True).readline())

    def readlines(self) -> list[Any]:
        """The lines that are left."""
        return [self._shown(line) for line in self._opened(True).readlines()]

    def write(self, file_content: Any) -> None:
        """Writes text or bytes."""
        data = file_content.encode() if isinstance(file_content, str) else bytes(file_content)
        with file_errors(self._name):
            self._opened(False).write(data)

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Goes to a place in the file."""
        self._opened("r" in self._mode).seek(position if offset is None else offset, whence)

    def tell(self) -> int:
        """The place in the file."""
        return int(self._opened("r" in self._mode).tell())

    def seekable(self) -> bool:
        """True."""
        return True

    def size(self) -> int:
        """The number of bytes."""
        return stat(self._name).length

    def flush(self) -> None:
        """Writes buffered data."""
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        """Ends the work with the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> GFile:
        if "w" in self._mode:
            self._opened(False)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def next(self) -> Any:
        """The next line."""
        return self.__next__()


@public("io.gfile.exists", "compat.v1.gfile.Exists", "compat.v1.io.gfile.exists")
def exists(path: Any) -> bool:
    """Whether there is a file or folder of this name.

    >>> tf.io.gfile.exists("nothing")
    False
    """
    return os.path.exists(file_name(path))


@public("io.gfile.isdir", "compat.v1.gfile.IsDirectory", "compat.v1.io.gfile.isdir")
def isdir(path: Any) -> bool:
    """Whether this is a folder.

    >>> tf.io.gfile.isdir(".")
    True
    """
    return os.path.isdir(file_name(path))


@public("io.gfile.listdir", "compat.v1.gfile.ListDirectory", "compat.v1.io.gfile.listdir")
def listdir(path: Any) -> list[str]:
    """The names in a folder.

    >>> tf.io.gfile.mkdir("folder")
    >>> tf.io.gfile.listdir("folder")
    []
    """
    name = file_name(path)
    if not os.path.isdir(name):
        raise NotFoundError.of(f"Could not find directory {name}")
    with file_errors(name):
        return os.listdir(name)


@public("io.gfile.mkdir", "compat.v1.gfile.MkDir", "compat.v1.io.gfile.mkdir")
def mkdir(path: Any) -> None:
    """Makes a folder in one that exists.

    >>> tf.io.gfile.mkdir("folder")
    """
    name = file_name(path)
    if name and not os.path.isdir(name):
        with file_errors(name):
            os.mkdir(name)


@public("io.gfile.makedirs", "compat.v1.gfile.MakeDirs", "compat.v1.io.gfile.makedirs")
def makedirs(path: Any) -> None:
    """Makes a folder and those above it.

    >>> tf.io.gfile.makedirs("a/b/c")
    >>> tf.io.gfile.isdir("a/b")
    True
    """
    name = file_name(path)
    if not name:  # the folder of a path without one: it exists
        return
    with file_errors(name):
        try:
            os.makedirs(name, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise FailedPreconditionError.of(f"makedirs: {name} or what is above it is not a directory") from None


@public("io.gfile.remove", "compat.v1.gfile.Remove", "compat.v1.io.gfile.remove")
def remove(path: Any) -> None:
    """Deletes a file.

    >>> tf.io.write_file("old", "")
    >>> tf.io.gfile.remove("old")
    """
    name = file_name(path)
    if os.path.isdir(name):
        raise FailedPreconditionError.of(f"{name}; Is a directory")
    with file_errors(name):
        os.remove(name)


@public("io.gfile.rmtree", "compat.v1.gfile.DeleteRecursively", "compat.v1.io.gfile.rmtree")
def rmtree(path: Any) -> None:
    """Deletes a folder with all that is in it.

    >>> tf.io.gfile.makedirs("a/b")
    >>> tf.io.gfile.rmtree("a")
    """
    name = file_name(path)
    if not os.path.exists(name):
        raise NotFoundError.of(f"{name} not found")
    with file_errors(name):
        shutil.rmtree(name) if os.path.isdir(name) else os.remove(name)


def _refuse_existing(path: str, overwrite: bool) -> None:
    if os.path.exists(path) and not overwrite:
        raise AlreadyExistsError.of(f"file already exists: {path}")


@public("io.gfile.copy", "compat.v1.io.gfile.copy")
def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copies a file.

    >>> tf.io.write_file("a", "x")
    >>> tf.io.gfile.copy("a", "b")
    >>> tf.io.read_file("b")
    <tf.Tensor: shape=(), dtype=string, numpy=b'x'>
    """
    source, target = file_name(src), file_name(dst)
    _refuse_existing(target, overwrite)
    with file_errors(source):
        shutil.copyfile(source, target)


@public("io.gfile.rename", "compat.v1.io.gfile.rename")
def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Gives a file or folder another name.

    >>> tf.io.write_file("a", "x")
    >>> tf.io.gfile.rename("a", "b")
    """
    source, target = file_name(src), file_name(dst)
    _refuse_existing(target, overwrite)
    with file_errors(source):
        os.replace(source, target)


@public("io.gfile.glob", "compat.v1.io.gfile.glob")
def glob(pattern: Any) -> list[str]:
    """The names that a pattern fits, or any of several.

    >>> tf.io.write_file("a.txt", "")
    >>> tf.io.gfile.glob("*.txt")
    ['a.txt']
    """
    from glob import glob as find  # only programs that look for files pay for it

    patterns = [pattern] if isinstance(pattern, str | bytes | os.PathLike) else pattern
    return [path for one in patterns for path in sorted(find(file_name(one)))]


@public("io.gfile.walk", "compat.v1.io.gfile.walk")
def walk(
    top: Any, topdown: bool = True, onerror: Callable[..., Any] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """(folder, folders in it, files in it) for a folder and all below.

    >>> tf.io.gfile.makedirs("a/b")
    >>> list(tf.io.gfile.walk("a"))
    [('a', ['b'], []), ('a/b', [], [])]
    """
    return os.walk(file_name(top), topdown, onerror)


class FileStatistics:
    """How long a file is, when it was changed, and whether it is a folder."""

    def __init__(self, length: int, mtime_nsec: int, is_directory: bool) -> None:
        self.length, self.mtime_nsec, self.is_directory = length, mtime_nsec, is_directory


@public("io.gfile.stat", "compat.v1.gfile.Stat", "compat.v1.io.gfile.stat")
def stat(path: Any) -> FileStatistics:
    """How long a file is, when it was changed, and whether it is a folder.

    >>> tf.io.write_file("a", "xyz")
    >>> tf.io.gfile.stat("a").length
    3
    """
    name = file_name(path)
    with file_errors(name):
        found = os.stat(name)
    return FileStatistics(found.st_size, found.st_mtime_ns, os.path.isdir(name))


@public("io.gfile.join", "compat.v1.io.gfile.join")
def join(path: Any, *paths: Any) -> str:
    """Parts of a path as one.

    >>> tf.io.gfile.join("a", "b")
    'a/b'
    """
    return str(os.path.join(path, *paths))


@public("io.gfile.get_registered_schemes", "compat.v1.io.gfile.get_registered_schemes")
def get_registered_schemes() -> list[str]:
    """The kinds of paths that are understood.

    >>> tf.io.gfile.get_registered_schemes()
    ['', 'file']
    """
    return ["", "file"]
