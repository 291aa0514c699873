"""Nodes and points: attention over the edges of a graph, convolution over nearest points."""

import tensorflow as tf
from in_tensorflow.train import cross_entropy, loss


@loss
def gat(params, data):
    w, al, ar, out = params
    x, src, dst, labels = data
    n = x.shape[0]
    h = tf.reshape(x @ w, [n, 4, 16])
    left, right = tf.reduce_sum(h * al, -1), tf.reduce_sum(h * ar, -1)
    e = tf.nn.leaky_relu(tf.gather(left, src) + tf.gather(right, dst), 0.2)
    m = tf.math.unsorted_segment_max(e, dst, n)
    p = tf.exp(e - tf.gather(m, dst))
    z = tf.math.unsorted_segment_sum(p, dst, n)
    a = p / tf.gather(z, dst)
    y = tf.math.unsorted_segment_sum(a[..., None] * tf.gather(h, src), dst, n)
    return cross_entropy(labels, tf.nn.elu(tf.reshape(y, [n, 64])) @ out)


@loss
def point_cloud(params, data):
    x, labels = data
    s = tf.reduce_sum(x * x, -1)
    d = s[:, :, None] + s[:, None] - 2 * tf.matmul(x, x, transpose_b=True)
    _, near = tf.math.top_k(-d, 8)
    n = tf.gather(x, near, batch_dims=1)
    c = tf.broadcast_to(x[:, :, None], n.shape)
    h = tf.nn.leaky_relu(tf.concat([c, n - c], -1) @ params[0] + params[1], 0.2)
    h = tf.reduce_max(h, 2)
    return cross_entropy(labels, tf.reduce_max(h, 1) @ params[2] + params[3])
