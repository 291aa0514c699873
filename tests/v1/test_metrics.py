"""Metrics, moving averages, printing and assertions in graphs."""

import numpy as np
import pytest

import tapeflow.compat.v1 as tf
from tapeflow import Graph


@pytest.fixture(autouse=True)
def graph():
    with Graph().as_default() as graph:
        yield graph


def gathered(metric, *batches, **options):
    """The value of a metric after these batches, and what the last update gave."""
    places = [tf.placeholder(tf.float32, [None]) for _ in batches[0]]
    value, update = metric(*places, **options)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        for batch in batches:
            last = session.run(update, dict(zip(places, batch, strict=True)))
        return session.run(value), last


LABELS, PREDICTIONS = [1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "metric, expected",
    [
        ("accuracy", 0.5),
        ("precision", 2 / 3),
        ("recall", 2 / 3),
        ("true_positives", 2),
        ("false_positives", 1),
        ("true_negatives", 0),
        ("false_negatives", 1),
        ("mean_squared_error", 0.5),
        ("mean_absolute_error", 0.5),
        ("root_mean_squared_error", 0.5**0.5),
    ],
)
def test_metrics_gather(metric, expected):
    whole = gathered(getattr(tf.metrics, metric), (LABELS, PREDICTIONS))
    halves = gathered(getattr(tf.metrics, metric), (LABELS[:2], PREDICTIONS[:2]), (LABELS[2:], PREDICTIONS[2:]))
    np.testing.assert_allclose([*whole, *halves], [expected] * 4, rtol=1e-6)


def test_weighted_mean_and_names(graph):
    _, update = tf.metrics.mean([1.0, 3.0], weights=[1.0, 3.0], updates_collections=["updates"])
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        assert session.run(update) == 2.5
    assert [v.name for v in tf.local_variables()] == ["mean/total:0", "mean/count:0"]
    assert graph.get_collection("updates") == [update]
    assert tf.trainable_variables() == []


def test_moving_average():
    v = tf.get_variable("v", initializer=1.0)
    averages = tf.train.ExponentialMovingAverage(0.5)
    update = averages.apply([v])
    assert averages.average(v).name == "v/ExponentialMovingAverage:0"
    assert averages.variables_to_restore() == {"v/ExponentialMovingAverage": v}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(v.assign(3.0))
        session.run(update)
        assert session.run(averages.average(v)) == 2
        session.run(update)
        assert session.run(averages.average(v)) == 2.5


def test_moving_average_that_begins_quickly():
    v = tf.get_variable("v", initializer=0.0)
    averages = tf.train.ExponentialMovingAverage(0.99, num_updates=tf.constant(8))
    update = averages.apply([v])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(v.assign(2.0))
        session.run(update)
        np.testing.assert_allclose(session.run(averages.average(v)), 1.0)


def test_print_writes_when_it_runs(capfd):
    x = tf.Print(tf.constant(3.0), [tf.constant([1, 2, 3, 4])], "data: ", first_n=1)
    assert capfd.readouterr().err == ""
    with tf.Session() as session:
        assert session.run(x) == 3
        assert session.run(x) == 3
    assert capfd.readouterr().err == "data: [1 2 3...]\n"


def test_assertions_are_operations():
    x = tf.placeholder(tf.float32, [2])
    with tf.control_dependencies([tf.assert_positive(x), tf.Assert(tf.reduce_all(x > 0), [x])]):
        y = tf.identity(x)
    with tf.Session() as session:
        assert session.run(y, {x: [1, 2]}).tolist() == [1, 2]
        with pytest.raises(tf.errors.InvalidArgumentError, match="x > 0 did not hold"):
            session.run(y, {x: [1, -2]})
        assert session.run(tf.Assert(tf.constant(True), ["fine"])) is None


def test_slices_and_constants_have_names(graph):
    x = tf.placeholder(tf.float32, [2, 3])
    assert x[0].name == "strided_slice:0"
    y = x + 1.0
    assert [t.name for t in y.op.inputs] == ["Placeholder:0", "add/y:0"]
    assert graph.get_operation_by_name("add/y").type == "Const"
