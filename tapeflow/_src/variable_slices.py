"""Assignments to a part of a variable, `v[key].assign(value)`, at once and in graphs."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core


class SliceAssignment:
    """`v[key].assign(value)`: writes into a part of a variable."""

    __slots__ = ("_key", "_variable")

    def __init__(self, variable: Any, key: Any) -> None:
        self._variable, self._key = variable, key

    def __call__(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        variable = self._variable
        if not _core.is_tracing():
            return variable._assign_slice(self._key, value)
        parts, are_slices = _key_parts(self._key)
        return variable._update_later(assign_slice, parts, are_slices, value)


def assign_slice(variable: Any, parts: list[Any], are_slices: list[bool], value: Any) -> None:
    """Writes into the part of a variable that an index expression names; see `key_from`."""
    variable._assign_slice(key_from(parts, are_slices), value)


def _key_parts(key: Any) -> tuple[list[Any], list[Any]]:
    """The numbers and tensors of an index expression, and for each part of it whether it was a slice."""
    items = list(key) if isinstance(key, tuple) else [key]
    parts: list[Any] = []
    for item in items:
        parts += [item.start, item.stop, item.step] if isinstance(item, slice) else [item]
    return parts, [isinstance(item, slice) for item in items]


def key_from(parts: list[Any], are_slices: list[bool]) -> tuple[Any, ...]:
    """The index expression of these numbers and tensors."""
    rest = iter(parts)
    return tuple([slice(next(rest), next(rest), next(rest)) if is_slice else next(rest) for is_slice in are_slices])
