"""AutoGraph's operators under the names and with the arguments of `tensorflow.python.autograph.operators`."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src.function.autograph import operators
from tapeflow._src.function.autograph.builtins import call_builtin, print_when_run
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.effects.assertions import Assert
from tapeflow._src.types import nest

_missing = object()


def and_(a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    """`a() and b()`: the second is called only if the first is true."""
    return operators.and_(a(), b)


def or_(a: Callable[[], Any], b: Callable[[], Any]) -> Any:
    """`a() or b()`: the second is called only if the first is false."""
    return operators.or_(a(), b)


def eq(a: Any, b: Any) -> Any:
    """`a == b`."""
    return find_public("equal")(a, b) if _core.is_tensor(a) or _core.is_tensor(b) else a == b


def not_eq(a: Any, b: Any) -> Any:
    """`a != b`."""
    return operators.not_(eq(a, b))


def if_exp(cond: Any, if_true: Callable[[], Any], if_false: Callable[[], Any], expr_repr: str) -> Any:
    """`if_true() if cond else if_false()`; the text of the expression stands in errors."""
    return operators.if_expression(cond, if_true, if_false, expr_repr)


def assert_stmt(expression1: Any, expression2: Callable[[], Any]) -> Any:
    """`assert expression1, expression2()`; in a graph, the operation that fails with the values of the second."""
    if not callable(expression2):
        raise ValueError(f"{expression2} must be a callable")
    if not _core.is_tensor(expression1):
        assert expression1, expression2()
        return None
    shown = expression2()
    return Assert(expression1, list(shown) if isinstance(shown, list | tuple) else [shown])


class Undefined:
    """Stands for a variable without a value; what is read of it is without a value, too."""

    __slots__ = ("symbol_name",)

    def __init__(self, symbol_name: str) -> None:
        self.symbol_name = symbol_name

    def read(self) -> Any:
        """UnboundLocalError."""
        raise UnboundLocalError(f"'{self.symbol_name}' is used before assignment")

    def __repr__(self) -> str:
        return self.symbol_name

    def __getattr__(self, name: str) -> Undefined:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: Any) -> Undefined:
        return self


def ld(v: Any) -> Any:
    """The value of a variable; UnboundLocalError if it has none."""
    return v.read() if isinstance(v, Undefined) else v


def ldu(load_v: Callable[[], Any], name: str) -> Any:
    """The value that a function reads, or an `Undefined` where there is none."""
    try:
        return load_v()
    except (KeyError, AttributeError, NameError):
        return Undefined(name)


def print_(*objects: Any, **kwargs: Any) -> Any:
    """Python's `print`, when the graph runs if a tensor is printed."""
    unknown = set(kwargs) - {"end", "file", "flush", "sep"}
    if unknown:
        raise ValueError(f"invalid keyword arguments: {sorted(unknown)}")
    return (
        print_when_run(*objects, **kwargs)
        if any(map(operators.staged, objects))
        else builtins.print(*objects, **kwargs)
    )


def next_(iterator: Any, default: Any = _missing) -> Any:
    """Python's `next`; of an iterator of a dataset the default must have the structure of its elements."""
    if not hasattr(iterator, "get_next_as_optional") or not _core.is_tracing():
        return builtins.next(iterator) if default is _missing else builtins.next(iterator, default)
    if default is _missing:
        return iterator.get_next()
    spec = iterator.element_spec
    try:
        nest.assert_same_structure(spec, default)
    except (TypeError, ValueError):
        raise TypeError(
            f"next: the default must have the same element structure as the iterator; got {default} and {spec}"
        ) from None
    given = nest.map_structure(find_public("convert_to_tensor"), default)
    for wanted, value in zip(nest.flatten(spec), nest.flatten(given)):
        if value.dtype != wanted.dtype:
            raise TypeError(f"next: the default has dtype {value.dtype.name} in place of {wanted.dtype.name}")
    found = iterator.get_next_as_optional()
    return find_public("cond")(found.has_value(), found.get_value, lambda: given)


def staged_builtin(name: str) -> Callable[..., Any]:
    """A builtin of Python as functions that AutoGraph converts call it."""
    function = getattr(builtins, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        return call_builtin(function, args, kwargs)

    call.__name__ = call.__qualname__ = f"{name}_"
    return call


names_by_path: dict[str, dict[str, Any]] = {
    "python.autograph.operators.conditional_expressions": {"if_exp": if_exp},
    "python.autograph.operators.exceptions": {"assert_stmt": assert_stmt},
    "python.autograph.operators.logical": {
        "and_": and_,
        "eq": eq,
        "not_": operators.not_,
        "not_eq": not_eq,
        "or_": or_,
    },
    "python.autograph.operators.py_builtins": {
        "filter_": staged_builtin("filter"),
        "map_": staged_builtin("map"),
        "next_": next_,
        "print_": print_,
    },
    "python.autograph.operators.variables": {"Undefined": Undefined, "ld": ld, "ldu": ldu},
}
