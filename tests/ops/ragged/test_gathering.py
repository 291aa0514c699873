"""Elements of ragged tensors by position, segments and partitions of rows."""

import numpy as np
import pytest

import tapeflow as tf

ROWS = [[1.0, 2.0], [3.0]]


def rows():
    return tf.ragged.constant(ROWS)


def deep():
    return tf.ragged.constant([[[1], [2, 3]], [[4]]])


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: tf.gather(x, tf.ragged.constant([[1, 0], [0]]), batch_dims=1), [[2.0, 1.0], [3.0]]),
        (lambda x: tf.gather(x, tf.constant([[0], [0]]), batch_dims=1), [[1.0], [3.0]]),
        (lambda x: tf.gather(x, [0], axis=1), [[1.0], [3.0]]),
        (lambda x: tf.gather(x, tf.ragged.constant([[1], [0, 0]])), [[[3.0]], [[1.0, 2.0], [1.0, 2.0]]]),
        (lambda x: tf.compat.v1.batch_gather(x, tf.ragged.constant([[1], [0]])), [[2.0], [3.0]]),
        (lambda x: tf.gather_nd(x, tf.ragged.constant([[[0, 1]], [[1, 0]]], ragged_rank=1)), [[2.0], [3.0]]),
        (lambda x: tf.gather_nd(x, [[1], [0]]), [[3.0], [1.0, 2.0]]),
        (lambda x: tf.math.unsorted_segment_mean(x, [0, 0], 2), [[2.0, 2.0], []]),
        (lambda x: tf.math.unsorted_segment_sqrt_n(x, [0, 1], 2), ROWS),
        (lambda x: tf.compat.v1.where(x > 1.5, x, -x), [[-1.0, 2.0], [3.0]]),
        (lambda x: tf.compat.v1.where([True, False], x, -x), [[1.0, 2.0], [-3.0]]),
        (lambda x: tf.ragged.stack_dynamic_partitions(x, [1, 0], 2), [[[3.0]], [[1.0, 2.0]]]),
        (lambda x: tf.dynamic_partition(x, [1, 0], 2)[1], [[1.0, 2.0]]),
    ],
)
def test_ragged_results(call, expected, traced):
    found = tf.function(call)(rows()) if traced else call(rows())
    assert found.to_list() == expected


def test_dense_results():
    assert tf.gather_nd(rows(), [[0, 1], [1, 0]]).numpy().tolist() == [2.0, 3.0]
    assert tf.gather(rows(), [1, 0], batch_dims=1).numpy().tolist() == [2.0, 3.0]
    first, second = tf.dynamic_partition(rows(), tf.ragged.constant([[1, 0], [1]]), 2)
    assert (first.numpy().tolist(), second.numpy().tolist()) == ([2.0], [1.0, 3.0])


def test_deeper_batches():
    found = tf.gather(deep(), tf.ragged.constant([[[0], [1, 0]], [[0]]]), batch_dims=2)
    assert found.to_list() == [[[1], [3, 2]], [[4]]]
    assert tf.gather_nd(deep(), [[0, 1, 1], [1, 0, 0]]).numpy().tolist() == [3, 4]


def test_ragged_positions_in_a_dense_tensor():
    at = tf.ragged.constant([[3, 1, 2], [1], [], [0]])
    for params in ([1, 2, 3, 4, 5], tf.constant([1, 2, 3, 4, 5]), tf.Variable([1, 2, 3, 4, 5])):
        assert tf.gather(params, at).to_list() == [[4, 2, 3], [2], [], [1]]
        assert tf.function(tf.gather)(params, at).to_list() == [[4, 2, 3], [2], [], [1]]
    table = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        y = tf.gather(table, tf.ragged.constant([[1, 1], [0]])).flat_values
    slices = tape.gradient(y, table)
    assert isinstance(slices, tf.IndexedSlices)
    assert tf.convert_to_tensor(slices).numpy().tolist() == [[1.0, 1.0], [2.0, 2.0]]


def test_rows_by_a_matrix_of_positions():
    assert tf.gather(rows(), [[1, 0], [0, 0]]).to_list() == [[[3.0], [1.0, 2.0]], [[1.0, 2.0], [1.0, 2.0]]]
    assert tf.gather(rows(), tf.constant(1)).numpy().tolist() == [3.0]


def test_positions_must_lie_in_their_rows():
    with pytest.raises(tf.errors.InvalidArgumentError, match="rows"):
        tf.gather(rows(), tf.ragged.constant([[0], [1]]), batch_dims=1)
    with pytest.raises(tf.errors.InvalidArgumentError, match="rows"):
        tf.gather_nd(rows(), [[1, 1]])


def test_gradient_of_a_batched_gather():
    values = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        tape.watch(values)
        x = tf.RaggedTensor.from_row_splits(values, [0, 2, 3])
        y = tf.gather(x, tf.ragged.constant([[1, 1], [0]]), batch_dims=1).flat_values
    assert tf.convert_to_tensor(tape.gradient(y, values)).numpy().tolist() == [0.0, 2.0, 1.0]


def test_products_of_ragged_batches():
    a = tf.ragged.constant([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], ragged_rank=1)
    b = tf.ragged.constant([[[1.0], [2.0]], [[3.0], [4.0]]], ragged_rank=1)
    assert tf.matmul(a, b).to_list() == [[[5.0]], [[25.0], [39.0]]]


def test_rows_of_values_whose_rank_is_unknown():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        values = tf.compat.v1.placeholder(tf.float32)
        splits = tf.compat.v1.placeholder(tf.int64)
        dense = tf.RaggedTensor.from_row_splits(values, splits).to_tensor(-1.0)
        found = session.run(dense, {values: [1.0, 2.0, 3.0], splits: [0, 2, 3]})
        np.testing.assert_array_equal(found, [[1, 2], [3, -1]])
        found = session.run(dense, {values: [[1.0], [2.0], [3.0]], splits: [0, 2, 3]})
        np.testing.assert_array_equal(found, [[[1], [2]], [[3], [-1]]])


def test_keys_in_a_list():
    rows = tf.ragged.constant([[1, 2], [3], [4, 5, 6]])
    assert rows[[slice(1, None), slice(None, 1)]].to_list() == rows[1:, :1].to_list() == [[3], [4]]


def test_slices_with_tensors_in_graphs():
    rows = tf.ragged.constant([[[1], [2, 3]], [], [[9]]])
    for f in (lambda r, i: r[i : i + 2], lambda r, i: r[:, i : i + 1], lambda r, i: r[i::2]):
        want = f(rows, 0).to_list()
        assert tf.function(f)(rows, tf.constant(0)).to_list() == want


def test_partitions_that_do_not_fit_are_refused():
    for rows in (tf.ragged.constant([[1.0, 2.0], [3.0]]), tf.ragged.constant([[0, 1], [0]])):
        with pytest.raises((ValueError, TypeError, tf.errors.InvalidArgumentError)):
            tf.dynamic_partition(np.array([1, 2, 4, 3]), rows, 2)
        with pytest.raises((ValueError, TypeError, tf.errors.InvalidArgumentError)):
            tf.dynamic_partition([1, rows], [0, 1], 2)
        with pytest.raises((ValueError, TypeError, tf.errors.InvalidArgumentError)):
            tf.gather_nd([1, rows], [[0]])


@pytest.mark.parametrize(
    ("params_shape", "indices_shape", "axis", "batch_dims"),
    [
        ([3, 4], [2, 5], 1, 0),
        ([7, 3, 5], [4, 2], 2, 0),
        ([3, 4, 5, 6], [2, 1, 7], 1, 0),
        ([4, 3, 2, 3], [2, 3, 2], 3, 0),
        ([7, 3, 6], [7, 5, 4, 2], 1, 1),
        ([2, 3, 6], [2], 2, 1),
        ([2, 3, 6, 7], [2, 3], 3, 1),
        ([2, 3, 6], [2, 3], 2, 2),
        ([2, 3, 6], [2, 3, 4], 2, 2),
    ],
)
def test_gather_agrees_with_dense_tensors(params_shape, indices_shape, axis, batch_dims):
    generator = np.random.default_rng(3)
    params = tf.constant(generator.random(params_shape))
    indices = tf.constant(generator.integers(0, params_shape[axis], indices_shape))
    expected = tf.gather(params, indices, axis=axis, batch_dims=batch_dims)
    for p in [params] + [tf.RaggedTensor.from_tensor(params, ragged_rank=r) for r in range(1, len(params_shape))]:
        for i in [indices] + [
            tf.RaggedTensor.from_tensor(indices, ragged_rank=r) for r in range(1, len(indices_shape))
        ]:
            found = tf.gather(p, i, axis=axis, batch_dims=batch_dims)
            found = found.to_tensor() if isinstance(found, tf.RaggedTensor) else found
            np.testing.assert_array_equal(found, expected)


def test_positions_of_each_batch_along_a_later_axis():
    params = tf.ragged.constant([[["a", "b", "c"], ["d", "e"]], [["f", "g"]]])
    assert tf.gather(params, [1, 0], axis=2, batch_dims=1).to_list() == [[b"b", b"e"], [b"f"]]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\[1\] = 5 is not in \[0, 2\)"):
        tf.gather(params, [0, 5])


def test_stacked_partitions_have_splits_of_the_dtype_of_the_numbers():
    for dtype in (tf.int32, tf.int64):
        rows = tf.ragged.stack_dynamic_partitions([1.0, 2.0], tf.constant([1, 0], dtype), 2)
        assert rows.row_splits.dtype == dtype
    assert tf.ragged.stack_dynamic_partitions(tf.ragged.constant([[1], [2, 3]]), [1, 0], 2).row_splits.dtype == tf.int64


def test_uniform_rows_that_do_not_fit():
    with pytest.raises(ValueError, match="uniform_row_length=2 times nrows=1 must equal nvals=3"):
        tf.RaggedTensor.from_uniform_row_length([1, 2, 3], 2)


def test_an_index_into_rows_of_one_length():
    rows = tf.ragged.constant([["a"], ["b", "c"], [], ["d"], ["e"], ["f", "g"]])
    x = tf.RaggedTensor.from_uniform_row_length(rows, 3)
    for place in (0, 2, -1, -3):
        expected = [row[place] for row in x.to_list()]
        assert x[:, place].to_list() == expected
        assert tf.function(lambda i: x[:, i])(tf.constant(place)).to_list() == expected
    assert x[1:, 2, 1:].to_list() == [[b"g"]]
    numbers = tf.RaggedTensor.from_uniform_row_length(tf.constant([[1, 2], [3, 4]]), 1)
    assert numbers[:, 0, 1].numpy().tolist() == [2, 4]
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of bounds of rows of length 3"):
        x[:, 3]


def test_rows_know_what_they_were_made_from():
    ids, count = tf.constant([0, 0, 2], tf.int64), tf.constant(4, tf.int64)
    x = tf.RaggedTensor.from_value_rowids([1, 2, 3], ids, count)
    assert x.value_rowids() is ids and x.nrows() is count
    assert x.with_values(tf.constant([4, 5, 6])).value_rowids() is ids
    assert x.nrows(tf.int32).dtype == tf.int32
    lengths = tf.constant([2, 0, 1], tf.int64)
    y = tf.RaggedTensor.from_row_lengths([1, 2, 3], lengths)
    assert y.row_lengths() is lengths
    assert (y * 2).row_lengths().numpy().tolist() == y.row_lengths(-1).numpy().tolist() == [2, 0, 1]
    assert y.with_row_splits_dtype(tf.int32).row_lengths().dtype == tf.int32


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tf.RaggedTensor.from_value_rowids([1], [0], nrows=-2), "Expected nrows >= 0; got -2"),
        (lambda: tf.RaggedTensor.from_value_rowids([1], [0], nrows=[1]), "nrows must have rank 0"),
        (lambda: tf.RaggedTensor.from_value_rowids([1], [[0]]), "must have rank 1"),
        (lambda: tf.ragged.constant([[1]]).row_lengths(2), "axis=2 out of bounds"),
        (lambda: tf.ragged.constant([[1]]).row_lengths(-3), "axis=-3 out of bounds"),
    ],
)
def test_rows_that_are_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_mapped_values_keep_what_is_known_of_the_rows():
    known = tf.RaggedTensor.from_uniform_row_length(tf.ragged.constant([[1, 2], [3]]), 2)
    plain = tf.ragged.constant([[[1, 2], [3]]])
    for arguments in ((known, plain), (plain, known)):
        assert tf.ragged.map_flat_values(tf.add, *arguments).uniform_row_length == 2
    assert tf.ragged.map_flat_values(tf.add_n, [plain, known]).uniform_row_length == 2


def test_a_mapped_function_that_gives_rows_of_another_rank():
    x, kind = tf.ragged.constant([[1, 2], [3]]), tf.RaggedTensorSpec(None, tf.int32, 2)

    def call():
        return tf.map_fn(lambda row: row, x, fn_output_signature=kind)

    for run in (call, tf.function(call)):
        with pytest.raises(ValueError, match=r"(?s)Expected `fn` to return a.*But it returned"):
            run()


def test_choices_between_rows_that_do_not_fit():
    x = tf.ragged.constant([[1, 2, 3], [4, 5]])
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        tf.where(x > 2, x, [[1, 2], [3, 4]])
    assert tf.where(x > 2, x, -x).to_list() == [[-1, -2, 3], [4, 5]]


def test_stacked_partitions_of_any_count_shape_and_dtype():
    assert tf.ragged.stack_dynamic_partitions([1, 2, 3], [2, 0, 2], tf.constant(4)).to_list() == [[2], [], [1, 3], []]
    assert tf.ragged.stack_dynamic_partitions([1, 2], 1, 2).to_list() == [[], [[1, 2]]]
    numbers = tf.ragged.constant([[1], [1, 0]])
    assert tf.ragged.stack_dynamic_partitions(tf.ragged.constant([[1], [2, 3]]), numbers, 2).to_list() == [[3], [1, 2]]
    staged = tf.function(lambda x, p, n: tf.ragged.stack_dynamic_partitions(x, p, n))
    assert staged(tf.constant([1, 2, 3]), tf.constant([1, 0, 1]), tf.constant(3)).to_list() == [[2], [1, 3], []]


def test_partitions_that_cannot_be_stacked():
    for numbers, words in (([0, 3], "must be less than num_partitions"), ([0, -1], "must be non-negative")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            tf.ragged.stack_dynamic_partitions([1, 2], numbers, 2)
    with pytest.raises(ValueError, match=r"Shapes \(1,\) and \(2,\) are incompatible"):
        tf.ragged.stack_dynamic_partitions([1, 2], [0], 2)
    for numbers in ([0.0, 1.0], tf.constant([0, 1], tf.uint8)):
        with pytest.raises(ValueError, match="value_rowids must have dtype int32 or int64"):
            tf.ragged.stack_dynamic_partitions([1, 2], numbers, 2)
