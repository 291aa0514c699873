"""The names of `tensorflow.python.ops.summary_ops_v2` without a public name: the default writer, metadata of runs."""

from __future__ import annotations

from typing import Any

from tapeflow._src.io.protos import messages
from tapeflow._src.io.tensorboard.event_files import defaults
from tapeflow._src.namespace import find_public


def has_default_writer() -> bool:
    """Whether values are written by default."""
    return defaults.writer is not None


def _write_metadata(name: Any, data: Any, step: Any, plugin: str) -> Any:
    shown_by = messages.SummaryMetadata.PluginData(plugin_name=plugin, content=b"1")
    with find_public("summary.experimental.summary_scope")(name, f"{plugin}_summary") as (tag, _):
        content = find_public("constant")(data.SerializeToString(), "string")
        return find_public("summary.write")(tag, content, step, messages.SummaryMetadata(plugin_data=shown_by))


def run_metadata(name: Any, data: Any, step: Any = None) -> Any:
    """Writes what a run was: a `RunMetadata` message."""
    return _write_metadata(name, data, step, "graph_run_metadata")


def run_metadata_graphs(name: Any, data: Any, step: Any = None) -> Any:
    """Writes the graphs of a `RunMetadata` message, without its measurements."""
    kept = type(data)(function_graphs=data.function_graphs, partition_graphs=data.partition_graphs)
    return _write_metadata(name, kept, step, "graph_run_metadata_graph")


names_by_path: dict[str, dict[str, Any]] = {
    "python.ops.summary_ops_v2": {
        "_summary_state": defaults,
        "has_default_writer": has_default_writer,
        "run_metadata": run_metadata,
        "run_metadata_graphs": run_metadata_graphs,
    },
}
