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


@BOTH
def test_ragged_rows_of_ragged_results(wrap):
    nested = tf.ragged.constant([[[1], [2, 3]], [], [[4, 5, 6]]])
    assert wrap(lambda x: tf.map_fn(lambda row: row * 2, x))(nested).to_list() == [[[2], [4, 6]], [], [[8, 10, 12]]]
    signature = tf.RaggedTensorSpec([None, None], tf.int32)
    pairs = wrap(
        lambda counts: tf.map_fn(
            lambda n: tf.RaggedTensor.from_tensor(tf.reshape(tf.range(2 * n), [n, 2])),
            counts,
            fn_output_signature=signature,
        )
    )
    assert pairs(tf.constant([1, 2])).to_list() == [[[0, 1]], [[0, 1], [2, 3]]]


@BOTH
def test_vectorized_map_takes_rows_one_by_one(wrap):
    assert wrap(lambda x: tf.vectorized_map(tf.reduce_sum, x))(ROWS).numpy().tolist() == [3, 3]
    assert wrap(lambda x: tf.vectorized_map(lambda row: (row[0], tf.size(row)), x))(ROWS)[1].numpy().tolist() == [2, 1]


@BOTH
def test_shapes_must_be_as_promised(wrap):
    with pytest.raises(ValueError, match=r"Incompatible shape for value \(\(2,\)\), expected \(\(3,\)\)"):
        wrap(lambda x: tf.map_fn(lambda _: tf.zeros([2]), x, fn_output_signature=tf.TensorSpec([3])))(tf.zeros([2]))


@BOTH
def test_dense_rows_of_any_size_become_ragged(wrap):
    x = tf.constant([[1.0, 2.0, 0.0], [3.0, 0.0, 0.0]])
    open_shape = [tf.TensorSpec([None, None])]

    def programs(x):
        make = tf.RaggedTensor.from_tensor
        return make(x), make(x, lengths=[1, 3]), make(x, padding=0.0), make(x[:, :, None], ragged_rank=2)

    program = programs if wrap is not tf.function else tf.function(programs, input_signature=open_shape)
    whole, cut, unpadded, deep = program(x)
    assert whole.to_list() == x.numpy().tolist() and deep.to_list() == x.numpy()[:, :, None].tolist()
    assert (cut.to_list(), unpadded.to_list()) == ([[1.0], [3.0, 0.0, 0.0]], [[1.0, 2.0], [3.0]])
    assert tf.RaggedTensor.from_tensor(tf.zeros([2, 0]), padding=0.0).to_list() == [[], []]


@BOTH
def test_row_splits_are_of_the_dtype_that_the_signature_says(wrap):
    for dtype in (tf.int32, tf.int64):
        spec = tf.RaggedTensorSpec([None], tf.int32, row_splits_dtype=dtype)
        result = wrap(lambda x: tf.map_fn(tf.range, x, fn_output_signature=spec))(tf.constant([1, 3]))  # noqa: B023
        assert result.row_splits.dtype == dtype
        assert result.to_list() == [[0], [0, 1, 2]]


def test_rows_whose_rank_only_the_signature_says():
    spec = tf.RaggedTensorSpec([None], tf.float32)

    @tf.function(input_signature=[tf.TensorSpec(None)])
    def doubled(x):
        return tf.map_fn(
            lambda row: 2.0 * row, tf.RaggedTensor.from_row_lengths(x, [2, 0, 1]), fn_output_signature=spec
        )

    assert doubled([1.0, 2.0, 3.0]).to_list() == [[2.0, 4.0], [], [6.0]]
