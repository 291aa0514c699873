"""Raw operations on quantized numbers, and others that graphs of TensorFlow hold."""

import numpy as np

import tapeflow as tf


def test_quantized_numbers_come_back():
    x = tf.constant([-1.0, 0.0, 0.5, 1.0])
    y = tf.raw_ops.QuantizeV2(input=x, min_range=-1.0, max_range=1.0, T=tf.quint8)
    np.testing.assert_array_equal(y.output, [0, 128, 191, 255])
    back = tf.raw_ops.Dequantize(input=y.output, min_range=y.output_min, max_range=y.output_max)
    np.testing.assert_allclose(back, x, atol=0.005)


def test_products_of_operands_with_many_zeros():
    a, b = tf.constant([[1.0, 0.0], [0.0, 2.0]]), tf.constant([[1.0, 2.0], [3.0, 4.0]])
    y = tf.raw_ops.SparseMatMul(a=a, b=b, transpose_b=True, a_is_sparse=True)
    np.testing.assert_array_equal(y, [[1, 3], [4, 8]])


def test_max_pool_with_explicit_paddings():
    x = tf.reshape(tf.range(16.0), [1, 4, 4, 1])
    pads = [0, 0, 1, 0, 0, 1, 0, 0]
    y = tf.raw_ops.MaxPool(
        input=x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="EXPLICIT", explicit_paddings=pads
    )
    np.testing.assert_array_equal(y, tf.nn.max_pool2d(x, 2, 2, [[0, 0], [1, 0], [0, 1], [0, 0]]))


def test_the_number_of_parts_of_texts_is_unknown_while_tracing():
    @tf.function(input_signature=[tf.TensorSpec([2], tf.string)])
    def split(text):
        return tf.cumsum(tf.ones_like(tf.raw_ops.StringSplitV2(input=text, sep=",").indices[:, 0]))

    np.testing.assert_array_equal(split(tf.constant(["a,b", ""])), [1, 2, 3])


def test_boxes_are_suppressed_in_graphs():
    boxes = tf.constant([[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 2.0, 1.0, 3.0]])

    @tf.function
    def suppress(scores, padded):
        return tf.raw_ops.NonMaxSuppressionV5(
            boxes=boxes,
            scores=scores,
            max_output_size=3,
            iou_threshold=0.5,
            score_threshold=0.0,
            soft_nms_sigma=0.0,
            pad_to_max_output_size=padded,
        )

    assert suppress(tf.constant([0.9, 0.75, 0.6]), False).selected_indices.numpy().tolist() == [0, 2]
    chosen, _, count = suppress(tf.constant([0.9, 0.75, 0.6]), True)
    assert chosen.numpy().tolist() == [0, 2, 0]
    assert int(count) == 2


def test_counts_have_the_dtype_of_the_weights():
    y = tf.raw_ops.DenseCountSparseOutput(
        values=tf.constant([1, 1, 2]), weights=tf.constant([], tf.int32), binary_output=False
    )
    assert y.output_values.dtype == tf.int32
