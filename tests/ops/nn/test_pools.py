"""Pools: windows at the edges of what TensorFlow accepts."""

import numpy as np
import pytest

import tapeflow as tf


def test_windows_that_do_not_fit_are_refused_while_tracing():
    x = tf.ones([1, 1, 1, 1])
    assert tf.nn.max_pool2d(x, [1, 2], 1, "VALID").shape == [1, 1, 0, 1]
    with pytest.raises(ValueError, match="Negative dimension size caused by subtracting 2 from 1"):
        tf.function(lambda t: tf.nn.max_pool2d(t, [1, 2], 1, "VALID"))(x)


def test_windows_that_are_tensors():
    x = tf.reshape(tf.range(10.0), [1, 1, 1, 10])
    window = tf.constant([1, 1, 1, 2])
    assert tf.nn.max_pool(x, window, window, "SAME").numpy().ravel().tolist() == [1.0, 3.0, 5.0, 7.0, 9.0]


@pytest.mark.parametrize("pool", [tf.nn.avg_pool2d, tf.nn.max_pool2d])
def test_gradients_of_windows_that_do_not_fit_are_zero(pool):
    x = tf.ones([1, 2, 1, 1])
    held = [tf.fill([1, 2, 1, 1], 7.0) + 1.0 for _ in range(64)]  # what freed memory holds
    del held
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = pool(x, [1, 2], 1, "VALID")
    assert y.shape == [1, 2, 0, 1]
    np.testing.assert_array_equal(tape.gradient(y, x), np.zeros([1, 2, 1, 1]))
