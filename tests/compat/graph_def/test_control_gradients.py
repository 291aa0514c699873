"""Gradients of branches and loops, maps of rows and Jacobians inside of functions are written and read back."""

import numpy as np
import pytest

import tapeflow as tf

X = np.random.default_rng(5).normal(size=(4, 3)).astype(np.float32)
OPEN = tf.TensorSpec([None, 3])


def restored(function, folder):
    """A function after it was saved and loaded."""
    module = tf.Module()
    module.w, module.f = W, tf.function(function, input_signature=[OPEN])
    tf.saved_model.save(module, folder)
    return tf.saved_model.load(folder).f


W = tf.Variable(0.3 * np.eye(3, dtype=np.float32) + 0.1)


def chosen(x):
    if tf.reduce_sum(x) > 0:
        return x * x @ W
    return tf.exp(x)


def looped(x):
    for i in tf.range(tf.shape(x)[0]):
        x = tf.tanh(x @ W) + tf.cast(i, tf.float32)
    return x


def nested(x):
    for i in tf.range(3):
        for _ in tf.range(i):
            x = tf.sin(x @ W) if tf.reduce_sum(x) > 0 else x * 2.0
    return x


def collected(x):
    rows = tf.TensorArray(tf.float32, tf.shape(x)[0])
    state = tf.zeros([3])
    for i in tf.range(tf.shape(x)[0]):
        state = tf.tanh(state + x[i])
        rows = rows.write(i, state)
    return rows.stack()


def grown(x):
    found = x[:1]
    for _ in tf.range(2):
        found = tf.concat([found, tf.sin(found)], 0)
    return found


def limited(x):
    return tf.while_loop(lambda x: True, lambda x: (tf.sin(x),), [x], maximum_iterations=3)[0]


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("function", [chosen, looped, nested, collected, grown, limited])
def test_gradients_of_branches_and_loops(function, sign, tmp_path):
    traced = tf.function(function)

    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = traced(x)
            total = tf.reduce_sum(y * tf.stop_gradient(tf.cos(y)))
        return tape.gradient(total, [x, W], unconnected_gradients="zero")

    x = tf.constant(sign * np.abs(X))
    for found, expected in zip(restored(run, tmp_path)(x), run(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_second_derivatives_of_unknown_shapes(tmp_path):
    def run(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(tf.sin(x) * x @ W)
            dx = inner.gradient(y, x)
        return outer.gradient(dx, x)

    np.testing.assert_allclose(restored(run, tmp_path)(X), run(tf.constant(X)), rtol=1e-5)


@pytest.mark.parametrize("kind", ["jacobian", "batch_jacobian"])
def test_jacobians_of_unknown_rows(kind, tmp_path):
    def run(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.tanh(x @ W)
        return getattr(tape, kind)(y, x)

    np.testing.assert_allclose(restored(run, tmp_path)(X), run(tf.constant(X)), rtol=1e-5, atol=1e-7)


def test_maps_over_unknown_rows(tmp_path):
    def run(x):
        pairs = tf.vectorized_map(lambda t: (t[0] * tf.reduce_sum(t[1]), t[1] @ W), (x, x[:, None]))
        return tf.vectorized_map(lambda row: row[:2], x), *pairs

    loaded = restored(run, tmp_path)
    for found, expected in zip(loaded(X), run(tf.constant(X)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert loaded(X[:0])[0].shape == [0, 2]


def test_a_loop_that_draws_random_numbers_is_refused(tmp_path):
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, tf.nn.dropout(y, 0.5)), [0, x])[1]
        return tape.gradient(y, x)

    with pytest.raises(tf.errors.UnimplementedError, match="draws random numbers"):
        restored(gradient, tmp_path)
