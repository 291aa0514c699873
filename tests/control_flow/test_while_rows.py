"""Loops over the rows of a tensor, whose places the loop computes."""

import subprocess
import sys

import numpy as np
import pytest

import tapeflow as tf

X = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_rows_from_the_front_and_from_the_back(dtype):
    x = tf.Variable(X)

    @tf.function
    def program():
        with tf.GradientTape() as tape:
            total = tf.zeros([3])
            for i in tf.range(4, dtype=dtype):
                total += x[i] * tf.cast(i, tf.float32) + x[-1 - i]
            loss = tf.reduce_sum(total)
        return total, tape.gradient(loss, x)

    for _ in range(2):
        total, gradient = program()
        np.testing.assert_array_equal(total, (X * np.arange(4)[:, None] + X[::-1]).sum(0))
        np.testing.assert_array_equal(gradient, np.broadcast_to(np.arange(1, 5)[:, None], [4, 3]))


def test_rows_of_rows():
    x = tf.constant(X)

    @tf.function
    def program():
        total = tf.constant(0.0)
        for i in tf.range(4):
            for j in tf.range(3):
                total += x[i][j] * x[i, j]
        return total

    assert program() == np.square(X).sum()


@pytest.mark.parametrize("place", [4, -5])
def test_place_outside(place):
    x = tf.constant(X)

    @tf.function
    def program(place):
        total = tf.zeros([3])
        for i in tf.range(2):
            total += x[place + i]
        return total

    with pytest.raises(tf.errors.InvalidArgumentError, match=f"slice index {place} of dimension 0 out of bounds"):
        program(tf.constant(place))
    np.testing.assert_array_equal(program(tf.constant(1)), X[1] + X[2])


def test_a_block_whose_begin_a_loop_computes():
    x = tf.constant(X)

    @tf.function
    def program():
        total = tf.zeros([2, 3])
        for i in tf.range(3):
            total += tf.slice(x, [i, 0], [2, 3])
        return total

    np.testing.assert_array_equal(program(), X[0:2] + X[1:3] + X[2:4])


@pytest.mark.parametrize("call", ["endless(x)", "tape_around(x)"])
def test_a_signal_ends_an_endless_loop(call):
    program = f"""
import signal
import tapeflow as tf

@tf.function
def endless(x):
    return tf.while_loop(lambda x: tf.reduce_sum(x) > 0.0, lambda x: [x + 1.0], [x])[0]

def tape_around(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = endless(x)
    return tape.gradient(y, x)

def stop(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, stop)
signal.setitimer(signal.ITIMER_REAL, 0.5)
x = tf.ones([2])
try:
    {call}
except KeyboardInterrupt:
    print("stopped", endless(-x).numpy())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "stopped [-1. -1.]\n", done.stderr
