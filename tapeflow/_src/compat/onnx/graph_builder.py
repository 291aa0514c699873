"""The nodes of an ONNX graph while it is written; they are made of a function that has TensorFlow's nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src.compat.graph_def.attributes import python_value
from tapeflow._src.compat.graph_def.op_defs import find_op_def
from tapeflow._src.compat.raw_ops.operation import find_raw_operation, has_raw_operation
from tapeflow._src.function.trace import running_at_once
from tapeflow._src.io.protos.tensor_messages import tensor_of
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import UnimplementedError

OPSET = 18
_UPDATES = {"AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp", "LookupTableInsertV2"}
_COMPLEX = {"RFFT", "FFT", "Real", "Imag", "ComplexAbs", "Complex", "Identity", "IdentityN", "StopGradient"}
_UNFOLDED = {"Fill", "BroadcastTo", "Tile", "Range", "LinSpace", "OneHot", "PadV2"}  # what gives more than it takes
Rule = Callable[["Node"], Any]
rule_by_op: dict[str, Rule] = {}


def converts(*ops: str) -> Callable[[Rule], Rule]:
    """Registers what writes nodes of these operations."""

    def register(rule: Rule) -> Rule:
        rule_by_op.update(dict.fromkeys(ops, rule))
        return rule

    return register


class Names:
    """Names that no two values of a model share."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def fresh(self, hint: str) -> str:
        """A name like this one."""
        base = "".join(c if c.isalnum() or c in "_/." else "_" for c in hint) or "value"
        name, number = base, 0
        while name in self._used:
            number += 1
            name = f"{base}_{number}"
        self._used.add(name)
        return name


class Builder:
    """One graph: the model's own, or the body of a loop or branch, which also sees the values around it."""

    def __init__(self, onnx: Any, library: dict[str, Any], names: Names, where: str) -> None:
        self.onnx, self.library, self.names, self.where = onnx, library, names, where
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.constant_by_name: dict[str, np.ndarray] = {}
        self.table_by_name: dict[str, Any] = {}

    def inner(self) -> Builder:
        """A builder for a graph inside of this one."""
        made = Builder(self.onnx, self.library, self.names, self.where)
        made.constant_by_name, made.table_by_name = dict(self.constant_by_name), self.table_by_name
        return made

    def onnx_dtype(self, dtype: Any) -> int:
        """The number of a dtype in ONNX."""
        found = as_dtype(dtype)
        if found.name == "string":
            return int(self.onnx.TensorProto.STRING)
        return int(self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(found.as_numpy_dtype)))

    def add(self, op: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Adds a node; gives the name of its output, or the list of names."""
        names = [self.names.fresh(op) for _ in range(outputs)]
        given = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(self.onnx.helper.make_node(op, list(inputs), names, **given))
        return names[0] if outputs == 1 else names

    def constant(self, value: Any, dtype: Any = None, hint: str = "const") -> str:
        """A constant."""
        array = np.asarray(value, dtype)
        name = self.names.fresh(hint)
        self.initializers.append(self.onnx.numpy_helper.from_array(array, name))
        self.constant_by_name[name] = array
        return name

    def ints(self, values: Any) -> str:
        """A constant of integers."""
        return self.constant(values, np.int64)

    def run(self, function: Any, values: list[Any]) -> list[str]:
        """Writes the nodes of a function of the library; gives the names of its results."""
        signature = function.signature
        outputs_by_node: dict[str, list[Any]] = {
            arg.name: [value] for arg, value in zip(signature.input_arg, values, strict=True)
        }

        def value_of(text: str) -> Any:
            name, *rest = text.split(":")
            outputs = outputs_by_node[name]
            place = int(rest[-1]) if rest else 0
            if len(rest) == 2:
                place += _offset(node_by_name[name], rest[0])
            return outputs[place]

        node_by_name = {node.name: node for node in function.node_def}
        for message in self._live(function):
            inputs = [value_of(text) for text in message.input if not text.startswith("^")]
            outputs_by_node[message.name] = self.convert(message, inputs)
        return [value_of(function.ret[arg.name]) for arg in signature.output_arg]

    def _live(self, function: Any) -> list[Any]:
        """The nodes that results depend on. State that changes is left out where no result reads it."""
        needed = {text.split(":")[0] for text in function.ret.values()}
        live: list[Any] = []
        for message in reversed(function.node_def):
            if message.name in needed:
                live.append(message)
                needed.update(text.split(":")[0] for text in message.input if not text.startswith("^"))
        for message in function.node_def:
            resources = {text.split(":")[0] for text in message.input} & needed
            if resources and self._changes_state(message):
                raise UnimplementedError.of(
                    f"{self.where}: node '{message.name}' ({message.op}) changes a variable that results depend on, "
                    "which cannot be written as ONNX: its models have no state"
                )
        return live[::-1]

    def _changes_state(self, message: Any) -> bool:
        """Whether a node, or a function that it calls, assigns to a variable or changes a table."""
        if message.op in _UPDATES:
            return True
        called = [self.library.get(value.func.name) for value in message.attr.values()]
        called += [self.library.get(f.name) for value in message.attr.values() for f in value.list.func]
        return any(self._changes_state(node) for function in called if function for node in function.node_def)

    def convert(self, message: Any, inputs: list[Any]) -> list[Any]:
        """Writes one node of TensorFlow; gives the names of its outputs."""
        folded = self._folded(message, inputs)
        if folded is not None:
            return folded
        rule = rule_by_op.get(message.op)
        if rule is None:
            raise UnimplementedError.of(
                f"{self.where}: node '{message.name}' ({message.op}) cannot be written as ONNX: there is no rule for it"
            )
        if message.op not in _COMPLEX and any(as_dtype(a.type).is_complex for a in message.attr.values() if a.type):
            raise Node(self, message, inputs).refused("complex numbers")
        found = rule(Node(self, message, inputs))
        return list(found) if isinstance(found, list | tuple) else [found]

    def _folded(self, message: Any, inputs: list[Any]) -> list[Any] | None:
        """The outputs of a node whose inputs are all constants, as constants; None if it must be written."""
        definition = find_op_def(message.op)
        known = [self.constant_by_name[x] for x in inputs if isinstance(x, str) and x in self.constant_by_name]
        if definition is None or not known or len(known) < len(inputs) or any(x.dtype.kind == "c" for x in known):
            return None
        if definition.stateful or message.op in _UNFOLDED or not has_raw_operation(message.op):
            return None
        attributes = definition.complete({key: python_value(value) for key, value in message.attr.items()})
        rest = iter(known)
        given: dict[str, Any] = {}
        for argument in definition.inputs:
            values = [next(rest) for _ in range(argument.size(attributes))]
            given[argument.python_name] = values if argument.is_list else values[0]
        for key, attribute in definition.attributes.items():
            if key not in definition.inferred():
                given[attribute.python_name] = attributes[key]
        with running_at_once():
            found = find_raw_operation(message.op)(**given)
        results = list(found) if isinstance(found, list | tuple) else [found]
        return [self.constant(np.asarray(y.numpy()), hint=message.name) for y in results]


def _offset(node: Any, output: str) -> int:
    """How many outputs of a node stand before the one of this name, for operations with several."""
    definition, before = find_op_def(node.op), 0
    for argument in definition.outputs if definition is not None else ():
        if argument.name == output:
            break
        before += argument.size({key: python_value(value) for key, value in node.attr.items()})
    return before


class Node:
    """One node of TensorFlow: the names of its inputs, its attributes, and the builder `b`."""

    def __init__(self, builder: Builder, message: Any, inputs: list[Any]) -> None:
        self.b, self.message, self.inputs, self.op = builder, message, inputs, message.op

    def __getitem__(self, place: int) -> Any:
        return self.inputs[place]

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute as a Python value."""
        return python_value(self.message.attr[name]) if name in self.message.attr else default

    def dtype(self, name: str = "T") -> Any:
        """An attribute that is a dtype."""
        return as_dtype(self.message.attr[name].type)

    def tensor(self) -> np.ndarray:
        """The value of a constant."""
        found = tensor_of(self.message.attr["value"].tensor).numpy()
        return np.asarray(found)

    def known(self, place: int) -> np.ndarray | None:
        """The value of an input that is constant."""
        return self.b.constant_by_name.get(self.inputs[place])

    def required(self, place: int, what: str) -> Any:
        """The value of an input that must be constant."""
        found = self.known(place)
        if found is None:
            raise self.refused(f"{what} that is computed")
        return found.tolist()

    def refused(self, what: str) -> Exception:
        """The error for a node that cannot be written."""
        return UnimplementedError.of(
            f"{self.b.where}: node '{self.message.name}' ({self.op}) with {what} cannot be written as ONNX"
        )

    def ints64(self, place: int) -> str:
        """An input of integers as int64, which ONNX takes for shapes and axes."""
        known = self.known(place)
        if known is not None:
            return self.b.ints(known)
        return str(self.b.add("Cast", self[place], to=self.b.onnx.TensorProto.INT64))
