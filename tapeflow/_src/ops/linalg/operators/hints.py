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
    """Decorates `__init__(self, hints, ...)`: callers give the hints one by one, last; other defaults are None.

    All arguments become the operator's `parameters`.
    """
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
            given = dict(bound.arguments)
            hints = Hints(*(bound.arguments.pop(field) for field in Hints._fields))
            operator, *others = bound.args
            init(operator, hints, *others)
            del given[first.name]
            operator._parameters = given

        begin.__signature__ = whole  # type: ignore[attr-defined]
        return begin

    return decorate


def keeps_parameters(init: Any) -> Callable[..., None]:
    """Decorates `__init__(self, ...)` of an operator: all arguments become its `parameters`."""
    whole = signature(init)

    @wraps(init)
    def begin(*args: Any, **kwargs: Any) -> None:
        bound = whole.bind(*args, **kwargs)
        bound.apply_defaults()
        init(*args, **kwargs)
        operator, *_ = bound.args
        operator._parameters = dict([*bound.arguments.items()][1:])

    return begin


def agreed_hint(given: bool | None, implied: bool | None, message: str) -> bool | None:
    """What the caller said, or what follows from the parts; ValueError with `message` if one contradicts the other."""
    if given is not None and implied is not None and given != implied:
        raise ValueError(message)
    return implied if given is None else given


def is_adjoint_pair(x: Any, y: Any) -> bool:
    """Whether an operator was made as the adjoint of the other; elements are not compared."""
    if x is y and x.is_self_adjoint is not None:
        return bool(x.is_self_adjoint)
    return x.H is y or y.H is x


def is_aat_form(operators: Any) -> bool:
    """Whether a product has the form A1 A2 ... A2^H A1^H."""
    factors = list(operators)
    if not factors:
        raise ValueError("AAT form is undefined for empty operators")
    half = len(factors) // 2
    return len(factors) % 2 == 0 and all(map(is_adjoint_pair, factors[:half], reversed(factors[half:])))
