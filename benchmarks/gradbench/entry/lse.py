"""The logarithm of a sum of exponentials, stable by the maximum, and its gradient."""

import tapeflow as tf


def prepare(values):
    return (tf.constant(values["x"], tf.float64),)


@tf.function
def primal(x):
    greatest = tf.reduce_max(x)
    return greatest + tf.math.log(tf.reduce_sum(tf.exp(x - greatest)))


@tf.function
def gradient(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = primal(x)
    return tape.gradient(y, x)
