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


@pytest.mark.parametrize("size", [1, 3, 7, 8, 9, 16, 33, 1001])
def test_vector_kernels_of_complex64_at_all_lengths(size):
    random = np.random.default_rng(size)
    a, b = (random.standard_normal((2, size)) + 1j * random.standard_normal((2, size))).astype(np.complex64)
    wide_a, wide_b = a.astype(np.complex128), b.astype(np.complex128)
    real, imag = a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real
    np.testing.assert_array_equal(tf.multiply(a, b), real + 1j * imag)
    np.testing.assert_array_equal(tf.multiply(b[0], a), tf.multiply(a, b[0]))
    np.testing.assert_array_equal(tf.add(a, b), a + b)
    np.testing.assert_array_equal(tf.subtract(a, b[0]), a - b[0])
    np.testing.assert_array_equal(tf.subtract(a[0], b), a[0] - b)
    for got, expected in (
        (tf.divide(a, b), wide_a / wide_b),
        (tf.divide(a[0], b), wide_a[0] / wide_b),
        (tf.divide(a, b[0]), wide_a / wide_b[0]),
        (tf.abs(a), np.abs(wide_a)),
        (tf.exp(a * 20), np.exp((a * 20).astype(np.complex128))),
    ):
        assert np.max(np.abs(got.numpy() - expected) / np.abs(expected)) < 2e-7


def test_exponential_of_complex64_at_the_edges():
    parts = [0.0, -0.0, 1.0, -104.0, 89.0, 710.0, 1e6, 1e-40, np.inf, -np.inf, np.nan]
    z = np.array([complex(re, im) for re in parts for im in parts], np.complex64)
    with np.errstate(all="ignore"):
        expected = np.exp(z)
    got = tf.exp(z).numpy()
    np.testing.assert_allclose(got.real, expected.real, rtol=3e-7)
    np.testing.assert_allclose(got.imag, expected.imag, rtol=3e-7)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(np.signbit(got.imag[finite]), np.signbit(expected.imag[finite]))


FUNCTIONS = {"sin": tf.sin, "cos": tf.cos, "tanh": tf.tanh, "sqrt": tf.sqrt, "log": tf.math.log}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_complex64_are_exact_in_both_parts(name):
    random = np.random.default_rng(4)
    angles = random.uniform(0, 2 * np.pi, 4000)
    around = np.concatenate([
        random.standard_normal(3001) + 1j * random.standard_normal(3001),
        20 * (random.standard_normal(999) + 1j * random.standard_normal(999)),
        np.exp(1j * angles) * (1 + random.choice([0, 1e-7, -1e-4], 4000)),  # where log is small
        1j * (np.pi / 2 + random.uniform(-1e-3, 1e-3, 500)) + random.uniform(-1e-3, 1e-3, 500),  # near a pole of tanh
        10.0 ** random.uniform(-30, 30, 500) * (random.standard_normal(500) + 1j * random.standard_normal(500)),
    ])  # fmt: skip
    z = around.astype(np.complex64)
    if name in ("sin", "cos", "tanh"):
        z = z[(np.abs(z.real) < 80) & (np.abs(z.imag) < 80)]
    expected = getattr(np, name)(z.astype(np.clongdouble))
    got = FUNCTIONS[name](z).numpy()
    for part, exact in ((got.real, expected.real), (got.imag, expected.imag)):
        error = np.abs(part - exact) / np.spacing(np.abs(exact).astype(np.float32))
        assert np.max(error) < 1.01, (name, z[np.argmax(error)])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_complex64_at_the_edges(name):
    parts = [0.0, -0.0, 1.0, -1.0, -104.0, 89.0, 710.0, -1e6, 1e-40, 3e38, np.inf, -np.inf, np.nan]
    z = np.array([complex(re, im) for re in parts for im in parts], np.complex64)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(z)
    got = FUNCTIONS[name](z).numpy()
    for part, other in ((got.real, expected.real), (got.imag, expected.imag)):
        np.testing.assert_allclose(part, other, rtol=4e-7, atol=1e-44)
        ordinary = np.isfinite(z) & np.isfinite(other) & (np.abs(z) < 1e4)
        np.testing.assert_array_equal(np.signbit(part[ordinary]), np.signbit(other[ordinary]))
