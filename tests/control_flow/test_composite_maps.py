"""`tf.map_fn` over ragged and sparse tensors, eagerly and in functions."""

import pytest

import tapeflow as tf

ROWS = tf.ragged.constant([[1, 2], [3]])
BOTH = pytest.mark.parametrize("wrap", [lambda program: program, tf.function], ids=["eager", "function"])


@BOTH
def test_ragged_rows(wrap):
    sums = wrap(lambda x: tf.map_fn(tf.reduce_sum, x, fn_output_signature=tf.int32))(ROWS)
    assert sums.numpy().tolist() == [3, 3]


@BOTH
def test_ragged_results_of_ragged_rows(wrap):
    assert wrap(lambda x: tf.map_fn(lambda row: row * 2, x))(ROWS).to_list() == [[2, 4], [6]]


@BOTH
def test_results_of_several_lengths(wrap):
    kind = tf.RaggedTensorSpec([None], tf.int32)
    result = wrap(lambda n: tf.map_fn(tf.range, n, fn_output_signature=kind))(tf.constant([2, 0, 3]))
    assert result.to_list() == [[0, 1], [], [0, 1, 2]]


@BOTH
def test_ragged_beside_dense(wrap):
    def program(x, y):
        return tf.map_fn(
            lambda pair: (tf.reduce_sum(pair[0]) + pair[1], pair[0]),
            (x, y),
            fn_output_signature=(tf.int32, tf.RaggedTensorSpec([None], tf.int32)),
        )

    total, rows = wrap(program)(ROWS, tf.constant([10, 20]))
    assert (total.numpy().tolist(), rows.to_list()) == ([13, 23], [[1, 2], [3]])


@BOTH
def test_gradient(wrap):
    x = tf.constant([1.0, 2.0, 3.0])
    splits = tf.constant([0, 2, 3], tf.int64)

    def program(x):
        rows = tf.RaggedTensor.from_row_splits(x, splits, validate=False)
        return tf.map_fn(lambda row: tf.reduce_sum(row**2), rows, fn_output_signature=tf.float32)

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = wrap(program)(x)
    assert tape.gradient(y, x).numpy().tolist() == [2, 4, 6]


def test_sparse_rows():
    rows = tf.sparse.from_dense([[1, 2], [0, 3]])
    assert tf.map_fn(tf.sparse.reduce_sum, rows, fn_output_signature=tf.int32).numpy().tolist() == [3, 3]


def test_dtype_must_be_promised():
    with pytest.raises(tf.errors.InvalidArgumentError, match="TensorArray dtype is int32"):
        tf.map_fn(lambda row: tf.cast(row, tf.float32), ROWS)
