"""Operators of TensorFlow 1 graphs whose rank is known only when the graph runs."""

import numpy as np
import pytest

import tapeflow as tf


def unknown(x):
    """A placeholder of a graph that says nothing about the shape of its value."""
    return tf.compat.v1.placeholder_with_default(x, shape=None)


def test_operators_of_unknown_rank():
    spectrum = np.array([[3.0, 1.0, 2.0], [4.0, 5.0, 6.0]], np.float32).astype(np.complex64)
    diagonals = np.arange(1.0, 10.0, dtype=np.float32).reshape(3, 3)
    perm = np.array([2, 0, 1])
    makers = {
        "circulant": lambda of: tf.linalg.LinearOperatorCirculant(of(spectrum)),
        "tridiag": lambda of: tf.linalg.LinearOperatorTridiag(of(diagonals), "compact"),
        "permutation": lambda of: tf.linalg.LinearOperatorPermutation(of(perm)),
    }
    for make in makers.values():
        known = make(tf.constant)
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            operator = make(unknown)
            product, adjoint = operator.matmul(operator), operator.adjoint()
            dense = session.run([product.to_dense(), adjoint.to_dense(), operator.inverse().to_dense()])
        expected = [known.matmul(known).to_dense(), known.adjoint().to_dense(), known.inverse().to_dense()]
        for found, wanted in zip(dense, expected):
            np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_products_of_circulant_operators_of_unknown_rank():
    make = tf.linalg.LinearOperatorCirculant2D
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        one = tf.ones([1, 6], tf.complex64)
        product = make(unknown(one)).matmul(make(unknown(one)))
        assert isinstance(product, make)
        session.run(product.to_dense())
        other = make(unknown(one)).matmul(make(unknown(tf.ones([6, 1], tf.complex64)))).to_dense()
        with pytest.raises(tf.errors.InvalidArgumentError, match="must have one shape"):
            session.run(other)


def test_the_cholesky_factor_of_an_operator_of_unknown_rank():
    matrix = np.array([[4.0, 1.0], [1.0, 3.0]], np.float32)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        hints = {"is_self_adjoint": True, "is_positive_definite": True}
        operator = tf.linalg.LinearOperatorInversion(tf.linalg.LinearOperatorFullMatrix(unknown(matrix), **hints))
        found = session.run(operator.cholesky().to_dense())
    np.testing.assert_allclose(found @ found.T, np.linalg.inv(matrix), rtol=1e-5)


@pytest.mark.parametrize(
    "arguments", [{"num_rows": 2}, {"num_rows": 2, "num_columns": 3}, {"num_rows": 2, "batch_shape": [2]}]
)
def test_sizes_are_no_variables(arguments):
    *_, last = arguments
    with pytest.raises(TypeError, match=f"{last} cannot be reference type"):
        tf.linalg.LinearOperatorZeros(**{**arguments, last: tf.Variable(arguments[last])})
