"""Gradients by either mode, and the descent with a changing step length that `particle` and `saddle` are made of."""

import tapeflow as tf


def reverse(function):
    """The gradient by a tape."""

    def gradient(x):
        x = tf.identity(x)  # the argument alone, where `function` also holds what was given for it
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)

    return gradient


def forward(function):
    """The gradient in forward mode, one run for each element."""

    def gradient(x):
        x, slopes = tf.identity(x), []
        for direction in tf.unstack(tf.eye(x.shape[0], dtype=x.dtype)):
            with tf.autodiff.ForwardAccumulator(x, direction) as accumulator:
                y = function(x)
            slopes.append(accumulator.jvp(y))
        return tf.stack(slopes)

    return gradient


def argmin(gradient, function, x):
    """Where descent from `x` ends: at a gradient or a step of length 1e-5. Ten good steps double the step length."""
    gradient, eta, good = gradient(function), 1e-5, 0
    value, slope = function(x), gradient(x)
    while tf.norm(slope) > 1e-5:
        if good == 10:
            eta, good = 2 * eta, 0
            continue
        moved = x - eta * slope
        if tf.norm(x - moved) <= 1e-5:
            break
        lower = function(moved)
        if lower < value:
            x, value, slope, good = moved, lower, gradient(moved), good + 1
        else:
            eta, good = eta / 2, 0
    return x
