"""Jacobians of unusual targets and sources, and by every kind of operation."""

import numpy as np
import pytest

import tapeflow as tf


def jacobian(function, x, **options):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = function(x)
    return tape.jacobian(y, x, **options)


X = tf.constant([1.0, 2.0])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.cast(x, tf.int32),
        lambda x: x > 0,
        lambda x: tf.strings.as_string(x),
        lambda x: tf.constant([1.0]),
        tf.stop_gradient,
    ],
)
def test_targets_without_a_derivative(function):
    assert jacobian(function, X) is None
    zeros = jacobian(function, X, unconnected_gradients="zero")
    np.testing.assert_array_equal(zeros, np.zeros((*function(X).shape, 2)))


def test_empty_targets_and_sources():
    assert jacobian(lambda x: x * x, tf.zeros([0, 3])).shape == [0, 3, 0, 3]
    assert jacobian(lambda x: x[:0], X).shape == [0, 2]
    with tf.GradientTape() as tape:
        x = tf.zeros([0, 3])
        tape.watch(x)
        y = x * x
    assert tape.batch_jacobian(y, x).shape == [0, 3, 3]


def test_all_arguments():
    for options in ({}, {"experimental_use_pfor": False}, {"parallel_iterations": 1}):
        np.testing.assert_array_equal(jacobian(lambda x: x * x, X, **options), [[2, 0], [0, 4]])
    np.testing.assert_array_equal(jacobian(lambda x: x, X), np.eye(2))
    np.testing.assert_array_equal(jacobian(lambda x: tf.gather(x, [1]), tf.Variable([1.0, 2.0])), [[0, 1]])
    np.testing.assert_array_equal(jacobian(lambda z: z * z, tf.constant([1 + 2j])), [[2 - 4j]])


@pytest.mark.parametrize("target", [None, [X, X], {"a": X}])
def test_structures_are_refused(target):
    with pytest.raises(TypeError, match="jacobian: one tensor or variable"):
        jacobian(lambda x: target, X)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.numerical_gradient(np.sin)(x),
        lambda x: tf.custom_gradient(lambda v: (tf.sin(v), lambda dy: dy * tf.cos(v)))(x),
        lambda x: tf.recompute_grad(tf.sin)(x),
        lambda x: tf.py_function(tf.sin, [x], tf.float32),
        lambda x: tf.map_fn(tf.sin, x),
        lambda x: tf.while_loop(lambda i, v: i < 1, lambda i, v: (i + 1, tf.sin(v)), [0, x])[1],
    ],
)
def test_any_operation_inside(function):
    np.testing.assert_allclose(jacobian(function, X), np.diag(np.cos(X)), rtol=1e-6)
