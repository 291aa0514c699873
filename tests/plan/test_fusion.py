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


@pytest.mark.parametrize("size", [5, 300, 1023, 40_000])
def test_dtypes_meet_in_one_group(size):
    random = np.random.default_rng(size)
    x, wide = random.standard_normal((3, size)).astype(np.float32), random.standard_normal((3, size))
    label = random.integers(0, 3, (3, 1)).astype(np.int32)

    @tf.function
    def program(x, wide, label):
        above = tf.logical_and(x > 0.5, tf.logical_not(tf.cast(wide, tf.float32) < x))
        chosen = tf.where(above, tf.cast(x, tf.float64) * 2.0, wide)
        by_row = tf.where(tf.equal(label, 1), chosen, tf.sign(chosen))
        share = tf.reduce_mean(tf.cast(above, tf.float32), 1)
        return (
            above,
            chosen,
            by_row,
            share,
            tf.reduce_max(by_row),
            tf.reduce_min(chosen, 1),
            tf.where(label > 0, x, 0.0),
        )

    above = (x > 0.5) & ~(wide.astype(np.float32) < x)
    chosen = np.where(above, x.astype(np.float64) * 2, wide)
    by_row = np.where(label == 1, chosen, np.sign(chosen))
    expected = above, chosen, by_row, above.mean(1), by_row.max(), chosen.min(1), np.where(label > 0, x, 0)
    for result, value in zip(program(x, wide, label), expected, strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-6)


ARITHMETIC = [
    lambda a, b, c, d: (a * b + c * d) - (a - b) * (c + d),
    lambda a, b, c, d: a - (0.1 * b) / (tf.sqrt(tf.abs(c)) + 1e-3) * d,
    lambda a, b, c, d: 0.9 * a + 0.1 * tf.square(b) - (c / 3.0 - d),
    lambda a, b, c, d: (a + b) / (2.0 + tf.square(c)) + d * d * d,
    lambda a, b, c, d: tf.sqrt(tf.square(a) + tf.square(b)) * (c - d) - 1.0 / (tf.abs(d) + 1.0),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(300,), (16, 1001), (40, 3, 50)])
def test_arithmetic_in_one_loop_has_the_bits_of_many(dtype, shape):
    random = np.random.default_rng(0)
    rows, columns = shape[-1:], shape[:-1] + (1,)
    for shapes in itertools.product([shape, (), rows, columns], repeat=3):
        a = tf.constant(random.standard_normal(shape).astype(dtype))
        b, c, d = (tf.constant(random.standard_normal(s).astype(dtype)) for s in shapes)
        program = tf.function(lambda a, b, c, d: [formula(a, b, c, d) for formula in ARITHMETIC])
        for result, formula in zip(program(a, b, c, d), ARITHMETIC, strict=True):
            np.testing.assert_array_equal(result, formula(a, b, c, d))


def test_a_reduction_reads_a_variable_before_it_is_written_over():
    v = tf.Variable(np.linspace(-1, 2, 50_000, dtype=np.float32))

    @tf.function
    def step():
        total, largest, smallest = tf.reduce_sum(v), tf.reduce_max(v), tf.reduce_min(v)
        v.assign(v * 0.5 + 1.0)
        return total, largest, smallest

    for _ in range(3):
        before = v.numpy()
        np.testing.assert_allclose(step(), [before.sum(dtype=np.float64), before.max(), before.min()], rtol=1e-5)
        np.testing.assert_array_equal(v, before * np.float32(0.5) + 1)


def test_reductions_of_one_tensor_in_one_pass():
    x = np.random.default_rng(3).standard_normal((64, 1000)).astype(np.float32)
    x[5, 7] = np.nan

    @tf.function
    def program(x):
        over_all = tf.reduce_sum(x), tf.reduce_max(x), tf.reduce_min(tf.abs(x)), tf.reduce_mean(tf.square(x))
        return *over_all, tf.reduce_max(x, 1), tf.reduce_min(x, 1), tf.reduce_max(x * 2.0, 0), tf.reduce_sum(x, 0)

    assert all(np.isnan(y) for y in program(x)[:4])
    x[5, 7] = 0.0
    expected = [x.sum(), x.max(), np.abs(x).min(), np.square(x).mean(), x.max(1), x.min(1), (x * 2).max(0), x.sum(0)]
    for result, value in zip(program(x), expected, strict=True):
        np.testing.assert_allclose(result, value, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_short_rows(dtype):
    random = np.random.default_rng(4)
    for length in (1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 33, 48, 63, 64, 65, 100):
        x = random.standard_normal((2001, length)).astype(dtype)

        def program(x):
            y = x * 2.0
            return (
                tf.reduce_sum(y, 1),
                tf.reduce_mean(y, 1),
                tf.reduce_max(y, 1),
                tf.reduce_min(y, 1),
                tf.reduce_max(x, 1),
            )

        expected = (x * 2).sum(1), (x * 2).mean(1), (x * 2).max(1), (x * 2).min(1), x.max(1)
        for run in (program, tf.function(program)):
            for result, value in zip(run(tf.constant(x)), expected, strict=True):
                np.testing.assert_allclose(result, value, rtol=1e-4, atol=1e-4)


def test_what_only_a_later_group_reads_is_made_there():
    random = np.random.default_rng(5)
    start, gradients = (
        random.standard_normal((2, 70_000)).astype(np.float32),
        random.standard_normal((3, 70_000)).astype(np.float32),
    )

    def steps(wrap):
        weights, momentum = tf.Variable(start[0]), tf.Variable(start[1])

        @wrap
        def step(gradient):
            kept, old = 0.9 * momentum, tf.abs(weights)
            gradient = gradient * tf.minimum(1.0 / tf.norm(gradient), 1.0) + tf.random.uniform([70_000], seed=1) * 0.0
            momentum.assign(kept + gradient)
            weights.assign_sub(0.1 * momentum)
            return tf.reduce_max(old), tf.where(old > tf.reduce_mean(momentum), old, momentum)

        return [[*step(tf.constant(g)), weights.numpy(), momentum.numpy()] for g in gradients]

    for compiled, eager in zip(steps(tf.function), steps(lambda f: f), strict=True):
        for a, b in zip(compiled, eager, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
