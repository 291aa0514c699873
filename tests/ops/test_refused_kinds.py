"""Kinds of arguments that are refused, with the error classes that programs catch."""

import numpy as np
import pytest

import tapeflow as tf

_ROW = tf.sparse.SparseTensor([[0, 1]], [2.0], [2, 3])
_IMAGE = np.ones((1, 4, 4, 1), np.float32)
_INVALID = tf.errors.InvalidArgumentError


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: tf.image.convert_image_dtype([True], tf.float32), AttributeError, "image dtype must be either"),
        (
            lambda: tf.image.crop_and_resize(_IMAGE, [[0.0, 0.0, 1.0, 1.0]], [1], [2, 2]),
            tf.errors.OutOfRangeError,
            "box_index has values outside",
        ),
        (
            lambda: tf.image.draw_bounding_boxes(_IMAGE, [[[0.0, 0.0, 1.0, 1.0]]], []),
            _INVALID,
            "colors must be a 2-D matrix",
        ),
        (lambda: tf.image.rgb_to_hsv([1.0, 2.0]), tf.errors.FailedPreconditionError, "input must have 3 channels"),
        (lambda: tf.image.hsv_to_rgb([1.0, 2.0]), tf.errors.FailedPreconditionError, "input only has 2 channels"),
        (lambda: tf.image.rot90(_IMAGE, k=1.5), TypeError, "Cannot convert 1.5"),
        (lambda: tf.image.random_crop(_IMAGE[0], [2, 5, 1]), _INVALID, "Need value.shape >= size"),
        (lambda: tf.strings.length("a", unit="foo"), _INVALID, "is not in the list of allowed values"),
        (lambda: tf.strings.reduce_join([["a"]], axis=2), tf.errors.OutOfRangeError, "Invalid reduction dimension"),
        (lambda: tf.nn.dropout([1.0], "a"), ValueError, "`rate` must be a scalar"),
        (lambda: tf.nn.dropout([1.0], [0.5]), ValueError, "`rate` must be a scalar"),
        (lambda: tf.nn.l2_loss([1, 2]), _INVALID, "is not in the list of allowed values"),
        (lambda: tf.nn.max_pool2d(_IMAGE, [1, 2, 2, 2], 1, "VALID"), tf.errors.UnimplementedError, "pooling"),
        (lambda: tf.eye(2.5), TypeError, "must be positive integer values"),
        (
            lambda: tf.nn.convolution(_IMAGE, np.ones((2, 2, 1, 1), np.float32), dilations=0),
            ValueError,
            "must be positive",
        ),
        (lambda: tf.sparse.cross([["a"], ["b"]]), TypeError, "All inputs must be Tensor or SparseTensor"),
        (lambda: tf.sparse.cross_hashed([[["a"]]], num_buckets=2), TypeError, "All inputs must be SparseTensors"),
        (lambda: tf.sparse.expand_dims(_ROW, 5), _INVALID, "out of range"),
        (lambda: tf.sparse.slice(_ROW, [0], [1]), _INVALID, "Expected start to be a vector of length 2"),
        (lambda: tf.sparse.transpose(_ROW, [0]), ValueError, "Dimensions 1 and 2 are not compatible"),
        (lambda: tf.sets.union([[1.0]], [[2.0]]), TypeError, "invalid dtype"),
        (lambda: tf.ragged.boolean_mask([[1, 2], [3, 4]], [[True]]), ValueError, "are incompatible"),
        (
            lambda: tf.ragged.map_flat_values(tf.add, tf.ragged.constant([[1]]), tf.ragged.constant([[1, 2]])),
            ValueError,
            "same outer-dimension size",
        ),
        (lambda: tf.ragged.range([0, 1], [3]), _INVALID, "must have the same shape"),
        (lambda: tf.RaggedTensor.from_value_rowids([1, 2], [0, 1], nrows=1), ValueError, "Expected nrows >= value_row"),
        (lambda: tf.expand_dims(tf.ragged.constant([[1], [2, 3]]), 5), ValueError, "axis=5 out of bounds"),
    ],
)
def test_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_no_texts_are_joined_to_an_empty_one():
    assert tf.strings.join([]).numpy() == b""


def test_numbers_that_are_not_finite_are_padded_with_blanks():
    texts = tf.strings.as_string([1.5, np.nan, -np.inf], precision=1, width=6, fill="0").numpy().tolist()
    assert texts == [b"0001.5", b"   nan", b"  -inf"]


def test_depth_is_pooled_with_one_number_for_strides():
    x = np.arange(8.0).reshape(1, 2, 2, 2).astype(np.float32)
    assert tf.nn.max_pool2d(x, [1, 1, 1, 2], [1, 1, 1, 2], "VALID").shape == [1, 2, 2, 1]


def test_patches_and_images_that_no_memory_holds_are_refused_before_any_is_taken():
    with pytest.raises(_INVALID, match="Output size would overflow"):
        tf.image.extract_patches(_IMAGE, [1, 2**31 - 1, 2**31 - 1, 1], [1] * 4, [1] * 4, "SAME")
    with pytest.raises(_INVALID, match="too many elements"):
        tf.image.resize(np.ones((2, 2, 2, 2)), [1801181592, 1846789676], antialias=True)
