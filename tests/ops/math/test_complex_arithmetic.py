"""Complex products and magnitudes at the edges of the range."""

import numpy as np
import pytest

import tapeflow as tf


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_magnitudes(dtype):
    random = np.random.default_rng(0)
    z = (random.standard_normal(1001) + 1j * random.standard_normal(1001)).astype(dtype)
    real = np.finfo(dtype).dtype
    np.testing.assert_allclose(tf.abs(z), np.abs(z), rtol=np.finfo(real).eps)
    large = real.type(np.finfo(real).max / 4)
    small = real.type(np.finfo(real).tiny)
    edges = np.array([complex(3 * large / 5, 4 * large / 5), complex(3 * small, 4 * small), 0, -5j], dtype)
    np.testing.assert_allclose(tf.abs(edges), np.abs(edges), rtol=1e-6)
    infinite = np.array([complex(np.inf, np.nan), complex(np.nan, -np.inf), complex(np.nan, 1)], dtype)
    np.testing.assert_array_equal(tf.abs(infinite), [np.inf, np.inf, np.nan])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_products(dtype):
    random = np.random.default_rng(1)
    a, b = (random.standard_normal((2, 999)) + 1j * random.standard_normal((2, 999))).astype(dtype)
    np.testing.assert_allclose(tf.multiply(a, b), a * b, rtol=1e-5)
    np.testing.assert_allclose(tf.multiply(a, b[0]), a * b[0], rtol=1e-5)


def test_quotients():
    random = np.random.default_rng(2)
    a, b = (random.standard_normal((2, 999)) + 1j * random.standard_normal((2, 999))).astype(np.complex64)
    np.testing.assert_allclose(tf.divide(a, b), a.astype(np.complex128) / b, rtol=2e-7)
    np.testing.assert_allclose(tf.divide(a, b * np.float32(1e-30)), a.astype(np.complex128) / b * 1e30, rtol=2e-6)
    np.testing.assert_allclose(tf.divide(a * np.float32(1e30), b * np.float32(1e35)), a * 1e-5 / b, rtol=2e-6)


def test_quotients_of_infinities_and_zeros():
    a = np.array([1, 1j, np.inf, complex(1, np.inf), 0, 1, complex(np.inf, np.inf), np.nan], np.complex64)
    b = np.array([0, complex(np.inf, 1), 1, 2, 0, np.inf, 1, 1], np.complex64)
    found = tf.divide(a, b).numpy()
    infinite = np.isinf(found.real) | np.isinf(found.imag)
    np.testing.assert_array_equal(infinite, [True, False, True, True, False, False, True, False])
    np.testing.assert_array_equal(found[[1, 5]], [0, 0])
    assert np.isnan(found[4])
    assert np.isnan(found[7])
