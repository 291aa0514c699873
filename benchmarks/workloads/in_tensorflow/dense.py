"""Dense nets in several precisions, normalisations, gradients of single examples, optimizers."""

import tensorflow as tf
from in_tensorflow.train import cross_entropy, loss, mlp
from registry import step


@loss
def normalisation(params, data):
    scale, shift, columns, gain = params
    x, targets = data
    mean, variance = tf.nn.moments(x, [1], keepdims=True)
    x = (x - mean) * tf.math.rsqrt(variance + 1e-5) * scale + shift
    mean, variance = tf.nn.moments(x, [0])
    x = (x - mean) * tf.math.rsqrt(variance + 1e-5) * columns
    x = x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), 1, keepdims=True) + 1e-5) * gain
    return tf.reduce_mean(tf.square(x - targets))


@loss
def mlp_float64(params, data):
    return cross_entropy(data[1], mlp(data[0], params, tf.nn.relu))


@loss
def mlp_bfloat16(params, data):
    half = [tf.cast(p, tf.bfloat16) for p in params]
    return cross_entropy(data[1], tf.cast(mlp(tf.cast(data[0], tf.bfloat16), half, tf.nn.relu), tf.float32))


@loss
def deep_plain(params, data):
    return cross_entropy(data[1], mlp(data[0], params, tf.nn.relu))


def clip_and_descend(params, gradients, rate):
    """Descends along the mean of the gradients of single examples, each clipped to a norm of 1."""
    squares = [tf.reduce_sum(tf.square(g), list(range(1, g.shape.rank))) for g in gradients]
    factors = tf.minimum(1.0, tf.math.rsqrt(tf.add_n(squares) + 1e-12))
    for p, g in zip(params, gradients):
        shape = [-1] + [1] * p.shape.rank
        p.assign_sub(rate * tf.reduce_mean(g * tf.reshape(factors, shape), 0))


@step
def per_example_jacobian(params, data, rate):
    x, labels = data
    with tf.GradientTape() as tape:
        logits = mlp(x, params, tf.nn.relu)
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    clip_and_descend(params, tape.jacobian(losses, params), rate)
    return tf.reduce_mean(losses)


@step
def per_example_vmap(params, data, rate):
    def example(arguments):
        x, label = arguments
        with tf.GradientTape() as tape:
            logits = mlp(x[None], params, tf.nn.relu)
            value = cross_entropy(label[None], logits)
        return value, tape.gradient(value, params)

    losses, gradients = tf.vectorized_map(example, tuple(data))
    clip_and_descend(params, gradients, rate)
    return tf.reduce_mean(losses)


def probe(weights):
    """The loss of an optimizer's step: cheap beside the update, it sees the parameters."""
    return tf.add_n([tf.reduce_mean(tf.square(w[0])) for w in weights])


@step
def adamw(params, data, rate):
    count, weights, ms, vs = params[0], params[1:11], params[11:21], params[21:]
    value = probe(weights)
    count.assign_add(1.0)
    first, second = 1 - tf.pow(0.9, count), 1 - tf.pow(0.999, count)
    for p, m, v, g in zip(weights, ms, vs, data):
        m.assign(0.9 * m + 0.1 * g)
        v.assign(0.999 * v + 0.001 * tf.square(g))
        p.assign(p * (1 - rate * 0.01) - rate / first * m / (tf.sqrt(v) / tf.sqrt(second) + 1e-8))
    return value


@step
def lion(params, data, rate):
    weights, ms = params[1:11], params[11:]
    value = probe(weights)
    for p, m, g in zip(weights, ms, data):
        p.assign_sub(rate * (tf.sign(0.9 * m + 0.1 * g) + 0.01 * p))
        m.assign(0.99 * m + 0.01 * g)
    return value


@step
def rmsprop(params, data, rate):
    weights, vs = params[1:11], params[11:]
    value = probe(weights)
    for p, v, g in zip(weights, vs, data):
        v.assign(0.9 * v + 0.1 * tf.square(g))
        p.assign_sub(rate * g / (tf.sqrt(v) + 1e-7))
    return value
