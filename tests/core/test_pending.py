"""Large elementwise results wait for their first reader: same bits, same values whatever happens in between."""

import threading

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import _core

LARGE = 1 << 15


def numbers(seed: int, size: int = LARGE) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(size).astype("float32")


def live_bytes() -> int:
    return _core.memory_info()["current"]


def by_parts(function, *arrays):
    """The values of `function` on pieces too small to wait."""
    pieces = [function(*(tf.constant(a[i : i + 1000]) for a in arrays)).numpy() for i in range(0, LARGE, 1000)]
    return np.concatenate(pieces)


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: 0.9 * a + 0.1 * b,
        lambda a, b: a - 0.001 * b / (tf.sqrt(tf.abs(a)) + 1e-7),
        lambda a, b: tf.tanh(a * b + b) * tf.sigmoid(a) - (a - b) * (a - b),
        lambda a, b: 1.0 / tf.exp(-a) + tf.nn.relu(b) * tf.maximum(a, 0.0),
        lambda a, b: (lambda t: t * t + t)(a + b),
        lambda a, b: tf.add_n([a * b, a - b, b]),
        lambda a, b: sum((a * float(i) + b for i in range(40)), a),
    ],
)
def test_the_same_bits_as_without_waiting(function):
    a, b = numbers(0), numbers(1)
    np.testing.assert_array_equal(function(tf.constant(a), tf.constant(b)).numpy(), by_parts(function, a, b))


def test_values_that_are_held_are_computed_once_and_stay():
    a = tf.constant(numbers(0))
    t = a + 1.0
    u = t * t
    w = u - t
    np.testing.assert_array_equal(w.numpy(), u.numpy() - t.numpy())
    np.testing.assert_array_equal(t.numpy(), a.numpy() + np.float32(1))


def test_a_variable_written_after_it_was_read():
    x = numbers(0)
    for write in (
        lambda v: v.assign(tf.zeros([LARGE])),
        lambda v: v.assign_add(tf.ones([LARGE])),
        lambda v: v.assign_sub(2.0 * v),
        lambda v: v[3:9].assign(tf.zeros([6])),
        lambda v: v.scatter_nd_update([[5]], [7.0]),
    ):
        v = tf.Variable(x)
        before = v * 2.0
        write(v)
        np.testing.assert_array_equal(before.numpy(), x * 2)


def test_updates_that_read_the_variable_itself():
    x, y = numbers(0), numbers(1)
    v = tf.Variable(x)
    v.assign(0.5 * v)
    v.assign_add(v * v)
    v.assign_sub(0.25 * v + tf.constant(y))
    half = x * np.float32(0.5)
    total = half + half * half
    np.testing.assert_array_equal(v.numpy(), total - (total * np.float32(0.25) + y))


def test_an_assigned_value_and_the_variable_do_not_share_later_writes():
    x = numbers(0)
    v, value = tf.Variable(x), tf.constant(x) * 3.0
    v.assign(value)
    v.assign_add(value)
    np.testing.assert_array_equal(value.numpy(), x * 3)
    np.testing.assert_array_equal(v.numpy(), x * 3 + x * 3)
    other = tf.Variable(x)
    other.assign(v + 1.0)
    kept = other.value()
    other.assign_sub(tf.ones([LARGE]))
    np.testing.assert_array_equal(kept.numpy(), v.numpy() + np.float32(1))


def test_adam_by_hand():
    p, m, s, g = (numbers(i) for i in range(4))
    s = np.abs(s)
    variables = [tf.Variable(t) for t in (p, m, s)]
    gradient = tf.constant(g)
    for _ in range(3):
        first, second = variables[1], variables[2]
        first.assign(0.9 * first + 0.1 * gradient)
        second.assign(0.999 * second + 0.001 * tf.square(gradient))
        variables[0].assign_sub(0.001 * first / (tf.sqrt(second) + 1e-7))
        m = np.float32(0.9) * m + np.float32(0.1) * g
        s = np.float32(0.999) * s + np.float32(0.001) * (g * g)
        p = p - np.float32(0.001) * m / (np.sqrt(s) + np.float32(1e-7))
    for variable, expected in zip(variables, (p, m, s), strict=True):
        np.testing.assert_array_equal(variable.numpy(), expected)
    np.testing.assert_array_equal(gradient.numpy(), g)


def test_assigning_what_waits_connects_no_gradient():
    x, v = tf.constant(numbers(0)), tf.Variable(numbers(1))
    with tf.GradientTape() as tape:
        tape.watch(x)
        v.assign(x * 2.0)
        y = tf.reduce_sum(v * 3.0)
    by_x, by_v = tape.gradient(y, [x, v])
    assert by_x is None
    np.testing.assert_array_equal(by_v.numpy(), np.full(LARGE, 3, "float32"))


def test_numpy_arrays_do_not_change_what_waits():
    a = numbers(0)
    t = tf.constant(a)
    y = t * 2.0
    array = t.numpy()
    array[:] = 0
    view = (t + 0.0).numpy()
    view[:] = 0
    np.testing.assert_array_equal(y.numpy(), a * 2)
    source = a.copy()
    z = tf.convert_to_tensor(source) * 2.0
    source[:] = 0
    np.testing.assert_array_equal(z.numpy(), a * 2)


def test_gradients_through_what_waits_of_both_orders():
    x = numbers(0)
    v = tf.Variable(x)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.reduce_sum(tf.square(v) * v + tf.tanh(v) * 0.0)
        first = inner.gradient(y, v)
        total = tf.reduce_sum(first)
    np.testing.assert_allclose(first.numpy(), 3 * x * x, rtol=1e-5)
    np.testing.assert_allclose(outer.gradient(total, v).numpy(), 6 * x, rtol=1e-5)


def test_what_waits_holds_little_memory():
    before = live_bytes()
    x = tf.ones([1 << 20])
    results = [(x + float(i)) * (x - float(i)) for i in range(40)]
    v = tf.Variable(tf.ones([1 << 20]))
    for i in range(200):
        v.assign(v * 0.5 + (x + float(i)))
    assert live_bytes() - before < 60 * (4 << 20)
    assert float(results[3][0]) == -8.0
    del results, x, v
    assert live_bytes() - before < 1 << 20


def test_other_threads_may_read_first():
    a = tf.constant(numbers(0))
    y = tf.exp(a * 0.5) + a
    seen = [None] * 4

    def read(i):
        seen[i] = y.numpy()

    threads = [threading.Thread(target=read, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for array in seen:
        np.testing.assert_array_equal(array, by_parts(lambda t: tf.exp(t * 0.5) + t, a.numpy()))
