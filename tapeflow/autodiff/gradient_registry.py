"""Gradients by name: `tf.RegisterGradient`, `tf.no_gradient`, and which operations a block of code overrides.

A registered gradient is a function `(op, *dys) -> dx or list of dx`. Graphs look names up by `registered_gradient`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

from tapeflow.namespace import public
from tapeflow.primitives import facts_by_name

GradientFunction = Callable[..., Any]

_gradient_by_name: dict[str, GradientFunction | None] = {}
_overrides: ContextVar[Mapping[str, str]] = ContextVar("gradient overrides", default=MappingProxyType({}))


@public("RegisterGradient", "compat.v1.RegisterGradient")
class RegisterGradient:
    """Registers the decorated function `(op, *dys)` as the gradient of an operation type, or under a name of its own.

    >>> @tf.RegisterGradient("HalvedGradient")
    ... def halved(op, dy):
    ...     return 0.5 * dy
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f: GradientFunction) -> GradientFunction:
        _register(self._op_type, f)
        return f


@public("no_gradient", "compat.v1.no_gradient", "compat.v1.NoGradient", "compat.v1.NotDifferentiable")
def no_gradient(op_type: str) -> None:
    """Says that an operation type has no gradient.

    >>> tf.no_gradient("AnOperationOfMine")
    """
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string")
    _register(op_type, None)


def _register(name: str, function: GradientFunction | None) -> None:
    if name in _gradient_by_name or name in facts_by_name:
        owner = "an operation of the library" if name in facts_by_name else repr(_gradient_by_name[name])
        raise KeyError(f"Registering two gradient with name '{name}'! (Previous registration: {owner})")
    _gradient_by_name[name] = function


def registered_gradient(name: str) -> GradientFunction | None:
    """The function registered under `name`, None if it was registered to have none; LookupError if nobody did."""
    if name not in _gradient_by_name:
        raise LookupError(f"gradient registry has no entry for: {name}")
    return _gradient_by_name[name]


@contextmanager
def gradient_overrides(op_type_map: Mapping[str, str]) -> Iterator[None]:
    """A block in which operations of the given types take the gradients registered under the given names."""
    if not isinstance(op_type_map, dict) or not all(isinstance(s, str) for pair in op_type_map.items() for s in pair):
        raise TypeError("op_type_map must be a dictionary mapping strings to strings")
    token = _overrides.set({**_overrides.get(), **op_type_map})
    try:
        yield
    finally:
        _overrides.reset(token)


def overriding_name(op_type: str) -> str | None:
    """The name under which the gradient of an operation of this type is to be looked up, or None for its own."""
    return _overrides.get().get(op_type)
