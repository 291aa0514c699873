"""Sets and dictionaries that compare objects by identity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, MutableSet
from typing import Any


class ObjectIdentityDictionary(MutableMapping[Any, Any]):
    """A dictionary by identity of its keys."""

    def __init__(self) -> None:
        self._storage: dict[int, tuple[Any, Any]] = {}

    def __getitem__(self, key: Any) -> Any:
        try:
            return self._storage[id(key)][1]
        except KeyError:
            raise KeyError(key) from None

    def __setitem__(self, key: Any, value: Any) -> None:
        self._storage[id(key)] = key, value

    def __delitem__(self, key: Any) -> None:
        del self._storage[id(key)]

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._storage.values())

    def __len__(self) -> int:
        return len(self._storage)


class ObjectIdentitySet(MutableSet[Any]):
    """A set by identity of its members."""

    def __init__(self, *args: Iterable[Any]) -> None:
        self._storage = {id(value): value for values in args for value in values}

    def __contains__(self, value: object) -> bool:
        return id(value) in self._storage

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._storage.values()))

    def __len__(self) -> int:
        return len(self._storage)

    def add(self, value: Any) -> None:
        """Puts an object in."""
        self._storage[id(value)] = value

    def discard(self, value: Any) -> None:
        """Takes an object out if it is in."""
        self._storage.pop(id(value), None)

    def difference(self, values: Iterable[Any]) -> ObjectIdentitySet:
        """The members that are not among `values`."""
        others = {id(value) for value in values}
        return ObjectIdentitySet(value for value in self if id(value) not in others)

    def update(self, values: Iterable[Any]) -> None:
        """Puts many objects in."""
        for value in values:
            self.add(value)
