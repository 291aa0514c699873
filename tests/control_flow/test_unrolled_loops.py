"""Short loops become nodes of the plan: the same results and gradients, and no loop is left."""

import numpy as np
import pytest

import tapeflow as tf


def normal(*shape, seed=0):
    return tf.constant(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def gradient_of(loss):
    def program(*args):
        with tf.GradientTape() as tape:
            tape.watch(args)
            value = loss(*args)
        return value, tape.gradient(value, args, unconnected_gradients="zero")

    return program


def plan_of(function, *args):
    return tf.function(function).experimental_get_compiler_ir(*args)(stage="after-emit")


def loops(text):
    return text.count("While(") + text.count("Deferred(")


def integrate(x, p):
    for _ in tf.range(12):
        x = x + 0.1 * tf.stack([p[0] * x[:, 1], -p[1] * tf.sin(x[:, 0])], 1)
    return tf.reduce_sum(x * x)


def counted_down(x, p):
    i = tf.constant(7)
    while i > 0:
        x = tf.tanh(x * p[0] + p[1])
        i -= 2
    return tf.reduce_sum(x) * tf.cast(i, tf.float32)


def rows(x, p):
    total = tf.constant(0.0)
    for t in tf.range(tf.shape(x)[0]):
        total = 0.9 * total + p[t % 2] * tf.reduce_sum(tf.square(x[t]))
    return total


def collected(x, p):
    values = tf.TensorArray(tf.float32, 6)
    state = x[0]
    for t in tf.range(6):
        state = state * p[0] + tf.cos(x[t % 3])
        values = values.write(5 - t, state)
    return tf.reduce_sum(values.stack() * p[1])


def scanned(x, p):
    return tf.reduce_sum(tf.scan(lambda a, b: tf.sin(a + p[0] * b), x, initializer=tf.zeros([2])) * p[1])


def limited(x, p):
    _, y = tf.while_loop(lambda i, y: i < 100, lambda i, y: (i + 1, y * p[0] + x), (0, x), maximum_iterations=5)
    return tf.reduce_sum(y)


def two_loops(x, p):
    for _ in tf.range(3):
        x = tf.sin(x) * p[0]
    for _ in tf.range(4):
        x = x * x + p[1]
    return tf.reduce_sum(x)


def empty(x, p):
    for _ in tf.range(0):
        x = x * p[0]
    return tf.reduce_sum(x * p[1])


PROGRAMS = [integrate, counted_down, rows, collected, scanned, limited, two_loops, empty]


@pytest.mark.parametrize("loss", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_gradients(loss):
    x, p = normal(4, 2), normal(2, seed=1)
    assert loops(plan_of(gradient_of(loss), x, p)) == 0
    value, gradients = tf.function(gradient_of(loss))(x, p)
    expected, slopes = gradient_of(tf.autograph.to_graph(loss))(x, p)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for a, b in zip(gradients, slopes):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(tf.function(loss)(x, p), expected, rtol=1e-5)


@pytest.mark.parametrize("loss", PROGRAMS, ids=lambda f: f.__name__)
def test_a_tape_around_the_function_keeps_the_loop(loss):
    """What the forward part saves for the backward part leaves its plan."""
    x, p = normal(4, 2), normal(2, seed=1)
    _, gradients = gradient_of(tf.function(loss))(x, p)
    _, expected = gradient_of(tf.autograph.to_graph(loss))(x, p)
    for a, b in zip(gradients, expected):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", [integrate, rows, scanned], ids=lambda f: f.__name__)
def test_second_order(loss):
    x, p = normal(3, 2), normal(2, seed=1)

    def squared(f):
        return lambda x, p: tf.reduce_sum(tf.square(gradient_of(f)(x, p)[1][0]))

    _, (first, _) = tf.function(gradient_of(squared(loss)))(x, p)
    _, (expected, _) = gradient_of(squared(tf.autograph.to_graph(loss)))(x, p)
    np.testing.assert_allclose(first, expected, rtol=1e-3, atol=1e-5)


def test_loops_that_stay():
    v = tf.Variable(0.0)

    def until(x):
        while tf.reduce_sum(x) < 100.0:
            x = x * 2.0
        return x

    def large(x):
        for _ in tf.range(5):
            x = tf.matmul(x, x) * 0.01
        return x

    def long(x):
        for _ in tf.range(100000):
            x = x * 0.999
        return x

    def counts(x):
        for _ in tf.range(3):
            v.assign_add(1.0)
        return x

    for program, x in [(until, normal(3)), (large, normal(200, 200)), (long, normal(3)), (counts, normal(3))]:
        assert "While(" in plan_of(program, x), program.__name__
    tf.function(counts)(normal(3))
    assert v.numpy() == 3.0


def test_an_error_in_an_iteration():
    @tf.function
    def program(x):
        for i in tf.range(4):
            tf.debugging.assert_less(x, 3.0, message="too large")
            x = x + tf.cast(i, tf.float32)
        return x

    assert program(tf.constant(-5.0)).numpy() == 1.0
    with pytest.raises(tf.errors.InvalidArgumentError, match="too large"):
        program(tf.constant(2.5))
