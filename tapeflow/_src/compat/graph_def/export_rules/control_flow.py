"""How variables, branches, loops and nodes that run Python are written."""

from __future__ import annotations

from typing import Any

from tapeflow._src.compat.graph_def.emitter import Ref
from tapeflow._src.compat.graph_def.exporter import (
    DataWithResources,
    ExportedNode,
    GraphWriter,
    component_kinds,
    resource_of,
    resources_in,
    row_tokens_in,
    writes,
)
from tapeflow._src.data.graph_calls import RowsToken
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.tensor_shape import TensorShape

_ASSIGNMENTS = ("AssignVariableOp", "AssignAddVariableOp", "AssignSubVariableOp")


@writes("ReadVariableOp")
def _read(n: ExportedNode) -> Any:
    variable = resource_of(n.op, n._params)
    if variable is None:  # a stream of random numbers: `PhiloxAdvance` draws other ones
        return Ref("stream", "state", 0, 0, as_dtype("int64"), TensorShape([3]))
    return n.read("ReadVariableOp", n.writer.resource(variable), dtype=variable.dtype)


@writes("VarIsInitializedOp")
def _is_initialized(n: ExportedNode) -> Any:
    return n.read(n.op, n.writer.resource(resource_of(n.op, n._params)))


@writes("AssignVariableOp")
def _assign(n: ExportedNode) -> Any:
    variable = resource_of(n.op, n._params)
    if variable is None:
        return []
    resource = n.writer.resource(variable)
    n.act(_ASSIGNMENTS[n.param(1)], resource, n[0], dtype=variable.dtype)
    return n.read("ReadVariableOp", resource, dtype=variable.dtype) * n.count


@writes("Identity")
def _identity(n: ExportedNode) -> Any:
    return n[0] if n[0].node == "stream" else n.e.one("Identity", n[0])


@writes("Case")
def _case(n: ExportedNode) -> Any:
    graphs, w = n._params[0][1], n.writer
    names = [w.functions.fresh_name(f"branch_{i}") for i in range(len(graphs))]
    resources = _all_resources(graphs)
    for graph, name in zip(graphs, names):
        w.functions.add(graph_with(graph, resources), name)
    given = [*n.inputs[1 : 1 + len(graphs[0][0])], *(w.resource(r) for r in resources)]
    dtypes = [graphs[0][4][number][0] for number in graphs[0][3]]
    shapes = [w.kind(n.first + i)[1] for i in range(len(dtypes))]
    stateful = bool(resources) or any(_has_effects(graph) for graph in graphs)
    controls = w.before_effect() if stateful else w.effects
    common = {"Tout": dtypes, "output_shapes": shapes, "controls": controls}
    if len(graphs) == 2 and n[0].dtype.name == "bool":
        op = "If" if stateful else "StatelessIf"
        results = n.e.node(op, n[0], given, then_branch=names[1], else_branch=names[0], **common)
    else:
        op = "Case" if stateful else "StatelessCase"
        index = n[0] if n[0].dtype.name == "int32" else n.e.one("Cast", n[0], DstT="int32")
        results = n.e.node(op, index, given, branches=names, **common)
    _record(n, stateful)
    return results


@writes("While")
def _while(n: ExportedNode) -> Any:
    condition, body = n._params[0][1]
    w, (count, limit) = n.writer, n.extent
    resources = _all_resources([condition, body])
    rows = row_tokens_in(condition)
    known = {id(resource) for resource in resources}
    resources += [token.iterator for token in rows if id(token.iterator) not in known]
    for token in rows:
        w.resources[id(token)] = _next_row(w, token)
    names = [w.functions.fresh_name(f"while_{part}") for part in ("cond", "body")]
    captured = len(body[0]) - count

    def step(inner: GraphWriter) -> list[Ref]:
        """An iteration; what it captures, resources and the limit go through as they are."""
        outputs = inner.write()
        kept = [inner.value(number) for number, _, _ in body[0][count : count + captured]]
        following = inner.emitter.one("AddV2", inner.value(_COUNTER), inner.emitter.ints(1))
        for token in rows:
            inner.resources[id(token)] = _next_row(inner, token)
        return [following, inner.value(_LIMIT), *outputs, *kept, *(inner.resource(r) for r in resources)]

    def holds(inner: GraphWriter) -> list[Ref]:
        e, (answer,) = inner.emitter, inner.write()
        if limit >= 0:
            answer = e.one("LogicalAnd", e.one("Less", inner.value(_COUNTER), inner.value(_LIMIT)), answer)
        return [answer]

    w.functions.add(_counted(graph_with(condition, resources)), names[0], body=holds)
    w.functions.add(_counted(graph_with(body, resources)), names[1], body=step)
    given = [n.e.ints(0), n.e.ints(limit), *n.inputs[: len(body[0])], *(w.resource(r) for r in resources)]
    scalar = TensorShape([])
    shapes = [scalar, scalar, *(shape for _, _, shape in body[0]), *(scalar for _ in resources)]
    stateful = bool(resources) or _has_effects(condition) or _has_effects(body)
    op = "While" if stateful else "StatelessWhile"
    controls = w.before_effect() if stateful else w.effects
    results = n.e.node(op, given, cond=names[0], body=names[1], output_shapes=shapes, controls=controls)
    _record(n, stateful)
    return results[2 : 2 + count]


def _next_row(w: GraphWriter, token: RowsToken) -> Ref:
    """The next element of the iterator that a loop reads, or none."""
    types, shapes = component_kinds(token.specs)
    common = {"output_types": types, "output_shapes": shapes}
    controls = w.before_effect()
    found = w.emitter.one("IteratorGetNextAsOptional", w.resource(token.iterator), controls=controls, **common)
    w.record_effect()
    return found


# TensorFlow's loops carry these two first, and its gradients rely on it.
_COUNTER, _LIMIT = -1, -2


def _counted(data: Any) -> Any:
    """A graph that takes the number of the iteration and the greatest number of iterations before its inputs."""
    scalar = TensorShape([])
    counted = ([(_COUNTER, "int32", scalar), (_LIMIT, "int32", scalar), *data[0]], *data[1:])
    return DataWithResources(counted, data.resources) if isinstance(data, DataWithResources) else counted


def graph_with(data: Any, resources: list[Any]) -> Any:
    """A graph that also takes resources that it does not use itself."""
    own = [id(resource) for resource in resources_in(data)]
    return data if own == [id(resource) for resource in resources] else DataWithResources(data, resources)


def _all_resources(graphs: Any) -> list[Any]:
    return list({id(r): r for graph in graphs for r in resources_in(graph)}.values())


def _has_effects(data: Any) -> bool:
    for op, _, params, *_ in data[2]:
        if op in ("AssignVariableOp", "ReadVariableOp", "EagerPyFunc", "PhiloxAdvance"):
            return True
        if op in ("Case", "While") and any(_has_effects(inner) for inner in params[0][1]):
            return True
    return False


def _record(n: ExportedNode, stateful: bool) -> None:
    if stateful:
        n.writer.record_effect()
