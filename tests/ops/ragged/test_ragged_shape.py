"""Shapes of ragged tensors, their text, and gathering in ragged rows."""

import numpy as np
import pytest

import tapeflow as tf


class TestShape:
    def test_lengths_and_single_dimensions(self):
        shape = tf.shape(tf.ragged.constant([[[1, 2], [3]], [[4]]]))
        assert repr(shape) == "<DynamicRaggedShape lengths=[2, (2, 1), (2, 1, 1)] num_row_partitions=2>"
        assert shape.rank == 3 and shape.inner_rank == 1 and shape.num_row_partitions == 2
        assert shape[0] == 2 and shape[0].dtype == tf.int32
        assert shape.is_uniform(0) and not shape.is_uniform(1)
        with pytest.raises(ValueError, match="Index 1 is not uniform"):
            shape[1]
        with pytest.raises(ValueError, match="All relevant dimensions must be uniform"):
            shape[:2]
        with pytest.raises(TypeError, match="has no len"):
            len(shape)

    def test_uniform_dimensions(self):
        inner = tf.ragged.constant([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]], ragged_rank=1)
        assert tf.shape(inner)[2] == 2 and tf.shape(inner).inner_shape.numpy().tolist() == [3, 2]
        outer = tf.RaggedTensor.from_uniform_row_length(tf.ragged.constant([[1], [2, 3]]), 2)
        assert tf.shape(outer).static_lengths() == [1, 2, (1, 2)] and tf.shape(outer)[1] == 2
        assert tf.shape(outer, out_type=tf.int64)[0].dtype == tf.int64
        assert repr(tf.shape(outer).row_partitions[0]) == "tf.RowPartition(nrows=1, uniform_row_length=2)"

    def test_equal_shapes(self):
        x = tf.ragged.constant([[1], [2, 3]])
        assert tf.shape(x) == tf.shape(x + 1)
        assert tf.shape(x) != tf.shape(tf.ragged.constant([[1, 2], [3]]))

    def test_tensors_of_such_a_shape(self):
        shape = tf.shape(tf.ragged.constant([[1], [2, 3]]))
        assert tf.zeros(shape).to_list() == [[0.0], [0.0, 0.0]]
        assert tf.ones(shape, tf.int32).to_list() == [[1], [1, 1]]
        assert tf.fill(shape, 7).to_list() == [[7], [7, 7]]
        assert tf.reshape(tf.constant([4, 5, 6]), shape).to_list() == [[4], [5, 6]]
        assert tf.broadcast_to(tf.constant([[5], [6]]), shape).to_list() == [[5], [6, 6]]

    def test_in_a_graph(self):
        @tf.function
        def rows(x):
            assert repr(tf.shape(x)).endswith("None] num_row_partitions=1>")
            return tf.shape(x)[0]

        assert rows(tf.ragged.constant([[1], [2, 3]])) == 2


class TestText:
    def test_long_rows_are_broken_as_numpy_breaks_them(self):
        assert repr(tf.ragged.constant([[1.0, 2.5], [3.0]])) == "<tf.RaggedTensor [[1.0, 2.5], [3.0]]>"
        assert repr(tf.ragged.constant([["a"], []])) == "<tf.RaggedTensor [[b'a'], []]>"
        assert repr(tf.ragged.constant([[1, 2], [3, 4]])) == "<tf.RaggedTensor [[1, 2],\n [3, 4]]>"
        assert "0, 1, 2, ..., 1997, 1998, 1999" in repr(tf.ragged.constant([list(range(2000)), [1]]))

    def test_in_a_graph(self):
        texts = []
        tf.function(lambda x: texts.append(repr(x)) or x)(tf.ragged.constant([[1], [2, 3]]))
        assert texts[0].startswith("tf.RaggedTensor(values=Tensor(")


class TestGather:
    @pytest.mark.parametrize("axis", [0, 1, 2, -1])
    def test_rows_along_any_axis(self, axis):
        x = np.arange(60.0).reshape(3, 4, 5)
        indices = tf.ragged.constant([[2], [0, 1]])
        found = tf.gather(tf.constant(x), indices, axis=axis)
        first, second = np.take(x, [2], axis), np.take(x, [0, 1], axis)
        axis %= 3
        assert found.shape.as_list() == [*x.shape[:axis], 2, None, *x.shape[axis + 1 :]]
        np.testing.assert_array_equal(
            found.flat_values,
            np.concatenate(
                [part.reshape(-1, *x.shape[axis + 1 :]) for place in np.ndindex(*x.shape[:axis])
                 for part in (first[place], second[place])]
            ),
        )  # fmt: skip


class TestFromLengths:
    def test_partitions_reach_to_the_last_ragged_dimension(self):
        shape = tf.experimental.DynamicRaggedShape.from_lengths([4, (2, 1, 0, 8), 12])
        assert repr(shape) == "<DynamicRaggedShape lengths=[4, (2, 1, 0, 8), 12] num_row_partitions=1>"
        assert shape.inner_shape.numpy().tolist() == [11, 12] and shape.dtype == tf.int64
        assert tf.zeros(shape).bounding_shape().numpy().tolist() == [4, 8, 12]

    def test_uniform_dimensions(self):
        make = tf.experimental.DynamicRaggedShape.from_lengths
        assert make([2, 3]).num_row_partitions == 0 and make([2, 3]).inner_shape.numpy().tolist() == [2, 3]
        shape = make([2, 2, (1, 0, 2, 1)], dtype=tf.int32)
        assert shape.static_lengths() == [2, 2, (1, 0, 2, 1)] and shape.dtype == tf.int32
        wider = make([2, 3, 5], num_row_partitions=1)
        assert wider.num_row_partitions == 1 and wider.inner_shape.numpy().tolist() == [6, 5]
        assert make([]).rank == 0

    @pytest.mark.parametrize(
        ("lengths", "count", "message"),
        [
            ((2, 3), None, "lengths should be a list"),
            ([2, "a"], None, "element of lengths should be int or tuple of ints"),
            ([2, 3], 2, "num_row_partitions should be less than"),
            ([2, (1, 2)], 0, "num_row_partitions should be at least 1"),
            ([2, (1, 2, 3)], None, "lengths for 3 rows"),
        ],
    )
    def test_errors(self, lengths, count, message):
        with pytest.raises(ValueError, match=message):
            tf.experimental.DynamicRaggedShape.from_lengths(lengths, count)
