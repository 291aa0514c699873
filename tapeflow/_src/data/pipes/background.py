"""Elements computed ahead by threads, for `prefetch`, `map(num_parallel_calls=)` and `interleave`.

A thread pays only where an element takes longer than a switch between threads. So the first elements are computed when
they are asked for, and threads start once several of them were slow.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tapeflow._src import _core
from tapeflow._src.data.pipes.structure import Leaves
from tapeflow._src.types.errors import FailedPreconditionError

_SLOW = 5e-4  # seconds: an element that takes longer is worth a thread
_SLOW_ELEMENTS = 2
_SWITCH_INTERVAL = 2e-5  # seconds; Python's own 5 ms are as long as a training step
_UNLOCKED_FROM = 30.0  # microseconds: kernels that take so long release the interpreter lock
_SECONDS_TO_END = 5.0


def processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Outcome(NamedTuple):
    """What became of one element: its leaves, an error, or the end of the elements (neither)."""

    leaves: Leaves | None
    error: BaseException | None = None


class _Work:
    """What the threads and the reader of one iteration share. `changed` guards all fields but `source`.

    Element number `issued` is the next to be taken from `source`, by the thread that holds `turn`; number `read` is the
    next to be read. `done` holds the outcomes of elements in between.
    """

    def __init__(self, source: Iterator[Any], function: Callable[[Any], Leaves] | None, window: int) -> None:
        self.source, self.function, self.window = source, function, window
        self.changed, self.turn = threading.Condition(), threading.Lock()
        self.issued = self.read = 0
        self.done: dict[int, _Outcome] = {}
        self.ended = self.closed = False
        self.process = os.getpid()

    def compute(self) -> _Outcome:
        """The next element, computed by the reader itself."""
        try:
            element = next(self.source)
            return _Outcome(self.function(element) if self.function else element)
        except StopIteration:
            return _Outcome(None)

    def run(self) -> None:
        """What a thread does: takes elements and computes them, until there are no more or nobody reads them."""
        while True:
            with self.turn:
                with self.changed:
                    self.changed.wait_for(lambda: self.closed or self.issued - self.read < self.window)
                    if self.closed or self.ended:
                        return
                    number = self.issued
                outcome, element = None, None
                try:
                    element = next(self.source)
                except StopIteration:
                    outcome = _Outcome(None)
                except BaseException as error:
                    outcome = _Outcome(None, error)
                with self.changed:
                    self.issued = number + 1
                    self.ended = outcome is not None and outcome.error is None
            if outcome is None and element is not None:
                try:
                    outcome = _Outcome(self.function(element) if self.function else element)
                except BaseException as error:
                    outcome = _Outcome(None, error)
            assert outcome is not None
            with self.changed:
                self.done[number] = outcome
                self.changed.notify_all()

    def next(self, ordered: bool) -> _Outcome:
        """The next outcome of the threads; any that is done, if they need not come in order. The end comes last."""
        with self.changed:
            self.changed.wait_for(lambda: self._ready(ordered))
            number = self.read if ordered else min(self.done)
            self.read += 1
            self.changed.notify_all()
            return self.done.pop(number)

    def has_next(self, ordered: bool) -> bool:
        """Whether the next outcome is there."""
        with self.changed:
            return self._ready(ordered)

    def _ready(self, ordered: bool) -> bool:
        if ordered:
            return self.read in self.done
        only_end = self.ended and len(self.done) == 1 and self.issued - 1 in self.done
        return bool(self.done) and (not only_end or self.issued - self.read == 1)

    def close(self) -> None:
        """Ends the threads after the element at which they are."""
        if self.process != os.getpid():
            return  # the threads, and with them who holds the locks, are in another process
        with self.changed:
            self.closed = True
            self.changed.notify_all()


class _Threads:
    """All threads that compute elements. While there are any, the interpreter lock changes hands more often."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._alive: set[threading.Thread] = set()
        self._interval = 0.0

    def start(self, work: _Work, count: int) -> None:
        """Starts threads for a work."""
        for _ in range(count):
            thread = threading.Thread(target=self._run, args=(work,), name="tapeflow-data", daemon=True)
            with self._lock:
                if not self._alive:
                    self._interval = sys.getswitchinterval()
                    sys.setswitchinterval(min(self._interval, _SWITCH_INTERVAL))
                    _core.unlock_from(_UNLOCKED_FROM)
                self._alive.add(thread)
            thread.start()

    def _run(self, work: _Work) -> None:
        try:
            work.run()
        finally:
            with self._lock:
                self._alive.discard(threading.current_thread())
                if not self._alive:
                    self._restore()

    def _restore(self) -> None:
        sys.setswitchinterval(self._interval)
        _core.unlock_from(None)

    def join(self) -> None:
        """Waits for threads that were stopped: the interpreter must not end in the middle of an element."""
        deadline = time.monotonic() + _SECONDS_TO_END
        for thread in list(self._alive):
            thread.join(max(0.0, deadline - time.monotonic()))

    def forget(self) -> None:
        """Forgets the threads of the parent process."""
        self._lock = threading.RLock()
        if self._alive:
            self._alive.clear()
            self._restore()


_threads = _Threads()
atexit.register(_threads.join)  # runs after the finalizers of all `Ahead`
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.forget)


class Ahead:
    """The elements of `source`, or a function of them; `threads` threads compute up to `window` of them ahead.

    They start once several elements were slow, or with the first one (`at_once`).
    """

    def __init__(
        self,
        source: Iterator[Any],
        window: int,
        function: Callable[[Any], Leaves] | None = None,
        threads: int = 1,
        ordered: bool = True,
        at_once: bool = False,
    ) -> None:
        self._work = _Work(source, function, max(1, window))
        self._at_once = at_once
        self._threads, self._ordered = threads, ordered
        self._slow, self._started, self._ended = 0, False, False
        self._close: Any = None

    def __iter__(self) -> Ahead:
        return self

    def __next__(self) -> Leaves:
        if self._ended:
            raise StopIteration
        if self._at_once and not self._started:
            self._start()
        outcome = self._work_ahead() if self._started else self._compute()
        if outcome.error is not None:
            raise outcome.error
        if outcome.leaves is None:
            self._ended = True
            raise StopIteration
        return outcome.leaves

    def is_ready(self) -> bool:
        """Whether the next element need not be waited for."""
        if self._at_once and not self._started:
            self._start()
        return not self._started or self._ended or self._work.has_next(self._ordered)

    def _compute(self) -> _Outcome:
        start = time.perf_counter()
        try:
            return self._work.compute()
        finally:
            self._slow += time.perf_counter() - start > _SLOW
            if self._slow >= _SLOW_ELEMENTS:
                self._start()

    def _start(self) -> None:
        self._started = True
        self._close = weakref.finalize(self, self._work.close)
        _threads.start(self._work, self._threads)

    def _work_ahead(self) -> _Outcome:
        if self._work.process != os.getpid():
            raise FailedPreconditionError.of(
                "tf.data.Iterator: the elements of this iterator are computed by threads of the parent process; make a "
                "new iterator in the child process."
            )
        return self._work.next(self._ordered)
