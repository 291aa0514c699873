"""`tf.summary` of TensorFlow 1: operations that give values as bytes, and the writer of an event file."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.raw_ops import summary_ops
from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.io.protos import messages
from tapeflow._src.io.records import read_records
from tapeflow._src.io.tensorboard.event_files import SummaryWriter
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.dtypes import string
from tapeflow._src.types.file_errors import file_name
from tapeflow._src.variables import session_graph


def _summary(name: str, family: str | None, collections: Any, summary: Callable[[str], Any]) -> Any:
    """What an operation gives for a tag, under a name that is unique."""
    graph = session_graph()
    base = re.sub(r"[^-/\w.]", "_", name).lstrip("/")
    base = f"{family}/{base}" if family else base
    with nullcontext(f"{base}/") if graph is None else graph.name_scope(base) as scope:
        tag = scope.rstrip("/")
    found = _named(summary(f"{family}/{tag}" if family else tag), tag)
    keys = [GraphKeys.SUMMARIES] if collections is None else collections
    if graph is not None:
        graph.add_to_collections(keys, found)
    return found


def _named(tensor: Any, name: str) -> Any:
    place = _core.place_of(tensor) if _core.is_symbolic(tensor) else None
    if place is not None and place[0].graph_mode:
        place[0].set_node_name(place[2], name)
    return tensor


@public("compat.v1.summary.scalar")
def scalar(name: str, tensor: Any, collections: Any = None, family: str | None = None) -> Any:
    """A number, as the bytes that a `FileWriter` takes.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     text = session.run(tf.compat.v1.summary.scalar("loss", 0.5))
    >>> tf.compat.v1.Summary.FromString(text).value[0].simple_value
    0.5
    """

    return _summary(name, family, collections, lambda tag: summary_ops.scalar_summary(tag, tensor))


@public("compat.v1.summary.histogram")
def histogram(name: str, values: Any, collections: Any = None, family: str | None = None) -> Any:
    """The histogram of values, as the bytes that a `FileWriter` takes.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     text = session.run(tf.compat.v1.summary.histogram("weights", [1., 2., 3.]))
    >>> tf.compat.v1.Summary.FromString(text).value[0].histo.sum
    6.0
    """
    return _summary(name, family, collections, lambda tag: summary_ops.histogram_summary(tag, values))


@public("compat.v1.summary.image")
def image(name: str, tensor: Any, max_outputs: int = 3, collections: Any = None, family: str | None = None) -> Any:
    """The first images of a batch (k, H, W, channels), as the bytes that a `FileWriter` takes.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     text = session.run(tf.compat.v1.summary.image("image", tf.zeros([1, 2, 4, 3])))
    >>> tf.compat.v1.Summary.FromString(text).value[0].image.width
    4
    """

    return _summary(name, family, collections, lambda tag: summary_ops.image_summary(tag, tensor, max_outputs))


@public("compat.v1.summary.audio")
def audio(
    name: str, tensor: Any, sample_rate: Any, max_outputs: int = 3, collections: Any = None, family: str | None = None
) -> Any:
    """The first sounds of a batch (k, frames, channels), as the bytes that a `FileWriter` takes.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     text = session.run(tf.compat.v1.summary.audio("sound", tf.zeros([1, 4, 2]), 16000))
    >>> tf.compat.v1.Summary.FromString(text).value[0].audio.length_frames
    4
    """
    return _summary(
        name, family, collections, lambda tag: summary_ops.audio_summary(tag, tensor, sample_rate, max_outputs)
    )


@public("compat.v1.summary.text")
def text(name: str, tensor: Any, collections: Any = None) -> Any:
    """Strings, as the bytes that a `FileWriter` takes.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     text = session.run(tf.compat.v1.summary.text("note", tf.constant("hello")))
    >>> tf.compat.v1.Summary.FromString(text).value[0].tag
    'note'
    """
    if convert_to_tensor(tensor).dtype != string:
        raise ValueError(f"Expected tensor {tensor} to have dtype string, got {convert_to_tensor(tensor).dtype}")
    return tensor_summary(
        name,
        tensor,
        None,
        collections,
        messages.SummaryMetadata(plugin_data=messages.SummaryMetadata.PluginData(plugin_name="text")),
    )


@public("compat.v1.summary.tensor_summary")
def tensor_summary(
    name: str,
    tensor: Any,
    summary_description: str | None = None,
    collections: Any = None,
    summary_metadata: Any = None,
    family: str | None = None,
    display_name: str | None = None,
) -> Any:
    """A tensor, as the bytes that a `FileWriter` takes.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     text = session.run(tf.compat.v1.summary.tensor_summary("weights", [1., 2.]))
    >>> tf.make_ndarray(tf.compat.v1.Summary.FromString(text).value[0].tensor)
    array([1., 2.], dtype=float32)
    """
    metadata = messages.SummaryMetadata() if summary_metadata is None else summary_metadata
    if summary_description:
        metadata.summary_description = summary_description
    if display_name:
        metadata.display_name = display_name

    about = metadata.SerializeToString()
    return _summary(name, family, collections, lambda tag: summary_ops.tensor_summary(tag, tensor, about))


@public("compat.v1.summary.merge")
def merge(inputs: Any, collections: Any = None, name: str | None = None) -> Any:
    """Several summaries as one.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     parts = [tf.compat.v1.summary.scalar("a", 1.), tf.compat.v1.summary.scalar("b", 2.)]
    ...     text = session.run(tf.compat.v1.summary.merge(parts))
    >>> len(tf.compat.v1.Summary.FromString(text).value)
    2
    """
    if _core.current_graph() is None:
        raise RuntimeError(
            "Merging tf.summary.* ops is not compatible with eager execution. Use tf.contrib.summary instead."
        )

    found = summary_ops.merge_summary(inputs)
    graph = get_default_graph()
    _named(found, f"{graph.unique_name(name or 'Merge')}/MergeSummary")
    graph.add_to_collections(collections or [], found)
    return found


@public("compat.v1.summary.merge_all")
def merge_all(key: str = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None) -> Any:
    """All summaries of the graph as one; None if there are none.

    >>> with tf.Graph().as_default():
    ...     tf.compat.v1.summary.merge_all()
    """
    if _core.current_graph() is None:
        raise RuntimeError(
            "Merging tf.summary.* ops is not compatible with eager execution. Use tf.contrib.summary instead."
        )
    found = get_default_graph().get_collection(key, scope)
    return merge(found, name=name) if found else None


@public("compat.v1.summary.get_summary_description")
def get_summary_description(node_def: Any) -> str:
    """The description of a summary: none is kept in a graph.

    >>> tf.compat.v1.summary.get_summary_description(None)
    ''
    """
    return ""


@public("compat.v1.summary.FileWriter")
class FileWriter:
    """Writes summaries to an event file in a folder.

    >>> with tf.compat.v1.summary.FileWriter("logs") as writer:
    ...     writer.add_summary(tf.compat.v1.Summary(), global_step=1)
    """

    def __init__(
        self,
        logdir: Any,
        graph: Any = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: Any = None,
        filename_suffix: str | None = None,
        session: Any = None,
    ) -> None:
        self._folder = file_name(logdir)
        self._suffix, self._most_waiting = filename_suffix or "", max_queue
        self._closed = False
        self._run_tags: set[str] = set()
        self._begin()
        if graph is not None or graph_def is not None:
            definition = _graph_definition(graph, graph_def)
            self.add_graph(definition)
            self.add_meta_graph(messages.MetaGraphDef(graph_def=definition))

    def _begin(self) -> None:
        self._writer = SummaryWriter(self._folder, self._suffix, self._most_waiting)
        self._writer._init()

    def get_logdir(self) -> str:
        """The folder."""
        return self._folder

    def add_event(self, event: Any) -> None:
        """Writes an event."""
        if not self._closed:
            self._writer.write(event)

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Writes a summary, or the bytes of one."""
        found = messages.Summary.FromString(summary) if isinstance(summary, bytes) else summary
        self._add(global_step, summary=found)

    def add_graph(self, graph: Any = None, global_step: Any = None, graph_def: Any = None) -> None:
        """Writes the nodes of a graph."""
        self._add(global_step, graph_def=_graph_definition(graph, graph_def).SerializeToString())

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Writes a `MetaGraphDef`."""
        if not isinstance(meta_graph_def, messages.MetaGraphDef):
            raise TypeError(f"meta_graph_def must be type MetaGraphDef, saw type: {type(meta_graph_def)}")
        self._add(global_step, meta_graph_def=meta_graph_def.SerializeToString())

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Writes that a session was started or stopped, or wrote a checkpoint."""
        self._add(global_step, session_log=session_log)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Writes what was measured in a run, once for each tag."""
        if tag in self._run_tags:
            raise ValueError("The provided tag was already used for this event type")
        self._run_tags.add(tag)
        tagged = messages.TaggedRunMetadata(tag=tag, run_metadata=run_metadata.SerializeToString())
        self._add(global_step, tagged_run_metadata=tagged)

    def _add(self, global_step: Any, **what: Any) -> None:
        step = {} if global_step is None else {"step": int(global_step)}
        self.add_event(messages.Event(wall_time=time.time(), **step, **what))

    def flush(self) -> None:
        """Writes what waits to be written."""
        self._writer._flush()  # at once, whatever graph is built

    def close(self) -> None:
        """Ends the file."""
        if not self._closed:
            self._writer._close()
        self._closed = True

    def reopen(self) -> None:
        """After `close`: begins another file."""
        if self._closed:
            self._begin()
        self._closed = False

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()


def _graph_definition(graph: Any, graph_def: Any) -> Any:
    """The message of a graph that is given as one, or as a graph; `graph` may be either."""
    if graph is not None and graph_def is not None:
        raise ValueError("Please pass only graph, or graph_def (deprecated), but not both.")
    given = graph_def if graph is None else graph
    if isinstance(given, messages.GraphDef):
        return given
    if not hasattr(given, "as_graph_def"):
        raise ValueError("The passed graph must be an instance of `Graph` or the deprecated `GraphDef`")
    return given.as_graph_def()


@public("compat.v1.summary.FileWriterCache")
class FileWriterCache:
    """One writer per folder.

    >>> cache = tf.compat.v1.summary.FileWriterCache
    >>> cache.get("logs") is cache.get("logs")
    True
    >>> cache.clear()
    """

    _writer_by_folder: dict[str, FileWriter] = {}  # noqa: RUF012

    @staticmethod
    def get(logdir: Any) -> FileWriter:
        """The writer of a folder."""
        folder = file_name(logdir)
        writers = FileWriterCache._writer_by_folder
        if folder not in writers:
            writers[folder] = FileWriter(folder)
        return writers[folder]

    @staticmethod
    def clear() -> None:
        """Closes all writers, and forgets them."""
        for writer in FileWriterCache._writer_by_folder.values():
            writer.close()
        FileWriterCache._writer_by_folder.clear()


@public("compat.v1.train.summary_iterator")
def summary_iterator(path: Any) -> Iterator[Any]:
    """The events of a file, one after the other.

    >>> with tf.compat.v1.summary.FileWriter("logs") as writer:
    ...     path = tf.io.gfile.glob("logs/*")[0]
    >>> [event.file_version for event in tf.compat.v1.train.summary_iterator(path)]
    ['brain.Event:2']
    """
    for record in read_records(path):
        yield messages.Event.FromString(record)
