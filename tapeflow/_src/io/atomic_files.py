"""Files that are there as a whole or not at all: written under another name, flushed to the disk, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_MODE = 0o666


@contextmanager
def atomic_file(path: str) -> Iterator[Any]:
    """A file to write bytes to, which takes the place of `path` when the block ends without an error.

    The temporary name is new and unpredictable, so that it follows no link that somebody has put there.
    """
    folder = os.path.dirname(os.path.abspath(path))
    descriptor, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.tmp", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, _MODE & ~umask)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.remove(temporary)
        raise
    _flush_folder(folder)


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
