"""`tf.gradients` by values that are known while a function is traced; tests/v1 has the rest."""

import numpy as np
import pytest

import tapeflow as tf


def test_source_that_is_a_constant():
    @tf.function
    def slope():
        x = tf.constant([1.0, 2.0])
        return tf.gradients(x * x * 3.0, x)[0]

    np.testing.assert_array_equal(slope(), [6.0, 12.0])


def test_source_from_outside():
    x = tf.constant([1.0, 2.0])

    @tf.function
    def slope(scale):
        y = tf.reduce_sum(x * x)
        return tf.gradients(y * scale, [x])[0]

    np.testing.assert_array_equal(slope(tf.constant(2.0)), [4.0, 8.0])


def test_inside_a_loop():
    @tf.function
    def total(scale):
        x = tf.constant([1.0, 2.0])

        def step(i, sum):
            return i + 1, sum + tf.gradients(x * x * scale, [x])[0]

        return tf.while_loop(lambda i, sum: i < 3, step, [0, tf.zeros([2])])[1]

    np.testing.assert_array_equal(total(tf.constant(2.0)), [12.0, 24.0])


def test_there_is_no_path():
    @tf.function
    def slopes(v):
        x, y = tf.constant(1.0), tf.constant(2.0)
        return [g is None for g in tf.gradients(y * v, [x, y])], tf.gradients(y * v, x, unconnected_gradients="zero")

    missing, zero = slopes(tf.constant(3.0))
    assert [bool(m) for m in missing] == [True, False] and float(zero[0]) == 0.0


def test_second_order_and_a_tape_outside():
    @tf.function
    def slope(v):
        x = tf.constant(2.0)
        (first,) = tf.gradients(x**3 * v, x)
        return first, tf.gradients(first, x)[0]

    v = tf.Variable(5.0)
    with tf.GradientTape(persistent=True) as tape:
        first, second = slope(v)
    assert (float(first), float(second)) == (60.0, 60.0)
    assert (float(tape.gradient(first, v)), float(tape.gradient(second, v))) == (12.0, 12.0)


def test_traced_again_once():
    traces = []

    @tf.function
    def slope(v):
        traces.append(1)
        x = tf.constant(2.0)
        return tf.gradients(x * v, x)[0]

    assert [float(slope(tf.constant(3.0))), float(slope(tf.constant(4.0)))] == [3.0, 4.0]
    assert len(traces) == 2


def test_what_the_program_catches():
    @tf.function
    def slope():
        x = tf.constant(2.0)
        try:
            return tf.gradients(x * x, x)[0]
        except Exception:  # the wish to trace again is no error
            return x

    assert float(slope()) == 4.0


def test_eager():
    with pytest.raises(RuntimeError, match=r"tf\.gradients is not supported when eager execution is enabled"):
        tf.gradients(tf.constant(1.0), tf.constant(1.0))


# ---- in a graph inside another one


def test_gradients_in_a_branch_of_values_around_it():
    @tf.function
    def f(x, flag):
        y = x * x
        return tf.cond(flag, lambda: tf.gradients(y, x)[0], lambda: x)

    x = tf.constant([2.0, 1.0])
    assert f(x, tf.constant(True)).numpy().tolist() == [4.0, 2.0]
    assert f(x, tf.constant(False)).numpy().tolist() == [2.0, 1.0]


def test_gradients_in_a_function_inside_another_one():
    @tf.function
    def outer(x):
        y = x * x

        @tf.function
        def inner():
            z = y * x
            return tf.gradients(y, x)[0], tf.gradients(z, x)[0], tf.gradients(z, y)[0], tf.gradients(x, y)[0]

        return inner()

    first, second, third, none = outer(tf.constant([2.0, 1.0]))
    assert first.numpy().tolist() == [4.0, 2.0]
    assert second.numpy().tolist() == [12.0, 3.0]
    assert third.numpy().tolist() == [2.0, 1.0]
    assert none is None


def test_gradients_in_a_body_two_levels_inside():
    @tf.function
    def outer(x):
        y = tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a * x), [0, x])[1]  # x ** 3

        def body(i, total):
            return i + 1, tf.cond(i > 0, lambda: total + tf.gradients(y, x)[0], lambda: total)

        return tf.while_loop(lambda i, total: i < 3, body, [0, tf.zeros([2])])[1]

    np.testing.assert_allclose(outer(tf.constant([2.0, 1.0])), [24.0, 6.0])


def test_gradients_in_a_function_by_a_variable_and_a_constant_of_the_function_around_it():
    v = tf.Variable([3.0])
    constant = tf.constant([5.0])

    @tf.function
    def outer():
        y = v * v * constant

        @tf.function
        def inner():
            return tf.gradients(y * v, [v, constant])

        return inner()

    by_variable, by_constant = outer()
    np.testing.assert_allclose(by_variable, [3 * 9 * 5.0])
    np.testing.assert_allclose(by_constant, [27.0])


def test_stops_and_weights_reach_values_around_the_function():
    @tf.function
    def outer(x):
        y = x * x
        z = y * y

        @tf.function
        def inner():
            return tf.gradients(z, x, stop_gradients=[y])[0], tf.gradients(z, x, grad_ys=[[1.0, 10.0]])[0]

        return inner()

    stopped, weighted = outer(tf.constant([2.0, 1.0]))
    assert stopped is None
    np.testing.assert_allclose(weighted, [32.0, 40.0])


def test_objects_that_stand_for_variables():
    """As Keras 2's variables do that cast themselves: a subclass that never calls `tf.Variable.__init__`."""

    class Wrapper(tf.Variable):
        def __init__(self, variable):
            self._variable = variable

        handle = property(lambda self: self._variable.handle)

        def __tf_tensor__(self, dtype=None, name=None):
            return self._variable.read_value()

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        wrapper = Wrapper(tf.compat.v1.Variable(3.0))
        session.run(wrapper._variable.initializer)
        assert session.run(tf.gradients(tf.convert_to_tensor(wrapper) ** 2, [wrapper])) == [6.0]
