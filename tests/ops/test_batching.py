"""Every primitive for many rows at once gives what it gives row by row, whichever inputs depend on the row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.samples import Call, Maker, builders, dtypes_of

import tapeflow as tf
from tapeflow import _core, primitives
from tapeflow.control_flow.tracing import trace_body
from tapeflow.primitives import facts_by_name

ROWS = 3
DTYPES = ("float64", "complex128", "int32", "bool", "uint64", "int64", "float32")

SHAPE_FOLLOWS_VALUES = {"DistinctElements"}  # of every sample: no two rows go together


def chooser(seed: int) -> Any:
    random = np.random.default_rng(seed)
    return lambda options: options[random.integers(len(options))]


def samples_of(name: str, seed: int) -> list[list[Call]]:
    """For each builder and dtype, calls that differ in the values of their arrays alone, one for each row."""
    dtypes = [d for d in DTYPES if d in dtypes_of(name)][:2] or dtypes_of(name)[:1]
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


def run_rows(name: str, calls: list[Call], places: list[Any]) -> list[np.ndarray]:
    """The outputs of one operation for all rows, of which the inputs at `places` depend on the row."""
    function = getattr(primitives, name)
    stacked = [np.stack([at(call, place) for call in calls]) for place in places]
    specs = [(tf.as_dtype(s.dtype), tf.TensorShape(s.shape[1:])) for s in stacked]

    def body(*tensors: Any) -> Any:
        return tf.nest.flatten(function(*with_tensors(calls[0], dict(zip(places, tensors))), **calls[0].kwargs))

    graph, outputs = trace_body(body, None, specs)
    graph.set_outputs(outputs)
    found = _core.call_batched(graph, [tf.constant(s) for s in stacked], [True] * len(stacked), ROWS)
    return [np.asarray(y) for y in found]


def each_row(name: str, calls: list[Call], places: list[Any]) -> list[list[np.ndarray]]:
    function = getattr(primitives, name)
    rows = []
    for call in calls:
        tensors = {place: tf.constant(at(call, place)) for place in places}
        rows.append(
            [np.asarray(y) for y in tf.nest.flatten(function(*with_tensors(calls[0], tensors), **calls[0].kwargs))]
        )
    return [list(column) for column in zip(*rows)]


def subsets(places: list[Any]) -> list[list[Any]]:
    return [[place] for place in places[:4]] + ([places] if len(places) > 1 else [])


@pytest.mark.parametrize("name", sorted(facts_by_name))
def test_rows_together_are_rows_alone(name):
    compared = 0
    for seed in range(3):
        for calls in samples_of(name, seed):
            for places in subsets(array_places(calls[0])):
                if len({at(call, place).shape for call in calls for place in places[:1]}) > 1:
                    continue
                try:
                    expected = each_row(name, calls, places)
                except (tf.errors.InvalidArgumentError, ValueError):
                    continue  # the values of one row do not go with the others' arguments
                if any(len({y.shape for y in column}) > 1 for column in expected):
                    with pytest.raises(tf.errors.InvalidArgumentError, match="must have one shape"):
                        run_rows(name, calls, places)
                    continue
                found = run_rows(name, calls, places)
                for y, column in zip(found, expected, strict=True):
                    assert y.dtype == column[0].dtype
                    assert y.shape == (ROWS, *column[0].shape), f"{name}{calls[0]} by {places}"
                    if y.dtype.kind in "fc":
                        np.testing.assert_allclose(
                            y, np.stack(column), rtol=2e-5, atol=1e-5, err_msg=f"{name}{calls[0]} by {places}"
                        )
                    else:
                        np.testing.assert_array_equal(y, np.stack(column), err_msg=f"{name}{calls[0]} by {places}")
                compared += 1
    assert compared > 0 or name in SHAPE_FOLLOWS_VALUES
