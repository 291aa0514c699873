"""The path of an operation: while it runs forward and backward, no Python of ours runs."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import tapeflow as tf

PACKAGE = str(Path(tf.__file__).parent)


def frames_of(walk: Callable[[], Any]) -> list[str]:
    """The functions of the package that are entered during the walk."""
    entered: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            entered.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_code.co_qualname}")

    walk()  # what is done once is not counted
    sys.setprofile(note)
    try:
        walk()
    finally:
        sys.setprofile(None)
    return entered


def test_the_counter_counts():
    assert frames_of(lambda: tf.rank([1.0])) != []


@pytest.mark.parametrize("value", [2.0, [1.0, 2.0]])
def test_an_operation_enters_no_frame(value):
    x = tf.constant(value)
    assert frames_of(lambda: tf.reduce_sum(tf.sin(x) * x)) == []


@pytest.mark.parametrize("make", [tf.constant, tf.Variable])
def test_a_tape_enters_no_frame(make):
    x = make([1.0, 2.0])

    def walk():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.sin(x) * x)
        return tape.gradient(y, x)

    assert frames_of(walk) == []


def test_a_training_step_enters_no_frame():
    w, b = tf.Variable([[0.5], [0.2]]), tf.Variable([0.1])
    x, y = tf.ones([4, 2]), tf.zeros([4, 1])

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x @ w + b - y))
        dw, db = tape.gradient(loss, [w, b])
        w.assign_sub(0.1 * dw)
        b.assign_sub(0.1 * db)

    assert frames_of(step) == []


def test_a_function_of_an_iterator_finds_its_graph_without_python():
    iterator = iter(tf.data.Dataset.from_tensor_slices([[1.0], [2.0]]).repeat())
    total = tf.function(lambda batches: tf.reduce_sum(next(batches)))
    entered = frames_of(lambda: total(iterator))
    assert entered != []  # those of the pipes
    assert [frame for frame in entered if frame.startswith(("function.py", "signature.py", "traces.py"))] == []


def test_a_result_in_an_optional_enters_few_frames():
    """As the steps of Keras' `fit` return their results."""
    wrap = tf.function(lambda x: tf.experimental.Optional.from_value({"loss": x, "accuracy": x}))
    x = tf.constant(1.0)
    assert len(frames_of(lambda: wrap(x))) <= 16
