"""Where Tapeflow differs from TensorFlow on purpose: each row of docs/differences.md has a test, here or elsewhere."""

import re
from pathlib import Path

import numpy as np
import pytest

import tapeflow as tf

ROOT = Path(__file__).parents[1]


def real_gradient(function, arguments, upstream, step=1e-6):
    """The gradient of Re(sum(conj(upstream) * f)) by finite differences, as TensorFlow writes gradients."""
    gradients = []
    for position, array in enumerate(arguments):
        gradient = np.zeros_like(array)
        for index in np.ndindex(array.shape):
            for direction in (1, 1j):
                shifted = [a.copy() for a in arguments]
                shifted[position][index] += step * direction
                high = np.sum(np.conj(upstream) * function(*shifted)).real
                shifted[position][index] -= 2 * step * direction
                low = np.sum(np.conj(upstream) * function(*shifted)).real
                gradient[index] += direction * (high - low) / (2 * step)
        gradients.append(gradient)
    return gradients


@pytest.mark.parametrize(
    "name, function",
    [
        ("multiply_no_nan", lambda a, b: a * b),
        ("xlogy", lambda a, b: a * np.log(b)),
        ("xdivy", lambda a, b: a / b),
        ("xlog1py", lambda a, b: a * np.log(1 + b)),
        ("squared_difference", lambda a, b: (a - b) * np.conj(a - b)),
    ],
)
def test_complex_gradients_are_conjugated(name, function):
    random = np.random.default_rng(1)
    a, b, upstream = (random.normal(size=3) + 1j * random.normal(size=3) for _ in range(3))
    x, y = tf.constant(a), tf.constant(b)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = getattr(tf.math, name)(x, y)
    for ours, exact in zip(
        tape.gradient(z, [x, y], output_gradients=tf.constant(upstream)), real_gradient(function, [a, b], upstream)
    ):
        np.testing.assert_allclose(ours, exact, rtol=1e-6, atol=1e-8)


def test_second_order_of_a_complex_product():
    x = tf.constant([1 + 2j, 0.5 - 1j, -1 + 0.3j])
    upstream, second = tf.constant(0.7 - 0.2j), tf.constant([0.3 + 1j, -1 + 0j, 0.4 - 0.6j])

    def first_order(values):
        others = np.array([values[1] * values[2], values[0] * values[2], values[0] * values[1]])
        return upstream.numpy() * np.conj(others)

    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_prod(x)
        g = inner.gradient(y, x, output_gradients=upstream)
    np.testing.assert_allclose(g, first_order(x.numpy()), rtol=1e-12)
    (exact,) = real_gradient(first_order, [x.numpy()], second.numpy())
    np.testing.assert_allclose(outer.gradient(g, x, output_gradients=second), exact, rtol=1e-6)


def test_tangents_are_dense():
    updates = tf.constant([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(updates, tf.constant([3.0, 4.0])) as accumulator:
        y = tf.scatter_nd([[1], [3]], updates, [5])
    np.testing.assert_array_equal(accumulator.jvp(y), [0, 3, 0, 4, 0])


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(TypeError, match="300"):
        tf.constant(300, tf.uint8)


def test_an_array_of_floats_is_not_cut_to_integers():
    with pytest.raises(tf.errors.InvalidArgumentError, match="int32"):
        tf.constant([1, 2]) + np.array([1.5, 2.5])


def test_an_array_is_not_cut_for_python_integers_before_it():
    np.testing.assert_array_equal(tf.add(1, np.array([2.5])), [3.5])
    assert tf.multiply(2, np.array([2**40])).numpy().tolist() == [2**41]


def test_forward_mode_is_not_lost_where_an_inner_operation_has_no_gradient():
    straight_through = tf.custom_gradient(lambda v: (tf.round(v), lambda dy: dy))
    x = tf.constant(1.7)
    with tf.autodiff.ForwardAccumulator(x, tf.constant(1.0)) as accumulator:
        y = straight_through(x)
    assert float(accumulator.jvp(y)) == 1.0


def test_every_row_names_a_test_that_exists():
    text = (ROOT / "docs" / "differences.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| what |")]
    assert rows
    for row in rows:
        for path, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row):
            assert f"def {name}(" in (ROOT / path).read_text(), row
        assert "`tests/" in row, f"no test named: {row}"


def test_subnormal_numbers():
    tiny = tf.constant([1e-20, 1.0])
    assert (tiny * tiny).numpy()[0] > 0
    assert tf.function(lambda x: x * x)(tiny).numpy().tolist() == [0.0, 1.0]
    assert tf.matmul(tiny[:1, None], tiny[None, :1]).numpy().tolist() == [[0.0]]
    assert tf.reduce_max(tf.fill([20000], 1e-20) * 1e-20).numpy() == 0.0


def test_gradients_of_running_products_and_complex_norms():
    x = tf.constant([1.0, 0.0, 2.0], tf.float64)
    z = tf.constant([1.0 + 2.0j, -0.5 + 1.0j])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, z])
        products, complex_products, norm = tf.math.cumprod(x), tf.math.cumprod(z), tf.math.reduce_euclidean_norm(z)
    np.testing.assert_allclose(tape.gradient(products, x, tf.constant([1.0, 1, 1], tf.float64)).numpy(), [1, 3, 0])
    # d(z0 + z0 z1) with cotangents 1: conj(1 + z1), conj(z0)
    np.testing.assert_allclose(tape.gradient(complex_products, z).numpy(), [0.5 - 1j, 1 - 2j], rtol=1e-6)
    np.testing.assert_allclose(tape.gradient(norm, z).numpy(), z.numpy() / np.linalg.norm(z.numpy()), rtol=1e-6)


def test_special_functions_at_their_edges():
    x = tf.constant(0.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.bessel_i1(x)
    assert tape.gradient(y, x).numpy() == 0.5
    np.testing.assert_allclose(tf.math.special.expint([-1.0]).numpy(), [-0.21938393], rtol=1e-6)
    assert tf.math.erf(tf.constant(np.inf, tf.float64)).numpy() == 1
    assert tf.math.special.bessel_j0(np.float32(np.inf)).numpy() == 0


def test_nan_is_not_lost():
    assert np.isnan(tf.nn.softmax([np.nan, 1.0]).numpy()).all()
    assert np.isnan(tf.math.cumulative_logsumexp([np.nan, 1.0]).numpy()).all()


def test_equal_cells_of_a_window_do_not_multiply_the_gradient():
    x = tf.ones([1, 2, 2, 2, 1])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.max_pool3d(x, 2, 2, "VALID")
    assert tape.gradient(y, x).numpy().reshape(-1).tolist() == [1, 0, 0, 0, 0, 0, 0, 0]


def test_the_complex_gradient_of_silu():
    z, upstream = np.array([0.3 + 0.4j, -1 + 0.2j]), np.array([0.5 - 1j, 1 + 1j])
    x = tf.constant(z)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.silu(x)
    exact = real_gradient(lambda v: v / (1 + np.exp(-v)), [z], upstream)[0]
    np.testing.assert_allclose(tape.gradient(y, x, tf.constant(upstream)), exact, rtol=1e-6)


def test_convolutions_of_nothing_have_a_shape():
    filters = tf.ones([3, 3, 1, 2])
    assert tf.nn.conv2d(tf.ones([0, 5, 5, 1]), filters, 2, "VALID").shape == [0, 2, 2, 2]
    assert tf.nn.depthwise_conv2d(tf.ones([0, 5, 5, 1]), filters, [1, 1, 1, 1], "SAME").shape == [0, 5, 5, 2]


@pytest.mark.parametrize("dtype", [tf.float64, tf.float16])
def test_second_order_of_moments(dtype):
    x = tf.constant([1.0, 2.0, 4.0], dtype)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            _, variance = tf.nn.moments(x, [0])
        dx = tape.gradient(variance, x)
    expected = 2 / 3 * (np.eye(3) - 1 / 3)  # the mean moves with x
    np.testing.assert_allclose(outer.jacobian(dx, x).numpy().astype(float), expected, atol=1e-3)


def test_an_infinite_gradient_does_not_pass_a_closed_relu():
    x = tf.constant([-1.0, 1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.nn.relu(x)
    np.testing.assert_array_equal(tape.gradient(y, x, tf.constant([np.inf, np.inf])), [0.0, np.inf])


def test_given_statistics_of_batch_norm_have_gradients():
    x, scale = tf.reshape(tf.range(8.0), [1, 2, 2, 2]), tf.constant([2.0, 3.0])
    mean, variance = tf.constant([1.0, 2.0]), tf.constant([2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch([mean, variance])
        y, _, _ = tf.compat.v1.nn.fused_batch_norm(
            x, scale, tf.zeros(2), mean, variance, epsilon=0.001, is_training=False
        )
    by_mean, by_variance = tape.gradient(y, [mean, variance])
    factor = scale / tf.sqrt(variance + 0.001)
    np.testing.assert_allclose(by_mean, -4 * factor, rtol=1e-5)
    expected = tf.reduce_sum(x - mean, [0, 1, 2]) * factor * -0.5 / (variance + 0.001)
    np.testing.assert_allclose(by_variance, expected, rtol=1e-5)


def test_gradients_pass_a_dataset():
    w = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        total = 0.0
        for element in tf.data.Dataset.from_tensor_slices(w * 2):
            total += element * element
    np.testing.assert_array_equal(tape.gradient(total, w), [8.0, 16.0])


@pytest.mark.parametrize(
    "score",
    [
        lambda x: tf.reduce_sum(tf.nn.ctc_greedy_decoder(tf.reshape(x, [2, 2, 3]), [2, 1])[1]),
        lambda x: tf.reduce_sum(tf.image.hsv_to_rgb(tf.reshape(x, [4, 3])) ** 2),
        lambda x: tf.reduce_sum(
            tf.compat.v1.nn.fused_batch_norm(tf.reshape(x, [1, 2, 3, 2]), tf.ones(2), tf.zeros(2))[2]
        ),
    ],
    ids=["greedy decoder", "hsv_to_rgb", "statistics of fused_batch_norm"],
)
def test_gradients_that_tensorflow_leaves_out(score):
    x = np.random.default_rng(3).uniform(0.1, 0.9, 12).astype(np.float32)
    (theoretical,), (numerical,) = tf.test.compute_gradient(score, [x], delta=1e-3)
    assert np.abs(theoretical).max() > 0.01
    np.testing.assert_allclose(theoretical, numerical, atol=5e-3)


def test_elements_of_a_list_that_nobody_reads_are_not_connected():
    @tf.function
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.TensorArray(tf.float32, 2).write(0, x).write(1, tf.constant(2.0)).read(1)
        return tape.gradient(y, x)

    assert gradient(tf.constant(5.0)) is None


def test_a_replaced_row_of_dynamic_stitch_has_no_gradient():
    """Of several rows for one place the last counts, so the others do not change the result."""
    indices = [tf.constant([0, 0, 1]), tf.constant([[2], [1]])]

    def gradients(rows, more):
        with tf.GradientTape() as tape:
            tape.watch([rows, more])
            y = tf.reduce_sum(tf.dynamic_stitch(indices, [rows, more]) ** 2)
        return tape.gradient(y, [rows, more])

    rows, more = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), tf.constant([[[7.0, 8.0]], [[9.0, 10.0]]])
    for function in (gradients, tf.function(gradients)):
        first, second = function(rows, more)
        np.testing.assert_array_equal(first, [[0.0, 0.0], [6.0, 8.0], [0.0, 0.0]])
        np.testing.assert_array_equal(second, 2 * more)


def test_the_gradient_of_a_projected_image():
    images = tf.reshape(tf.range(9.0), [1, 3, 3, 1])

    def run(x):
        transforms = tf.constant([[2.0, 0.0, 0.3, 0.0, 1.0, 0.0, 0.0, 0.0]])
        settings = {"interpolation": "BILINEAR", "fill_mode": "CONSTANT", "fill_value": 0.0}
        shape = tf.constant([3, 3])
        return tf.raw_ops.ImageProjectiveTransformV3(images=x, transforms=transforms, output_shape=shape, **settings)

    with tf.GradientTape() as tape:
        tape.watch(images)
        total = tf.reduce_sum(run(images) * images)
    found = tape.gradient(total, images) - run(images)  # the other factor's part
    unit = [tf.reshape(tf.one_hot(i, 9), images.shape) for i in range(9)]
    expected = [float(tf.reduce_sum((run(images + d) - run(images - d)) * images) / 2.0) for d in unit]
    np.testing.assert_allclose(tf.reshape(found, [-1]), expected, atol=1e-4)
