"""One step checked by reverse mode, forward mode and differences, kinks told apart from errors."""

import numpy as np

import tapeflow as tf


def checks(step, *variables):
    with tf.debugging.Doctor(check_step=True) as doctor:
        with tf.GradientTape() as tape:
            loss = step(*variables)
        tape.gradient(loss, list(variables))
    report = doctor.report()
    rows = [c for c in report["checks"] if c["name"].startswith("three ways")]
    return rows, [f for f in report["findings"] if f["kind"] == "wrong-gradient"]


def test_every_variable_agrees():
    w, b = tf.Variable([1.0, 2.0]), tf.Variable(0.5)
    rows, wrong = checks(lambda w, b: tf.reduce_sum(tf.sin(w) * b), w, b)
    assert [r["result"] for r in rows] == ["agrees", "agrees"]
    assert "forward" in rows[0]["detail"]
    assert not wrong


def test_a_kink_is_no_error():
    w = tf.Variable(np.zeros(3, np.float32))
    rows, wrong = checks(lambda w: tf.reduce_sum(tf.abs(w)) + 0.0 * tf.reduce_sum(w), w)
    assert [r["result"] for r in rows] == ["kink"]
    assert not wrong


def test_a_wrong_rule_disagrees():
    @tf.custom_gradient
    def cube(x):
        return x * x * x, lambda dy: dy * x

    w = tf.Variable([2.0, 3.0])
    rows, wrong = checks(lambda w: tf.reduce_sum(cube(w)), w)
    assert [r["result"] for r in rows] == ["disagrees"]
    assert wrong[0]["variable"]
    assert wrong[0]["severity"] == "severe"
