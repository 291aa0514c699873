"""Loops that are compiled for several instruction sets give NumPy's results with each: integers, casts, places of
extrema, short rows."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tapeflow as tf

rng = np.random.default_rng(3)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
LENGTHS = (1, 7, 16, 33, 70, 131, 1000)


def integers(dtype, *shape):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def check_integers(dtype, n):
    a, b = integers(dtype, n), integers(dtype, n)
    b[::3] = a[::3]
    bits = np.iinfo(dtype).bits
    shift = rng.integers(0, bits, n).astype(dtype)
    for function, reference in (
        (tf.add, np.add),
        (tf.subtract, np.subtract),
        (tf.multiply, np.multiply),
        (tf.maximum, np.maximum),
        (tf.minimum, np.minimum),
        (tf.equal, np.equal),
        (tf.not_equal, np.not_equal),
        (tf.less, np.less),
        (tf.less_equal, np.less_equal),
        (tf.greater, np.greater),
        (tf.greater_equal, np.greater_equal),
        (tf.bitwise.bitwise_and, np.bitwise_and),
        (tf.bitwise.bitwise_or, np.bitwise_or),
        (tf.bitwise.bitwise_xor, np.bitwise_xor),
    ):
        np.testing.assert_array_equal(function(a, b), reference(a, b))
        np.testing.assert_array_equal(function(a, b[0]), reference(a, b[0]))
        np.testing.assert_array_equal(function(b[0], a), reference(b[0], a))
    np.testing.assert_array_equal(tf.bitwise.left_shift(a, shift), np.left_shift(a, shift))
    np.testing.assert_array_equal(tf.bitwise.right_shift(a, shift), np.right_shift(a, shift))
    if a.dtype.kind == "i":  # shifts outside of the range are brought into it, as in TensorFlow
        np.testing.assert_array_equal(tf.bitwise.left_shift(a, np.full(n, -5, dtype)), a)
    np.testing.assert_array_equal(tf.bitwise.right_shift(a, np.full(n, bits + 3, dtype)), a >> (bits - 1))
    np.testing.assert_array_equal(tf.bitwise.invert(a), ~a)
    np.testing.assert_array_equal(tf.where(a > b, a, b), np.where(a > b, a, b))
    for x in (a, a.reshape(n, 1) if n < 9 else a[: n // 9 * 9].reshape(-1, 9), np.stack([a, b, a])):
        for axis in range(x.ndim):
            np.testing.assert_array_equal(tf.reduce_sum(x, axis), np.sum(x, axis, dtype))
            np.testing.assert_array_equal(tf.reduce_prod(x, axis), np.prod(x, axis, dtype=dtype))
            np.testing.assert_array_equal(tf.reduce_max(x, axis), np.max(x, axis))
            np.testing.assert_array_equal(tf.reduce_min(x, axis), np.min(x, axis))
            few = x % 5  # with ties
            np.testing.assert_array_equal(tf.argmax(few, axis), np.argmax(few, axis))
            np.testing.assert_array_equal(tf.argmin(few, axis), np.argmin(few, axis))
    for to in (*INTEGERS, "float64", "float32", "bool"):
        np.testing.assert_array_equal(tf.cast(a, to), a.astype(to))
        if to != "bool":
            np.testing.assert_array_equal(tf.cast(a > b, to), (a > b).astype(to))


def check_ranges(n):
    for dtype in ("int32", "int64", "float32", "float64", "float16"):
        start = int(rng.integers(-1000, 1000))
        expected = (np.dtype(dtype).type(start) + 3 * np.arange(n)).astype(dtype)
        np.testing.assert_array_equal(tf.range(start, start + 3 * n, 3, dtype), expected)
    least = np.iinfo("int64").min
    np.testing.assert_array_equal(tf.range(least, least + 7 * n, 7, "int64"), least + 7 * np.arange(n))


def check_casts_of_floats(dtype, n):
    x = (rng.standard_normal(n) * 100).astype(dtype)
    x[::5] = np.float32(3e18)
    for to in ("int32", "int64"):
        fits = np.abs(x) < (2**31 if to == "int32" else 2**63)
        np.testing.assert_array_equal(tf.cast(x, to).numpy()[fits], x[fits].astype(to))
        assert np.all(tf.cast(np.array([np.nan, np.inf, -np.inf] * n, dtype), to) == np.iinfo(to).min)
    np.testing.assert_array_equal(tf.cast(x, "bool"), x != 0)
    np.testing.assert_array_equal(tf.math.is_finite(x / 0), np.isfinite(x / 0))
    np.testing.assert_array_equal(tf.math.is_nan(x * np.nan), np.full(n, True))


def place(row, largest):
    """The first of the best; a NaN only where all are."""
    if np.all(np.isnan(row)):
        return 0
    best = np.nanmax(row) if largest else np.nanmin(row)
    return np.flatnonzero(row == best)[0]


def check_places(dtype, length):
    x = np.round(rng.standard_normal((20, length)), 1).astype(dtype)
    x[1], x[2], x[3], x[4] = np.nan, -np.inf, np.inf, 0.0
    x[5, : length // 2] = np.nan
    x[6, length // 2] = -0.0
    x[7, 0] = np.nan
    x[7, 1:] = -np.inf
    x[8, -1] = 100
    x[9, -1] = -100
    for function, largest in ((tf.argmax, True), (tf.argmin, False)):
        expected = [place(row, largest) for row in x]
        np.testing.assert_array_equal(function(x, 1), expected)
        np.testing.assert_array_equal(function(np.ascontiguousarray(x.T), 0), expected)


def check_short_rows(dtype, length, rows):
    x = (3 * rng.standard_normal((rows, length))).astype(dtype)
    exact = x.astype(np.longdouble)
    tolerance = 20 * np.finfo(dtype).eps
    powers = np.exp(exact - exact.max(1, keepdims=True))
    soft = powers / powers.sum(1, keepdims=True)
    np.testing.assert_allclose(tf.nn.softmax(x), soft, tolerance)
    np.testing.assert_allclose(tf.nn.log_softmax(x), np.log(soft), tolerance, tolerance)
    mean, variance = tf.nn.moments(tf.constant(x), [1])
    np.testing.assert_allclose(mean, exact.mean(1), tolerance, tolerance)
    np.testing.assert_allclose(variance, exact.var(1), tolerance, tolerance)
    with tf.GradientTape() as tape:
        given = tf.constant(x)
        tape.watch(given)
        y = tf.math.reduce_variance(given, 1)
    weights = rng.standard_normal(rows).astype(dtype)
    expected = 2 * weights[:, None] * (exact - exact.mean(1, keepdims=True)) / length
    np.testing.assert_allclose(tape.gradient(y, given, weights), expected, tolerance, tolerance)
    if length > 1:
        x[0, 0], x[1 % rows, :], x[2 % rows, 1] = np.nan, -np.inf, np.inf
        for row, value in zip(x, tf.nn.softmax(x).numpy(), strict=True):
            unsound = not np.isfinite(row.max())
            assert np.isnan(value).any() == unsound, (row, value)


def check_all():
    with np.errstate(all="ignore"):
        for n in LENGTHS:
            check_ranges(n)
            for dtype in INTEGERS:
                check_integers(dtype, n)
            for dtype in ("float32", "float64"):
                check_casts_of_floats(dtype, n)
        for dtype in ("float32", "float64"):
            for length in (2, 3, 8, 9, 15, 16, 17, 31, 40, 64, 65, 100, 1000, 5000):
                check_places(dtype, length)
            for length in (1, 2, 3, 5, 6, 10, 16, 17, 33, 64, 65):
                for rows in (1, 5, 40, 700):
                    check_short_rows(dtype, length, rows)


@pytest.mark.parametrize("instructions", ["avx512", "avx2", "baseline"])
def test_every_instruction_set(instructions):
    folder = os.path.dirname(__file__)
    program = f"import sys; sys.path.insert(0, {folder!r}); import test_instruction_sets as t; t.check_all()"
    subprocess.run([sys.executable, "-c", program], check=True, env=os.environ | {"TAPEFLOW_ISA": instructions})
