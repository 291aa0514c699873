"""Compositions while tracing: traced like user code, or, if one has to see values, run whole when the graph runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow import _core
from tapeflow.autodiff.gradient_tape import GradientTape
from tapeflow.function.trace import running_at_once
from tapeflow.ops.conversion import convert_to_tensor
from tapeflow.types import nest
from tapeflow.types.symbolic import Refusals
from tapeflow.types.tensor_shape import TensorShape


def _stage(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a composition while tracing. If it asks for values it cannot have, it becomes one node."""
    graph = _core.current_graph()
    if graph.takes_everything and graph.names_nodes:
        return _stage_named(graph, function, args, kwargs)
    refusals, count = Refusals.count, graph.node_count
    try:
        return function(*args, **kwargs)
    except Exception:
        leaves = nest.flatten([args, kwargs], expand_composites=True)
        symbolic = [leaf for leaf in leaves if _core.is_symbolic(leaf)]
        unknown = Refusals.count > refusals or any(not x.shape.is_fully_defined() for x in symbolic)
        if not unknown or not (symbolic or graph.takes_everything):
            raise
        graph.cut_back(count)
        return _run_whole(function, args, kwargs, leaves)


# What TensorFlow calls the nodes of these functions.
_SCOPE_BY_FUNCTION = {
    "sigmoid_cross_entropy_with_logits": "logistic_loss",
    "sparse_softmax_cross_entropy_with_logits": "SparseSoftmaxCrossEntropyWithLogits",
    "normal": "random_normal",
    "uniform": "random_uniform",
    "constant": "Const",
    "fill": "Fill",
    "l2_loss": "L2Loss",
    "bias_add": "BiasAdd",
    "shape": "Shape",
    "size": "Size",
    "rank": "Rank",
}
_UNNAMED = {"group", "no_op", "tuple", "executing_eagerly"}


def _stage_named(graph: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same in a graph of TensorFlow 1, where results are nodes whatever they come from, and nodes have names."""
    if function.__name__ in _UNNAMED:
        return function(*args, **kwargs)
    first, name = graph.node_count, kwargs.get("name")
    default = _SCOPE_BY_FUNCTION.get(function.__name__, function.__name__)
    graph.names_nodes = False
    try:
        result = _stage(function, args, kwargs)
        if isinstance(result, _core.Tensor) and not _core.is_symbolic(result):
            result = graph.add_constant(result, default)
    finally:
        graph.names_nodes = True
    graph.name_nodes(first, name, default, result)
    return result


def _run_whole(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any]) -> Any:
    leaves = [leaf.read_value() if isinstance(leaf, _core.Variable) else leaf for leaf in leaves]
    places = [i for i, leaf in enumerate(leaves) if _core.is_symbolic(leaf)]
    symbolic = [leaves[i] for i in places]

    def run(tensors: list[Any]) -> Any:
        given = list(leaves)
        for place, tensor in zip(places, tensors):
            given[place] = tensor
        positional, named = nest.pack_sequence_as([args, kwargs], given, expand_composites=True)
        return function(*positional, **named)

    with running_at_once():
        first, structure = _probe(run, symbolic, 2, np.zeros)
        try:
            second, _ = _probe(run, symbolic, 3, np.ones)
        except Exception:
            second = first
    specs = [(x.dtype, _common_shape(x.shape, y.shape)) for x, y in zip(first, second)]
    outputs = differentiable_call(lambda tensors: _flat(run(tensors)), symbolic, specs, effect=False)
    return nest.pack_sequence_as(structure, outputs, expand_composites=True)


def _flat(structure: Any) -> list[Any]:
    return [convert_to_tensor(x) for x in nest.flatten(structure, expand_composites=True)]


def _probe(run: Callable[[list[Any]], Any], symbolic: list[Any], unknown: int, fill: Callable[..., Any]) -> Any:
    """The outputs for tensors of these shapes, with a number for every dimension that is not known."""
    samples = []
    for x in symbolic:
        dims = [unknown] if x.shape.rank is None else [unknown if d is None else d for d in x.shape]
        if x.dtype.name == "string":
            samples.append(convert_to_tensor(np.full(dims, b"")))
        else:
            samples.append(convert_to_tensor(fill(dims, x.dtype.as_numpy_dtype), dtype=x.dtype))
    structure = run(samples)
    return _flat(structure), structure


def _common_shape(a: TensorShape, b: TensorShape) -> TensorShape:
    if a.rank != b.rank:
        return TensorShape(None)
    return TensorShape([x if x == y else None for x, y in zip(a, b)])


def differentiable_call(
    run: Callable[[list[Any]], list[Any]], inputs: list[Any], specs: list[tuple[Any, TensorShape]], effect: bool
) -> list[Any]:
    """A node that calls `run` on the values of `inputs`; its gradient runs it again under a tape, to any order."""

    def rule(inputs: list[Any], outputs: list[Any], dy: list[Any]) -> list[Any]:
        sources = [i for i, x in enumerate(inputs) if x.dtype.is_floating or x.dtype.is_complex]
        flowing = [j for j, d in enumerate(dy) if d is not None]

        def run_back(tensors: list[Any]) -> list[Any]:
            given, cotangents = tensors[: len(inputs)], tensors[len(inputs) :]
            with GradientTape() as tape:
                watched = [given[i] for i in sources]
                tape.watch(watched)
                targets = run(given)
            return tape.gradient([targets[j] for j in flowing], watched, cotangents, unconnected_gradients="zero")

        specs = [(inputs[i].dtype, inputs[i].shape) for i in sources]
        found = differentiable_call(run_back, [*inputs, *(dy[j] for j in flowing)], specs, effect=False)
        result: list[Any] = [None] * len(inputs)
        for i, dx in zip(sources, found):
            result[i] = dx
        return result

    dtypes, shapes = [dtype for dtype, _ in specs], [shape for _, shape in specs]
    return _core.call_python(run, inputs, dtypes, shapes, rule, effect)


_core.register_objects({"stage_composition": _stage})
