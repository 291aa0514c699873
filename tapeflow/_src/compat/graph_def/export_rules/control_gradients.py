"""How gradients of branches and loops are written: the branch, or each iteration, runs once more under a tape.

A branch and the body of a loop are written as functions and read back, so that a tape can follow their nodes. A loop
runs again with lists that keep the loop variables of every iteration; a second loop goes through them from the end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.autodiff.gradient_tape import GradientTape
from tapeflow._src.compat.graph_def.emitter import Ref
from tapeflow._src.compat.graph_def.export_rules.arrays import slice_arguments
from tapeflow._src.compat.graph_def.export_rules.deferred import Rule, formula
from tapeflow._src.compat.graph_def.export_rules.nn import Window, max_pool_second
from tapeflow._src.compat.graph_def.exporter import ExportedNode
from tapeflow._src.compat.graph_def.inlining import Caller, inlined, read_back
from tapeflow._src.control_flow.branches import trace_branches
from tapeflow._src.control_flow.loops import while_loop
from tapeflow._src.control_flow.tensor_array import TensorArray
from tapeflow._src.ops.arrays.constants import zeros_like
from tapeflow._src.types.tensor_shape import TensorShape

_EFFECTS = ("AssignVariableOp", "EagerPyFunc", "PhiloxAdvance", "CustomGradient")


def _forward(rule: Rule) -> Any:
    """The node whose gradient this is, as data."""
    found = rule.outer.writer.node_of(rule.node.first)
    what = "a loop" if rule.op == "While" else "a branch"
    if found is None or found[0] != rule.op:
        raise rule.outer.unsupported(f"a derivative of higher order of {what}")
    if any(_has_effects(graph) for graph in found[2][0][1]):
        raise rule.outer.unsupported(
            f"the gradient of {what} that changes variables, draws random numbers, runs Python or has a custom gradient"
        )
    return found


def _has_effects(data: Any) -> bool:
    for op, _, params, *_ in data[2]:
        if op in _EFFECTS or (op in ("Case", "While") and any(map(_has_effects, params[0][1]))):
            return True
    return False


def _is_differentiable(x: Any) -> bool:
    return bool(x.dtype.is_floating or x.dtype.is_complex)


def _vjp(function: Caller, given: list[Any], dys: list[Any]) -> list[Any]:
    """The gradients of a function by its inputs; None for those that are not differentiable."""
    sources = [x for x in given if _is_differentiable(x)]
    with GradientTape() as tape:
        tape.watch(sources)
        ys = function(given)
    flowing = [(y, dy) for y, dy in zip(ys, dys) if dy is not None]
    found = iter(
        tape.gradient([y for y, _ in flowing], sources, [dy for _, dy in flowing], unconnected_gradients="zero")
    )
    return [next(found) if _is_differentiable(x) else None for x in given]


class _Flow:
    """The tensors of a rule as one list of references, and back: the inputs, then the cotangents that flow."""

    def __init__(self, rule: Rule, outputs: int) -> None:
        self._count, self._dys = len(rule.x), rule.dys[:outputs]
        self.refs: list[Ref] = [*rule.x, *(dy for dy in self._dys if dy is not None)]

    def unpacked(self, tensors: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
        """The inputs and the cotangents, None where none flows."""
        rest = iter(tensors[self._count :])
        return list(tensors[: self._count]), [None if dy is None else next(rest) for dy in self._dys]


def _spread(rule: Rule, found: list[Any]) -> list[Any]:
    """One gradient for each input, None where none is wanted."""
    rest = iter(found)
    return [next(rest) if wanted else None for wanted in rule.wanted]


@formula("Deferred", "BatchedCall")
def _written_gradient(rule: Rule) -> list[Any]:
    """The node is written and read back, so that a tape can follow the nodes that it became."""
    node, flow, inner = rule.node, _Flow(rule, len(rule.dys)), _inner_ops(rule.node)
    if inner[1:] in (["StridedSlice"], ["GetItem"]):
        return _slice_of_slice_gradient(rule)
    if inner[1:] == ["MaxPool"]:
        return _pool_of_pool_gradient(rule)
    if inner in _active.nodes:
        raise rule.outer.unsupported(f"a derivative of higher order of {inner[-1]}")
    places = range(len(rule.x))
    given = [(place, ref.dtype, ref.shape) for place, ref in zip(places, rule.x)]
    kinds = [(ref.dtype, ref.shape) for ref in rule.x]
    held: dict[int, Any] = {}
    params = [_held_param(rule, param, kinds, held) for param in node._params]
    first = len(kinds)
    kinds += _output_kinds(rule)
    outputs = list(range(first, len(kinds)))
    data = (given, held, [(node.op, list(places), params, first, len(outputs), node.extent, 0)], outputs, kinds)
    (function,) = read_back(rule.outer.writer.where, [data])

    def run(*tensors: Any) -> list[Any]:
        found = _vjp(function, *flow.unpacked(tensors))
        return [zeros_like(x) if dx is None else dx for x, dx, wanted in zip(tensors, found, rule.wanted) if wanted]

    _active.nodes.append(inner)
    try:
        return _spread(rule, inlined(rule.outer, run, flow.refs))
    finally:
        _active.nodes.pop()


class _Active(threading.local):
    """The nodes whose gradients are being written, by their operations: one that leads back to itself has no end."""

    def __init__(self) -> None:
        self.nodes: list[list[str]] = []


_active = _Active()


def _inner_ops(node: ExportedNode) -> list[str]:
    """The operation of a node and, for a derivative rule, that of which it is the rule, and so on."""
    ops = [node.op]
    for kind, value in node._params:
        if ops[-1] != "Deferred" or kind != "o":
            break
        ops.append(value[0])
    return ops


def _pool_of_pool_gradient(rule: Rule) -> list[Any]:
    """Linear in the cotangent, which is the last input, too: its transpose picks what stands at the maxima."""
    node = Rule(rule.node).node
    picked = max_pool_second(node, Window(node, 0, True), rule.x[0], rule.dy)
    return [*[None] * (len(rule.x) - 1), picked]


def _slice_of_slice_gradient(rule: Rule) -> list[Any]:
    """The gradient of a slice is linear in its cotangent, which is the last input; its transpose is the slice."""
    (begin, end, strides), masks = slice_arguments(Rule(rule.node).node)
    return [*[None] * (len(rule.x) - 1), rule.e.one("StridedSlice", rule.dy, begin, end, strides, **masks)]


def _held_param(rule: Rule, param: Any, kinds: list[Any], held: dict[int, Any]) -> Any:
    """A parameter of a node that stands alone: a constant tensor gets another number."""
    kind, value = param
    if kind != "v":
        return param
    constant = rule.outer.writer.constant_value(value[0])
    if constant is None:
        raise rule.outer.unsupported(f"the gradient of {rule.op} with a parameter that is computed")
    held[len(kinds)] = constant
    kinds.append((constant.dtype, constant.shape))
    return kind, (len(kinds) - 1, *value[1:])


def _output_kinds(rule: Rule) -> list[Any]:
    """The dtypes and shapes of what the operation gives: a derivative rule gives those of the inputs that want one."""
    if rule.op == "Deferred":
        wanted = rule.node._params[0][1][4]
        return [(ref.dtype, ref.shape) for ref, wants in zip(rule.x, wanted) if wants]
    return [(ref.dtype, ref.shape) for ref in rule.y]


@formula("Case")
def _branch_gradient(rule: Rule) -> list[Any]:
    graphs = _forward(rule)[2][0][1]
    functions, flow = read_back(rule.outer.writer.where, graphs), _Flow(rule, len(graphs[0][3]))

    def run(*tensors: Any) -> list[Any]:
        (index, *given), dys = flow.unpacked(tensors)

        def gradients(function: Caller) -> Callable[[], list[Any]]:
            def branch() -> list[Any]:
                found = [None, *_vjp(function, given, dys)]
                return [
                    zeros_like(x) if dx is None else dx
                    for x, dx, wanted in zip([index, *given], found, rule.wanted)
                    if wanted
                ]

            return branch

        return list(trace_branches(index, [gradients(function) for function in functions]))

    return _spread(rule, inlined(rule.outer, run, flow.refs))


@formula("While")
def _loop_gradient(rule: Rule) -> list[Any]:
    forward = _forward(rule)
    graphs, (count, limit) = forward[2][0][1], forward[5]
    (holds, iterate), flow = read_back(rule.outer.writer.where, graphs), _Flow(rule, count)
    specs = graphs[1][0][:count]
    shapes = [shape for _, _, shape in specs]

    def keep(captures: list[Any]) -> Callable[..., Any]:
        def body(i: Any, state: Any, lists: Any) -> Any:
            kept = [array.write(i, x) for array, x in zip(lists, state)]
            return i + 1, iterate([*state, *captures]), kept

        return body

    def run(*tensors: Any) -> list[Any]:
        given, dys = flow.unpacked(tensors)
        start, captures = given[:count], given[count:]
        for x, shape in zip(start, shapes):
            x.set_shape(shape)

        def holding(i: Any, state: Any, lists: Any) -> Any:
            answer = holds([*state, *captures])[0]
            return answer if limit < 0 else primitives.LogicalAnd(i < limit, answer)

        lists = [TensorArray(d, 0, True, infer_shape=False, element_shape=shape) for _, d, shape in specs]
        invariants = [TensorShape([]), shapes, [None] * count]
        rounds, final, lists = while_loop(holding, keep(captures), [0, start, lists], invariants)
        flowing = [_is_differentiable(x) for x in final]
        d_state = [zeros_like(x) if dy is None else dy for x, dy, flows in zip(final, dys, flowing) if flows]
        d_captures = [zeros_like(x) for x in captures if _is_differentiable(x)]

        def back(i: Any, d_state: Any, d_captures: Any) -> Any:
            state = [array.read(i - 1) for array in lists]
            for x, shape in zip(state, shapes):
                x.set_shape(shape)
            rest = iter(d_state)
            found = _vjp(iterate, [*state, *captures], [next(rest) if flows else None for flows in flowing])
            more = [dx for dx in found[count:] if dx is not None]
            return i - 1, [dx for dx in found[:count] if dx is not None], [a + b for a, b in zip(d_captures, more)]

        flowing_shapes = [shape for shape, flows in zip(shapes, flowing) if flows]
        for dx, shape in zip(d_state, flowing_shapes):
            dx.set_shape(shape)
        invariants = [TensorShape([]), flowing_shapes, [x.shape for x in d_captures]]
        _, d_state, d_captures = while_loop(lambda i, *_: i > 0, back, [rounds, d_state, d_captures], invariants)
        rest = iter([*d_state, *d_captures])
        every = [next(rest) if _is_differentiable(x) else zeros_like(x) for x in given]
        return [dx for dx, wanted in zip(every, rule.wanted) if wanted]

    return _spread(rule, inlined(rule.outer, run, flow.refs))
