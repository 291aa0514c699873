"""Large results of broadcasting, which several threads write."""

import numpy as np
import pytest

import tapeflow as tf

CASES = [
    ((300, 400), (2, 300, 400)),
    ((400,), (700, 400)),
    ((300, 1), (300, 400)),
    ((1, 300, 1, 7), (5, 300, 40, 7)),
    ((70_000,), (3, 70_000)),
]


@pytest.mark.parametrize(("shape", "result"), CASES)
def test_broadcast_to(shape, result):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    np.testing.assert_array_equal(tf.broadcast_to(x, result), np.broadcast_to(x, result))


@pytest.mark.parametrize("multiples", [(2, 2), (1, 3), (3, 1), (7, 5)])
def test_tile(multiples):
    x = np.arange(150 * 170).reshape(150, 170)
    np.testing.assert_array_equal(tf.tile(x, multiples), np.tile(x, multiples))


@pytest.mark.parametrize("dtype", ["bool", "int8", "float32", "complex128"])
def test_zeros(dtype):
    tf.ones([300_001], dtype)  # leaves memory that is not zero
    np.testing.assert_array_equal(tf.zeros([300_001], dtype), np.zeros(300_001, dtype))


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("size", [1, 4095, 4096, 16384, 20_001])
def test_long_runs_of_one_value(dtype, size):
    for value in (0, 1, 3):
        expected = np.full([size], value, dtype)
        np.testing.assert_array_equal(tf.fill([size], tf.constant(value, dtype)), expected)
        np.testing.assert_array_equal(tf.broadcast_to(tf.constant([[value]], dtype), [2, size]), [expected] * 2)
        bordered = tf.pad(tf.constant([5], dtype), [[size, 3]], constant_values=tf.constant(value, dtype))
        np.testing.assert_array_equal(bordered, np.pad(np.array([5], dtype), (size, 3), constant_values=value))
    np.testing.assert_array_equal(tf.fill([size], "ab"), np.full([size], b"ab"))


@pytest.mark.parametrize(
    ("shape", "border"),
    [
        ((2, 3, 4, 5), [[0, 0], [1, 2], [3, 0], [0, 0]]),
        ((2, 3, 4), [[0, 0], [0, 0], [0, 0]]),
        ((2, 3, 4), [[1, 0], [0, 0], [0, 2]]),
        ((0, 3), [[2, 1], [1, 1]]),
        ((3, 0), [[2, 1], [1, 1]]),
        ((40, 30, 20), [[2, 1], [1, 0], [0, 3]]),
    ],
)
def test_borders_of_any_dimensions(shape, border):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    np.testing.assert_array_equal(tf.pad(x, border, constant_values=2), np.pad(x, border, constant_values=2))
    names = tf.strings.as_string(x)
    expected = np.pad(names.numpy(), border, constant_values=b"-")
    np.testing.assert_array_equal(tf.pad(names, border, constant_values="-"), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "uint8", "complex64", "complex128", "bool"])
def test_copies_of_odd_shapes(dtype):
    random = np.random.default_rng(0)
    for shape in ((1,), (3,), (5, 17), (33, 2), (2, 3, 31), (21, 37)):
        x = random.integers(0, 2, shape).astype(dtype)
        for axis in range(len(shape)):
            np.testing.assert_array_equal(tf.reverse(x, [axis]), np.flip(x, axis))
            np.testing.assert_array_equal(tf.repeat(x, 3, axis), np.repeat(x, 3, axis))
        for front in ((7,), (5000,), (3, 1000)):
            np.testing.assert_array_equal(tf.broadcast_to(x, front + shape), np.broadcast_to(x, front + shape))
        np.testing.assert_array_equal(tf.transpose(x), x.T)
        if dtype != "bool":
            pads = [[1, 2]] * len(shape)
            np.testing.assert_array_equal(tf.pad(x, pads, constant_values=7), np.pad(x, pads, constant_values=7))
            pads[:-1] = [[0, 0]] * (len(shape) - 1)
            np.testing.assert_array_equal(tf.pad(x, pads, constant_values=7), np.pad(x, pads, constant_values=7))
