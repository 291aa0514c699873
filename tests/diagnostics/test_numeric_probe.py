"""Copies of the process for numeric derivatives: when they may be made, and what is said if they may not."""

import threading

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.diagnostics.numeric_probe import Probe


def waits(ended):
    ended.wait()


@pytest.fixture(params=["ipykernel.iostream", "program"])
def home(request):
    """A second thread, whose function belongs to a module of this name."""
    ended = threading.Event()

    def run():
        waits(ended)

    run.__module__ = request.param
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield request.param
    ended.set()
    thread.join()


def test_threads_of_notebooks_only_wait(home):
    assert Probe.possible() is (home == "ipykernel.iostream")


def test_what_was_not_measured_is_said(home):
    w, x = tf.Variable([1.5, -2.0]), np.ones((4, 2), np.float32)
    with tf.debugging.Doctor() as doctor, tf.GradientTape() as tape:
        penalty = float(np.sum(np.square(w.numpy())))
        loss = tf.reduce_mean(tf.square(tf.linalg.matvec(x, w))) + 0.5 * penalty
        tape.gradient(loss, w)
    (finding,) = doctor.findings
    assert finding.kind == "partly-cut"
    assert finding.severity == ("warning" if home == "ipykernel.iostream" else "hint")
    assert ("may be cut" in finding.message and "not measured" in finding.message) is (home == "program")


def test_one_measurement_of_several_cuts_is_no_share_of_each():
    w, v = tf.Variable([1.0, 2.0, 3.0]), tf.Variable([0.0, 0.0, 0.0])
    with tf.debugging.Doctor() as doctor, tf.GradientTape() as tape:
        loss = tf.reduce_sum(w**2) + tf.reduce_sum(tf.constant(w.numpy() ** 2))
        v.assign(2.0 * w)
        loss += tf.reduce_sum(v)
        tape.gradient(loss, w)
    found = [f for f in doctor.findings if f.kind == "partly-cut"]
    assert len(found) == 2
    lines = sorted(f.line for f in found)
    for finding in found:
        (other,) = (line for line in lines if line != finding.line)
        assert f"here and at line {other} together" in finding.message
        assert [place[1] for place in finding.evidence["together_with"]] == [other]


def test_copies_draw_the_numbers_of_the_step():
    tf.random.set_seed(None)
    w = tf.Variable([[0.5, -1.0], [2.0, 0.1]])
    with tf.debugging.Doctor() as doctor, tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.random.normal([6, 2]) @ w) ** 2) + 5.0 * float(tf.reduce_sum(w**2))
        tape.gradient(loss, w)
    (finding,) = doctor.findings
    assert finding.kind == "partly-cut" and finding.evidence["lost"] > 0.5
