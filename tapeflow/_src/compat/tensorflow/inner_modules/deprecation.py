"""Marks of functions and arguments that will go: a warning at the first call, and a line in the documentation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from tapeflow._src.types.logging import warn

_silent = [0]


@contextmanager
def silence() -> Iterator[None]:
    """Inside it nothing is warned about."""
    _silent[0] += 1
    try:
        yield
    finally:
        _silent[0] -= 1


class _Notice:
    """One warning, written at most once."""

    def __init__(self, once: bool = True) -> None:
        self._once = once
        self._written: set[Any] = set()

    def write(self, key: Any, text: str) -> None:
        if _silent[0] or (self._once and key in self._written):
            return
        self._written.add(key)
        warn(text)


def _tell_when(date: str | None) -> str:
    return "in a future version" if date is None else f"after {date}"


def _full_name(function: Any) -> str:
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', function)}"


def _marked(function: Any, replacement: Any, instructions: str) -> Any:
    replacement = wraps(function)(replacement)
    replacement.__doc__ = f"{function.__doc__ or ''}\n\nDeprecated: {instructions}"
    return replacement


def deprecated(
    date: str | None, instructions: str, warn_once: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Warns at the first call that the decorated function or class will go."""

    def decorate(function: Any) -> Any:
        notice = _Notice(warn_once)

        def warn() -> None:
            notice.write(
                None,
                f"{_full_name(function)} is deprecated and will be removed {_tell_when(date)}.\n"
                f"Instructions for updating:\n{instructions}",
            )

        if inspect.isclass(function):
            made = function.__init__

            @wraps(made)
            def make(self: Any, *args: Any, **kwargs: Any) -> None:
                warn()
                made(self, *args, **kwargs)

            setattr(function, "__init__", make)  # noqa: B010
            return function

        def call(*args: Any, **kwargs: Any) -> Any:
            warn()
            return function(*args, **kwargs)

        return _marked(function, call, instructions)

    return decorate


def deprecated_alias(deprecated_name: str, name: str, func_or_class: Any, warn_once: bool = True) -> Any:
    """The function or class under a deprecated name, which warns at its first use."""
    notice = _Notice(warn_once)

    def warn() -> None:
        notice.write(None, f"The name {deprecated_name} is deprecated. Please use {name} instead.\n")

    if inspect.isclass(func_or_class):

        class Deprecated(func_or_class):  # type: ignore[misc]
            """The same class under its deprecated name."""

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                warn()
                super().__init__(*args, **kwargs)

        Deprecated.__name__ = Deprecated.__qualname__ = func_or_class.__name__
        Deprecated.__module__, Deprecated.__doc__ = func_or_class.__module__, func_or_class.__doc__
        return Deprecated

    @wraps(func_or_class)
    def call(*args: Any, **kwargs: Any) -> Any:
        warn()
        return func_or_class(*args, **kwargs)

    return call


def deprecated_args(
    date: str | None, instructions: str, *deprecated_arg_names_or_tuples: Any, **kwargs: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Warns when one of the named arguments is given; of a pair (name, value), when it has another value."""
    fine_by_name = {
        name[0] if isinstance(name, tuple) else name: list(name[1:]) if isinstance(name, tuple) else []
        for name in deprecated_arg_names_or_tuples
    }
    return _warning_of_arguments(
        date,
        instructions,
        lambda name, value: name in fine_by_name and not any(value is fine for fine in fine_by_name[name]),
        kwargs.get("warn_once", True),
    )


def deprecated_arg_values(
    date: str | None,
    instructions: str,
    warn_once: bool = True,
    **deprecated_kwargs: Any,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Warns when one of the named arguments is given the value that will go."""

    def is_old(name: str, value: Any) -> bool:
        return name in deprecated_kwargs and value is deprecated_kwargs[name]

    return _warning_of_arguments(date, instructions, is_old, warn_once)


def _warning_of_arguments(
    date: str | None, instructions: str, is_old: Callable[[str, Any], bool], warn_once: bool
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        notice = _Notice(warn_once)
        signature = inspect.signature(function)

        def call(*args: Any, **kwargs: Any) -> Any:
            if not _silent[0]:
                try:
                    given = signature.bind(*args, **kwargs).arguments
                except TypeError:
                    given = {}  # the call below says what is wrong
                for name in [name for name, value in given.items() if is_old(name, value)]:
                    notice.write(
                        name,
                        f"calling {_full_name(function)} with {name} is deprecated and will be removed "
                        f"{_tell_when(date)}.\nInstructions for updating:\n{instructions}",
                    )
            return function(*args, **kwargs)

        result: Callable[..., Any] = _marked(function, call, instructions)
        return result

    return decorate


def deprecated_argument_lookup(new_name: str, new_value: Any, old_name: str, old_value: Any) -> Any:
    """The value of an argument that was renamed; ValueError if it was given under both names."""
    if old_value is None:
        return new_value
    if new_value is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{new_name}'.")
    return old_value
