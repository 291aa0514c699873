"""Whole graphs as `GraphDef` messages, whose nodes bear the names that the program knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tapeflow._src.compat.graph_def.export_rules  # noqa: F401  registers them
from tapeflow._src import _core
from tapeflow._src.compat.graph_def.emitter import Emitter, Ref
from tapeflow._src.compat.graph_def.exporter import ExportedNode, FunctionWriter, GraphWriter, writes
from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.tensor_messages import tensor_message
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import OpError

PRODUCER, MIN_CONSUMER = 2345, 12  # of graphs like those of TensorFlow 2.21


@writes("Placeholder")
def _placeholder(n: ExportedNode) -> Any:
    dtype, shape = n.kind
    return n.e.one("Placeholder", dtype=dtype, shape=shape)


@writes("PlaceholderWithDefault")
def _placeholder_with_default(n: ExportedNode) -> Any:
    dtype, shape = n.kind
    return n.e.one("PlaceholderWithDefault", n[0], dtype=dtype, shape=shape)


class NamedGraphWriter(GraphWriter):
    """Writes a graph of which every node has a name; what a node needs beside itself stands below its name.

    Nodes that TensorFlow has no operation for are written as they are: for people who read graphs.
    """

    def __init__(self, data: Any, names: dict[int, str], controls: Callable[[int], list[str]]) -> None:
        super().__init__(FunctionWriter("as_graph_def"), Emitter(False), data, "as_graph_def")
        self._names, self._controls = names, controls
        self._kept: list[Any] = []

    def resource(self, thing: Any) -> Ref:
        """The handle of a variable or table, written when it is first used."""
        ref = self.resources.get(id(thing))
        if ref is None:
            e = self.emitter
            self._kept.append(thing)
            prefix, e.prefix = e.prefix, ""
            if isinstance(thing, _core.Variable):
                name = e.next_name = thing.name.removesuffix(":0")
                ref = e.one("VarHandleOp", dtype=thing.dtype, shape=thing.shape, shared_name=name)
            else:
                op = "MutableHashTableV2" if hasattr(thing, "insert") else "HashTableV2"
                ref = e.one(op, key_dtype=thing.key_dtype, value_dtype=thing.value_dtype)
            e.prefix = prefix
            self.resources[id(thing)] = ref
        return ref

    def write(self) -> list[Ref]:
        """Writes all nodes; gives the outputs of the graph."""
        for data in self.data[2]:
            name = self._names.get(data[6]) or f"{data[0]}_{data[6]}"
            self._write_node(data, name)
        return [self.value(number) for number in self.data[3]]

    def _write_node(self, data: Any, name: str) -> None:
        e = self.emitter
        self._name_constants(data, name)
        start, effects = len(e.nodes), list(self.effects)
        self.effects.clear()
        self.reads.clear()
        e.prefix = f"{name}/"
        try:
            results = self._results(data)
        except (OpError, ValueError, TypeError, AttributeError):
            del e.nodes[start:]
            results = self._as_it_is(data)
        finally:
            e.prefix = ""
        self.effects[:] = effects
        results = self._in_order(results[: data[4]], start)
        node = next((n for n in reversed(e.nodes[start:]) if not results or n.name == results[0].node), None)
        if node is not None:
            old = node.name
            e.rename(node, name, start)
            results = [ref._replace(node=name) if ref.node == old else ref for ref in results]
            node.input.extend(f"^{control}" for control in self._controls(data[6]) if f"^{control}" not in node.input)
        for place, ref in enumerate(results[: data[4]]):
            self.give(data[3] + place, ref._replace(shape=self.kind(data[3] + place)[1]))

    def _in_order(self, results: list[Ref], start: int) -> list[Ref]:
        """The outputs as those of one node in their order, so that `name:1` is the second one."""
        new = {node.name for node in self.emitter.nodes[start:]}
        first = results[0].node if results else ""
        plain = all(ref.node == first and ref.flat_place == place for place, ref in enumerate(results))
        if not results or (plain and first in new) or any(not ref.node or ref.node == "stream" for ref in results):
            return results
        if len(results) == 1:
            return self.emitter.node("Identity", results[0])
        return self.emitter.node("IdentityN", results)

    def _results(self, data: Any) -> list[Ref]:
        if data[0] == "Const":
            tensor = data[2][0][1]
            return self.emitter.node("Const", value=tensor_message(tensor), dtype=tensor.dtype)
        return self._written(ExportedNode(self, data))

    def _name_constants(self, data: Any, name: str) -> None:
        for place, number in enumerate(data[1]):
            constant = None if number in self._ref_by_value else self.constant_value(number)
            if constant is not None:
                self.emitter.next_name = f"{name}/{'xyz'[place] if place < 3 else place}"
                ref = self.emitter.one("Const", value=tensor_message(constant), dtype=constant.dtype)
                self.give(number, ref)

    def _as_it_is(self, data: Any) -> list[Ref]:
        """A node with the name of Tapeflow's own operation."""
        e = self.emitter
        node = messages.NodeDef(name=e.unique(data[0]), op=data[0])
        refs = [self.value(number) for number in data[1]]
        node.input.extend(ref.text(False) for ref in refs)
        if refs:
            node.attr["T"].type = refs[0].dtype.as_datatype_enum
        e.nodes.append(node)
        kinds = [self.kind(data[3] + place) for place in range(data[4])]
        return [Ref(node.name, "output", place, place, *kind) for place, kind in enumerate(kinds)]


def session_graph_message(graph: Any, controls: Callable[[int], list[str]]) -> Any:
    """The GraphDef of a `tf.Graph`."""
    data = _core.graph_data(graph)
    names = {number: graph.node(number)[1] for number in (n[6] for n in data[2])}
    writer = NamedGraphWriter(data, names, controls)
    for number, dtype, shape in data[0]:
        writer.emitter.next_name = graph.input_name(number).removesuffix(":0")
        writer.give(number, writer.emitter.one("Placeholder", dtype=as_dtype(dtype), shape=shape))
    writer.write()
    return _message(writer)


def function_graph_message(graph: Any) -> Any:
    """The GraphDef of a function's graph, with one node for each input and each result."""
    data = _core.graph_data(graph)
    names = {number: graph.node(number)[1] for number in (n[6] for n in data[2])}
    writer = NamedGraphWriter(data, names, lambda number: [])
    e = writer.emitter
    for place, (number, dtype, shape) in enumerate(data[0]):
        name = graph.input_names[place] if place < len(graph.input_names) else f"Placeholder_{place}"
        e.next_name = name
        ref = e.one("Placeholder", dtype=as_dtype(dtype), shape=shape)
        e.nodes[-1].attr["_user_specified_name"].s = name.encode()
        writer.give(number, ref)
    outputs = writer.write()
    for ref in outputs:
        e.next_name = "Identity"
        e.one("Identity", ref)
    return _message(writer)


def function_message(graph: Any, name: str) -> Any:
    """The FunctionDef of a function's graph, with one node for each result."""
    functions = FunctionWriter(name)
    names = [f"identity_{place}" if place else "identity" for place in range(len(graph.outputs))]
    functions.add(_core.graph_data(graph), name, graph.input_names, output_names=names)
    return functions.library.function[0]  # those of branches and loops follow


def _message(writer: NamedGraphWriter) -> Any:
    known = {node.name for node in writer.emitter.nodes}
    for node in writer.emitter.nodes:  # a stream of random numbers has no node that could be waited for
        kept = [text for text in node.input if not text.startswith("^") or text[1:] in known]
        if len(kept) != len(node.input):
            del node.input[:]
            node.input.extend(kept)
    versions = messages.VersionDef(producer=PRODUCER, min_consumer=MIN_CONSUMER)
    found = messages.GraphDef(node=writer.emitter.nodes, versions=versions)
    if writer.functions.library.function:
        found.library.CopyFrom(writer.functions.library)
    return found
