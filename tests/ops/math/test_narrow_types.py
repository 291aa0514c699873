"""Half types: each element is computed in float32 and rounded once, whatever the length and the broadcasting."""

import numpy as np
import pytest

import tapeflow as tf

SIZES = (1, 7, 511, 512, 513, 1100)  # around the blocks in which elements are converted


def _values(size, dtype, seed):
    numbers = np.random.default_rng(seed).normal(0, 3, size).astype(np.float32)
    numbers[::5] = [0.0, -0.0, np.inf, -np.inf, np.nan][seed % 5]
    return tf.cast(numbers, dtype)


def _assert_rounded_once(function, *operands):
    found = function(*operands)
    expected = function(*(tf.cast(x, tf.float32) for x in operands))
    if expected.dtype == tf.float32:
        expected = tf.cast(expected, operands[0].dtype)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.numpy().astype(np.float32), expected.numpy().astype(np.float32))


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("function", [tf.tanh, tf.exp, tf.math.log, tf.sqrt, tf.negative, tf.nn.sigmoid, tf.math.rsqrt])
def test_unary(function, size, dtype):
    for seed in range(5):
        _assert_rounded_once(function, _values(size, dtype, seed))


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("function", [tf.add, tf.subtract, tf.multiply, tf.divide, tf.maximum, tf.less, tf.not_equal])
def test_binary(function, size, dtype):
    for seed in range(5):
        x, y = _values(size, dtype, seed), _values(size, dtype, seed + 1)
        for pair in ((x, y), (x, y[0]), (x[0], y), (x, tf.reshape(y, [-1, 1])) if size <= 7 else (y, x)):
            _assert_rounded_once(function, *pair)


def test_gradient():
    x = tf.Variable(tf.cast([0.5, -1.0], tf.float16))
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tf.tanh(x) * x)
    wide = np.float32([0.5, -1.0])
    expected = np.tanh(wide) + wide * (1 - np.tanh(wide) ** 2)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), expected, rtol=3e-3)
