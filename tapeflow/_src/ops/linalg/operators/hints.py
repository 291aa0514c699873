"""What the caller of an operator's constructor says about the matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, NamedTuple


class Hints(NamedTuple):
    """What the caller says about an operator, and its name: the last five arguments of most operators."""

    is_non_singular: bool | None
    is_self_adjoint: bool | None
    is_positive_definite: bool | None
    is_square: bool | None
    name: str | None


def takes_hints(name: str | None = None, is_square: bool | None = None) -> Callable[[Any], Callable[..., None]]:
    """Decorates `__init__(self, hints, ...)`: callers give the hints one by one, last; other defaults are None."""
    defaults = Hints(None, None, None, is_square, name)

    def decorate(init: Any) -> Callable[..., None]:
        first, _, *own = signature(init).parameters.values()
        types = Hints.__annotations__
        last = [
            Parameter(field, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=types[field])
            for field, default in zip(Hints._fields, defaults)
        ]
        whole = Signature([first, *own, *last], return_annotation=signature(init).return_annotation)

        @wraps(init)
        def begin(*args: Any, **kwargs: Any) -> None:
            bound = whole.bind(*args, **kwargs)
            bound.apply_defaults()
            hints = Hints(*(bound.arguments.pop(field) for field in Hints._fields))
            operator, *others = bound.args
            init(operator, hints, *others)

        begin.__signature__ = whole  # type: ignore[attr-defined]
        return begin

    return decorate


def agreed_hint(given: bool | None, implied: bool | None, message: str) -> bool | None:
    """What the caller said, or what follows from the parts; ValueError with `message` if one contradicts the other."""
    if given is not None and implied is not None and given != implied:
        raise ValueError(message)
    return implied if given is None else given
