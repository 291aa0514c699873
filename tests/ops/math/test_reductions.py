"""What is special about reductions and scans: zeros, ties, NaN, empty axes, older argument names."""

import numpy as np
import pytest

import tapeflow as tf

inf, nan = np.inf, np.nan


def derivatives(function, x, weights):
    """Gradient and second derivative of sum(weights * function(x)), and the JVP along `weights`."""
    weights = tf.constant(weights, x.dtype)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        first = tape.gradient(y, x, output_gradients=weights)
        total = tf.reduce_sum(first * weights)
    tangent = tf.broadcast_to(weights, x.shape)
    with tf.autodiff.ForwardAccumulator(x, tangent) as accumulator:
        y = function(x)
    second = outer.gradient(total, x, unconnected_gradients="zero")
    return first.numpy(), second.numpy(), accumulator.jvp(y).numpy()


def numeric(function, x, weights, h=1e-6):
    steps = np.eye(x.size) * h
    return np.array([np.sum(weights * (function(x + d) - function(x - d))) / (2 * h) for d in steps])


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", ["cumprod", "cumulative_logsumexp", "cumsum"])
def test_scan_derivatives(name, exclusive, reverse):
    def function(x):
        y = getattr(tf.math, name)(x, exclusive=exclusive, reverse=reverse)
        return tf.where(tf.math.is_inf(y), tf.zeros_like(y), y)

    x, weights = np.array([2.0, 0.0, -1.5, 0.0, 3.0]), np.array([1.0, -2.0, 0.5, 3.0, 1.5])

    def value(at):
        return function(tf.constant(at)).numpy()

    def slope(at):
        return derivatives(function, tf.constant(at), weights)[0]

    first, second, along = derivatives(function, tf.constant(x), weights)
    np.testing.assert_allclose(first, numeric(value, x, weights), atol=1e-7)
    np.testing.assert_allclose(second, numeric(slope, x, weights), atol=1e-6)
    np.testing.assert_allclose(along, (value(x + 1e-6 * weights) - value(x - 1e-6 * weights)) / 2e-6, atol=1e-7)


def test_cumprod_of_complex_numbers_follows_the_gradient_convention():
    x = tf.constant([1 + 2j, 0.5 - 1j, -1 + 0.3j])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        running = tf.math.real(tf.math.cumprod(x)[-1])
        product = tf.math.real(tf.reduce_prod(x))
    np.testing.assert_allclose(tape.gradient(running, x).numpy(), tape.gradient(product, x).numpy(), rtol=1e-12)


def test_cumulative_logsumexp_of_extreme_values():
    x = tf.constant([-inf, -inf, -1000.0, 1000.0, -1000.0], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.cumulative_logsumexp(x)
        end = y[3:]
    np.testing.assert_array_equal(y.numpy(), [-inf, -inf, -1000, 1000, 1000])
    np.testing.assert_array_equal(tape.gradient(end, x).numpy(), [0, 0, 0, 2, 0])


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_scans_along_every_axis(axis):
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    t = tf.constant(x)
    np.testing.assert_allclose(tf.cumsum(t, axis).numpy(), np.cumsum(x, axis))
    np.testing.assert_allclose(tf.math.cumprod(t, axis).numpy(), np.cumprod(x, axis))
    np.testing.assert_allclose(tf.math.cumulative_logsumexp(t, axis).numpy(), np.logaddexp.accumulate(x, axis))
    np.testing.assert_array_equal(tf.argmax(t, axis).numpy(), np.argmax(x, axis))
    np.testing.assert_array_equal(tf.argmin(t, axis, tf.int32).numpy(), np.argmin(x, axis))


def test_argmax_skips_nan_and_takes_the_first_of_equals():
    assert tf.argmax([nan, 1.0, 3.0, nan, 3.0]).numpy() == 2
    assert tf.argmin([nan, 1.0, 3.0]).numpy() == 1
    assert tf.argmax([nan, nan]).numpy() == 0
    assert tf.argmax([False, True, True]).numpy() == 1
    assert tf.argmax([1.0, 2.0], axis=None).dtype == tf.int64
    assert tf.argmax([1.0, 2.0], output_type=tf.uint16).dtype == tf.uint16


def test_argmax_errors():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Expected dimension in the range \[-1, 1\), but got 5"):
        tf.argmax([1.0], axis=5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Reduction axis 0 is empty"):
        tf.argmax(tf.zeros([0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="output_type"):
        tf.argmax([1.0], output_type=tf.float32)


@pytest.mark.parametrize("values", [[2.0, 0.0, 3.0], [0.0, 0.0, 3.0], [2.0, 5.0, 3.0]])
def test_reduce_prod_with_zeros(values):
    def product(x):
        return tf.reduce_prod(x, keepdims=True)

    def slope(at):
        return derivatives(product, tf.constant(at), np.ones(1))[0]

    with tf.GradientTape() as outer:
        x = tf.constant(values, tf.float64)
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = product(x)
        first = tape.gradient(y, x)
    np.testing.assert_array_equal(first.numpy(), [np.prod(np.delete(values, i)) for i in range(3)])
    second = outer.gradient(first, x).numpy()
    np.testing.assert_allclose(second, numeric(slope, np.array(values), np.ones(3)), atol=1e-7)


def test_euclidean_norm():
    assert tf.math.reduce_euclidean_norm(tf.constant([300.0, 400.0], tf.float16)).numpy() == 500
    assert tf.math.reduce_euclidean_norm([1, 2, 3]).numpy() == 3
    x = tf.constant([3 + 4j, 0j])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.real(tf.math.reduce_euclidean_norm(x))
    assert y.numpy() == 5
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), [0.6 + 0.8j, 0])


def test_logsumexp_of_infinities():
    assert tf.reduce_logsumexp([-inf, -inf]).numpy() == -inf
    assert tf.reduce_logsumexp([inf, 1.0]).numpy() == inf
    assert tf.reduce_logsumexp([1000.0, 1000.0]).numpy() == pytest.approx(1000 + np.log(2))
    assert tf.reduce_logsumexp(tf.zeros([0])).numpy() == -inf


def test_variance_of_small_floats_rounds_once():
    x = tf.constant([300.0, 301.0, 302.0], tf.float16)
    assert tf.math.reduce_variance(x).numpy() == np.float16(2 / 3)
    assert tf.math.reduce_std(x).dtype == tf.float16
    with pytest.raises(TypeError, match="real or complex"):
        tf.math.reduce_std([1, 2])


def test_counts():
    assert tf.math.count_nonzero(["a", "", "b"]).numpy() == 2
    assert tf.math.count_nonzero([True, False], dtype=tf.int32).dtype == tf.int32
    np.testing.assert_array_equal(tf.math.count_nonzero([[1, 0], [1, 1]], 0, True).numpy(), [[2, 1]])
    assert tf.math.zero_fraction(tf.constant([0, 0, 1], tf.int32)).numpy() == pytest.approx(2 / 3)
    assert np.isnan(tf.math.zero_fraction(tf.zeros([0])).numpy())


def test_boolean_reductions_refuse_numbers():
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"input #0\(zero-based\) was expected to be a bool tensor"
    ):
        tf.reduce_all(tf.constant([1.0]))
    with pytest.raises(TypeError, match=r"Cannot convert \[1, 2\] to EagerTensor of dtype bool"):
        tf.reduce_any([1, 2])


def test_older_argument_names():
    v1 = tf.compat.v1
    np.testing.assert_array_equal(v1.reduce_sum([[1.0, 2.0]], reduction_indices=[1], keep_dims=True).numpy(), [[3]])
    assert v1.argmax([1, 3, 2], dimension=0).numpy() == 1
    assert v1.count_nonzero(input=[0, 1, 2]).numpy() == 2
    with pytest.raises(ValueError, match="Cannot specify both"):
        v1.reduce_max([1.0], axis=0, reduction_indices=0)


def test_ragged_statistics():
    ragged = tf.ragged.constant([[1.0, 2.0], [3.0]])
    np.testing.assert_allclose(tf.math.reduce_variance(ragged, axis=1).numpy(), [0.25, 0])
    np.testing.assert_allclose(tf.math.reduce_std(ragged).numpy(), np.std([1.0, 2, 3]), rtol=1e-6)
    np.testing.assert_allclose(
        tf.reduce_logsumexp(ragged, axis=1).numpy(), [np.log(np.exp(1) + np.exp(2)), 3], rtol=1e-6
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", range(1, 10))
def test_short_rows(length, dtype):
    x = np.random.default_rng(length).standard_normal((301, length)).astype(dtype)
    x[7, -1] = nan
    x[9] = -inf
    for ours, exact in ((tf.reduce_sum, np.sum), (tf.reduce_max, np.max), (tf.reduce_min, np.min)):
        np.testing.assert_allclose(ours(x, 1), exact(x, 1), atol=2e-6 if dtype == "float32" else 4e-15)


@pytest.mark.parametrize(("shape", "axes"), [((700, 40, 9), (0, 2)), ((3, 50, 20, 600), (0, 2)), ((900, 600), (0,))])
def test_many_rows_and_axes_with_others_between(shape, axes):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    np.testing.assert_allclose(tf.reduce_sum(x, axes), x.sum(axes, dtype=np.float64), atol=1e-3)
    np.testing.assert_array_equal(tf.reduce_max(x, axes), x.max(axes))
    np.testing.assert_array_equal(tf.reduce_min(x, axes), x.min(axes))


def test_ties_and_small_numbers_share_the_gradient_of_a_maximum_as_they_should():
    x = np.zeros((300, 100), np.float32)  # large enough for work that takes small numbers for zeros
    x[:, 3], x[0, 5], x[1, 6], x[2, 7] = 1, 1, nan, -0.0
    x[4], x[4, 9] = 0, -0.0
    for run in (lambda f: f, tf.function):

        @run
        def gradient(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_max(x, 1)
            return tape.gradient(y, x)

        dx = gradient(tf.constant(x)).numpy()
        expected = np.where(x == x.max(1, keepdims=True), 1.0, 0.0)
        expected /= np.maximum(expected.sum(1, keepdims=True), 1)
        expected[1] = nan
        np.testing.assert_allclose(dx, expected, rtol=1e-6)


def test_nothing_is_all_true():
    assert tf.reduce_all([]).numpy() and not tf.reduce_any([]).numpy()
    assert tf.logical_and([], []).dtype == tf.bool


def test_no_cotangent_gives_no_gradient_of_a_norm_at_zero():
    x = tf.Variable([0.0, 0.0])
    with tf.GradientTape(persistent=True) as tape:
        square = tf.norm(x) ** 2
        norm = tf.norm(x)
    np.testing.assert_array_equal(tape.gradient(square, x), [0.0, 0.0])
    assert np.isnan(tape.gradient(norm, x)).all()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_sums_of_complex_numbers_of_every_length(dtype):
    for length in (*range(1, 35), 64, 1000, 70_001):
        x = (np.arange(length) % 7 - 1j * (np.arange(length) % 5)).astype(dtype)
        np.testing.assert_array_equal(tf.reduce_sum(x), x.sum())
        np.testing.assert_array_equal(tf.reduce_sum(tf.stack([x, 2 * x, x]), 0), 4 * x)
