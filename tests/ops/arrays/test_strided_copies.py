"""Copies by other routes than element by element, against NumPy: transposes, repeats of short runs, borders of short
rows, rows picked by number, choices between operands that repeat."""

import itertools

import numpy as np
import pytest

import tapeflow as tf

DTYPES = ("float32", "int8", "float16", "float64", "complex128")


def numbers(shape, dtype="float32"):
    return np.arange(np.prod(shape)).reshape(shape).astype(dtype)


@pytest.mark.parametrize("shape", [(3, 5), (17, 33, 2), (2, 40, 37), (70, 2, 3, 19), (5, 1, 18, 21), (2, 3, 4, 5, 6)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_transposes(shape, dtype):
    x = numbers(shape, dtype)
    for order in itertools.permutations(range(len(shape))):
        np.testing.assert_array_equal(tf.transpose(x, order), np.transpose(x, order))
    words = np.vectorize(str)(numbers(shape[:2]))
    np.testing.assert_array_equal(tf.transpose(words).numpy().astype(str), words.T)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("times", [1, 2, 3, 5, 8, 9, 20])
def test_repeats(dtype, times):
    for shape in ((700, 2), (3, 50), (1000,), (2, 300, 3), (40, 17)):
        x = numbers(shape, dtype)
        for axis in range(x.ndim):
            np.testing.assert_array_equal(tf.repeat(x, times, axis), np.repeat(x, times, axis))
        for many in itertools.product((1, times), repeat=x.ndim):
            np.testing.assert_array_equal(tf.tile(x, many), np.tile(x, many))


@pytest.mark.parametrize("shape", [(3000, 2), (7, 500, 3), (5, 4), (2, 900, 1, 2)])
@pytest.mark.parametrize("dtype", [*DTYPES, "str"])
def test_borders_of_short_rows(shape, dtype):
    x = numbers(shape, dtype)
    for before, after in ((0, 1), (2, 0), (3, 4)):
        borders = [(0, 0)] * (x.ndim - 1) + [(before, after)]
        expected = np.pad(x, borders, constant_values="-" if dtype == "str" else 7)
        y = tf.pad(x, borders, constant_values="-" if dtype == "str" else 7).numpy()
        np.testing.assert_array_equal(y.astype(x.dtype) if dtype == "str" else y, expected)


@pytest.mark.parametrize("dtype", [*DTYPES, "str"])
def test_picked_rows(dtype):
    for inner in (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 63, 64, 65, 130, 300):
        x = numbers((30, inner), dtype)
        places = np.random.default_rng(0).integers(0, 30, 50)
        y = tf.gather(x, places).numpy()
        np.testing.assert_array_equal(y.astype(x.dtype) if dtype == "str" else y, x[places])


@pytest.mark.parametrize("dtype", [*DTYPES, "str"])
def test_choices_between_operands_that_repeat(dtype):
    rng = np.random.default_rng(1)
    for whole in ((40, 50), (6, 1, 70), (300, 3), (2, 3, 40), (5,), (1,), (0, 4)):
        shapes = [
            tuple(n if keep else 1 for n, keep in zip(whole, kept)) for kept in itertools.product((0, 1), repeat=3)
        ]
        shapes = sorted({shape[-len(whole) :] for shape in shapes if len(shape) == len(whole)} | {whole, ()})
        for c, a, b in itertools.product(shapes, repeat=3):
            condition, x, y = rng.random(c) < 0.5, numbers(a, dtype), numbers(b, dtype)
            chosen = np.asarray(tf.where(tf.constant(condition), tf.constant(x), tf.constant(y)).numpy())
            expected = np.where(condition, x, y)
            np.testing.assert_array_equal(chosen.astype(expected.dtype) if dtype == "str" else chosen, expected)


def test_tensordot_as_operands_lie():
    a, b = numbers((3, 4, 5)), numbers((4, 5, 2))
    for left, right, axes in ((a, b, 2), (a, b[0], 1), (a[0, 0], b[0], 1), (a[0, 0], a[0, 1], 1), (a, a, 3)):
        np.testing.assert_allclose(tf.tensordot(left, right, axes), np.tensordot(left, right, axes))
    x, y = tf.constant(a[0, 0]), tf.constant(a[0, 1])
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        product = tf.tensordot(x, y, 1)
    assert product.shape == ()
    np.testing.assert_array_equal(tape.gradient(product, [x, y])[0], y)
    assert tf.tensordot(np.zeros((3, 0), np.float32), np.zeros((0, 2), np.float32), 1).shape == (3, 2)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_long_linspace(dtype):
    for num in (1024, 1025, 5000):
        y = tf.linspace(tf.constant(-1, dtype), tf.constant(3, dtype), num)
        np.testing.assert_allclose(y, np.linspace(-1, 3, num), atol=4 * np.finfo(dtype).eps)
        assert y[0] == -1 and y[-1] == 3
    rows = tf.linspace(tf.constant([0, 1], dtype), tf.constant([1, 3], dtype), 2000, axis=-1)
    np.testing.assert_allclose(rows, np.linspace([0, 1], [1, 3], 2000, axis=-1), atol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64", "complex64"])
def test_steps_of_every_size_and_length(dtype):
    x = np.arange(1, 131).astype(dtype)
    given = tf.constant(x)
    for step in (2, 3, 4, 7, -2, -3):
        for length in (*range(1, 20), 64, 65, 130):
            np.testing.assert_array_equal(given[:length][::step].numpy(), x[:length][::step])
            np.testing.assert_array_equal(given[-length:][::step].numpy(), x[-length:][::step])


@pytest.mark.parametrize("columns", [2, 3, 5])
def test_columns_of_every_length(columns):
    for rows in (*range(1, 20), 64, 65):
        x = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
        for column in range(columns):
            np.testing.assert_array_equal(tf.constant(x)[:, column].numpy(), x[:, column])
