"""The control of a charged particle: descent on where it lands, whose path needs the gradient of a potential."""

from descent import argmin, forward, reverse

import tapeflow as tf


def prepare(values):
    return (tf.constant([values["w"]], tf.float64),)


def landing(gradient, w):
    """The square of the place where the particle crosses the axis, by Euler's method."""
    ten, zero = tf.constant(10.0, tf.float64), tf.constant(0.0, tf.float64)
    charges = tf.stack([tf.stack([ten, ten - w[0]]), tf.stack([ten, zero])])
    slope = gradient(lambda x: tf.reduce_sum(tf.math.rsqrt(tf.reduce_sum(tf.square(charges - x), 1))))
    x, speed = tf.constant([0.0, 8.0], tf.float64), tf.constant([0.75, 0.0], tf.float64)
    while True:
        moved = x + 0.1 * speed
        if moved[1] <= 0:
            break
        x, speed = moved, speed - 0.1 * slope(x)
    return tf.square((x - x[1] / speed[1] * speed)[0])


def control(outer, inner, w):
    return argmin(outer, lambda w: landing(inner, w), w)[0]


def rr(w):
    return control(reverse, reverse, w)


def ff(w):
    return control(forward, forward, w)


def fr(w):
    return control(forward, reverse, w)


def rf(w):
    return control(reverse, forward, w)
