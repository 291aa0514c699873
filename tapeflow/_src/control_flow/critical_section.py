"""`tf.CriticalSection`, and contexts about how work is distributed over threads, of which there is nothing to set."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tapeflow._src.namespace import public


class _Lock:
    """A lock that knows which thread holds it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.holder: int | None = None

    def __enter__(self) -> None:
        self._lock.acquire()
        self.holder = threading.get_ident()

    def __exit__(self, *error: object) -> None:
        self.holder = None
        self._lock.release()


_shared_locks: dict[str, _Lock] = {}


@public("CriticalSection", "compat.v1.CriticalSection")
class CriticalSection:
    """Runs functions one at a time, whatever thread they are called from.

    >>> section, v = tf.CriticalSection(), tf.Variable(0)
    >>> section.execute(lambda: v.assign_add(1))
    <tf.Variable 'Variable:0' shape=() dtype=int32, numpy=1>
    """

    def __init__(
        self,
        name: str | None = None,
        shared_name: str | None = None,
        critical_section_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        self._name = name or shared_name or "critical_section"
        self._lock = _shared_locks.setdefault(shared_name, _Lock()) if shared_name else _Lock()

    @property
    def name(self) -> str:
        """The name that was given."""
        return self._name

    def execute(self, fn: Callable[[], Any], exclusive_resource_access: bool = True, name: str | None = None) -> Any:
        """What `fn()` returns; in a graph its operations run in the order of the program, one run at a time."""
        if self._lock.holder == threading.get_ident():
            raise ValueError(
                f"Attempting to lock a CriticalSection (name={self._name!r}) in which we are already running. This is "
                "illegal and may cause deadlocks."
            )
        with self._lock:
            return fn()


@public("experimental.async_scope")
@contextmanager
def async_scope() -> Iterator[None]:
    """A context in which operations may be done later than their call returns; here they are done then.

    >>> with tf.experimental.async_scope():
    ...     tf.add(1, 2)
    <tf.Tensor: shape=(), dtype=int32, numpy=3>
    """
    yield


@public("experimental.async_clear_error")
def async_clear_error() -> None:
    """Forgets an error of an operation that was done later; there is none.

    >>> tf.experimental.async_clear_error()
    """


@public("experimental.function_executor_type")
@contextmanager
def function_executor_type(executor_type: str | None) -> Iterator[None]:
    """A context with another executor of graphs; there is one.

    >>> with tf.experimental.function_executor_type("SINGLE_THREADED_EXECUTOR"):
    ...     tf.function(lambda: tf.constant(1))()
    <tf.Tensor: shape=(), dtype=int32, numpy=1>
    """
    yield
