"""Forward mode in many directions at once: equal to one direction after the other."""

import numpy as np
import pytest

import tapeflow as tf

X = tf.constant([0.3, -0.8, 1.2])
V = tf.Variable([[1.0, 0.5, -0.3], [0.2, 2.0, 1.0]])
RANDOM = np.random.default_rng(0)
DIRECTIONS = tf.constant(RANDOM.normal(size=(4, 3)).astype("float32"))
DIRECTIONS_OF_V = tf.constant(RANDOM.normal(size=(4, 2, 3)).astype("float32"))

along = tf.autodiff.ForwardAccumulator
along_many = tf.autodiff.ForwardAccumulator._batch_accumulator


@tf.custom_gradient
def cubed(x):
    return x**3, lambda dy: dy * 3.0 * x * x


FUNCTIONS = {
    "elementwise": lambda: tf.sin(X) * tf.reduce_sum(V, 0),
    "product": lambda: tf.linalg.matvec(V, tf.tanh(X)),
    "matrices": lambda: tf.matmul(V, V, transpose_b=True),
    "softmax": lambda: tf.nn.softmax(V * X),
    "gather": lambda: tf.gather(X, [2, 0, 2]) * tf.gather(V, [1, 1])[:, 0, None],
    "maximum": lambda: tf.reduce_max(V * X, axis=1),
    "custom gradient": lambda: cubed(X) * V[0],
    "function": tf.function(lambda: tf.exp(X) * V),
    "loop": lambda: tf.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s * X), (0, V))[1],
    "gradient inside": lambda: inner_gradient(),
}


def inner_gradient():
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = tf.reduce_sum(tf.linalg.matvec(V, tf.sin(X)) ** 2)
    return tape.gradient(y, X)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_many_directions_are_one_after_the_other(name):
    function = FUNCTIONS[name]
    expected = []
    for dx, dv in zip(tf.unstack(DIRECTIONS), tf.unstack(DIRECTIONS_OF_V)):
        with along([X, V], [dx, dv]) as accumulator:
            y = function()
        expected.append(np.asarray(accumulator.jvp(y)))
    with along_many([X, V], [DIRECTIONS, DIRECTIONS_OF_V]) as accumulator:
        y = function()
    np.testing.assert_allclose(accumulator.jvp(y), np.stack(expected), rtol=1e-5, atol=1e-6)


def test_primals_and_what_is_not_reached():
    with along_many(X, DIRECTIONS) as accumulator:
        y = tf.constant([1.0, 2.0]) * 3.0
    np.testing.assert_array_equal(accumulator.jvp(X), DIRECTIONS)
    assert accumulator.jvp(y) is None
    np.testing.assert_array_equal(accumulator.jvp(y, unconnected_gradients="zero"), np.zeros((4, 2)))


def test_inside_a_function():
    @tf.function
    def function(x, directions):
        with along_many(x, directions) as accumulator:
            y = tf.sin(x) * tf.reduce_sum(x)
        return accumulator.jvp(y)

    with along_many(X, DIRECTIONS) as accumulator:
        y = tf.sin(X) * tf.reduce_sum(X)
    np.testing.assert_allclose(function(X, DIRECTIONS), accumulator.jvp(y), rtol=1e-6)


def test_a_tape_around_many_directions():
    """The derivative of a sum of tangents: the second derivative along the sum of the directions."""
    with tf.GradientTape() as tape:
        tape.watch(X)
        with along_many(X, DIRECTIONS) as accumulator:
            y = tf.reduce_sum(tf.sin(X) * X)
        total = tf.reduce_sum(accumulator.jvp(y))
    bend = 2 * np.cos(X) - np.sin(X) * X
    np.testing.assert_allclose(tape.gradient(total, X), bend * np.sum(DIRECTIONS, 0), rtol=1e-5)


def test_wrong_tangents():
    with pytest.raises(ValueError, match=r"\[2,2\] and \[2,3\] are incompatible"):
        along_many(X, tf.ones([2, 2]))
    with pytest.raises(ValueError, match="incompatible"):
        along_many([X, V], [tf.ones([2, 3]), tf.ones([3, 2, 3])])
    with pytest.raises(ValueError, match="first dimension"):
        along_many(tf.constant(1.0), tf.constant(1.0))
    with pytest.raises(ValueError, match="float64"):
        along_many(X, tf.ones([2, 3], tf.float64))


@pytest.mark.parametrize(("k", "wanted"), [(0, 0.0), (1, 4.0)])
def test_the_branch_of_a_function_that_does_not_depend_on_the_primal_changes_by_zero(k, wanted):
    @tf.function
    def choose(k, y):
        return tf.cond(tf.equal(k, 0), lambda: (tf.constant(1.0), 3), lambda: (y * y, 4))

    y = tf.constant(2.0)
    with tf.autodiff.ForwardAccumulator(y, tf.constant(1.0)) as accumulator:
        z, number = choose(tf.constant(k), y)
    assert accumulator.jvp(z).numpy() == wanted
    assert accumulator.jvp(number) is None
