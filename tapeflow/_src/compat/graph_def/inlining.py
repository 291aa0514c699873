"""Operations that TensorFlow lacks, written as what a function of other operations computes.

The function is traced on tensors of the inputs' dtypes and shapes, unknown dimensions included, and its nodes are
written in place of the node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.graph_def.emitter import Ref
from tapeflow._src.compat.graph_def.exporter import ExportedNode, FunctionWriter, GraphWriter
from tapeflow._src.compat.graph_def.library import FunctionLibrary
from tapeflow._src.control_flow.tracing import FuncGraph
from tapeflow._src.types import nest


def inlined(n: ExportedNode, function: Callable[..., Any], refs: list[Ref]) -> list[Ref]:
    """The references of what `function` gives for these tensors, as one list."""
    return written_trace(n, lambda given: nest.flatten(function(*given)), refs)


Caller = Callable[[list[Any]], list[Any]]


def read_back(where: str, graphs: list[Any]) -> list[Caller]:
    """What runs each graph on tensors, node by node: it is written as a function, which is read again."""
    writer = FunctionWriter(where)
    names = [writer.fresh_name("graph") for _ in graphs]
    held = [writer.add(graph, name) for graph, name in zip(graphs, names)]
    library = FunctionLibrary(writer.library, where)

    def caller(name: str, resources: list[Any]) -> Caller:
        return lambda tensors: library.call(name, [*tensors, *resources], {})

    return [caller(name, resources) for name, resources in zip(names, held)]


def written_trace(n: ExportedNode, run: Callable[[list[Any]], list[Any]], refs: list[Ref]) -> list[Ref]:
    """Writes the operations that `run` makes of a list of symbolic tensors; gives the references of its results."""
    graph = FuncGraph()
    with _core.StopRecording(True), graph:
        given = [graph.add_input(ref.dtype, ref.shape) for ref in refs]
        graph.set_outputs(run(given))
    graph.capture_held_constants()
    data = _core.graph_data(graph)
    inner = GraphWriter(n.writer.functions, n.e, data, n.writer.where)
    inner.resources, inner.name = n.writer.resources, n.writer.name
    values = [*refs, *(n.e.constant(tensor) for tensor in graph.captures)]
    for (number, _, _), ref in zip(data[0], values):
        inner.give(number, ref)
    return inner.write()
