"""Initializers that give the same values each time, with TensorFlow 1's arguments."""

import numpy as np
import pytest

import tapeflow.compat.v1 as tf


@pytest.mark.parametrize(
    "make, dtype, values",
    [
        (lambda: tf.constant_initializer(0.5, dtype=tf.float32)([2]), "float32", [0.5, 0.5]),
        (lambda: tf.constant_initializer([1, 2, 3, 4])([2, 2]), "float32", [[1, 2], [3, 4]]),
        (lambda: tf.constant_initializer([1, 2])([2, 2]), "float32", [[1, 2], [2, 2]]),
        (lambda: tf.constant_initializer(3, tf.int32)([2]), "int32", [3, 3]),
        (lambda: tf.constant_initializer(3)([2], dtype=tf.float64), "float64", [3, 3]),
        (lambda: tf.zeros_initializer(dtype=tf.int32)([2]), "int32", [0, 0]),
        (lambda: tf.zeros_initializer()([2], tf.bool), "bool", [False, False]),
        (lambda: tf.ones_initializer(tf.float64)([2]), "float64", [1, 1]),
        (lambda: tf.initializers.identity(2.0, tf.float32)([2, 3]), "float32", [[2, 0, 0], [0, 2, 0]]),
    ],
)
def test_values(make, dtype, values):
    found = make()
    assert found.dtype.name == dtype
    np.testing.assert_array_equal(found.numpy(), values)


def test_settings_and_errors():
    assert tf.constant_initializer(2.0).get_config() == {"value": 2.0, "dtype": "float32"}
    assert tf.zeros_initializer.from_config({"dtype": "int32"})([1]).dtype == tf.int32
    assert tf.initializers.zeros is tf.zeros_initializer and tf.initializers.constant is tf.constant_initializer
    with pytest.raises(ValueError, match=r"Too many elements provided\. Takes at most 4, but got 5"):
        tf.constant_initializer([1, 2, 3, 4, 5])([2, 2])
    with pytest.raises(TypeError, match=r"Expected Tensor's shape: \(2, 2\), but got \(2,\)"):
        tf.constant_initializer([1, 2], verify_shape=True)([2, 2])
    with pytest.raises(TypeError, match="Invalid type for initial value="):
        tf.constant_initializer(object())
    with pytest.raises(ValueError, match="must be at least two-dimensional"):
        tf.initializers.identity()([2, 2, 2])


@pytest.mark.parametrize("kind", ["random_normal", "truncated_normal", "variance_scaling", "orthogonal"])
def test_random_initializers_give_floats_alone(kind):
    with pytest.raises(ValueError, match="Expected floating point type, got <dtype: 'string'>"):
        getattr(tf.initializers, kind)(dtype=tf.string)
    with pytest.raises(ValueError, match="must be a string"):
        tf.initializers.variance_scaling(distribution=3)
