"""ONNX models of functions: the numbers are those of the function. They run where the optional package onnx is."""

import sys

import numpy as np
import pytest

import tapeflow as tf


def numbers(*shape):
    return np.random.RandomState(0).randn(*shape).astype("float32")


def run(model, *arrays):
    """The outputs of a model, by onnxruntime or by the reference that onnx brings."""
    onnx = pytest.importorskip("onnx")
    onnx.checker.check_model(model)
    names = [value.name for value in model.graph.input]
    try:
        import onnxruntime
    except ImportError:
        from onnx.reference import ReferenceEvaluator

        return ReferenceEvaluator(model).run(None, dict(zip(names, arrays)))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, arrays)))


def check(function, signature, *arrays):
    pytest.importorskip("onnx")
    found = run(tf.experimental.to_onnx(function, signature), *arrays)
    expected = tf.nest.flatten(function(*map(tf.constant, arrays)))
    for y, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-5)


def test_operations():
    def many(x):
        return [
            x[:, 1:, None], x[..., 0], x[::-1], x[-1], tf.reduce_mean(x, 0), tf.concat([x, x], 1), tf.cumsum(x, 1),
            tf.one_hot(tf.argmax(x, 1), 4), tf.where(x > 0, x, 0.0), tf.tile(x, [1, 2]), tf.nn.l2_normalize(x, 1),
            tf.math.top_k(x, 2)[0], tf.pad(x, [[1, 0], [0, 2]]), tf.math.floormod(x, 0.7), tf.nn.softmax(x),
            tf.reshape(x, [tf.shape(x)[0], 2, 2]), tf.einsum("ij,kj->ik", x, x), tf.linalg.band_part(x, 1, 1),
        ]  # fmt: skip

    check(tf.function(many), [tf.TensorSpec([None, 4])], numbers(3, 4))


def test_convolutions_and_pools():
    kernel, depthwise = tf.Variable(numbers(3, 3, 2, 4)), tf.Variable(numbers(3, 3, 4, 2))

    def network(x):
        y = tf.nn.relu6(tf.nn.conv2d(x, kernel, 2, "SAME"))
        y = tf.nn.depthwise_conv2d(y, depthwise, [1, 1, 1, 1], "VALID")
        y = tf.nn.avg_pool2d(tf.nn.max_pool2d(y, 2, 1, "SAME"), 2, 2, "VALID")
        return tf.reduce_sum(y, [1, 2])

    check(tf.function(network), [tf.TensorSpec([None, 12, 12, 2])], numbers(2, 12, 12, 2))


def test_loops_and_branches():
    v = tf.Variable(2.0)

    @tf.function
    def loop(x, n):
        for _ in tf.range(n):
            x = tf.sin(x) * v
        return x if tf.reduce_sum(x) > 0 else -x

    signature = [tf.TensorSpec([None]), tf.TensorSpec([], tf.int32)]
    check(loop, signature, numbers(3), np.array(3, "int32"))
    check(loop, signature, -numbers(3), np.array(2, "int32"))


def test_a_file_and_refusals(tmp_path):
    pytest.importorskip("onnx")
    path = tmp_path / "model.onnx"
    model = tf.experimental.to_onnx(tf.function(lambda x: x + 1), [tf.TensorSpec([2])], path)
    assert path.read_bytes() == model.SerializeToString()
    with pytest.raises(tf.errors.UnimplementedError, match=r"node 'Digamma' \(Digamma\) cannot be written as ONNX"):
        tf.experimental.to_onnx(tf.function(tf.math.digamma), [tf.TensorSpec([2])])
    with pytest.raises(ValueError, match="give `input_signature`"):
        tf.experimental.to_onnx(lambda x: x)


def test_without_onnx_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(tf.errors.UnimplementedError, match=r"pip install tapeflow\[onnx\]"):
        tf.experimental.to_onnx(tf.function(tf.sin), [tf.TensorSpec([])])
