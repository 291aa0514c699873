"""Families of functions that share most of their arguments, such as losses and metrics: a member states its formula."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from tapeflow._src.compat.v1.signatures.declaration import bind, parse_signature
from tapeflow._src.namespace import public

Formula = Callable[..., Any]


def family(namespace: str, shared: str, run: Callable[..., Any]) -> Callable[..., Callable[[Formula], Formula]]:
    """A decorator that defines members of a family: their own arguments are followed by the `shared` ones.

    Keyword-only arguments of a member stand after the first shared one. A call runs
    `run(label, formula, **shared)`: `formula` has its own arguments already, except for those that begin with an
    underscore, which `run` gives; `label` is the member's name unless `label=` is given.
    """
    shared_parameters = list(parse_signature(shared).parameters.values())

    def member(name: str, label: str | None = None) -> Callable[[Formula], Formula]:
        def define(formula: Formula) -> Formula:
            own = [p for p in inspect.signature(formula).parameters.values() if not p.name.startswith("_")]
            signature = _joined(own, shared_parameters)

            def call(*args: Any, **kwargs: Any) -> Any:
                arguments = bind(name, signature, args, kwargs)
                given = {p.name: arguments.pop(p.name) for p in own}
                return run(label or name, functools.partial(formula, **given), **arguments)

            call.__name__ = call.__qualname__ = name
            call.__module__ = f"tapeflow.compat.v1.{namespace}"
            call.__doc__ = formula.__doc__
            call.__signature__ = signature  # type: ignore[attr-defined]
            return public(f"compat.v1.{namespace}.{name}")(call)

        return define

    return member


def _joined(own: list[inspect.Parameter], shared: list[inspect.Parameter]) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    first = [p for p in own if p.kind is kind]
    inner = [p.replace(kind=kind) for p in own if p.kind is not kind]
    return inspect.Signature([*first, shared[0], *inner, *shared[1:]])
