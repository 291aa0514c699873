"""Sparse tensors against the same computation on dense ones."""

import numpy as np
import pytest

import tapeflow as tf

A = np.array([[0, 1, 0], [-2, 0, 3]], np.float32)
B = np.array([[0, 4, 5], [0, 0, -3]], np.float32)


def sparse(x):
    return tf.sparse.from_dense(x)


def test_round_trip_and_arithmetic():
    np.testing.assert_array_equal(tf.sparse.to_dense(sparse(A)), A)
    np.testing.assert_array_equal(tf.sparse.to_dense(tf.sparse.add(sparse(A), sparse(B))), A + B)
    np.testing.assert_array_equal(tf.sparse.to_dense(tf.sparse.maximum(sparse(A), sparse(B))), np.maximum(A, B))
    np.testing.assert_array_equal(tf.sparse.to_dense(tf.sparse.transpose(sparse(A))), A.T)
    np.testing.assert_array_equal(tf.sparse.to_dense(tf.sparse.reshape(sparse(A), [3, -1])), A.reshape(3, 2))
    np.testing.assert_array_equal(tf.sparse.reduce_sum(sparse(A), 0), A.sum(0))
    np.testing.assert_array_equal(tf.sparse.to_dense(tf.sparse.concat(1, [sparse(A), sparse(B)])), np.hstack([A, B]))


@pytest.mark.parametrize("adjoint_a", [False, True])
@pytest.mark.parametrize("adjoint_b", [False, True])
def test_matmul_gradient_is_the_dense_one(adjoint_a, adjoint_b):
    x = sparse(A)
    b = np.random.default_rng(0).normal(size=(2 if adjoint_a else 3, 4)).astype(np.float32)
    b = tf.constant(b.T.copy() if adjoint_b else b)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x.values, b])
        y = tf.sparse.sparse_dense_matmul(x, b, adjoint_a, adjoint_b)
        dense = tf.matmul(tf.sparse.to_dense(x), b, adjoint_a=adjoint_a, adjoint_b=adjoint_b)
    np.testing.assert_allclose(y, dense, rtol=1e-6)
    for source in (x.values, b):
        np.testing.assert_allclose(tape.gradient(y, source), tape.gradient(dense, source), rtol=1e-6)


def test_order_is_checked():
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of order"):
        tf.sparse.to_dense(tf.SparseTensor([[1, 0], [0, 1]], [1.0, 2.0], [2, 2]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="is repeated"):
        tf.sparse.to_dense(tf.SparseTensor([[0, 1], [0, 1]], [1.0, 2.0], [2, 2]))
    with pytest.raises(ValueError, match="not compatible"):
        tf.SparseTensor([[0, 1]], [1.0, 2.0], [2, 2])


def test_ragged_rows():
    rows = tf.ragged.constant([[1.0, 2.0], [], [3.0]])
    np.testing.assert_array_equal(rows.to_tensor(), [[1, 2], [0, 0], [3, 0]])
    assert (tf.constant([[1.0], [2.0], [3.0]]) * rows).to_list() == [[1.0, 2.0], [], [9.0]]
    assert (1.0 + rows).to_list() == [[2.0, 3.0], [], [4.0]]
    assert tf.square(rows).to_list() == [[1.0, 4.0], [], [9.0]]
    np.testing.assert_array_equal(tf.reduce_sum(rows, axis=1), [3, 0, 3])
    assert tf.concat([rows, rows], axis=1).to_list() == [[1, 2, 1, 2], [], [3, 3]]
    nested = tf.ragged.constant([[[1], [2, 3]], [[4]]])
    assert nested.merge_dims(1, 2).to_list() == [[1, 2, 3], [4]]
    assert tf.reduce_sum(nested, axis=1).to_list() == [[3, 3], [4]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="valid RaggedTensor"):
        tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 2])


def test_hashes_have_fixed_values():
    words = ["x" * n for n in (0, 3, 5, 12, 20, 40, 64, 65, 130, 200)]
    expected = [
        34397263,
        821544028,
        65742888,
        416288835,
        747857348,
        54984852,
        298655160,
        501551929,
        825096686,
        971950527,
    ]
    assert tf.strings.to_hash_bucket_fast(words, 10**9).numpy().tolist() == expected
    assert tf.strings.to_hash_bucket_strong(["a", "hello"], 1000, [1, 2]).numpy().tolist() == [646, 622]


def test_block_lstm_gradient_is_the_numeric_one():
    rng = np.random.default_rng(0)
    x, c, h, w = (tf.constant(rng.normal(size=s)) for s in ((2, 1, 3), (1, 2), (1, 2), (5, 8)))
    weights = rng.normal(size=(2, 1, 2))
    none = tf.zeros([2], tf.float64)

    def loss(x):
        y = tf.raw_ops.BlockLSTMV2(
            seq_len_max=2, x=x, cs_prev=c, h_prev=h, w=w, wci=none, wcf=none, wco=none, b=tf.zeros([8], tf.float64)
        )
        return tf.reduce_sum(y.h * weights)

    with tf.GradientTape() as tape:
        tape.watch(x)
        value = loss(x)
    step = 1e-6 * np.eye(6).reshape(6, 2, 1, 3)
    numeric = [float(loss(x + d) - loss(x - d)) / 2e-6 for d in step]
    np.testing.assert_allclose(np.ravel(tape.gradient(value, x)), numeric, rtol=1e-6)


def test_ragged_operations():
    x = tf.ragged.constant([[1.0, 2.0, 3.0], [4.0]])
    assert tf.tile(x, [1, 2]).to_list() == [[1, 2, 3, 1, 2, 3], [4, 4]]
    assert tf.tile(x, [2, 1]).to_list() == [[1, 2, 3], [4], [1, 2, 3], [4]]
    np.testing.assert_allclose(
        tf.nn.softmax(x).flat_values.numpy(), [*tf.nn.softmax([1.0, 2.0, 3.0]).numpy(), 1.0], rtol=1e-6
    )
    assert tf.squeeze(tf.expand_dims(x, 0), [0]).to_list() == x.to_list()
    assert [part.to_list() for part in tf.split(x, 2)] == [[[1, 2, 3]], [[4]]]
    assert tf.clip_by_value(x, 2.0, 3.0).to_list() == [[2, 2, 3], [3]]
    assert tf.add_n([x, x]).to_list() == [[2, 4, 6], [8]]
    assert tf.reshape(x, [-1]).numpy().tolist() == [1, 2, 3, 4]
    assert tf.one_hot(tf.cast(x, tf.int32), 2).shape.as_list() == [2, None, 2]
    words = tf.strings.as_string(tf.cast(x, tf.int32))
    assert tf.strings.reduce_join(words, axis=-1, separator="-").numpy().tolist() == [b"1-2-3", b"4"]
    assert tf.nn.embedding_lookup([[0.0], [5.0]], tf.ragged.constant([[1], [0, 1]])).to_list() == [[[5]], [[0], [5]]]
    assert x[:, ::-1].to_list() == [[3, 2, 1], [4]]
    assert x[:, -2:].to_list() == [[2, 3], [4]]
    assert x[:, None].to_list() == [[[1, 2, 3]], [[4]]]
    with pytest.raises(IndexError, match="Row key 9 out of bounds"):
        x[9]
    with pytest.raises(ValueError, match="unsupported type"):
        tf.transpose(x)


def test_maps_of_ragged_tensors():
    x = tf.ragged.constant([[1, 2, 3], [], [4]])
    assert tf.map_fn(lambda row: row * 2, x).to_list() == [[2, 4, 6], [], [8]]
    assert tf.map_fn(tf.reduce_sum, x, fn_output_signature=tf.int32).numpy().tolist() == [6, 0, 4]
    spec = tf.RaggedTensorSpec([None], tf.int32)
    assert tf.map_fn(tf.range, tf.constant([1, 3]), fn_output_signature=spec).to_list() == [[0], [0, 1, 2]]


def test_ragged_and_sparse_arguments_of_functions():
    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.float32)])
    def rows(x):
        return (
            tf.concat([x, tf.reverse(x, [1])], 1),
            tf.reduce_max(x, axis=1),
            tf.reduce_mean(x, axis=1),
            x.to_tensor(-1),
        )

    twice, largest, mean, dense = rows(tf.ragged.constant([[1.0, 2.0], [3.0]]))
    assert twice.to_list() == [[1, 2, 2, 1], [3, 3]]
    assert largest.numpy().tolist() == [2, 3]
    assert mean.numpy().tolist() == [1.5, 3]
    assert dense.numpy().tolist() == [[1, 2], [3, -1]]

    @tf.function
    def product(a, b):
        return tf.sparse.sparse_dense_matmul(a, b), tf.sparse.to_dense(a), tf.sparse.to_dense(a * 2)

    a = tf.SparseTensor([[0, 1], [2, 0]], [3, 4], [3, 2])
    found, dense, doubled = product(a, tf.constant([[1], [10]]))
    assert found.numpy().tolist() == [[30], [0], [4]]
    np.testing.assert_array_equal(doubled.numpy(), 2 * dense.numpy())


def test_sparse_tensors_through_functions_that_keep_zeros():
    x = tf.SparseTensor([[1]], [-4.0], [3])
    assert tf.abs(x).values.numpy() == [4]
    assert tf.sqrt(tf.square(x)).values.numpy() == [4]
    assert str(x).startswith("SparseTensor(indices=tf.Tensor([[1]], shape=(1, 1), dtype=int64), values=tf.Tensor([-4.]")


def test_tensors_or_others():
    sparse, slices = tf.sparse.from_dense([1.0, 0.0]), tf.IndexedSlices(tf.constant([[1.0]]), tf.constant([0]))
    older = tf.compat.v1
    assert older.convert_to_tensor_or_sparse_tensor(sparse) is sparse
    assert older.convert_to_tensor_or_sparse_tensor([1, 2], tf.int64).dtype == tf.int64
    assert older.convert_to_tensor_or_indexed_slices(slices) is slices
    assert older.convert_to_tensor_or_indexed_slices(sparse, tf.float32) is sparse
    with pytest.raises(RuntimeError, match="Sparse dtype mismatch"):
        older.convert_to_tensor_or_sparse_tensor(sparse, tf.int32)
    with pytest.raises(ValueError, match="Tensor conversion requested dtype int32 for Tensor with dtype float32"):
        older.convert_to_tensor_or_indexed_slices(slices, tf.int32)


def test_counts_have_the_dtype_of_the_numbers():
    assert tf.sparse.bincount(tf.constant([1, 1], tf.int64)).values.dtype == tf.int64
    assert tf.sparse.bincount([1, 1]).values.dtype == tf.int32


def test_lengths_of_several_dimensions():
    x = tf.constant([[[5, 0], [7, 0], [0, 0]], [[0, 0], [3, 0], [0, 0]], [[6, 0], [0, 0], [0, 0]]])
    y = tf.RaggedTensor.from_tensor(x, lengths=([2, 0, 3], [1, 1, 2, 0, 1]))
    assert y.to_list() == [[[5], [7]], [], [[6, 0], [], [0]]]


def test_strings_joined_by_rows():
    words = tf.constant([["Y", "q", "c"], ["Y", "6", "6"], ["p", "G", "a"]])
    joined = tf.strings.unsorted_segment_join(words, [1, 0, 1], 2, ":")
    assert joined.numpy().tolist() == [[b"Y", b"6", b"6"], [b"Y:p", b"q:G", b"c:a"]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="not allowed to exceed num_segments"):
        tf.strings.unsorted_segment_join(["a"], [-1], 2)


def test_mistakes_with_ragged_tensors_are_told():
    with pytest.raises(tf.errors.InvalidArgumentError, match="ConcatV2"):
        tf.concat([tf.ragged.constant([[1]]), tf.ragged.constant([[1.0]])], 0)
    with pytest.raises(ValueError, match="must have rank 2"):
        tf.concat([tf.ragged.constant([[1]]), tf.ragged.constant([[[1]]])], 0)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.RaggedTensor.from_row_splits(1.0, [0, 1])


def test_sampled_products_of_batches():
    a, b = tf.reshape(tf.range(12.0), [2, 2, 3]), tf.reshape(tf.range(12.0), [2, 3, 2])
    places = tf.constant([[[0, 1], [1, 0]], [[0, 0], [1, 1]]])
    _, values, _ = tf.sparse.sampled_addmm(places, [[1.0, 2.0], [3.0, 4.0]], [2, 2], a, b, alpha=2.0, beta=0.5)
    product = (a @ b).numpy()
    at_places = np.array([[product[0, 0, 1], product[0, 1, 0]], [product[1, 0, 0], product[1, 1, 1]]])
    np.testing.assert_allclose(values, 2 * at_places + [[0.5, 1], [1.5, 2]])


def test_sparse_tensors_of_open_rank():
    @tf.function(input_signature=[tf.TensorSpec(None)])
    def doubled(values):
        return tf.sparse.to_dense(tf.SparseTensor([[0, 1], [1, 0]], values, [2, 2])) * 2.0

    np.testing.assert_array_equal(doubled(tf.constant([1.0, 2.0])), [[0, 2], [4, 0]])
    places = tf.function(lambda x: tf.sparse.from_dense(x).indices, input_signature=[tf.TensorSpec(None)])
    np.testing.assert_array_equal(places(tf.constant([0.0, 3.0])), [[1]])


def test_the_rest_of_a_string():
    assert tf.strings.substr("hello", 1, -1).numpy() == b"ello"
    assert tf.strings.ngrams(["a", "b"], np.int64(2)).numpy().tolist() == [b"a b"]
    assert tf.ragged.range([3.5, 0.0]).dtype == tf.float32


def test_running_sums_and_products_of_ragged_rows():
    rows = tf.ragged.constant([[3.0, 1.0], [2.0]])
    assert tf.cumsum(rows, axis=1).to_list() == [[3, 4], [2]]
    assert tf.cumsum(rows, axis=-1, exclusive=True, reverse=True).to_list() == [[1, 0], [0]]
    assert tf.cumsum(rows).to_list() == [[3, 1], [5]]
    matrices = tf.ragged.constant([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], ragged_rank=1)
    assert tf.matmul(matrices, tf.ones([2, 2, 1])).to_list() == [[[3]], [[7], [11]]]


def test_ragged_elements_and_rows_by_number():
    rows = tf.ragged.constant([[1, 2], [-3], [5]])
    by_element = tf.math.unsorted_segment_sum(rows, tf.ragged.constant([[0, 1], [0], [1]]), 2)
    assert by_element.numpy().tolist() == [-2, 7]
    assert tf.math.unsorted_segment_sum(rows, [0, 2, 0], 3).to_list() == [[6, 2], [], [-3]]
    assert tf.math.unsorted_segment_max(rows, [0, 2, 0], 3).to_list() == [[5, 2], [], [-3]]


def test_strings_are_joined_in_the_order_of_the_axes():
    words = [["a", "b"], ["c", "d"]]
    assert tf.strings.reduce_join(words, axis=[0, 1]).numpy() == b"acbd"
    assert tf.strings.reduce_join(words, axis=[1, 0]).numpy() == b"abcd"
    assert tf.strings.reduce_join(words).numpy() == b"abcd"


def test_cross_joins_sparse_inputs_before_dense_ones():
    dense, sparse = tf.constant([["a"], ["b"]]), tf.sparse.from_dense([[5, 7], [8, 0]])
    assert tf.sparse.cross([dense, sparse]).values.numpy().tolist() == [b"5_X_a", b"7_X_a", b"8_X_b"]
    words = tf.sparse.from_dense([["x"], ["y"]])
    assert tf.sparse.cross_hashed([dense, sparse, words], 1000).values.numpy().tolist() == [666, 57, 339]


def test_reshape_by_a_shape_known_when_the_graph_runs():
    @tf.function(input_signature=[tf.SparseTensorSpec([None, None]), tf.TensorSpec([2], tf.int64)])
    def reshape(x, shape):
        return tf.sparse.reshape(x, shape)

    x = tf.sparse.from_dense([[1.0, 0, 2], [0, 3, 0]])
    for shape in ([3, 2], [1, -1], [-1, 6]):
        np.testing.assert_array_equal(
            tf.sparse.to_dense(reshape(x, tf.constant(shape, tf.int64))), tf.reshape(tf.sparse.to_dense(x), shape)
        )
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"sparse.reshape"):
        reshape(x, tf.constant([4, 2], tf.int64))


def test_minus_one_in_a_dense_shape_is_unknown():
    assert tf.SparseTensor([[0, 0]], [1.0], [-1, 2]).shape.as_list() == [None, 2]


def test_size_where_the_shape_is_known_when_the_graph_runs():
    size = tf.function(lambda x: tf.size(x), input_signature=[tf.SparseTensorSpec([None, None])])
    assert size(tf.sparse.from_dense([[1.0, 0, 2], [0, 3, 0]])).numpy() == 6
    ragged = tf.function(lambda x: tf.size(x), input_signature=[tf.RaggedTensorSpec([None, None], tf.float32)])
    assert ragged(tf.ragged.constant([[1.0], [2.0, 3.0]])).numpy() == 3


def test_the_shape_of_a_dense_tensor_is_not_guessed_from_samples():
    shapes = []

    @tf.function(input_signature=[tf.TensorSpec([2], tf.int64)])
    def dense(shape):
        values = tf.constant([1, 2]) + tf.cast(shape[0] * 0, tf.int32)
        y = tf.sparse.to_dense(tf.SparseTensor(tf.constant([[0, 0], [1, 1]], tf.int64) + shape[0] * 0, values, shape))
        shapes.append(y.shape.as_list())
        return y

    assert dense(tf.constant([2, 3], tf.int64)).numpy().tolist() == [[1, 0, 0], [0, 2, 0]]
    assert shapes == [[None, None]]


def test_shapes_that_are_known_when_the_graph_runs():
    @tf.function(
        input_signature=[tf.TensorSpec([None, 2], tf.int64), tf.TensorSpec([None]), tf.TensorSpec([None], tf.int64)]
    )
    def run(indices, values, shape):
        x = tf.SparseTensor(indices, values, [5, 6])
        filled, empty = tf.sparse.fill_empty_rows(x, 9.0)
        return (
            filled.indices,
            filled.values,
            empty,
            tf.sparse.reset_shape(x, shape).dense_shape,
            tf.sparse.reset_shape(x).dense_shape,
        )

    indices = tf.constant([[0, 1], [2, 0], [4, 5]], tf.int64)
    places, values, empty, larger, tight = run(indices, [1.0, 2.0, 3.0], [7, 8])
    assert places.numpy().tolist() == [[0, 1], [1, 0], [2, 0], [3, 0], [4, 5]]
    assert values.numpy().tolist() == [1.0, 9.0, 2.0, 9.0, 3.0] and empty.numpy().tolist() == [
        False,
        True,
        False,
        True,
        False,
    ]
    assert larger.numpy().tolist() == [7, 8] and tight.numpy().tolist() == [5, 6]
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(indices, [1.0, 2.0, 3.0], [7, 5])
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(indices, [1.0, 2.0, 3.0], [7, 8, 9])


def test_shapes_that_do_not_fit():
    x = tf.SparseTensor([[0, 1], [7, 0]], [1.0, 2.0], [5, 6])
    with pytest.raises(ValueError, match="should have dimension sizes >="):
        tf.sparse.reset_shape(x, [9, 5])
    with pytest.raises(ValueError, match="one size for each"):
        tf.sparse.reset_shape(x, [9, 9, 9])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices\(1, 0\) is invalid: 7 >= 5"):
        tf.sparse.fill_empty_rows(x, 0.0)
    assert tf.sparse.reset_shape(tf.sparse.from_dense(tf.zeros([2, 3]))).dense_shape.numpy().tolist() == [0, 0]


def test_merge_of_ids_and_values():
    ids = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], [2, 3, 0], [2, 2])
    values = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], [5.0, 6.0, 7.0], [2, 2])
    merged = tf.compat.v1.sparse_merge(ids, values, 4)
    assert tf.sparse.to_dense(merged).numpy().tolist() == [[0, 0, 5, 0], [7, 0, 0, 6]]
    both = tf.compat.v1.sparse_merge([ids, ids], values, [4, 4])
    assert both.indices.numpy().tolist() == [[0, 2, 2], [1, 0, 0], [1, 3, 3]]
    with pytest.raises(TypeError, match="vocab_size has to be"):
        tf.compat.v1.sparse_merge(ids, values, [4])
    with pytest.raises(ValueError, match="equal lengths"):
        tf.compat.v1.sparse_merge([ids], values, [4, 4])


def test_a_dense_factor_on_the_left():
    product = tf.constant([2.0, 3.0]) * tf.sparse.from_dense([[1.0, 0.0], [0.0, 2.0]])
    np.testing.assert_array_equal(tf.sparse.to_dense(product), [[2.0, 0.0], [0.0, 6.0]])


def test_a_dense_shape_beyond_int64():
    """Positions are compared row by row where no single number holds them."""
    size = 2**40
    a = tf.SparseTensor([[2**30, 5], [3, 7], [2**24, 0]], [1.0, 2.0, 3.0], [size, size])
    b = tf.SparseTensor([[3, 7], [3 + 2**24, 7]], [10.0, 20.0], [size, size])
    ordered = tf.sparse.reorder(a)
    np.testing.assert_array_equal(ordered.indices, [[3, 7], [2**24, 0], [2**30, 5]])
    total = tf.sparse.add(ordered, b)
    np.testing.assert_array_equal(total.indices, [[3, 7], [2**24, 0], [2**24 + 3, 7], [2**30, 5]])
    np.testing.assert_array_equal(total.values, [12, 3, 20, 1])
    np.testing.assert_array_equal(tf.sparse.maximum(ordered, b).values, [10, 3, 20, 1])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"2\*\*63"):
        tf.sparse.reshape(ordered, [-1])


def test_reductions_need_only_the_cells_that_are_stored():
    wide = tf.SparseTensor([[5, 1], [5, 7], [2**31, 0]], [1.0, 2.0, 4.0], [2**32, 2**10])
    found = tf.sparse.softmax(wide).values.numpy()
    np.testing.assert_allclose(found, [1 / (1 + np.e), np.e / (1 + np.e), 1.0], rtol=1e-6)
    for call in (tf.sparse.reduce_sum, tf.function(tf.sparse.reduce_sum)):
        sums = call(wide, 1, output_is_sparse=True)
        assert sums.indices.numpy().tolist() == [[5], [2**31]]
        assert sums.values.numpy().tolist() == [3.0, 4.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="less than"):
        tf.sparse.reduce_max(tf.SparseTensor([[1, 2]], [1.0], [2**32, 2**31]), 0)


def test_sums_of_unordered_elements_are_ordered():
    x = tf.SparseTensor([[2, 0], [0, 1], [2, 1]], [1.0, 2.0, 4.0], [3, 2])
    sums = tf.sparse.reduce_sum(x, 1, output_is_sparse=True)
    assert sums.indices.numpy().tolist() == [[0], [2]]
    assert sums.values.numpy().tolist() == [2.0, 5.0]


def test_counts_of_all_axes():
    found = tf.sparse.bincount([[1, 2], [2, 2]], axis=None)
    assert tf.sparse.to_dense(found).numpy().tolist() == [0, 1, 3]


def test_gradient_by_the_values_of_a_sparse_tensor_in_a_graph():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.SparseTensor([[0, 1], [1, 0]], [2.0, 3.0], [2, 2])
        y = tf.sparse.sparse_dense_matmul(x, [[1.0], [10.0]])
        (dx,) = tf.compat.v1.gradients(y, [x.values])
        assert session.run(dx).tolist() == [10.0, 1.0]
        assert session.run(y, {x.values: [1.0, 1.0]}).tolist() == [[10.0], [1.0]]


def test_reshape_by_sizes_that_are_known_when_the_graph_runs():
    x = tf.sparse.from_dense(np.ones([5, 6]))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        given = tf.compat.v1.sparse_placeholder(tf.float64)
        shape = tf.compat.v1.placeholder(tf.int64, [None])
        y = tf.sparse.reshape(given, shape).dense_shape
        value = tf.compat.v1.SparseTensorValue(x.indices.numpy(), x.values.numpy(), [5, 6])
        assert session.run(y, {given: value, shape: [10, -1]}).tolist() == [10, 3]
        for sizes, text in (
            ([4, 7], "Input to reshape is a tensor with 30 dense values"),
            ([4, -1], "requested shape requires a multiple"),
            ([4, -1, -1], "only one output dimension may be -1"),
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match=text):
                session.run(y, {given: value, shape: sizes})


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: tf.sparse.split(x, 3, [1, 2]), "axis should be a scalar"),
        (lambda x: tf.sparse.slice(x, [10, 10], [-100, 100]), "size must be non-negative"),
        (lambda x: tf.histogram_fixed_width([1.0], 1.0), "value_range should be a vector"),
        (lambda x: tf.histogram_fixed_width([1.0], [1.0, 2.0], nbins=[1, 2]), "nbins should be a scalar"),
    ],
)
def test_arguments_of_a_wrong_rank_or_sign(call, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        call(tf.sparse.from_dense(np.ones([3, 3])))


def test_what_values_for_trial_refuse_is_a_value_error_in_a_graph():
    spec = tf.SparseTensorSpec([None, 3]), tf.SparseTensorSpec([2, 3, 4])
    with pytest.raises(ValueError, match="must have one rank"):
        tf.function(lambda x, y: tf.sparse.concat(1, [x, y])).get_concrete_function(*spec)


def test_union_of_elements_whose_number_is_unknown():
    spec = tf.SparseTensorSpec([3, 3], tf.float32)
    a, b = (tf.sparse.from_dense(np.float32(x)) for x in (np.eye(3), [[1, 2, 0], [0, 0, 0], [3, 0, 0]]))
    for function in (tf.sparse.add, tf.sparse.maximum, tf.sparse.minimum):
        traced = tf.function(function, input_signature=[spec, spec])
        np.testing.assert_array_equal(tf.sparse.to_dense(traced(a, b)), tf.sparse.to_dense(function(a, b)))
    with tf.GradientTape() as tape:
        tape.watch(a.values)
        y = tf.function(tf.sparse.add, input_signature=[spec, spec])(a, b)
    assert tape.gradient(y.values, a.values).numpy().tolist() == [1.0, 1.0, 1.0]


def test_strings_that_are_no_sparse_tensors_of_one_rank():
    matrix = tf.io.serialize_sparse(tf.sparse.from_dense([[1, 0]]))
    cube = tf.io.serialize_sparse(tf.sparse.from_dense([[[1, 0]]]))
    for rows, dtype, text in (
        ([matrix, cube], tf.int32, r"rank prior to SparseTensor\[1\] was: 2 but rank of SparseTensor\[1\] is: 3"),
        ([matrix], tf.int64, r"Requested SparseTensor of type int64 but SparseTensor\[0\].values.dtype\(\) == int32"),
        ([["a", "b", "c"]], tf.int32, "Could not parse serialized proto"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            tf.io.deserialize_many_sparse(tf.stack(rows), dtype)
