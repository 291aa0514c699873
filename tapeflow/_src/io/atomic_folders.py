"""Folders whose files belong together: written beside the old one, which they replace in one step."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from tapeflow._src.types.errors import OpError

Result = TypeVar("Result")

_HERE = -100  # AT_FDCWD: paths are relative to the working folder
_EXCHANGE = 2  # RENAME_EXCHANGE of Linux, RENAME_SWAP of macOS


@contextmanager
def replaced_folder(folder: str, outdated: str) -> Iterator[str]:
    """A new folder to write to, which takes the place of `folder` in one step when the block ends without an error.

    What the old one held beside it stays, but for files whose paths in it begin with `outdated`. Where there is no old
    folder, or the system cannot exchange two, the block writes to `folder` itself.
    """
    target = os.path.realpath(folder)
    made = _beside(target) if os.path.isdir(target) and _can_exchange(os.path.dirname(target)) else None
    if made is None:
        os.makedirs(folder, exist_ok=True)
        yield folder
        return
    try:
        yield made
        _link_rest(target, made, outdated)
        _exchange(made, target)
    finally:
        shutil.rmtree(made, ignore_errors=True)  # the new one after an error, else the old one


def read_whole(folder: str, read: Callable[[], Result]) -> Result:
    """What `read` gives, all of it of one state of a folder that another process may replace meanwhile."""
    for _ in range(_TRIES):
        before = _identity(folder)
        try:
            found = read()
        except (OSError, OpError, LookupError, TypeError, ValueError):
            if _identity(folder) == before:
                raise
        else:
            if _identity(folder) == before:
                return found
    return read()


_TRIES = 5


def _identity(folder: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_ctime_ns  # numbers of folders are used again


def _beside(target: str) -> str | None:
    """An empty folder in the same place with the same rights; None if none can be made."""
    try:
        made = tempfile.mkdtemp(prefix=f".{os.path.basename(target)}.tmp", dir=os.path.dirname(target))
    except OSError:
        return None
    with suppress(OSError):
        os.chmod(made, os.stat(target).st_mode & 0o7777)
    return made


def _link_rest(old: str, new: str, outdated: str) -> None:
    """Puts the files of the old folder that the new one lacks there, too."""
    for place, _, names in os.walk(old):
        inside = os.path.relpath(place, old)
        os.makedirs(os.path.join(new, inside), exist_ok=True)
        for name in names:
            path = os.path.normpath(os.path.join(inside, name))
            source, destination = os.path.join(old, path), os.path.join(new, path)
            if path.startswith(outdated) or os.path.lexists(destination):
                continue
            try:
                os.link(source, destination, follow_symlinks=False)
            except OSError:
                shutil.copy2(source, destination, follow_symlinks=False)


def _exchange(one: str, other: str) -> None:
    """Gives two folders each other's names, in one step."""
    system, names = ctypes.CDLL(None, use_errno=True), [os.fsencode(one), os.fsencode(other)]
    if sys.platform == "darwin":
        failed = system.renamex_np(*names, _EXCHANGE)
    else:
        failed = system.renameat2(_HERE, names[0], _HERE, names[1], _EXCHANGE)
    if failed:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), other)


_exchanges_by_place: dict[str, bool] = {}


def _can_exchange(place: str) -> bool:
    """Whether the file system of a folder can exchange two: it is tried."""
    known = _exchanges_by_place.get(place)
    if known is None:
        try:
            with tempfile.TemporaryDirectory(prefix=".exchange", dir=place) as trial:
                one, other = os.path.join(trial, "one"), os.path.join(trial, "other")
                os.mkdir(one)
                os.mkdir(other)
                _exchange(one, other)
            known = True
        except (AttributeError, OSError) as error:  # the C library or the file system has no such call
            if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
                return False
            known = False
        _exchanges_by_place[place] = known
    return known
