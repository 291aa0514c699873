"""What the program's names held when gradients were asked for: evidence for statements that rest on its text."""

from __future__ import annotations

from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from tapeflow._src import _core

_LOOKED_AT = 4096  # elements of an array


class Held(NamedTuple):
    """A value behind a name: its rows if it is an array or list, and how many different numbers begin it."""

    rows: int | None
    distinct: int


class NamedArrays:
    """By file and name, the last value that was seen."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], Held] = {}
        self._ids: dict[tuple[str, str], int] = {}  # of the objects that were looked at

    def see(self, frames: list[FrameType]) -> None:
        """Looks at the locals of the program's frames, and at the globals of their files."""
        for frame in reversed(frames):
            file = frame.f_code.co_filename
            for scope in (frame.f_globals, frame.f_locals):
                for name, value in list(scope.items()):
                    if not name.startswith("__") and self._ids.get((file, name)) != id(value):
                        self._held[file, name] = _held(value)
                        self._ids[file, name] = id(value)

    def of(self, file: str) -> dict[str, Held]:
        """The names of one file."""
        return {name: held for (other, name), held in self._held.items() if other == file}


def _held(value: Any) -> Held:
    if _core.is_tensor(value) and not _core.is_symbolic(value) and value.shape.rank:
        value = value.numpy()
    if isinstance(value, list | tuple):
        return Held(len(value), 0)
    if not isinstance(value, np.ndarray) or value.ndim == 0:
        return Held(None, 0)
    numeric = value.dtype.kind in "iufb"
    return Held(len(value), len(np.unique(value.reshape(-1)[:_LOOKED_AT])) if numeric else 0)
