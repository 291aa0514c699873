"""Nodes that are structure: constants, calls, branches, loops, and values with a custom gradient."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.autodiff.custom_gradient import custom_gradient
from tapeflow._src.compat.graph_def.optionals import give_optionals, run_with_optionals
from tapeflow._src.compat.graph_def.program import Context, Step, handles
from tapeflow._src.compat.graph_def.variants import with_known_parts
from tapeflow._src.control_flow.branches import cond, switch_case
from tapeflow._src.control_flow.loops import while_loop
from tapeflow._src.io.protos.tensor_messages import tensor_of
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types import nest


def is_resource(value: Any) -> bool:
    """Whether a value is no tensor but something that nodes use: a variable or a table."""
    return (
        isinstance(value, _core.Variable) or getattr(value, "is_graph_resource", False) or hasattr(value, "key_dtype")
    )


@handles("Const")
def _constant(step: Step, values: list[Any], context: Context) -> Any:
    found = step.attributes.get("value")
    if found is None:
        found = step.attributes["value"] = tensor_of(step.node.attr["value"].tensor)
    return [found]


@handles("Placeholder", "PlaceholderV2")
def _placeholder(step: Step, values: list[Any], context: Context) -> Any:
    raise ValueError("a placeholder must be fed")


@handles("PlaceholderWithDefault")
def _placeholder_with_default(step: Step, values: list[Any], context: Context) -> Any:
    return values


@handles("NoOp", "ControlTrigger")
def _nothing(step: Step, values: list[Any], context: Context) -> Any:
    return []


@handles("Identity", "RefIdentity")
def _identity(step: Step, values: list[Any], context: Context) -> Any:
    return [primitives.Identity(values[0])] if isinstance(values[0], _core.Tensor) else values


@handles("IdentityN")
def _identities(step: Step, values: list[Any], context: Context) -> Any:
    kind = step.attributes.get("_gradient_op_type")
    rule = _custom_rule(kind, context, step) if kind is not None else None
    if rule is None:
        return [primitives.Identity(x) if isinstance(x, _core.Tensor) else x for x in values]

    texts = [text.rpartition(":") for text in context.library.captured_by_type.get(kind, ())]
    captured = [context.values[name][int(place)] for name, _, place in texts]
    held = [x for x in captured if isinstance(x, _core.Tensor)]
    count = len(values)

    @custom_gradient
    def forward(*tensors: Any) -> Any:
        rest = iter(tensors[count:])
        read = [next(rest) if isinstance(x, _core.Tensor) else x for x in captured]

        def backward(*dys: Any) -> Any:
            return list(rule(list(dys), read)) + [None] * len(held)

        return [primitives.Identity(x) for x in tensors[:count]], backward

    return list(forward(*values, *held))


def _custom_rule(kind: str, context: Context, step: Step) -> Any:
    """What computes the gradient of this type, as a library of functions knows it."""
    rule = context.library.rule_by_type.get(kind)
    if rule is not None:
        return rule
    name = context.library.gradient_function(kind)
    if name is None:

        def refuse(dys: list[Any], captured: list[Any]) -> list[Any]:
            raise LookupError(
                f"{step.where}: No gradient defined for operation '{step.name}' (op type: {kind}): the file does not "
                "hold the rule of this custom gradient"
            )

        return refuse

    def call(dys: list[Any], captured: list[Any]) -> list[Any]:
        program = context.library.program(name)
        given = dys[: len(program.inputs)]
        found: list[Any] = context.library.call(name, given, context.resources)
        return [None] * (len(dys) - len(found)) + found

    return call


# ---- calls


@handles("PartitionedCall", "StatefulPartitionedCall", "RemoteCall")
def _call(step: Step, values: list[Any], context: Context) -> Any:
    return context.library.call(step.attributes["f"], values, context.resources)


@handles("If", "StatelessIf")
def _if(step: Step, values: list[Any], context: Context) -> Any:
    predicate, names = _as_bool(values[0]), [step.attributes["then_branch"], step.attributes["else_branch"]]
    return _chosen(names, values[1:], context, lambda branches: _list(cond(predicate, *branches)))


@handles("Case", "StatelessCase")
def _case(step: Step, values: list[Any], context: Context) -> Any:
    names = step.attributes["branches"]
    return _chosen(names, values[1:], context, lambda branches: _list(switch_case(values[0], branches)))


def _chosen(names: list[str], given: list[Any], context: Context, choose: Callable[[list[Any]], list[Any]]) -> Any:
    branches: list[Any] = [functools.partial(context.library.call, name, given, context.resources) for name in names]
    return run_with_optionals(branches, choose) if give_optionals(names, context) else choose(branches)


def _list(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [] if result is None else [result]


def _as_bool(value: Any) -> Any:
    """A condition: numbers hold unless they are zero, strings unless they are empty."""
    value = convert_to_tensor(value)
    if value.shape.rank:
        return primitives.Greater(primitives.Prod(primitives.Shape(value, "int32"), [0], False), 0)
    return value if value.dtype.name == "bool" else cast(value, "bool")


@handles("While", "StatelessWhile")
def _while(step: Step, values: list[Any], context: Context) -> Any:
    library, resources = context.library, context.resources
    body = library.program(step.attributes["body"])
    travels = [not (is_resource(x) or _comes_back(body, place)) for place, x in enumerate(values)]

    def complete(state: Any) -> list[Any]:
        rest = iter(state)
        return [next(rest) if moves else value for moves, value in zip(travels, values)]

    def holds(*state: Any) -> Any:
        return _as_bool(library.call(step.attributes["cond"], complete(state), resources)[0])

    def iterate(*state: Any) -> list[Any]:
        found = library.call(step.attributes["body"], complete(state), resources)
        return [x for moves, x in zip(travels, found) if moves]

    start = [x for moves, x in zip(travels, values) if moves]
    if not start:
        start = [convert_to_tensor(0)]
        step_body = iterate
        iterate = lambda *state: [*step_body(), *state]  # noqa: E731
    else:
        start = with_known_parts(start, iterate)
        shapes = step.attributes.get("output_shapes") or []
        places = [i for i, moves in enumerate(travels) if moves]
        invariants = [_invariant(x, shapes[i : i + 1]) for i, x in zip(places, start)]
        return complete(while_loop(holds, iterate, start, invariants))
    return complete(while_loop(holds, iterate, start))


def _invariant(value: Any, shape: list[Any]) -> Any:
    """The shape that a loop variable keeps: what the node says, if it covers the first value."""
    if not isinstance(value, _core.Tensor):
        return nest.map_structure(lambda leaf: leaf.shape if isinstance(leaf, _core.Tensor) else None, value)
    covers = shape and (
        shape[0].rank is None
        or (shape[0].rank == value.shape.rank and all(a is None or a == b for a, b in zip(shape[0], value.shape)))
    )
    return shape[0] if covers else value.shape


def _comes_back(body: Any, place: int) -> bool:
    """Whether an iteration gives an input back as it is."""
    step_by_name = {step.name: step for step in body.steps}
    name, _ = body.outputs[place]
    while name in step_by_name and step_by_name[name].op == "Identity":
        name, _ = step_by_name[name].inputs[0]
    return bool(name == body.inputs[place])
