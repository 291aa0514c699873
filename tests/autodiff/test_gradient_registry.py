"""Gradients registered by name, and the blocks that ask for them."""

import pytest

import tapeflow as tf
from tapeflow._src.autodiff.gradient_registry import registered_gradient


def test_a_name_is_registered_once():
    @tf.RegisterGradient("RegisteredOnce")
    def halved(op, dy):
        return 0.5 * dy

    assert registered_gradient("RegisteredOnce") is halved
    with pytest.raises(KeyError, match="Registering two gradient with name 'RegisteredOnce'"):
        tf.RegisterGradient("RegisteredOnce")(halved)
    with pytest.raises(KeyError, match="Registering two gradient with name 'Sin'"):
        tf.RegisterGradient("Sin")(halved)
    with pytest.raises(TypeError, match="op_type must be a string"):
        tf.RegisterGradient(3)
    tf.no_gradient("RegisteredNone")
    assert registered_gradient("RegisteredNone") is None
    with pytest.raises(LookupError, match="no entry for: Nobody"):
        registered_gradient("Nobody")


@tf.RegisterGradient("HundredFold")
def hundred_fold(op, dy):
    return 100.0 * dy


@tf.RegisterGradient("ByInput")
def by_input(op, dy):
    return dy * op.inputs[0] * op.outputs[0]


@tf.RegisterGradient("OnlySecond")
def only_second(op, dy):
    return [None, 7.0 * dy]


def overriding(name_by_type):
    return tf.compat.v1.get_default_graph().gradient_override_map(name_by_type)


def slope(function, *arguments, persistent=False):
    x = [tf.constant(a) for a in arguments]
    with tf.GradientTape(persistent=persistent) as tape:
        tape.watch(x)
        y = function(*x)
    return [None if g is None else float(g) for g in tape.gradient(y, x)]


def test_a_tape_outside_of_a_function_takes_the_override():
    @tf.function
    def f(x):
        with overriding({"Square": "HundredFold"}):
            y = tf.square(x)
        return y * 3.0 + tf.square(x)

    assert slope(f, 2.0) == [304.0]
    assert slope(f, 2.0, persistent=True) == [304.0]
    assert float(f(tf.constant(2.0))) == 16.0


def test_a_registered_gradient_sees_its_operation():
    @tf.function
    def f(a, b):
        with overriding({"Square": "ByInput", "Mul": "OnlySecond"}):
            return tf.square(a) * b

    assert slope(f, 2.0, 3.0) == [None, 7.0]

    @tf.function
    def g(a):
        with overriding({"Square": "ByInput"}):
            return tf.square(a)

    assert slope(g, 3.0) == [27.0]


def test_overrides_nest_and_end_with_their_block():
    @tf.function
    def f(x):
        with overriding({"Square": "HundredFold", "Sin": "HundredFold"}):
            with overriding({"Square": "ByInput"}):
                y = tf.square(x)
            z = tf.square(x)
        return y + 10.0 * z

    assert slope(f, 2.0) == [2.0 * 4.0 + 1000.0]
    for wrong in ({1: "a"}, "a"):
        with pytest.raises(TypeError, match="dictionary mapping strings to strings"), overriding(wrong):
            pass


def test_gradients_in_the_graph_take_the_override_and_tapes_in_it_do_not():
    @tf.function
    def by_graph(x):
        with overriding({"Square": "HundredFold"}):
            y = tf.square(x) * 3.0
        return tf.gradients(y, x)[0]

    @tf.function
    def by_tape(x):
        with overriding({"Square": "HundredFold"}), tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.square(x)
        return tape.gradient(y, x)

    @tf.function
    def forwards(x):
        with overriding({"Square": "HundredFold"}), tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
            y = tf.square(x)
        return accumulator.jvp(y)

    x = tf.constant(2.0)
    assert [float(f(x)) for f in (by_graph, by_tape, forwards)] == [300.0, 4.0, 4.0]
    with overriding({"Square": "HundredFold"}):
        assert slope(tf.square, 2.0) == [4.0]


def test_overrides_inside_a_vectorized_map():
    @tf.function
    def f(x):
        def row(r):
            with overriding({"Square": "HundredFold"}):
                return tf.square(r)

        return tf.vectorized_map(row, tf.stack([x, 2.0 * x]))

    assert slope(f, 2.0) == [300.0]


def test_a_name_that_nobody_registered_is_an_error_when_it_is_needed():
    @tf.function
    def f(x):
        with overriding({"Square": "NobodyRegisteredThis"}):
            return tf.square(x)

    assert float(f(tf.constant(3.0))) == 9.0
    with pytest.raises(LookupError, match=r"No gradient defined for operation .*no entry for: NobodyRegisteredThis"):
        slope(f, 2.0)
