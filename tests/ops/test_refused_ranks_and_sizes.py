"""Ranks, sizes and borders that are refused instead of being taken for something else."""

import numpy as np
import pytest

import tapeflow as tf

raw = tf.raw_ops
_ONES = [1] * 4


def _pool(output, dy):
    return raw.MaxPoolGrad(
        orig_input=tf.ones(_ONES), orig_output=output, grad=dy, ksize=_ONES, strides=_ONES, padding="VALID"
    )


def _grams(splits):
    return raw.StringNGrams(
        data=["a", "b", "c"],
        data_splits=splits,
        separator="",
        ngram_widths=[2],
        left_pad="",
        right_pad="",
        pad_width=0,
        preserve_short_sequences=False,
    )


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: tf.reshape([1, 2], [[2]]), tf.errors.InvalidArgumentError, "input must be 1-D, not"),
        (lambda: tf.transpose([[1, 2]], [[0, 1]]), tf.errors.InvalidArgumentError, "must be at most rank 1"),
        (lambda: tf.fill([[1], [2]], 1.0), tf.errors.InvalidArgumentError, r"dims must represent a vector"),
        (lambda: tf.fill([2], [1.0, 2.0]), tf.errors.InvalidArgumentError, "value must represent a scalar"),
        (lambda: raw.Bucketize(input=[1], boundaries=[3.0, 1.0]), tf.errors.InvalidArgumentError, "Expected sorted"),
        (lambda: _pool(tf.ones([1, 1, 1, 2]), tf.ones(_ONES)), tf.errors.InvalidArgumentError, "Expected orig_output"),
        (lambda: _pool(tf.ones(_ONES), tf.ones([1, 1, 1, 2])), tf.errors.InvalidArgumentError, "Expected grad shape"),
        (lambda: tf.image.rot90(tf.zeros([0, 2, 3])), ValueError, "inner 3 dims of 'image.shape' must be > 0"),
        (lambda: tf.image.pad_to_bounding_box(tf.zeros([0, 2, 3]), 0, 0, 5, 5), ValueError, "must be > 0"),
        (
            lambda: tf.image.non_max_suppression([[1.0, 1.0, 2.0, 2.0]], [1.0], 2**31),
            tf.errors.InvalidArgumentError,
            "output size must be non-negative",
        ),
        (lambda: tf.one_hot(tf.ragged.constant([[1]]), 4, axis=1), ValueError, r"axis \(1\) must be greater than"),
        (lambda: tf.squeeze(tf.ragged.constant([[[1]]]), tf.constant([0])), TypeError, "must be a list or tuple"),
        (lambda: _grams([-1, 3]), tf.errors.InvalidArgumentError, "First split value must be 0, got -1"),
        (lambda: _grams([0, 8]), tf.errors.InvalidArgumentError, r"Invalid split value 8, must be in \[0, 3\]"),
        (lambda: _grams([0, 2]), tf.errors.InvalidArgumentError, "Last split value must be data size"),
        (
            lambda: tf.signal.inverse_stft(np.zeros((1, 2, 1), np.complex64), 0, 1),
            ValueError,
            "must be a positive integer",
        ),
        (
            lambda: tf.sparse.split(tf.sparse.SparseTensor([[0, 9]], [1.0], [3, 5]), 2, 1),
            tf.errors.InvalidArgumentError,
            "is out of bounds",
        ),
        (
            lambda: tf.sparse.softmax(tf.sparse.SparseTensor([[1, 1]], [1.0], [-1, 1])),
            tf.errors.InvalidArgumentError,
            "Expected shape dimensions to be non-negative",
        ),
    ],
)
def test_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize(
    ("borders", "options", "words"),
    [
        ((0.0, 1.0), {"axis": 10}, "Shape must be at least rank 11 but is rank 1"),
        ((0.0, [1.0]), {"range_given": True}, "input_max must be a scalar"),
        ((0.0, [1.0, 2.0]), {"range_given": True, "axis": 0}, "Shape must be rank 1"),
        (([0.0], [1.0]), {"range_given": True, "axis": 0}, "has incorrect size, expected 2 was"),
    ],
)
def test_borders_of_quantized_slices(borders, options, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        tf.quantization.quantize_and_dequantize_v2([2.5, 2.5], *borders, **options)


def test_borders_in_gradients_of_quantization():
    x = tf.constant([[1.0], [2.0]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="`max` must be rank 0"):
        tf.quantization.fake_quant_with_min_max_vars_gradient(x, x, 0.0, [1.0])
    by_channel = tf.quantization.fake_quant_with_min_max_vars_per_channel_gradient
    with pytest.raises(tf.errors.InvalidArgumentError, match="must be at least rank 1"):
        by_channel(1.0, 1.0, [0.0], [1.0])
    with pytest.raises(tf.errors.InvalidArgumentError, match="min has incorrect size"):
        by_channel(x, x, [0.0, 1.0], [1.0])


def test_one_hot_of_ragged_numbers_counts_axes_from_the_flat_values():
    x = tf.ragged.constant([[[1, 0]], [[2, 1], [0, 0]]], ragged_rank=1)
    first, last = tf.one_hot(x, 3, axis=2), tf.one_hot(x, 3)
    assert first.flat_values.shape == [3, 3, 2] and last.flat_values.shape == [3, 2, 3]
    np.testing.assert_array_equal(tf.transpose(first.flat_values, [0, 2, 1]), last.flat_values)
