"""Every primitive under vmap gives what it gives row by row, whichever inputs depend on the row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import _core, primitives
from tapeflow._src.control_flow.tracing import trace_body
from tapeflow._src.primitives import facts_by_name
from tests.ops.sample_makers import Call, Maker
from tests.ops.samples import builders, dtypes_of

ROWS = 3
DTYPES = ("float64", "complex128", "int32", "bool", "uint64", "int64", "float32")

SHAPE_FOLLOWS_VALUES = {"DistinctElements"}  # of every sample: no two rows go together


def chooser(seed: int) -> Any:
    random = np.random.default_rng(seed)
    return lambda options: options[random.integers(len(options))]


def samples_of(name: str, seed: int, dtypes: int) -> list[list[Call]]:
    """For each builder and some dtypes, calls that differ in the values of their arrays alone, one for each row."""
    dtypes = [d for d in DTYPES if d in dtypes_of(name)][:dtypes] or dtypes_of(name)[:1]
    result = []
    for number, builder in enumerate(builders(name)):
        for dtype in dtypes:
            rows = []
            for row in range(ROWS):
                rows.append(builder(Maker(1000 * seed + row, dtype, chooser(100 * seed + number))))
            result.append(rows)
    return result


def array_places(call: Call) -> list[Any]:
    """Where among the arguments arrays stand: numbers, and pairs of numbers for arrays in lists."""
    places: list[Any] = []
    for i, argument in enumerate(call.args):
        if isinstance(argument, np.ndarray | tf.Tensor):
            places.append(i)
        elif isinstance(argument, list) and argument and all(isinstance(a, np.ndarray) for a in argument):
            places += [(i, k) for k in range(len(argument))]
    return places


def at(call: Call, place: Any) -> np.ndarray:
    return np.asarray(call.args[place] if isinstance(place, int) else call.args[place[0]][place[1]])


def with_tensors(call: Call, tensor_by_place: dict[Any, Any]) -> list[Any]:
    args = [list(a) if isinstance(a, list) else a for a in call.args]
    for place, tensor in tensor_by_place.items():
        if isinstance(place, int):
            args[place] = tensor
        else:
            args[place[0]][place[1]] = tensor
    return args


def row_graph(name: str, call: Call, places: list[Any], specs: list[tuple[Any, Any]]) -> Any:
    """The graph of one row, of which the inputs at `places` are inputs."""

    def body(*tensors: Any) -> Any:
        return tf.nest.flatten(
            getattr(primitives, name)(*with_tensors(call, dict(zip(places, tensors))), **call.kwargs)
        )

    graph, outputs = trace_body(body, None, specs)
    graph.set_outputs(outputs)
    return graph


def rows_together(name: str, calls: list[Call], places: list[Any], stacked: list[Any]) -> list[Any]:
    graph = row_graph(name, calls[0], places, [(s.dtype, s.shape[1:]) for s in stacked])
    return _core.call_batched(graph, stacked, [True] * len(stacked), ROWS)


def rows_alone(name: str, calls: list[Call], places: list[Any], stacked: list[Any]) -> list[list[Any]]:
    """For each output, its value for each row."""
    rows = []
    for number in range(ROWS):
        tensors = {place: s[number] for place, s in zip(places, stacked)}
        result = getattr(primitives, name)(*with_tensors(calls[0], tensors), **calls[0].kwargs)
        rows.append(tf.nest.flatten(result))
    return [list(column) for column in zip(*rows)]


def subsets(places: list[Any]) -> list[list[Any]]:
    return [[place] for place in places[:4]] + ([places] if len(places) > 1 else [])


def cases(
    name: str, seeds: int = 1, dtypes: int = 1
) -> Iterator[tuple[list[Call], list[Any], list[Any], list[list[Any]]]]:
    """Calls, which inputs depend on the row, those for all rows, and what each row gives alone."""
    for seed in range(seeds):
        for calls in samples_of(name, seed, dtypes):
            for places in subsets(array_places(calls[0])):
                stacked = [tf.constant(np.stack([at(call, place) for call in calls])) for place in places]
                try:
                    yield calls, places, stacked, rows_alone(name, calls, places, stacked)
                except (tf.errors.InvalidArgumentError, ValueError):
                    continue  # the values of one row do not go with the others' arguments


def have_one_shape(outputs: list[list[Any]]) -> bool:
    return all(y.shape == column[0].shape for column in outputs for y in column)


def assert_equal_rows(found: list[Any], expected: list[list[Any]], what: str) -> None:
    for y, column in zip(found, expected, strict=True):
        assert y.dtype == column[0].dtype
        assert y.shape == [ROWS, *column[0].shape], what
        stacked = np.stack([np.asarray(row) for row in column])
        if stacked.dtype.kind in "fc":
            np.testing.assert_allclose(y, stacked, rtol=2e-5, atol=1e-5, err_msg=what)
        else:
            np.testing.assert_array_equal(y, stacked, err_msg=what)


@pytest.mark.parametrize("name", sorted(facts_by_name))
def test_rows_together_are_rows_alone(name):
    compared = 0
    for calls, places, stacked, expected in cases(name, seeds=3, dtypes=2):
        if not have_one_shape(expected):
            with pytest.raises(tf.errors.InvalidArgumentError, match="must have one shape"):
                rows_together(name, calls, places, stacked)
            continue
        assert_equal_rows(rows_together(name, calls, places, stacked), expected, f"{name}{calls[0]} by {places}")
        compared += 1
    assert compared > 0 or name in SHAPE_FOLLOWS_VALUES


@pytest.mark.parametrize("name", sorted(facts_by_name))
def test_rows_together_in_a_function_that_knows_no_shapes(name):
    for calls, places, stacked, expected in cases(name):
        if not have_one_shape(expected):
            continue
        unknown = [tf.TensorShape([None] * (len(s.shape) - 1)) for s in stacked]
        try:
            graph = row_graph(name, calls[0], places, [(s.dtype, shape) for s, shape in zip(stacked, unknown)])
        except ValueError:
            continue  # how many results there are depends on a shape
        signature = [tf.TensorSpec([ROWS, *shape], s.dtype) for s, shape in zip(stacked, unknown)]
        together = tf.function(
            lambda *t, graph=graph: _core.call_batched(graph, list(t), [True] * len(t), ROWS),
            input_signature=signature,
            autograph=False,
        )
        assert_equal_rows(together(*stacked), expected, f"{name}{calls[0]} by {places}")


def weighted_sum(outputs: list[Any]) -> Any:
    """A real number that depends on every differentiable element, on each in another way."""
    total = 0.0
    for y in outputs:
        if y.dtype.is_floating or y.dtype.is_complex:
            weights = np.cos(np.arange(int(np.prod(y.shape)))).reshape(tuple(y.shape))
            weighted = tf.reduce_sum(y * tf.cast(weights, y.dtype))
            total += tf.cast(tf.math.real(weighted) if y.dtype.is_complex else weighted, tf.float64)
    return total


@pytest.mark.parametrize("name", [name for name, facts in sorted(facts_by_name.items()) if facts["gradient"] == "rule"])
def test_gradients_of_rows_together_are_those_of_rows_alone(name):
    for calls, places, stacked, expected in cases(name):
        sources = [s for s in stacked if s.dtype.is_floating or s.dtype.is_complex]
        if not sources or not have_one_shape(expected):
            continue
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(sources)
            together = weighted_sum(rows_together(name, calls, places, stacked))
            alone = weighted_sum([tf.stack(column) for column in rows_alone(name, calls, places, stacked)])
        try:
            wanted = tape.gradient(alone, sources, unconnected_gradients="zero")
        except LookupError:  # it is a derivative itself, and has none
            with pytest.raises(LookupError):
                tape.gradient(together, sources)
            continue
        found = tape.gradient(together, sources, unconnected_gradients="zero")
        for dx, other in zip(found, wanted, strict=True):
            dx, other = (np.asarray(tf.convert_to_tensor(t)) for t in (dx, other))
            np.testing.assert_allclose(dx, other, rtol=2e-4, atol=1e-4, err_msg=f"{name}{calls[0]} by {places}")
