"""Sums of gradients of slices and looked-up rows, in the part of a graph that runs node by node."""

import numpy as np
import pytest

import tapeflow as tf


def _step(dtype, extra):
    rng = np.random.default_rng(0)
    w = tf.Variable(rng.standard_normal((4, 3, 5)), dtype=dtype)
    x, k = tf.constant(rng.standard_normal((20, 3)), dtype), tf.constant(rng.integers(0, 4, 20))

    def loss(x, k):
        parts = tf.dynamic_partition(x, k, 4)  # of sizes that only its values tell: no plan
        value = tf.add_n([tf.reduce_sum(tf.tanh(part @ w[i]) ** 2) for i, part in enumerate(parts)])
        return value + extra(w)

    def step(x, k):
        with tf.GradientTape() as tape:
            value = loss(x, k)
        return value, tf.convert_to_tensor(tape.gradient(value, w))

    return step, (x, k)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.float16])
@pytest.mark.parametrize(
    "extra",
    [
        lambda w: tf.zeros([], w.dtype),
        lambda w: tf.reduce_sum(w * w),  # a dense term
        lambda w: tf.reduce_sum(tf.gather(w, [[3, 3], [0, 3]]) ** 2),  # rows that are looked up more than once
        lambda w: tf.reduce_sum(tf.gather(w, [1, 1], axis=2) ** 2 + w[:, 1:2, ::2][..., :2] ** 2),  # overlapping
    ],
)
def test_it_gives_what_eager_mode_gives(dtype, extra):
    step, arguments = _step(dtype, extra)
    value, slope = step(*arguments)
    traced_value, traced_slope = tf.function(step)(*arguments)
    tolerance = 2e-2 if dtype == tf.float16 else 1e-5
    np.testing.assert_allclose(traced_value, value, rtol=tolerance)
    np.testing.assert_allclose(traced_slope, slope, rtol=tolerance, atol=tolerance)


def test_a_term_that_is_also_a_result_stays_whole():
    w = tf.Variable(np.arange(6.0).reshape(3, 2))

    @tf.function
    def both(x, k):
        parts = tf.dynamic_partition(x, k, 2)
        with tf.GradientTape(persistent=True) as tape:
            first, second = (tf.reduce_sum(part) * tf.reduce_sum(w[i] ** 2) for i, part in enumerate(parts))
        a, b = tape.gradient(first, w), tape.gradient(second, w)
        return a, b, a + b, b + a

    a, b, total, reverse = both(tf.constant([1.0, 2.0, 3.0], tf.float64), [0, 1, 0])
    np.testing.assert_array_equal(a, [[0, 8], [0, 0], [0, 0]])
    np.testing.assert_array_equal(b, [[0, 0], [8, 12], [0, 0]])
    np.testing.assert_array_equal(total, a + b)
    np.testing.assert_array_equal(reverse, a + b)
