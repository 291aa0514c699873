"""What a linear operator says of the arguments it was made with, and what follows from the form of a product."""

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.compat.tensorflow.inner_modules import table

L = tf.linalg
HINTS = {"is_non_singular": None, "is_self_adjoint": None, "is_positive_definite": None, "is_square": None}


def test_all_arguments_are_parameters():
    diag = tf.constant([1.0, 2.0])
    given = L.LinearOperatorDiag(diag, is_self_adjoint=True, name="d").parameters
    assert given.pop("diag") is diag and given == {**HINTS, "is_self_adjoint": True, "name": "d"}
    block = L.LinearOperatorBlockDiag([L.LinearOperatorDiag(diag)], is_square=True).parameters
    assert (block["is_square"], block["name"], len(block["operators"])) == (True, None, 1)
    spectrum = tf.ones([2, 3])
    circulant = L.LinearOperatorCirculant2D(spectrum, input_output_dtype=tf.complex128).parameters
    assert circulant.pop("spectrum") is spectrum
    assert circulant == {
        **HINTS, "is_square": True, "input_output_dtype": tf.complex128, "name": "LinearOperatorCirculant2D"
    }  # fmt: skip


def test_parameters_of_operators_given_by_sizes():
    identity = L.LinearOperatorIdentity(2, dtype=tf.float64).parameters
    assert (identity["num_rows"], identity["dtype"], identity["assert_proper_shapes"]) == (2, tf.float64, False)
    assert identity["is_positive_definite"] is True and identity["name"] == "LinearOperatorIdentity"
    assert L.LinearOperatorZeros(2, 3).parameters["num_columns"] == 3
    assert L.LinearOperatorScaledIdentity(2, 3.0).parameters["is_non_singular"] is None
    again = L.LinearOperatorScaledIdentity(**L.LinearOperatorScaledIdentity(2, 3.0).parameters)
    assert again.to_dense().numpy().tolist() == [[3.0, 0.0], [0.0, 3.0]]


def test_a_product_with_its_adjoint():
    x = L.LinearOperatorFullMatrix([[11.0, 0.0], [1.0, 8.0]], is_non_singular=True)
    y = L.LinearOperatorFullMatrix([[2.0, 0.0], [1.0, 3.0]], is_non_singular=True)
    product = L.LinearOperatorComposition([x, y, y.H, x.H])
    assert product.is_self_adjoint and product.is_positive_definite and product.is_square
    assert L.LinearOperatorComposition([x, y]).is_self_adjoint is None
    with pytest.raises(ValueError, match="self-adjoint"):
        L.LinearOperatorComposition([x, x.H], is_self_adjoint=False)
    factor = L.LinearOperatorLowerTriangular([[-1.0, 0.0], [0.5, 0.2]], is_non_singular=True)
    cholesky = (factor @ factor.H).cholesky()
    np.testing.assert_allclose(cholesky.to_dense(), [[1.0, 0.0], [-0.5, 0.2]], rtol=1e-5)


def test_transposition_of_unknown_rank():
    x = np.arange(12.0).reshape(1, 3, 4) * (1 + 2j)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        y = tf.linalg.adjoint(tf.compat.v1.placeholder_with_default(x, None))
        np.testing.assert_array_equal(session.run(y), x.conj().transpose(0, 2, 1))


def test_kernels_of_circulant_operators():
    make = table.find("python.ops.linalg.linear_operator_circulant").exponential_power_convolution_kernel
    kernel = make(grid_shape=[5], length_scale=[0.5], power=1.0, divisor=2.0).numpy()
    np.testing.assert_allclose(kernel, np.exp(-np.array([0, 0.5, 1.0, 1.0, 0.5]) / 2.0), rtol=1e-6)
    square = make(grid_shape=[4, 3], length_scale=[0.2, 0.3], zero_inflation=0.5).numpy()
    one = make(grid_shape=[4, 3], length_scale=[0.2, 0.3]).numpy()
    assert square[0, 0] == 1.0 and square[1, 1] == pytest.approx(one[1, 1] / 2)
    np.testing.assert_allclose(one, np.roll(one[::-1, ::-1], 1, (0, 1)), rtol=1e-6)
