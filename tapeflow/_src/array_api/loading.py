"""Loads `tf.array_api` when it is asked for."""

from __future__ import annotations

import importlib
from types import ModuleType


def load(path: str) -> ModuleType:
    """The module at a path of `tf`."""
    return importlib.import_module(f"tapeflow.{path}")


def is_installed() -> bool:
    """Whether the module can be loaded: it is a part of Tapeflow."""
    return True
