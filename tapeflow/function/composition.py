"""Compositions while tracing: traced like user code, or, if one has to see values, run whole when the graph runs."""

from __future__ import annotations

import functools
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
        found, sizes = _probes(run, symbolic)
    structure = found[0][1]
    specs = []
    for alike in zip(*(tensors for tensors, _ in found)):
        shape = functools.reduce(_common_shape, (x.shape for x in alike))
        if len(sizes) == 1 and shape.rank and any(not x.shape.is_fully_defined() for x in symbolic):
            shape = TensorShape([None if d in sizes else d for d in shape])
        specs.append((alike[0].dtype, shape))
    outputs = differentiable_call(lambda tensors: _flat(run(tensors)), symbolic, specs, effect=False)
    return nest.pack_sequence_as(structure, outputs, expand_composites=True)


def _flat(structure: Any) -> list[Any]:
    return [convert_to_tensor(x) for x in nest.flatten(structure, expand_composites=True)]


def _probes(run: Callable[[list[Any]], Any], symbolic: list[Any]) -> tuple[list[Any], set[int]]:
    """The outputs for several sample inputs, and the numbers that stood for dimensions which are not known.

    What differs between them is not known while tracing. An integer vector may be the shape of other inputs, so the
    last one is also tried with larger elements than the others have.
    """
    vectors = [i for i, x in enumerate(symbolic) if x.dtype.is_integer and x.shape.rank == 1]
    last = vectors[-1] if vectors else None
    found, errors, tried = [], [], set()
    for unknown, number, size in ((2, 0, 0), (3, 1, 1), (2, 0, 4), (3, 0, 5), (1, 0, 4), (1, 0, 5)):
        if size > 1 and (last is None or (unknown == 1 and tried)):
            continue
        samples = [_sample(x, unknown, size if i == last else number) for i, x in enumerate(symbolic)]
        try:
            structure = run(samples)
            found.append((_flat(structure), structure))
            tried.add(unknown)
        except Exception as error:
            errors.append(error)
    if not found:
        raise errors[0]
    return [probe for probe in found if len(probe[0]) == len(found[0][0])], tried


def _sample(x: Any, unknown: int, number: int) -> Any:
    dims = [unknown] if x.shape.rank is None else [unknown if d is None else d for d in x.shape]
    if x.dtype.name == "string":
        return convert_to_tensor(np.full(dims, b""))
    return convert_to_tensor(np.full(dims, number, x.dtype.as_numpy_dtype), dtype=x.dtype)


def _common_shape(a: TensorShape, b: TensorShape) -> TensorShape:
    if a.rank != b.rank:
        return TensorShape(None)
    return TensorShape([x if x == y else None for x, y in zip(a, b)])


_core.register_objects({"stage_composition": _stage})
