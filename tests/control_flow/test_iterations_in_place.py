"""Loops whose state stays in the memory of one plan: they give what the eager loop gives, run after run."""

import numpy as np
import pytest

import tapeflow as tf


def swap(x):
    return lambda i, a, b: (i + 1, b, a + 1.0), [x, x * 2.0]


def passed_through(x):
    return lambda i, a, b: (i + 1, a * 0.5 + b, b), [x, x + 1.0]


def same_value_twice(x):
    def body(i, a, b):
        c = tf.tanh(a + b)
        return i + 1, c, c

    return body, [x, x]


def not_read(x):
    return lambda i, a, b: (i + 1, a + 1.0, tf.sin(a)), [x, x]


def by_a_matrix(x):
    w = tf.eye(x.shape[-1] if x.shape.rank else 1) * 0.5

    def body(i, a, b):
        return i + 1, tf.reshape(tf.matmul(tf.reshape(a, [-1, w.shape[0]]), w), a.shape) + b, a

    return body, [x, x]


def by_rows(x):
    table = tf.reshape(tf.range(40.0), [20, 2])
    return lambda i, a, b: (i + 1, a + tf.reduce_sum(table[i]), b * 0.9 + table[i][0]), [x, x]


def with_a_branch(x):
    def body(i, a, b):
        return i + 1, tf.cond(tf.reduce_sum(a) > 3.0, lambda: a * 0.5, lambda: a + 1.0), b + a

    return body, [x, x]


def with_a_loop(x):
    def body(i, a, b):
        inner = tf.while_loop(lambda j, s: j < i, lambda j, s: (j + 1, s * 0.5 + 1.0), [0, a])[1]
        return i + 1, inner, b + inner

    return body, [x, x]


def with_integers(x):
    return lambda i, a, b: (i + 1, a + tf.cast(i, tf.float32), tf.cast(a > b, tf.float32)), [x, x]


PROGRAMS = [
    swap, passed_through, same_value_twice, not_read, by_a_matrix, by_rows, with_a_branch, with_a_loop, with_integers,
]  # fmt: skip


@pytest.mark.parametrize("shape", [(), (3,), (50,), (40, 30)])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_the_eager_loop(program, shape):
    def run(x, n):
        body, state = program(x)
        return tf.while_loop(lambda i, a, b: i < n, body, [tf.constant(0), *state])

    compiled = tf.function(run)
    x = tf.constant(np.random.default_rng(0).standard_normal(shape).astype(np.float32))
    kept = x.numpy().copy()
    for n in (7, 0, 1, 2, 12):
        for found, expected in zip(compiled(x, tf.constant(n)), run(x, tf.constant(n)), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(x, kept)


def test_results_of_two_runs_do_not_share_memory():
    function = tf.function(lambda x: tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a + 1.0), [0, x])[1])
    first = function(tf.zeros([100]))
    second = function(tf.ones([100]))
    np.testing.assert_array_equal(first, np.full(100, 5.0))
    np.testing.assert_array_equal(second, np.full(100, 6.0))


def test_lists_are_written():
    def run(x):
        def body(i, a, kept):
            return i + 1, a * 2.0, kept.write(i, a + 1.0)

        return tf.while_loop(lambda i, a, kept: i < 6, body, [0, x, tf.TensorArray(tf.float32, 6)])[2].stack()

    x = tf.constant([1.0, 2.0, 3.0, 4.0, 5.0])
    for _ in range(2):
        np.testing.assert_array_equal(tf.function(run)(x), run(x))


def test_at_most_so_many_iterations():
    def run(x):
        return tf.while_loop(lambda i, a: i < 100, lambda i, a: (i + 1, a + 1.0), [0, x], maximum_iterations=7)

    i, a = tf.function(run)(tf.zeros([30]))
    assert int(i) == 7 and a.numpy()[0] == 7.0


def test_after_an_error_the_loop_runs_again():
    @tf.function
    def run(n):
        table = tf.reshape(tf.range(12.0), [6, 2])
        return tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a + tf.gather(table, i)), [0, tf.zeros([2])])

    np.testing.assert_array_equal(run(tf.constant(3))[1], [6.0, 9.0])
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(tf.constant(9))
    np.testing.assert_array_equal(run(tf.constant(3))[1], [6.0, 9.0])


def test_scan_and_map():
    x = tf.constant(np.random.default_rng(0).standard_normal((30, 5)).astype(np.float32))
    for program in (
        lambda x: tf.scan(lambda a, b: a * 0.9 + b, x),
        lambda x: tf.map_fn(lambda a: a * tf.reduce_sum(a), x),
        lambda x: tf.foldl(lambda a, b: tf.tanh(a) + b, x),
    ):
        np.testing.assert_allclose(tf.function(program)(x), program(x), rtol=1e-5)
