"""Compressed sparse matrices by their raw operations: one and batches of them, eager, in functions, with gradients."""

import numpy as np
import pytest

import tapeflow as tf

R = tf.raw_ops
RNG = np.random.default_rng(5)


def dense(*shape, dtype=np.float32):
    x = RNG.normal(size=shape) + (1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else 0)
    return np.where(RNG.uniform(size=shape) < 0.5, x, 0).astype(dtype)


def csr(x):
    return R.DenseToCSRSparseMatrix(dense_input=x, indices=np.argwhere(np.asarray(x) != 0))


def back(matrix, dtype=tf.float32):
    return R.CSRSparseMatrixToDense(sparse_input=matrix, type=dtype)


def turned(x, transpose, adjoint):
    x = np.swapaxes(x, -1, -2) if transpose or adjoint else x
    return x.conj() if adjoint else x


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4)])
def test_there_and_back(shape):
    x = dense(*shape)
    matrix = csr(x)
    np.testing.assert_array_equal(back(matrix), x)
    parts = R.CSRSparseMatrixToSparseTensor(sparse_matrix=matrix, type=tf.float32)
    assert parts.dense_shape.numpy().tolist() == list(shape)
    order = RNG.permutation(len(parts.values))
    again = R.SparseTensorToCSRSparseMatrix(
        indices=parts.indices.numpy()[order], values=parts.values.numpy()[order], dense_shape=parts.dense_shape
    )
    np.testing.assert_array_equal(back(again), x)
    counts = R.SparseMatrixNNZ(sparse_matrix=matrix).numpy()
    np.testing.assert_array_equal(counts, (x != 0).sum((-1, -2)))


def test_components():
    matrix = csr(np.float32([[[0, 1], [2, 3]], [[0, 0], [4, 0]]]))
    for index, expected in enumerate([([0, 1, 3], [1, 0, 1], [1.0, 2.0, 3.0]), ([0, 0, 1], [0], [4.0])]):
        found = R.CSRSparseMatrixComponents(csr_sparse_matrix=matrix, index=index, type=tf.float32)
        assert tuple(x.numpy().tolist() for x in found) == expected
        assert found.row_ptrs.dtype == found.col_inds.dtype == tf.int32


@pytest.mark.parametrize("batch", [(), (2,)])
@pytest.mark.parametrize(
    "flags", [{}, {"transpose_a": True}, {"adjoint_b": True}, {"adjoint_a": True, "transpose_b": True}]
)
@pytest.mark.parametrize("staged", [False, True])
def test_products(batch, flags, staged):
    dtype = np.complex64
    a, b = dense(*batch, 3, 3, dtype=dtype), dense(*batch, 3, 3, dtype=dtype)
    left = turned(a, flags.get("transpose_a"), flags.get("adjoint_a"))
    right = turned(b, flags.get("transpose_b"), flags.get("adjoint_b"))

    def products(a, b):
        x, y = csr_of(a, a_places), csr_of(b, b_places)
        both = R.SparseMatrixSparseMatMul(a=x, b=y, type=tf.complex64, **flags)
        return R.SparseMatrixMatMul(a=x, b=b, conjugate_output=True, **flags), back(both, tf.complex64)

    def csr_of(x, places):
        return R.DenseToCSRSparseMatrix(dense_input=x, indices=places)

    a_places, b_places = np.argwhere(a != 0), np.argwhere(b != 0)
    found = (tf.function(products) if staged else products)(tf.constant(a), tf.constant(b))
    np.testing.assert_allclose(found[0], (left @ right).conj(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[1], left @ right, rtol=1e-4, atol=1e-5)


def test_a_product_keeps_elements_that_cancel():
    a, b = csr(np.float32([[1, -1]])), csr(np.float32([[1, 0], [1, 0]]))
    product = R.SparseMatrixSparseMatMul(a=a, b=b, type=tf.float32)
    assert R.SparseMatrixNNZ(sparse_matrix=product).numpy() == 1 and back(product).numpy().tolist() == [[0.0, 0.0]]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Only one of adjoint and transpose"):
        R.SparseMatrixSparseMatMul(a=a, b=b, type=tf.float32, transpose_a=True, adjoint_a=True)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("graph", [False, True])
def test_gradients_of_products(dtype, graph):
    a, b = dense(3, 4, dtype=dtype), dense(4, 2, dtype=dtype)
    places, weights = np.argwhere(a != 0), dense(3, 2, dtype=dtype)

    def loss(x, y):
        matrix = R.DenseToCSRSparseMatrix(dense_input=x, indices=places)
        return tf.math.real(tf.reduce_sum(R.SparseMatrixMatMul(a=matrix, b=y) * weights))

    if graph:
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            x, y = tf.constant(a), tf.constant(b)
            dx, dy = session.run(tf.gradients(loss(x, y), [x, y]))
    else:
        x, y = tf.constant(a), tf.constant(b)
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            value = loss(x, y)
        dx, dy = tape.gradient(value, [x, y])
    np.testing.assert_allclose(dx, (weights.conj() @ b.conj().T) * (a != 0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(dy, a.conj().T @ weights.conj(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("batch", [(), (2,)])
def test_sums_multiples_and_transposes(batch):
    a, b = dense(*batch, 3, 4), dense(*batch, 3, 4)
    total = R.SparseMatrixAdd(a=csr(a), b=csr(b), alpha=2.0, beta=-1.0)
    np.testing.assert_allclose(back(total), 2 * a - b, rtol=1e-6)
    factor = np.float32([2, 3]).reshape(2, 1, 1) if batch else np.float32(2)
    np.testing.assert_allclose(back(R.SparseMatrixMul(a=csr(a), b=factor)), a * factor, rtol=1e-6)
    c = dense(*batch, 3, 4, dtype=np.complex64)
    found = R.SparseMatrixTranspose(input=csr(c), conjugate=True, type=tf.complex64)
    np.testing.assert_array_equal(back(found), turned(c, False, True))
    zeros = R.SparseMatrixZeros(dense_shape=[*batch, 3, 4], type=tf.float64)
    assert back(zeros).shape == (*batch, 3, 4) and back(zeros).dtype == tf.float64 and not back(zeros).numpy().any()


@pytest.mark.parametrize("batch", [(), (2,)])
def test_softmax_and_its_gradient(batch):
    logits, dy = dense(*batch, 3, 4), dense(*batch, 3, 4)
    present = logits != 0
    powers = np.where(present, np.exp(logits), 0)
    expected = powers / np.maximum(powers.sum(-1, keepdims=True), 1e-30)
    softmax = R.SparseMatrixSoftmax(logits=csr(logits), type=tf.float32)
    np.testing.assert_allclose(back(softmax), expected, rtol=1e-5)
    gradient = R.SparseMatrixSoftmaxGrad(softmax=softmax, grad_softmax=csr(dy), type=tf.float32)
    wanted = expected * (dy - (expected * dy).sum(-1, keepdims=True))
    np.testing.assert_allclose(back(gradient), wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("batch", [(), (2,)])
def test_cholesky_in_an_order_that_keeps_it_sparse(batch):
    arrow = np.eye(5, dtype=np.float32) * 5
    arrow[1:, 0] = arrow[0, 1:] = 1
    x = np.broadcast_to(arrow, (*batch, 5, 5))
    order = R.SparseMatrixOrderingAMD(input=csr(x))
    assert sorted(order.numpy().reshape(-1, 5)[0].tolist()) == [0, 1, 2, 3, 4]
    factor = R.SparseMatrixSparseCholesky(input=csr(x), permutation=order, type=tf.float32)
    for matrix, row, lower in zip(
        x.reshape(-1, 5, 5), order.numpy().reshape(-1, 5), back(factor).numpy().reshape(-1, 5, 5)
    ):
        np.testing.assert_allclose(lower @ lower.T, matrix[row][:, row], rtol=1e-5, atol=1e-5)
    plain = np.broadcast_to(np.arange(5, dtype=np.int32), (*batch, 5))
    full = R.SparseMatrixSparseCholesky(input=csr(x), permutation=plain, type=tf.float32)
    assert (R.SparseMatrixNNZ(sparse_matrix=factor).numpy() < R.SparseMatrixNNZ(sparse_matrix=full).numpy()).all()


def test_what_is_no_matrix():
    places = np.zeros([1, 2], np.int64)
    for parts, text in [
        ((places, [1.0], tf.constant(5, tf.int64)), "dense_shape must be rank 1"),
        ((places[0], [1.0], [5]), "indices must be rank 2"),
        ((np.zeros([1, 3], np.int64), [1.0], [2**31, 1, 1]), "batch_size must be < Int32Max"),
        ((places, [1.0], [2**31, 1]), "must be <= Int32Max"),
        ((places[:, :1], [1.0], [2]), "must have rank 2 or 3"),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=text):
            R.SparseTensorToCSRSparseMatrix(indices=parts[0], values=parts[1], dense_shape=parts[2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid input matrix"):
        R.SparseMatrixNNZ(sparse_matrix=tf.ones([2, 2]))
