"""Graphs of Tapeflow as messages: every operation is written as TensorFlow's, by the rules of `export_rules`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.graph_def.emitter import Emitter, Ref
from tapeflow._src.compat.graph_def.op_defs import find_op_def
from tapeflow._src.data.graph_calls import DatasetCall, RowsToken
from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.tensor_messages import shape_message
from tapeflow._src.ops.random.seeds import Stream
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import UnimplementedError
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.tensor_spec import TensorSpec

Rule = Callable[["ExportedNode"], Any]
rule_by_op: dict[str, Rule] = {}


def writes(*ops: str) -> Callable[[Rule], Rule]:
    """Registers what writes nodes of these operations."""

    def register(rule: Rule) -> Rule:
        rule_by_op.update(dict.fromkeys(ops, rule))
        return rule

    return register


class ExportedNode:
    """One node during export: its inputs as references, its parameters, and the emitter `e`."""

    def __init__(self, writer: GraphWriter, data: Any) -> None:
        self.op, self._numbers, self._params, self.first, self.count, self.extent, self.number = data
        self.writer, self.e = writer, writer.emitter
        self.inputs = [writer.value(n) for n in self._numbers]

    def __getitem__(self, place: int) -> Ref:
        return self.inputs[place]

    @property
    def kind(self) -> tuple[Any, TensorShape]:
        """The dtype and shape of the first output."""
        return self.writer.kind(self.first)

    def shape(self, place: int) -> TensorShape:
        """What is known of the shape of an input."""
        return self.writer.kind(self._numbers[place])[1]

    def param(self, place: int) -> Any:
        """A parameter as it is; None if it is absent."""
        if place >= len(self._params):  # rules leave out the last ones
            return None
        kind, value = self._params[place]
        if kind == "v":
            constant = self.writer.constant_value(value[0])
            if constant is None:
                raise self.unsupported("a parameter that is computed")
            return constant.numpy().tolist()
        if kind == "s":
            return value.decode()
        return None if kind == "x" else value

    def is_given(self, place: int) -> bool:
        """Whether a parameter is there."""
        return bool(place < len(self._params) and self._params[place][0] != "x")

    def is_computed(self, place: int) -> bool:
        """Whether the value of a parameter is known only when the graph runs."""
        if not self.is_given(place) or self._params[place][0] != "v":
            return False
        return self.writer.constant_value(self._params[place][1][0]) is None

    def tensor(self, place: int, dtype: str = "int32") -> Ref:
        """A parameter as a tensor: a constant, or what computes it."""
        kind, value = self._params[place]
        if kind == "v":
            return self.writer.value(value[0])
        return self.e.constant(_core.convert_to_tensor(value, dtype, None, self.op))

    def source(self, place: int) -> Any:
        """The node that computes a parameter, as data."""
        return self.writer.node_of(self._params[place][1][0])

    def act(self, op: str, *inputs: Any, **attributes: Any) -> list[Ref]:
        """Writes a node for its effect: after those that were written before, and before those that follow."""
        found = self.e.node(op, *inputs, controls=self.writer.before_effect(), **attributes)
        self.writer.record_effect()
        return found

    def read(self, op: str, *inputs: Any, **attributes: Any) -> list[Ref]:
        """Writes a node that reads what others change: after the effects before it, before those that follow."""
        found = self.e.node(op, *inputs, controls=self.writer.effects, **attributes)
        self.writer.stateful = True
        self.writer.reads.append(self.e.nodes[-1].name)
        return found

    def unsupported(self, what: str = "") -> Exception:
        """The error for a node that cannot be written."""
        return UnimplementedError.of(
            f"{self.writer.where}: {self.op}{f' with {what}' if what else ''} cannot be written: TensorFlow has no "
            "such operation"
        )


class FunctionWriter:
    """The library of one GraphDef: functions for branches, loops and what is saved, by name."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.library = messages.FunctionDefLibrary()
        self.gradients: list[Any] | None = None  # the functions of custom gradients, where they are saved
        self._count = 0

    def fresh_name(self, hint: str) -> str:
        """A name for another function."""
        self._count += 1
        return f"__inference_{hint}_{self._count}"

    def add(
        self,
        data: Any,
        name: str,
        input_names: list[str] | None = None,
        extra_outputs: Callable[[GraphWriter], list[Ref]] | None = None,
        output_names: list[str] | None = None,
        body: Callable[[GraphWriter], list[Ref]] | None = None,
    ) -> Any:
        """Writes a graph as a function of its inputs and of the resources that it uses; gives these resources.

        `body` writes other nodes in place of the graph's own.
        """
        function = self.library.function.add()
        function.signature.name = name
        emitter = Emitter(True)
        resources = list(resources_in(data))
        writer = GraphWriter(self, emitter, data, self.where)
        writer.name = name
        for place, (number, dtype, shape) in enumerate(data[0]):
            hint = input_names[place] if input_names and place < len(input_names) else f"input_{place}"
            argument = emitter.reserve(_argument_name(hint))
            function.signature.input_arg.add(name=argument, type=as_dtype(dtype).as_datatype_enum)
            writer.give(number, Ref(argument, "", 0, 0, as_dtype(dtype), shape))
        for resource in resources:
            argument = emitter.reserve(_argument_name(f"resource_{len(writer.resources)}"))
            kind = as_dtype(getattr(resource, "graph_dtype", "resource"))
            function.signature.input_arg.add(name=argument, type=kind.as_datatype_enum)
            writer.resources[id(resource)] = Ref(argument, "", 0, 0, kind, TensorShape([]))
        outputs = writer.write() if body is None else body(writer)
        if extra_outputs is not None:
            outputs += extra_outputs(writer)
        for place, ref in enumerate(outputs):
            hint = output_names[place] if output_names and place < len(output_names) else f"output_{place}"
            key = _argument_name(hint)
            function.signature.output_arg.add(name=key, type=ref.dtype.as_datatype_enum)
            function.ret[key] = ref.text(True) if ref.argument else ref.node
        function.node_def.extend(emitter.nodes)
        for control in writer.effects:
            function.control_ret[control] = control
            function.signature.control_output.append(control)
        if writer.effects or writer.stateful:
            function.signature.is_stateful = True
        function.attr["_construction_context"].s = b"kEagerRuntime"
        # TensorFlow's gradients of some operations need the rank of their inputs.
        known = [*(shape for _, _, shape in data[0]), *(TensorShape([]) for _ in resources)]
        function.attr["_input_shapes"].list.shape.extend(shape_message(shape) for shape in known)
        return resources


def _argument_name(name: str) -> str:
    text = "".join(c if c.isalnum() else "_" for c in name).lower().strip("_") or "input"
    return text if text[0].isalpha() else f"arg_{text}"


class DataWithResources(tuple):  # type: ignore[type-arg]
    """The data of a graph, with the list of resources that it takes."""

    resources: list[Any]

    def __new__(cls, data: Any, resources: list[Any]) -> DataWithResources:
        made = super().__new__(cls, data)
        made.resources = resources
        return made


def resources_in(data: Any) -> Iterator[Any]:
    """The variables and tables that a graph and those inside of it use, each once."""
    if isinstance(data, DataWithResources):
        yield from data.resources
        return
    seen: set[int] = set()
    waiting = [data]
    while waiting:
        for op, _, params, *_ in waiting.pop(0)[2]:
            if op in ("Case", "While"):
                waiting += params[0][1]
                if op == "While":  # the elements of the datasets over which it goes are its own
                    for token in row_tokens_in(params[0][1][0]):
                        seen.add(id(token))
                        if id(token.iterator) not in seen:
                            seen.add(id(token.iterator))
                            yield token.iterator
                continue
            if op == "CustomGradient":  # what its rule uses belongs to the function of the rule
                continue
            call = raw_call_of(params) if op == "EagerPyFunc" else None
            if isinstance(call, DatasetCall):
                waiting += [_core.graph_data(function.graph) for function in call.functions()]
                if call.begins:
                    seen.add(id(call.token))
            found = resource_of(op, params)
            if found is not None and id(found) not in seen:
                seen.add(id(found))
                yield found


def component_kinds(specs: list[Any]) -> tuple[list[Any], list[TensorShape]]:
    """The dtypes and shapes of the components of elements of a dataset: what is no dense tensor is a variant."""
    dense = [type(spec) is TensorSpec for spec in specs]
    types = [spec.dtype if plain else as_dtype("variant") for spec, plain in zip(specs, dense)]
    return types, [spec.shape if plain else TensorShape(None) for spec, plain in zip(specs, dense)]


def row_tokens_in(condition: Any) -> list[RowsToken]:
    """Those that stand for the elements over which a loop with this condition goes."""
    found = {}
    waiting = [condition]
    while waiting:
        for op, _, params, *_ in waiting.pop()[2]:
            if op == "Case":
                waiting += params[0][1]
            call = raw_call_of(params) if op == "EagerPyFunc" else None
            if isinstance(call, DatasetCall) and isinstance(call.token, RowsToken):
                found[id(call.token)] = call.token
    return list(found.values())


def resource_of(op: str, params: Any) -> Any:
    """The variable or table that a node uses, or None. Streams of random numbers are none: they are not saved."""
    if op in ("ReadVariableOp", "AssignVariableOp", "VarIsInitializedOp"):
        held = params[0][1]
        return None if isinstance(held, Stream) else held
    if op in ("Composition", "EagerPyFunc"):
        call = raw_call_of(params)
        if isinstance(call, DatasetCall):
            return None if call.begins or call.kind in ("start", "finish") else call.token
        return getattr(call, "resource", None)
    return None


def raw_call_of(params: Any) -> Any:
    """Which operation of TensorFlow a node that runs Python stands for, if that is known."""
    held = params[0][1]
    return getattr(held[0], "raw_call", None) if isinstance(held, tuple) else None


class GraphWriter:
    """Writes the nodes of one graph. `effects` are nodes that must run although nobody takes what they give.

    `reads` are the nodes after them that read what an effect may change, and come before the next one.
    """

    def __init__(self, functions: FunctionWriter, emitter: Emitter, data: Any, where: str) -> None:
        self.functions, self.emitter, self.data, self.where = functions, emitter, data, where
        self.resources: dict[int, Ref] = {}
        self.effects: list[str] = []
        self.reads: list[str] = []
        self.seed_by_key: dict[str, Ref] = {}  # seeds of keys for random numbers, by the nodes of the keys
        self.stream_seeds_by_key: dict[str, tuple[int, int]] = {}  # of keys that a stream gives, by their names
        self.stateful = self.is_gradient = False
        self.name = ""  # of the function
        self._ref_by_value: dict[int, Ref] = {}
        self._node_by_value = {n[3] + k: n for n in data[2] for k in range(n[4])}
        self._name_by_node: dict[int, str] = {}

    def name_nodes(self, name_by_node: dict[int, str]) -> None:
        """The names that nodes shall have, by their numbers."""
        self._name_by_node = name_by_node

    def give(self, number: int, ref: Ref) -> None:
        """Says what a value is."""
        self._ref_by_value[number] = ref

    def kind(self, number: int) -> tuple[Any, TensorShape]:
        """The dtype and shape of a value."""
        dtype, shape = self.data[4][number]
        return as_dtype(dtype), shape

    def value(self, number: int) -> Ref:
        """The reference of a value; constants are written when they are first used."""
        ref = self._ref_by_value.get(number)
        if ref is None:
            constant = self.constant_value(number)
            if constant is None:
                node = self.node_of(number)
                if node is not None and node[0] in ("Case", "While"):
                    return Ref("", "", 0, 0, *self.kind(number))  # residuals, which a gradient computes itself
                raise ValueError(f"{self.where}: value {number} is used before it is computed")
            ref = self._ref_by_value[number] = self.emitter.constant(constant)
        return ref

    def constant_value(self, number: int) -> Any:
        """The tensor of a constant, or None."""
        return self.data[1].get(number)

    def node_of(self, number: int) -> Any:
        """The node that computes a value, as data; None for inputs and constants."""
        return self._node_by_value.get(number)

    def resource(self, thing: Any) -> Ref:
        """The reference of a variable or table."""
        ref = self.resources.get(id(thing))
        if ref is None:
            raise ValueError(f"{self.where}: {thing!r} is used, but it is not part of what is saved")
        return ref

    def before_effect(self) -> list[str]:
        """The nodes that come before an effect that is written now."""
        return [*self.effects, *self.reads]

    def record_effect(self) -> None:
        """Makes the node written last the effect after which others come."""
        self.stateful = True
        self.effects[:] = [self.emitter.nodes[-1].name]
        self.reads.clear()

    def write(self) -> list[Ref]:
        """Writes all nodes; gives the outputs of the graph, each as a node of its own."""
        for data in self.data[2]:
            node = ExportedNode(self, data)
            self.emitter.next_name = self._name_by_node.get(node.number)
            results = self._written(node)
            if len(results) < node.count and node.op not in ("Case", "While"):
                raise ValueError(f"{self.where}: {node.op} gives {node.count} values, and {len(results)} were written")
            for place, ref in enumerate(results[: node.count]):
                self.give(node.first + place, ref._replace(shape=self.kind(node.first + place)[1]))
        self.emitter.next_name = None
        return [self.emitter.one("Identity", self.value(number), controls=self.effects) for number in self.data[3]]

    def _written(self, node: ExportedNode) -> list[Ref]:
        rule = rule_by_op.get(node.op)
        result = _same_operation(node) if rule is None else rule(node)
        return [result] if isinstance(result, Ref) else list(result or ())


def _same_operation(node: ExportedNode) -> list[Ref]:
    """An operation without parameters that TensorFlow has under the same name."""
    definition = find_op_def(node.op)
    fits = definition is not None and not node._params and len(definition.inputs) == len(node.inputs)
    if not fits:
        raise node.unsupported()
    return node.e.node(node.op, *node.inputs)
