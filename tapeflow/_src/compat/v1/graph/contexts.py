"""Contexts that a program may enter by hand, without `with`, and leave never: `tf.Graph().as_default().__enter__()`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator, contextmanager
from typing import Any

_entered: list[Any] = []  # held here: a context that nobody holds would be left at once


class _LastingContext(ContextDecorator):
    """A context that can be entered more than once, one inside of the other too."""

    def __init__(self, make: Callable[[], Any], leaving: Callable[[Any], None] | None = None) -> None:
        self._make, self._leaving = make, leaving
        self._inner: list[tuple[Any, Any]] = []

    def __enter__(self) -> Any:
        inner = self._make()
        value = inner.__enter__()
        self._inner.append((inner, value))
        _entered.append(self)
        return value

    def __exit__(self, *exception: Any) -> bool | None:
        if self._leaving is not None:
            self._leaving(self._inner[-1][1])
        _entered.remove(self)
        result: bool | None = self._inner.pop()[0].__exit__(*exception)
        return result


def lasting_context(
    function: Callable[..., Iterator[Any]], leaving: Callable[[Any], None] | None = None
) -> Callable[..., _LastingContext]:
    """Makes a context of a generator function, as `contextmanager` does; `leaving` may refuse to leave it."""
    make = contextmanager(function)

    @functools.wraps(function)
    def context(*args: Any, **kwargs: Any) -> _LastingContext:
        return _LastingContext(lambda: make(*args, **kwargs), leaving)

    return context
