"""Functions as the graphs that were traced of them, in a form that can be written to a file and run again.

The program that made them is not needed to run them: Python functions of the program, and custom gradients, are not in
them.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Iterator
from typing import Any, NamedTuple

from tapeflow._src import _core
from tapeflow._src.autodiff.black_box import differentiable_call
from tapeflow._src.autodiff.custom_gradient import custom_gradient
from tapeflow._src.control_flow.tracing import FuncGraph, building
from tapeflow._src.function.concrete import ConcreteFunction
from tapeflow._src.function.function import Function
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.tensor_spec import CompositeTensor, TensorSpec, TypeSpec, type_spec_from_value

_PYTHON = ("Composition", "EagerPyFunc")
_UPDATES = ("assign", "assign_add", "assign_sub")


class SavedTrace(NamedTuple):
    """One graph: the arguments it was traced with, as specifications, its nodes, what it captured, what it gives."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    nodes: Any
    captures: list[Any]
    result: Any
    input_names: list[str]


class SavedFunction(NamedTuple):
    """A function: its name, its parameters, and its graphs."""

    name: str
    parameters: list[inspect.Parameter]
    input_signature: Any
    traces: list[SavedTrace]


# ---- writing


def saved_function(function: Any) -> SavedFunction:
    """The graphs of a function or of one of its concrete functions; ValueError if they cannot be written."""
    if isinstance(function, ConcreteFunction):
        return SavedFunction(function.graph.name, [], None, [_saved_trace(function)])
    if function.input_signature is not None and not function._traces.concrete:
        function.get_concrete_function()
    name = getattr(function, "__name__", "function")
    traces = [_saved_trace(concrete) for concrete in function._traces.concrete]
    return SavedFunction(name, _parameters(function.python_function), function.input_signature, traces)


def _parameters(function: Any) -> list[inspect.Parameter]:
    plain = (int, float, str, bool, type(None))
    return [
        parameter.replace(
            annotation=inspect.Parameter.empty,
            default=parameter.default if isinstance(parameter.default, plain) else inspect.Parameter.empty,
        )
        for parameter in inspect.signature(function).parameters.values()
    ]


def _saved_trace(concrete: ConcreteFunction) -> SavedTrace:
    graph = concrete.graph
    nodes = _core.graph_data(graph)
    _check(nodes, graph.name)
    captures = list(graph.captures)
    if any(_core.is_symbolic(tensor) for tensor in captures):
        raise ValueError(f"saved_model.save: {graph.name} uses a tensor of another function")
    args, kwargs = concrete.signature.described()
    result = nest.map_structure(_spec_of, concrete.structured_outputs)
    return SavedTrace(args, kwargs, nodes, captures, result, list(graph.input_names))


def _spec_of(leaf: Any) -> Any:
    return type_spec_from_value(leaf) if isinstance(leaf, _core.Tensor | CompositeTensor) else leaf


def _check(data: Any, name: str) -> None:
    """Refuses nodes that only this process can run."""
    for operation, _, parameters, *_ in data[2]:
        for kind, value in parameters:
            if kind != "o":
                continue
            if operation in _PYTHON:
                _check_python(value[0], name)
            elif value is ... and operation != "CustomGradient":
                raise ValueError(f"saved_model.save: {name} uses an operation {operation}, which cannot be written")
            if operation in ("Case", "While"):
                for inner in value:
                    _check(inner, name)


def _check_python(function: Any, name: str) -> None:
    """Refuses Python functions of the program; those of compositions, and look-ups in tables, can be written."""
    try:
        pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"saved_model.save: {name} runs Python when it is called, which a graph in a file cannot: {error}"
        ) from error


# ---- reading


def restored_function(saved: SavedFunction) -> Function:
    """A function that runs the graphs; other arguments than those it was traced with are refused."""

    def run(*args: Any, **kwargs: Any) -> Any:
        if not saved.traces:
            raise ValueError("Found zero restored functions for caller function.")
        for trace in saved.traces:
            tensors = _matched(trace, args, kwargs)
            if tensors is not None:
                return _result(trace, _replayed(trace.nodes, [*tensors, *trace.captures]))
        known = "\n".join(f"  {trace.args} {trace.kwargs}" for trace in saved.traces)
        raise ValueError(
            "Could not find matching concrete function to call loaded from the SavedModel. Got:\n"
            f"  Positional arguments: {args}\n  Keyword arguments: {kwargs}\n"
            f"Expected these arguments to match one of the following {len(saved.traces)} option(s):\n{known}"
        )

    run.__name__ = saved.name
    if saved.parameters:
        run.__signature__ = inspect.Signature(saved.parameters)  # type: ignore[attr-defined]
    return Function(run, saved.name, saved.input_signature, False)


def _matched(trace: SavedTrace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
    """The tensors of a call, if it is like the one that was traced."""
    known, given = [list(trace.args), trace.kwargs], [list(args), kwargs]
    try:
        nest.assert_same_structure(known, given, check_types=False, expand_composites=True)
    except (TypeError, ValueError):
        return None
    tensors = []
    for spec, value in zip(nest.flatten(known, expand_composites=True), nest.flatten(given, expand_composites=True)):
        if not isinstance(spec, TensorSpec):
            if not (spec is value or spec == value):
                return None
            continue
        try:
            tensor = convert_to_tensor(value, dtype_hint=spec.dtype)
        except (TypeError, ValueError):
            return None
        if tensor.dtype != spec.dtype or not spec.shape.is_compatible_with(tensor.shape):
            return None
        tensors.append(tensor)
    return tensors


def _result(trace: SavedTrace, tensors: list[Any]) -> Any:
    rest = iter(tensors)

    def value(leaf: Any) -> Any:
        if isinstance(leaf, TensorSpec):
            return next(rest)
        if isinstance(leaf, TypeSpec):
            parts = nest.flatten(leaf, expand_composites=True)
            return nest.pack_sequence_as(leaf, [next(rest) for _ in parts], expand_composites=True)
        return leaf

    return nest.map_structure(value, trace.result)


def _replayed(data: Any, given: list[Any]) -> list[Any]:
    """What the nodes give for these inputs, in the graph that is being built."""
    inputs, constants, nodes, outputs = data
    value_by_number = dict(constants)
    value_by_number.update((number, tensor) for (number, _, _), tensor in zip(inputs, given))
    for operation, numbers, parameters, first, count, extent in nodes:
        values = [value_by_number[number] for number in numbers if number in value_by_number]
        results = _run_node(operation, values, _placed(parameters, value_by_number), count, extent)
        value_by_number.update(zip(range(first, first + count), results))
    return [value_by_number[number] for number in outputs]


def _placed(parameters: list[Any], value_by_number: dict[int, Any]) -> list[Any]:
    """Parameters with tensors in place of their numbers; those that turn out to be known, as they are."""
    return [
        (kind, (value_by_number[value[0]], value[1])) if kind == "v" else (kind, value) for kind, value in parameters
    ]


def _run_node(operation: str, values: list[Any], parameters: list[Any], count: int, extent: Any) -> Iterator[Any]:
    held: Any = parameters[0][1] if parameters else None
    match operation:
        case "ReadVariableOp":
            return iter([convert_to_tensor(held)])
        case "AssignVariableOp":
            getattr(held, _UPDATES[parameters[1][1]])(values[0], read_value=False)
            return iter([convert_to_tensor(held)] * count)
        case "Case":
            graphs = [_inner_graph(data) for data in held]
            return iter(_core.add_case(values[0], graphs, values[1 : 1 + len(held[0][0])]))
        case "While":
            condition, body = (_inner_graph(data) for data in held)
            return iter(_core.add_while(condition, body, values[: len(held[1][0])], *extent))
        case "TensorListSetItem":
            return iter([_core.list_set(*values, held)])
        case "TensorListGetItem":
            return iter([_core.list_get(*values, held)])
        case "TensorListStack":
            return iter([_core.list_stack(*values, held)])
        case "Required":
            return iter([_core.required(*values, held)])
        case "Const":
            return iter([held])
        case "Composition" | "EagerPyFunc":
            function, dtypes, shapes, differentiable = held
            if differentiable:
                return iter(
                    differentiable_call(function, values, list(zip(dtypes, shapes)), operation != "Composition")
                )
            return iter(_core.call_python(function, values, dtypes, shapes, None, operation != "Composition"))
        case "CustomGradient":
            return iter(nest.flatten(_without_gradient(*values[:count])))
    return iter(_core.add_node(operation, values, parameters))


@custom_gradient
def _without_gradient(*tensors: Any) -> Any:
    def rule(*dys: Any) -> Any:
        raise LookupError(
            "No gradient defined for operation 'CustomGradient': a saved model does not keep the rules of "
            "tf.custom_gradient"
        )

    return list(tensors), rule


def _inner_graph(data: Any) -> FuncGraph:
    """The graph of a branch or of a round, inside the graph that is being built."""
    inputs, _, nodes, _ = data
    graph = FuncGraph(_core.current_graph())
    graph.changing = list({id(v): v for v in _variables_in(nodes)}.values())
    with building(graph):
        given = [graph.add_input(dtype, shape) for _, dtype, shape in inputs]
        graph.set_outputs(_replayed(data, given))
    return graph


def _variables_in(nodes: Any) -> Iterator[Any]:
    for operation, _, parameters, *_ in nodes:
        if operation in ("ReadVariableOp", "AssignVariableOp"):
            yield parameters[0][1]
        elif operation in ("Case", "While"):
            for inner in parameters[0][1]:
                yield from _variables_in(inner[2])
