"""Scalar replacement of aggregates: states that are stacked and cut again run in few steps, with the same results."""

import numpy as np
import pytest

import tapeflow as tf


def normal(*shape, seed=0):
    return tf.constant(np.random.default_rng(seed).standard_normal(shape).astype(np.float32))


def steps(function, *args):
    text = tf.function(function).experimental_get_compiler_ir(*args)(stage="after-emit")
    return text.count("\nstep ")


def pendulum(x, rounds):
    for _ in range(rounds):
        x = x + 0.1 * tf.stack([x[:, 1], -tf.sin(x[:, 0])], 1)
    return x


def gradient_of(loss):
    def program(x, *more):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = loss(x, *more)
        return value, tape.gradient(value, x)

    return program


def assert_same(program, *args, tolerance=1e-5):
    compiled, eager = tf.function(program)(*args), program(*args)
    for a, b in zip(tf.nest.flatten(compiled), tf.nest.flatten(eager)):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_an_unrolled_integrator_has_no_step_per_column():
    def loss(x):
        return tf.reduce_mean(tf.square(pendulum(x, 20)))

    # 20 rounds of 4 columns, forward and backward, were 200 steps.
    assert steps(gradient_of(loss), normal(32, 2)) < 20
    assert_same(gradient_of(loss), normal(32, 2))


def test_large_states_are_taken_apart_too():
    assert steps(lambda x: pendulum(x, 3), normal(5000, 2)) <= 5
    assert_same(lambda x: pendulum(x, 3), normal(5000, 2))


def test_a_stack_that_only_products_read_stays():
    def program(a, b, w):
        return tf.matmul(tf.stack([a, b], 1), w)

    text = tf.function(program).experimental_get_compiler_ir(normal(4), normal(4), normal(2, 3))(
        stage="after-scalar-replacement"
    )
    assert text.count("Pack(") == 1 and "StridedSlice" not in text


PROGRAMS = {
    "first axis": lambda x: tf.stack([x[1] * 2.0, tf.exp(-x[0] * x[0])]) + x,
    "middle axis": lambda x: tf.reduce_sum(tf.stack([x[:, 1], x[:, 0] ** 2], 1) * x, 2),
    "last axis": lambda x: tf.reduce_max(tf.stack([x[..., 1], tf.abs(x[..., 0])], -1) - x, -1),
    "unstack": lambda x: tf.stack([b - a for a, b in [tf.unstack(x, axis=-1)] * 2], -1) * x,
    "split": lambda x: tf.concat([b * b + a for a, b in [tf.split(x, 2, -1)] * 2], -1) + 2.0 * x,
    "ranges": lambda x: tf.concat([x[..., :1] + 1.0, x[..., 1:] * x[..., :1]], -1) * tf.tanh(x),
    "backwards": lambda x: tf.concat([x[..., ::-1], x[..., 1:]], -1) ** 2,
    "row operand": lambda x: (tf.stack([x[..., 1], x[..., 0]], -1) + [1.0, 2.0]) * x,
    "column operand": lambda x: tf.stack([x[..., 1], x[..., 0]], -1) * tf.reduce_sum(x, -1, keepdims=True),
    "mean of all": lambda x: tf.reduce_mean(tf.square(tf.stack([x[..., 1], x[..., 0] * 3.0], -1) - x)),
    "mean over rows": lambda x: tf.reduce_mean(tf.stack([x[..., 1], x[..., 0]], -1) * x, [0, 1]),
    "least": lambda x: tf.reduce_min(tf.stack([x[..., 1], x[..., 0] + 0.1], -1) * x, [0, 2], keepdims=True),
    "choice": lambda x: tf.where(tf.stack([x[..., 1], x[..., 0]], -1) > x, x, tf.sin(x)),
    "transposed": lambda x: tf.transpose(tf.stack([x[..., 1], x[..., 0]], -1) + x, [2, 0, 1]) * 2.0,
    "two axes": lambda x: tf.stack([x[0] + 1.0, x[1] * x[0]]) * tf.stack([x[..., 1], x[..., 0]], -1),
    "whole results": lambda x: (tf.stack([x[..., 1], x[..., 0]], -1), tf.stack([x[..., 1], x[..., 0]], -1) * x),
    "broadcast": lambda x: tf.broadcast_to(x[..., :1], x.shape) * tf.stack([x[..., 1], x[..., 0]], -1) + x,
    "integers": lambda x: tf.stack([tf.cast(x[..., 1], tf.int32), tf.cast(x[..., 0], tf.int32)], -1) * 2,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_and_gradients_stay(name):
    x = normal(2, 2, 2, seed=3)
    program = PROGRAMS[name]
    assert_same(program, x)
    if name not in ("integers", "whole results"):
        assert_same(gradient_of(lambda t: tf.reduce_sum(tf.sin(program(t)))), x)


# New states from the state x, the one before it, a matrix, and the columns of x.
ROUNDS = [
    lambda x, old, m, a, b, c: tf.stack([a * b, b - c, tf.sin(a)], 1),
    lambda x, old, m, a, b, c: tf.stack([c, a, b], 1) * 0.5 + x,
    lambda x, old, m, a, b, c: tf.concat([x[:, 1:], x[:, :1]], 1) - 0.1 * old,
    lambda x, old, m, a, b, c: tf.matmul(tf.stack([a, b, c], 1), m),
    lambda x, old, m, a, b, c: tf.stack([a, a + b, c], 1) / (1.0 + tf.reduce_sum(tf.square(x), 1, keepdims=True)),
    lambda x, old, m, a, b, c: x - tf.reduce_mean(tf.stack([b, c, a], 1), 0),
    lambda x, old, m, a, b, c: tf.where(tf.stack([a, b, c], 1) > 0.0, x, 0.3 * x),
    lambda x, old, m, a, b, c: tf.pad(x[:, :2], [[0, 0], [0, 1]]) + tf.tanh(x),
]


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed):
    """Chains of stacks, slices, arithmetic and reductions of states with three columns."""
    kinds = np.random.default_rng(seed).integers(len(ROUNDS), size=10)

    def program(x, m):
        old = x
        for kind in kinds:
            columns = tf.unstack(x, axis=1) if kind % 2 else (x[:, 0], x[:, 1], x[:, 2])
            old, x = x, ROUNDS[kind](x, old, m, *columns)
        return tf.reduce_mean(x), old

    def loss(x, m):
        value, old = program(x, m)
        return value + tf.reduce_sum(tf.square(old))

    x, m = normal(5, 3, seed=seed), normal(3, 3, seed=seed + 100) * 0.3
    assert_same(program, x, m, tolerance=1e-4)
    assert_same(gradient_of(loss), x, m, tolerance=1e-4)


def test_a_loop_over_a_small_state():
    def program(x):
        for _ in tf.range(10):
            x = x + 0.1 * tf.stack([x[:, 1], -tf.sin(x[:, 0])], 1)
        return tf.reduce_sum(x * x)

    def compiled(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = program(x)
        return tape.gradient(value, x)

    x = normal(4, 2)
    expected = gradient_of(lambda t: tf.reduce_sum(tf.square(pendulum(t, 10))))(x)[1]
    np.testing.assert_allclose(tf.function(compiled)(x), expected, rtol=1e-5)


def test_elements_of_a_small_tensor_are_views():
    def program(p, x):
        return p[0] * x - p[1] * x * x + p[3]

    text = tf.function(program).experimental_get_compiler_ir(normal(4), normal(30))(stage="after-emit")
    assert text.count("\nstep ") == 1 and "StridedSlice" not in text
    assert_same(program, normal(4), normal(30))
    assert_same(lambda p, x: (p[1:3], p[2] * x, tf.stack([p[3], p[0]])), normal(4), normal(30))


def test_an_unstacking_that_is_no_view_goes_where_the_plan_places_it():
    args = normal(6, 20, seed=1), normal(20, 20)

    def cut(x, w):
        a, b = tf.unstack((x @ w)[:, :2], axis=1)
        c, d = tf.split(w @ w, [5, 15], 1)
        return tf.tensordot(a, b, 1) + tf.reduce_sum(tf.matmul(c, d, transpose_a=True))

    lines = tf.function(cut).experimental_get_compiler_ir(*args)(stage="after-emit").splitlines()
    assert any("SplitCopy(" in line and line.count("@buffer") == 2 for line in lines)
    assert_same(cut, *args, tolerance=1e-4)
