"""`tf.train.ExponentialMovingAverage`: eager, in functions and in graphs, with TensorFlow's numbers."""

import numpy as np
import pytest

import tapeflow as tf


def test_eager():
    v, average = tf.Variable([1.0, 2.0], name="v"), tf.train.ExponentialMovingAverage(0.9)
    assert average.apply([v]) is None
    v.assign([3.0, 4.0])
    average.apply([v])
    np.testing.assert_allclose(average.average(v), [1.2, 2.2], rtol=1e-6)
    assert average.average_name(v) == "v/ExponentialMovingAverage"
    assert not average.average(v).trainable
    assert average.average(tf.Variable(1.0)) is None


def test_number_of_updates():
    v, average = tf.Variable(1.0), tf.train.ExponentialMovingAverage(0.99, num_updates=3)
    average.apply([v])
    v.assign(2.0)
    average.apply([v])
    np.testing.assert_allclose(average.average(v), 1.6923077, rtol=1e-6)


def test_in_a_function():
    v, average = tf.Variable(1.0), tf.train.ExponentialMovingAverage(0.5)
    average.apply([v])

    @tf.function
    def step():
        v.assign_add(2.0)
        average.apply([v])

    step()
    assert float(average.average(v)) == 2.0


def test_in_a_graph():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        v = tf.compat.v1.get_variable("q", initializer=1.0)
        average = tf.compat.v1.train.ExponentialMovingAverage(0.5)
        update, change = average.apply([v]), v.assign(3.0)
        session.run(tf.compat.v1.global_variables_initializer())
        session.run(change)
        session.run(update)
        assert session.run(average.average(v)) == 2.0
        assert average.average_name(v) == "q/ExponentialMovingAverage"
        assert "q/ExponentialMovingAverage" in average.variables_to_restore()


def test_tensors_begin_at_zero():
    x, plain, debiased = tf.constant(5.0), tf.train.ExponentialMovingAverage(0.5), None
    plain.apply([x])
    assert float(plain.average(x)) == 2.5
    debiased = tf.train.ExponentialMovingAverage(0.5, zero_debias=True)
    for _ in range(2):
        debiased.apply([x])
        assert float(debiased.average(x)) == 5.0


def test_integers_are_refused():
    with pytest.raises(TypeError, match="must be half, float, or double"):
        tf.train.ExponentialMovingAverage(0.5).apply([tf.Variable(1)])


def test_only_variables_are_collected():
    with tf.Graph().as_default():
        v = tf.compat.v1.get_variable("v", initializer=1.0)
        average = tf.train.ExponentialMovingAverage(0.9, name="slow")
        average.apply([v, tf.add(v, 1.0, name="y")])
        assert tf.compat.v1.moving_average_variables() == [v]
        found = average.variables_to_restore()
        assert found["v/slow"] is v
        assert found["y/slow"].name == "y/slow:0"
        assert sorted(found) == ["v/slow", "y/slow"]
