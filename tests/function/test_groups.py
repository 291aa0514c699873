"""Groups of elementwise operations: operands that broadcasting repeats in any way, sums over any neighbouring axes."""

import itertools

import numpy as np
import pytest

import tapeflow as tf

SHAPES = [
    ((200, 1, 16), (1, 32, 16)),
    ((200, 1, 4), (32, 4)),
    ((40, 30, 1), (40, 30, 17)),
    ((5, 1, 60, 1), (1, 7, 1, 33)),
    ((6, 5, 4, 3, 1), (5, 1, 3, 70)),
    ((2, 1, 1000), (2, 40, 1)),
    ((300, 200), (300, 1)),
    ((3, 5000), (3, 1)),
    ((1, 90, 1), (90, 90, 1)),
]


def formula(m, a, b):
    return (a + b) * a - m.tanh(b)


def axes_of(rank):
    return [None, *(list(c) for k in range(1, rank + 1) for c in itertools.combinations(range(rank), k))]


@pytest.mark.parametrize(("a_shape", "b_shape"), SHAPES)
def test_values_and_sums(a_shape, b_shape):
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(s).astype(np.float32) for s in (a_shape, b_shape))
    exact = formula(np, a.astype(np.float64), b.astype(np.float64))

    def program(a, b):
        y = formula(tf, a, b)
        sums = [tf.reduce_sum(tf.square(y), axes) for axes in axes_of(exact.ndim)]
        means = [tf.reduce_mean(y * 2.0, axes, keepdims=True) for axes in axes_of(exact.ndim)]
        return [y, *sums, *means]

    expected = [exact]
    expected += [np.sum(exact**2, None if axes is None else tuple(axes)) for axes in axes_of(exact.ndim)]
    expected += [
        np.mean(exact * 2, None if axes is None else tuple(axes), keepdims=True) for axes in axes_of(exact.ndim)
    ]
    for run in (program, tf.function(program)):
        for result, value in zip(run(tf.constant(a), tf.constant(b)), expected, strict=True):
            assert result.shape == value.shape
            np.testing.assert_allclose(result, value, rtol=2e-5, atol=2e-6 * np.abs(value).max() + 1e-6)


def test_column_sums_of_many_rows_are_exact_enough():
    x = np.random.default_rng(1).uniform(0, 1, (50_000, 24)).astype(np.float32)
    sums = tf.function(lambda x: tf.reduce_sum(tf.square(x), 0))(x)
    np.testing.assert_allclose(sums, np.square(x, dtype=np.float64).sum(0), rtol=1e-6)


def test_a_constant_that_is_one_number_everywhere():
    x = tf.Variable(np.arange(20_000, dtype=np.float32).reshape(100, 200))
    half, mixed = tf.fill([100, 200], 0.5), tf.constant(np.linspace(0, 1, 20_000, dtype=np.float32).reshape(100, 200))
    y, z = tf.function(lambda: (x * half - half, x * mixed - half))()
    np.testing.assert_array_equal(y, x.numpy() * np.float32(0.5) - np.float32(0.5))
    np.testing.assert_array_equal(z, x.numpy() * mixed.numpy() - np.float32(0.5))


def test_a_scatter_into_a_variable_changes_it_in_place():
    table, rows = tf.Variable(tf.zeros([1000, 8])), tf.constant([3, 5, 3])

    @tf.function
    def step(values):
        before = tf.reduce_sum(table)
        table.scatter_sub(tf.IndexedSlices(values, rows))
        return before, tf.reduce_sum(table)

    expected = np.zeros([1000, 8], np.float32)
    for total in (0.0, -24.0, -48.0):
        before, after = step(tf.ones([3, 8]))
        np.subtract.at(expected, rows.numpy(), 1)
        assert (before.numpy(), after.numpy()) == (total, total - 24)
        np.testing.assert_array_equal(table, expected)


def test_a_scatter_leaves_what_others_hold():
    table = tf.Variable(tf.zeros([1000, 8]))
    held = table.read_value()

    @tf.function
    def step(rows):
        old = table.read_value()
        table.scatter_add(tf.IndexedSlices(tf.ones([2, 8]), rows))
        return old

    old = step(tf.constant([1, 2]))
    assert np.sum(held) == np.sum(old) == 0
    assert np.sum(table) == 16
    with pytest.raises(tf.errors.InvalidArgumentError):
        step(tf.constant([1, 1000]))
    assert np.sum(table) == 16


def test_a_scatter_of_a_variable_into_itself():
    v = tf.Variable(np.arange(40_000, dtype=np.float32).reshape(20_000, 2))
    reversed_rows = tf.constant(np.arange(20_000)[::-1, None].copy())
    step = tf.function(lambda: v.assign(tf.tensor_scatter_nd_add(v, reversed_rows, v)))
    expected = v.numpy() + v.numpy()[::-1]
    step()
    np.testing.assert_array_equal(v, expected)
