"""Checkpointing: less memory, the same numbers, at every order."""

import gc

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import _core


def deep(x, w):
    for _ in range(20):
        x = tf.tanh(x * w)
    return x


def test_memory_is_really_saved():
    x = tf.Variable(tf.ones([50_000]))
    held = []
    for function in (deep, tf.recompute_grad(deep)):
        gc.collect()
        before = _core.memory_info()["current"]
        with tf.GradientTape() as tape:
            y = function(x, tf.constant(0.9))
        held.append(_core.memory_info()["current"] - before)
        del tape, y
    assert held[1] < held[0] / 10


def test_variables_inside_get_their_gradient():
    w = tf.Variable([0.5, 0.6])
    x = tf.constant([1.0, 2.0])
    gradients = []
    for function in (lambda v: tf.sin(v * w), tf.recompute_grad(lambda v: tf.sin(v * w))):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(function(x))
        gradients.append(tape.gradient(y, [x, w]))
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-6)


def test_nested_and_second_order():
    x = tf.constant([0.3, 0.7], tf.float64)
    inner = tf.recompute_grad(lambda v: tf.exp(v) * v)
    outer = tf.recompute_grad(lambda v: tf.sin(inner(v)))
    results = []
    for function in (outer, lambda v: tf.sin(tf.exp(v) * v)):
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as first:
                first.watch(x)
                y = tf.reduce_sum(function(x))
            g = first.gradient(y, x)
        results.append((g.numpy(), second.gradient(g, x).numpy()))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12)


@pytest.mark.parametrize("seed", [None, 7])
def test_random_operations_are_replayed(seed):
    tf.random.set_seed(3)
    x = tf.Variable(tf.ones([1000]))
    seen = []

    @tf.recompute_grad
    def noisy(v):
        noise = tf.random.normal([1000], seed=seed)
        seen.append(noise.numpy())
        return v * noise

    with tf.GradientTape() as tape:
        y = noisy(x)
    before = tf.random.uniform([3], seed=1).numpy()
    np.testing.assert_array_equal(tape.gradient(y, x), seen[0])
    np.testing.assert_array_equal(seen[0], seen[1])
    assert not np.array_equal(before, tf.random.uniform([3], seed=1).numpy())


def test_several_outputs_and_integer_inputs():
    @tf.recompute_grad
    def function(x, n):
        return x * x, tf.cast(n, tf.float32) * x

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        a, b = function(x, tf.constant(3))
    np.testing.assert_allclose(tape.gradient([a, b], x), [5.0, 7.0])


def test_methods_and_forward_mode():
    class Layer:
        @tf.recompute_grad
        def square(self, x):
            return {"y": x * x}

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.autodiff.ForwardAccumulator(x, tf.ones([2])) as accumulator:
            y = Layer().square(x)["y"]
    np.testing.assert_array_equal(tape.gradient(y, x), [2.0, 4.0])
    np.testing.assert_array_equal(accumulator.jvp(y), [2.0, 4.0])


def test_memory_of_nested_blocks():
    """Blocks of blocks hold their ends alone, also while the gradient is computed."""
    x = tf.Variable(tf.ones([50_000]))
    block = tf.recompute_grad(lambda v: deep(v, tf.constant(0.9)))
    peaks = []
    for function in (deep, lambda v, w: block(v)):
        y = x
        gc.collect()
        before = _core.memory_info()["current"]
        _core.reset_memory_peak()
        with tf.GradientTape() as tape:
            for _ in range(5):
                y = function(y, tf.constant(0.9))
        tape.gradient(y, x)
        peaks.append(_core.memory_info()["peak"] - before)
        del tape, y
    assert peaks[1] < peaks[0] / 3
