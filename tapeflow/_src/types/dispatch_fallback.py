"""Functions in Python that libraries extend to types of their own: who is asked when they refuse their arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])
NOT_SUPPORTED = object()
_dispatchers: list[Callable[[Any, Any, Any], Any]] = []  # each gives a result or NOT_SUPPORTED


def ask_when_refused(dispatcher: Callable[[Any, Any, Any], Any]) -> None:
    """From now on `dispatcher(function, args, kwargs)` is asked when a function refuses its arguments."""
    if dispatcher not in _dispatchers:
        _dispatchers.append(dispatcher)


def dispatched(function: Function) -> Function:
    """The function; where it raises TypeError or ValueError, dispatchers may give the result."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (TypeError, ValueError):
            for dispatcher in _dispatchers:
                result = dispatcher(call, args, kwargs)
                if result is not NOT_SUPPORTED:
                    return result
            raise

    return cast(Function, call)
