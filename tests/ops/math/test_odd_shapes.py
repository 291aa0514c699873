"""Kernels by shape: short and narrow rows, long lines, ends that fill no vector; NaN, infinity and equal elements."""

import numpy as np
import pytest

import tapeflow as tf

ROWS = (1, 2, 7, 16, 17, 33, 130)
COLUMNS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 31, 64, 65, 600, 1025)


def tables(dtype):
    """Tables of few different numbers, some of them NaN or infinite if they can be."""
    random = np.random.default_rng(0)
    for rows in ROWS:
        for columns in COLUMNS:
            x = random.integers(0, 9, (rows, columns)).astype(dtype)
            yield x
            if x.dtype.kind == "f":
                x[random.random(x.shape) < 0.1] = np.nan
                x[random.random(x.shape) < 0.05] = -np.inf
                yield x


def places(x, axis, largest):
    """The first of equal elements; a NaN only where there is nothing else."""
    bottom = -np.inf if largest else np.inf
    numbers = np.where(np.isnan(x), bottom, x) if x.dtype.kind == "f" else x
    found = x == (np.max if largest else np.min)(numbers, axis, keepdims=True)
    return np.where(found.any(axis), found.argmax(axis), 0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
def test_places_of_extrema(dtype):
    for x in tables(dtype):
        for axis in (0, 1):
            np.testing.assert_array_equal(tf.argmax(x, axis), places(x, axis, True))
            np.testing.assert_array_equal(tf.argmin(x, axis), places(x, axis, False))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8"])
def test_extrema(dtype):
    for x in tables(dtype):
        for axis in (0, 1, None):
            np.testing.assert_array_equal(tf.reduce_max(x, axis), np.max(x, axis))
            np.testing.assert_array_equal(tf.reduce_min(x, axis), np.min(x, axis))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_sums_of_rows(dtype):
    for x in tables(dtype):
        np.testing.assert_allclose(tf.reduce_sum(x, 1), np.sum(x, 1), rtol=1e-5)
        if dtype != "int64":
            np.testing.assert_allclose(tf.norm(x, axis=1), np.sqrt(np.sum(x * x, 1)), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("count", [1, 8, 1023, 1024, 1029, 5003])
def test_running_sums_and_products_of_long_lines(dtype, count):
    random = np.random.default_rng(1)
    x = (1 + 0.01 * random.standard_normal(count) if dtype[0] == "f" else random.integers(-3, 4, count)).astype(dtype)
    lines = [x, np.where(np.arange(count) == count // 2, 0, x).astype(dtype)]
    if dtype[0] == "f":
        lines += [np.where(np.arange(count) == count // 3, bad, x).astype(dtype) for bad in (np.inf, np.nan)]
    tolerance = 2e-3 if dtype == "float32" else 1e-9
    for line in lines:
        for function, plain in ((tf.cumsum, np.cumsum), (tf.math.cumprod, np.cumprod)):
            want = plain(line, dtype=dtype)
            np.testing.assert_allclose(function(line), want, tolerance)
            np.testing.assert_allclose(function(line[::-1].copy(), reverse=True)[::-1], want, tolerance)
            np.testing.assert_allclose(function(line, exclusive=True)[1:], want[:-1], tolerance)


def test_running_products_that_vanish_or_overflow_on_the_way():
    x = np.ones(4000)
    x[:200], x[2000:2400] = 1e-3, 1e3
    np.testing.assert_allclose(tf.math.cumprod(x), np.cumprod(x), 1e-9)
    x[0], x[3000:3500] = 0, 1e3
    np.testing.assert_array_equal(tf.math.cumprod(x), 0)


@pytest.mark.parametrize("shape", [(1, 5), (9, 1), (8, 31), (17, 130)])
def test_gradient_of_a_running_product(shape):
    x = tf.constant(np.random.default_rng(2).uniform(0.5, 1.5, shape))
    for options in ({"axis": 0}, {"axis": 1}, {"axis": 1, "reverse": True}, {"axis": 1, "exclusive": True}):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.math.cumprod(x, **options)
            loss = tf.reduce_sum(y)
        # d y_j / d x_i = y_j / x_i for the j that x_i is a factor of
        others = {**options, "reverse": not options.get("reverse", False)}
        np.testing.assert_allclose(tape.gradient(loss, x), tf.cumsum(y, **others) / x, 1e-9)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "uint8", "uint32"])
def test_floored_quotients_at_the_ends_of_the_range(dtype):
    limits = np.iinfo(dtype)
    numbers = [limits.min, limits.min + 1, *(n for n in (-7, -3, -2, -1, 0) if n >= limits.min), 1, 2, 3, 7, limits.max]
    x, y = np.meshgrid(np.array(numbers, dtype), np.array([n for n in numbers if n], dtype))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(tf.constant(x) // tf.constant(y), x // y)


@pytest.mark.parametrize("shape", [(5, 1), (1, 300), (70_000,), (3, 0)])
def test_all_and_any(shape):
    some = np.random.default_rng(3).random(shape) > 0.5
    for x in (some, np.ones(shape, bool), np.zeros(shape, bool)):
        for axis in (None, *range(len(shape))):
            np.testing.assert_array_equal(tf.reduce_all(x, axis), np.all(x, axis))
            np.testing.assert_array_equal(tf.reduce_any(x, axis), np.any(x, axis))
