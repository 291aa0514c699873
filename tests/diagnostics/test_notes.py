"""The notes that a tape takes for explanations: they are bounded, and change nothing that can be seen otherwise."""

import gc
import threading

import numpy as np

import tapeflow as tf


def test_notes_are_bounded():
    c = tf.constant(1.0)
    with tf.GradientTape() as tape:
        for _ in range(50_000):
            c + 1.0
    assert len(tape._events()) < 20_000
    assert tape._records() == []


def test_reading_values_does_not_watch_a_variable():
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        v.numpy()
        tuple(v.shape)
    assert tape.watched_variables() == ()


def test_a_variable_read_by_numpy_first_still_has_its_gradient():
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        v.numpy()
        y = tf.reduce_sum(v * v)
    np.testing.assert_array_equal(tape.gradient(y, v), [2.0, 4.0])


def test_watching_after_use_follows_later_uses():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        before = x * x
        tape.watch(x)
        after = before + x * 5.0
    assert float(tape.gradient(after, x)) == 5.0


def test_paused_tape_is_not_recording():
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = x * x
        with tape.stop_recording():
            assert "closed" in repr(tape) or "recording" not in repr(tape)
            other = tf.Variable(2.0)
            other * 3.0
            dy = tape.gradient(y, x)
        z = y * dy
    assert float(tape.gradient(z, x)) == 36.0
    assert [v is x for v in tape.watched_variables()] == [True]


def test_values_of_three_nested_tapes():
    """There are two marks on a tensor; what a tape only knows gives way to what another follows."""
    x, c = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as first, tf.GradientTape() as second, tf.GradientTape() as third:
        third.watch(x)
        c * x
        second.watch(c)
        first.watch(c)
        y = c * x
    assert [float(t.gradient(y, c)) for t in (first, second)] == [2.0, 2.0]
    assert float(third.gradient(y, x)) == 3.0


def test_a_tape_closed_on_a_thread_may_end_elsewhere():
    made, ended = threading.Event(), threading.Event()
    box = {}

    def work():
        x = tf.Variable(2.0)
        with tf.GradientTape() as tape:
            y = x * x
        box["tape"] = tape, y, x
        del tape
        made.set()
        ended.wait()
        for _ in range(200):
            tf.sin(x)
        box["result"] = float(x * x)

    thread = threading.Thread(target=work)
    thread.start()
    made.wait()
    tape, y, x = box.pop("tape")
    assert float(tape.gradient(y, x)) == 4.0
    del tape, y
    gc.collect()
    ended.set()
    thread.join()
    assert box["result"] == 4.0
