"""Wrappers that know what they wrap: `tensorflow.python.util.tf_decorator`."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable
from typing import Any


class TFDecorator:
    """A callable that stands for another one."""

    def __init__(
        self, decorator_name: str, target: Any, decorator_doc: str = "", decorator_argspec: Any = None
    ) -> None:
        self._decorated_target, self._decorator_name = target, decorator_name
        self._decorator_doc, self._decorator_argspec = decorator_doc, decorator_argspec
        self.__wrapped__ = target
        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(self, name, getattr(target, name, None))

    def __get__(self, instance: Any, owner: Any) -> Any:
        if hasattr(self._decorated_target, "__get__"):
            return self._decorated_target.__get__(instance, owner)
        return self if instance is None else functools.partial(self, instance)

    @property
    def __signature__(self) -> inspect.Signature:
        argspec = self._decorator_argspec
        signature = _signature_of(self._decorated_target) if argspec is None else signature_of_argspec(argspec)
        if signature is None:
            raise AttributeError("__signature__")
        return signature

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._decorated_target(*args, **kwargs)

    decorated_target = property(lambda self: self._decorated_target)
    decorator_name = property(lambda self: self._decorator_name)
    decorator_doc = property(lambda self: self._decorator_doc)
    decorator_argspec = property(lambda self: self._decorator_argspec)


def make_decorator(
    target: Any,
    decorator_func: Callable[..., Any],
    decorator_name: str | None = None,
    decorator_doc: str = "",
    decorator_argspec: Any = None,
) -> Callable[..., Any]:
    """Says that `decorator_func` stands for `target`: it takes over its name and signature.

    >>> tf.__internal__.decorator.make_decorator(abs, lambda x: abs(x)).__name__
    'abs'
    """
    if decorator_name is None:
        decorator_name = inspect.currentframe().f_back.f_code.co_name  # type: ignore[union-attr]
    decorator = TFDecorator(decorator_name, target, decorator_doc, decorator_argspec)
    decorator_func._tf_decorator = decorator  # type: ignore[attr-defined]
    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        if getattr(target, name, None) is not None:
            setattr(decorator_func, name, getattr(target, name))
    if hasattr(target, "__dict__"):
        for name, value in vars(target).items():
            vars(decorator_func).setdefault(name, value)
    decorator_func.__wrapped__ = target  # type: ignore[attr-defined]
    signature = _signature_of(target) if decorator_argspec is None else signature_of_argspec(decorator_argspec)
    if signature is None:
        return decorator_func
    owner = None if decorator_argspec is not None else _owner_of(target)
    if owner is not None and "self" in signature.parameters:  # a wrapper of a bound method is one as well
        signature = inspect.Signature(list(signature.parameters.values())[1:])
        decorator_func.__self__ = owner  # type: ignore[attr-defined]
    decorator_func.__signature__ = signature  # type: ignore[attr-defined]
    return decorator_func


def _owner_of(target: Any) -> Any:
    """The object whose method is inside of a callable, or None."""
    methods = (decorator.decorated_target for decorator in unwrap(target)[0])
    return next((method.__self__ for method in methods if inspect.ismethod(method)), None)


def _signature_of(target: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(target)
    except (TypeError, ValueError):
        return None


def signature_of_argspec(argspec: Any) -> inspect.Signature:
    """The signature that an `inspect.FullArgSpec` describes."""
    kinds, annotations = inspect.Parameter, argspec.annotations or {}
    defaults = list(argspec.defaults or ())
    filled = [kinds.empty] * (len(argspec.args) - len(defaults)) + defaults
    described: list[tuple[str, Any, Any]] = [
        (name, kinds.POSITIONAL_OR_KEYWORD, default) for name, default in zip(argspec.args, filled)
    ]
    if argspec.varargs is not None:
        described.append((argspec.varargs, kinds.VAR_POSITIONAL, kinds.empty))
    named = argspec.kwonlydefaults or {}
    described += [(name, kinds.KEYWORD_ONLY, named.get(name, kinds.empty)) for name in argspec.kwonlyargs]
    if argspec.varkw is not None:
        described.append((argspec.varkw, kinds.VAR_KEYWORD, kinds.empty))
    return inspect.Signature(
        [
            kinds(name, kind, default=default, annotation=annotations.get(name, kinds.empty))
            for name, kind, default in described
        ],
        return_annotation=annotations.get("return", inspect.Signature.empty),
    )


def _decorator_of(func: Any) -> TFDecorator | None:
    return func if isinstance(func, TFDecorator) else getattr(func, "_tf_decorator", None)


def unwrap(maybe_tf_decorator: Any) -> tuple[list[Any], Any]:
    """The decorators around a callable, outermost first, and what is inside of them.

    >>> tf.__internal__.decorator.unwrap(abs)
    ([], <built-in function abs>)
    """
    decorators: list[Any] = []
    inner = maybe_tf_decorator
    while True:
        found = _decorator_of(inner)
        if found is None:
            return decorators, inner
        decorators.append(found)
        inner = found.decorated_target


def rewrap(decorator_func: Any, previous_target: Any, new_target: Any) -> None:
    """Puts another target in the place of one that is inside of decorators, or else of the innermost one."""
    func = decorator_func
    while (decorator := _decorator_of(func)) is not None:
        target = decorator.decorated_target
        if target is previous_target or _decorator_of(target) is None:
            decorator._decorated_target = new_target
            func.__wrapped__ = new_target
            return
        func = target


def contextmanager(target: Callable[..., Any]) -> Callable[..., Any]:
    """`contextlib.contextmanager` as a decorator that `unwrap` looks through."""
    return make_decorator(target, contextlib.contextmanager(target), "contextmanager")
