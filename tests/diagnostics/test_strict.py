"""`GradientTape(strict=True)`: the explanation is raised instead of None being returned."""

import inspect

import pytest

import tapeflow as tf


def test_the_answer_is_raised():
    x = tf.Variable(3.0)
    with tf.GradientTape(strict=True) as tape:
        y = tf.floor(x) * 2.0
        line = inspect.currentframe().f_lineno - 1
    with pytest.raises(tf.autodiff.NoGradientError, match="floor") as caught:
        tape.gradient(y, x)
    assert isinstance(caught.value, ValueError)
    assert caught.value.explanation == tape.explain(y, x)
    assert (caught.value.explanation.operation, caught.value.explanation.line) == ("floor", line)


def test_a_refused_gradient_leaves_the_tape_usable():
    x, w = tf.Variable(3.0), tf.Variable(2.0)
    with tf.GradientTape(strict=True) as tape:
        y = x * x
    with pytest.raises(tf.autodiff.NoGradientError):
        tape.gradient(y, [x, w])
    assert float(tape.gradient(y, x)) == 6.0
    with pytest.raises(RuntimeError, match="persistent"):
        tape.gradient(y, x)


def test_zeros_are_not_none():
    x = tf.Variable(3.0)
    with tf.GradientTape(strict=True) as tape:
        y = tf.floor(x)
    assert float(tape.gradient(y, x, unconnected_gradients="zero")) == 0.0


def test_jacobians_are_strict_too():
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape(strict=True) as tape:
        y = tf.round(x)
    with pytest.raises(tf.autodiff.NoGradientError, match="round"):
        tape.jacobian(y, x)


def test_a_rule_that_gives_none():
    @tf.custom_gradient
    def silent(v):
        return v * 1.0, lambda dy: None

    x = tf.Variable(3.0)
    with tf.GradientTape(strict=True) as tape:
        y = silent(x)
    with pytest.raises(tf.autodiff.NoGradientError, match="custom_gradient gives no gradient"):
        tape.gradient(y, x)


def test_strict_is_a_keyword():
    with pytest.raises(TypeError):
        tf.GradientTape(False, True, True)


def test_none_stays_the_default():
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = tf.floor(x)
    assert tape.gradient(y, x) is None
