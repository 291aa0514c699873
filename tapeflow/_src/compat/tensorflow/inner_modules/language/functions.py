"""`tensorflow.python.util.function_utils`: what a callable takes, and what it is called."""

from __future__ import annotations

import functools
import inspect
from types import CodeType
from typing import Any

from tapeflow._src.compat.tensorflow.inner_modules.decorators import unwrap
from tapeflow._src.compat.tensorflow.inner_modules.inspection import getfullargspec


def fn_args(fn: Any) -> tuple[str, ...]:
    """The names of the arguments that a callable still takes, without `self`."""
    if isinstance(fn, functools.partial):
        left = fn_args(fn.func)[len(fn.args) :]
        return tuple(name for name in left if name not in (fn.keywords or {}))
    if _is_object(fn):
        fn = fn.__call__
    names = list(getfullargspec(fn).args)
    inner = unwrap(fn)[1]
    return tuple(names[1:] if inspect.ismethod(inner) and inner.__self__ is not None else names)


def has_kwargs(fn: Any) -> bool:
    """Whether a callable takes any keyword."""
    if isinstance(fn, functools.partial):
        fn = fn.func
    elif _is_object(fn):
        fn = fn.__call__
    elif not callable(fn):
        raise TypeError(f"Argument `fn` should be a callable. Received: fn={fn} (of type {type(fn)})")
    return getfullargspec(fn).varkw is not None


def get_func_name(func: Any) -> str:
    """What a callable is called."""
    func = unwrap(func)[1]
    if not callable(func):
        raise ValueError(f"Argument `func` must be a callable. Received func={func} (of type {type(func)})")
    if inspect.isfunction(func):
        return func.__name__
    if inspect.ismethod(func):
        return f"{func.__self__.__class__.__name__}.{func.__func__.__name__}"
    return str(type(func))


def get_func_code(func: Any) -> CodeType | None:
    """The code of a callable; None if it has none in Python."""
    func = unwrap(func)[1]
    if not callable(func):
        raise ValueError(f"Argument `func` must be a callable. Received func={func} (of type {type(func)})")
    if inspect.isfunction(func) or inspect.ismethod(func):
        return func.__code__
    code: CodeType | None = getattr(getattr(func, "__call__"), "__code__", None)  # noqa: B004, B009
    return code


def _is_object(fn: Any) -> bool:
    return hasattr(fn, "__call__") and inspect.ismethod(fn.__call__)  # noqa: B004
