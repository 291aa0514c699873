"""`export_meta_graph`: a graph with its collections, and the nodes that save its variables, in one message."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tapeflow._src.compat.graph_def.emitter import Emitter, Ref
from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.graph.operation import Operation
from tapeflow._src.compat.v1.train.parts import SavedParts
from tapeflow._src.io.atomic_files import write_atomically
from tapeflow._src.io.protos import messages
from tapeflow._src.namespace import public
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.tensor import Tensor
from tapeflow._src.types.tensor_shape import TensorShape

_VERSION = "2.21.0"


@public("compat.v1.train.export_meta_graph")
def export_meta_graph(
    filename: Any = None,
    meta_info_def: Any = None,
    graph_def: Any = None,
    saver_def: Any = None,
    collection_list: Any = None,
    as_text: bool = False,
    graph: Any = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
    **kwargs: Any,
) -> Any:
    """The default graph as a `MetaGraphDef`, with nodes that save and restore its variables; perhaps also as a file.

    >>> with tf.Graph().as_default():
    ...     v = tf.compat.v1.get_variable("v", [2])
    ...     message = tf.compat.v1.train.export_meta_graph()
    >>> sorted(message.collection_def)
    ['trainable_variables', 'variables']
    """
    check_export_scope(export_scope)
    graph = get_default_graph() if graph is None else graph
    variables = graph.get_collection(GraphKeys.GLOBAL_VARIABLES) if saver_def is None else []
    saved = SavedParts()
    saved.add_all({v.name: v for v in variables}.values())
    places = [saved.place(name) for name in saved.variable_by_name]
    meta = meta_graph_of(
        graph, list(saved.variable_by_name.values()), places, collection_list, clear_devices, graph_def
    )
    if meta_info_def is not None:
        meta.meta_info_def.MergeFrom(meta_info_def)
        meta.meta_info_def.tensorflow_version = _VERSION
    if saver_def is not None:
        meta.saver_def.CopyFrom(saver_def)
    if filename is not None:
        write_meta_graph(meta, filename, as_text)
    return meta


def check_export_scope(export_scope: str | None) -> None:
    """Raises if a part of a graph is to be exported."""
    if export_scope is not None:
        raise NotImplementedError("export_meta_graph: `export_scope` is not supported; export the whole graph")


def meta_graph_of(
    graph: Any,
    variables: list[Any],
    places: list[tuple[str, str]],
    collection_list: Any = None,
    clear_devices: bool = False,
    graph_def: Any = None,
) -> Any:
    """The message of a graph with its collections, and with nodes that save these variables.

    `places` says under which name each is saved, and which part of that value it is.
    """
    meta = messages.MetaGraphDef()
    meta.meta_info_def.tensorflow_version = _VERSION
    meta.graph_def.CopyFrom(graph.as_graph_def() if graph_def is None else graph_def)
    if variables:
        _write_saver(meta, variables, places)
    for key in graph.get_all_collection_keys() if collection_list is None else collection_list:
        if isinstance(key, str):
            _write_collection(meta, key, graph.get_collection(key))
    for node in meta.graph_def.node if clear_devices else ():
        node.device = ""
    return meta


def write_meta_graph(message: Any, filename: Any, as_text: bool) -> None:
    """Writes a message into a file."""
    data = text_of(message) if as_text else message.SerializeToString(deterministic=True)
    write_atomically(os.fspath(filename), data)


def text_of(message: Any) -> bytes:
    """A message in protobuf's text format."""
    from google.protobuf import text_format  # only messages in text need it

    text: str = text_format.MessageToString(message)
    return text.encode()


def _write_saver(meta: Any, variables: list[Any], places: list[tuple[str, str]]) -> None:
    """The nodes with which `tf.compat.v1.train.Saver` of TensorFlow saves and restores."""
    e = Emitter(False)
    for node in meta.graph_def.node:
        e.reserve(node.name)
    e.prefix = "save/"
    filename = e.constant("model", "string")
    names = e.constant(np.asarray([name for name, _ in places], object), "string")
    slices = e.constant(np.asarray([part for _, part in places], object), "string")
    dtypes = [v.dtype.base_dtype for v in variables]
    handles = [Ref(v.op.name, "resource", 0, 0, as_dtype("resource"), TensorShape([])) for v in variables]
    saved = [e.one("ReadVariableOp", handle, dtype=dtype) for handle, dtype in zip(handles, dtypes)]
    e.node("SaveV2", filename, names, slices, saved, dtypes=dtypes)
    written = e.one("Identity", filename, controls=[e.nodes[-1].name])
    restored = []
    for handle, value, dtype in zip(handles, e.node("RestoreV2", filename, names, slices, dtypes=dtypes), dtypes):
        e.node("AssignVariableOp", handle, value, dtype=dtype)
        restored.append(e.nodes[-1].name)
    e.node("NoOp", controls=restored)
    meta.graph_def.node.extend(e.nodes)
    saver = meta.saver_def
    saver.filename_tensor_name, saver.save_tensor_name = f"{filename.node}:0", f"{written.node}:0"
    saver.restore_op_name, saver.version, saver.max_to_keep = e.nodes[-1].name, 2, 5
    saver.keep_checkpoint_every_n_hours = 10000.0


def _write_collection(meta: Any, key: str, items: list[Any]) -> None:
    if not items:
        return
    found = meta.collection_def[key]
    names = {node.name for node in meta.graph_def.node}
    if key.endswith("variables"):
        for variable in items:
            name = variable.name.removesuffix(":0")
            saved = messages.VariableDef(
                variable_name=f"{name}:0",
                initializer_name=f"{name}/Assign",
                snapshot_name=f"{name}/Read/ReadVariableOp:0",
                is_resource=True,
                trainable=bool(variable.trainable),
                save_slice_info_def=variable._save_slice_info and variable._save_slice_info.to_proto(),
            )
            value = next((n for n in meta.graph_def.node if n.name == f"{name}/Assign/AssignVariableOp"), None)
            if value is not None:
                saved.initial_value_name = f"{value.input[1]}:0" if ":" not in value.input[1] else value.input[1]
            found.bytes_list.value.append(saved.SerializeToString())
    elif all(isinstance(item, Tensor | Operation) for item in items):
        found.node_list.value.extend(item.name for item in items if item.name.partition(":")[0] in names)
    elif all(isinstance(item, int) for item in items):
        found.int64_list.value.extend(items)
    elif all(isinstance(item, float) for item in items):
        found.float_list.value.extend(items)
    elif all(isinstance(item, bytes | str) for item in items):
        found.bytes_list.value.extend(x.encode() if isinstance(x, str) else x for x in items)
    else:
        del meta.collection_def[key]
