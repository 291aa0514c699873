"""Ragged tensors in graphs of unknown sizes: products, crossed features, merged dimensions and dense forms."""

import numpy as np
import pytest

import tapeflow as tf

R = tf.ragged.constant


def matrices(*sizes):
    rng = np.random.default_rng(3)
    return [rng.normal(size=size).astype(np.float32) for size in sizes]


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("transposed", ["", "a", "b"])
def test_products_of_batches_of_matrices(staged, transposed):
    left, right = matrices((2, 3), (4, 5)), matrices((3, 6), (5, 2))
    if transposed == "a":
        left = [x.T for x in left]
    if transposed == "b":
        right = [x.T for x in right]
    a, b = (R([x.tolist() for x in part], ragged_rank=2) for part in (left, right))
    flags = {f"transpose_{transposed}": True} if transposed else {}

    def product(a, b):
        return tf.matmul(a, b, **flags)

    found = (tf.function(product) if staged else product)(a, b)
    expected = [
        np.matmul(x.T if transposed == "a" else x, y.T if transposed == "b" else y) for x, y in zip(left, right)
    ]
    assert found.shape.as_list() == [2, None, None]
    for i in range(2):
        np.testing.assert_allclose(found[i].to_tensor(), expected[i], rtol=1e-5)


def test_the_gradient_of_a_ragged_product():
    a, b = R([[[1.0, 2.0]], [[3.0, 4.0], [5.0, 6.0]]], ragged_rank=1), tf.ones([2, 2, 3])
    with tf.GradientTape() as tape:
        tape.watch([a.flat_values, b])
        loss = tf.reduce_sum(tf.matmul(a, b).flat_values)
    of_a, of_b = tape.gradient(loss, [a.flat_values, b])
    assert tf.convert_to_tensor(of_a).numpy().tolist() == [[3.0, 3.0]] * 3
    assert of_b.numpy()[1].tolist() == [[8.0] * 3, [10.0] * 3]


def test_products_with_dense_and_of_four_dimensions():
    dense = tf.reshape(tf.range(12.0), [2, 2, 3])
    ragged = R([[[1.0], [2.0], [3.0]], [[4.0, 5.0], [6.0, 7.0], [8.0, 9.0]]], ragged_rank=2)
    found = tf.matmul(dense, ragged)
    assert found.to_list() == [[[8.0], [26.0]], [[130.0, 151.0], [184.0, 214.0]]]
    deep = tf.matmul(tf.stack([dense]), tf.RaggedTensor.from_row_splits(ragged, [0, 2]))
    assert deep.to_list() == [found.to_list()]


def test_products_that_do_not_fit():
    row = R([[1.0, 2.0, 3.0], [4.0, 5.0]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="may not be ragged in their innermost"):
        tf.matmul(row, R([[5.0], [4.0], [3.0]]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="may not be ragged in their innermost"):
        tf.matmul(tf.RaggedTensor.from_row_splits(row, [0, 2]), tf.ones([1, 3, 1]))
    with pytest.raises(ValueError, match="must have the same dtype"):
        tf.matmul(row, R([[1], [2], [3]]))
    with pytest.raises(ValueError, match="must have the same rank"):
        tf.matmul(row, R([[[1.0]]]))
    assert tf.matmul(R([[1.0, 2.0], [3.0, 4.0]]), tf.eye(2)).numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]


def unknown(x):
    return tf.nest.map_structure(lambda t: tf.compat.v1.placeholder_with_default(t, None), x, expand_composites=True)


@pytest.mark.parametrize(("outer", "inner"), [(0, 1), (0, 2), (1, 2), (1, 3), (0, 3), (2, 3), (1, 1)])
def test_merged_dimensions_of_unknown_shape(outer, inner):
    x = tf.RaggedTensor.from_row_splits(tf.reshape(tf.range(24), [4, 2, 3]), [0, 3, 4])
    expected = x.merge_dims(outer, inner)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        y = tf.RaggedTensor.from_row_splits(tf.reshape(tf.range(24), [4, 2, 3]), [0, 3, 4])
        found = session.run(unknown(y).merge_dims(outer, inner))
    wanted = expected.to_list() if isinstance(expected, tf.RaggedTensor) else expected.numpy().tolist()
    assert (found.to_list() if hasattr(found, "to_list") else found.tolist()) == wanted


def test_axes_that_cannot_be_merged():
    x = R([[1, 2], [3]])
    with pytest.raises(TypeError, match="outer_axis must be an int"):
        x.merge_dims({}, 1)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="only be negative if the rank is known"):
        unknown(R([[1, 2], [3]])).merge_dims(0, -1)


def test_dense_tensors_of_unknown_rank():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = unknown(tf.ragged.constant([[[1, 2], [3, 4]], []], ragged_rank=1))
        shape, filler = tf.compat.v1.placeholder(tf.int64), tf.constant([7, 8])
        y, empty = x.to_tensor(filler, shape=shape), unknown(R([[], []], dtype=tf.int32)).to_tensor(3, shape=shape)
        assert session.run(y, {shape: [2, 3, 2]}).tolist() == [[[1, 2], [3, 4], [7, 8]], [[7, 8]] * 3]
        assert session.run(empty, {shape: [2, 3]}).tolist() == [[3, 3, 3], [3, 3, 3]]
        assert session.run(x.to_tensor(shape=tf.constant(-1))).shape == (2, 2, 2)


def test_arrays_of_a_ragged_tensor_as_arguments():
    value = tf.compat.v1.ragged.constant_value([[1, 2], [3]])
    mask = tf.compat.v1.ragged.constant_value([[True, False], [True]])
    assert tf.ragged.boolean_mask(value, mask).to_list() == [[1], [3]]
    assert tf.bitcast(value, tf.uint64).to_list() == [[1, 2], [3]]
    assert tf.gather(value, [1, 0]).to_list() == [[3], [1, 2]]
    assert tf.where(mask, value, tf.negative(value)).to_list() == [[1, -2], [3]]


@pytest.mark.parametrize("staged", [False, True])
def test_crossed_features_of_all_kinds(staged):
    inputs = [
        tf.compat.v1.ragged.constant_value([["a", "b"], []]),
        np.array([[1], [2]]),
        tf.compat.v1.SparseTensorValue([[0, 0]], ["x"], [2, 1]),
    ]

    def run():
        return tf.ragged.cross(inputs), tf.ragged.cross_hashed(inputs, num_buckets=5)

    crossed, hashed = tf.function(run)() if staged else run()
    assert crossed.to_list() == [[b"a_X_1_X_x", b"b_X_1_X_x"], []]
    assert hashed.row_lengths().numpy().tolist() == [2, 0] and all(0 <= n < 5 for n in hashed.flat_values.numpy())
    assert tf.ragged.cross([]).to_list() == []
    assert tf.ragged.cross([R([[2**64 - 1]], dtype=tf.uint64)]).to_list() == [[b"-1"]]


def test_crossed_features_of_symbolic_rows():
    @tf.function(input_signature=[tf.RaggedTensorSpec([None, None], tf.string)])
    def run(x):
        return tf.ragged.cross([x, x])

    assert run(R([["a", "b"], ["c"]])).to_list() == [[b"a_X_a", b"a_X_b", b"b_X_a", b"b_X_b"], [b"c_X_c"]]


def test_features_that_cannot_be_crossed():
    for bad, text in [
        ([R([[1]]), R([[1], [2]])], "same batch dimension size"),
        ([tf.constant([1])], "only supports inputs with rank=2"),
        ([tf.constant([[1.5]])], "Unexpected dtype for inputs"),
    ]:
        with pytest.raises(ValueError, match=text):
            tf.ragged.cross(bad)
