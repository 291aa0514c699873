"""The fit of a polynomial to a sign function by least squares, and the gradient by its coefficients."""

import tapeflow as tf


def prepare(values):
    return tf.constant(values["x"], tf.float64), values["n"]


@tf.function
def primal(x, n):
    t = -1 + tf.range(n, dtype=tf.float64) * (2 / (n - 1))
    y = tf.zeros([n], tf.float64)
    for coefficient in reversed(tf.unstack(x)):
        y = y * t + coefficient
    return 0.5 * tf.reduce_sum(tf.square(tf.sign(t) - y))


@tf.function
def gradient(x, n):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = primal(x, n)
    return tape.gradient(y, x)
