"""Axes, sizes and diagonals that are refused, in the words that programs match on."""

import numpy as np
import pytest

import tapeflow as tf


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: tf.stack([[1, 2]], axis=3), ValueError, r"Argument `axis` = 3 not in range \[-2, 2\)"),
        (lambda: tf.unstack(tf.zeros([2, 3]), axis=2), ValueError, r"Argument `axis` = 2 not in range \[-2, 2\)"),
        (lambda: tf.unstack(tf.zeros([2, 3]), num=4), tf.errors.InvalidArgumentError, "axis 0 must equal 4"),
        (lambda: tf.unstack(tf.zeros([2]), 2, axis=5), tf.errors.InvalidArgumentError, r"axis = 5 not in \[-1, 1\)"),
        (
            lambda: tf.split([1, 2, 3], [-1, -2]),
            tf.errors.InvalidArgumentError,
            "size at index 1 must be >= 0. Got: -2",
        ),
        (lambda: tf.split([1, 2, 3], [1, 1]), tf.errors.InvalidArgumentError, "Determined shape must either match"),
        (lambda: tf.split([1, 2, 3], [1, 2], num=3), tf.errors.InvalidArgumentError, "same elements as outputs"),
        (lambda: tf.transpose([[1, 2]], [0, 2]), tf.errors.InvalidArgumentError, r"2 is out of range \[0 .. 2\)"),
        (lambda: tf.reshape([1.0], [2**40, 2**40]), tf.errors.InvalidArgumentError, "has too many elements"),
        (lambda: tf.linalg.diag_part([1, 2]), tf.errors.InvalidArgumentError, "input must be at least 2-dim"),
        (lambda: tf.linalg.set_diag([[1]], 1), tf.errors.InvalidArgumentError, "diagonal must be at least 1-dim"),
        (lambda: tf.linalg.set_diag([[1]], [1, 2]), tf.errors.InvalidArgumentError, "Either first dimensions of diag"),
        (lambda: tf.matmul([[1.0]], [1.0]), tf.errors.InvalidArgumentError, r"In\[1\] ndims must be >= 2"),
        (
            lambda: tf.raw_ops.UniqueV2(x=[1, 2], axis=[[0]]),
            tf.errors.InvalidArgumentError,
            "axis expects a 1D vector",
        ),
        (
            lambda: tf.raw_ops.ParallelConcat(values=[[[1]]], shape=[0, 1]),
            tf.errors.InvalidArgumentError,
            "0th dimension of value = 0",
        ),
    ],
)
def test_refused(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


def test_texts_at_positions():
    assert tf.scatter_nd([[0], [2]], tf.constant(["a", "b"]), [4]).numpy().tolist() == [b"a", b"", b"b", b""]
    assert tf.scatter_nd([[1], [1]], tf.constant(["a", "b"]), [2]).numpy().tolist() == [b"", b"ab"]
    kept = tf.scatter_nd([[0], [9]], tf.constant(["a", "b"]), [1], bad_indices_policy="IGNORE")
    assert kept.numpy().tolist() == [b"a"]


def test_repeated_labels_of_a_result_are_a_diagonal():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.raw_ops.Einsum(inputs=[x], equation="ab->aba")
        total = tf.reduce_sum(y * y)
    assert y.numpy().tolist() == [[[1, 0], [2, 0]], [[0, 3], [0, 4]]]
    np.testing.assert_allclose(tape.gradient(total, x), 2 * x)


def test_shapes_of_blocks_are_known_as_far_as_they_can_be():
    shapes = []

    @tf.function
    def move(x, pairs):
        shapes.append(tf.batch_to_space(x, [2, 2], [[0, 0], [0, 0]]).shape.as_list())
        shapes.append(tf.batch_to_space(x, [2, 2], pairs).shape.as_list())
        shapes.append(tf.space_to_batch(x, [2, 2], pairs).shape.as_list())
        return x

    pairs = tf.TensorSpec([2, 2], tf.int32)
    move.get_concrete_function(tf.TensorSpec([8, None, None, 3]), pairs)
    assert shapes == [[2, None, None, 3], [2, None, None, 3], [32, None, None, 3]]


def test_parts_along_an_axis_that_is_fed_have_a_number():
    with tf.Graph().as_default():
        axis = tf.compat.v1.placeholder(tf.int32, [])
        assert len(tf.split([1, 2, 3], tf.compat.v1.placeholder(tf.int32, [3]), axis=axis)) == 3
