"""Ragged tensors from nested lists: which lists are one, and what is said of the others."""

import numpy as np
import pytest

import tapeflow as tf


@pytest.mark.parametrize(
    ("pylist", "options", "shape"),
    [
        ([], {}, [0]),
        ([], {"ragged_rank": 1}, [0, None]),
        ([], {"inner_shape": (0, 3)}, [0, 3]),
        ([[]], {"inner_shape": (1, 0)}, [1, 0]),
        ([[1, 2], [3]], {}, [2, None]),
        ([[[1, 2], [3, 4]], [[5, 6]]], {"inner_shape": (2,)}, [2, None, 2]),
        ([[[1, 2], [3, 4]], [[5, 6]]], {"ragged_rank": 1}, [2, None, 2]),
        ([[np.array([1, 2])], [np.array([3, 4]), np.array([5, 6])]], {"ragged_rank": 1}, [2, None, 2]),
        (5, {}, []),
    ],
)
def test_shapes(pylist, options, shape):
    assert tf.ragged.constant(pylist, dtype=tf.int32, **options).shape.as_list() == shape


@pytest.mark.parametrize(
    ("pylist", "options", "message"),
    [
        ([[1], [[2]]], {}, "all scalar values must have the same nesting depth"),
        ([[1], [[]]], {}, "empty list nesting is greater than scalar value nesting"),
        ([1, 2], {"ragged_rank": 1}, "ragged_rank=1 requires scalar value depth greater than 1"),
        (5, {"ragged_rank": 1}, "incompatible with ragged_rank=1"),
        (5, {"inner_shape": (1,)}, r"incompatible with dim\(inner_shape\)=1"),
        ([[1]], {"ragged_rank": -1}, "must be nonnegative"),
        ([[[1], [2, 3]]], {"ragged_rank": 1}, "inner values have inconsistent shape"),
    ],
)
def test_refused_lists(pylist, options, message):
    for make in (tf.ragged.constant, tf.compat.v1.ragged.constant_value):
        with pytest.raises(ValueError, match=message):
            make(pylist, **options)
    with pytest.raises(TypeError, match="may not be a RaggedTensor"):
        tf.ragged.constant(tf.ragged.constant([[1]]))


@pytest.mark.parametrize(
    ("make", "parts", "wrong"),
    [
        (tf.RaggedTensor.from_row_splits, [0, 2, 2, 3], [0, 2, 2, 4]),
        (tf.RaggedTensor.from_row_lengths, [2, 0, 1], [2, 2, -1]),
        (tf.RaggedTensor.from_value_rowids, [0, 0, 2], [0, 2, 1]),
        (tf.RaggedTensor.from_row_starts, [0, 2, 2], [1, 2, 2]),
        (tf.RaggedTensor.from_row_limits, [2, 2, 3], [2, 1, 3]),
    ],
)
def test_parts_that_are_known_when_the_graph_runs(make, parts, wrong):
    spec = tf.TensorSpec([None], tf.int64)
    values = tf.constant([1.0, 2.0, 3.0])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32), spec])
    def square_sums(x, parts):
        rows = make(x, parts)
        return rows, tf.reduce_sum(rows * rows, axis=1)

    with tf.GradientTape() as tape:
        tape.watch(values)
        rows, sums = square_sums(values, tf.constant(parts, tf.int64))
    assert rows.to_list() == [[1.0, 2.0], [], [3.0]]
    assert sums.numpy().tolist() == [5.0, 0.0, 9.0]
    assert tape.gradient(sums, values).numpy().tolist() == [2.0, 4.0, 6.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="do not form a valid"):
        square_sums(values, tf.constant(wrong, tf.int64))


def test_rows_of_one_length_that_is_known_when_the_graph_runs():
    rows = tf.function(tf.RaggedTensor.from_uniform_row_length)(tf.range(4), tf.constant(2))
    assert rows.to_list() == [[0, 1], [2, 3]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="do not form a valid"):
        tf.function(tf.RaggedTensor.from_uniform_row_length)(tf.range(3), tf.constant(2))


NESTED = [[[1.0, 2.0], [3.0]], [], [[4.0]]]


@pytest.mark.parametrize("shape", [None, [None, 3, None], [2, None, 1], [4, 1, 3]])
def test_dense_tensors_of_nested_rows_while_tracing(shape):
    rows = tf.ragged.constant(NESTED, ragged_rank=2)
    expected = rows.to_tensor(-1.0, shape=shape).numpy()

    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None, None], tf.float32)])
    def dense(rows):
        return rows.to_tensor(-1.0, shape=shape)

    np.testing.assert_array_equal(dense(rows), expected)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        constant = tf.ragged.constant(NESTED, ragged_rank=2)
        np.testing.assert_array_equal(session.run(constant.to_tensor(-1.0, shape=shape)), expected)


def test_no_rows_while_tracing():
    dense = tf.function(lambda rows: rows.to_tensor(), input_signature=[tf.RaggedTensorSpec([None, None], tf.float32)])
    assert dense(tf.RaggedTensor.from_row_splits(tf.zeros([0]), [0])).shape == [0, 0]


def test_rows_of_values_in_a_graph_of_tensorflow_1():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        rows = tf.RaggedTensor.from_value_rowids([1, 2, 3], [0, 0, 2])
        assert session.run(rows.to_tensor()).tolist() == [[1, 2], [0, 0], [3, 0]]
