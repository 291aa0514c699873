"""Files that are there as a whole or not at all: written under another name, flushed to the disk, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_MODE = 0o666


class AtomicFiles:
    """Files that are written under other names and take their places one right after the other when the block ends.

    Nothing is renamed before all of them are on the disk, so that parts that belong together are all old or all new.
    A temporary name is new and unpredictable: it follows no link that somebody has put there.
    """

    def __init__(self, durable: bool = True) -> None:
        self._durable = durable
        self._path_by_temporary: dict[str, str] = {}
        self._outdated: list[str] = []

    def __enter__(self) -> AtomicFiles:
        return self

    @contextmanager
    def open(self, path: str) -> Iterator[Any]:
        """A file to write bytes to, in place of `path`."""
        folder = os.path.dirname(os.path.abspath(path))
        descriptor, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.tmp", dir=folder)
        self._path_by_temporary[temporary] = path
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            if self._durable:
                os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, _MODE & ~umask)

    def write(self, path: str, content: bytes) -> None:
        """Writes a file as a whole."""
        with self.open(path) as file:
            file.write(content)

    def remove_afterwards(self, path: str) -> None:
        """Names a file that nothing refers to any more when the new ones have taken their places."""
        self._outdated.append(path)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        folders = {os.path.dirname(temporary) for temporary in self._path_by_temporary}
        try:
            for temporary, path in list(self._path_by_temporary.items()) if kind is None else ():
                os.replace(temporary, path)
                del self._path_by_temporary[temporary]
            for path in self._outdated if kind is None else ():
                with suppress(OSError):
                    os.remove(path)
            for folder in folders if self._durable and kind is None else ():
                _flush_folder(folder)
        finally:
            for temporary in self._path_by_temporary:
                with suppress(OSError):
                    os.remove(temporary)


@contextmanager
def atomic_file(path: str, durable: bool = True) -> Iterator[Any]:
    """A file to write bytes to, which takes the place of `path` when the block ends without an error."""
    with AtomicFiles(durable) as files, files.open(path) as file:
        yield file


def _flush_folder(folder: str) -> None:
    """Makes the renaming itself durable, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_atomically(path: str, content: bytes) -> None:
    """Writes a file as a whole."""
    with atomic_file(path) as file:
        file.write(content)
