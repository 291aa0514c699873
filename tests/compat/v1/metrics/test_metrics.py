"""Metrics, moving averages, printing and assertions in graphs."""

import json
from pathlib import Path

import numpy as np
import pytest

import tapeflow.compat.v1 as tf
from tapeflow import Graph
from tests.compat.v1.metrics.metric_cases import CASES, measured


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


VALUES = json.loads((Path(__file__).parent / "metric_values.json").read_text())


@pytest.mark.parametrize("case", CASES)
def test_metrics_are_tensorflows(case):
    found, expected = measured(tf, case), VALUES[case]
    assert found["variables"] == expected["variables"]
    for ours, theirs in zip(
        [*found["updates"], found["value"]], [*expected["updates"], expected["value"]], strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def test_sparse_and_repeated_labels():
    sparse = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([1, 2, 0], tf.int64), [2, 2])
    repeated = tf.constant([[1, 1], [7, -1]], tf.int64)
    scores = [[0.1, 0.5, 0.4], [0.1, 0.3, 0.6]]
    updates = [
        getattr(tf.metrics, f"{m}_at_k")(sparse, scores, 2)[1] for m in ("precision", "recall", "average_precision")
    ]
    updates.append(tf.metrics.recall_at_k(repeated, scores, 2)[1])
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        np.testing.assert_allclose(session.run(updates), [0.5, 2 / 3, 0.5, 1 / 3])


def test_labels_of_another_rank_and_names_that_come_twice():
    labels, predictions = tf.placeholder(tf.float32, [3, 1]), tf.placeholder(tf.float32, [3])
    names = [tf.metrics.accuracy(labels, predictions, name="acc")[1].name for _ in range(2)]
    assert names == ["acc/update_op:0", "acc_1/update_op:0"]
    _, update = tf.metrics.mean(tf.ones([3, 2]), weights=predictions)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        fed = {labels: [[1.0], [0.0], [1.0]], predictions: [1.0, 1.0, 1.0]}
        np.testing.assert_allclose(session.run([names[0], update], fed), [2 / 3, 1.0])


def test_errors_are_tensorflows():
    x, y = tf.placeholder(tf.float32, [3]), tf.placeholder(tf.float32, [2])
    with pytest.raises(ValueError, match=r"Shapes \(2,\) and \(3,\) are incompatible"):
        tf.metrics.accuracy(x, y)
    with pytest.raises(ValueError, match="weights can not be broadcast to values"):
        tf.metrics.mean(x, weights=y)
    with pytest.raises(ValueError, match="Curve must be either ROC or PR"):
        tf.metrics.auc(x, x, curve="X")
    with pytest.raises(ValueError, match="Invalid summation_method: X"):
        tf.metrics.auc(x, x, summation_method="X")
    with pytest.raises(ValueError, match="`specificity` must be in the range"):
        tf.metrics.sensitivity_at_specificity(x, x, 1.5)
    with pytest.raises(ValueError, match="Invalid k=0"):
        tf.metrics.average_precision_at_k(tf.constant([[1]]), [[0.5]], 0)
    _, update = tf.metrics.auc(x, x)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"predictions must be in \[0, 1\]"):
            session.run(update, {x: [0.5, 1.5, 0.0]})


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


def test_labels_may_be_the_value_of_a_sparse_tensor():
    predictions = [[0.1, 0.9, 0.0], [0.6, 0.3, 0.1]]
    labels = tf.compat.v1.SparseTensorValue(np.array([[0, 0], [1, 0]]), np.array([1, 2]), np.array([2, 1]))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        recall, update = tf.compat.v1.metrics.recall_at_k(tf.SparseTensor.from_value(labels), predictions, 1)
        same, more = tf.compat.v1.metrics.recall_at_k(labels, predictions, 1)
        session.run(tf.compat.v1.local_variables_initializer())
        session.run([update, more])
        assert session.run([recall, same]) == [0.5, 0.5]


def test_precision_without_cases_is_nan():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        value, update = tf.compat.v1.metrics.precision_at_k(tf.constant([[1]], tf.int64), [[0.2, 0.8]], 1, class_id=0)
        session.run(tf.compat.v1.local_variables_initializer())
        assert np.isnan(session.run(update)) and np.isnan(session.run(value))
