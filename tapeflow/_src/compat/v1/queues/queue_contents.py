"""The elements of a queue in one session: threads that put and take them wait for each other. It knows no graph."""

from __future__ import annotations

import heapq
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from tapeflow._src.types.errors import CancelledError, DeadlineExceededError, OutOfRangeError

Element = tuple[Any, ...]


class Deadline(threading.local):
    """When the present run of this thread gives up waiting, by the monotonic clock; None if it never does."""

    moment: float | None = None


deadline = Deadline()


class Elements:
    """Elements in the order in which they were put in."""

    def __init__(self) -> None:
        self._items: deque[Element] = deque()

    def __len__(self) -> int:
        return len(self._items)

    def put(self, element: Element) -> None:
        """Adds an element."""
        self._items.append(element)

    def put_back(self, elements: list[Element]) -> None:
        """Undoes the last takings."""
        self._items.extendleft(reversed(elements))

    def take(self) -> Element:
        """The element whose turn it is."""
        return self._items.popleft()


class ShuffledElements(Elements):
    """Elements in a random order."""

    def __init__(self, seed: int | None) -> None:
        super().__init__()
        self._random = random.Random(seed)

    def take(self) -> Element:
        """Any element."""
        place = self._random.randrange(len(self._items))
        self._items[place], self._items[-1] = self._items[-1], self._items[place]
        return self._items.pop()


class SortedElements(Elements):
    """Elements by their first part, the smallest first; equal ones in the order in which they were put in."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Element]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._heap)

    def put(self, element: Element) -> None:
        """Adds an element."""
        self._count += 1
        heapq.heappush(self._heap, (int(element[0]), self._count, element))

    def put_back(self, elements: list[Element]) -> None:
        """Undoes the last takings."""
        for element in elements:
            self.put(element)

    def take(self) -> Element:
        """The element of the smallest number."""
        return heapq.heappop(self._heap)[2]


class Shared:
    """What threads share in one session: each may wait until another one changes it."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._changed = threading.Condition()
        self._abandoned = False

    def _wait_for(
        self, ready: Callable[[], bool], what: str, why: str, given_up: Callable[[], bool] = lambda: False
    ) -> None:
        while not ready():
            if self._abandoned or given_up():
                raise CancelledError.of(f"{what} operation was cancelled")
            left = None if deadline.moment is None else deadline.moment - time.monotonic()
            if left is not None and left <= 0:
                raise DeadlineExceededError.of("Timed out waiting for notification")
            if left is None and threading.active_count() == 1:
                raise DeadlineExceededError.of(
                    f"{what}: {self._label} {why}, and no other thread runs that could change that. Threads that fill "
                    "queues are started by tf.compat.v1.train.start_queue_runners(sess, coord).",
                )  # fmt: skip
            self._changed.wait(1.0 if left is None else min(left, 1.0))
        if self._abandoned or given_up():
            raise CancelledError.of(f"{what} operation was cancelled")

    def abandon(self) -> None:
        """Whoever waits is sent away: the session ends."""
        with self._changed:
            self._abandoned = True
            self._changed.notify_all()


class Contents(Shared):
    """What a queue holds, at most `capacity` elements; takers leave `reserve` of them until it is closed."""

    _size_word = "current size"

    def __init__(self, label: str, capacity: int, elements: Elements, reserve: int = 0) -> None:
        super().__init__(label)
        self._elements, self._reserve = elements, reserve
        self._capacity = capacity if capacity > 0 else None
        self._one_taker = threading.RLock()  # who waits for several elements gets them all before others get one
        self._closed = self._enqueues_cancelled = False

    def put(self, elements: list[Element]) -> None:
        """Adds elements one after the other, and waits while there is no room."""
        with self._changed:
            if self._closed:
                raise CancelledError.of(f"{self._label} is closed.")
            for element in elements:
                self._wait_for(self._has_room, "Enqueue", "is full", lambda: self._enqueues_cancelled)
                self._elements.put(element)
                self._changed.notify_all()

    def _has_room(self) -> bool:
        return self._capacity is None or len(self._elements) < self._capacity

    def take(self, count: int, fewer_at_the_end: bool = False) -> list[Element]:
        """`count` elements, as soon as they are there; of a closed queue, fewer if they are allowed to be."""
        taken: list[Element] = []
        with self._one_taker, self._changed:
            try:
                while len(taken) < count:
                    self._wait_for(lambda: self._has_more() or self._closed, "Dequeue", "is empty")
                    if not self._has_more():
                        break
                    taken.append(self._elements.take())
                    self._changed.notify_all()
            except BaseException:
                self._elements.put_back(taken)
                raise
            if len(taken) == count or (fewer_at_the_end and taken):
                return taken
            self._elements.put_back(taken)
            raise OutOfRangeError.of(
                f"{self._label} is closed and has insufficient elements "
                f"(requested {count}, {self._size_word} {len(self._elements)})",
            )  # fmt: skip

    def _has_more(self) -> bool:
        return len(self._elements) > (0 if self._closed else self._reserve)

    def close(self, cancel_pending_enqueues: bool) -> None:
        """No more elements come; those that wait to be put in do, unless they are cancelled."""
        with self._changed:
            self._closed = True
            self._enqueues_cancelled = self._enqueues_cancelled or cancel_pending_enqueues
            self._changed.notify_all()

    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def __len__(self) -> int:
        return len(self._elements)
