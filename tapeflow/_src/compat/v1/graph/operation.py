"""`tf.Operation`: one node of a graph, and the members of tensors that refer to it."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.namespace import lazy_members, public
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.tensor import traced_graph

_TYPE_BY_NAME = {"GetItem": "StridedSlice"}


@public("Operation", "compat.v1.Operation")
@lazy_members("tapeflow._src.compat.v1.graph.graph_def.OperationDefinition", "node_def", "op_def")
class Operation:
    """One node of a graph: its name, its type, the tensors it takes and those it gives.

    >>> with tf.Graph().as_default():
    ...     y = tf.constant(1.) + 2.
    ...     y.op.name, y.op.type
    ('add', 'AddV2')
    """

    _is_graph_operation = True  # a branch may return one: it is run for its effects

    def __init__(self, graph: Any, number: int) -> None:
        self._graph, self._number = graph, number

    def _node(self) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self._graph.node(self._number)
        return found

    @property
    def name(self) -> str:
        """The name, unique in the graph."""
        return self._node()[1] or f"{self._node()[0]}_{self._number}"

    @property
    def type(self) -> str:
        """What it computes: "MatMul"."""
        kind = self._node()[0]
        return str(_TYPE_BY_NAME.get(kind, kind))

    @property
    def inputs(self) -> tuple[Any, ...]:
        """The tensors that it takes."""
        return tuple(self._node()[2])

    @property
    def outputs(self) -> list[Any]:
        """The tensors that it gives."""
        return list(self._node()[3])

    def values(self) -> tuple[Any, ...]:
        """The tensors that it gives."""
        return tuple(self.outputs)

    @property
    def graph(self) -> Any:
        """The graph that it is part of."""
        return self._graph

    @property
    def control_inputs(self) -> list[Operation]:
        """The operations that run before it though it does not take their outputs."""
        return [operation_of(self._graph, i) for i in self._graph.controls(self._number)]

    @property
    def _control_outputs(self) -> list[Operation]:
        """The operations that run after it though they do not take its outputs."""
        graph = self._graph
        later = range(self._number + 1, graph.node_count)
        return [operation_of(graph, i) for i in later if graph.node(i) and self._number in graph.controls(i)]

    @property
    def device(self) -> str:
        """The name of the device on which it is to run; empty if none is named."""
        of_node = getattr(self._graph, "_device_of_node", None)
        return "" if of_node is None else of_node(self._number)

    def _set_device(self, device: Any) -> None:
        """Names the device on which it is to run."""
        self._graph._set_device_of_node(self._number, _device_text(device))

    def get_attr(self, name: str) -> Any:
        """The attribute of this name: "T" is the dtype of the first tensor, others are as `node_def` has them."""
        tensors = [*self.inputs, *self.outputs]
        if name in ("T", "dtype") and tensors:
            return tensors[0].dtype
        attributes = self.node_def.attr  # type: ignore[attr-defined]
        if name in attributes:
            return _attribute(attributes[name])
        raise ValueError(f"Operation '{self.name}' has no attr named '{name}'.")

    def run(self, feed_dict: Any = None, session: Any = None) -> None:
        """Runs it in the session, or in the default one."""
        session = session or self._graph.default_session()
        if session is None:
            raise ValueError(
                "Cannot execute operation using `run()`: No default session is registered. Use "
                "`with sess.as_default():` or pass an explicit session to `run(session=sess)`"
            )
        session.run(self, feed_dict)

    def __repr__(self) -> str:
        return f"<tf.Operation '{self.name}' type={self.type}>"

    def __str__(self) -> str:
        lines = [f'name: "{self.name}"', f'op: "{self.type}"']
        lines += [f'input: "{x.name.removesuffix(":0")}"' for x in self.inputs if _core.is_symbolic(x)]
        lines += [f'input: "^{operation.name}"' for operation in self.control_inputs]
        return "\n".join(lines) + "\n"


@lazy_members("tapeflow._src.compat.v1.graph.graph_def.VariableOperationDefinition", "node_def", "op_def")
class VariableOperation(Operation):
    """The operation that stands for a variable as a whole."""

    def __init__(self, graph: Any, name: str) -> None:
        super().__init__(graph, -1)
        self._name = name
        self._device = ""

    def _node(self) -> tuple[Any, ...]:
        return "VarHandleOp", self._name, [], []

    @property
    def device(self) -> str:
        """The name of the device on which the variable is to live; empty if none is named."""
        return self._device

    def _set_device(self, device: Any) -> None:
        """Names the device on which the variable is to live."""
        self._device = _device_text(device)

    @property
    def control_inputs(self) -> list[Operation]:
        """None: a variable is there from the beginning."""
        return []


class ImpliedOperation(Operation):
    """An input, constant or result of a function's graph, which has no node, as an operation that gives it."""

    def __init__(self, graph: Any, kind: str, name: str, inputs: list[Any], outputs: list[Any]) -> None:
        super().__init__(graph, -1)
        self._facts = kind, name, inputs, outputs

    def _node(self) -> tuple[Any, ...]:
        return self._facts

    @property
    def device(self) -> str:
        """Not named."""
        return ""

    @property
    def control_inputs(self) -> list[Operation]:
        """None: it only passes on what is there."""
        return []


def _attribute(message: Any) -> Any:
    """What a message `AttrValue` holds; types are dtypes."""
    kind = message.WhichOneof("value")
    if kind == "list":
        fields = ("s", "i", "f", "b", "type", "shape", "tensor", "func")
        found = next((field for field in fields if getattr(message.list, field)), "s")
        values = [*getattr(message.list, found)]
        return [as_dtype(value) for value in values] if found == "type" else values
    value = getattr(message, kind) if kind else None
    return as_dtype(value) if kind == "type" else value


def _device_text(device: Any) -> str:
    return device.to_string() if hasattr(device, "to_string") else str(device or "")


def operation_of(graph: Any, number: int) -> Operation:
    """The operation of a node; the same object each time."""
    known = graph.__dict__.setdefault("_operation_by_number", {})
    if number not in known:
        known[number] = Operation(graph, number)
    operation: Operation = known[number]
    return operation


def _place(tensor: Any, attribute: str) -> tuple[Any, int, int]:
    place = _core.place_of(tensor)
    if place is None:
        raise AttributeError(f"Tensor.{attribute} is undefined when eager execution is enabled.")
    return place


class GraphTensor:
    """The members of `tf.Tensor` that only tensors of a graph have. A tensor with a value has them while a function
    is traced, where it is a constant of that graph."""

    @property
    def op(self: Any) -> Operation:
        """The operation that gives this tensor, in its graph."""
        if _core.place_of(self) is None and (traced := traced_graph()) is not None:
            return ImpliedOperation(traced, "Const", "Const", [], [self])
        graph, _, node = _place(self, "op")
        if node >= 0:
            return operation_of(graph, node)
        name = self.name.rpartition(":")[0]
        if not graph.graph_mode and any(x is self for x in graph.inputs):
            return ImpliedOperation(graph, "Placeholder", name, [], [self])
        return VariableOperation(graph, name)

    @property
    def graph(self: Any) -> Any:
        """The graph that computes this tensor."""
        if _core.place_of(self) is None and (traced := traced_graph()) is not None:
            return traced
        return _place(self, "graph")[0]

    @property
    def value_index(self: Any) -> int:
        """The position of this tensor among the outputs of its operation."""
        return int(self.name.rpartition(":")[2])

    def consumers(self: Any) -> list[Operation]:
        """The operations that take this tensor."""
        graph, _, node = _place(self, "consumers")
        found = []
        for i in range(max(node, 0), graph.node_count):
            facts = graph.node(i)
            if facts is not None and any(x is self for x in facts[2]):
                found.append(operation_of(graph, i))
        return found

    def eval(self: Any, feed_dict: Any = None, session: Any = None) -> Any:
        """The value, computed in the session or in the default one."""
        graph = _place(self, "eval")[0]
        session = session or (graph.default_session() if hasattr(graph, "default_session") else None)
        if session is None:
            raise ValueError(
                "Cannot evaluate tensor using `eval()`: No default session is registered. Use `with sess.as_default()` "
                "or pass an explicit session to `eval(session=sess)`"
            )
        if getattr(session, "graph", graph) is not graph:
            raise ValueError(
                "Cannot use the given session to evaluate tensor: the tensor's graph is different from the session's "
                "graph."
            )
        return session.run(self, feed_dict)
