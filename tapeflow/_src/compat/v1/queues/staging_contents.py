"""What staging areas hold in one session: tuples in order or by key, limited in number and bytes. It knows no graph."""

from __future__ import annotations

from typing import Any

from tapeflow._src.compat.v1.queues.queue_contents import Shared
from tapeflow._src.types.errors import InvalidArgumentError, ResourceExhaustedError

Parts = list[Any]  # one for each component; None where it is absent


def _bytes_of(parts: Parts) -> int:
    return sum(int(part.shape.num_elements()) * part.dtype.size for part in parts if part is not None)


class _Limited(Shared):
    """Tuples that wait outside while those inside are too many, or too large."""

    def __init__(self, label: str, capacity: int, memory_limit: int) -> None:
        super().__init__(label)
        self._capacity, self._memory_limit = capacity, memory_limit
        self._bytes = 0

    def _wait_for_room(self, new: int) -> None:
        if 0 < self._memory_limit < new:
            raise ResourceExhaustedError.of(
                f"Attempted to insert tensors with combined size of '{new}' bytes into Staging Area with a memory "
                f"limit of '{self._memory_limit}'."
            )
        self._wait_for(lambda: self._has_room(new), "Stage", "is full")
        self._bytes += new

    def _has_room(self, new: int) -> bool:
        full = 0 < self._capacity <= len(self)
        return not full and not 0 < self._memory_limit < self._bytes + new

    def __len__(self) -> int:
        raise NotImplementedError


class StagedTuples(_Limited):
    """Tuples in the order in which they came."""

    def __init__(self, label: str, capacity: int, memory_limit: int) -> None:
        super().__init__(label, capacity, memory_limit)
        self._tuples: list[Parts] = []

    def __len__(self) -> int:
        return len(self._tuples)

    def put(self, parts: Parts) -> None:
        """Adds a tuple as soon as there is room."""
        with self._changed:
            self._wait_for_room(_bytes_of(parts))
            self._tuples.append(parts)
            self._changed.notify_all()

    def get(self) -> Parts:
        """Takes the oldest tuple out."""
        with self._changed:
            self._wait_for(lambda: bool(self._tuples), "Unstage", "is empty")
            parts = self._tuples.pop(0)
            self._bytes -= _bytes_of(parts)
            self._changed.notify_all()
            return parts

    def peek(self, index: int) -> Parts:
        """The tuple at a place, as soon as there is one."""
        with self._changed:
            self._wait_for(lambda: index < len(self._tuples), "StagePeek", f"has no tuple {index}")
            return self._tuples[index]

    def clear(self) -> None:
        """Drops all tuples."""
        with self._changed:
            self._tuples, self._bytes = [], 0
            self._changed.notify_all()


class StagedMap(_Limited):
    """Tuples by key, which may come and go component by component."""

    def __init__(self, label: str, capacity: int, memory_limit: int, ordered: bool) -> None:
        super().__init__(label, capacity, memory_limit)
        self._ordered = ordered
        self._complete: dict[int, Parts] = {}
        self._incomplete: dict[int, Parts] = {}

    def __len__(self) -> int:
        return len(self._complete)

    def incomplete_count(self) -> int:
        """How many keys lack a component that did not come yet."""
        return len(self._incomplete)

    def put(self, key: int, indices: list[int], values: Parts, count: int) -> None:
        """Sets these components of a key; one that then has all `count` of them enters as soon as there is room."""
        with self._changed:
            parts = list(self._incomplete.get(key, [None] * count))
            for index, value in zip(indices, values):
                if parts[index] is not None:
                    raise InvalidArgumentError.of(
                        f"The tensor for index '{index}' for key '{key}' was already initialized"
                    )
                parts[index] = value
            if any(part is None for part in parts):
                self._incomplete[key] = parts
                return
            self._incomplete.pop(key, None)
            if key in self._complete:  # the first stays, as in TensorFlow
                return
            self._wait_for_room(_bytes_of(parts))
            self._complete[key] = parts
            self._changed.notify_all()

    def peek(self, key: int, indices: list[int]) -> Parts:
        """These components of a key, as soon as it is complete."""
        with self._changed:
            return self._components(self._wait_for_key(key), indices)

    def get(self, key: int | None, indices: list[int]) -> tuple[int, Parts]:
        """Takes these components of a key out, or of any one (of an ordered map, the smallest)."""
        with self._changed:
            if key is None:
                self._wait_for(lambda: bool(self._complete), "MapUnstageNoKey", "is empty")
                key = min(self._complete) if self._ordered else next(iter(self._complete))
            else:
                self._wait_for_key(key)
            found = self._components(key, indices)
            self._bytes -= _bytes_of(found)
            left = [None if i in indices else part for i, part in enumerate(self._complete[key])]
            if any(part is not None for part in left):
                self._complete[key] = left
            else:
                del self._complete[key]
            self._changed.notify_all()
            return key, found

    def _wait_for_key(self, key: int) -> int:
        self._wait_for(lambda: key in self._complete, "MapUnstage", f"has no key {key}")
        return key

    def _components(self, key: int, indices: list[int]) -> Parts:
        parts = self._complete[key]
        for index in indices:
            if parts[index] is None:
                raise InvalidArgumentError.of(f"Tensor at index '{index}' for key '{key}' has already been removed.")
        return [parts[index] for index in indices]

    def clear(self) -> None:
        """Drops all tuples, complete or not."""
        with self._changed:
            self._complete, self._incomplete, self._bytes = {}, {}, 0
            self._changed.notify_all()
