"""`tf.train.Coordinator`: several threads that stop together, and the reason."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tapeflow._src.namespace import public
from tapeflow._src.types.errors import OutOfRangeError


@public("train.Coordinator", "compat.v1.train.Coordinator")
class Coordinator:
    """Threads ask `should_stop()`, any of them calls `request_stop()`, and `join` waits for all.

    >>> coordinator = tf.train.Coordinator()
    >>> coordinator.request_stop()
    >>> coordinator.should_stop()
    True
    """

    def __init__(self, clean_stop_exception_types: Any = None) -> None:
        self._clean = (OutOfRangeError,) if clean_stop_exception_types is None else tuple(clean_stop_exception_types)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._joined = False

    joined = property(lambda self: self._joined)

    def should_stop(self) -> bool:
        """Whether somebody asked to stop."""
        return self._stop.is_set()

    def request_stop(self, ex: Any = None) -> None:
        """Asks all threads to stop; `join` raises the exception, unless it is one that ends a program cleanly."""
        with self._lock:
            if self._joined:
                if isinstance(ex, BaseException):
                    raise ex
                return
            error = ex[1] if isinstance(ex, tuple) else ex
            if isinstance(error, BaseException) and not isinstance(error, self._clean) and not self._stop.is_set():
                self._error = error
            self._stop.set()

    def clear_stop(self) -> None:
        """Forgets that somebody asked."""
        with self._lock:
            self._joined, self._error = False, None
            self._stop.clear()

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Waits until somebody asks to stop, or the time is over; whether somebody did."""
        return self._stop.wait(timeout)

    @contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """A context in which an exception asks all threads to stop, and goes no further."""
        try:
            yield
        except Exception as error:
            self.request_stop(error)

    def register_thread(self, thread: threading.Thread) -> None:
        """Adds a thread that `join` waits for."""
        with self._lock:
            self._threads.append(thread)

    def raise_requested_exception(self) -> None:
        """Raises the exception that was given to `request_stop`, if there is one."""
        if self._error is not None:
            raise self._error

    def join(self, threads: Any = None, stop_grace_period_secs: float = 120, ignore_live_threads: bool = False) -> None:
        """Waits for a stop and for the threads, then raises what was given to `request_stop`."""
        waited_for = [*self._threads, *(t for t in threads or () if t not in self._threads)]
        while any(t.is_alive() for t in waited_for) and not self.wait_for_stop(0.05):
            pass
        end = time.monotonic() + stop_grace_period_secs
        for thread in waited_for:
            thread.join(max(0.0, end - time.monotonic()))
        alive = [t.name for t in waited_for if t.is_alive()]
        with self._lock:
            self._joined, self._threads = True, []
        self.raise_requested_exception()
        if alive and not ignore_live_threads:
            raise RuntimeError(f"Coordinator stopped with threads still running: {' '.join(alive)}")


@public("compat.v1.train.LooperThread")
class LooperThread(threading.Thread):
    """A thread that calls a function again and again until its coordinator stops.

    >>> coordinator = tf.train.Coordinator()
    >>> thread = tf.compat.v1.train.LooperThread(coordinator, 0, coordinator.request_stop)
    >>> thread.start()
    >>> coordinator.join([thread])
    """

    def __init__(
        self, coord: Coordinator, timer_interval_secs: float | None, target: Any = None, args: Any = None,
        kwargs: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(daemon=True)
        if not isinstance(coord, Coordinator):
            raise ValueError(f"'coord' argument must be a Coordinator: {coord}")
        self._coord, self._seconds = coord, timer_interval_secs
        self._call = (target, tuple(args or ()), dict(kwargs or {}))
        coord.register_thread(self)

    @staticmethod
    def loop(
        coord: Coordinator, timer_interval_secs: float | None, target: Any, args: Any = None, kwargs: Any = None
    ) -> LooperThread:
        """Starts such a thread."""
        thread = LooperThread(coord, timer_interval_secs, target, args, kwargs)
        thread.start()
        return thread

    def run(self) -> None:
        """Calls `run_loop`, at once or at its times, until somebody asks to stop."""
        with self._coord.stop_on_exception():
            self.start_loop()
            due = time.monotonic()
            while not self._coord.wait_for_stop(0 if self._seconds is None else max(0.0, due - time.monotonic())):
                due += self._seconds or 0.0
                self.run_loop()
            self.stop_loop()

    def start_loop(self) -> None:
        """Before the first time."""

    def run_loop(self) -> None:
        """Each time: calls the function."""
        target, args, kwargs = self._call
        if target is not None:
            target(*args, **kwargs)

    def stop_loop(self) -> None:
        """After the last time."""
