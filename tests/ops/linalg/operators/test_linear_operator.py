"""Each linear operator against the dense matrix that it stands for."""

import numpy as np
import pytest

import tapeflow as tf


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def matrix(seed, *shape):
    return tf.linalg.LinearOperatorFullMatrix(numbers(seed, *shape) + 4 * np.eye(shape[-2], shape[-1]))


def positive(seed, n):
    x = numbers(seed, n, n)
    return tf.linalg.LinearOperatorFullMatrix(x @ x.T + np.eye(n), is_self_adjoint=True, is_positive_definite=True)


def complex_numbers(seed, *shape):
    return numbers(seed, *shape) + 1j * numbers(seed + 50, *shape) + 4


L = tf.linalg
SQUARE = {
    "full": lambda: matrix(1, 2, 3, 3),
    "positive": lambda: positive(1, 4),
    "lower": lambda: L.LinearOperatorLowerTriangular(numbers(1, 2, 3, 3) + 4 * np.eye(3)),
    "diag": lambda: L.LinearOperatorDiag(numbers(1, 2, 3) + 5),
    "complex_diag": lambda: L.LinearOperatorDiag(complex_numbers(1, 2, 3)),
    "identity": lambda: L.LinearOperatorIdentity(3, batch_shape=[2], dtype=tf.float64),
    "scaled": lambda: L.LinearOperatorScaledIdentity(3, np.array([2.0, -3.0])),
    "permutation": lambda: L.LinearOperatorPermutation([[2, 0, 1], [0, 2, 1]], dtype=tf.float64),
    "householder": lambda: L.LinearOperatorHouseholder(numbers(1, 2, 3)),
    "toeplitz": lambda: L.LinearOperatorToeplitz(numbers(1, 2, 3) + [9, 0, 0], numbers(2, 3)),
    "tridiag": lambda: L.LinearOperatorTridiag(numbers(1, 2, 3, 4) + [[0.0], [6.0], [0.0]]),
    "tridiag_sequence": lambda: L.LinearOperatorTridiag(
        [numbers(1, 3), numbers(2, 2, 4) + 6, numbers(3, 3)], diagonals_format="sequence"
    ),
    "tridiag_matrix": lambda: L.LinearOperatorTridiag(numbers(1, 4, 4) + 6 * np.eye(4), diagonals_format="matrix"),
    "circulant": lambda: L.LinearOperatorCirculant(complex_numbers(1, 2, 4), tf.complex128),
    "circulant2": lambda: L.LinearOperatorCirculant2D(complex_numbers(1, 2, 3), tf.complex128),
    "circulant3": lambda: L.LinearOperatorCirculant3D(complex_numbers(1, 2, 2, 2), tf.complex128),
    "adjoint": lambda: L.LinearOperatorAdjoint(matrix(1, 3, 3)),
    "inversion": lambda: L.LinearOperatorInversion(matrix(1, 3, 3)),
    "composition": lambda: L.LinearOperatorComposition([matrix(1, 3, 3), L.LinearOperatorDiag(numbers(2, 3) + 4)]),
    "kronecker": lambda: L.LinearOperatorKronecker([matrix(1, 2, 2), matrix(2, 2, 3, 3)]),
    "block_diag": lambda: L.LinearOperatorBlockDiag([matrix(1, 2, 2), matrix(2, 2, 3, 3)]),
    "block_lower": lambda: L.LinearOperatorBlockLowerTriangular(
        [[matrix(1, 2, 2)], [L.LinearOperatorFullMatrix(numbers(3, 3, 2)), matrix(2, 3, 3)]]
    ),
    "low_rank": lambda: L.LinearOperatorLowRankUpdate(
        L.LinearOperatorDiag(numbers(1, 4) + 5), numbers(2, 4, 2), numbers(3, 2) + 3, numbers(4, 4, 2)
    ),
    "low_rank_positive": lambda: L.LinearOperatorLowRankUpdate(positive(1, 4), numbers(2, 4, 2)),
}


def adjoint(x):
    return x.conj().swapaxes(-1, -2)


@pytest.mark.parametrize("name", SQUARE)
def test_square_operator_equals_its_matrix(name):
    operator = SQUARE[name]()
    dense = operator.to_dense().numpy()
    assert operator.shape.as_list() == list(dense.shape)
    n = dense.shape[-1]
    x = numbers(7, n, 2).astype(dense.dtype)
    close = {"rtol": 1e-8, "atol": 1e-8}
    np.testing.assert_allclose(operator.matmul(x), dense @ x, **close)
    np.testing.assert_allclose(operator @ x, dense @ x, **close)
    np.testing.assert_allclose(operator.matmul(x, adjoint=True), adjoint(dense) @ x, **close)
    np.testing.assert_allclose(operator.matmul(adjoint(x), adjoint_arg=True), dense @ x, **close)
    np.testing.assert_allclose(operator.matvec(x[:, 0]), dense @ x[:, 0], **close)
    np.testing.assert_allclose(operator.solve(x), np.linalg.inv(dense) @ x, **close)
    np.testing.assert_allclose(operator.solve(x, adjoint=True), np.linalg.inv(adjoint(dense)) @ x, **close)
    np.testing.assert_allclose(operator.solve(adjoint(x), adjoint_arg=True), np.linalg.inv(dense) @ x, **close)
    np.testing.assert_allclose(operator.solvevec(x[:, 0]), np.linalg.inv(dense) @ x[:, 0], **close)
    np.testing.assert_allclose(operator.diag_part(), np.diagonal(dense, axis1=-2, axis2=-1), **close)
    np.testing.assert_allclose(operator.trace(), np.trace(dense, axis1=-2, axis2=-1), **close)
    np.testing.assert_allclose(operator.determinant(), np.linalg.det(dense), **close)
    np.testing.assert_allclose(operator.log_abs_determinant(), np.linalg.slogdet(dense)[1], **close)
    np.testing.assert_allclose(operator.adjoint().to_dense(), adjoint(dense), **close)
    np.testing.assert_allclose(operator.H.matmul(x), adjoint(dense) @ x, **close)
    np.testing.assert_allclose(operator.inverse().to_dense(), np.linalg.inv(dense), **close)
    np.testing.assert_allclose(operator.cond(), np.linalg.cond(dense), **close)
    np.testing.assert_allclose(operator.add_to_tensor(tf.eye(n, dtype=operator.dtype)), dense + np.eye(n), **close)
    np.testing.assert_allclose(tf.convert_to_tensor(operator), dense, **close)
    if operator.is_self_adjoint:
        np.testing.assert_allclose(np.sort(operator.eigvals()), np.sort(np.linalg.eigvalsh(dense)), **close)
    if operator.is_self_adjoint and operator.is_positive_definite:
        factor = operator.cholesky().to_dense().numpy()
        np.testing.assert_allclose(factor @ adjoint(factor), dense, **close)


@pytest.mark.parametrize("left", SQUARE)
def test_products_of_operators(left):
    a = SQUARE[left]()
    dense, n = a.to_dense().numpy(), a.shape[-1]
    others = [
        L.LinearOperatorDiag(tf.cast(numbers(3, n) + 4, a.dtype)),
        L.LinearOperatorIdentity(n, dtype=a.dtype),
        L.LinearOperatorZeros(n, dtype=a.dtype),
        L.LinearOperatorScaledIdentity(n, tf.cast(3.0, a.dtype)),
        L.LinearOperatorLowerTriangular(tf.cast(numbers(4, n, n), a.dtype)),
        a,
    ]
    for b in others:
        other = b.to_dense().numpy()
        np.testing.assert_allclose(a.matmul(b).to_dense(), dense @ other, atol=1e-8)
        np.testing.assert_allclose(b.matmul(a).to_dense(), other @ dense, atol=1e-8)
    np.testing.assert_allclose(a.solve(others[0]).to_dense(), np.linalg.inv(dense) @ others[0].to_dense(), atol=1e-8)
    unit = np.broadcast_to(np.eye(n), dense.shape)
    np.testing.assert_allclose(a.inverse().matmul(a).to_dense(), unit, atol=1e-8)


def test_gradients_reach_parameters_and_variables():
    d, x = tf.Variable([2.0, 4.0]), tf.constant([[1.0], [1.0]])
    operator = tf.linalg.LinearOperatorDiag(d)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(operator.solve(x))
    assert tape.gradient(y, d).numpy().tolist() == [-0.25, -0.0625]
    assert operator.trainable_variables == (d,)


def test_rectangular_operators():
    a = tf.linalg.LinearOperatorFullMatrix(numbers(1, 2, 3))
    assert a.is_square is False
    assert a.domain_dimension == 3
    assert a.range_dimension == 2
    with pytest.raises(NotImplementedError, match="expected to not be square"):
        a.determinant()
    with pytest.raises(NotImplementedError, match="expected to not be square"):
        a.solve(numbers(1, 2, 1))
    kron = tf.linalg.LinearOperatorKronecker([a, tf.linalg.LinearOperatorFullMatrix(numbers(2, 3, 2))])
    np.testing.assert_allclose(kron.to_dense(), np.kron(numbers(1, 2, 3), numbers(2, 3, 2)))


def test_blocks_take_and_give_lists():
    a, b = matrix(1, 2, 2), matrix(2, 3, 3)
    parts = [tf.constant(numbers(3, 2, 1)), tf.constant(numbers(4, 3, 1))]
    for operator in (
        tf.linalg.LinearOperatorBlockDiag([a, b]),
        tf.linalg.LinearOperatorBlockLowerTriangular([[a], [tf.linalg.LinearOperatorFullMatrix(numbers(5, 3, 2)), b]]),
    ):
        dense, whole = operator.to_dense().numpy(), np.concatenate(parts)
        np.testing.assert_allclose(np.concatenate(operator.matmul(parts)), dense @ whole)
        np.testing.assert_allclose(np.concatenate(operator.solve(parts)), np.linalg.solve(dense, whole))
        solved = operator.solvevec([p[:, 0] for p in parts], adjoint=True)
        np.testing.assert_allclose(np.concatenate(solved), np.linalg.solve(dense.T, whole)[:, 0])


def test_hints_are_checked():
    with pytest.raises(ValueError, match="always non-singular"):
        tf.linalg.LinearOperatorFullMatrix(np.eye(2), is_positive_definite=True, is_non_singular=False)
    with pytest.raises(ValueError, match="not compatible"):
        matrix(1, 2, 2).matmul(numbers(1, 3, 1))
    with pytest.raises(ValueError, match="Cholesky"):
        matrix(1, 2, 2).cholesky()
    with pytest.raises(TypeError, match="same dtype"):
        tf.linalg.LinearOperatorComposition([matrix(1, 2, 2), tf.linalg.LinearOperatorIdentity(2)])


def test_conjugate_gradient():
    operator = positive(1, 5)
    rhs = numbers(2, 5)
    state = tf.linalg.experimental.conjugate_gradient(operator, rhs, tol=1e-12, max_iter=50)
    np.testing.assert_allclose(state.x, np.linalg.solve(operator.to_dense(), rhs), atol=1e-8)
    conditioner = tf.linalg.LinearOperatorDiag(1.0 / operator.diag_part(), is_positive_definite=True)
    state = tf.linalg.experimental.conjugate_gradient(operator, rhs, conditioner, tol=1e-12, max_iter=50)
    np.testing.assert_allclose(state.x, np.linalg.solve(operator.to_dense(), rhs), atol=1e-8)
    with pytest.raises(ValueError, match="self-adjoint, positive definite"):
        tf.linalg.experimental.conjugate_gradient(matrix(1, 5, 5), rhs)


# ------------------------------------------------------------------------------------------- operators made of tensors

MATRIX = [[2.0, 0.0], [1.0, 3.0]]


def composites():
    diagonal = tf.linalg.LinearOperatorDiag([1.0, 2.0], is_positive_definite=True)
    full = tf.linalg.LinearOperatorFullMatrix(MATRIX)
    return {
        "diag": diagonal,
        "full": full,
        "tril": tf.linalg.LinearOperatorLowerTriangular(MATRIX),
        "identity": tf.linalg.LinearOperatorIdentity(2, batch_shape=[3]),
        "scaled": tf.linalg.LinearOperatorScaledIdentity(2, tf.constant(3.0)),
        "zeros": tf.linalg.LinearOperatorZeros(2),
        "adjoint": tf.linalg.LinearOperatorAdjoint(full),
        "inverse": tf.linalg.LinearOperatorInversion(diagonal),
        "product": tf.linalg.LinearOperatorComposition([full, diagonal]),
        "kronecker": tf.linalg.LinearOperatorKronecker([full, diagonal]),
        "blocks": tf.linalg.LinearOperatorBlockDiag([full, diagonal]),
        "low_rank": tf.linalg.LinearOperatorLowRankUpdate(diagonal, [[1.0], [2.0]], diag_update=[3.0]),
        "circulant": tf.linalg.LinearOperatorCirculant([1.0, 2.0, 3.0]),
        "toeplitz": tf.linalg.LinearOperatorToeplitz([1.0, 2.0], [1.0, 3.0]),
        "tridiagonal": tf.linalg.LinearOperatorTridiag([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], "compact"),
        "permutation": tf.linalg.LinearOperatorPermutation([1, 0]),
        "householder": tf.linalg.LinearOperatorHouseholder([0.6, 0.8]),
    }


@pytest.mark.parametrize("name", composites())
def test_taken_apart_and_put_together(name):
    operator = composites()[name]
    parts = tf.nest.flatten(operator, expand_composites=True)
    assert all(isinstance(part, tf.Tensor) for part in parts)
    again = tf.nest.pack_sequence_as(operator, parts, expand_composites=True)
    assert type(again) is type(operator)
    np.testing.assert_array_equal(again.to_dense(), operator.to_dense())
    assert again._type_spec == operator._type_spec
    assert (again.is_positive_definite, again.is_self_adjoint) == (
        operator.is_positive_definite,
        operator.is_self_adjoint,
    )


def test_an_operator_as_an_argument_of_a_function():
    traces = []

    @tf.function
    def apply(operator, x):
        traces.append(1)
        return operator.matvec(x), operator

    first, again = apply(tf.linalg.LinearOperatorDiag([1.0, 2.0]), [1.0, 1.0])
    second, _ = apply(tf.linalg.LinearOperatorDiag([3.0, 4.0]), [1.0, 1.0])
    assert (first.numpy().tolist(), second.numpy().tolist(), len(traces)) == ([1.0, 2.0], [3.0, 4.0], 1)
    assert isinstance(again, tf.linalg.LinearOperatorDiag)


def test_modules_find_the_variables_of_operators():
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.scale = tf.linalg.LinearOperatorDiag(tf.Variable([1.0, 2.0], name="diag"))
            self.both = [tf.linalg.LinearOperatorBlockDiag([self.scale, tf.linalg.LinearOperatorIdentity(2)])]

    model = Model()
    assert [v.name for v in model.trainable_variables] == ["diag:0"]
    assert model.scale.variables == model.trainable_variables
    assert model.scale in model.submodules


def test_blocks_may_be_arrays():
    operator = tf.linalg.LinearOperatorBlockDiag(
        [tf.linalg.LinearOperatorDiag([2.0, 3.0, 6.0]), tf.linalg.LinearOperatorFullMatrix([[12.0, 5.0], [-1.0, 3.0]])]
    )
    parts = [np.array([1.0, 2.0, 3.0], np.float32), np.array([-1.0, 5.0], np.float32)]
    found = operator.matvec(parts)
    np.testing.assert_allclose(found[0], [2.0, 6.0, 18.0])
    np.testing.assert_allclose(found[1], [13.0, 16.0])
    for part, back in zip(parts, operator.solvevec(found)):
        np.testing.assert_allclose(back, part, rtol=1e-5)
    columns = [part[:, None] for part in parts]
    np.testing.assert_allclose(operator.matmul(columns)[1], [[13.0], [16.0]])
    np.testing.assert_allclose(operator.solve(columns)[0], columns[0] / [[2.0], [3.0], [6.0]], rtol=1e-6)


@pytest.mark.parametrize("name", composites())
def test_saved_functions_take_operators(name, tmp_path):
    operator = composites()[name]
    module = tf.Module()
    module.dense = tf.function(lambda x: x.to_dense(), input_signature=[operator._type_spec])
    tf.saved_model.save(module, tmp_path)
    np.testing.assert_array_equal(tf.saved_model.load(tmp_path).dense(operator), operator.to_dense())


def test_specs_have_tensorflows_names():
    spec = tf.linalg.LinearOperatorDiag([1.0])._type_spec
    assert type(spec).__name__ == "LinearOperatorDiagSpec"
    assert spec._serialize() == (
        {"diag": tf.TensorSpec([1], tf.float32)},
        {"is_non_singular": None, "is_self_adjoint": True, "is_positive_definite": None, "is_square": True},
        (),
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tf.linalg.LinearOperatorIdentity(2, batch_shape=2), "must be a 1-D"),
        (lambda: tf.linalg.LinearOperatorIdentity(2, batch_shape=[-2]), "must be non-negative"),
        (lambda: tf.linalg.LinearOperatorIdentity([2]), "must be a 0-D"),
        (lambda: tf.linalg.LinearOperatorIdentity(2, is_non_singular=None), "always non-singular"),
        (lambda: tf.linalg.LinearOperatorZeros(2, -1), "`num_columns` must be non-negative"),
        (lambda: tf.linalg.LinearOperatorLowerTriangular([1.0]), "at least 2 dimensions"),
        (lambda: tf.linalg.LinearOperatorInversion(positive(1, 2), is_positive_definite=False), "positive-definite"),
        (lambda: tf.linalg.LinearOperatorComposition([positive(1, 2)] * 2, is_non_singular=False), "non-singular"),
        (
            lambda: tf.linalg.LinearOperatorBlockLowerTriangular([[positive(1, 2)]], is_non_singular=False),
            "always non-singular",
        ),
        (
            lambda: tf.linalg.LinearOperatorBlockLowerTriangular([[tf.linalg.LinearOperatorZeros(2, 3)]]),
            "must be square",
        ),
        (
            lambda: tf.linalg.LinearOperatorLowRankUpdate(positive(1, 2), numbers(1, 2, 1), numbers(2, 3)),
            "not compatible",
        ),
        (
            lambda: tf.linalg.LinearOperatorLowRankUpdate(
                tf.linalg.LinearOperatorDiag(numbers(1, 3, 2)), numbers(1, 4, 2, 1)
            ),
            "Incompatible shapes",
        ),
    ],
)
def test_contradictions_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_sizes_must_be_integers():
    for sizes in ({"num_rows": 2.0}, {"num_rows": 2, "batch_shape": [2.0]}):
        with pytest.raises(TypeError, match="must be integer"):
            tf.linalg.LinearOperatorIdentity(**sizes)


def test_singular_multiples_and_zeros_are_found():
    tf.linalg.LinearOperatorScaledIdentity(2, [1.0, 2.0]).assert_non_singular()
    with pytest.raises(tf.errors.InvalidArgumentError, match="was singular"):
        tf.linalg.LinearOperatorScaledIdentity(2, [1.0, 0.0]).assert_non_singular()
    with pytest.raises(tf.errors.InvalidArgumentError, match="always singular"):
        tf.linalg.LinearOperatorZeros(2).assert_non_singular()
    with pytest.raises(tf.errors.InvalidArgumentError, match="non-positive definite"):
        tf.linalg.LinearOperatorZeros(2).assert_positive_definite()


@pytest.mark.parametrize(
    "make",
    [
        lambda a, b: L.LinearOperatorKronecker([L.LinearOperatorFullMatrix(a), L.LinearOperatorDiag(b)]),
        lambda a, b: L.LinearOperatorBlockDiag([L.LinearOperatorFullMatrix(a), L.LinearOperatorDiag(b)]),
        lambda a, b: L.LinearOperatorBlockLowerTriangular(
            [[L.LinearOperatorDiag(b)], [L.LinearOperatorFullMatrix(a), L.LinearOperatorFullMatrix(a)]]
        ),
        lambda a, b: L.LinearOperatorCirculant(tf.cast(b, tf.complex128), tf.complex128),
    ],
    ids=["kronecker", "block_diag", "block_lower_triangular", "circulant"],
)
def test_sizes_that_are_unknown_while_tracing(make):
    a, b = np.array([[4.0, 1.0], [0.5, 3.0]]), np.array([2.0, 5.0])

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float64), tf.TensorSpec([None], tf.float64)])
    def traced(a, b):
        operator = make(a, b)
        assert operator.shape.as_list() == [None, None]
        right = tf.ones([operator.domain_dimension_tensor(), 1], operator.dtype)
        return operator.to_dense(), operator.solve(right), operator.log_abs_determinant()

    eager = make(a, b)
    dense, solved, size = traced(a, b)
    np.testing.assert_allclose(dense, eager.to_dense())
    np.testing.assert_allclose(solved, eager.solve(tf.ones([eager.shape[-1], 1], eager.dtype)))
    np.testing.assert_allclose(size, eager.log_abs_determinant())


def test_specs_of_operators_of_unknown_rank():
    with tf.Graph().as_default():
        operator = L.LinearOperatorFullMatrix(tf.compat.v1.placeholder(tf.float64))
    spec = operator.adjoint()._type_spec  # outside of the graph
    assert spec._serialize()[0]["operator"]._serialize()[0] == {"matrix": tf.TensorSpec(None, tf.float64)}


@pytest.mark.parametrize(
    "make",
    [
        lambda rows, batch, scale: L.LinearOperatorIdentity(rows, batch_shape=batch),
        lambda rows, batch, scale: L.LinearOperatorScaledIdentity(rows, scale),
        lambda rows, batch, scale: L.LinearOperatorZeros(rows, batch_shape=batch),
        lambda rows, batch, scale: L.LinearOperatorZeros(rows, 2, batch_shape=batch, is_square=False),
    ],
)
def test_sizes_that_are_tensors_of_a_function(make):
    @tf.function(
        input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.int32), tf.TensorSpec(None, tf.float32)]
    )
    def traced(rows, batch, scale):
        operator = make(rows, batch, scale)
        return operator.to_dense(), operator.shape_tensor(), operator.trace()

    arguments = tf.constant(3), tf.constant([2]), tf.constant([2.0, 5.0])
    eager = make(*arguments)
    dense, shape, trace = traced(*arguments)
    np.testing.assert_array_equal(dense, eager.to_dense())
    np.testing.assert_array_equal(shape, eager.shape_tensor())
    np.testing.assert_array_equal(trace, eager.trace())


def test_sizes_of_graphs_are_checked_while_they_are_built():
    with tf.Graph().as_default():
        with pytest.raises(TypeError, match=r"num_rows.* must be integer"):
            L.LinearOperatorIdentity(tf.compat.v1.placeholder(tf.float32, []))
        with pytest.raises(ValueError, match=r"batch_shape.* must be a 1-D"):
            L.LinearOperatorIdentity(2, tf.compat.v1.placeholder(tf.int32, []))


@pytest.mark.parametrize("shape", [None, [None, None]])
def test_variables_whose_shape_is_open(shape):
    operator = tf.linalg.LinearOperatorDiag(tf.Variable(tf.ones([2, 3]), shape=tf.TensorShape(shape)))
    assert operator.shape.rank == (None if shape is None else 3)
    assert operator.shape_tensor().numpy().tolist() == [2, 3, 3]
    assert operator.batch_shape_tensor().numpy().tolist() == [2]
    assert (operator.tensor_rank_tensor(), operator.domain_dimension_tensor()) == (3, 3)
    np.testing.assert_array_equal(operator.matvec(tf.ones([3])), np.ones([2, 3]))
    np.testing.assert_array_equal(operator.solvevec(tf.ones([3])), np.ones([2, 3]))


@pytest.mark.parametrize("shape", [None, [None, None], [2, None]])
def test_sizes_of_a_graph_that_are_open(shape):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        diagonal = tf.compat.v1.placeholder(tf.float32, shape)
        operator = tf.linalg.LinearOperatorDiag(diagonal)
        sizes = [operator.shape_tensor(), operator.batch_shape_tensor(), operator.range_dimension_tensor()]
        found = session.run([*sizes, operator.tensor_rank_tensor()], {diagonal: np.ones([2, 3])})
    assert [np.asarray(part).tolist() for part in found] == [[2, 3, 3], [2], 3, 3]
