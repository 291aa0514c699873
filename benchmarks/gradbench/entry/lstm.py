"""The loss of an LSTM with diagonal weights that predicts the next character, and its gradient.

Layer i at time t needs layer i - 1 at time t and itself at time t - 1. The loop goes over t + i, so that all layers
take a step together: those that have not begun keep their state, those that have ended compute what nobody reads.
"""

import tapeflow as tf


def prepare(values):
    return tuple(tf.constant(values[name], tf.float64) for name in ("main_params", "extra_params", "state", "sequence"))


@tf.function
def objective(main, extra, state, sequence):
    layers, width = main.shape[0] // 2, extra.shape[1]
    steps = sequence.shape[0] - 1
    forget_w, in_w, out_w, change_w = tf.split(main[0::2], 4, axis=1)
    forget_b, in_b, out_b, change_b = tf.split(main[1::2], 4, axis=1)
    inputs = tf.pad(sequence[:-1] * extra[0], [[0, layers - 1], [0, 0]])
    order = tf.range(layers)[:, None]
    outputs = tf.TensorArray(tf.float64, size=steps + layers - 1, element_shape=[width])
    hidden, cell = state[0::2], state[1::2]
    for s in tf.range(steps + layers - 1):
        x = tf.concat([inputs[s][None], hidden[:-1]], 0)
        change = tf.sigmoid(hidden * in_w + in_b) * tf.tanh(hidden * change_w + change_b)
        next_cell = cell * tf.sigmoid(x * forget_w + forget_b) + change
        next_hidden = tf.sigmoid(x * out_w + out_b) * tf.tanh(next_cell)
        begun = order <= s
        hidden, cell = tf.where(begun, next_hidden, hidden), tf.where(begun, next_cell, cell)
        outputs = outputs.write(s, hidden[-1])
    predicted = outputs.stack()[layers - 1 :] * extra[1] + extra[2]
    normal = predicted - tf.math.log(tf.reduce_sum(tf.exp(predicted), 1, keepdims=True) + 2)
    return -tf.reduce_sum(sequence[1:] * normal) / (steps * width)


@tf.function
def jacobian(main, extra, state, sequence):
    with tf.GradientTape() as tape:
        tape.watch([main, extra])
        y = objective(main, extra, state, sequence)
    return tf.concat([tf.reshape(g, [-1]) for g in tape.gradient(y, [main, extra])], 0)
