"""Linear algebra against NumPy, SciPy and finite differences: both modes, second order, real and complex."""

import numpy as np
import pytest
import scipy.linalg

import tapeflow as tf

REAL, COMPLEX = "float64", "complex128"


def numbers(seed, *shape, dtype=REAL):
    random = np.random.default_rng(seed)
    x = random.normal(size=shape)
    return x + 1j * random.normal(size=shape) if dtype == COMPLEX else x


def hermitian(x):
    return x + x.conj().swapaxes(-1, -2)


def weighted(outputs, seed=9):
    """One real number that depends on every element."""
    total = 0.0
    for i, y in enumerate(outputs if isinstance(outputs, list | tuple) else [outputs]):
        y = tf.convert_to_tensor(y)
        weight = tf.constant(numbers(seed + i, *y.shape, dtype=y.dtype.name))
        product = tf.math.conj(weight) * y
        total = total + tf.reduce_sum(tf.math.real(product) if y.dtype.is_complex else product)
    return total


def along(gradient, direction):
    return float(np.sum(np.real(np.conj(np.asarray(gradient)) * direction)))


def check_derivatives(function, *inputs, second=True, tolerance=1e-6):
    """Reverse mode, forward mode and the derivative of the gradient, each against a central difference."""
    directions = [numbers(100 + i, *x.shape, dtype=x.dtype.name) for i, x in enumerate(inputs)]
    step = 1e-5

    def loss(*values):
        return weighted(function(*values))

    def gradients(*values):
        values = [tf.constant(v) for v in values]
        with tf.GradientTape() as tape:
            for v in values:
                tape.watch(v)
            total = loss(*values)
        return tape.gradient(total, values, unconnected_gradients="zero")

    def moved(sign):
        return [x + sign * step * d for x, d in zip(inputs, directions)]

    expected = (float(loss(*moved(1))) - float(loss(*moved(-1)))) / (2 * step)
    got = sum(along(g, d) for g, d in zip(gradients(*inputs), directions))
    assert got == pytest.approx(expected, rel=tolerance, abs=tolerance)

    values = [tf.constant(x) for x in inputs]
    with tf.autodiff.ForwardAccumulator(values, [tf.constant(d) for d in directions]) as accumulator:
        total = loss(*values)
    assert float(accumulator.jvp(total)) == pytest.approx(expected, rel=tolerance, abs=tolerance)

    if second:

        def slope(*values):
            return sum(along(g, d) for g, d in zip(gradients(*values), directions))

        expected = (slope(*moved(1)) - slope(*moved(-1))) / (2 * step)
        values = [tf.constant(x) for x in inputs]
        with tf.GradientTape() as outer:
            for v in values:
                outer.watch(v)
            with tf.GradientTape() as inner:
                for v in values:
                    inner.watch(v)
                total = loss(*values)
            firsts = inner.gradient(total, values)
            products = [tf.math.conj(tf.constant(d)) * g for g, d in zip(firsts, directions)]
            slope_now = sum(tf.reduce_sum(tf.math.real(p) if p.dtype.is_complex else p) for p in products)
        seconds = outer.gradient(slope_now, values, unconnected_gradients="zero")
        got = sum(along(g, d) for g, d in zip(seconds, directions))
        assert got == pytest.approx(expected, rel=20 * tolerance, abs=20 * tolerance)


def projector(v):
    """What is left of eigenvectors when their phases are taken away."""
    columns = tf.unstack(v, axis=-1)
    return [tf.einsum("...i,...j->...ij", c, tf.math.conj(c)) for c in columns]


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
class TestDerivatives:
    def test_cholesky(self, dtype):
        x = hermitian(numbers(1, 2, 3, 3, dtype=dtype)) + 8 * np.eye(3)
        check_derivatives(lambda x: tf.linalg.cholesky(0.5 * (x + tf.linalg.adjoint(x))), x)

    @pytest.mark.parametrize("adjoint", [False, True])
    def test_inverse_and_solve(self, dtype, adjoint):
        a, b = numbers(1, 2, 3, 3, dtype=dtype) + 4 * np.eye(3), numbers(2, 2, 3, 2, dtype=dtype)
        check_derivatives(lambda a: tf.linalg.inv(a, adjoint=adjoint), a)
        check_derivatives(lambda a, b: tf.linalg.solve(a, b, adjoint=adjoint), a, b)
        for lower in (True, False):
            check_derivatives(lambda a, b, lower=lower: tf.linalg.triangular_solve(a, b, lower, adjoint), a, b)

    def test_triangular_solve_broadcasts(self, dtype):
        a, b = numbers(1, 3, 3, dtype=dtype) + 4 * np.eye(3), numbers(2, 2, 3, 2, dtype=dtype)
        check_derivatives(tf.linalg.triangular_solve, a, b)
        check_derivatives(tf.linalg.triangular_solve, np.stack([a, 2 * a])[:, None], b[None])

    def test_determinants(self, dtype):
        a = numbers(1, 2, 3, 3, dtype=dtype)
        check_derivatives(tf.linalg.det, a)
        check_derivatives(tf.linalg.slogdet, a)
        check_derivatives(lambda x: tf.linalg.logdet(0.5 * (x + tf.linalg.adjoint(x))), hermitian(a) + 9 * np.eye(3))

    @pytest.mark.parametrize("shape", [(3, 3), (5, 3), (2, 4)])
    def test_qr(self, dtype, shape):
        check_derivatives(tf.linalg.qr, numbers(3, 2, *shape, dtype=dtype))

    @pytest.mark.parametrize("shape", [(3, 3), (5, 3), (2, 4)])
    @pytest.mark.parametrize("full", [False, True])
    def test_svd(self, dtype, shape, full):
        x = numbers(4, *shape, dtype=dtype)
        check_derivatives(lambda x: tf.linalg.svd(x, compute_uv=False), x)

        def pieces(x):
            s, u, v = tf.linalg.svd(x, full_matrices=full)
            k = min(shape)
            pairs = [tf.einsum("i,j->ij", u[:, i], tf.math.conj(v[:, i])) for i in range(k)]
            rest = [tf.matmul(w[:, k:], w[:, k:], adjoint_b=True) for w in (u, v) if full and w.shape[-1] > k]
            return [s, *pairs, *rest]

        check_derivatives(pieces, x, second=False)

    def test_eigh(self, dtype):
        x = hermitian(numbers(5, 2, 3, 3, dtype=dtype))

        def pieces(x):
            e, v = tf.linalg.eigh(0.5 * (x + tf.linalg.adjoint(x)))
            return [e, *projector(v)]

        check_derivatives(pieces, x)
        check_derivatives(lambda x: tf.linalg.eigvalsh(0.5 * (x + tf.linalg.adjoint(x))), x)

    def test_eig(self, dtype):
        x = numbers(6, 3, 3, dtype=dtype)

        def pieces(x):
            e, v = tf.linalg.eig(x)
            return [e, *projector(v)]

        check_derivatives(pieces, x, second=False)
        check_derivatives(tf.linalg.eigvals, x, second=False)

    @pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
    def test_pinv(self, dtype, shape):
        check_derivatives(tf.linalg.pinv, numbers(7, 2, *shape, dtype=dtype))

    def test_functions_of_matrices(self, dtype):
        x = numbers(8, 2, 3, 3, dtype=dtype)
        check_derivatives(tf.linalg.expm, x)
        check_derivatives(tf.linalg.sqrtm, x + 6 * np.eye(3))
        if dtype == COMPLEX:
            check_derivatives(tf.linalg.logm, x + 6 * np.eye(3))

    @pytest.mark.parametrize("pivoting", [True, False])
    def test_tridiagonal(self, dtype, pivoting):
        d, b = numbers(9, 2, 3, 4, dtype=dtype) + np.array([[0.0], [5.0], [0.0]]), numbers(10, 2, 4, 2, dtype=dtype)
        check_derivatives(lambda d, b: tf.linalg.tridiagonal_solve(d, b, partial_pivoting=pivoting), d, b)
        check_derivatives(tf.linalg.tridiagonal_matmul, d, b)

    def test_diagonals(self, dtype):
        x, d = numbers(11, 2, 3, 4, dtype=dtype), numbers(12, 2, 2, 3, dtype=dtype)
        check_derivatives(lambda x: tf.linalg.diag_part(x, k=(-1, 1)), x)
        check_derivatives(lambda x, d: tf.linalg.set_diag(x, d, k=(0, 1)), x, d)
        check_derivatives(lambda d: tf.linalg.diag(d, k=(-1, 0)), d)
        check_derivatives(lambda x: tf.linalg.band_part(x, 0, 1), x)

    def test_least_squares(self, dtype):
        for m, n in ((5, 3), (2, 4)):
            a, b = numbers(13, m, n, dtype=dtype), numbers(14, m, 2, dtype=dtype)
            check_derivatives(tf.linalg.lstsq, a, b, tolerance=1e-4)
            check_derivatives(lambda a, b: tf.linalg.lstsq(a, b, fast=False), a, b)


def test_pinv_gradient_with_values_left_out():
    check_derivatives(lambda x: tf.linalg.pinv(x, rcond=0.3), np.diag([3.0, 2.0, 0.5]) + 0.1 * numbers(1, 3, 3))


def test_sign_of_determinant_has_gradient_zero():
    x = tf.constant(numbers(1, 3, 3))
    with tf.GradientTape() as tape:
        tape.watch(x)
        sign = tf.linalg.slogdet(x).sign
    assert not tape.gradient(sign, x).numpy().any()


def test_pinv_gradient_with_equal_singular_values():
    check_derivatives(tf.linalg.pinv, np.eye(3) * 2.0)


def test_norm_derivatives():
    x = numbers(1, 2, 3, 4)
    for order, axis in (("euclidean", None), (1, 1), (3, -1), (np.inf, 2), ("fro", [0, 2]), (2, [1, 2]), (1, [-2, -1])):
        check_derivatives(lambda x, order=order, axis=axis: tf.norm(x, order, axis), x)


@pytest.mark.parametrize("order", ["fro", 1, 2, np.inf])
def test_matrix_norms_equal_numpy(order):
    x = numbers(1, 3, 4)
    np.testing.assert_allclose(tf.norm(x, order, [0, 1]), np.linalg.norm(x, order))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_factorisations_of_larger_matrices(dtype):
    n, tolerance = 70, 1e-3 if dtype in ("float32", "complex64") else 1e-10
    x = numbers(1, n, n, dtype=COMPLEX if "complex" in dtype else REAL).astype(dtype)
    q, r = tf.linalg.qr(x)
    s, u, v = tf.linalg.svd(x)
    e, w = tf.linalg.eig(x)
    np.testing.assert_allclose(tf.matmul(q, r), x, atol=tolerance)
    np.testing.assert_allclose((u.numpy() * s.numpy()) @ v.numpy().conj().T, x, atol=tolerance)
    np.testing.assert_allclose(x @ w.numpy(), w.numpy() * e.numpy(), atol=tolerance)
    np.testing.assert_allclose(tf.linalg.lu_reconstruct(*tf.linalg.lu(x)), x, atol=tolerance)
    root = tf.linalg.sqrtm(x @ x.conj().T)
    np.testing.assert_allclose(tf.matmul(root, root), x @ x.conj().T, rtol=tolerance, atol=n * tolerance)


def test_expm_equals_scipy_at_all_scales():
    for scale in (1e-8, 1e-2, 1.0, 30.0):
        x = scale * numbers(1, 5, 5)
        expected = scipy.linalg.expm(x)
        np.testing.assert_allclose(tf.linalg.expm(x), expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())


def test_logm_equals_scipy():
    x = numbers(1, 5, 5) + 3 * np.eye(5)
    np.testing.assert_allclose(tf.linalg.logm(x.astype(COMPLEX)), scipy.linalg.logm(x), atol=1e-10)


def test_empty_matrices_and_batches():
    assert tf.linalg.det(tf.zeros([2, 0, 0])).numpy().tolist() == [1.0, 1.0]
    assert [y.numpy().tolist() for y in tf.linalg.slogdet(tf.zeros([1, 0, 0]))] == [[1.0], [0.0]]
    assert [y.shape.as_list() for y in tf.linalg.svd(tf.zeros([2, 0, 3]))] == [[2, 0], [2, 0, 0], [2, 3, 0]]
    assert [y.shape.as_list() for y in tf.linalg.qr(tf.zeros([0, 3, 2]))] == [[0, 3, 2], [0, 2, 2]]
    for name in ("inv", "cholesky", "expm", "sqrtm", "lu", "eigh", "eig", "pinv"):
        getattr(tf.linalg, name)(tf.zeros([0, 2, 2]))
        getattr(tf.linalg, name)(tf.zeros([2, 0, 0]))
    assert tf.linalg.solve(tf.zeros([0, 0]), tf.zeros([0, 2])).shape.as_list() == [0, 2]
    assert tf.linalg.triangular_solve(tf.zeros([2, 2]) + tf.eye(2), tf.zeros([2, 0])).shape.as_list() == [2, 0]


def test_half_precision_is_computed_in_float32():
    x = tf.constant([[4.0, 2.0], [2.0, 5.0]], tf.float16)
    assert tf.linalg.cholesky(x).dtype == tf.float16
    np.testing.assert_array_equal(tf.linalg.cholesky(x), [[2.0, 0.0], [1.0, 2.0]])


def test_not_positive_definite_gives_nan():
    assert np.isnan(tf.linalg.cholesky([[1.0, 2.0], [2.0, 1.0]]).numpy()).any()


def test_real_matrix_without_real_square_root_gives_nan():
    assert np.isnan(tf.linalg.sqrtm([[-1.0, 0.0], [0.0, 4.0]]).numpy()).all()


def test_nan_passes_or_is_refused_as_in_tensorflow():
    x = tf.constant([[1.0, np.nan], [np.nan, 2.0]])
    assert np.isnan(tf.linalg.svd(x, compute_uv=False).numpy()).all()
    with pytest.raises(tf.errors.InvalidArgumentError, match="not successful"):
        tf.linalg.eigh(x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="not successful"):
        tf.linalg.eig(x)


def test_lu_has_no_gradient():
    x = tf.constant([[3.0, 1.0], [1.0, 2.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.linalg.lu(x).lu
    with pytest.raises(LookupError, match="gradient"):
        tape.gradient(y, x)


def test_qr_of_tall_full_matrices_has_no_gradient():
    x = tf.constant(numbers(1, 4, 2))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.linalg.qr(x, full_matrices=True).q
    with pytest.raises(tf.errors.UnimplementedError, match="QrGrad not implemented"):
        tape.gradient(y, x)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: tf.linalg.inv([[1.0, 2.0], [2.0, 4.0]]), tf.errors.InvalidArgumentError, "Input is not invertible"),
        (lambda: tf.linalg.inv(tf.zeros([2, 3])), tf.errors.InvalidArgumentError, "Input matrix must be square"),
        (lambda: tf.linalg.det(tf.zeros([3])), tf.errors.InvalidArgumentError, "must have rank >= 2, got 1"),
        (lambda: tf.linalg.lu(tf.zeros([2, 2])), tf.errors.InvalidArgumentError, "Input is not invertible"),
        (
            lambda: tf.linalg.solve(tf.zeros([2, 2]), tf.zeros([2, 1])),
            tf.errors.InvalidArgumentError,
            "Input matrix is not invertible",
        ),
        (
            lambda: tf.linalg.solve(tf.eye(2), tf.zeros([4, 2, 1])),
            tf.errors.InvalidArgumentError,
            "All input tensors must have the same rank",
        ),
        (lambda: tf.linalg.inv([[1, 2], [3, 4]]), tf.errors.InvalidArgumentError, "int32 is not in the list"),
        (lambda: tf.linalg.cross(tf.zeros([2]), tf.zeros([2])), tf.errors.FailedPreconditionError, "3-element vectors"),
        (lambda: tf.norm([1.0], ord=-1), ValueError, "supported vector norm"),
        (lambda: tf.norm(tf.zeros([2, 2]), 3, [0, 1]), ValueError, "supported matrix norm"),
        (lambda: tf.linalg.matrix_transpose([1.0]), ValueError, "rank >= 2"),
        (lambda: tf.linalg.matrix_rank([[1]]), TypeError, "float"),
        (lambda: tf.linalg.diag_part(tf.zeros([2, 2]), k=5), tf.errors.InvalidArgumentError, "out of bound"),
        (lambda: tf.linalg.diag([1.0, 2.0], num_rows=1), tf.errors.InvalidArgumentError, "number of rows is too small"),
        (lambda: tf.linalg.diag([1.0, 2.0], k=(0, 1)), tf.errors.InvalidArgumentError, "number of diagonals"),
        (lambda: tf.linalg.set_diag(tf.zeros([2, 2]), [1.0]), tf.errors.InvalidArgumentError, "shape"),
        (lambda: tf.linalg.band_part(tf.zeros([2, 2]), 5, 0), tf.errors.InvalidArgumentError, "num_lower"),
        (lambda: tf.linalg.tensor_diag_part(tf.zeros([2, 3])), tf.errors.InvalidArgumentError, "Invalid shape"),
        (
            lambda: tf.tensordot(tf.zeros([2, 3]), tf.zeros([4, 2]), 1),
            tf.errors.InvalidArgumentError,
            "size-incompatible",
        ),
        (lambda: tf.tensordot([1.0], [1.0], -1), ValueError, "at least 0"),
        (lambda: tf.tensordot([1.0], [1.0], [[0], []]), ValueError, "contraction axes"),
        (lambda: tf.matmul(tf.ones([2, 2], tf.int8), tf.ones([2, 2], tf.int8)), tf.errors.InvalidArgumentError, "int8"),
        (
            lambda: tf.linalg.tridiagonal_solve(tf.zeros([3, 4]), tf.zeros([5])),
            ValueError,
            "left-hand sided and right-hand sides",
        ),
    ],
)
def test_errors(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize("align", ["LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT"])
def test_diagonals_survive_a_round_trip(align):
    x = numbers(1, 2, 4, 5)
    band = tf.linalg.diag_part(x, k=(-2, 3), align=align)
    again = tf.linalg.diag(band, k=(-2, 3), num_rows=4, num_cols=5, align=align)
    np.testing.assert_array_equal(again, np.triu(np.tril(x, 3), -2))
    np.testing.assert_array_equal(tf.linalg.set_diag(x, band, k=(-2, 3), align=align), x)


def test_tridiagonal_formats_agree():
    matrix = np.diag([4.0, 5.0, 6.0]) + np.diag([1.0, 2.0], 1) + np.diag([3.0, 1.0], -1)
    rhs = numbers(1, 3, 2)
    expected = np.linalg.solve(matrix, rhs)
    compact = [[1.0, 2.0, 9.0], [4.0, 5.0, 6.0], [9.0, 3.0, 1.0]]
    sequence = [np.array([1.0, 2.0]), np.array([4.0, 5.0, 6.0]), np.array([3.0, 1.0])]
    for form, diagonals in (("compact", np.array(compact)), ("sequence", sequence), ("matrix", matrix)):
        np.testing.assert_allclose(tf.linalg.tridiagonal_solve(diagonals, rhs, form), expected)
        np.testing.assert_allclose(tf.linalg.tridiagonal_matmul(diagonals, rhs, form), matrix @ rhs)
    np.testing.assert_allclose(tf.linalg.tridiagonal_solve(matrix, rhs.T, "matrix", transpose_rhs=True), expected)
    np.testing.assert_allclose(tf.linalg.tridiagonal_solve(matrix, rhs[:, 0], "matrix"), expected[:, 0])


def test_pivoting_keeps_small_pivots_harmless():
    matrix = np.array([[1e-20, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 2.0]])
    rhs = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(tf.linalg.tridiagonal_solve(matrix, rhs, "matrix"), np.linalg.solve(matrix, rhs))


def test_singular_tridiagonal_gives_nan():
    assert np.isnan(tf.linalg.tridiagonal_solve(tf.zeros([3, 4]), tf.zeros([4])).numpy()).all()


def test_banded_triangular_solve():
    bands = np.array([[2.0, 3.0, 4.0], [9.0, 2.0, 3.0]])
    lower = np.array([[2.0, 0.0, 0.0], [2.0, 3.0, 0.0], [0.0, 3.0, 4.0]])
    ones = np.ones([3, 1])
    np.testing.assert_allclose(tf.linalg.banded_triangular_solve(bands, ones), np.linalg.solve(lower, ones))
    adjoint = tf.linalg.banded_triangular_solve(bands, ones, adjoint=True)
    np.testing.assert_allclose(adjoint, np.linalg.solve(lower.T, ones))
    upper = tf.linalg.banded_triangular_solve(np.array([[2.0, 3.0, 9.0], [2.0, 3.0, 4.0]]), ones, lower=False)
    np.testing.assert_allclose(upper, np.linalg.solve(lower.T, ones))


def test_eigh_tridiagonal_selections():
    alpha, beta = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0])
    all_values = scipy.linalg.eigh_tridiagonal(alpha, beta, eigvals_only=True)
    np.testing.assert_allclose(tf.linalg.eigh_tridiagonal(alpha, beta), all_values)
    chosen = tf.linalg.eigh_tridiagonal(alpha, beta, select="i", select_range=(1, 2))
    np.testing.assert_allclose(chosen, all_values[1:])
    chosen = tf.linalg.eigh_tridiagonal(alpha, beta, select="v", select_range=(0.0, 2.0))
    np.testing.assert_allclose(chosen, all_values[1:2])
    values, vectors = tf.linalg.eigh_tridiagonal(alpha, beta, eigvals_only=False)
    dense = np.diag(alpha) + np.diag(beta, 1) + np.diag(beta, -1)
    np.testing.assert_allclose(dense @ vectors.numpy(), vectors.numpy() * values.numpy(), atol=1e-12)


def test_matmul_output_type():
    a = tf.constant([[100, 100]], tf.int8)
    product = tf.matmul(a, a, transpose_b=True, output_type=tf.int32)
    assert product.dtype == tf.int32
    assert product.numpy().tolist() == [[20000]]
    mixed = tf.matmul(tf.constant([[200]], tf.uint8), tf.constant([[-3]], tf.int8), output_type=tf.int32)
    assert mixed.numpy().tolist() == [[-600]]
    x = tf.constant([[1.0, 2.0]], tf.bfloat16)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.matmul(x, x, transpose_b=True, output_type=tf.float32)
    assert y.dtype == tf.float32
    assert tape.gradient(y, x).dtype == tf.bfloat16


@pytest.mark.parametrize("shape", [(3, 3), (4, 3), (3, 5)])
def test_rank_and_pseudo_inverse(shape):
    x = numbers(1, *shape)
    x[-1] = x[0]
    assert int(tf.linalg.matrix_rank(x)) == np.linalg.matrix_rank(x)
    np.testing.assert_allclose(tf.linalg.pinv(x), np.linalg.pinv(x, rcond=1e-10), atol=1e-12)
    np.testing.assert_allclose(tf.linalg.pinv(np.stack([x, x])).numpy()[1], np.linalg.pinv(x, rcond=1e-10), atol=1e-12)


def test_lu_solve_broadcasts():
    factors = tf.linalg.lu(numbers(1, 3, 2, 2))
    assert tf.linalg.lu_solve(*factors, numbers(2, 2, 1)).shape.as_list() == [3, 2, 1]
    assert tf.linalg.lu_solve(*tf.linalg.lu(numbers(1, 2, 2)), numbers(2, 3, 2, 1)).shape.as_list() == [3, 2, 1]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize(("n", "k"), [(65, 8), (130, 3), (200, 90)])
def test_large_triangular_systems(dtype, n, k):
    eps = np.finfo(dtype).eps
    a = (numbers(n, n, n, dtype=dtype) / n + 2 * np.eye(n)).astype(dtype)
    b = numbers(k, n, k, dtype=dtype).astype(dtype)
    for lower in (True, False):
        triangle = np.tril(a) if lower else np.triu(a)
        for adjoint in (True, False):
            x = tf.linalg.triangular_solve(a, b, lower=lower, adjoint=adjoint).numpy()
            matrix = triangle.conj().T if adjoint else triangle
            np.testing.assert_allclose(matrix @ x, b, atol=40 * eps)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_large_inverses_and_equations(dtype):
    n, eps = 150, np.finfo(dtype).eps
    a = (numbers(1, n, n, dtype=dtype) + 20 * np.eye(n)).astype(dtype)
    b = numbers(2, n, 20, dtype=dtype).astype(dtype)
    np.testing.assert_allclose(a @ tf.linalg.inv(a).numpy(), np.eye(n), atol=100 * eps)
    for adjoint in (True, False):
        x = tf.linalg.solve(a, b, adjoint=adjoint).numpy()
        np.testing.assert_allclose((a.conj().T if adjoint else a) @ x, b, atol=400 * eps)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_matrices_with_infinity_end(bad):
    a = np.arange(12.0).reshape(4, 3)
    a[0, 2] = a[3, 1] = bad
    assert np.isnan(tf.linalg.svd(a, compute_uv=False)).all()
    assert np.isnan(tf.linalg.pinv(a)).all()
    for decompose in (tf.linalg.eigh, tf.linalg.eig, tf.linalg.eigvals):
        with pytest.raises(tf.errors.InvalidArgumentError, match="decomposition was not successful"):
            decompose(a[1:])


def test_signs_of_infinite_determinants():
    sign, size = tf.linalg.slogdet([[np.inf, 0.0], [0.0, 1.0]])
    assert (sign.numpy(), size.numpy()) == (1.0, np.inf)
    assert tf.linalg.slogdet([[-np.inf, 0.0], [0.0, 1.0]]).sign.numpy() == -1.0
    assert np.isnan(tf.linalg.slogdet([[np.nan, 0.0], [0.0, 1.0]]).sign.numpy())


def test_permutations_are_checked():
    with pytest.raises(ValueError, match="unique integers from 0 to 2"):
        tf.linalg.LinearOperatorPermutation([1, 1, 0])
    assert tf.linalg.LinearOperatorPermutation([[1, 0], [0, 1]]).shape == [2, 2, 2]


def test_the_sign_of_a_determinant_that_is_no_number():
    sign, size = tf.linalg.slogdet([[np.nan, 1.0], [1.0, 1.0]])
    assert np.isnan(sign)
    assert np.isnan(size)
