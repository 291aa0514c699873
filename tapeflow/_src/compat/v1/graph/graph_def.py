"""Graphs as messages, `tf.GraphDef`: for programs that look at nodes. `graph_import.py` reads them back."""

from __future__ import annotations

import bisect
import os
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.graph_def.graphs import (
    PRODUCER,
    function_graph_message,
    function_message,
    session_graph_message,
)
from tapeflow._src.compat.graph_def.op_defs import find_op_def
from tapeflow._src.compat.v1.graph.graph import Graph, default_name
from tapeflow._src.compat.v1.graph.operation import ImpliedOperation, Operation, operation_of
from tapeflow._src.control_flow.tracing import FuncGraph
from tapeflow._src.io.atomic_files import write_atomically
from tapeflow._src.io.protos import messages
from tapeflow._src.namespace import public
from tapeflow._src.types.dtypes import as_dtype


def _input_name(tensor: Any) -> str:
    return str(tensor.name.removesuffix(":0"))


def _definition(operation: Operation) -> Any:
    """The message of an operation."""
    for node in operation.graph.as_graph_def().node:
        if node.name == operation.name:
            return node
    return messages.NodeDef(name=operation.name, op=operation.type)


def _of_session_graph(
    self: Graph, from_version: int | None = None, add_shapes: bool = False, use_pybind11_proto: bool = False
) -> Any:
    """The nodes as messages, with the shapes of what they give if `add_shapes`; those made from a version on."""

    def controls(number: int) -> list[str]:
        return [control.name for control in operation_of(self, number).control_inputs]

    definition = session_graph_message(self, controls)
    operation_by_name = {operation.name: operation for operation in self.get_operations()}
    earlier = {operation.name for operation in operation_by_name.values() if operation._number < (from_version or 0)}
    kept = [node for node in definition.node if node.name not in earlier]
    for node in kept:
        operation = operation_by_name.get(node.name)
        if operation is None and node.name in self._variable_by_name:
            operation = self._variable_by_name[node.name].op
        if operation is None:
            continue
        if operation.device:
            node.device = operation.device
        if add_shapes:
            node.attr["_output_shapes"].list.shape.extend(x.shape.as_proto() for x in operation.outputs)
    if earlier:
        del definition.node[:]
        definition.node.extend(kept)
    return definition


# ---- the graphs of functions: their constants and results have no nodes, and their names are made when asked for


def _name_all(graph: Any) -> None:
    """Gives the nodes that have come since the last time names that are unique."""
    known = graph.__dict__.setdefault("_named_nodes", 0)
    if known == 0:
        for name in graph.input_names:
            _core.Graph.unique_name(graph, name)
    for number in range(known, graph.node_count):
        facts = graph.node(number)
        if facts is not None:
            name = _scope_at(graph, number) + (facts[1] or default_name(facts[0]))
            graph.set_node_name(number, _core.Graph.unique_name(graph, name))
    graph.__dict__["_named_nodes"] = graph.node_count


def _scope_at(graph: Any, number: int) -> str:
    """The name scope in which a node of a function was made."""
    marks = graph.__dict__.get("scope_marks", ())
    place = bisect.bisect_right(marks, number, key=lambda mark: mark[0])
    return marks[place - 1][1] if place else ""


def _operations(self: FuncGraph) -> list[Operation]:
    """All operations, in the order in which they were made, with one for each input, constant and result."""
    found: list[Operation] = []
    for tensor in self.inputs:
        found.append(ImpliedOperation(self, "Placeholder", _input_name(tensor), [], [tensor]))
    for operation in _nodes(self):
        for place, tensor in enumerate(operation.inputs):
            if not _core.is_symbolic(tensor):
                found.append(ImpliedOperation(self, "Const", _constant_name(operation, place), [], [tensor]))
        found.append(operation)
    for place, tensor in enumerate(self.outputs):
        found.append(
            ImpliedOperation(self, "Identity", f"Identity_{place}" if place else "Identity", [tensor], [tensor])
        )
    return found


def _nodes(graph: FuncGraph) -> list[Operation]:
    """The operations that are nodes."""
    _name_all(graph)
    return [operation_of(graph, i) for i in range(graph.node_count) if graph.node(i) is not None]


def _constant_name(operation: Operation, place: int) -> str:
    return f"{operation.name}/{'xyz'[place] if place < 3 else place}"


def _of_function_graph(
    self: FuncGraph, from_version: int | None = None, add_shapes: bool = False, use_pybind11_proto: bool = False
) -> Any:
    """The nodes as messages, with one for each input, constant and result."""
    _name_all(self)
    return function_graph_message(self)


def _operation_by_name(self: FuncGraph, name: str) -> Operation:
    """The operation of this name."""
    operations: list[Operation] = self.get_operations()
    for operation in operations:
        if operation.name == name:
            return operation
    raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")


def _tensor_by_name(self: FuncGraph, name: str) -> Any:
    """The tensor of this name, as "add:0"."""
    imported = self.__dict__.get("imported_tensors", {}).get(name)
    if imported is not None:
        return imported
    for tensor in self.inputs:
        if tensor.name == name:
            return tensor
    base, colon, place = name.rpartition(":")
    if not colon or not place.isdigit():
        raise ValueError(
            f"The name {name!r} looks like an (invalid) Operation name, not a Tensor. Tensor names must be of the form "
            '"<op_name>:<output_index>".'
        )
    known = base.split("_")
    if known[0] == "Identity" and len(known) <= 2 and (len(known) == 1 or known[1].isdigit()):
        number = int(known[1]) if len(known) == 2 else 0
        if number < len(self.outputs):
            return self.outputs[number]
    try:
        return self.get_operation_by_name(base).outputs[int(place)]
    except (KeyError, IndexError):
        raise KeyError(
            f"The name {name!r} refers to a Tensor which does not exist. The operation, {base!r}, does not exist in "
            "the graph."
        ) from None


def _graph_element(self: FuncGraph, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
    """The tensor or operation that a name or an object means."""
    if not isinstance(obj, str):
        return obj
    return self.get_tensor_by_name(obj) if ":" in obj else self.get_operation_by_name(obj)


@public("compat.v1.train.write_graph", "io.write_graph", "compat.v1.io.write_graph")
def write_graph(graph_or_graph_def: Any, logdir: Any, name: str, as_text: bool = True) -> str:
    """Writes a graph to a file, as text or as bytes, for people and for programs that show graphs.

    >>> with tf.Graph().as_default() as graph:
    ...     y = tf.constant(1.)
    >>> tf.io.write_graph(graph, ".", "graph.pbtxt")
    './graph.pbtxt'
    """
    definition = graph_or_graph_def
    if hasattr(definition, "as_graph_def"):
        definition = definition.as_graph_def()
    folder = os.fspath(logdir)
    os.makedirs(folder or ".", exist_ok=True)
    path = os.path.join(folder, name)
    contents = str(definition).encode() if as_text else definition.SerializeToString(deterministic=True)
    write_atomically(path, contents)
    return path


def _op_def(name: str) -> Any:
    """What TensorFlow's operation of this name takes and gives, as a message; None if it has none."""
    found = find_op_def(name)
    if found is None:
        return None
    message = messages.OpDef(name=found.name, is_stateful=found.stateful)
    for given, written in ((found.inputs, message.input_arg), (found.outputs, message.output_arg)):
        for argument in given:
            entry = written.add(name=argument.name, number_attr=argument.length or "")
            if argument.types:
                entry.type_list_attr = argument.kind
            elif argument.kind in found.attributes:
                entry.type_attr = argument.kind
            else:
                entry.type = as_dtype(argument.kind).as_datatype_enum
    for attribute in found.attributes.values():
        message.attr.add(name=attribute.name, type=attribute.kind)
    return message


class SessionGraphDefinition:
    """The members of `tf.Graph` that give messages."""

    as_graph_def = _of_session_graph
    graph_def_versions = property(lambda self: messages.VersionDef(producer=PRODUCER))


class FunctionGraphDefinition:
    """The members of a function's graph that list its nodes."""

    as_graph_def = _of_function_graph
    get_operations = _operations
    get_operation_by_name = _operation_by_name
    get_tensor_by_name = _tensor_by_name
    name_nodes_now = _name_all
    as_graph_element = _graph_element


class ConcreteDefinition:
    """The member of a concrete function that gives a message."""

    function_def = property(lambda self: function_message(self.graph, self.name.decode()))


class OperationDefinition:
    """The members of `tf.Operation` that give messages."""

    node_def = property(_definition)
    op_def = property(lambda self: _op_def(self.type))


class VariableOperationDefinition:
    """The same for the operation that stands for a variable."""

    node_def = property(lambda self: messages.NodeDef(name=self.name, op=self.type))
    op_def = property(lambda self: _op_def(self.type))
