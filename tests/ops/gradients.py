"""Gradients of functions, for tests of single operations."""

import tapeflow as tf


def gradient(function, *values):
    """The gradients of `function` by its arguments."""
    tensors = [tf.constant(v) for v in values]
    with tf.GradientTape() as tape:
        for t in tensors:
            tape.watch(t)
        y = function(*tensors)
    return tape.gradient(y, tensors)
