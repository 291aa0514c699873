"""`import_graph_def`: the nodes of a message become nodes of the default graph.

A message that was made of a graph of this program remembers it: its nodes are those of that graph, with other inputs.
The nodes of other messages, of graphs that TensorFlow wrote, are made by the operations of `tf.raw_ops`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.v1.graph.graph import Graph, get_default_graph
from tapeflow._src.compat.v1.graph.graph_def import AttrValue, GraphDef, NodeDef
from tapeflow._src.compat.v1.graph.operation import Operation, operation_of
from tapeflow._src.io.protos.tensor_protos import TensorProto
from tapeflow._src.namespace import find_public, public
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.tensor import Tensor
from tapeflow._src.types.tensor_shape import TensorShape

_VARIABLES = ("VarHandleOp", "VariableV2", "Variable", "ReadVariableOp", "AssignVariableOp")


def _split(name: str) -> tuple[str, int]:
    """The node and the number of the output that "node:1" means."""
    base, colon, place = name.rpartition(":")
    return (base, int(place)) if colon and place.isdigit() else (name, 0)


class _Import:
    """The way of one message into a graph."""

    def __init__(self, graph: Graph, definition: GraphDef, input_map: Mapping[str, Any], prefix: str) -> None:
        self._graph, self._prefix = graph, prefix
        self._nodes = list(definition.node)
        self._source: Any = definition.__dict__.get("_source")
        self._replacement = {_split(key): value for key, value in input_map.items() if not key.startswith("^")}
        self._used: set[tuple[str, int]] = set()
        self.operation_by_name: dict[str, Operation] = {}
        self.outputs_by_name: dict[str, list[Any]] = {}

    def run(self) -> None:
        names = {node.name for node in self._nodes}
        unknown = [key for key in self._replacement if key[0] not in names]
        if unknown:
            text = ", ".join(f"{name}:{place}" for name, place in unknown)
            raise ValueError(f"Attempted to map inputs that were not found in graph_def: [{text}]")
        waiting = self._nodes
        while waiting:
            ready = [node for node in waiting if self._is_ready(node)]
            if not ready:
                first = waiting[0]
                missing = next(x for x in first.input if _split(x.lstrip("^"))[0] not in self.operation_by_name)
                raise ValueError(f"Node '{first.name}': Unknown input node '{missing}'")
            for node in ready:
                self._add(node)
            waiting = [node for node in waiting if node.name not in self.operation_by_name]

    def _is_ready(self, node: NodeDef) -> bool:
        return all(
            _split(x) in self._replacement or _split(x.lstrip("^"))[0] in self.operation_by_name for x in node.input
        )

    def _tensor(self, name: str) -> Any:
        key = _split(name)
        if key in self._replacement:
            return self._replacement[key]
        return self.outputs_by_name[key[0]][key[1]]

    def _add(self, node: NodeDef) -> None:
        graph = self._graph
        inputs = [self._tensor(x) for x in node.input if not x.startswith("^")]
        controls = [self.operation_by_name[x[1:]]._number for x in node.input if x.startswith("^")]
        full = _core.Graph.unique_name(graph, self._prefix + node.name)
        before, graph.control_scope = graph.control_scope, controls
        graph.names_nodes, first = False, graph.node_count
        try:
            number, outputs = self._make(node, inputs, full)
        except (KeyError, IndexError, AttributeError) as error:
            raise ValueError(
                f"import_graph_def: the attributes or inputs of node {node.name!r} ({node.op}) are not those of its "
                f"operation: {error}"
            ) from error
        finally:
            graph.names_nodes, graph.control_scope = True, before
        for other in range(first, graph.node_count):
            if other != number and graph.node(other) is not None:
                inner = _core.Graph.unique_name(graph, f"{full}/{graph.node(other)[0]}")
                graph.set_node_name(other, inner)
        graph.set_node_name(number, full)
        self.operation_by_name[node.name] = operation_of(graph, number)
        self.outputs_by_name[node.name] = outputs

    def _make(self, node: NodeDef, inputs: list[Any], full: str) -> tuple[int, list[Any]]:
        """Adds the node, perhaps as several; gives the number of the one that bears its name, and the outputs."""
        if node.op in _VARIABLES:
            raise ValueError(
                f"import_graph_def: '{node.name}' is a variable ({node.op}). Variables belong to their own graph: "
                "import a graph whose variables have become constants."
            )
        if node.op == "NoOp":
            return self._graph.add_no_op(full), []
        result = self._replayed(node, inputs)
        if result is None:
            result = _from_attributes(node, inputs)
        outputs = list(result) if isinstance(result, list | tuple) else [result]
        if not outputs or not isinstance(outputs[0], Tensor):
            return self._graph.node_count - 1, []
        place = _core.place_of(outputs[0])
        if place is None or place[2] < 0 or any(outputs[0] is x for x in inputs) or outputs[0].value_index:
            outputs[0] = find_public("identity")(outputs[0])
            place = _core.place_of(outputs[0])
        return self._graph.node_count - 1 if place is None else place[2], outputs

    def _replayed(self, node: NodeDef, inputs: list[Any]) -> Any:
        """What the node of the graph that the message was made of gives for other inputs; None if it is not there."""
        number = None if self._source is None else self._source._number_of(node.name)
        if number is None or node.op in ("Const", "Placeholder"):
            return None
        operation = operation_of(self._source, number)
        if operation.type != node.op or len(operation.inputs) != len(inputs):
            return None
        return self._source.excerpt(operation.outputs, list(operation.inputs), [], True).call(inputs)


def _from_attributes(node: NodeDef, inputs: list[Any]) -> Any:
    """What the operation that the node names gives for the inputs, with the node's attributes."""
    attributes = {key: _value(attribute) for key, attribute in node.attr.items()}
    if node.op == "Const":
        return find_public("constant")(find_public("make_ndarray")(node.attr["value"].tensor), attributes["dtype"])
    if node.op == "Placeholder":
        return find_public("compat.v1.placeholder")(attributes["dtype"], attributes.get("shape"))
    operation = getattr(find_public("raw_ops"), node.op, None)
    if operation is None:
        raise ValueError(f"import_graph_def: node '{node.name}': Op type not registered '{node.op}'")
    names = [name for name in operation.__signature__.parameters if name != "name"]
    given = {name: attributes[name] for name in names if name in attributes}
    rest = iter(inputs)
    for place, name in enumerate(name for name in names if name not in given):
        many = attributes.get("N") if place == 0 else None
        values = [x for _, x in zip(range(many or 1), rest)]
        if values:
            given[name] = values if many else values[0]
    try:
        return operation(**given)
    except (TypeError, ValueError) as error:
        raise ValueError(f"import_graph_def: node '{node.name}' ({node.op}): {error}") from error


def _value(attribute: AttrValue) -> Any:
    """An attribute as the operations of `tf.raw_ops` take it."""
    kind = attribute.WhichOneof("value")
    if kind == "list":
        return next(([_plain(name, x) for x in values] for name, values in attribute.list.ListFields()), [])
    return None if kind is None else _plain(kind, getattr(attribute, kind))


def _plain(kind: str, value: Any) -> Any:
    if kind == "s":
        return value.decode(errors="surrogateescape")
    if kind == "b":
        return bool(value)
    if kind == "type":
        return as_dtype(value)
    if kind == "shape":
        return TensorShape([None if dim.size < 0 else dim.size for dim in value.dim])
    return find_public("make_ndarray")(value) if isinstance(value, TensorProto) else value


@public("import_graph_def", "graph_util.import_graph_def", "compat.v1.import_graph_def")
def import_graph_def(
    graph_def: Any,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Any = None,
    name: str | None = None,
    producer_op_list: Any = None,
) -> list[Any] | None:
    """Adds the nodes of a message to the default graph, their names below `name`; gives those that are asked for.

    Tensors of `input_map` stand in place of those with the given names. Variables cannot be imported.

    >>> with tf.Graph().as_default() as graph:
    ...     x = tf.compat.v1.placeholder(tf.float32, [], name="x")
    ...     y = tf.multiply(x, 3., name="y")
    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     (y,) = tf.import_graph_def(graph.as_graph_def(), {"x:0": tf.constant(2.)}, ["y:0"])
    ...     y.name, session.run(y)
    ('import/y:0', np.float32(6.0))
    """
    if not isinstance(graph_def, GraphDef):
        raise TypeError(f"Argument `graph_def` must be a GraphDef proto. Received: {type(graph_def).__name__}")
    if input_map is not None and not isinstance(input_map, Mapping):
        raise TypeError("Argument `input_map` must be a dictionary mapping strings to Tensor objects.")
    graph = _core.current_graph()
    if graph is None or not graph.takes_everything:
        if graph is not None:
            raise ValueError("import_graph_def: nodes are imported into a tf.Graph, not into a function that is traced")
        graph = get_default_graph()
    with graph.as_default():
        scope = graph.scope
        prefix = graph.enter_name_scope(name if name is not None else "import") if name != "" else scope
        try:
            tensors = {key: _core.convert_to_tensor(x, None, None, "import") for key, x in (input_map or {}).items()}
            graph.scope = ""
            work = _Import(graph, graph_def, tensors, prefix)
            work.run()
        finally:
            graph.scope = scope
    if return_elements is None:
        return None
    return [_element(work, element) for element in return_elements]


def _element(work: _Import, name: Any) -> Any:
    if not isinstance(name, str):
        raise TypeError("Argument `return_elements` must be a list of strings.")
    base, place = _split(name)
    operation = work.operation_by_name.get(base)
    if operation is None or (base != name and place >= len(work.outputs_by_name[base])):
        kind = "tensor" if base != name else "node"
        raise ValueError(f"Requested return {kind} '{name}' not found in graph def")
    return operation if base == name else work.outputs_by_name[base][place]
