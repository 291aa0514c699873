"""Calls a function with a module right after its first import: that is when a doctor can take its place there."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class AfterImport(importlib.abc.MetaPathFinder):
    """Stands among the finders of modules between `begin` and `remove`."""

    def __init__(self, name: str, then: Callable[[ModuleType], None]) -> None:
        self._name, self._then, self._searching = name, then, False

    def begin(self) -> None:
        """Calls the function now, if the module is there already."""
        module = sys.modules.get(self._name)
        if module is not None:
            self._then(module)
        else:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:  # fmt: skip
        if name != self._name or self._searching:
            return None
        self._searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._searching = False
        if spec is None or spec.loader is None:
            return None
        execute, then = spec.loader.exec_module, self._then

        def exec_module(module: ModuleType) -> None:
            execute(module)
            then(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
