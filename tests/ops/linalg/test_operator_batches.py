"""Operators of which parts are taken, whose sizes only the graph knows, or by which derivatives are taken."""

import numpy as np
import pytest

import tapeflow as tf

v1 = tf.compat.v1


def operators():
    """Operators with batches, and the arguments that make them."""
    make = tf.random.Generator.from_seed(0).normal
    square = make([3, 1, 2, 2]) + 3 * tf.eye(2)
    diag = tf.linalg.LinearOperatorDiag(make([3, 2, 2]) + 4.0)
    full = tf.linalg.LinearOperatorFullMatrix(square)
    return {
        "diag": diag,
        "full": full,
        "tril": tf.linalg.LinearOperatorLowerTriangular(square),
        "householder": tf.linalg.LinearOperatorHouseholder(make([3, 2, 2])),
        "toeplitz": tf.linalg.LinearOperatorToeplitz(make([3, 1, 2]) + 4.0, make([2, 2]) * 0.1),
        "tridiag": tf.linalg.LinearOperatorTridiag(make([3, 2, 3, 2]) + [[0.0], [4.0], [0.0]]),
        "tridiag_parts": tf.linalg.LinearOperatorTridiag([make([3, 2, 2]) for _ in range(3)], "sequence"),
        "circulant": tf.linalg.LinearOperatorCirculant(tf.cast(make([3, 2, 2]), tf.complex64) + 4.0),
        "scaled": tf.linalg.LinearOperatorScaledIdentity(2, make([3, 2])),
        "identity": tf.linalg.LinearOperatorIdentity(2, [3, 2]),
        "permutation": tf.linalg.LinearOperatorPermutation([[[0, 1], [1, 0]]] * 3),
        "update": tf.linalg.LinearOperatorLowRankUpdate(diag, make([2, 2, 1]), make([3, 1, 1]), make([2, 2, 1])),
        "product": tf.linalg.LinearOperatorComposition([diag, full]),
        "kronecker": tf.linalg.LinearOperatorKronecker([diag, full]),
        "blocks": tf.linalg.LinearOperatorBlockDiag([diag, full]),
        "adjoint": tf.linalg.LinearOperatorAdjoint(full),
        "inverse": tf.linalg.LinearOperatorInversion(full),
    }


@pytest.mark.parametrize("kind", operators())
@pytest.mark.parametrize("key", [1, (slice(1, 3),), (..., 0), (slice(None, None, 2), tf.newaxis), [0, slice(0, 1)]])
def test_matrices_of_a_batch(kind, key):
    operator = operators()[kind]
    dense = np.broadcast_to(operator.to_dense().numpy(), [*operator.shape])
    keys = tuple(key) if isinstance(key, list | tuple) else (key,)
    ends = () if Ellipsis in keys else (Ellipsis,)
    wanted = dense[(*keys, *ends, slice(None), slice(None))]
    found = operator[key]
    assert type(found) is type(operator) and found.shape.as_list() == list(wanted.shape)
    np.testing.assert_allclose(np.broadcast_to(found.to_dense(), wanted.shape), wanted, rtol=1e-5, atol=1e-6)


def results(operator, x):
    square = [operator.solve(x), operator.determinant(), operator.log_abs_determinant(), operator.inverse().to_dense()]
    return [
        operator.to_dense(), operator.matmul(x), operator.matvec(x[..., 0]), operator.diag_part(), operator.trace(),
        operator.cond(), operator.add_to_tensor(operator.to_dense()), operator.shape_tensor(),
        operator.batch_shape_tensor(), operator.domain_dimension_tensor(), operator.adjoint().to_dense(), *square,
    ]  # fmt: skip


MADE_OF = {
    tf.linalg.LinearOperatorDiag: [[2.0, 3.0], [4.0, 5.0]],
    tf.linalg.LinearOperatorFullMatrix: [[[2.0, 1.0], [0.5, 3.0]]],
    tf.linalg.LinearOperatorLowerTriangular: [[2.0, 0.0], [0.5, 3.0]],
    tf.linalg.LinearOperatorHouseholder: [1.0, 2.0],
}


@pytest.mark.parametrize("kind", MADE_OF, ids=lambda kind: kind.__name__)
def test_sizes_that_only_the_graph_knows(kind):
    x = np.float32([[1.0, 2.0], [3.0, 4.0]])
    wanted = results(kind(MADE_OF[kind]), tf.constant(x))
    with tf.Graph().as_default(), v1.Session() as session:
        part = v1.placeholder_with_default(MADE_OF[kind], None)
        operator = kind(part)
        assert operator.shape.rank is None
        found = results(operator, tf.constant(x))
        slope = tf.gradients(operator.determinant(), part)[0]
        for a, b in zip(session.run(found), wanted):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        assert session.run(slope).shape == np.shape(MADE_OF[kind])


def test_derivatives_by_operators():
    diag, matrix = tf.constant([1.0, 2.0]), tf.constant([[2.0, 1.0], [0.0, 3.0]])
    operator = tf.linalg.LinearOperatorComposition(
        [tf.linalg.LinearOperatorDiag(diag), tf.linalg.LinearOperatorFullMatrix(matrix)]
    )
    x = tf.constant([[1.0], [1.0]])
    with tf.GradientTape() as tape:
        tape.watch([diag, matrix])
        y = operator.matmul(x)
    found = tape.gradient(y, operator)
    assert isinstance(found, tf.linalg.LinearOperatorComposition)
    assert found.operators[0].diag.numpy().tolist() == [3.0, 3.0]
    assert found.operators[1].matrix.numpy().tolist() == [[1.0, 1.0], [2.0, 2.0]]
    with tf.Graph().as_default(), v1.Session() as session:
        operator = tf.linalg.LinearOperatorDiag(tf.constant([1.0, 2.0]))
        (found,) = tf.gradients(operator.matmul(x.numpy()), operator)
        assert session.run(found.diag).tolist() == [1.0, 1.0]


def test_assertions_in_graphs():
    with tf.Graph().as_default(), v1.Session() as session:
        good = tf.linalg.LinearOperatorFullMatrix([[2.0, 1.0], [1.0, 2.0]])
        session.run([good.assert_positive_definite(), good.assert_self_adjoint()])
        bad = tf.linalg.LinearOperatorFullMatrix([[1.0, 3.0], [2.0, 1.0]])
        for check in (bad.assert_positive_definite(), bad.assert_self_adjoint()):
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(check)
