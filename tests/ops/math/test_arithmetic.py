"""What is special about arithmetic: complex gradients, division by zero, dtypes and errors."""

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import primitives

inf, nan = np.inf, np.nan

COMPLEX = {
    "squared_difference": tf.math.squared_difference,
    "multiply_no_nan": tf.math.multiply_no_nan,
    "divide_no_nan": tf.math.divide_no_nan,
    "xlogy": tf.math.xlogy,
    "xdivy": tf.math.xdivy,
    "xlog1py": tf.math.xlog1py,
    "multiply": tf.multiply,
    "pow": tf.pow,
    "sign": lambda x, y: tf.sign(x) * y,
    "abs": lambda x, y: tf.cast(tf.abs(x), tf.complex128) * y,
    "angle": lambda x, y: tf.cast(tf.math.angle(x), tf.complex128) * y,
    "norm": lambda x, y: tf.math.reduce_euclidean_norm(tf.stack([x, y]), 0),
    "prod": lambda x, y: tf.reduce_prod(tf.stack([x, y, x]), 0),
    "cumprod": lambda x, y: tf.math.cumprod(tf.stack([x, y, x]))[2],
}


def convention_gradient(function, inputs, dy):
    """dL/d(re) + i dL/d(im) of L = Re(conj(dy) f), by finite differences."""
    h, results = 1e-6, []
    for i in range(len(inputs)):

        def loss(step, i=i):
            moved = [x + step if k == i else x for k, x in enumerate(inputs)]
            return np.real(np.conj(dy) * function(*[tf.constant(v) for v in moved]).numpy())

        results.append((loss(h) - loss(-h)) / (2 * h) + 1j * (loss(1j * h) - loss(-1j * h)) / (2 * h))
    return results


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_gradients_follow_one_convention(name):
    function = COMPLEX[name]
    inputs, dy = (
        [np.array([0.7 - 0.4j, -1.1 + 0.2j]), np.array([1.3 + 0.5j, 0.4 - 0.9j])],
        np.array([0.6 + 0.9j, -0.2 + 1j]),
    )
    tensors = [tf.constant(x) for x in inputs]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        y = function(*tensors)
    got = tape.gradient(y, tensors, output_gradients=tf.constant(dy))
    for gradient, expected in zip(got, convention_gradient(function, inputs, dy)):
        np.testing.assert_allclose(gradient.numpy(), expected, atol=1e-7)
    tangent = np.array([0.3 - 1j, 0.8 + 0.1j])
    with tf.autodiff.ForwardAccumulator(tensors[0], tf.constant(tangent)) as accumulator:
        y = function(*tensors)
    h = 1e-6
    moved = [function(tf.constant(inputs[0] + step * tangent), tensors[1]).numpy() for step in (h, -h)]
    np.testing.assert_allclose(accumulator.jvp(y).numpy(), (moved[0] - moved[1]) / (2 * h), atol=1e-7)


@pytest.mark.parametrize("name", ["sign", "squared_difference", "xlogy", "multiply_no_nan"])
def test_complex_second_order(name):
    function = COMPLEX[name]
    x, y = np.array([0.7 - 0.4j]), tf.constant([1.3 + 0.5j])

    def first(at):
        with tf.GradientTape() as tape:
            tape.watch(at)
            z = tf.reduce_sum(tf.square(tf.math.real(function(at, y))))
        return tape.gradient(z, at)

    t = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(t)
        total = tf.reduce_sum(tf.math.real(first(t)))
    h = 1e-6

    def value(step):
        return first(tf.constant(x + step)).numpy().real

    expected = (value(h) - value(-h)) / (2 * h) + 1j * (value(1j * h) - value(-1j * h)) / (2 * h)
    np.testing.assert_allclose(tape.gradient(total, t).numpy(), expected, atol=1e-6)


def test_squared_difference_broadcasts():
    x, y = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([1.0, 5.0])
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = tf.math.squared_difference(x, y)
    by_x, by_y = tape.gradient(z, [x, y])
    np.testing.assert_array_equal(by_x.numpy(), [[0, -6], [4, -2]])
    np.testing.assert_array_equal(by_y.numpy(), [-4, 8])
    with tf.autodiff.ForwardAccumulator(y, tf.constant([1.0, 0.0])) as accumulator:
        z = tf.math.squared_difference(x, y)
    np.testing.assert_array_equal(accumulator.jvp(z).numpy(), [[0, 0], [-4, 0]])


def test_division():
    assert tf.math.divide_no_nan([3], [2]).dtype == tf.float64
    assert tf.math.divide_no_nan(tf.constant([3], tf.int8), tf.constant([0], tf.int8)).numpy() == 0
    np.testing.assert_array_equal(tf.math.reciprocal_no_nan([2.0, 0.0]).numpy(), [0.5, 0])
    for divide in (tf.divide, tf.truediv, tf.math.divide_no_nan):
        with pytest.raises(TypeError, match="must have the same dtype"):
            divide(tf.constant([1.0]), tf.constant([1.0], tf.float64))
        with pytest.raises(TypeError, match="Invalid dtype"):
            divide(tf.constant([True]), tf.constant([True]))


def test_complex_parts():
    x = tf.constant([1.0, -inf, nan])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.imag(x)
    np.testing.assert_array_equal(y.numpy(), [0, 0, 0])
    assert tape.gradient(y, x) is None
    np.testing.assert_array_equal(tf.math.angle(tf.constant([-1.0, 2.0, -0.0], tf.float64)).numpy(), [np.pi, 0, 0])
    with pytest.raises(TypeError, match="angle"):
        tf.math.angle([1, 2])
    with pytest.raises(TypeError, match="incorrect types: float32 float64"):
        tf.complex(tf.constant(1.0), tf.constant(1.0, tf.float64))


def test_sign_of_complex_zero_has_no_nan():
    x = tf.constant([0j, 3 + 4j])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sign(x)
    np.testing.assert_allclose(y.numpy(), [0, 0.6 + 0.8j])
    assert np.isfinite(tape.gradient(y, x).numpy()).all()


def test_log_sigmoid_in_the_tails():
    x = tf.constant([-1000.0, 0.0, 1000.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.log_sigmoid(x)
    np.testing.assert_allclose(y.numpy(), [-1000, -np.log(2), 0], rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), [1, 0.5, 0])


def test_population_count():
    for dtype in (tf.int8, tf.int32, tf.uint64):
        counts = primitives.PopulationCount(x=tf.constant([0, 1, 127], dtype))
        assert counts.dtype == tf.uint8
        np.testing.assert_array_equal(counts.numpy(), [0, 1, 7])
    assert primitives.PopulationCount(x=tf.constant([-1], tf.int32)).numpy() == 32


def test_monotonic():
    assert tf.math.is_non_decreasing([[1, 1], [2, 3]])
    assert not tf.math.is_strictly_increasing([1, 1])
    assert tf.math.is_strictly_increasing(tf.zeros([0]))


def test_sums_of_lists():
    with pytest.raises(ValueError, match="at least one Tensor"):
        tf.add_n([])
    with pytest.raises(ValueError, match="not compatible"):
        tf.math.accumulate_n([[1.0]], shape=[2])
    with pytest.raises(TypeError, match="tensor_dtype"):
        tf.math.accumulate_n([[1.0]], tensor_dtype=tf.int32)
    with pytest.raises(TypeError):
        tf.math.scalar_mul(2.5, tf.constant([1]))


def test_powers_of_special_numbers():
    special = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, 3, -3, 1e30, np.inf, -np.inf, np.nan], np.float32)
    x, y = np.repeat(special, len(special)), np.tile(special, len(special))
    with np.errstate(all="ignore"):
        expected = np.power(x, y)
    for got in (tf.pow(x, y), tf.stack([tf.pow(a, b) for a, b in zip(x, y)])):
        np.testing.assert_allclose(got, expected, rtol=1e-6)
        defined = ~np.isnan(expected)
        assert np.array_equal(np.signbit(got)[defined], np.signbit(expected)[defined])


def test_powers_are_rounded_almost_exactly():
    rng = np.random.default_rng(0)
    for x, y in (
        (np.exp(rng.uniform(-80, 80, 4000)), rng.uniform(-1, 1, 4000)),
        (1 + rng.uniform(-1e-3, 1e-3, 4000), rng.uniform(-8e4, 8e4, 4000)),
        (-np.exp(rng.uniform(-2, 2, 4000)), rng.integers(-20, 20, 4000)),
    ):
        x, y = x.astype(np.float32), y.astype(np.float32)
        expected = np.power(x.astype(np.float64), y).astype(np.float32)
        np.testing.assert_array_max_ulp(tf.pow(x, y).numpy(), expected, 2)
    mixed = np.array([2, -2, 2, 0, -2, np.inf, 1.5, -8] * 4, np.float32)  # one vector holds usual and unusual bases
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_max_ulp(tf.pow(mixed, np.float32(1.7)).numpy(), np.power(mixed, np.float32(1.7)), 1)


@pytest.mark.parametrize("function", [tf.sqrt, tf.math.rsqrt, tf.math.reciprocal])
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64, tf.float16, tf.complex64])
@pytest.mark.parametrize("size", [3, 40000])
def test_no_gradient_is_asked_for_where_the_derivative_is_infinite(function, dtype, size):
    x = tf.zeros([size], dtype)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)[:1]
    np.testing.assert_array_equal(tape.gradient(y, x)[1:], np.zeros(size - 1))


def test_the_branch_that_where_does_not_take_has_no_say():
    x = tf.constant([0.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.where(x > 0, tf.sqrt(x), 0.0)
    np.testing.assert_array_equal(tape.gradient(y, x), [0, 0.25])


@pytest.mark.parametrize("shapes", [((2, 3, 4), (4, 0)), ((2, 3, 0), (0, 2)), ((2, 0, 3), (3, 2)), ((0, 3, 4), (4, 2))])
def test_gradients_of_products_of_empty_matrices(shapes):
    a, b = (tf.ones(shape) for shape in shapes)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        y = tf.matmul(a, b)
    da, db = tape.gradient(y, [a, b])
    assert da.shape == a.shape and db.shape == b.shape


def test_a_negative_norm_is_none():
    np.testing.assert_array_equal(tf.clip_by_norm([3.0, 4.0], -1.0), [0, 0])
    np.testing.assert_array_equal(tf.clip_by_norm([3.0, 4.0], tf.constant(-1.0)), [0, 0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders_and_angles(dtype):
    random = np.random.default_rng(0)
    special = np.array([0.0, -0.0, 1, -1, 6, -6, 3, -3, 1e30, np.inf, -np.inf, np.nan], dtype)
    a, b = (part.reshape(-1) for part in np.meshgrid(special, special))
    a = np.concatenate([a, random.standard_normal(5000).astype(dtype) * 1000])
    b = np.concatenate([b, random.standard_normal(5000).astype(dtype)])
    with np.errstate(all="ignore"):
        truncated = np.fmod(a, b)
    floored = np.where((truncated != 0) & ((truncated < 0) != (b < 0)), truncated + b, truncated)
    np.testing.assert_array_equal(tf.truncatemod(a, b), truncated)
    np.testing.assert_array_equal(tf.math.floormod(a, b), floored)
    np.testing.assert_array_equal(
        tf.math.floormod(a, dtype(0.7)), tf.stack([tf.math.floormod(x, dtype(0.7)) for x in a])
    )
    np.testing.assert_allclose(tf.atan2(a, b), np.arctan2(a, b), rtol=4 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(np.signbit(tf.atan2(a[:144], b[:144])), np.signbit(np.arctan2(a[:144], b[:144])))


def test_clipping_does_not_broadcast():
    with pytest.raises(ValueError, match=r"Shapes \(2, 3\) and \(4, 2, 3\) are incompatible"):
        tf.clip_by_norm(tf.ones([2, 3]), tf.ones([4, 2, 3]))


def test_a_zero_cotangent_of_pow_stays_zero_where_the_derivative_overflows():
    x, y = tf.constant(6.0, tf.float16), tf.constant([6.0, 1.0], tf.float16)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = tf.pow(x, y)
    dx, dy = tape.gradient(z, [x, y], tf.constant([0.0, 1.0], tf.float16))
    assert (float(dx), dy.numpy().tolist()) == (1.0, [0.0, 10.75])
