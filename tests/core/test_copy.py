"""Copies of runs of every length: joining, splitting and exchanging dimensions."""

import numpy as np
import pytest

import tapeflow as tf


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "float64", "complex128", "str"])
def test_runs_of_any_length(dtype):
    for length in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 129, 300, 1030]:
        x = np.arange(3 * 2 * length).reshape(3, 2, length).astype(dtype)
        given = tf.constant(x)
        joined = tf.concat([given[:, 0], given[:, 1], given[:, :1, 0]], 1)
        expected = np.concatenate([x[:, 0], x[:, 1], x[:, :1, 0]], 1)
        decode = np.vectorize(bytes.decode) if dtype == "str" else np.asarray
        np.testing.assert_array_equal(decode(joined.numpy()), expected)
        for part, piece in zip(tf.split(joined, [length, length, 1], 1), np.split(expected, [length, 2 * length], 1)):
            np.testing.assert_array_equal(decode(part.numpy()), piece)
        np.testing.assert_array_equal(decode(tf.transpose(given, [1, 0, 2]).numpy()), x.swapaxes(0, 1))
