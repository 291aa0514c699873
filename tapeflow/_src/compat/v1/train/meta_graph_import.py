"""`import_meta_graph`: the graph of a `MetaGraphDef` becomes part of the default graph, with its collections."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any

from tapeflow._src.compat.graph_def.frames import without_savers
from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.graph.graph_import import import_graph_def
from tapeflow._src.compat.v1.train.saver import Saver
from tapeflow._src.io.protos import messages
from tapeflow._src.namespace import public
from tapeflow._src.types.errors import DataLossError
from tapeflow._src.variables import Variable

_VARIABLES = ("VarHandleOp", "VariableV2", "Variable")


def _read(source: Any) -> Any:
    if isinstance(source, messages.MetaGraphDef):
        return source
    path = os.fspath(source)
    if not os.path.isfile(path):
        raise OSError(f"File does not exist. Received: {path}.")
    with open(path, "rb") as file:
        data = file.read()
    try:
        return messages.MetaGraphDef.FromString(data)
    except messages.decode_errors():
        from google.protobuf import text_format  # only messages in text need it

        try:
            return text_format.Parse(data.decode(), messages.MetaGraphDef())
        except (text_format.ParseError, UnicodeDecodeError) as error:
            raise DataLossError.of(f"import_meta_graph: {path} is no MetaGraphDef: {error}") from None


@public("compat.v1.train.import_meta_graph")
def import_meta_graph(
    meta_graph_or_file: Any, clear_devices: bool = False, import_scope: str | None = None, **kwargs: Any
) -> Saver | None:
    """Adds the graph of a `MetaGraphDef` with its collections to the default graph; gives a saver of its variables.

    `graph` names another graph, and `input_map` tensors that stand in place of those of the message; further keyword
    arguments are those of `tf.compat.v1.train.Saver`.

    >>> with tf.Graph().as_default():
    ...     v = tf.compat.v1.get_variable("v", [2])
    ...     message = tf.compat.v1.train.export_meta_graph()
    >>> with tf.Graph().as_default():
    ...     saver = tf.compat.v1.train.import_meta_graph(message)
    ...     [v.name for v in tf.compat.v1.global_variables()]
    ['v:0']
    """
    meta = _read(meta_graph_or_file)
    definition, graph = without_savers(meta.graph_def), kwargs.pop("graph", None) or get_default_graph()
    input_map = kwargs.pop("input_map", None)
    for node in definition.node if clear_devices else ():
        node.device = ""
    nodes = [node.name for node in definition.node if node.op in _VARIABLES]
    around = get_default_graph().get_name_scope()
    with graph.as_default(), graph.name_scope(f"{around}/") if around else nullcontext():
        made = import_graph_def(definition, input_map, [f"{name}:0" for name in nodes], name=import_scope or "") or []
    variable_by_name = dict(zip(nodes, made))
    prefix = "/".join(part for part in (around, import_scope) if part)
    prefix = f"{prefix}/" if prefix else ""
    known = set()
    for key, collection in meta.collection_def.items():
        for item in _items(collection, key, variable_by_name, graph, prefix):
            graph.add_to_collection(key, item)
            known.add(id(item))
    others = [v for v in made if id(v) not in known]
    for variable in others if "variables" not in meta.collection_def else ():
        graph.add_to_collection(GraphKeys.GLOBAL_VARIABLES, variable)
    return Saver(_wholes(variable_by_name, prefix), **kwargs) if variable_by_name else None


def _wholes(variable_by_name: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The same variables; those that are parts stand in lists under the names of their wholes."""
    result: dict[str, Any] = {}
    for name, variable in variable_by_name.items():
        info = variable._save_slice_info
        if info is None:
            result[name] = variable
        else:
            result.setdefault(info.full_name.removeprefix(prefix), []).append(variable)
    return result


def _items(collection: Any, key: str, variable_by_name: dict[str, Any], graph: Any, prefix: str) -> list[Any]:
    kind = collection.WhichOneof("kind")
    if kind is None or kind == "any_list":
        return []
    values = getattr(collection, kind).value
    if kind == "bytes_list" and key.endswith("variables"):
        found = []
        for saved in map(messages.VariableDef.FromString, values):
            variable = variable_by_name.get(saved.variable_name.removesuffix(":0"))
            if variable is not None:
                found.append(variable)
                if saved.HasField("save_slice_info_def"):
                    part = Variable.SaveSliceInfo(
                        save_slice_info_def=saved.save_slice_info_def, import_scope=prefix.rstrip("/")
                    )
                    variable._set_save_slice_info(part)
        return found
    if kind != "node_list":
        return list(values)
    found = []
    for name in values:
        try:
            found.append(graph.as_graph_element(f"{prefix}{name}"))
        except (KeyError, ValueError):  # of a saver, which is made anew
            continue
    return found
