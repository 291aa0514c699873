"""Jacobians of unusual targets and sources, and by every kind of operation."""

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.control_flow.tracing import trace_body


def jacobian(function, x, **options):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = function(x)
    return tape.jacobian(y, x, **options)


X = tf.constant([1.0, 2.0])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.cast(x, tf.int32),
        lambda x: x > 0,
        lambda x: tf.strings.as_string(x),
        lambda x: tf.constant([1.0]),
        tf.stop_gradient,
    ],
)
def test_targets_without_a_derivative(function):
    assert jacobian(function, X) is None
    zeros = jacobian(function, X, unconnected_gradients="zero")
    np.testing.assert_array_equal(zeros, np.zeros((*function(X).shape, 2)))


def test_empty_targets_and_sources():
    assert jacobian(lambda x: x * x, tf.zeros([0, 3])).shape == [0, 3, 0, 3]
    assert jacobian(lambda x: x[:0], X).shape == [0, 2]
    with tf.GradientTape() as tape:
        x = tf.zeros([0, 3])
        tape.watch(x)
        y = x * x
    assert tape.batch_jacobian(y, x).shape == [0, 3, 3]


def test_all_arguments():
    for options in ({}, {"experimental_use_pfor": False}, {"parallel_iterations": 1}):
        np.testing.assert_array_equal(jacobian(lambda x: x * x, X, **options), [[2, 0], [0, 4]])
    np.testing.assert_array_equal(jacobian(lambda x: x, X), np.eye(2))
    np.testing.assert_array_equal(jacobian(lambda x: tf.gather(x, [1]), tf.Variable([1.0, 2.0])), [[0, 1]])
    np.testing.assert_array_equal(jacobian(lambda z: z * z, tf.constant([1 + 2j])), [[2 - 4j]])


@pytest.mark.parametrize("target", [None, [X, X], {"a": X}])
def test_structures_are_refused(target):
    with pytest.raises(TypeError, match="jacobian: one tensor or variable"):
        jacobian(lambda x: target, X)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.numerical_gradient(np.sin)(x),
        lambda x: tf.custom_gradient(lambda v: (tf.sin(v), lambda dy: dy * tf.cos(v)))(x),
        lambda x: tf.recompute_grad(tf.sin)(x),
        lambda x: tf.py_function(tf.sin, [x], tf.float32),
        lambda x: tf.map_fn(tf.sin, x),
        lambda x: tf.while_loop(lambda i, v: i < 1, lambda i, v: (i + 1, tf.sin(v)), [0, x])[1],
    ],
)
def test_any_operation_inside(function):
    np.testing.assert_allclose(jacobian(function, X), np.diag(np.cos(X)), rtol=1e-6)


# ---------------------------------------------------------------------------------------------- batched backward pass

FIVE = tf.constant([[0.1, -0.4, 0.7, 1.2, -0.9]])
FILTER = tf.constant(np.random.default_rng(0).normal(size=(2, 2, 1, 3)).astype("float32"))
MATRIX = tf.constant(np.random.default_rng(1).normal(size=(5, 5)).astype("float32") * 0.3)

FUNCTIONS = {
    "elementwise": lambda x: tf.sin(x) * tf.exp(-x * x),
    "matmul": lambda x: tf.tanh(x @ MATRIX),
    "matrix from the left": lambda x: tf.matmul(MATRIX, x, transpose_b=True),
    "outer product": lambda x: tf.matmul(x, tf.sin(x), transpose_a=True),
    "softmax": lambda x: tf.nn.softmax(x) * tf.nn.log_softmax(x),
    "convolution": lambda x: tf.nn.conv2d(tf.reshape(tf.tile(x, [1, 5]), [1, 5, 5, 1]), FILTER, 1, "SAME"),
    "filter": lambda x: tf.nn.conv2d(tf.ones([2, 4, 4, 1]), tf.reshape(x[:, :4], [2, 2, 1, 1]), 1, "VALID"),
    "pool": lambda x: tf.nn.max_pool2d(tf.reshape(tf.tile(x, [1, 4]), [1, 4, 5, 1]), 2, 1, "VALID"),
    "gather": lambda x: tf.gather(x, [[0, 2], [2, 1]], axis=1) * tf.gather(tf.transpose(x), [3, 3]),
    "scatter": lambda x: tf.tensor_scatter_nd_add(tf.transpose(x), [[1], [1]], tf.transpose(x[:, :2]) ** 2),
    "slices": lambda x: tf.concat([x[:, ::2], tf.reverse(x[:, 1:4], [1]), tf.pad(x, [[0, 0], [1, 1]])], 1),
    "reductions": lambda x: tf.stack([tf.reduce_max(x), tf.reduce_logsumexp(x), tf.norm(x), tf.reduce_mean(x)]),
    "cumulative": lambda x: tf.cumsum(x, 1, reverse=True) * tf.math.cumprod(x, 1),
    "sorting": lambda x: tf.sort(x, direction="DESCENDING") ** 2,
    "inverse": lambda x: tf.linalg.inv(MATRIX + tf.linalg.diag(x[0] + 3.0)),
    "segments": lambda x: tf.math.unsorted_segment_sum(x[0] ** 2, [0, 2, 0, 1, -1], 4),
    "choice": lambda x: tf.where(x > 0.0, x * x, tf.sin(x)),
}


def row_by_row(function, x):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = function(x)
        elements = tf.unstack(tf.reshape(y, [-1]))
    rows = [tape.gradient(e, x, unconnected_gradients="zero") for e in elements]
    return np.reshape(np.stack([np.asarray(tf.convert_to_tensor(r)) for r in rows]), [*y.shape, *x.shape])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_together_are_gradients_of_elements(name):
    function = FUNCTIONS[name]
    expected = row_by_row(function, FIVE)
    compiled = tf.function(lambda x: jacobian(function, x))
    open_ended = tf.function(lambda x: jacobian(function, x), input_signature=[tf.TensorSpec([1, None])])
    for found in (jacobian(function, FIVE), compiled(FIVE), open_ended(FIVE)):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    for chunk_size in (1, 2, 1000):
        found = jacobian(function, FIVE, chunk_size=chunk_size)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        in_function = tf.function(lambda x, size=chunk_size: jacobian(function, x, chunk_size=size))
        np.testing.assert_allclose(in_function(FIVE), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "many", True])
def test_wrong_chunk_sizes(wrong):
    with pytest.raises(ValueError, match="chunk_size must be a positive integer"):
        jacobian(lambda x: x * x, X, chunk_size=wrong)


@pytest.mark.parametrize("name", ["elementwise", "matmul", "softmax", "inverse", "segments", "reductions"])
@pytest.mark.parametrize("compiled", [False, True])
def test_jacobians_can_be_differentiated(name, compiled):
    """The gradient of a sum of a Jacobian is what finite differences say."""
    function = FUNCTIONS[name]
    x = tf.cast(FIVE, tf.float64)
    weights = tf.constant(np.random.default_rng(2).normal(size=jacobian(function, FIVE).shape))

    def total(x):
        return tf.reduce_sum(weights * tf.cast(jacobian(lambda v: function(tf.cast(v, tf.float32)), x), tf.float64))

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = total(x)
        return tape.gradient(y, x)

    found = (tf.function(slope) if compiled else slope)(x)
    step = 1e-2
    steps = step * np.eye(5)[:, None, :]
    expected = [[float(total(x + e) - total(x - e)) / (2 * step) for e in steps]]
    np.testing.assert_allclose(found, expected, rtol=2e-2, atol=2e-2)


def test_jacobian_under_forward_mode_and_nested_tapes():
    def slope(x):
        return jacobian(lambda v: tf.sin(v) * v, x)

    x = tf.constant([0.3, 0.5, 0.7, 0.9, 1.1])
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        first = slope(x)
    second = jacobian(slope, x)  # [5, 5, 5], not zero on the space diagonal alone
    bend = 2 * np.cos(x) - np.sin(x) * x
    np.testing.assert_allclose(accumulator.jvp(first), np.diag(bend), rtol=1e-5)
    np.testing.assert_allclose(np.einsum("iii->i", second), bend, rtol=1e-5)
    assert np.count_nonzero(second) == 5


def test_hessian_of_a_network_by_three_ways():
    w = tf.Variable(np.random.default_rng(3).normal(size=(4, 3)))
    x = tf.constant(np.random.default_rng(4).normal(size=(6, 4)))

    def gradient():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.tanh(x @ w) ** 2)
        return tape.gradient(loss, w)

    def by_jacobian():
        with tf.GradientTape() as tape:
            dw = gradient()
        return tape.jacobian(dw, w)

    with tf.autodiff.ForwardAccumulator._batch_accumulator(
        w, tf.reshape(tf.eye(12, dtype=tf.float64), [12, 4, 3])
    ) as acc:
        dw = gradient()
    by_directions = tf.reshape(acc.jvp(dw), [4, 3, 4, 3])
    for other in (tf.function(by_jacobian)(), by_directions):
        np.testing.assert_allclose(other, by_jacobian(), rtol=1e-10, atol=1e-12)


def test_batch_jacobian_is_the_jacobian_of_each_example():
    x = tf.constant(np.random.default_rng(5).normal(size=(3, 4)))

    def function(x):
        return tf.stack([tf.sin(x[:, 0]) * x[:, 1], tf.reduce_sum(x * x, 1), x[:, 3], x[:, 2] ** 3, x[:, 0]], axis=1)

    def found(x, **options):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.batch_jacobian(y, x, **options)

    expected = np.einsum("bibj->bij", jacobian(function, x))
    open_ended = tf.function(found, input_signature=[tf.TensorSpec([None, 4], tf.float64)])
    for result in (found(x), found(x, chunk_size=2), tf.function(found)(x), open_ended(x), open_ended(x)):
        np.testing.assert_allclose(result, expected, rtol=1e-12)
    assert open_ended(x[:0]).shape == [0, 5, 4]


def test_batch_jacobian_refuses_what_has_no_batch():
    square, rank = tf.ones([2, 2]), "must have rank at least 2"
    sizes = "Need first dimension of target shape"
    for target, source, says in ((X, X, rank), (square, tf.ones([3, 2]), sizes), (square, tf.constant(1.0), rank)):
        with tf.GradientTape() as tape, pytest.raises(ValueError, match=says):
            tape.batch_jacobian(target, source)


def test_a_rule_that_needs_values_runs_row_by_row():
    @tf.custom_gradient
    def halved(x):
        return x * 2.0, lambda dy: tf.constant(np.asarray(dy) * 0.5)

    x = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0])
    np.testing.assert_allclose(jacobian(lambda v: tf.sin(halved(v)), x), np.diag(np.cos(2 * x) / 2), rtol=1e-6)


def test_an_error_of_a_rule_comes_through():
    @tf.custom_gradient
    def broken(x):
        def rule(dy):
            raise KeyError("no rule")

        return x * 2.0, rule

    with pytest.raises(KeyError, match="no rule"):
        jacobian(broken, tf.ones([8]))


def test_several_sources_of_which_some_are_reached():
    a, b, c = tf.Variable([1.0, 2.0]), tf.Variable(3.0), tf.Variable(4.0)
    with tf.GradientTape() as tape:
        y = tf.concat([a * b, a, a * a], 0)
    by = tape.jacobian(y, {"a": a, "b": [b, c]})
    np.testing.assert_allclose(by["a"], np.concatenate([3 * np.eye(2), np.eye(2), np.diag([2.0, 4.0])]))
    np.testing.assert_allclose(by["b"][0], [1, 2, 0, 0, 0, 0])
    assert by["b"][1] is None


def test_jacobian_through_control_flow_in_a_function():
    @tf.function
    def function(x):
        total = x
        for i in tf.range(3):
            total = total + tf.cast(i, tf.float32) * tf.sin(x) * total
        return tf.cond(tf.reduce_sum(x) > 0.0, lambda: total * 2.0, lambda: total)

    x = tf.constant([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    expected = row_by_row(function, x)
    np.testing.assert_allclose(jacobian(function, x), expected, rtol=1e-5)
    np.testing.assert_allclose(tf.function(lambda v: jacobian(function, v))(x), expected, rtol=1e-5)


def test_a_jacobian_that_waited_for_shapes_becomes_nodes_when_they_are_known():
    @tf.function(input_signature=[tf.TensorSpec([None, 5])])
    def function(x):
        return jacobian(lambda v: tf.tanh(v @ MATRIX), x)

    def nodes(rows):
        graph, _ = trace_body(function, None, [(tf.float32, tf.TensorShape([rows, 5]))])
        return {graph.node(i)[0] for i in range(graph.node_count)}

    assert "JacobianRows" in nodes(None)
    assert not nodes(2) & {"JacobianRows", "Batched", "Deferred"}


def test_rows_one_by_one_in_a_function_need_no_persistent_tape():
    @tf.function
    def both(x):
        with tf.GradientTape() as first, tf.GradientTape() as second:
            first.watch(x)
            second.watch(x)
            y = x * x
        return (
            first.jacobian(y, x, experimental_use_pfor=False)[0, :, 0],
            second.batch_jacobian(y, x, experimental_use_pfor=False)[0],
        )

    rows, batch = both(tf.constant([[1.0, 2.0]]))
    assert rows.numpy().tolist() == batch.numpy().tolist() == [[2.0, 0.0], [0.0, 4.0]]


@pytest.mark.parametrize("other", [0.0, -2.0])
def test_per_example_losses_that_select_by_a_condition(other):
    """A row of zeros stays one through `where` only if what it does not choose is zero."""
    x = tf.constant(np.random.default_rng(2).normal(size=(6, 3)).astype("float32"))
    kept = tf.constant([True, False, True, True, False, True])
    w = tf.Variable([[0.5], [-1.0], [2.0]])

    @tf.function
    def found():
        with tf.GradientTape(persistent=True) as tape:
            losses = tf.where(kept, tf.squeeze(tf.square(tf.where(kept[:, None], x @ w, other * w[0])), 1), w[1, 0])
        return losses, tape.jacobian(losses, w)

    with tf.GradientTape(persistent=True) as tape:
        losses = tf.where(kept, tf.squeeze(tf.square(tf.where(kept[:, None], x @ w, other * w[0])), 1), w[1, 0])
        elements = tf.unstack(losses)
    expected = np.stack([tape.gradient(e, w).numpy() for e in elements])
    np.testing.assert_allclose(tape.jacobian(losses, w), expected, rtol=1e-5)
    np.testing.assert_allclose(found()[1], expected, rtol=1e-5)
