"""Notices in docstrings and properties of classes: `tensorflow.python.util.decorator_utils`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

_NOTICES = ("Deprecated", "Warning", "Caution", "Important", "Note")


def get_qualified_name(function: Any) -> str:
    """The name of a function with the classes that it stands in."""
    name: str = getattr(function, "__qualname__", None) or function.__name__
    return name


def add_notice_to_docstring(
    doc: str | None,
    instructions: str | None,
    no_doc_str: str,
    suffix_str: str,
    notice: list[str],
    notice_type: str = "Warning",
) -> str:
    """A docstring whose first line has a suffix and is followed by a notice; without one, a text in its place."""
    if notice_type not in _NOTICES:
        raise ValueError(f"Unrecognized notice type. Should be one of: {list(_NOTICES)}")
    if not notice:
        raise ValueError("The `notice` arg must not be empty.")
    lines = [f"{notice_type}: {notice[0]}", *notice[1:], *([instructions] if instructions else [])]
    if not doc:
        return "\n".join([no_doc_str, "", *lines])
    first, *body = [line.rstrip() for line in inspect.cleandoc(doc).rstrip().splitlines()] or [""]
    gap = [""] if body and body[0].strip() else []
    return "\n".join([f"{first} {suffix_str}", "", *lines, *gap, *body])


def validate_callable(func: Any, decorator_name: str) -> None:
    """ValueError unless a decorated object can be called."""
    if not callable(func):
        raise ValueError(
            f"{func} is not a function. If this is a property, make sure @property appears before @{decorator_name} in "
            f"your source code:\n\n@property\n@{decorator_name}\ndef method(...)"
        )


class classproperty:  # noqa: N801
    """A property of a class: a method that takes the class and is read without a call."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self._func = func

    def __get__(self, owner_self: Any, owner_cls: Any) -> Any:
        return self._func(owner_cls)


class _CachedClassProperty(classproperty):
    """The same, computed once for each class."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        super().__init__(func)
        self._value_by_class: dict[Any, Any] = {}

    def __get__(self, owner_self: Any, owner_cls: Any) -> Any:
        if owner_cls not in self._value_by_class:
            self._value_by_class[owner_cls] = self._func(owner_cls)
        return self._value_by_class[owner_cls]

    def __set__(self, owner_self: Any, value: Any) -> None:
        raise AttributeError("property has no setter")

    def __delete__(self, owner_self: Any) -> None:
        raise AttributeError("property has no deleter")


def cached_classproperty(func: Callable[[Any], Any]) -> Any:
    """A property of a class that is computed once for the class and once for each class below it."""
    return _CachedClassProperty(func)


NAMES: dict[str, Any] = {
    "add_notice_to_docstring": add_notice_to_docstring,
    "cached_classproperty": cached_classproperty,
    "classproperty": classproperty,
    "get_qualified_name": get_qualified_name,
    "validate_callable": validate_callable,
}
