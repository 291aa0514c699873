"""Compositions while tracing: traced like user code, or, if one has to see values, run whole when the graph runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow import _core
from tapeflow.autodiff.black_box import differentiable_call
from tapeflow.function.trace import init_scope
from tapeflow.ops.conversion import convert_to_tensor
from tapeflow.types import nest
from tapeflow.types.symbolic import Refusals
from tapeflow.types.tensor_shape import TensorShape


def _stage(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a composition while tracing. If it asks for values it cannot have, it becomes one node."""
    graph = _core.current_graph()
    refusals, count = Refusals.count, graph.node_count
    try:
        return function(*args, **kwargs)
    except Exception:
        leaves = nest.flatten([args, kwargs], expand_composites=True)
        symbolic = [leaf for leaf in leaves if _core.is_symbolic(leaf)]
        if not symbolic or not (Refusals.count > refusals or any(not x.shape.is_fully_defined() for x in symbolic)):
            raise
        graph.cut_back(count)
        return _run_whole(function, args, kwargs, leaves, symbolic)


def _run_whole(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any], symbolic: list[Any]
) -> Any:
    places = [i for i, leaf in enumerate(leaves) if _core.is_symbolic(leaf)]

    def run(tensors: list[Any]) -> Any:
        given = list(leaves)
        for place, tensor in zip(places, tensors):
            given[place] = tensor
        positional, named = nest.pack_sequence_as([args, kwargs], given, expand_composites=True)
        return function(*positional, **named)

    with init_scope():
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


_core.register_objects({"stage_composition": _stage})
