"""`RawOperation`, a raw operation as a callable, and all of them by name."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable
from typing import Any

_REQUIRED = inspect.Parameter.empty


class RawOperation:
    """One raw operation: takes keyword arguments alone, and gives their values to a function in order."""

    def __init__(self, name: str, arguments: str, target: Callable[..., Any], count: int | None) -> None:
        self.__name__ = self.__qualname__ = name
        self.__doc__ = f"TensorFlow's operation `{name}`."
        self._arguments, self._target, self._count = arguments, target, count

    @functools.cached_property
    def _parameters(self) -> list[tuple[str, Any]]:
        """Argument names and defaults of "x, axis, keep_dims=False"."""
        parameters = ast.parse(f"def f({self._arguments}): pass").body[0].args  # type: ignore[attr-defined]
        names = [a.arg for a in parameters.args]
        defaults = [ast.literal_eval(d) for d in parameters.defaults]
        return list(zip(names, [_REQUIRED] * (len(names) - len(defaults)) + defaults))

    @property
    def __signature__(self) -> inspect.Signature:
        keyword = inspect.Parameter.KEYWORD_ONLY
        shown = [inspect.Parameter(key, keyword, default=default) for key, default in self._parameters]
        return inspect.Signature([*shown, inspect.Parameter("name", keyword, default=None)])

    def __call__(self, *positional: Any, **given: Any) -> Any:
        if positional:
            keys = ", ".join(f"{key!r}" for key, _ in self._parameters)
            raise TypeError(
                f"{self.__name__} only takes keyword args (possible keys: [{keys}, 'name']). Please pass these args as "
                "kwargs instead."
            )
        values = []
        for key, default in self._parameters:
            value = given.pop(key, default)
            if value is _REQUIRED:
                raise TypeError(f"{self.__name__}() missing 1 required keyword argument: '{key}'")
            values.append(value)
        given.pop("name", None)
        if given:
            raise TypeError(f"{self.__name__}() got an unexpected keyword argument '{next(iter(given))}'")
        return self._target(*values[: self._count])

    def __get__(self, instance: object, owner: type | None = None) -> RawOperation:
        """As an attribute of a class it stays as it is; with this, `help` knows it for a function."""
        return self

    def __repr__(self) -> str:
        return f"<tf.raw_ops.{self.__name__}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return find_raw_operation, (self.__name__,)


operation_by_name: dict[str, RawOperation] = {}


def find_raw_operation(name: str) -> RawOperation:
    """The raw operation with this name."""
    return operation_by_name[name]


def has_raw_operation(name: str) -> bool:
    """Whether there is a raw operation with this name."""
    return name in operation_by_name
