"""Moving averages: values of TensorFlow, eager, in functions and in sessions."""

import numpy as np
import pytest

import tapeflow as tf


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0.0, 0.2, 0.58]),
        ({"num_updates": 3}, [0.0, 1.3846154, 3.1952662]),
        ({"zero_debias": True}, [0.0, 0.2, 0.58]),
    ],
)
def test_averages_of_variables(options, expected):
    v, ema, found = tf.Variable([1.0, 2.0]), tf.train.ExponentialMovingAverage(0.9, **options), []
    for number in range(3):
        v.assign([number * 2.0, 1.0])
        ema.apply([v])
        found.append(ema.average(v).numpy()[0])
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert ema.average_name(v) == "Variable/ExponentialMovingAverage"
    assert list(ema.variables_to_restore()) == [ema.average_name(v)]
    assert ema.average(tf.Variable(1.0)) is None


def test_in_a_function():
    v, ema = tf.Variable(1.0), tf.train.ExponentialMovingAverage(0.5)

    @tf.function
    def step():
        v.assign_add(1.0)
        ema.apply([v])
        return ema.average(v).read_value()

    assert [float(step()), float(step())] == [1.5, 2.25]


def test_in_a_session():
    tf1 = tf.compat.v1
    with tf.Graph().as_default(), tf1.Session() as session:
        w = tf1.get_variable("w", initializer=3.0)
        ema = tf1.train.ExponentialMovingAverage(0.5)
        update, add = ema.apply([w]), w.assign_add(2.0)
        debiased = tf1.train.ExponentialMovingAverage(0.5, zero_debias=True)
        x = tf1.placeholder(tf.float32, [])
        track = debiased.apply([x])
        session.run(tf1.global_variables_initializer())
        session.run(add)
        session.run(update)
        assert session.run(ema.average(w)) == 4.0 and ema.average(w).name == "w/ExponentialMovingAverage:0"
        for value in (2.0, 8.0):
            session.run(track, {x: value})
        np.testing.assert_allclose(session.run(debiased.average(x)), (0.5 * 2.0 + 8.0) / 1.5, rtol=1e-6)


def test_what_has_no_average():
    with pytest.raises(TypeError, match="must be half, float, or double"):
        tf.train.ExponentialMovingAverage(0.5).apply([tf.Variable(1)])
    with pytest.raises(TypeError, match="give variables"):
        tf.train.ExponentialMovingAverage(0.5).apply([tf.constant(1.0)])
