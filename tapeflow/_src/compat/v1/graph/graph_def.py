"""Graphs as messages, `tf.GraphDef`: for programs that look at nodes. `graph_import.py` reads them back."""

from __future__ import annotations

import bisect
import os
from typing import Any, ClassVar

from tapeflow._src import _core
from tapeflow._src.compat.v1.graph.graph import Graph, default_name
from tapeflow._src.compat.v1.graph.operation import Operation, operation_of
from tapeflow._src.control_flow.tracing import FuncGraph
from tapeflow._src.io.protos.message import Field, Message
from tapeflow._src.io.protos.tensor_protos import ShapeProto, TensorProto, proto_of
from tapeflow._src.namespace import public

_PRODUCER = 2345  # the version of TensorFlow's graphs that ours resemble


class ListValue(Message):
    """A list that is an attribute."""

    FIELDS: ClassVar[dict[str, Field]] = {
        "s": Field(2, "bytes", repeated=True),
        "i": Field(3, "int", repeated=True),
        "f": Field(4, "float", repeated=True),
        "b": Field(5, "int", repeated=True),
        "type": Field(6, "int", repeated=True),
        "shape": Field(7, ShapeProto, repeated=True),
        "tensor": Field(8, TensorProto, repeated=True),
    }


@public("compat.v1.AttrValue")
class AttrValue(Message):
    """An attribute of a node: a number, a dtype, a shape or a tensor.

    >>> tf.compat.v1.AttrValue(i=3).i
    3
    """

    FIELDS: ClassVar[dict[str, Field]] = {
        "list": Field(1, ListValue, choice="value"),
        "s": Field(2, "bytes", choice="value"),
        "i": Field(3, "int", choice="value"),
        "f": Field(4, "float", choice="value"),
        "b": Field(5, "int", choice="value"),
        "type": Field(6, "int", choice="value"),
        "shape": Field(7, ShapeProto, choice="value"),
        "tensor": Field(8, TensorProto, choice="value"),
    }


@public("compat.v1.NodeDef")
class NodeDef(Message):
    """One node: its name, its operation, what it takes, and its attributes.

    >>> tf.compat.v1.NodeDef(name="y", op="AddV2", input=["x", "x"]).op
    'AddV2'
    """

    FIELDS: ClassVar[dict[str, Field]] = {
        "name": Field(1, "string"),
        "op": Field(2, "string"),
        "input": Field(3, "string", repeated=True),
        "device": Field(4, "string"),
        "attr": Field(5, AttrValue, mapped=True),
    }


class VersionDef(Message):
    """Who can read a graph."""

    FIELDS: ClassVar[dict[str, Field]] = {"producer": Field(1, "int"), "min_consumer": Field(2, "int")}


class FunctionDefLibrary(Message):
    """The functions that a graph calls: they are not listed."""

    FIELDS: ClassVar[dict[str, Field]] = {"function": Field(1, "bytes", repeated=True)}


@public("compat.v1.GraphDef")
class GraphDef(Message):
    """The nodes of a graph.

    >>> with tf.Graph().as_default() as graph:
    ...     y = tf.constant(1.) + 2.
    >>> [node.name for node in graph.as_graph_def().node]
    ['Const', 'add/y', 'add']
    """

    FIELDS: ClassVar[dict[str, Field]] = {
        "node": Field(1, NodeDef, repeated=True),
        "library": Field(2, FunctionDefLibrary),
        "versions": Field(4, VersionDef),
    }


def _shape_proto(shape: Any) -> ShapeProto:
    return ShapeProto(dim=[ShapeProto.Dim(size=-1 if size is None else size) for size in shape.as_list()])


def _input_name(tensor: Any) -> str:
    return str(tensor.name.removesuffix(":0"))


def _attributes(kind: str, inputs: Any, outputs: Any) -> dict[str, AttrValue]:
    tensors = [*outputs, *inputs]
    if not tensors:
        return {}
    number = tensors[0].dtype.as_datatype_enum
    if kind == "Placeholder":
        known = tensors[0].shape.rank is not None
        shape = {"shape": AttrValue(shape=_shape_proto(tensors[0].shape))} if known else {}
        return {"dtype": AttrValue(type=number)} | shape
    if kind == "Const":
        return {"dtype": AttrValue(type=number)}
    return {"T": AttrValue(type=(inputs or outputs)[0].dtype.as_datatype_enum)}


def _definition(operation: Operation) -> NodeDef:
    """The message of an operation."""
    inputs = [x for x in operation.inputs if _core.is_symbolic(x)]
    names = [_input_name(x) for x in inputs] + [f"^{control.name}" for control in operation.control_inputs]
    attributes = _attributes(operation.type, list(operation.inputs), operation.outputs)
    if operation.type == "Const":
        (value,) = operation.graph.excerpt(operation.outputs, [], [], True).call([])
        attributes["value"] = AttrValue(tensor=proto_of(value))
    return NodeDef(name=operation.name, op=operation.type, input=names, attr=attributes)


def _constant(name: str, value: Any) -> NodeDef:
    attributes = {"value": AttrValue(tensor=proto_of(value)), "dtype": AttrValue(type=value.dtype.as_datatype_enum)}
    return NodeDef(name=name, op="Const", attr=attributes)


def _graph_def(nodes: list[NodeDef]) -> GraphDef:
    return GraphDef(node=nodes, versions=VersionDef(producer=_PRODUCER))


def _of_session_graph(
    self: Graph, from_version: int | None = None, add_shapes: bool = False, use_pybind11_proto: bool = False
) -> GraphDef:
    """The nodes as messages."""
    definition = _graph_def([_definition(operation) for operation in self.get_operations()])
    definition.__dict__["_source"] = self
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
    """All operations, in the order in which they were made."""
    _name_all(self)
    return [operation_of(self, i) for i in range(self.node_count) if self.node(i) is not None]


def _of_function_graph(
    self: FuncGraph, from_version: int | None = None, add_shapes: bool = False, use_pybind11_proto: bool = False
) -> GraphDef:
    """The nodes as messages, with one for each input, constant and result."""
    nodes = []
    for tensor in self.inputs:
        attributes = {"_user_specified_name": AttrValue(s=_input_name(tensor).encode())}
        attributes |= _attributes("Placeholder", [], [tensor])
        nodes.append(NodeDef(name=_input_name(tensor), op="Placeholder", attr=attributes))
    for operation in self.get_operations():
        node = _definition(operation)
        names = []
        for place, tensor in enumerate(operation.inputs):
            if _core.is_symbolic(tensor):
                names.append(_input_name(tensor))
            else:
                names.append(f"{operation.name}/{'xyz'[place] if place < 3 else place}")
                nodes.append(_constant(names[-1], tensor))
        del node.input[:]
        node.input.extend(names)
        nodes.append(node)
    for place, tensor in enumerate(self.outputs):
        name = f"Identity_{place}" if place else "Identity"
        attributes = {"T": AttrValue(type=tensor.dtype.as_datatype_enum)}
        if _core.is_symbolic(tensor):
            nodes.append(NodeDef(name=name, op="Identity", input=[_input_name(tensor)], attr=attributes))
        else:
            nodes.append(_constant(name, tensor))
    return _graph_def(nodes)


def _operation_by_name(self: FuncGraph, name: str) -> Operation:
    """The operation of this name."""
    operations: list[Operation] = self.get_operations()
    for operation in operations:
        if operation.name == name:
            return operation
    for tensor in self.inputs:
        if _input_name(tensor) == name:
            result: Operation = tensor.op
            return result
    raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")


def _tensor_by_name(self: FuncGraph, name: str) -> Any:
    """The tensor of this name, as "add:0"."""
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
    contents = str(definition).encode() if as_text else definition.SerializeToString()
    with open(path, "wb") as file:
        file.write(contents)
    return path


class SessionGraphDefinition:
    """The members of `tf.Graph` that give messages."""

    as_graph_def = _of_session_graph
    graph_def_versions = property(lambda self: VersionDef(producer=_PRODUCER))


class FunctionGraphDefinition:
    """The members of a function's graph that list its nodes."""

    as_graph_def = _of_function_graph
    get_operations = _operations
    get_operation_by_name = _operation_by_name
    get_tensor_by_name = _tensor_by_name
    name_nodes_now = _name_all


class OperationDefinition:
    """The member of `tf.Operation` that gives a message."""

    node_def = property(_definition)


class VariableOperationDefinition:
    """The same for the operation that stands for a variable."""

    node_def = property(lambda self: NodeDef(name=self.name, op=self.type))
