"""Marks of functions and arguments that will go: a warning at the first call, and a notice in the documentation."""

from __future__ import annotations

import enum
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from types import ModuleType
from typing import Any

from tapeflow._src.compat.tensorflow.inner_modules.decorators import make_decorator, unwrap
from tapeflow._src.compat.tensorflow.inner_modules.docstrings import add_notice_to_docstring, validate_callable
from tapeflow._src.types.logging import get_logger, warn
from tapeflow._src.types.version import is_strict_mode

_silent = [0]
_DATE = re.compile(r"20\d\d-[01]\d-[0123]\d")
_LOGGING = "tensorflow.python.platform.tf_logging"  # a program may have put a function of its own there
_UPDATE = "deprecated and will be removed %s.\nInstructions for updating:\n%s"


class DeprecatedNamesAlreadySetError(Exception):
    """Deprecated names are given to a function a second time."""


@contextmanager
def silence() -> Iterator[None]:
    """Inside it nothing is warned about."""
    _silent[0] += 1
    try:
        yield
    finally:
        _silent[0] -= 1


def _place() -> str:
    """The file and line of the program that called a deprecated function."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


class _Notice:
    """One warning for each key, written at most once, or always."""

    def __init__(self, once: bool = True) -> None:
        self._once = once
        self._written: set[Any] = set()

    def write(self, key: Any, text: str, *values: Any) -> None:
        if _silent[0] or (self._once and key in self._written):
            return
        self._written.add(key)
        values = (_place(), *values)
        if is_strict_mode():
            get_logger().error(f"From %s: {text}", *values)
            raise RuntimeError("This behavior has been deprecated, which raises an error in strict mode.")
        chosen = getattr(sys.modules.get(_LOGGING), "warning", warn)
        chosen(f"From %s: {text}", *values)


def _tell_when(date: str | None) -> str:
    return "in a future version" if date is None else f"after {date}"


def _check(date: str | None, instructions: str | None) -> None:
    if date is not None and not _DATE.match(date):
        raise ValueError(f"Date must be in format YYYY-MM-DD. Received: {date}")
    if not instructions:
        raise ValueError("Don't deprecate things without conversion instructions! Specify the `instructions` argument.")


def _names(function: Any) -> tuple[str, str]:
    return getattr(function, "__qualname__", str(function)), getattr(function, "__module__", "?")


def _noticed(function: Any, date: str | None, instructions: str, kind: str, notice: str) -> str:
    lines = [f"{notice} {_tell_when(date)}.", "Instructions for updating:"]
    no_doc = f"DEPRECATED FUNCTION{kind.upper()}"
    return add_notice_to_docstring(function.__doc__, instructions, no_doc, f"(deprecated{kind})", lines, "Deprecated")


def _marked(function: Any, replacement: Any, name: str, doc: str) -> Any:
    replacement = make_decorator(function, replacement, name, doc)
    replacement.__doc__ = doc
    return replacement


def deprecated(
    date: str | None, instructions: str, warn_once: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Warns at the first call that the decorated function or class will go."""
    _check(date, instructions)

    def decorate(function: Any) -> Any:
        validate_callable(function, "deprecated")
        notice = _Notice(warn_once)
        doc = _noticed(function, date, instructions, "", "THIS FUNCTION IS DEPRECATED. It will be removed")

        def tell() -> None:
            notice.write(None, f"%s (from %s) is {_UPDATE}", *_names(function), _tell_when(date), instructions)

        if inspect.isclass(function):
            _tell_when_made(function, tell)
            function.__doc__ = doc
            return function

        def call(*args: Any, **kwargs: Any) -> Any:
            tell()
            return function(*args, **kwargs)

        return _marked(function, call, "deprecated", doc)

    return decorate


def _tell_when_made(kind: Any, tell: Callable[[], None]) -> None:
    """Has a class call a function whenever an object of it is made."""
    if kind.__init__ is not object.__init__ and not issubclass(kind, enum.Enum):
        begin = kind.__init__

        @wraps(begin)
        def initialise(self: Any, *args: Any, **kwargs: Any) -> None:
            tell()
            begin(self, *args, **kwargs)

        kind.__init__ = initialise
        return
    make = kind.__new__

    @wraps(make)
    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        tell()
        return make(cls) if make is object.__new__ else make(cls, *args, **kwargs)

    kind.__new__ = staticmethod(new)


def deprecated_alias(deprecated_name: str, name: str, func_or_class: Any, warn_once: bool = True) -> Any:
    """The function or class under a deprecated name, which warns at its first use."""
    notice = _Notice(warn_once)

    def tell() -> None:
        notice.write(None, "The name %s is deprecated. Please use %s instead.\n", deprecated_name, name)

    if inspect.isclass(func_or_class):

        class Deprecated(func_or_class):  # type: ignore[misc]
            """The same class under its deprecated name."""

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                tell()
                super().__init__(*args, **kwargs)

        make_decorator(func_or_class.__init__, Deprecated.__init__, "deprecated_alias")
        Deprecated.__name__ = Deprecated.__qualname__ = func_or_class.__name__
        Deprecated.__module__ = func_or_class.__module__
        Deprecated.__doc__ = add_notice_to_docstring(
            func_or_class.__doc__,
            f"Please use {name} instead.",
            "DEPRECATED CLASS",
            "(deprecated)",
            [f"THIS CLASS IS DEPRECATED. It will be removed {_tell_when(None)}."],
            "Deprecated",
        )
        return Deprecated

    @wraps(func_or_class)
    def call(*args: Any, **kwargs: Any) -> Any:
        tell()
        return func_or_class(*args, **kwargs)

    return call


def deprecated_endpoints(*names: str) -> Callable[[Any], Any]:
    """Keeps the deprecated names of a function with it."""

    def decorate(function: Any) -> Any:
        target = unwrap(function)[1]
        if "_tf_deprecated_api_names" in vars(target):
            raise DeprecatedNamesAlreadySetError(
                f"Cannot set deprecated names for {target.__name__} to {names}. Deprecated names are already set to "
                f"{target._tf_deprecated_api_names}."
            )
        target._tf_deprecated_api_names = names
        return function

    return decorate


def deprecated_args(
    date: str | None, instructions: str, *deprecated_arg_names_or_tuples: Any, **kwargs: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Warns when one of the named arguments is given; of a pair (name, value), when it has another value."""
    _check(date, instructions)
    if not deprecated_arg_names_or_tuples:
        raise ValueError("Specify which argument is deprecated.")
    pairs = [
        (entry, ()) if isinstance(entry, str) else (entry[0], entry[1:]) for entry in deprecated_arg_names_or_tuples
    ]
    fine_by_name = dict(pairs)

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        validate_callable(function, "deprecated_args")
        signature = inspect.signature(function)
        missing = [name for name in fine_by_name if name not in signature.parameters]
        if missing:
            raise ValueError(
                f"The following deprecated arguments are not present in the function signature: {missing}. "
                f"Expected arguments from the following list: {list(signature.parameters)}."
            )

        def old_arguments(args: Any, kwargs: Any) -> list[str]:
            given = signature.bind(*args, **kwargs).arguments
            return [n for n, fine in fine_by_name.items() if n in given and not any(_same(given[n], v) for v in fine)]

        notice = "SOME ARGUMENTS ARE DEPRECATED: `({})`. They will be removed".format(", ".join(sorted(fine_by_name)))
        doc = _noticed(function, date, instructions, " arguments", notice)
        return _warning_of(
            function, old_arguments, "deprecated_args", doc, date, instructions, kwargs.get("warn_once", True)
        )

    return decorate


def deprecated_arg_values(
    date: str | None,
    instructions: str,
    warn_once: bool = True,
    **deprecated_kwargs: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Warns when one of the named arguments has the value that will go, given or by default."""
    _check(date, instructions)
    if not deprecated_kwargs:
        raise ValueError("Specify which argument values are deprecated.")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        validate_callable(function, "deprecated_arg_values")
        signature = inspect.signature(function)

        def old_values(args: Any, kwargs: Any) -> list[str]:
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given = bound.arguments
            return [f"{n}={v}" for n, v in deprecated_kwargs.items() if n in given and _same(given[n], v)]

        shown = ", ".join(f"{name}={value!r}" for name, value in sorted(deprecated_kwargs.items()))
        notice = f"SOME ARGUMENT VALUES ARE DEPRECATED: `({shown})`. They will be removed"
        doc = _noticed(function, date, instructions, " argument values", notice)
        return _warning_of(function, old_values, "deprecated_arg_values", doc, date, instructions, warn_once)

    return decorate


def _same(value: Any, other: Any) -> bool:
    """Whether two arguments are equal; what is compared element by element is not, unless it is the same object."""
    if value is other:
        return True
    if value is None or other is None:
        return False
    equal = value == other
    return isinstance(equal, bool) and equal


def _warning_of(
    function: Callable[..., Any],
    find_old: Callable[[Any, Any], list[str]],
    name: str,
    doc: str,
    date: str | None,
    instructions: str,
    warn_once: bool,
) -> Callable[..., Any]:
    notice = _Notice(warn_once)

    def call(*args: Any, **kwargs: Any) -> Any:
        if not _silent[0]:
            try:
                old = find_old(args, kwargs)
            except TypeError:
                old = []  # the call below says what is wrong
            for text in old:
                values = (*_names(function), text, _tell_when(date), instructions)
                notice.write(text, f"calling %s (from %s) with %s is {_UPDATE}", *values)
        return function(*args, **kwargs)

    result: Callable[..., Any] = _marked(function, call, name, doc)
    return result


def deprecated_argument_lookup(new_name: str, new_value: Any, old_name: str, old_value: Any) -> Any:
    """The value of an argument that was renamed; ValueError if it was given under both names."""
    if old_value is None:
        return new_value
    if new_value is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'.")
    return old_value


def rewrite_argument_docstring(old_doc: str, old_argument: str, new_argument: str) -> str:
    """A docstring in which an argument has another name."""
    return old_doc.replace(f"`{old_argument}`", f"`{new_argument}`").replace(f"{old_argument}:", f"{new_argument}:")


def deprecate_moved_module(deprecated_name: str, new_module: ModuleType, deletion_version: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module that has moved: its names come from the new one, with one warning."""
    notice = _Notice()

    def look_up(name: str) -> Any:
        notice.write(
            None,
            "Please fix your imports. Module %s has been moved to %s. The old module will be deleted in version %s.",
            deprecated_name,
            new_module.__name__,
            deletion_version,
        )
        return getattr(new_module, name)

    return look_up


NAMES: dict[str, Any] = {
    f.__name__: f
    for f in (
        DeprecatedNamesAlreadySetError,
        deprecate_moved_module,
        deprecated,
        deprecated_alias,
        deprecated_arg_values,
        deprecated_args,
        deprecated_argument_lookup,
        deprecated_endpoints,
        rewrite_argument_docstring,
        silence,
    )
}
