"""Operations while tracing, with known and unknown dimensions and with unknown rank: a graph gives what eager gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops import samples
from ops.samples import Maker, builders, dtypes_of

import tapeflow as tf
from tapeflow import primitives
from tapeflow.function.trace import FuncGraph, building
from tapeflow.primitives import facts_by_name

KNOWN, OPEN, RANKLESS = "known", "open", "rankless"

# Primitives whose results are new random numbers at each run: only shape and dtype are compared.
random_names = {name for name in facts_by_name if name.startswith("Random") or name in ("Multinomial",)}

# What cannot be traced without knowing more, and why.
needs_dimensions = {
    "Unpack": "the number of results is a dimension",
}


def static_shape(x: np.ndarray, how: str) -> tf.TensorShape:
    if how == RANKLESS:
        return tf.TensorShape(None)
    return tf.TensorShape(x.shape if how == KNOWN else [None] * x.ndim)


class Traced:
    """A call of a primitive whose arrays are inputs of a graph; everything else is known while tracing."""

    def __init__(self, name: str, call: samples.Call):
        self.name = name
        self.structure = [list(call.args), call.kwargs]
        self.leaves = tf.nest.flatten(self.structure)
        self.places = [i for i, leaf in enumerate(self.leaves) if isinstance(leaf, np.ndarray)]
        self.arrays = [self.leaves[i] for i in self.places]

    def outputs(self, tensors: list[Any]) -> list[Any]:
        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors):
            leaves[place] = tensor
        args, kwargs = tf.nest.pack_sequence_as(self.structure, leaves)
        return tf.nest.flatten(getattr(primitives, self.name)(*args, **kwargs))

    def with_gradients(self, tensors: list[Any]) -> tuple[list[Any], list[Any]]:
        sources = [t for t in tensors if t.dtype.is_floating or t.dtype.is_complex]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            outputs = self.outputs(tensors)
            targets = [y * y for y in outputs if y.dtype.is_floating or y.dtype.is_complex]
        gradients = (
            tape.gradient(targets, sources) if facts_by_name[self.name]["gradient"] != "missing" and targets else []
        )
        return outputs, [None if dx is None else tf.convert_to_tensor(dx) for dx in gradients]

    def tangents(self, tensors: list[Any]) -> list[Any]:
        sources = [t for t in tensors if t.dtype.is_floating or t.dtype.is_complex]
        with tf.autodiff.ForwardAccumulator(sources, [tf.ones_like(x) for x in sources]) as accumulator:
            outputs = self.outputs(tensors)
        flowing = [y for y in outputs if y.dtype.is_floating or y.dtype.is_complex]
        return [accumulator.jvp(y, tf.UnconnectedGradients.ZERO) for y in flowing]

    def run_graph(self, how: str) -> tuple[list[Any], list[Any], list[Any]]:
        """Outputs, gradients, and the static shapes of the outputs."""
        values = [tf.convert_to_tensor(array) for array in self.arrays]
        graph = FuncGraph()
        with building(graph):
            inputs = [graph.add_input(t.dtype, static_shape(a, how)) for t, a in zip(values, self.arrays)]
            outputs, gradients = self.with_gradients(inputs)
            graph.set_outputs([*outputs, *(dx for dx in gradients if dx is not None)])
        results = iter(graph.call(values))
        found = [next(results) for _ in outputs]
        return found, [None if dx is None else next(results) for dx in gradients], [y.shape for y in outputs]


def sample_dtype(name: str) -> str:
    dtypes = dtypes_of(name)
    return next((d for d in ("float32", "float64") if d in dtypes), dtypes[0])


def same(expected: list[Any], found: list[Any], random: bool) -> None:
    assert len(expected) == len(found)
    for a, b in zip(expected, found):
        assert (a is None) <= (b is None or not np.any(np.asarray(b))), "a gradient is None in eager mode only"
        if a is None:
            continue
        assert b is not None, "a gradient is None in the graph only"
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if not random and a.dtype != tf.string:
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("how", [KNOWN, OPEN, RANKLESS])
@pytest.mark.parametrize("name", facts_by_name)
def test_a_graph_gives_what_eager_gives(name, how):
    for build in builders(name):
        traced = Traced(name, build(Maker(0, sample_dtype(name))))
        if not traced.arrays or (how != KNOWN and name in needs_dimensions):
            continue
        expected, gradients = traced.with_gradients([tf.convert_to_tensor(array) for array in traced.arrays])
        found, found_gradients, shapes = traced.run_graph(how)
        same(expected, found, name in random_names)
        same(gradients, found_gradients, name in random_names)
        for shape, y in zip(shapes, expected):
            assert shape.is_compatible_with(y.shape), f"the static shape {shape} is wrong: {y.shape}"


@pytest.mark.parametrize("how", [KNOWN, OPEN])
@pytest.mark.parametrize("name", [n for n, facts in facts_by_name.items() if facts["gradient"] == "rule"])
def test_forward_mode_in_a_graph(name, how):
    if how == OPEN and name in needs_dimensions:
        return
    traced = Traced(name, builders(name)[0](Maker(0, sample_dtype(name))))
    values = [tf.convert_to_tensor(array) for array in traced.arrays]
    expected = traced.tangents(values)
    graph = FuncGraph()
    with building(graph):
        inputs = [graph.add_input(t.dtype, static_shape(a, how)) for t, a in zip(values, traced.arrays)]
        graph.set_outputs(traced.tangents(inputs))
    same(expected, graph.call(values), name in random_names)
