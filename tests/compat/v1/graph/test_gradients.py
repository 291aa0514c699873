"""`tf.gradients` in graphs and in functions: all arguments, any order, sparse results, overridden rules."""

import numpy as np
import pytest

import tapeflow
from tapeflow.compat import v1 as tf


def run(build, **options):
    with tapeflow.Graph().as_default():
        fetches, feeds = build()
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            return session.run(fetches, feeds, **options)


def test_weights_stops_and_unconnected_zeros():
    def build():
        a, b = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.float32, [3])
        c = a * a
        return [
            tf.gradients(c, a, grad_ys=[[1.0, 10.0]]),
            tf.gradients(a + c, [a, c], stop_gradients=[a, c]),
            tf.gradients(c, [a, b], unconnected_gradients="zero"),
            tf.gradients([c, 3.0 * a], a, aggregation_method=tf.AggregationMethod.DEFAULT, gate_gradients=True),
        ], {a: [1.0, 2.0], b: [0.0, 0.0, 0.0]}

    weighted, stopped, zeros, summed = run(build)
    assert weighted[0].tolist() == [2.0, 40.0]
    assert [x.tolist() for x in stopped] == [[1.0, 1.0], [1.0, 1.0]]
    assert zeros[1].tolist() == [0.0, 0.0, 0.0]
    assert summed[0].tolist() == [5.0, 7.0]


def test_a_variable_stands_for_all_its_readings():
    def build():
        v = tf.Variable(3.0)
        y = v * v
        with tf.control_dependencies([y]):
            y = y + v.read_value() ** 2
        return tf.gradients(y, v), None

    assert run(build)[0] == 12.0


def test_third_order():
    def build():
        x = tf.placeholder(tf.float32, [None])
        y = x**4
        for _ in range(3):
            (y,) = tf.gradients(y, x)
        return y, {x: [1.0, 2.0]}

    np.testing.assert_allclose(run(build), [24.0, 48.0], rtol=1e-5)


@pytest.mark.parametrize("known", [True, False])
def test_gradients_of_rows_are_sparse(known):
    def build():
        v = tf.get_variable("v", initializer=np.ones((4, 2), "f"))
        ids = tf.placeholder(tf.int32, [2 if known else None])
        dx = tf.gradients(tf.reduce_sum(tf.gather(v, ids) ** 2), v)[0]
        assert isinstance(dx, tapeflow.IndexedSlices)
        return dx, {ids: [3, 3]}

    found = run(build)
    assert found.indices.tolist() == [3, 3] and found.values.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_inside_a_function():
    w = tapeflow.Variable(3.0)

    @tapeflow.function
    def slopes(x):
        y = w * x**2
        return tapeflow.gradients(y, [x, w]) + tapeflow.gradients(tapeflow.gradients(y, x)[0], x)

    assert [float(x) for x in slopes(tapeflow.constant(2.0))] == [12.0, 4.0, 6.0]


def test_eagerly_it_says_what_to_write():
    with pytest.raises(RuntimeError, match=r"Use tf.GradientTape instead.") as caught:
        tapeflow.gradients(tapeflow.constant(1.0), tapeflow.constant(1.0))
    assert "tape.gradient(y, [x])" in str(caught.value)


def test_an_overridden_rule_runs_in_place_of_the_own():
    @tapeflow.RegisterGradient("TenTimes")
    def ten_times(op, dy):
        assert op.type == "Identity"
        return 10.0 * dy

    def build():
        x = tf.placeholder(tf.float32, [])
        with tf.get_default_graph().gradient_override_map({"Identity": "TenTimes"}):
            y = tf.identity(x)
        return [tf.gradients(y**2, x), tf.gradients(tf.identity(x), x)], {x: 3.0}

    assert run(build) == [[60.0], [1.0]]


def test_hessians():
    def build():
        x = tf.placeholder(tf.float32, [2])
        return tf.hessians(tf.reduce_sum(x**3) + x[0] * x[1], x), {x: [1.0, 2.0]}

    np.testing.assert_allclose(run(build)[0], [[6.0, 1.0], [1.0, 12.0]], rtol=1e-5)


def test_lengths_and_shapes_are_checked():
    with tapeflow.Graph().as_default():
        x = tf.placeholder(tf.float32, [])
        with pytest.raises(ValueError, match=r"Length mismatch. Passed 2 grad_ys for 1 ys"):
            tf.gradients(x * 2.0, x, grad_ys=[1.0, 2.0])
        with pytest.raises(ValueError, match=r"grad_ys"):
            tf.gradients(x * 2.0, x, grad_ys=[[1.0, 2.0]])
        assert tf.gradients(tf.constant(1), x) == [None]


def test_options_that_do_not_exist():
    with tf.Graph().as_default():
        x = tf.constant(1.0)
        with pytest.raises(ValueError, match="Invalid `aggregation_method` specified 7"):
            tf.gradients(x * x, x, aggregation_method=7)
        with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'some'"):
            tf.gradients(x * x, x, unconnected_gradients="some")


def test_one_element_weighs_a_scalar():
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant([1.0, 2.0])
        (dx,) = tf.gradients(tf.reduce_max(x), x, grad_ys=[tf.constant([3.0])])
        assert session.run(dx).tolist() == [0.0, 3.0]


def test_a_tape_goes_on_where_its_graph_is_entered_again():
    with tf.Graph().as_default() as graph, tf.Session() as session:
        v = tapeflow.Variable(3.0)
        with tapeflow.GradientTape() as tape, graph.as_default():
            y = v * v
        (dv,) = tape.gradient(y, [v])
        session.run(tf.global_variables_initializer())
        assert session.run(dv) == 6.0
