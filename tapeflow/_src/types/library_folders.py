"""Which files belong to libraries rather than to the user's program."""

from __future__ import annotations

import os

import numpy

from tapeflow._src.namespace import PACKAGE_FOLDER

LIBRARY_FOLDERS = (
    os.path.join(os.path.dirname(os.path.dirname(numpy.__file__)), ""),  # site-packages
    os.path.join(os.path.dirname(os.__file__), ""),  # the standard library
    "<frozen ",
)


def is_library(file: str) -> bool:
    """Whether a file is Tapeflow's own or a library's."""
    return file.startswith((PACKAGE_FOLDER, *LIBRARY_FOLDERS))
