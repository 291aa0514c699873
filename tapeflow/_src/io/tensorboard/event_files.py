"""Event files, which TensorBoard reads: records of events, each a moment with values; and who writes them."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tapeflow._src import _core
from tapeflow._src.io.protos import messages
from tapeflow._src.io.records import framed
from tapeflow._src.namespace import public
from tapeflow._src.types.file_errors import file_errors, file_name


class _Defaults(threading.local):
    """The writer, the step and the condition that functions use which are given none."""

    def __init__(self) -> None:
        self.writer: Any = None
        self.step: Any = None
        self.condition: Any = True


defaults = _Defaults()
_numbers = itertools.count()


@public("summary.SummaryWriter")
class SummaryWriter:
    """Writes values to an event file; `as_default()` is the context in which `tf.summary.scalar` and others use it.

    >>> writer = tf.summary.create_file_writer("logs")
    >>> isinstance(writer, tf.summary.SummaryWriter)
    True
    """

    def __init__(self, folder: str | None = None, suffix: str = ".v2", most_waiting: int = 10) -> None:
        self._folder, self._suffix, self._most_waiting = folder, suffix, most_waiting
        self._file: Any = None
        self._waiting: list[bytes] = []
        self._closed = False
        self._lock = threading.Lock()

    @contextmanager
    def as_default(self, step: Any = None) -> Iterator[SummaryWriter]:
        """A context in which this is the writer, and `step` the step where none is given."""
        if self._closed:
            raise RuntimeError("SummaryWriter is already closed")
        before = defaults.writer, defaults.step
        defaults.writer = self
        if step is not None:
            defaults.step = step
        try:
            yield self
        finally:
            self.flush()
            defaults.writer, defaults.step = before

    def set_as_default(self, step: Any = None) -> None:
        """Makes this the writer from now on."""
        if self._closed:
            raise RuntimeError("SummaryWriter is already closed")
        defaults.writer = self
        if step is not None:
            defaults.step = step

    def init(self) -> None:
        """Opens the file."""
        with self._lock:
            self._open()

    def _open(self) -> None:
        if self._file is not None or self._folder is None:
            return
        now = time.time()
        name = f"events.out.tfevents.{int(now)}.{os.uname().nodename}.{os.getpid()}.{next(_numbers)}{self._suffix}"
        with file_errors(self._folder):
            os.makedirs(self._folder, exist_ok=True)
            self._file = open(os.path.join(self._folder, name), "ab")  # noqa: SIM115
        writer = messages.SourceMetadata(writer="tapeflow")
        first = messages.Event(wall_time=now, file_version="brain.Event:2", source_metadata=writer)
        self._file.write(framed(first.SerializeToString()))
        self._file.flush()

    def write(self, event: Any) -> bool:
        """Adds an event; whether it is kept."""
        if self._folder is None or self._closed:
            return False
        with self._lock:
            self._waiting.append(framed(event.SerializeToString()))
        if len(self._waiting) >= self._most_waiting:
            self.flush()
        return True

    def flush(self) -> None:
        """Writes buffered data."""
        with self._lock:
            if self._closed or self._folder is None:
                return
            self._open()
            self._file.write(b"".join(self._waiting))
            self._waiting.clear()
            self._file.flush()

    def close(self) -> None:
        """Ends the file."""
        self.flush()
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
            self._closed = self._folder is not None

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()


@public("summary.create_file_writer")
def create_file_writer(
    logdir: Any,
    max_queue: Any = None,
    flush_millis: Any = None,
    filename_suffix: Any = None,
    name: str | None = None,
    experimental_trackable: bool = False,
    experimental_mesh: Any = None,
) -> SummaryWriter:
    """A writer of an event file in a folder.

    >>> with tf.summary.create_file_writer("logs").as_default():
    ...     tf.summary.scalar("loss", 0.5, step=1)
    <tf.Tensor: shape=(), dtype=bool, numpy=True>
    """
    if logdir is None:
        raise ValueError("Argument `logdir` cannot be None")
    suffix = ".v2" if filename_suffix is None else str(filename_suffix)
    writer = SummaryWriter(file_name(logdir), suffix, 10 if max_queue is None else max(1, int(max_queue)))
    if not _core.is_tracing():
        writer.init()
    return writer


@public("summary.create_noop_writer")
def create_noop_writer() -> SummaryWriter:
    """A writer that writes nothing, for processes that should not.

    >>> with tf.summary.create_noop_writer().as_default():
    ...     tf.summary.scalar("loss", 0.5, step=1)
    <tf.Tensor: shape=(), dtype=bool, numpy=False>
    """
    return SummaryWriter()
