"""Writes tests/api/surface.txt: every public path of Tapeflow with its signature, so that a change of it is seen.

`python -m tools.surface` prints the surface, `python -m tools.surface --write` stores it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from enum import EnumType
from pathlib import Path
from types import BuiltinFunctionType, MethodDescriptorType, ModuleType, NoneType
from typing import Any

SURFACE = Path(__file__).parents[1] / "tests" / "api" / "surface.txt"


def public_definitions() -> Iterator[tuple[str, Any]]:
    """(path, object) for everything that `namespace.install` has set, by path."""
    import tapeflow as tf
    from tapeflow._src import namespace, primitives
    from tapeflow._src.compat.raw_ops import table

    namespace.load_later_definitions()
    paths = [path for path, _ in (*namespace._definitions, *primitives.definitions, *table.definitions())]
    for path in sorted(set(paths)):
        value: Any = tf
        for name in path.split("."):
            value = getattr(value, name)
        yield path, value


_MADE_FROM_FLAGS = {None, "()", "($self, /)", "($self, object, /)", "($module, /)", "($module, object, /)"}


def signature(value: Any) -> str:
    """The parameters as in `(x, axis=None)`, without annotations."""
    # What Python makes of these depends on its version.
    if isinstance(value, EnumType):
        return "(value)"
    built_in = isinstance(value, BuiltinFunctionType | MethodDescriptorType) or value is NoneType
    if built_in and value.__text_signature__ in _MADE_FROM_FLAGS:
        return "(...)"
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return getattr(value, "__text_signature__", None) or "(...)"
    parameters = [p.replace(annotation=p.empty, default=_shown(p.default)) for p in found.parameters.values()]
    return str(found.replace(parameters=parameters, return_annotation=found.empty))


def _shown(default: Any) -> Any:
    """A default whose text is the same in every run."""
    if default is inspect.Parameter.empty or isinstance(default, bool | int | float | str | tuple | None):
        return default
    return _Text("..." if type(default) is object else getattr(default, "__name__", None) or str(default))


class _Text(str):
    """Prints without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def describe(path: str, value: Any) -> Iterator[str]:
    """The lines of one path: itself and, for a class of ours, its public methods."""
    if isinstance(value, ModuleType):
        if not value.__name__.startswith("tapeflow"):  # a module of others, as unittest.mock
            yield f"{path} = module {value.__name__}"
        return
    if isinstance(value, type):
        yield f"{path}{signature(value)}"
        # Keras, once it is loaded, knows some of our classes by the names of their modules in TensorFlow.
        if not issubclass(value, BaseException) and value.__module__.startswith(("tapeflow", "tensorflow")):
            yield from _members(path, value)
    elif callable(value):
        yield f"{path}{signature(value)}"
    else:
        yield f"{path} = {value!r}"


def _members(path: str, value: type) -> Iterator[str]:
    for name in sorted(dir(value)):
        owner = next((cls for cls in value.__mro__ if name in vars(cls)), value)
        if name.startswith("_") or owner.__module__.partition(".")[0] in sys.stdlib_module_names:
            continue
        member = inspect.getattr_static(value, name)
        member = getattr(member, "__func__", member)
        if callable(member):
            yield f"{path}.{name}{signature(member)}"
        else:
            yield f"{path}.{name}"


def surface() -> list[str]:
    return [line for path, value in public_definitions() for line in describe(path, value)]


def main() -> None:
    text = "\n".join(surface()) + "\n"
    if "--write" in sys.argv:
        SURFACE.parent.mkdir(exist_ok=True)
        SURFACE.write_text(text)
    else:
        sys.stdout.write(text)


if __name__ == "__main__":
    main()
