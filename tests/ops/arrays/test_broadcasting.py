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
