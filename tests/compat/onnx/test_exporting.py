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
            tf.roll(x, 1, 1), tf.roll(x, [1, -6], [0, 1]),
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


def test_groups_and_three_dimensions():
    grouped, deep, back = (tf.Variable(numbers(*s)) for s in ((3, 3, 2, 6), (2, 2, 2, 2, 3), (2, 2, 2, 4, 3)))
    line = tf.Variable(numbers(3, 2, 5))
    groups = tf.function(lambda x: tf.nn.conv2d(x, grouped, 1, "SAME"))
    check(groups, [tf.TensorSpec([None, 5, 5, 6])], numbers(2, 5, 5, 6))

    def volumes(x):
        y = tf.nn.conv3d(x, deep, [1] * 5, "SAME")
        y = tf.nn.max_pool3d(tf.nn.avg_pool3d(y, 2, 1, "VALID"), 2, 2, "SAME")
        return tf.nn.conv3d_transpose(y, back, [1, 4, 4, 4, 4], 2, "SAME")

    check(tf.function(volumes), [tf.TensorSpec([1, 5, 5, 5, 2])], numbers(1, 5, 5, 5, 2))
    dilated = tf.function(lambda x: tf.nn.convolution(x, line, padding="VALID", dilations=2))
    check(dilated, [tf.TensorSpec([None, 9, 2])], numbers(2, 9, 2))

    @tf.function
    def blocks(x):
        return tf.batch_to_space(tf.space_to_batch(x, [2, 3], [[1, 1], [0, 2]]) * 2.0, [2, 3], [[0, 1], [1, 0]])

    check(blocks, [tf.TensorSpec([None, 4, 4, 2])], numbers(2, 4, 4, 2))


@pytest.mark.parametrize("size", [(6, 8), (5, 7), (None, None)])
def test_transposed_convolutions_have_the_size_that_was_asked_for(size):
    filters = tf.Variable(numbers(3, 2, 4, 3))
    height, width = (6, 8) if size[0] is None else size

    def network(x):
        sizes = [tf.shape(x)[0], height, width, 4] if size[0] is None else [2, height, width, 4]
        return tf.nn.conv2d_transpose(x, filters, sizes, 2, "SAME")

    check(tf.function(network), [tf.TensorSpec([2, 3, 4, 3])], numbers(2, 3, 4, 3))


def test_slices_with_computed_bounds():
    def slices(x, i):
        return x[:i], x[i:], x[i], x[i, 1:], x[-i:, ::2], x[i - 2], x[::-1], x[i::-1]

    signature = [tf.TensorSpec([None, 4]), tf.TensorSpec([], tf.int32)]
    check(tf.function(slices), signature, numbers(5, 4), np.array(1, "int32"))


def test_counts_bounds_transforms_and_tables():
    words = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([4, 7], tf.int64))
    table = tf.lookup.StaticHashTable(words, -1)

    def many(x, ids):
        bounds = tf.searchsorted(tf.constant([-1.0, 0.0, 1.0]), x[0], "right")
        counts = tf.math.bincount(ids, minlength=5, maxlength=5, axis=-1)
        spectrum = tf.signal.rfft(x, [6])
        return bounds, counts, tf.abs(spectrum), tf.math.imag(spectrum), tf.abs(tf.signal.fft(tf.complex(x, x * 2)))

    ids = np.array([[1, 2, 2], [4, 0, 4]], "int32")
    check(tf.function(many), [tf.TensorSpec([None, 4]), tf.TensorSpec([None, 3], tf.int32)], numbers(2, 4), ids)
    found = tf.function(lambda keys: table.lookup(keys))
    check(found, [tf.TensorSpec([None], tf.string)], np.array(["b", "q", "a"], object))


def test_state_is_left_out_only_where_no_result_reads_it():
    pytest.importorskip("onnx")
    count, total = tf.Variable(0.0), tf.Variable(1.0)

    @tf.function
    def counted(x):
        count.assign_add(1.0)
        return x * total

    check(counted, [tf.TensorSpec([2])], numbers(2))

    @tf.function
    def changed(x):
        if x[0] > 0.0:
            total.assign_add(1.0)
        return x * total

    for function in (changed, tf.function(lambda x: count.assign_add(1.0) * x)):
        with pytest.raises(tf.errors.UnimplementedError, match="changes a variable that results depend on"):
            tf.experimental.to_onnx(function, [tf.TensorSpec([2])])


def test_complex_arithmetic_is_refused():
    pytest.importorskip("onnx")
    product = tf.function(lambda x: tf.abs(tf.signal.rfft(x) * tf.signal.rfft(x)))
    with pytest.raises(tf.errors.UnimplementedError, match=r"node 'Mul' \(Mul\) with complex numbers"):
        tf.experimental.to_onnx(product, [tf.TensorSpec([4])])


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
