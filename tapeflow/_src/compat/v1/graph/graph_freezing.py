"""`tf.graph_util`: the part of a graph that some nodes need, and graphs whose variables have become constants."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.tensor_protos import make_tensor_proto
from tapeflow._src.namespace import public

_READING = "ReadVariableOp"
_CHECK = "CheckNumerics"
_SAME = "Identity"


def _base(name: str) -> str:
    """The node that an input, "y:1" or "^y", comes from."""
    return name.lstrip("^").partition(":")[0]


def _with_nodes(definition: Any, nodes: Iterable[Any]) -> Any:
    part = messages.GraphDef(node=list(nodes))
    for field in ("versions", "library"):
        if definition.HasField(field):
            getattr(part, field).CopyFrom(getattr(definition, field))
    return part


@public("compat.v1.graph_util.extract_sub_graph")
def extract_sub_graph(graph_def: Any, dest_nodes: Any) -> Any:
    """The nodes of a message that the named ones need, in their order.

    >>> with tf.Graph().as_default() as graph:
    ...     y = tf.negative(tf.constant(1., name="x"), name="y")
    ...     z = tf.constant(2., name="z")
    >>> part = tf.compat.v1.graph_util.extract_sub_graph(graph.as_graph_def(), ["y"])
    >>> [node.name for node in part.node]
    ['x', 'y']
    """
    if not isinstance(graph_def, messages.GraphDef):
        raise TypeError(f"graph_def must be a graph_pb2.GraphDef proto, but got type {type(graph_def)}.")
    if isinstance(dest_nodes, str):
        raise TypeError(f"dest_nodes must be an iterable of strings, but got type {type(dest_nodes)}.")
    node_by_name = {node.name: node for node in graph_def.node}
    needed: set[str] = set()
    waiting = list(dest_nodes)
    for name in waiting:
        if name not in node_by_name:
            raise AssertionError(f"{name} is not in graph")
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += [_base(x) for x in node_by_name[name].input]
    return _with_nodes(graph_def, (node for node in graph_def.node if node.name in needed))


@public("compat.v1.graph_util.convert_variables_to_constants")
def convert_variables_to_constants(
    sess: Any,
    input_graph_def: Any,
    output_node_names: Any,
    variable_names_whitelist: Any = None,
    variable_names_blacklist: Any = None,
) -> Any:
    """The nodes that the named ones need, with the session's values in place of the readings of variables.

    >>> with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
    ...     y = tf.multiply(tf.compat.v1.get_variable("w", initializer=3.), 2., name="y")
    ...     session.run(tf.compat.v1.global_variables_initializer())
    ...     frozen = tf.compat.v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["y"])
    >>> [node.op for node in frozen.node]
    ['Const', 'Const', 'Mul']
    """
    readings = {node.name for node in input_graph_def.node if node.op == _READING}
    cut = [
        messages.NodeDef(name=node.name, op=node.op, attr=node.attr) if node.name in readings else node
        for node in input_graph_def.node
    ]
    part = extract_sub_graph(_with_nodes(input_graph_def, cut), output_node_names)
    names = [node.name for node in part.node if node.name in readings]
    values = dict(zip(names, sess.run([f"{name}:0" for name in names])))
    return _with_nodes(
        part, (_constant(node.name, values[node.name]) if node.name in values else node for node in part.node)
    )


def _constant(name: str, value: Any) -> Any:
    proto = make_tensor_proto(value)
    return messages.NodeDef(
        name=name,
        op="Const",
        attr={"value": messages.AttrValue(tensor=proto), "dtype": messages.AttrValue(type=proto.dtype)},
    )


@public("compat.v1.graph_util.remove_training_nodes")
def remove_training_nodes(input_graph: Any, protected_nodes: Any = None) -> Any:
    """The nodes of a message without checks of numbers and identities, which only training needs.

    Identities stay that have a control input, are one, or that others are colocated with.

    >>> with tf.Graph().as_default() as graph:
    ...     x = tf.identity(tf.constant(1., name="x"), name="same")
    ...     y = tf.negative(x, name="y")
    >>> [node.name for node in tf.compat.v1.graph_util.remove_training_nodes(graph.as_graph_def()).node]
    ['x', 'y']
    """
    kept = set(protected_nodes or ())
    checks = {node.name for node in input_graph.node if node.op == _CHECK and node.name not in kept}
    nodes = [_with_inputs(node, [x for x in node.input if _base(x) not in checks]) for node in input_graph.node]
    nodes = [node for node in nodes if node.name not in checks]
    source = {node.name: node.input[0] for node in nodes if node.op == _SAME and node.name not in kept | _tied(nodes)}
    kept_nodes = (node for node in nodes if node.name not in source)
    return _with_nodes(input_graph, [_with_inputs(node, [_end(x, source) for x in node.input]) for node in kept_nodes])


def _with_inputs(node: Any, inputs: list[str]) -> Any:
    copy = messages.NodeDef()
    copy.CopyFrom(node)
    del copy.input[:]
    copy.input.extend(inputs)
    return copy


def _tied(nodes: list[Any]) -> set[str]:
    """The nodes with a control input, those that are one, and those that others are colocated with."""
    tied: set[str] = set()
    for node in nodes:
        before = [_base(x) for x in node.input if x.startswith("^")]
        tied |= {*before, node.name} if before else set()
        if "_class" in node.attr:
            tied |= {place.decode().removeprefix("loc:@") for place in node.attr["_class"].list.s}
    return tied


def _end(name: str, source: dict[str, str]) -> str:
    """Where an input comes from, past the identities that go."""
    while _base(name) in source:
        name = source[_base(name)]
    return name


@public("compat.v1.graph_util.tensor_shape_from_node_def_name")
def tensor_shape_from_node_def_name(graph: Any, input_name: str) -> Any:
    """The shape of the tensor that an input of a node, "y" or "y:0", names.

    >>> with tf.Graph().as_default() as graph:
    ...     x = tf.zeros([2, 3], name="x")
    >>> tf.compat.v1.graph_util.tensor_shape_from_node_def_name(graph, "x")
    TensorShape([2, 3])
    """
    return graph.get_tensor_by_name(input_name if ":" in input_name else f"{input_name}:0").shape
