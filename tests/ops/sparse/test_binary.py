"""Sums of sparse and dense tensors."""

import numpy as np

import tapeflow as tf


def test_a_sparse_tensor_of_unknown_shape_and_a_dense_one():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        given = tf.compat.v1.sparse_placeholder(tf.float32)
        value = tf.compat.v1.SparseTensorValue([[0, 1]], [2.0], [2, 3])
        found = session.run(tf.sparse.add(given, tf.ones([2, 3])), {given: value})
        assert found.tolist() == [[1.0, 3.0, 1.0], [1.0, 1.0, 1.0]]


def test_the_threshold_is_for_sums_of_two_elements():
    a = tf.SparseTensor([[0], [1], [2]], [0.1, 0.7, -0.2], [5])
    b = tf.SparseTensor([[2], [3], [4]], [0.1, 0.2, -0.9], [5])
    np.testing.assert_array_equal(tf.sparse.add(a, b, threshold=0.5).indices[:, 0], [0, 1, 3, 4])
    np.testing.assert_array_equal(tf.sparse.add(a, b, threshold=0.05).indices[:, 0], [0, 1, 2, 3, 4])
