"""Sequences: a transformer, recurrent nets, an embedding with a sparse gradient."""

import tensorflow as tf
from in_tensorflow.train import cross_entropy, loss
from registry import step


def layer_norm(x, scale, shift):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + 1e-5) * scale + shift


@loss
def transformer(params, data):
    tokens, labels, mask = data
    heads, (batch, length), width = 4, tokens.shape, params[0].shape[1]

    def split(x):
        return tf.transpose(tf.reshape(x, [batch, length, heads, width // heads]), [0, 2, 1, 3])

    x = tf.gather(params[0], tokens) + params[1]
    for i in range(2, len(params), 10):
        scale1, shift1, qkv, out, scale2, shift2, w1, b1, w2, b2 = params[i : i + 10]
        q, k, v = map(split, tf.split(layer_norm(x, scale1, shift1) @ qkv, 3, axis=-1))
        weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * (width // heads) ** -0.5 + mask)
        x += tf.reshape(tf.transpose(weights @ v, [0, 2, 1, 3]), [batch, length, width]) @ out
        x += tf.nn.gelu(layer_norm(x, scale2, shift2) @ w1 + b1, approximate=True) @ w2 + b2
    return cross_entropy(labels, tf.matmul(x, params[0], transpose_b=True))


@loss
def gru(params, data):
    w, u, b, c, v = params
    x, y = data
    h = tf.zeros([x.shape[1], u.shape[0]])
    inputs = x @ w + b
    for t in range(x.shape[0]):
        r, z, n = tf.split(inputs[t], 3, axis=1)
        hr, hz, hn = tf.split(h @ u + c, 3, axis=1)
        z = tf.sigmoid(z + hz)
        h = (1 - z) * tf.tanh(n + tf.sigmoid(r + hr) * hn) + z * h
    return tf.reduce_mean(tf.square(h @ v - y))


def lstm(x, w, u, b):
    """All outputs of an LSTM over the first axis, by a loop that stays a loop in a graph."""
    inputs = x @ w + b
    outputs = tf.TensorArray(tf.float32, size=x.shape[0], element_shape=[x.shape[1], u.shape[0]])
    h = c = tf.zeros([x.shape[1], u.shape[0]])
    for t in tf.range(x.shape[0]):
        i, f, g, o = tf.split(inputs[t] + h @ u, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        outputs = outputs.write(t, h)
    return outputs.stack()


@loss
def bidirectional_lstm(params, data):
    x, y = data
    forward = lstm(x, *params[:3])
    backward = tf.reverse(lstm(tf.reverse(x, [0]), *params[3:6]), [0])
    return tf.reduce_mean(tf.square(tf.concat([forward, backward], -1) @ params[6] - y))


@step
def embedding_adam(params, data, rate):
    table, w, table_m, table_v, w_m, w_v = params
    words, labels = data
    with tf.GradientTape() as tape:
        value = cross_entropy(labels, tf.reduce_mean(tf.nn.embedding_lookup(table, words), 1) @ w)
    slices, dw = tape.gradient(value, [table, w])
    rows, where = tf.unique(slices.indices)
    sums = tf.math.unsorted_segment_sum(slices.values, where, tf.size(rows))
    table_m.assign(0.9 * table_m)
    table_m.scatter_add(tf.IndexedSlices(0.1 * sums, rows))
    table_v.assign(0.999 * table_v)
    table_v.scatter_add(tf.IndexedSlices(0.001 * tf.square(sums), rows))
    w_m.assign(0.9 * w_m + 0.1 * dw)
    w_v.assign(0.999 * w_v + 0.001 * tf.square(dw))
    table.assign_sub(rate * table_m / (tf.sqrt(table_v) + 1e-7))
    w.assign_sub(rate * w_m / (tf.sqrt(w_v) + 1e-7))
    return value
