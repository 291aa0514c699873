"""Files that stay open for reading at any place, whatever becomes of their names meanwhile."""

from __future__ import annotations

import os
from typing import Any

import numpy as np


class OpenFile:
    """A file that is open until the object goes; threads may read it at the same time."""

    _descriptor = -1

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY)

    def size(self) -> int:
        """The size now, in bytes."""
        return os.fstat(self._descriptor).st_size

    def read(self, offset: int, count: int) -> np.ndarray:
        """Bytes from a place on; fewer than asked for where the file ends."""
        found, place = np.empty(count, np.uint8), 0
        view = found.data
        while place < count:
            read = os.preadv(self._descriptor, [view[place:]], offset + place)
            if not read:
                break
            place += read
        return found[:place]

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("an open file cannot be copied")

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)


def is_in_place(file: Any, path: str) -> bool:
    """Whether the open file is the one that has this name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        return False
