"""Ragged tensors that are fed to sessions."""

import numpy as np

import tapeflow as tf

v1 = tf.compat.v1


def test_values_of_lists():
    value = v1.ragged.constant_value([[[1], []], [[2, 3]]], dtype=np.float32, row_splits_dtype="int32")
    assert value.to_list() == [[[1.0], []], [[2.0, 3.0]]]
    assert [splits.tolist() for splits in value.nested_row_splits] == [[0, 2, 3], [0, 1, 1, 3]]
    assert (value.dtype, value.row_splits.dtype) == (np.float32, np.int32)
    assert v1.ragged.constant_value([1, 2]).tolist() == [1, 2]


def test_a_placeholder_is_fed():
    with tf.Graph().as_default(), v1.Session() as session:
        rows = v1.ragged.placeholder(tf.float32, 1, [2])
        assert rows.shape.as_list() == [None, None, 2]
        total = tf.reduce_sum(rows.values)
        value = v1.ragged.constant_value([[[1.0, 2.0]], [], [[3.0, 4.0]]], inner_shape=(2,))
        assert session.run(total, {rows: value}) == 10.0


def test_a_test_case_compares_ragged_tensors_of_graphs():
    case = tf.test.TestCase()
    with tf.Graph().as_default():
        rows = tf.RaggedTensor.from_row_splits(tf.constant([1, 2, 3]), tf.constant([0, 2, 3], tf.int64))
        case.assertAllEqual(rows, [[1, 2], [3]])
        case.assertAllClose(rows, [[1, 2], [3]])
    case.assertAllEqual(v1.ragged.constant_value([[1], [2, 3]]), [[1], [2, 3]])
