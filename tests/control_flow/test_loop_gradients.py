"""Gradients of branches and loops in functions: nothing runs twice, whatever is in them."""

import numpy as np
import pytest

import tapeflow as tf


def gradient(function, *sources):
    """The result of a function of the sources that are tensors, and its gradients by all of them."""
    tensors = [x for x in sources if not isinstance(x, tf.Variable)]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        y = function(*tensors)
    return y, tape.gradient(y, list(sources))


def inside(program):
    """The program and its gradient in one function."""

    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = program(x)
        return y, tape.gradient(y, x)

    return tf.function(both)


def agree(program, x, signature=None):
    """First and second derivatives of the traced program are those of the program itself."""
    found = []
    for function in (tf.function(program, input_signature=signature), program):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = function(x)
            first = tape.gradient(y, x)
        found.append([y, first, outer.gradient(first, x)])
    found.append([*inside(program)(x), found[1][2]])
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-5)


def power(x):
    return tf.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * tf.sin(x)), (0, x))[1]


def nested(x):
    def outer(i, s):
        return i + 1, tf.while_loop(lambda j, _: j < 2, lambda j, s: (j + 1, tf.sin(s) * x + s), (0, s))[1]

    return tf.while_loop(lambda i, _: i < 3, outer, (0, x))[1]


def branch_in_loop(x):
    def step(i, s):
        return i + 1, tf.cond(tf.equal(i % 2, 0), lambda: s * x, lambda: s + tf.sin(x * s))

    return tf.while_loop(lambda i, _: i < 4, step, (0, x))[1]


def growing_value(x):
    def step(i, y):
        return i + 1, tf.concat([y, x * tf.reduce_sum(y)], 0)

    return tf.while_loop(lambda i, _: i < 3, step, (0, x), shape_invariants=([], [None]))[1]


def swapped(x):
    return tf.while_loop(lambda i, *_: i < 3, lambda i, a, b: (i + 1, b, a * b), (0, x, tf.sin(x)))[2]


def replaced(x):
    return tf.while_loop(lambda i, _: i < 2, lambda i, _: (i + 1, tf.sin(x)), (0, x * 2.0))[1]


def limited(x):
    loop = {"maximum_iterations": 3, "swap_memory": True, "parallel_iterations": 2}
    return tf.while_loop(lambda _: True, lambda y: (y * x,), (x,), **loop)[0]


def no_rounds(x):
    return tf.while_loop(lambda i, _: i < 0, lambda i, y: (i + 1, y * x), (0, x * x))[1]


def rows(x):
    return tf.while_loop(lambda i, _: i < 2, lambda i, s: (i + 1, s * x[i] + x[-i]), (tf.constant(0), x))[1]


PROGRAMS = [power, nested, branch_in_loop, growing_value, swapped, replaced, limited, no_rounds, rows]


@pytest.mark.parametrize("signature", [None, [tf.TensorSpec([None])]], ids=["known", "unknown"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_derivatives_of_loops(program, signature):
    agree(program, tf.constant([0.3, 0.7]), signature)


# ---- lists


def filled(x):
    array = tf.TensorArray(tf.float32, 3)
    for i in tf.range(3):
        array = array.write(i, x * tf.cast(i, tf.float32))
    return array.stack()


def written_twice(x):
    array = tf.TensorArray(tf.float32, 3, element_shape=[2])
    for i in tf.range(6):
        array = array.write(i // 2, x**2 * tf.cast(i, tf.float32))
    return array.stack()


def two_writes(x):
    array = tf.TensorArray(tf.float32, 6)
    for i in tf.range(3):
        array = array.write(2 * i, x * tf.cast(i, tf.float32)).write(2 * i + 1, x**2)
    return array.stack()


def read_and_written(x):
    array = tf.TensorArray(tf.float32, 5, clear_after_read=False).write(0, x).write(1, x * 2.0)
    for i in tf.range(2, 5):
        array = array.write(i, array.read(i - 1) * array.read(i - 2))
    return array.stack()


def read_and_growing(x):
    array = tf.TensorArray(tf.float32, 0, dynamic_size=True, clear_after_read=False).write(0, x).write(1, x * 2.0)
    for i in tf.range(2, 5):
        array = array.write(i, array.read(i - 1) * array.read(i - 2))
    return array.stack()


LISTS = [filled, written_twice, two_writes, read_and_written, read_and_growing]


@pytest.mark.parametrize("program", LISTS, ids=lambda p: p.__name__)
def test_derivatives_of_lists(program):
    x = tf.constant([0.3, 0.7])
    expected = gradient(program, x)
    for found in (gradient(tf.function(program), x), inside(program)(x)):
        for one, two in zip(tf.nest.flatten(found), tf.nest.flatten(expected), strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-6)


def test_a_list_written_in_a_loop_stays_as_it_was_for_others():
    @tf.function
    def function(x):
        before = tf.TensorArray(tf.float32, 3).unstack(x)
        after = before
        for i in tf.range(3):
            after = after.write(i, x[i] * 10.0)
        return before.stack(), after.stack()

    before, after = function(tf.constant([1.0, 2.0, 3.0]))
    assert before.numpy().tolist() == [1, 2, 3]
    assert after.numpy().tolist() == [10, 20, 30]


# ---- what a second run would show


def test_effects_happen_once():
    count = tf.Variable(0)

    @tf.function
    def function(x):
        for _ in tf.range(3):
            count.assign_add(1)
            x = x * x
        if x > 0:
            count.assign_add(10)
            x = x * 2.0
        return x

    gradient(function, tf.constant(1.0))
    assert count.numpy() == 13


@pytest.mark.parametrize("wrap", [tf.function, lambda program: program], ids=["outside", "inside"])
def test_random_numbers_are_those_of_the_run(wrap):
    @tf.function
    def function(x):
        y = x
        for _ in tf.range(3):
            y = y * tf.random.uniform([], 1.0, 2.0)
        return tf.cond(x > 0, lambda: y * tf.random.uniform([], 1.0, 2.0), lambda: y)

    x = tf.constant(3.0)
    y, (slope,) = gradient(wrap(function), x)
    np.testing.assert_allclose(slope * x, y, rtol=1e-6)


def test_memory_of_a_loop_is_what_its_rule_needs():
    x = tf.ones([1000, 256])

    @tf.function
    def function(x):
        return tf.while_loop(lambda i, _: i < 50, lambda i, y: (i + 1, y + x), (0, x))[1]

    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
        before = tf.config.experimental.get_memory_info("CPU:0")["current"]
    np.testing.assert_array_equal(tape.gradient(y, x), tf.fill(x.shape, 51.0))
    assert before < 20 * 1000 * 256 * 4


# ---- variables that a loop assigns to and reads: each reading is one of the value then


def test_variable_assigned_in_a_loop():
    v = tf.Variable(2.0)

    @tf.function
    def function(x):
        for _ in tf.range(3):
            x = x * v
            v.assign_add(1.0)
        return x

    y, (dx, dv) = gradient(function, tf.constant(3.0), v)
    assert (y.numpy(), dx.numpy(), dv.numpy(), v.numpy()) == (72, 24, 78, 5)


def test_variable_assigned_in_a_branch():
    v = tf.Variable(2.0)

    @tf.function
    def function(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            if x > 0:
                y = x * v
                v.assign(y)
                y = y * v
            else:
                y = x
        return y, *tape.gradient(y, [x, v])

    assert [t.numpy() for t in function(tf.constant(3.0))] == [36, 12, 24]


def test_second_derivative_by_an_assigned_variable_is_refused():
    v = tf.Variable(2.0)

    @tf.function
    def function(x):
        for _ in tf.range(3):
            x = x * v
            v.assign_add(1.0)
        return x

    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        slope = tape.gradient(y, x)
    with pytest.raises(tf.errors.UnimplementedError, match="assigns to the variables it reads"):
        outer.gradient(slope, x)


def test_second_derivative_of_a_random_branch_is_refused():
    function = tf.function(lambda x: tf.cond(x > 0, lambda: x**2 * tf.random.uniform([], 1.0, 2.0), lambda: x))
    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        slope = tape.gradient(y, x)
    np.testing.assert_allclose(slope, 2 * y / x, rtol=1e-6)
    with pytest.raises(tf.errors.UnimplementedError, match="draws random numbers"):
        outer.gradient(slope, x)


# ---- several tapes


def test_a_branch_may_give_what_it_was_given():
    """Under two tapes, one of them persistent, branches are recorded one by one."""
    x, y = tf.constant([0.3, 0.5]), tf.constant([0.7, -0.1])

    @tf.function
    def function(x, y):
        z = x - tf.reduce_mean(y)
        one, two = tf.cond(tf.reduce_sum(x) > 0, lambda: [z * 0.9, y], lambda: [z, y])
        return tf.while_loop(lambda i, *_: i < 2, lambda i, a, b: (i + 1, a + b, b), (0, one, two))[1]

    with tf.GradientTape() as outer:
        outer.watch([x, y])
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, y])
            result = function(x, y)
        found = tape.gradient(result, [x, y])
    np.testing.assert_allclose(found[0], [0.9, 0.9], rtol=1e-6)
    np.testing.assert_allclose(found[1], [1.1, 1.1], rtol=1e-6)


@pytest.mark.parametrize("persistent", [False, True])
def test_second_order_with_a_persistent_tape(persistent):
    x = tf.constant([0.3, 0.7])
    found = []
    for function in (tf.function(branch_in_loop), branch_in_loop):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape(persistent=persistent) as tape:
                tape.watch(x)
                y = function(x)
            first = tape.gradient(y, x)
        found.append([y, first, outer.gradient(first, x)])
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-5)
