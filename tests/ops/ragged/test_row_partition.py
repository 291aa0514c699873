"""Rows of values: `tf.experimental.RowPartition`, and ragged tensors made of sparse ones."""

import numpy as np
import pytest

import tapeflow as tf

RowPartition = tf.experimental.RowPartition


@pytest.mark.parametrize(
    "rows",
    [
        RowPartition.from_row_lengths([2, 0, 3]),
        RowPartition.from_row_splits([0, 2, 2, 5]),
        RowPartition.from_row_starts([0, 2, 2], nvals=5),
        RowPartition.from_row_limits([2, 2, 5]),
        RowPartition.from_value_rowids([0, 0, 2, 2, 2]),
    ],
    ids=["lengths", "splits", "starts", "limits", "rowids"],
)
def test_all_forms_are_the_same(rows):
    assert rows.row_splits().numpy().tolist() == [0, 2, 2, 5]
    assert rows.value_rowids().numpy().tolist() == [0, 0, 2, 2, 2]
    assert rows.row_lengths().numpy().tolist() == [2, 0, 3]
    assert rows.offsets_in_rows().numpy().tolist() == [0, 1, 0, 1, 2]
    assert (int(rows.nrows()), int(rows.nvals()), rows.static_nrows, rows.static_nvals) == (3, 5, 3, 5)
    assert rows.dtype == tf.int64 and rows.with_dtype(tf.int32).dtype == tf.int32
    assert not rows.is_uniform() and rows.static_uniform_row_length is None


def test_rows_of_one_length():
    rows = RowPartition.from_uniform_row_length(2, nvals=6)
    assert rows.row_splits().numpy().tolist() == [0, 2, 4, 6]
    assert rows.is_uniform() and rows.static_uniform_row_length == 2
    assert RowPartition.from_uniform_row_length(3, nrows=2).row_splits().numpy().tolist() == [0, 3, 6]
    with pytest.raises(ValueError, match="nvals or nrows"):
        RowPartition.from_uniform_row_length(3)


def test_rows_are_numbered_with_integers():
    with pytest.raises(ValueError, match="int32 or int64"):
        RowPartition.from_row_lengths([1.0])


MATRIX = [[1, 2], [0, 0], [3, 0]]


def test_from_sparse_eagerly_in_functions_and_in_graphs():
    expected = [[1, 2], [], [3]]
    assert tf.RaggedTensor.from_sparse(tf.sparse.from_dense(MATRIX)).to_list() == expected
    traced = tf.function(tf.RaggedTensor.from_sparse)
    assert traced(tf.sparse.from_dense(MATRIX)).to_list() == expected
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        found = session.run(tf.RaggedTensor.from_sparse(tf.sparse.from_dense(MATRIX)))
        assert found.to_list() == expected


def test_from_sparse_refuses_holes():
    holes = tf.sparse.from_dense([[0, 2]])
    for run in (tf.RaggedTensor.from_sparse, tf.function(tf.RaggedTensor.from_sparse)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="not right-ragged"):
            run(holes)
    with pytest.raises(ValueError, match="rank"):
        tf.RaggedTensor.from_sparse(tf.sparse.from_dense([1, 2]))


def test_resizing_images_of_different_sizes():
    images = tf.ragged.stack([tf.ones([3, 4, 3]), 2.0 * tf.ones([2, 2, 3])])
    resized = tf.image.resize(images, [2, 2])
    np.testing.assert_allclose(resized, np.stack([np.ones((2, 2, 3)), 2 * np.ones((2, 2, 3))]))
    with pytest.raises(ValueError, match="preserve_aspect_ratio"):
        tf.image.resize(images, [2, 2], preserve_aspect_ratio=True)
