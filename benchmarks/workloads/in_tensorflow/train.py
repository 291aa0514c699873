"""Makes training steps of workloads written for TensorFlow's API; Tapeflow runs the same files."""

import numpy as np
import tensorflow as tf
from registry import STEPS, losses


@losses
def loss(function):
    """Updates the parameters and returns the loss."""

    def run(params, data, rate):
        with tf.GradientTape() as tape:
            value = function(params, data)
        for p, g in zip(params, tape.gradient(value, params)):
            p.assign_sub(rate * tf.convert_to_tensor(g))
        return value

    return run


def build(name: str, values, compiled: bool):
    """A function without arguments that does one step and returns the loss as a float."""
    params = [tf.Variable(p) for p in values.params]
    data = [tf.constant(d) for d in values.data]

    def run():
        return STEPS[name](params, data, values.rate)

    run = tf.function(run) if compiled else run
    return lambda: float(np.asarray(run()))


def mlp(x, params, activation):
    """The layers of `params`: weight and bias of each, one after the other."""
    for w, b in zip(params[:-2:2], params[1:-2:2]):
        x = activation(x @ w + b)
    return x @ params[-2] + params[-1]


def cross_entropy(labels, logits):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
