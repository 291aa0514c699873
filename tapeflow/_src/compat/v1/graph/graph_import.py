"""`import_graph_def`: the nodes of a message become nodes of the default graph.

The nodes are made by the operations of `tf.raw_ops`, in a graph of TensorFlow 1 or in a function that is being traced.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.graph_def import import_handlers  # noqa: F401
from tapeflow._src.compat.graph_def.attributes import python_value
from tapeflow._src.compat.graph_def.frames import without_frames
from tapeflow._src.compat.graph_def.library import FunctionLibrary, check_nodes
from tapeflow._src.compat.graph_def.program import Program, run_node
from tapeflow._src.compat.v1.graph.graph import Graph, get_default_graph
from tapeflow._src.compat.v1.graph.operation import Operation, operation_of
from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.tensor_messages import array_of
from tapeflow._src.namespace import find_public, public
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import UnimplementedError
from tapeflow._src.types.tensor import Tensor
from tapeflow._src.types.tensor_shape import TensorShape

_VARIABLES = ("VarHandleOp", "VariableV2", "Variable")


def _split(name: str) -> tuple[str, int]:
    """The node and the number of the output that "node:1" means."""
    base, colon, place = name.rpartition(":")
    return (base, int(place)) if colon and place.isdigit() else (name, 0)


def _check_operations(nodes: Any, library: FunctionLibrary) -> None:
    try:
        check_nodes(nodes, library, "import_graph_def")
    except UnimplementedError as error:
        raise ValueError(error.message) from None


class _Import:
    """The import of one message into a graph."""

    def __init__(self, graph: Graph, definition: Any, input_map: Mapping[str, Any], prefix: str) -> None:
        self._graph, self._prefix = graph, prefix
        self._nodes = list(definition.node)
        self._library = FunctionLibrary(definition.library, "import_graph_def")
        self._resources: dict[str, Any] = {}
        self._replacement = {_split(key): value for key, value in input_map.items() if not key.startswith("^")}
        self._used: set[tuple[str, int]] = set()
        self.operation_by_name: dict[str, Operation] = {}
        self.outputs_by_name: dict[str, list[Any]] = {}

    def run(self) -> None:
        """Adds all nodes, each after those that it takes something from."""
        _check_operations(self._nodes, self._library)
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
                with self._graph.device(node.device) if node.device else nullcontext():
                    self._add(node)
            waiting = [node for node in waiting if node.name not in self.operation_by_name]

    def _is_ready(self, node: Any) -> bool:
        return all(
            _split(x) in self._replacement or _split(x.lstrip("^"))[0] in self.operation_by_name for x in node.input
        )

    def _tensor(self, name: str, node: Any) -> Any:
        key = _split(name)
        if key in self._replacement:
            return self._replacement[key]
        outputs = self.outputs_by_name[key[0]]
        if key[1] >= len(outputs):
            raise ValueError(
                f"Node '{node.name}': Connecting to invalid output {key[1]} of source node {key[0]} which has "
                f"{len(outputs)} outputs."
            )
        return outputs[key[1]]

    def _add(self, node: Any) -> None:
        graph = self._graph
        if node.op in _VARIABLES:
            variable = self._variable(node)
            self.operation_by_name[node.name], self.outputs_by_name[node.name] = variable.op, [variable]
            return
        inputs = [self._tensor(x, node) for x in node.input if not x.startswith("^")]
        waited = [self.operation_by_name[x[1:]] for x in node.input if x.startswith("^")]
        controls = [operation._number for operation in waited if isinstance(operation, Operation)]
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
        if number >= first or any(isinstance(x, Tensor) for x in outputs):
            graph.set_node_name(number, full)
        if len(outputs) > 1 and all(isinstance(x, Tensor) for x in outputs):
            graph.name_outputs(full, outputs)
        self.operation_by_name[node.name] = operation_of(graph, number)
        self.outputs_by_name[node.name] = outputs

    def _make(self, node: Any, inputs: list[Any], full: str) -> tuple[int, list[Any]]:
        """Adds the node, perhaps as several; gives the number of the one that bears its name, and the outputs."""
        if node.op == "NoOp":
            return self._graph.add_no_op(full), []
        outputs = self._results(node, inputs)
        if not outputs or not isinstance(outputs[0], Tensor):
            return self._graph.node_count - 1, outputs
        place = _core.place_of(outputs[0])
        if place is None or place[2] < 0 or any(outputs[0] is x for x in inputs) or outputs[0].value_index:
            outputs[0] = find_public("identity")(outputs[0])
            place = _core.place_of(outputs[0])
        return self._graph.node_count - 1 if place is None else place[2], outputs

    def _results(self, node: Any, inputs: list[Any]) -> list[Any]:
        if node.op == "Const":
            tensor = node.attr["value"].tensor
            value = find_public("constant")(array_of(tensor), as_dtype(node.attr["dtype"].type or tensor.dtype))
            return [value if _core.is_symbolic(value) else self._graph.add_constant(value, "Const")]
        if node.op == "Placeholder":
            shape = python_value(node.attr["shape"]) if "shape" in node.attr else None
            return [find_public("compat.v1.placeholder")(as_dtype(node.attr["dtype"].type), shape)]
        if node.op == "PlaceholderWithDefault":
            shape = python_value(node.attr["shape"]) if "shape" in node.attr else None
            return [find_public("compat.v1.placeholder_with_default")(inputs[0], shape)]
        return run_node(node, inputs, self._library, self._resources)

    def _variable(self, node: Any) -> Any:
        """A variable of the graph; it has no value until one is restored or assigned."""
        dtype, shape = as_dtype(node.attr["dtype"].type).base_dtype, TensorShape(python_value(node.attr["shape"]))
        first = find_public("zeros")([1 if n is None else n for n in shape.as_list()] if shape.rank else [], dtype)
        common = {"name": f"{self._prefix}{node.name}", "use_resource": True}
        if not shape.is_fully_defined():
            common |= {"validate_shape": False, "shape": shape}
        made = find_public("compat.v1.Variable")(first, False, [], **common)
        self._resources[node.name] = made
        return made


@public("import_graph_def", "graph_util.import_graph_def", "compat.v1.import_graph_def")
def import_graph_def(
    graph_def: Any,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Any = None,
    name: str | None = None,
    producer_op_list: Any = None,
) -> list[Any] | None:
    """Adds the nodes of a message to the default graph, their names below `name`; gives those that are asked for.

    Tensors of `input_map` stand in place of those with the given names. Variables have no values yet.

    >>> with tf.Graph().as_default() as graph:
    ...     x = tf.compat.v1.placeholder(tf.float32, [], name="x")
    ...     y = tf.multiply(x, 3., name="y")
    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     (y,) = tf.import_graph_def(graph.as_graph_def(), {"x:0": tf.constant(2.)}, ["y:0"])
    ...     y.name, session.run(y)
    ('import/y:0', np.float32(6.0))
    """
    if not isinstance(graph_def, messages.GraphDef):
        raise TypeError(f"Argument `graph_def` must be a GraphDef proto. Received: {type(graph_def).__name__}")
    if input_map is not None and not isinstance(input_map, Mapping):
        raise TypeError("Argument `input_map` must be a dictionary mapping strings to Tensor objects.")
    graph_def = without_frames(graph_def)
    graph = _core.current_graph()
    if graph is None or not graph.graph_mode:
        if graph is not None:
            return _import_into_function(graph, graph_def, input_map or {}, return_elements, name)
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


def _import_into_function(
    graph: Any, graph_def: Any, input_map: Mapping[str, Any], return_elements: Any, name: str | None
) -> list[Any] | None:
    """The same while a function is traced, as in `wrap_function`: placeholders become inputs of its graph."""
    prefix = "" if name == "" else f"{'import' if name is None else name}/"
    library = FunctionLibrary(graph_def.library, "import_graph_def")
    _check_operations(graph_def.node, library)
    given: dict[str, Any] = {}
    for node in graph_def.node:
        replaced = input_map.get(f"{node.name}:0", input_map.get(node.name))
        if replaced is not None:
            given[node.name] = _core.convert_to_tensor(replaced, None, None, "import")
        elif node.op == "Placeholder":
            shape = python_value(node.attr["shape"]) if "shape" in node.attr else TensorShape(None)
            if not isinstance(shape, TensorShape):
                raise ValueError(
                    f"import_graph_def: AttrValue missing value with expected type 'shape' for attr 'shape' of "
                    f"{{{{node {node.name}}}}}; got {shape!r}"
                )
            given[node.name] = graph.add_input(as_dtype(node.attr["dtype"].type), shape)
            graph.input_names.append(f"{prefix}{node.name}")
    names = [node.name for node in graph_def.node]
    values = Program(graph_def.node, list(given), [], names, library, "import_graph_def").run(given, {})
    imported = graph.__dict__.setdefault("imported_tensors", {})
    imported.update((f"{prefix}{key}:{i}", value) for key, found in values.items() for i, value in enumerate(found))
    if return_elements is None:
        return None
    wanted = [text if ":" in text else f"{text}:0" for text in return_elements]
    missing = [text for text in wanted if f"{prefix}{text}" not in imported]
    if missing:
        raise ValueError(f"Requested return tensor '{missing[0]}' not found in graph def")
    return [imported[f"{prefix}{text}"] for text in wanted]
