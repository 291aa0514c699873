"""Where the program made its Keras optimizers, and with them their learning rates."""

from __future__ import annotations

import functools
import inspect
import sys
import weakref
from types import FrameType, ModuleType
from typing import Any

from tapeflow._src.diagnostics.training.after_import import AfterImport
from tapeflow._src.namespace import PACKAGE_FOLDER
from tapeflow._src.types.library_folders import is_library

_MODULE = "keras.src.optimizers.base_optimizer"


class MadeOptimizers:
    """Stands before the constructor of Keras optimizers until it is removed."""

    def __init__(self) -> None:
        self._made: weakref.WeakKeyDictionary[Any, tuple[str, int]] = weakref.WeakKeyDictionary()
        self._patched: tuple[type, Any] | None = None
        self._import = AfterImport(_MODULE, self._install)

    def begin(self) -> None:
        """Takes its place now, or when Keras is imported."""
        self._import.begin()

    def remove(self) -> None:
        self._import.remove()
        if self._patched is not None:
            holder, original = self._patched
            holder.__init__ = original  # type: ignore[misc]
            self._patched = None

    def line_of(self, optimizer: Any) -> tuple[str, int] | None:
        """The line that made an optimizer."""
        return self._made.get(optimizer) if optimizer is not None else None

    def _install(self, module: ModuleType) -> None:
        holder, watch = module.BaseOptimizer, self
        original = holder.__init__

        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            original(self, *args, **kwargs)
            place = _made_by_the_program(self)
            if place is not None:
                watch._made[self] = place

        functools.update_wrapper(init, original)
        init.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
        holder.__init__ = init
        self._patched = holder, original


def _made_by_the_program(optimizer: Any) -> tuple[str, int] | None:
    """The line that calls the constructor; None if a library does, as for a name that `compile` is given."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        first = frame.f_locals.get(code.co_varnames[0]) if code.co_argcount else None
        if code.co_filename.startswith(PACKAGE_FOLDER) or (code.co_name == "__init__" and first is optimizer):
            frame = frame.f_back
            continue
        return None if is_library(code.co_filename) else (code.co_filename, frame.f_lineno)
    return None
