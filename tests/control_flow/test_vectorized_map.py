"""`tf.vectorized_map`: equal to a loop over the slices, in every surrounding; and what it refuses."""

import logging
from collections import namedtuple

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.control_flow.tracing import trace_body

X = tf.constant([[1.0, 2.0, -0.5], [3.0, 4.0, 0.25], [5.0, 6.0, 1.5], [0.5, -1.0, 2.0]])
W = tf.Variable([[1.0, -1.0, 0.5], [0.5, 2.0, -1.0], [0.3, 0.2, 0.1]])


def gradient_of(loss_of):
    def function(row):
        with tf.GradientTape() as tape:
            loss = loss_of(row)
        return tape.gradient(loss, W)

    return function


def jacobian_of(row):
    with tf.GradientTape() as tape:
        tape.watch(row)
        y = tf.sin(row) * tf.reduce_sum(row)
    return tape.jacobian(y, row)


def doubled_until_large(row):
    return tf.while_loop(lambda s: s < 20.0, lambda s: (s * 2.0,), (tf.abs(tf.reduce_sum(row)),))[0]


@tf.custom_gradient
def tenfold_slope(x):
    return x * x, lambda dy: 20.0 * x * dy


FUNCTIONS = {
    "elementwise": lambda r: tf.sin(r) * r + 1.0,
    "matrix vector": lambda r: tf.linalg.matvec(W, r),
    "outer product": lambda r: tf.einsum("i,j->ij", r, tf.exp(r)),
    "solve": lambda r: tf.linalg.solve(W + tf.linalg.diag(r + 3.0), r[:, None]),
    "norm": lambda r: r / tf.norm(r),
    "index": lambda r: r[tf.argmax(r)],
    "slice": lambda r: r[1:] - r[:-1],
    "row of another": lambda r: X[tf.argmin(r)] * r,
    "choice": lambda r: tf.where(r > 1.0, r, -r),
    "branch": lambda r: tf.cond(tf.reduce_sum(r) > 5.0, lambda: tf.linalg.matvec(W, r), lambda: -r),
    "loop": doubled_until_large,
    "same loop for all": lambda r: tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * r), (0, r))[1],
    "map inside": lambda r: tf.map_fn(lambda e: e * tf.reduce_sum(r), r),
    "itself inside": lambda r: tf.vectorized_map(lambda e: e * e + r, r),
    "sort": tf.sort,
    "top": lambda r: tf.nn.top_k(r, 2)[0],
    "custom gradient": lambda r: tf.reduce_sum(tenfold_slope(r)),
    "gradient inside": gradient_of(lambda r: tf.reduce_sum(tf.tanh(tf.linalg.matvec(W, r)) ** 2)),
    "jacobian inside": jacobian_of,
    "python function": lambda r: tf.py_function(lambda t: t * 2.0, [r], tf.float32),
    "convolution": lambda r: tf.nn.conv1d(tf.reshape(r, [1, 3, 1]), tf.ones([2, 1, 2]), 1, "SAME"),
}


def by_loop(function, x):
    return tf.stack([function(row) for row in tf.unstack(x)])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_equal_to_a_loop(name):
    function = FUNCTIONS[name]
    expected = by_loop(function, X)

    def mapped(x):
        return tf.vectorized_map(function, x, warn=False)

    open_ended = tf.function(mapped, input_signature=[tf.TensorSpec([None, 3])])
    open_rows = tf.function(mapped, input_signature=[tf.TensorSpec([4, None])])
    for found in (mapped(X), tf.function(mapped)(X), open_ended(X)):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    if name not in ("map inside",):  # its result has a shape that is not known
        np.testing.assert_allclose(open_rows(X), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_those_of_the_loop(name):
    function = FUNCTIONS[name]

    def slopes(map_rows):
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = map_rows(X)
            total = tf.reduce_sum(y * tf.cos(tf.cast(tf.range(tf.size(y)), tf.float32) + 0.0)[0] * y)
        return [tf.convert_to_tensor(g) for g in tape.gradient(total, [X, W], unconnected_gradients="zero")]

    expected = slopes(lambda x: by_loop(function, x))
    eager = slopes(lambda x: tf.vectorized_map(function, x, warn=False))
    compiled = tf.function(lambda: slopes(lambda x: tf.vectorized_map(function, x, warn=False)))()
    for found in (eager, compiled):
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "python function"])
def test_forward_mode_and_second_order_are_those_of_the_loop(name):
    function = FUNCTIONS[name]

    def tangent(map_rows):
        with tf.autodiff.ForwardAccumulator(X, tf.sin(X)) as accumulator:
            y = map_rows(function, X)
        return accumulator.jvp(y)

    def bend(map_rows):
        with tf.GradientTape() as outer:
            outer.watch(X)
            with tf.GradientTape() as inner:
                inner.watch(X)
                y = tf.reduce_sum(map_rows(function, X) ** 2)
            dx = tf.convert_to_tensor(inner.gradient(y, X))
        return tf.convert_to_tensor(outer.gradient(dx, X))

    def together(function, x):
        return tf.vectorized_map(function, x, warn=False)

    np.testing.assert_allclose(tangent(together), tangent(by_loop), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(bend(together), bend(by_loop), rtol=1e-3, atol=1e-4)


def test_tensors_around_the_function_have_gradients():
    scale = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(scale)
        y = tf.vectorized_map(lambda r: tf.sin(scale) * r + scale, X)
    np.testing.assert_allclose(tape.gradient(y, scale), np.cos(scale) * np.sum(X, 0) + 4.0, rtol=1e-5)


def test_structures():
    Pair = namedtuple("Pair", ["a", "b"])
    found = tf.vectorized_map(
        lambda e: Pair(e["x"] + e["n"][0], {"c": tf.constant(3), "t": "text", "none": None}),
        {"x": X, "n": [tf.constant([10.0, 20.0, 30.0, 40.0])]},
    )
    assert isinstance(found, Pair)
    np.testing.assert_array_equal(found.a, X + [[10.0], [20.0], [30.0], [40.0]])
    np.testing.assert_array_equal(found.b["c"], [3, 3, 3, 3])
    np.testing.assert_array_equal(found.b["t"], [b"text"] * 4)
    assert found.b["none"] is None


def test_a_first_dimension_of_one_is_for_all():
    one = tf.constant([[10.0, 20.0, 30.0]])
    for elems in ((X, one), (one, X)):
        np.testing.assert_array_equal(tf.vectorized_map(lambda e: e[0] + e[1], elems), X + one)
    assert tf.vectorized_map(lambda e: e * 2.0, one).shape == [1, 3]


def test_the_number_of_slices_is_counted_when_the_function_runs():
    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None, 3])])
    def mapped(a, b):
        return tf.vectorized_map(lambda e: tf.sin(e[0]) * tf.reduce_sum(e[1]), (a, b))

    for a, b in ((X, X), (X[:1], X), (X, X[:1]), (X[:1], X[:1])):
        np.testing.assert_allclose(mapped(a, b), np.sin(a) * np.sum(b, 1, keepdims=True), rtol=1e-5)
    assert mapped(X[:0], X[:0]).shape == [0, 3]
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be equal, or 1; got 4 and 2"):
        mapped(X, X[:2])
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = mapped(X, X[:1])
    np.testing.assert_allclose(tape.gradient(y, X)[1:], np.cos(X)[1:] * 2.5, rtol=1e-5)
    draw = tf.function(
        lambda x: tf.vectorized_map(lambda r: tf.random.normal([]), x), input_signature=[tf.TensorSpec([None])]
    )
    assert len(np.unique(draw(tf.zeros([9])))) == 9


def test_no_slices():
    assert tf.vectorized_map(lambda r: r[:2] * 2.0, tf.zeros([0, 3])).shape == [0, 2]


def test_what_does_not_depend_on_the_slice_is_computed_once():
    graph, _ = trace_body(
        lambda x: tf.vectorized_map(lambda r: tf.linalg.matvec(tf.linalg.inv(W) @ W, r), x),
        None,
        [(tf.float32, X.shape)],
    )
    shapes = [(node[0], node[3][0].shape) for node in map(graph.node, range(graph.node_count))]
    assert [shape for name, shape in shapes if name == "MatrixInverse"] == [[3, 3]]
    assert [shape for name, shape in shapes if name == "MatMul"] == [[3, 3], [4, 3]]  # and one product for all slices


def test_every_slice_draws_its_own_numbers():
    for draw in (
        lambda r: tf.random.normal([3]),
        lambda r: tf.random.uniform([3], maxval=1000000, dtype=tf.int32),
        lambda r: tf.random.gamma([3], 2.0),
        lambda r: tf.random.Generator.from_seed(1).normal([3]) if r is None else GENERATOR.normal([3]),
    ):
        for mapped in (tf.vectorized_map(draw, X), tf.function(lambda d=draw: tf.vectorized_map(d, X))()):
            assert len(np.unique(mapped)) == 12
    assert len(np.unique(tf.vectorized_map(lambda r: tf.random.stateless_normal([], [1, 2]), X))) == 1
    tf.random.set_seed(7)
    together = tf.vectorized_map(lambda r: tf.random.normal([2]), X)
    again = tf.vectorized_map(lambda r: tf.random.normal([2]), X)
    tf.random.set_seed(7)
    np.testing.assert_array_equal(tf.vectorized_map(lambda r: tf.random.normal([2]), X), together)
    np.testing.assert_array_equal(again, together)  # each call traces a function of its own, as in TensorFlow
    assert len(np.unique(together)) == 8
    tf.random.set_seed(None)


GENERATOR = tf.random.Generator.from_seed(3)


# ------------------------------------------------------------------------------------------------------ what is refused


def test_results_of_different_shapes():
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="vectorized_map: the results of all rows must have one shape"
    ):
        tf.vectorized_map(lambda r: tf.unique(r)[0], tf.constant([[1, 1], [1, 2]]), warn=False)
    np.testing.assert_array_equal(
        tf.vectorized_map(lambda r: tf.unique(r)[0], tf.constant([[1, 2], [3, 4]]), warn=False), [[1, 2], [3, 4]]
    )


def test_only_results_that_are_used_must_have_one_shape():
    places = tf.vectorized_map(lambda r: tf.unique(r)[1], tf.constant([[5, 5], [1, 2]]), warn=False)
    np.testing.assert_array_equal(places, [[0, 0], [0, 1]])


def test_assignments():
    v = tf.Variable(1.0)
    with pytest.raises(
        ValueError, match=r"another value for each slice \(AssignVariableOp, .*test_vectorized_map.py:\d+\)"
    ):
        tf.vectorized_map(lambda r: v.assign(r[0]), X)
    assert float(v) == 1.0

    def counting(r):
        v.assign_add(1.0)
        return r

    tf.vectorized_map(counting, X)
    assert float(v) == 2.0


def test_without_the_fallback_an_operation_that_runs_slice_by_slice_is_an_error(caplog):
    def function(r):
        return tf.py_function(lambda t: t, [r], tf.float32)

    with pytest.raises(
        ValueError, match=r"No pfor vectorization defined for EagerPyFunc \(.*test_vectorized_map.py:\d+\)"
    ):
        tf.vectorized_map(function, X, fallback_to_while_loop=False)
    with caplog.at_level(logging.WARNING, "tensorflow"):
        tf.vectorized_map(function, X, warn=False)
        assert not caplog.records
        tf.vectorized_map(function, X)
    assert "EagerPyFunc runs once for each slice" in caplog.text
    tf.vectorized_map(lambda r: tf.random.normal([2]) * r[0], X, fallback_to_while_loop=False)


def test_wrong_elements():
    with pytest.raises(ValueError, match="must be equal, or 1; got"):
        tf.vectorized_map(lambda e: e[0] + e[1], (X, tf.ones([2, 3])))
    with pytest.raises(ValueError, match="must have a first dimension; got a scalar"):
        tf.vectorized_map(lambda e: e, tf.constant(1.0))
    with pytest.raises(ValueError, match="at least one tensor"):
        tf.vectorized_map(lambda e: e, [])


def test_values_are_not_there_while_the_function_is_traced():
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.vectorized_map(lambda r: r if tf.reduce_sum(r) > 0.0 else -r, X)
    with pytest.raises(AttributeError, match="numpy"):
        tf.vectorized_map(lambda r: r.numpy(), X)


@pytest.mark.parametrize("function", [tf.sign, lambda x: tf.math.squared_difference(x, [1.0, 2.0])])
def test_elementwise_operations_run_once_for_all_slices(function, caplog):
    x = tf.constant([[1.0, -2.0], [0.0, 4.0]])
    found = tf.vectorized_map(function, x, fallback_to_while_loop=False)
    np.testing.assert_array_equal(found, tf.stack([function(row) for row in tf.unstack(x)]))
    assert "once for each slice" not in caplog.text
