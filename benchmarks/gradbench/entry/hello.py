"""The square of a number, and its derivative."""

import tapeflow as tf


def prepare(value):
    return (tf.constant(value, tf.float64),)


@tf.function
def square(x):
    return x * x


@tf.function
def double(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = square(x)
    return tape.gradient(y, x)
