"""`tf.__internal__.dispatch`: what a program does instead of an operation that cannot take its arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.tensorflow.inner_modules.decorators import make_decorator
from tapeflow._src.namespace import public
from tapeflow._src.types import nest
from tapeflow._src.types.dispatch_fallback import NOT_SUPPORTED as _NOT_SUPPORTED
from tapeflow._src.types.dispatch_fallback import ask_when_refused

_for_all: list[GlobalOpDispatcher] = []
_by_function: dict[int, list[OpDispatcher]] = {}
_kept: list[Any] = []  # functions whose id is a key above


@public("__internal__.dispatch.OpDispatcher")
class OpDispatcher:
    """Runs in place of one operation where `handle` does not give NOT_SUPPORTED.

    >>> class Lengths(tf.__internal__.dispatch.OpDispatcher):
    ...     def handle(self, args, kwargs):
    ...         return len(args[0].name) if hasattr(args[0], "name") else self.NOT_SUPPORTED
    >>> Lengths().handle([3.], {}) is Lengths.NOT_SUPPORTED
    True
    """

    NOT_SUPPORTED = _NOT_SUPPORTED

    def handle(self, args: Any, kwargs: Any) -> Any:
        """The result, or NOT_SUPPORTED."""
        return self.NOT_SUPPORTED

    def register(self, op: Any) -> None:
        """From now on this dispatcher is asked when the operation raises TypeError or ValueError."""
        function = _key(op)
        _kept.append(function)
        _by_function.setdefault(id(function), []).append(self)
        _listen()


@public("__internal__.dispatch.GlobalOpDispatcher")
class GlobalOpDispatcher:
    """Runs in place of any operation where `handle` does not give NOT_SUPPORTED.

    >>> class Refuse(tf.__internal__.dispatch.GlobalOpDispatcher):
    ...     def handle(self, op, args, kwargs):
    ...         return self.NOT_SUPPORTED
    >>> Refuse().register()
    """

    NOT_SUPPORTED = _NOT_SUPPORTED

    def handle(self, op: Any, args: Any, kwargs: Any) -> Any:
        """The result, or NOT_SUPPORTED."""
        return self.NOT_SUPPORTED

    def register(self) -> None:
        """From now on this dispatcher is asked when an operation raises TypeError or ValueError."""
        _for_all.append(self)
        _listen()


class _TypeDispatcher(OpDispatcher):
    """Hands a call to a function if one of the arguments has one of these types."""

    def __init__(self, function: Callable[..., Any], types: tuple[Any, ...]) -> None:
        self._function, self._types = function, types

    def handle(self, args: Any, kwargs: Any) -> Any:
        values = nest.flatten([args, kwargs])
        found = any(isinstance(value, self._types) for value in [*args, *kwargs.values(), *values])
        return self._function(*args, **kwargs) if found else self.NOT_SUPPORTED


def dispatch_for_types(op: Any, *types: Any) -> Callable[..., Any]:
    """A decorator: the function runs in place of `op` for arguments of these types."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        _TypeDispatcher(function, types).register(op)
        return function

    return register


def dispatch(op: Any, args: Any, kwargs: Any) -> Any:
    """The result of the first dispatcher that supports the arguments, or NOT_SUPPORTED."""
    for dispatcher in _by_function.get(id(_key(op)), ()):
        result = dispatcher.handle(args, kwargs)
        if result is not _NOT_SUPPORTED:
            return result
    for everywhere in _for_all:
        result = everywhere.handle(op, args, kwargs)
        if result is not _NOT_SUPPORTED:
            return result
    return _NOT_SUPPORTED


def _key(op: Any) -> Any:
    """The function by which dispatchers are kept: that of a method, the decorated one."""
    op = getattr(op, "__func__", op)
    return getattr(op, "_tf_dispatched", op)


def _fallback(op: Any, args: Any, kwargs: Any) -> Any:
    result = dispatch(op, args, kwargs)
    return NotImplemented if result is _NOT_SUPPORTED else result


def _listen() -> None:
    _core.register_objects({"fallback_dispatch": _fallback})
    ask_when_refused(dispatch)


@public("__internal__.dispatch.add_dispatch_support")
def add_dispatch_support(target: Any = None, iterable_parameters: Any = None) -> Any:
    """A decorator: dispatchers are asked when the function raises TypeError or ValueError.

    >>> @tf.__internal__.dispatch.add_dispatch_support
    ... def double(x):
    ...     return tf.multiply(x, 2)
    >>> double(3)
    <tf.Tensor: shape=(), dtype=int32, numpy=6>
    """
    if target is None:
        return functools.partial(add_dispatch_support, iterable_parameters=iterable_parameters)

    def dispatched(*args: Any, **kwargs: Any) -> Any:
        try:
            return target(*args, **kwargs)
        except (TypeError, ValueError):
            result = dispatch(dispatched, args, kwargs)
            if result is _NOT_SUPPORTED:
                raise
            return result

    dispatched._tf_dispatched = target  # type: ignore[attr-defined]
    return make_decorator(target, dispatched)
