"""Products of bfloat16, whose sums are in float32, against float64; every shape of a tile and its edges."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tapeflow as tf


def rounded(random, *shape):
    return tf.cast(random.uniform(-1, 1, shape).astype(np.float32), tf.bfloat16)


def exact(a, b, **transposes):
    return tf.matmul(tf.cast(a, tf.float64), tf.cast(b, tf.float64), **transposes).numpy()


def check(a, b, **transposes):
    product = tf.matmul(a, b, **transposes)
    assert product.dtype == tf.bfloat16
    expected = exact(a, b, **transposes)
    terms = max(a.shape[-1], a.shape[-2])
    np.testing.assert_allclose(tf.cast(product, tf.float64), expected, rtol=2**-8, atol=terms * 2**-22)


@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
def test_shapes(transpose_a, transpose_b):
    random = np.random.default_rng(0)
    for m in (1, 2, 5, 6, 13, 64, 100):
        for n in (1, 15, 17, 33, 64, 130):
            for k in (1, 2, 7, 32, 99):
                a = rounded(random, *((k, m) if transpose_a else (m, k)))
                b = rounded(random, *((n, k) if transpose_b else (k, n)))
                check(a, b, transpose_a=transpose_a, transpose_b=transpose_b)


@pytest.mark.parametrize("shapes", [((4, 9, 8), (8, 5)), ((4, 9, 8), (4, 8, 5)), ((3, 1, 9, 8), (2, 8, 5))])
def test_batches(shapes):
    random = np.random.default_rng(1)
    check(*(rounded(random, *shape) for shape in shapes))


def test_large_products_and_gradients():
    random = np.random.default_rng(2)
    a, b = rounded(random, 300, 200), rounded(random, 200, 150)
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        y = tf.matmul(a, b)
    check(a, b)
    da, db = tape.gradient(y, [a, b], tf.ones_like(y))
    ones = tf.ones([300, 150], tf.bfloat16)
    np.testing.assert_allclose(tf.cast(da, tf.float64), exact(ones, b, transpose_b=True), rtol=2**-8, atol=1e-3)
    np.testing.assert_allclose(tf.cast(db, tf.float64), exact(a, ones, transpose_a=True), rtol=2**-8, atol=1e-3)


def test_special_values_and_no_terms():
    a = tf.constant([[np.inf, 1.0], [np.nan, 1.0], [1.0, 2.0]], tf.bfloat16)
    product = tf.cast(tf.matmul(a, tf.ones([2, 1], tf.bfloat16)), tf.float32).numpy()[:, 0]
    assert np.isposinf(product[0]) and np.isnan(product[1]) and product[2] == 3.0
    np.testing.assert_array_equal(
        tf.matmul(tf.zeros([2, 0], tf.bfloat16), tf.zeros([0, 3], tf.bfloat16)), np.zeros((2, 3))
    )


def test_tiles():
    """Where there are vectors of bfloat16, the products above by blocks, with the instructions of AMX as loops."""
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "not tiles"]
    subprocess.run(tests, check=True, env=os.environ | {"TAPEFLOW_AMX": "emulated"})
