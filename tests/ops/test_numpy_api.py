"""`tf.experimental.numpy`: NumPy's dtype promotion, and gradients through it."""

import numpy as np
import pytest

import tapeflow as tf

tnp = tf.experimental.numpy


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "true_divide", "power", "less", "logical_and"])
@pytest.mark.parametrize("left", ["bool", "int8", "int32", "float32", "float64"])
@pytest.mark.parametrize("right", ["bool", "int32", "int64", "float32"])
def test_promotion_is_numpys(name, left, right):
    if name == "power" and left == right == "bool":
        pytest.skip("NumPy gives int8, TensorFlow nothing")
    x, y = np.array([1, 1], left), np.array([1, 0], right)
    with np.errstate(divide="ignore"):
        expected = getattr(np, name)(x, y)
    got = getattr(tnp, name)(tf.constant(x), tf.constant(y)).numpy()
    np.testing.assert_array_equal(got, expected)
    if name != "true_divide" or expected.dtype == np.float64:
        assert got.dtype == expected.dtype


def test_python_numbers_give_way():
    assert tnp.add(tf.constant([1.0]), 1.5).dtype == tf.float32
    assert tnp.add(tf.constant([1]), 1.5).dtype == tf.float64
    assert tnp.add(tf.constant([1.0]), [1.0]).dtype == tf.float32
    assert tnp.array([1.0]).dtype == tf.float64
    assert tnp.ones([2]).dtype == tf.float64
    assert tnp.arange(3).dtype == tf.int64


def test_reductions_widen():
    x = tf.constant([[1, 2], [3, 4]], tf.int8)
    assert tnp.sum(x).dtype == tf.int64
    assert tnp.mean(x).dtype == tf.float64
    assert tnp.max(x).dtype == tf.int8
    assert tnp.argmax(x).numpy() == 3
    np.testing.assert_array_equal(tnp.cumsum(x).numpy(), [1, 3, 6, 10])
    assert tnp.var(x, ddof=1).numpy() == pytest.approx(np.var([1, 2, 3, 4], ddof=1))


@pytest.mark.parametrize(("left", "right"), [([3], [3]), ([2, 3], [3]), ([3], [3, 2]), ([4, 2, 3], [3, 5])])
def test_matmul_shapes(left, right):
    x, y = np.ones(left), np.ones(right)
    np.testing.assert_array_equal(tnp.matmul(x, y).numpy(), np.matmul(x, y))


def test_gradients_pass():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tnp.sum(tnp.multiply(tnp.square(x), 3))
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), [6, 12])


def test_choices_and_places():
    assert tnp.where([True, False], 1, 2.5).dtype == tf.float64
    np.testing.assert_array_equal(tnp.where([0, 3, 4])[0].numpy(), [1, 2])
    np.testing.assert_array_equal(tnp.take([1, 2, 3], [5, -1]).numpy(), [3, 1])
    np.testing.assert_array_equal(tnp.clip([1, 9], None, 5).numpy(), [1, 5])
