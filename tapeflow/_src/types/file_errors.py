"""What the operating system says about files, as TensorFlow's errors."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tapeflow._src.types import errors

_ERROR_BY_NUMBER: dict[int, Any] = {
    errno.ENOENT: errors.NotFoundError,
    errno.EEXIST: errors.AlreadyExistsError,
    errno.EACCES: errors.PermissionDeniedError,
    errno.EPERM: errors.PermissionDeniedError,
    errno.EISDIR: errors.FailedPreconditionError,
    errno.ENOTDIR: errors.FailedPreconditionError,
    errno.ENOTEMPTY: errors.FailedPreconditionError,
    errno.ENOSPC: errors.ResourceExhaustedError,
}


def file_name(path: Any) -> str:
    """A path given as text, bytes, a path object or a tensor of one string."""
    if hasattr(path, "numpy"):
        path = path.numpy()
    name = os.fspath(path)
    name = name.decode() if isinstance(name, bytes) else str(name)
    return name.removeprefix("file://")


@contextmanager
def file_errors(path: Any) -> Iterator[None]:
    """Turns an OSError inside into TensorFlow's error, "path; No such file or directory"."""
    try:
        yield
    except OSError as error:
        kind = _ERROR_BY_NUMBER.get(error.errno or 0, errors.UnknownError)
        raise kind(None, None, f"{file_name(path)}; {error.strerror or error}") from None
