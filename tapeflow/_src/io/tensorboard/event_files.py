"""Event files, which TensorBoard reads: records of events, each a moment with values; and who writes them."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from tapeflow._src.io.protos.message import Field, Message
from tapeflow._src.io.protos.tensor_protos import TensorProto
from tapeflow._src.io.records import framed
from tapeflow._src.namespace import public
from tapeflow._src.types.file_errors import file_errors, file_name


class PluginData(Message):
    """Which part of TensorBoard shows a value, and what it needs to know."""

    FIELDS: ClassVar[dict[str, Field]] = {"plugin_name": Field(1, "string"), "content": Field(2, "bytes")}


@public("compat.v1.SummaryMetadata")
class SummaryMetadata(Message):
    """How a value is shown.

    >>> metadata = tf.compat.v1.SummaryMetadata()
    >>> metadata.plugin_data.plugin_name = "scalars"
    >>> metadata.plugin_data.plugin_name
    'scalars'
    """

    FIELDS: ClassVar[dict[str, Field]] = {
        "plugin_data": Field(1, PluginData),
        "display_name": Field(2, "string"),
        "summary_description": Field(3, "string"),
        "data_class": Field(4, "int"),
    }


@public("compat.v1.HistogramProto")
class HistogramProto(Message):
    """How values are spread: the upper ends of buckets, and how many values are in each.

    >>> tf.compat.v1.HistogramProto(min=1., max=2., num=3).num
    3
    """

    FIELDS: ClassVar[dict[str, Field]] = {
        "min": Field(1, "double"),
        "max": Field(2, "double"),
        "num": Field(3, "double"),
        "sum": Field(4, "double"),
        "sum_squares": Field(5, "double"),
        "bucket_limit": Field(6, "double", repeated=True),
        "bucket": Field(7, "double", repeated=True),
    }


@public("compat.v1.Summary")
class Summary(Message):
    """Values of one moment.

    >>> tf.compat.v1.Summary(value=[tf.compat.v1.Summary.Value(tag="loss", simple_value=0.5)]).value[0].tag
    'loss'
    """

    class Image(Message):
        """An image, as the bytes of a file."""

        FIELDS: ClassVar[dict[str, Field]] = {
            "height": Field(1, "int"),
            "width": Field(2, "int"),
            "colorspace": Field(3, "int"),
            "encoded_image_string": Field(4, "bytes"),
        }

    class Value(Message):
        """A number, an image, a histogram or a tensor with a name."""

        FIELDS: ClassVar[dict[str, Field]] = {}

    FIELDS: ClassVar[dict[str, Field]] = {"value": Field(1, Value, repeated=True)}


Summary.Value.FIELDS = {
    "tag": Field(1, "string"),
    "node_name": Field(7, "string"),
    "metadata": Field(9, SummaryMetadata),
    "simple_value": Field(2, "float", choice="value"),
    "image": Field(4, Summary.Image, choice="value"),
    "histo": Field(5, HistogramProto, choice="value"),
    "tensor": Field(8, TensorProto, choice="value"),
}


class SourceMetadata(Message):
    """Who wrote a file."""

    FIELDS: ClassVar[dict[str, Field]] = {"writer": Field(1, "string")}


class FunctionGraphs(Message):
    """The graphs of one function; `pre_optimization_graph` is as it was traced."""

    FIELDS: ClassVar[dict[str, Field]] = {"pre_optimization_graph": Field(2, "bytes")}


class RunMetadata(Message):
    """What is known of the functions that a program ran."""

    FIELDS: ClassVar[dict[str, Field]] = {"function_graphs": Field(4, FunctionGraphs, repeated=True)}


@public("compat.v1.Event")
class Event(Message):
    """One record of a file.

    >>> tf.compat.v1.Event(step=3).step
    3
    """

    FIELDS: ClassVar[dict[str, Field]] = {
        "wall_time": Field(1, "double"),
        "step": Field(2, "int"),
        "file_version": Field(3, "string"),
        "graph_def": Field(4, "bytes"),
        "summary": Field(5, Summary),
        "source_metadata": Field(10, SourceMetadata),
    }


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
        first = Event(wall_time=now, file_version="brain.Event:2", source_metadata=SourceMetadata(writer="tapeflow"))
        self._file.write(framed(first.SerializeToString()))

    def write(self, event: Event) -> bool:
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
    return SummaryWriter(file_name(logdir), suffix, 10 if max_queue is None else max(1, int(max_queue)))


@public("summary.create_noop_writer")
def create_noop_writer() -> SummaryWriter:
    """A writer that writes nothing, for processes that should not.

    >>> with tf.summary.create_noop_writer().as_default():
    ...     tf.summary.scalar("loss", 0.5, step=1)
    <tf.Tensor: shape=(), dtype=bool, numpy=False>
    """
    return SummaryWriter()
