"""Moments and normalization by one operation give what their formulas give, at first and second order."""

import numpy as np
import pytest

import tapeflow as tf

LAYOUTS = {
    "rows": ((6, 5), [-1], True),
    "columns": ((6, 5), [0], False),
    "channels": ((2, 3, 4, 5), [0, 1, 2], False),
    "last two": ((2, 3, 4), [1, 2], True),
    "neither": ((2, 3, 4), [0, 2], True),
}


def by_one_operation(x, scale, offset, axes, keepdims):
    mean, variance = tf.nn.moments(x, axes, keepdims=keepdims)
    return tf.nn.batch_normalization(x, mean, variance, offset, scale, 0.1)


def by_formula(x, scale, offset, axes, keepdims):
    distance = x - tf.reduce_mean(x, axes, keepdims=True)
    variance = tf.reduce_mean(tf.square(distance), axes, keepdims=True)
    return distance / tf.sqrt(variance + 0.1) * scale + offset


def derivatives(normalize, shape, axes, keepdims):
    random = np.random.default_rng(3)
    sources = [tf.constant(random.standard_normal(s)) for s in (shape, shape[-1:], shape[-1:])]
    weights = random.standard_normal(shape)
    with tf.GradientTape() as tape:
        tape.watch(sources)
        y = normalize(*sources, axes, keepdims)
        loss = tf.reduce_sum(y * weights)
    return [y, *tape.gradient(loss, sources)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_first_order(layout):
    expected = derivatives(by_formula, *LAYOUTS[layout])
    for a, b in zip(derivatives(by_one_operation, *LAYOUTS[layout]), expected):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_gradient_under_an_open_tape_is_the_same(layout):
    expected = derivatives(by_one_operation, *LAYOUTS[layout])
    with tf.GradientTape(persistent=True):
        got = derivatives(by_one_operation, *LAYOUTS[layout])
    for a, b in zip(got, expected):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_second_order_of_the_variance(axis):
    x = tf.constant([[1.0, 2.0, 4.0], [0.5, -1.0, 3.0]], tf.float64)
    results = []
    for variance in (
        lambda x: tf.math.reduce_variance(x, axis),
        lambda x: tf.reduce_mean(tf.square(x), axis) - tf.square(tf.reduce_mean(x, axis)),
    ):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.reduce_sum(tf.square(variance(x)))
            weighted = inner.gradient(y, x) * [[1.0, 2.0, 3.0], [4.0, -1.0, 0.0]]
        results.append(outer.gradient(weighted, x))
    np.testing.assert_allclose(*results, rtol=1e-10)


def test_a_gradient_that_has_begun_is_added_to():
    x = tf.Variable([[1.0, 2.0, 4.0]])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(3 * x) + tf.reduce_sum(tf.nn.moments(x, [1])[1])
    distance = x.numpy() - x.numpy().mean()
    np.testing.assert_allclose(tape.gradient(y, x), 3 + 2 * distance / 3, rtol=1e-6)


def test_noise_of_a_higher_rank_broadcasts_the_result():
    y = tf.nn.experimental.stateless_dropout(tf.ones([3]), 0.5, seed=[1, 2], noise_shape=[2, 1])
    assert y.shape == (2, 3)


@pytest.mark.parametrize(
    "shape, axes", [([3, 1], [0]), ([4, 5, 6], [1, 2]), ([2, 3, 4], [0, 1]), ([2, 3, 1], [2]), ([3, 1, 1], [0])]
)
def test_second_order_of_batch_normalization(shape, axes):
    """Columns may stand for several dimensions, some of them 1."""
    random = np.random.default_rng(0)
    x, weights = (tf.constant(random.normal(size=shape)) for _ in range(2))
    wide = [n if (axis in axes) == (0 not in axes) else 1 for axis, n in enumerate(shape)]
    mean, variance = tf.nn.moments(x, axes, keepdims=True)
    given = [x, mean, variance, *(tf.constant(random.normal(size=wide)) for _ in range(2))]
    tangents = [tf.constant(random.normal(size=t.shape.as_list())) for t in given]

    def composed(x, mean, variance, offset, scale, epsilon):
        return (x - mean) / tf.sqrt(variance + epsilon) * scale + offset

    def derivatives(normalize):
        with tf.autodiff.ForwardAccumulator(given, tangents) as forward, tf.GradientTape(persistent=True) as outer:
            outer.watch(given)
            with tf.GradientTape() as tape:
                tape.watch(given)
                y = tf.reduce_sum(tf.sin(normalize(*given, 1e-3)) * weights)
            gradients = tape.gradient(y, given)
            along = tf.add_n([tf.reduce_sum(g * t) for g, t in zip(gradients, tangents)])
        return [forward.jvp(y), *gradients, *forward.jvp(gradients), *outer.gradient(along, given)]

    for ours, expected in zip(derivatives(tf.nn.batch_normalization), derivatives(composed)):
        np.testing.assert_allclose(ours, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("is_training", [True, False])
def test_running_moments_of_another_dtype(is_training):
    x, one = tf.random.normal([2, 3, 3, 4], seed=1), np.ones(4)
    y, mean, variance = tf.compat.v1.nn.fused_batch_norm(
        x, one, one, mean=one, variance=one, is_training=is_training, exponential_avg_factor=0.5
    )
    assert (y.dtype, mean.dtype, variance.dtype) == (tf.float32, tf.float32, tf.float32)
    kept = 0.5 + 0.5 * np.mean(x, (0, 1, 2)) if is_training else one
    np.testing.assert_allclose(mean, kept, rtol=1e-5)
