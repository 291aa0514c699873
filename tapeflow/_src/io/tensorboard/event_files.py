"""Event files, which TensorBoard reads: records of events, each a moment with values; and who writes them."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tapeflow._src import _core
from tapeflow._src.io.protos import messages
from tapeflow._src.io.records import framed
from tapeflow._src.namespace import public
from tapeflow._src.ops.effects.host_call import host_effect
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

    def __init__(
        self, folder: str | None = None, suffix: str = ".v2", most_waiting: int = 10, longest_wait: float = 120.0
    ) -> None:
        self._folder, self._suffix = folder, suffix
        self._most_waiting, self._longest_wait, self._flushed = most_waiting, longest_wait, time.monotonic()
        self._file: Any = None
        self._waiting: list[bytes] = []
        self._closed = False
        self._lock = threading.Lock()

    @contextmanager
    def as_default(self, step: Any = None) -> Iterator[SummaryWriter]:
        """A context in which this is the writer, and `step` the step where none is given.

        A writer that writes nothing leaves the writer outside in its place.
        """
        self._check_open()
        if self._folder is None:
            yield self
            return
        writer, outer_step = defaults.writer, defaults.step
        defaults.writer = self
        if step is not None:
            defaults.step = step
        try:
            yield self
        finally:
            if not _builds_legacy_graph():  # there the program runs `flush()` in a session
                self.flush()
            defaults.writer = writer
            if step is not None:
                defaults.step = outer_step

    def set_as_default(self, step: Any = None) -> None:
        """Makes this the writer from now on."""
        self._check_open()
        if self._folder is None:
            return
        defaults.writer = self
        if step is not None:
            defaults.step = step

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("SummaryWriter is already closed")

    def init(self) -> Any:
        """Opens the file; in a graph of TensorFlow 1, the operation that does."""
        if not _core.is_tracing():  # a session may open it again after it was closed there
            self._check_open()
        return _now_or_in_graph(self._init)

    def _init(self) -> None:
        with self._lock:
            self._closed = False
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
        late = time.monotonic() - self._flushed >= self._longest_wait
        if late or len(self._waiting) > self._most_waiting:
            self._flush()
        return True

    def flush(self) -> Any:
        """Writes buffered data; in a graph of TensorFlow 1, the operation that does."""
        return _now_or_in_graph(self._flush)

    def _flush(self) -> None:
        with self._lock:
            if self._closed or self._folder is None:
                return
            self._open()
            self._file.write(b"".join(self._waiting))
            self._waiting.clear()
            self._file.flush()
            self._flushed = time.monotonic()

    def close(self) -> Any:
        """Ends the file; in a graph of TensorFlow 1, the operation that does."""
        return _now_or_in_graph(self._close)

    def _close(self) -> None:
        self._flush()
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None
            self._closed = self._folder is not None

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self._close()


def _builds_legacy_graph() -> bool:
    graph = _core.current_graph()
    return graph is not None and bool(graph.graph_mode)


def _now_or_in_graph(run: Callable[[], None]) -> Any:
    """`run()`, now or whenever the graph that is built runs."""
    return host_effect(run, []) if _core.is_tracing() else run()


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
    given = {"logdir": logdir, "max_queue": max_queue, "flush_millis": flush_millis, "filename_suffix": filename_suffix}
    for argument, value in given.items():
        if _core.is_symbolic(value):
            raise ValueError(
                f"Invalid graph Tensor argument '{argument}={value}' to create_file_writer(), which runs at once"
            )
    suffix = ".v2" if filename_suffix is None else str(filename_suffix)
    waiting = 10 if max_queue is None else int(max_queue)
    seconds = 120.0 if flush_millis is None else int(flush_millis) / 1000
    writer = SummaryWriter(file_name(logdir), suffix, waiting, seconds)
    if not _builds_legacy_graph():  # in a function, while it is traced
        writer._init()
    return writer


@public("summary.create_noop_writer")
def create_noop_writer() -> SummaryWriter:
    """A writer that writes nothing, for processes that should not.

    >>> with tf.summary.create_noop_writer().as_default():
    ...     tf.summary.scalar("loss", 0.5, step=1)
    <tf.Tensor: shape=(), dtype=bool, numpy=False>
    """
    return SummaryWriter()
