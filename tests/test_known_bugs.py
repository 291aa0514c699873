"""Defects of TensorFlow that its users reported, and that must be right here. Each test names its report."""

import numpy as np
import pytest

import tapeflow as tf


def derivatives(function, x, order):
    """f(x), f'(x), ..., by nested tapes."""
    values = []

    def differentiate(n):
        if n == 0:
            return function(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = differentiate(n - 1)
        return tape.gradient(y, x)

    for n in range(order + 1):
        values.append(float(differentiate(n)))
    return values


def test_silu_with_tensor_beta_127690():
    """A beta that broadcasts gets a gradient of its own shape, and the right one."""
    x = np.linspace(-1.0, 1.0, 6).reshape(2, 3)
    beta = np.linspace(0.5, 1.5, 3)

    def total(x, beta):
        return np.sum(x / (1 + np.exp(-beta * x)))

    tx, tb = tf.constant(x), tf.constant(beta)
    with tf.GradientTape() as tape:
        tape.watch([tx, tb])
        y = tf.reduce_sum(tf.nn.silu(tx, tb))
    gx, gb = tape.gradient(y, [tx, tb])
    step = 1e-6
    for array, gradient in ((x, gx), (beta, gb)):
        assert gradient.shape == array.shape
        for i in np.ndindex(array.shape):
            array[i] += step
            high = total(x, beta)
            array[i] -= 2 * step
            low = total(x, beta)
            array[i] += step
            assert float(gradient[i]) == pytest.approx((high - low) / (2 * step), rel=1e-6)


def test_silu_underflow_in_float64_124835():
    """At -709 the sigmoid is denormal, but the derivatives are ordinary numbers."""
    _, first, second = derivatives(tf.nn.silu, tf.constant(-709.0, tf.float64), 2)
    assert first == pytest.approx(-8.614807714413836e-306, rel=1e-6)
    assert second == pytest.approx(-8.6026399069076e-306, rel=1e-6)


def test_isotonic_regression_gradient_127234():
    """The mean of a pooled block passes an equal share of the gradient to each member, for input of any rank."""
    for shape in ([3], [1, 3], [1, 1, 3]):
        x = tf.reshape(tf.constant([4.0, 0.7, 2.0]), shape)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y, _ = tf.nn.isotonic_regression(x)
            picked = tf.reshape(y, [-1])[1]
        assert float(picked) == pytest.approx(1.35)
        gradient = tape.gradient(picked, x)
        assert gradient.shape == shape
        np.testing.assert_allclose(np.ravel(gradient), [0.0, 0.5, 0.5])


def test_batch_normalization_gamma_linearity_107705():
    """The gradient by gamma is linear in the upstream gradient, also where the sum over it nearly cancels."""
    random = np.random.default_rng(0)
    x = tf.constant(random.normal(1000.0, 1e-3, (64, 3)).astype("f4"))
    gamma = tf.Variable([1.0, 2.0, 3.0])
    upstream = tf.constant(random.normal(size=(64, 3)).astype("f4"))

    mean, variance = tf.nn.moments(x, [0])

    def gamma_gradient(factor):
        with tf.GradientTape() as tape:
            y = tf.nn.batch_normalization(x, mean, variance, tf.zeros([3]), gamma, 1e-3)
        return tape.gradient(y, gamma, output_gradients=upstream * factor).numpy()

    base = gamma_gradient(1.0)
    distance = x.numpy().astype("f8") - mean.numpy()
    exact = np.sum(upstream.numpy() * distance / np.sqrt(variance.numpy().astype("f8") + 1e-3), 0)
    np.testing.assert_allclose(base, exact, rtol=1e-4)
    for factor in (2.0, 1024.0, 3.7):
        np.testing.assert_allclose(gamma_gradient(factor), base * factor, rtol=1e-5)


def test_batch_jacobian_dtype_of_constants_43043():
    """Without a path the Jacobian is zero, in the dtype of the tensors."""
    c = tf.constant([[1.0], [2.0]], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(c)
        f = tf.constant([[3.0], [4.0]], tf.float64)
    jacobian = tape.batch_jacobian(f, c)
    assert jacobian.dtype == tf.float64
    np.testing.assert_array_equal(jacobian, np.zeros((2, 1, 1)))


def test_where_does_not_hide_a_nan_on_the_branch_not_taken():
    """As documented for tf.where: 0 * inf in the gradient of a quotient by 0 is NaN; a safe argument cures it."""
    x = tf.constant([0.0, 4.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        positive = x > 0
        naive = tf.where(positive, 1.0 / x, 0.0)
        safe = tf.where(positive, 1.0 / tf.where(positive, x, 1.0), 0.0)
    np.testing.assert_array_equal(tape.gradient(naive, x), [np.nan, -0.0625])
    np.testing.assert_array_equal(tape.gradient(safe, x), [0.0, -0.0625])


def test_sqrt_and_norm_at_zero():
    """Their slope at 0 is infinite and undefined; the result says so instead of inventing a number."""
    x = tf.constant(0.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sqrt(x)
    assert float(tape.gradient(y, x)) == np.inf
    v = tf.zeros([2])
    with tf.GradientTape() as tape:
        tape.watch(v)
        y = tf.norm(v)
    assert np.isnan(tape.gradient(y, v)).all()
