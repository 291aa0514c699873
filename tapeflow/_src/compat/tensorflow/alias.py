"""Lets `import tensorflow` mean Tapeflow in this process, once a program asks for it; it changes no installed file."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tapeflow._src.compat.tensorflow.class_names import restore_class_names, take_class_names
from tapeflow._src.namespace import installed_namespaces, load_below, public

_PACKAGE = __name__.partition(".")[0]
_ALIAS = "tensorflow"
_V2 = "compat.v2"  # another name of the whole
_V1 = "compat.v1"  # what `tensorflow` meant before TensorFlow 2
_INNER = ("python", "compiler", "core", "tools")  # TensorFlow's own files


class _AliasLoader(Loader):
    """Hands out a module that exists; it must not run again, and must keep the spec that it was loaded by."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._own_spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._own_spec


class _AliasFinder:
    """Answers `tensorflow` and everything below it, so that no other finder looks for `tensorflow.x` in our folder."""

    v1 = False  # whether it answers with the names of TensorFlow 1

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname != _ALIAS and not fullname.startswith(f"{_ALIAS}."):
            return None
        module = _find_module(fullname)
        if module is None:
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: 'tensorflow' means Tapeflow in this program, which has no public "
                f"module of that name. (Of TensorFlow's inner modules, below tensorflow.python, those are offered that "
                f"libraries are known to import.)",
                name=fullname,
            )
        return ModuleSpec(fullname, _AliasLoader(module), is_package=hasattr(module, "__path__"))


_finder = _AliasFinder()
_inner_modules: list[str] = []


def offer_inner_modules(module: str) -> None:
    """Says which module finds inner modules of TensorFlow by path; it is imported when one is asked for."""
    _inner_modules.append(module)


def _root(v1: bool) -> ModuleType:
    return installed_namespaces()[_V1] if v1 else sys.modules[_PACKAGE]


def _find_module(fullname: str) -> ModuleType | None:
    """The module of Tapeflow that answers to TensorFlow's name, or None."""
    path = fullname[len(_ALIAS) + 1 :]
    if path == _V2 or path.startswith(f"{_V2}."):
        return _find_below(path[len(_V2) + 1 :], v1=False)
    return _find_below(path, _finder.v1)


def _find_below(path: str, v1: bool) -> ModuleType | None:
    """The module at `path` below the root of TensorFlow 1 or 2, or None."""
    if not path:
        return _root(v1)
    load_below(_V1 if v1 else path)
    namespaces = installed_namespaces()
    namespace = namespaces.get(f"{_V1}.{path}") if v1 else None
    namespace = namespaces.get(path) if namespace is None else namespace
    if namespace is not None:
        return namespace
    if path.partition(".")[0] in _INNER:
        return _find_inner_module(path)
    above, _, name = path.rpartition(".")
    parent = _find_below(above, v1)
    if parent is None:
        return None
    module = getattr(parent, name, None)
    if module is None and not _is_ours(parent):  # `tensorflow.keras.layers` below a package of others
        module = import_module(f"{parent.__name__}.{name}")
    return module if isinstance(module, ModuleType) and not _is_ours(module) else None


def _find_inner_module(path: str) -> ModuleType | None:
    found = (import_module(module).find(path) for module in _inner_modules)
    return next((module for module in found if module is not None), None)


def _is_ours(module: ModuleType) -> bool:
    """Whether a module is part of this package; of those, only the installed namespaces are public."""
    return module.__name__.partition(".")[0] == _PACKAGE


@public("install_as_tensorflow")
def install_as_tensorflow(v1: bool = False) -> None:
    """Makes `import tensorflow` mean Tapeflow from now on, in this process; a second call changes nothing.

    From then on `type(x).__module__` of tensors, variables and datasets begins with `tensorflow`: libraries that serve
    several frameworks choose theirs by it.

    Call it before the first `import tensorflow`: once TensorFlow itself is there, it raises ImportError. With `v1`
    it has the names of TensorFlow 1, `tf.placeholder` and `tf.Session`, which are those of `tf.compat.v1`.

    >>> tf.install_as_tensorflow()
    >>> import tensorflow
    >>> tensorflow is tf
    True
    """
    present = sys.modules.get(_ALIAS)
    if present is None:
        _finder.v1 = v1
    elif present is not _root(_finder.v1):
        place = getattr(present, "__file__", None) or "an unknown place"
        raise ImportError(
            f"install_as_tensorflow: TensorFlow itself is imported already, from {place}, and parts of the program may "
            f"hold it. Call tapeflow.install_as_tensorflow() before the first `import tensorflow`, or start the "
            f"program with `tapeflow run`.",
            name=_ALIAS,
        )
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
        take_class_names()


def withdraw() -> None:
    """Takes the alias back: later imports of `tensorflow` find TensorFlow again, if it is there."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
        restore_class_names()
    if sys.modules.get(_ALIAS) is _root(_finder.v1):
        for name in [name for name in sys.modules if name == _ALIAS or name.startswith(f"{_ALIAS}.")]:
            del sys.modules[name]
