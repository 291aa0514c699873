"""Functions that give gradients of functions: of `f(x)` by its arguments, of `f()` by the variables that it reads."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tapeflow._src.namespace import find_public
from tapeflow._src.types import nest


def gradients_function(f: Callable[..., Any], params: Sequence[Any] | None = None) -> Callable[..., Any]:
    """A function that gives the derivatives of `f` by its arguments, or by those of `params`, positions or names."""

    def gradients(*args: Any, **kwargs: Any) -> Any:
        return val_and_grad_function(f, params)(*args, **kwargs)[1]

    return gradients


def val_and_grad_function(f: Callable[..., Any], params: Sequence[Any] | None = None) -> Callable[..., Any]:
    """A function that gives the value of `f`, and its derivatives as `gradients_function` does."""

    @functools.wraps(f)
    def value_and_gradients(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        dy = kwargs.pop("dy", None)
        if kwargs:
            raise ValueError(f"Functions to be differentiated cannot receive keyword arguments: got {sorted(kwargs)}.")
        value, vjp = make_vjp(f, params)(*args)
        return value, vjp(dy=dy)

    return value_and_gradients


def make_vjp(
    f: Callable[..., Any], params: Sequence[Any] | None = None, persistent: bool = True
) -> Callable[..., tuple[Any, Callable[..., Any]]]:
    """A function that gives the value of `f`, and a function from its cotangent to those of the arguments."""

    def value_and_vjp(*args: Any) -> tuple[Any, Callable[..., Any]]:
        positions = _positions_of(f, params, len(args))
        convert, identity = find_public("convert_to_tensor"), find_public("identity")
        values = [convert(x) if i in positions else x for i, x in enumerate(args)]
        seen: set[int] = set()
        for i in positions:  # a tensor that is given twice has a derivative for each position
            if id(values[i]) in seen:
                values[i] = identity(values[i])
            seen.add(id(values[i]))
        sources = [values[i] for i in positions]
        tape = find_public("GradientTape")(persistent=persistent)
        with tape:
            for source in sources:
                tape.watch(source)
            result = f(*values)
            if result is None:
                name = getattr(f, "__name__", repr(f))
                raise ValueError(
                    f"Cannot differentiate a function that returns None; did you forget to return a value from {name}?"
                )
            # An argument that is the result keeps a record of its own.
            result = nest.map_structure(lambda y: identity(convert(y)), result)

        def vjp(dy: Any = None) -> Any:
            given = None if dy is None else [convert(x) for x in nest.flatten(dy)]
            return tape.gradient(nest.flatten(result), sources, output_gradients=given)

        return result, vjp

    return value_and_vjp


def _positions_of(f: Callable[..., Any], params: Sequence[Any] | None, count: int) -> list[int]:
    """The positions of the arguments by which the derivative is taken."""
    if params is None:
        return list(range(count))
    names = [*inspect.signature(f).parameters] if any(isinstance(p, str) for p in params) else []
    if params and all(isinstance(p, str) for p in params):
        return [names.index(p) for p in params]
    if all(isinstance(p, int) for p in params):
        return list(params)
    raise ValueError(f"params must be all strings or all integers; got {params}.")


def implicit_val_and_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives the value of `f`, and (derivative, variable) for each trainable variable that it reads."""

    def value_and_gradients(*args: Any, **kwargs: Any) -> tuple[Any, list[tuple[Any, Any]]]:
        with find_public("GradientTape")() as tape:
            value = f(*args, **kwargs)
        if value is None:
            name = getattr(f, "__name__", repr(f))
            raise ValueError(
                f"Cannot differentiate a function that returns None; did you forget to return a value from {name}?"
            )
        variables = tape.watched_variables()
        if not variables:
            raise ValueError("No trainable variables were accessed while the function was being computed.")
        return value, list(zip(tape.gradient(value, variables), variables))

    return value_and_gradients


def implicit_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives (derivative, variable) for each trainable variable that `f` reads."""

    def gradients(*args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        found: list[tuple[Any, Any]] = implicit_val_and_grad(f)(*args, **kwargs)[1]
        return found

    return gradients
