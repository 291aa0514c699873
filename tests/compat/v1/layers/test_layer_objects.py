"""Layers of TensorFlow 1, as functions and as objects that keep their variables."""

import numpy as np
import pytest

import tapeflow
import tapeflow.compat.v1 as tf


@pytest.fixture(autouse=True)
def graph():
    with tapeflow.Graph().as_default() as graph:
        yield graph


def names():
    return [v.op.name for v in tf.global_variables()]


def test_an_object_finds_its_variables_again():
    x = tf.placeholder(tf.float32, [None, 3])
    layer = tf.layers.Dense(3, activation=tf.nn.relu, name="fc")
    a, b = layer(x), layer.apply(x)
    other = tf.layers.Dense(3)(x)
    assert names() == ["fc/kernel", "fc/bias", "dense/kernel", "dense/bias"]
    assert layer.kernel.op.name == "fc/kernel" and layer.variables == layer.trainable_weights
    with pytest.raises(AttributeError, match="'Dense' object has no attribute 'nothing'"):
        layer.nothing  # noqa: B018
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, second, third = session.run([a, b, other], {x: np.ones((2, 3))})
        np.testing.assert_array_equal(first, second)
        assert not np.array_equal(first, third)


def test_normalisation_as_an_object():
    layer = tf.layers.BatchNormalization(momentum=0.5)
    y, z = layer(tf.constant([[1.0], [3.0]]), training=True), layer(tf.constant([[1.0], [3.0]]), training=False)
    assert len(layer.trainable_variables) == 2 and len(layer.non_trainable_variables) == 2
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_allclose(session.run(y), [[-1.0], [1.0]], atol=1e-3)
        session.run(updates)
        np.testing.assert_allclose(session.run([layer.moving_mean, layer.moving_variance]), [[1.0], [1.0]])
        np.testing.assert_allclose(session.run(z), [[0.0], [2.0]], atol=1e-2)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_windows_along_one_two_and_three_dimensions(rank):
    x = np.arange(4.0**rank, dtype="f").reshape([1, *[4] * rank, 1])
    convolved = getattr(tf.layers, f"conv{rank}d")(x, 1, 2, strides=2, kernel_initializer=tf.ones_initializer())
    pooled = [getattr(tf.layers, f"{kind}_pooling{rank}d")(x, 2, 2) for kind in ("max", "average")]
    as_object = getattr(tf.layers, f"MaxPooling{rank}D")(2, 2)(x)
    windows = x.reshape([2, 2] * rank)
    axes = tuple(range(1, 2 * rank, 2))
    assert names() == [f"conv{rank}d/kernel", f"conv{rank}d/bias"]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run([convolved, *pooled, as_object])
    expected = [windows.sum(axes), windows.max(axes), windows.mean(axes), windows.max(axes)]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.reshape([2] * rank), theirs)


def test_separable_convolution():
    x = np.random.RandomState(0).randn(1, 4, 4, 2).astype("f")
    y = tf.layers.separable_conv2d(x, 3, 2, depth_multiplier=2)
    assert names() == [f"separable_conv2d/{name}" for name in ("depthwise_kernel", "pointwise_kernel", "bias")]
    depthwise, pointwise, _ = tf.global_variables()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found, d, p = session.run([y, depthwise, pointwise])
    channels = [
        sum(x[0, i : i + 3, j : j + 3, c] * d[i, j, c, m] for i in range(2) for j in range(2))
        for c in range(2)
        for m in range(2)
    ]
    np.testing.assert_allclose(found[0], np.stack(channels, -1) @ p[0, 0], rtol=1e-4, atol=1e-6)


def test_dtype_and_scope():
    with tf.Graph().as_default():
        layer = tf.compat.v1.layers.Dense(2, name="mine", dtype=tf.float64, _scope="place")
        assert layer([[1.0, 2.0]]).dtype == tf.float64
        assert [(v.name, v.dtype.base_dtype) for v in layer.variables] == [
            ("place/kernel:0", tf.float64), ("place/bias:0", tf.float64)
        ]  # fmt: skip
        assert (layer.name, layer.dtype) == ("mine", "float64")
        with pytest.raises(ValueError, match="float32"):
            layer(tf.ones([1, 2]))
