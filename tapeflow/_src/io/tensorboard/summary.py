"""`tf.summary`: values that a program writes down for TensorBoard, eagerly and in graphs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.io.codecs.audio_files import encode_wav
from tapeflow._src.io.codecs.png import write_png
from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.tensor_messages import tensor_message
from tapeflow._src.io.tensorboard.event_files import SummaryWriter, defaults
from tapeflow._src.module import current_name_scope, name_scope
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor, get_static_value
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.ops.image.color import convert_image_dtype
from tapeflow._src.types.dtypes import float32, int64, string, uint8
from tapeflow._src.types.errors import DataLossError
from tapeflow._src.types.logging import warn

_SCALAR, _TENSOR, _BLOBS = 1, 2, 3


@public("summary.experimental.get_step")
def get_step() -> Any:
    """The step that values get which are given none.

    >>> tf.summary.experimental.get_step()
    """
    return defaults.step


@public("summary.experimental.set_step")
def set_step(step: Any) -> None:
    """Sets the step of values that are given none: a number, or a variable that is read when a value is written.

    >>> tf.summary.experimental.set_step(5)
    >>> tf.summary.experimental.get_step()
    5
    >>> tf.summary.experimental.set_step(None)
    """
    defaults.step = step


@public("summary.record_if")
@contextmanager
def record_if(condition: Any) -> Iterator[None]:
    """A context in which values are written only if a condition, or a function that gives one, is true.

    >>> with tf.summary.record_if(False):
    ...     tf.summary.should_record_summaries()
    <tf.Tensor: shape=(), dtype=bool, numpy=False>
    """
    before = defaults.condition
    defaults.condition = condition
    try:
        yield
    finally:
        defaults.condition = before


@public("summary.should_record_summaries")
def should_record_summaries() -> Any:
    """Whether values are written here and now.

    >>> tf.summary.should_record_summaries()
    <tf.Tensor: shape=(), dtype=bool, numpy=False>
    """
    if defaults.writer is None:
        return convert_to_tensor(False)
    condition = defaults.condition
    return convert_to_tensor(condition() if callable(condition) else condition)


_NO_SCOPE_CHARACTERS = re.compile(r"[^-_/.A-Za-z0-9]")


@public("summary.experimental.summary_scope")
@contextmanager
def summary_scope(name: Any, default_name: str = "summary", values: Any = None) -> Iterator[tuple[str, str]]:
    """A context with the name under which a value is written, and its scope.

    >>> with tf.summary.experimental.summary_scope("loss") as (tag, scope):
    ...     tag
    'loss'
    """
    name = name or default_name
    outer = current_name_scope()
    with name_scope(_NO_SCOPE_CHARACTERS.sub("", name) or default_name) as scope:
        yield f"{outer}/{name}" if outer else name, scope


@public("summary.flush")
def flush(writer: Any = None, name: str | None = None) -> Any:
    """Writes what a writer, or the default one, still holds.

    >>> tf.summary.flush()
    """
    writer = defaults.writer if writer is None else writer
    if writer is not None and not isinstance(writer, SummaryWriter):
        raise ValueError(f"Invalid argument to flush(): {writer!r}")
    return None if writer is None else writer.flush()


def _written(step: Any, values: list[Any], make: Callable[..., Any]) -> Any:
    """Hands the event `make(step, *values)` to the default writer, when the program runs; whether it was written."""
    writer = defaults.writer
    if writer is None:
        return convert_to_tensor(False)
    recorded = should_record_summaries()
    known = get_static_value(recorded)
    if known is not None and not known:
        return convert_to_tensor(False)
    step = defaults.step if step is None else step
    if step is None:
        raise ValueError(
            "No step set. Please specify one either through the `step` argument or through "
            "tf.summary.experimental.set_step()"
        )

    def run(condition: Any, step: Any, *values: Any) -> list[Any]:
        if not bool(condition.numpy()):
            return [convert_to_tensor(False)]
        event = make(int(step), *values)
        event.wall_time = time.time()
        return [convert_to_tensor(writer.write(event))]

    inputs = [recorded, cast(convert_to_tensor(step), int64), *map(convert_to_tensor, values)]
    return host_call(run, inputs, [("bool", [])], effect=True)[0]


@public("summary.write")
def write(tag: str, tensor: Any, step: Any = None, metadata: Any = None, name: str | None = None) -> Any:
    """Writes a tensor, or what a function gives if it is to be written; whether it was.

    >>> with tf.summary.create_file_writer("logs").as_default():
    ...     tf.summary.write("weights", [1., 2.], step=1)
    <tf.Tensor: shape=(), dtype=bool, numpy=True>
    """
    if defaults.writer is None:
        return convert_to_tensor(False)
    value = tensor() if callable(tensor) and not _core.is_tensor(tensor) else tensor
    given = metadata.SerializeToString() if hasattr(metadata, "SerializeToString") else metadata
    content = convert_to_tensor(b"" if given is None else given, string)

    def make(step: int, value: Any, content: Any) -> Any:
        entry = messages.Summary.Value(tag=tag, tensor=tensor_message(value))
        if metadata is not None:
            entry.metadata.CopyFrom(messages.SummaryMetadata.FromString(content.numpy()))
        return messages.Event(step=step, summary=messages.Summary(value=[entry]))

    return _written(step, [value, content], make)


@public("summary.experimental.write_raw_pb")
def write_raw_pb(tensor: Any, step: Any = None, name: str | None = None) -> Any:
    """Writes values that are serialised already.

    >>> with tf.summary.create_file_writer("logs").as_default():
    ...     tf.summary.experimental.write_raw_pb(b"", step=1)
    <tf.Tensor: shape=(), dtype=bool, numpy=True>
    """

    def make(step: int, texts: Any) -> Any:
        whole = messages.Summary()
        for text in np.asarray(texts.numpy(), object).reshape(-1):
            try:
                whole.MergeFrom(messages.Summary.FromString(text))
            except messages.decode_errors() as error:
                raise DataLossError.of("Bad tf.compat.v1.Summary binary proto tensor string") from error
        return messages.Event(step=step, summary=whole)

    return _written(step, [convert_to_tensor(tensor, None if _core.is_tensor(tensor) else string)], make)


def _shown_by(plugin: str, kind: int, description: str | None, content: bytes = b"") -> Any:
    plugin_data = (
        messages.SummaryMetadata.PluginData(plugin_name=plugin, content=content)
        if content
        else messages.SummaryMetadata.PluginData(plugin_name=plugin)
    )
    metadata = messages.SummaryMetadata(plugin_data=plugin_data, data_class=kind)
    if description:
        metadata.summary_description = description
    return metadata


def _write_as(name: str, data: Any, step: Any, metadata: Any) -> Any:
    with summary_scope(name) as (tag, _):
        return write(tag, data, step, metadata)


@public("summary.scalar")
def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> Any:
    """Writes one number, as float32; whether it was written.

    >>> with tf.summary.create_file_writer("logs").as_default():
    ...     tf.summary.scalar("loss", 0.5, step=1)
    <tf.Tensor: shape=(), dtype=bool, numpy=True>
    """
    if defaults.writer is None:
        return convert_to_tensor(False)
    data = cast(data, float32)
    if data.shape.rank not in (0, None):
        raise ValueError(f"summary.scalar: data must be a scalar; got shape {data.shape}")
    return _write_as(name, data, step, _shown_by("scalars", _SCALAR, description))


@public("summary.text")
def text(name: str, data: Any, step: Any = None, description: str | None = None) -> Any:
    """Writes strings; whether they were written.

    >>> with tf.summary.create_file_writer("logs").as_default():
    ...     tf.summary.text("note", "hello", step=1)
    <tf.Tensor: shape=(), dtype=bool, numpy=True>
    """
    tensor = convert_to_tensor(data, None if _core.is_tensor(data) else string)
    if tensor.dtype != string:
        raise ValueError(f"summary.text: data must be strings; got {tensor.dtype.name}")
    return _write_as(name, tensor, step, _shown_by("text", _TENSOR, description))


def _buckets(data: np.ndarray, count: int) -> np.ndarray:
    """(count, 3): the left and right end of each bucket, and how many values are in it."""
    values = np.asarray(data, np.float64).reshape(-1)
    if count == 0 or not values.size:
        return np.zeros([count, 3])
    low, high = values.min(), values.max()
    if low == high:
        counts = np.concatenate([np.zeros(count - 1), [float(values.size)]])
        return np.stack([np.full(count, low), np.full(count, high), counts], 1)
    places = np.minimum(np.floor((values - low) / ((high - low) / count)).astype(int), count - 1)
    edges = np.linspace(low, high, count + 1)
    return np.stack([edges[:-1], edges[1:], np.bincount(places, minlength=count)], 1)


@public("summary.histogram")
def histogram(
    name: str, data: Any, step: Any = None, buckets: int | None = None, description: str | None = None
) -> Any:
    """Writes a histogram of values, in 30 buckets or as many as are given; whether it was written.

    >>> with tf.summary.create_file_writer("logs").as_default():
    ...     tf.summary.histogram("weights", [1., 2., 2.], step=1)
    <tf.Tensor: shape=(), dtype=bool, numpy=True>
    """
    count = 30 if buckets is None else int(buckets)
    tensor = convert_to_tensor(data)

    def run(tensor: Any) -> list[Any]:
        return [convert_to_tensor(_buckets(tensor.numpy(), count))]

    if defaults.writer is None:
        return convert_to_tensor(False)
    table = host_call(run, [tensor], [("float64", [count, 3])])[0]
    return _write_as(name, table, step, _shown_by("histograms", _TENSOR, description))


@public("summary.image")
def image(name: str, data: Any, step: Any = None, max_outputs: int = 3, description: str | None = None) -> Any:
    """Writes the first images of a batch (k, H, W, channels), of uint8 or of floats from 0 to 1; whether it did.

    >>> with tf.summary.create_file_writer("logs").as_default():
    ...     tf.summary.image("image", tf.zeros([1, 2, 2, 3]), step=1)
    <tf.Tensor: shape=(), dtype=bool, numpy=True>
    """
    images = convert_image_dtype(convert_to_tensor(data), uint8, saturate=True)
    if images.shape.rank != 4:
        raise ValueError(f"summary.image: data must have shape (k, height, width, channels); got {images.shape}")
    if defaults.writer is None:
        return convert_to_tensor(False)

    def run(images: Any) -> list[Any]:
        array = images.numpy()[:max_outputs]
        sizes = [str(array.shape[2]).encode(), str(array.shape[1]).encode()]
        parts = np.asarray([*sizes, *(write_png(image, -1) for image in array)], dtype=object)
        return [convert_to_tensor(parts, string)]

    files = host_call(run, [images], [(string, [None])])[0]
    return _write_as(name, files, step, _shown_by("images", _BLOBS, description))


@public("summary.audio")
def audio(
    name: str,
    data: Any,
    sample_rate: Any,
    step: Any = None,
    max_outputs: int = 3,
    encoding: str | None = None,
    description: str | None = None,
) -> Any:
    """Writes the first clips of a batch (k, samples, channels) of audio from -1 to 1, as WAV; whether it did.

    >>> with tf.summary.create_file_writer("logs").as_default():
    ...     tf.summary.audio("clip", tf.zeros([1, 4, 1]), 8000, step=1)
    <tf.Tensor: shape=(), dtype=bool, numpy=True>
    """
    if encoding not in (None, "wav"):
        raise ValueError(f"Unknown encoding: {encoding!r}")
    clips = convert_to_tensor(data, float32)
    if clips.shape.rank != 3:
        raise ValueError(f"summary.audio: data must have shape (k, samples, channels); got {clips.shape}")
    if defaults.writer is None:
        return convert_to_tensor(False)

    def run(clips: Any, rate: Any) -> list[Any]:
        files = [encode_wav(clip, rate).numpy() for clip in clips.numpy()[:max_outputs]]
        return [convert_to_tensor(np.asarray(files, dtype=object), string)]

    files = host_call(run, [clips, convert_to_tensor(sample_rate, "int32")], [(string, [None])])[0]
    return _write_as(name, files, step, _shown_by("audio", _BLOBS, description, b"\x10\x0b"))


@public("summary.graph")
def graph(graph_data: Any) -> Any:
    """Writes the nodes of a graph to the default writer; whether it was written.

    >>> tf.summary.graph(tf.Graph())
    <tf.Tensor: shape=(), dtype=bool, numpy=False>
    """
    if _core.is_tracing():
        raise ValueError("graph() cannot be invoked inside a graph context.")
    if defaults.writer is None:
        return convert_to_tensor(False)
    message = graph_data.as_graph_def() if hasattr(graph_data, "as_graph_def") else graph_data
    if not isinstance(message, messages.GraphDef):
        raise ValueError(f"'graph_data' is not tf.Graph or tf.compat.v1.GraphDef, got {graph_data!r}")
    content = message.SerializeToString()
    return _written(0, [], lambda step: messages.Event(graph_def=content))


class _Tracing:
    """The graphs that were traced since `trace_on`; None while nobody asks for them."""

    graphs: list[Any] | None = None


def record_traced(graph: Any) -> None:
    """Keeps a graph that was just traced, if somebody asks for graphs."""
    if _Tracing.graphs is not None:
        _Tracing.graphs.append(graph)


@public("summary.trace_on")
def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: Any = None) -> None:
    """Begins to collect the graphs of functions that are traced from now on; there is no profiler.

    >>> tf.summary.trace_on()
    >>> tf.summary.trace_off()
    """
    if _builds_graph("Cannot enable trace inside a tf.function.", "Must enable trace in eager mode."):
        return
    _Tracing.graphs = [] if graph else None


def _builds_graph(in_function: str, in_legacy_graph: str) -> bool:
    """Whether a graph is built, where nothing can be collected: then a warning says so."""
    graph = _core.current_graph()
    if graph is not None:
        warn(in_legacy_graph if graph.graph_mode else in_function)
    return graph is not None


@public("summary.trace_off")
def trace_off() -> None:
    """Ends the collection of graphs, and forgets them.

    >>> tf.summary.trace_off()
    """
    _Tracing.graphs = None


@public("summary.trace_export")
def trace_export(name: str, step: Any = None, profiler_outdir: Any = None) -> None:
    """Writes the graphs that were collected since `trace_on` to the default writer, and ends the collection.

    >>> tf.summary.trace_on()
    >>> with tf.summary.create_file_writer("logs").as_default():
    ...     tf.summary.trace_export("graph", step=0)
    """
    if _builds_graph("Cannot export trace inside a tf.function.", "Can only export trace while executing eagerly."):
        return
    if _Tracing.graphs is None:
        raise ValueError("Must enable trace before export through tf.summary.trace_on.")
    if defaults.writer is None:
        raise ValueError("Must provide a default summary writer to export a trace: see SummaryWriter.as_default.")
    run = messages.RunMetadata()
    for graph in _Tracing.graphs:
        run.function_graphs.add(pre_optimization_graph=graph.as_graph_def())
    content = run.SerializeToString()
    plugin = messages.SummaryMetadata.PluginData(plugin_name="graph_run_metadata_graph", content=b"1")
    write(name, convert_to_tensor(content), step, messages.SummaryMetadata(plugin_data=plugin))
    trace_off()
