"""Structured models: attention, routed experts, ragged batches, inner training loops, transport, tensor networks."""

import math

import tensorflow as tf
from in_tensorflow.sequence import layer_norm
from in_tensorflow.train import cross_entropy, loss, mlp
from registry import step


def attention(x, qkv, out, heads):
    b, n, w = x.shape
    q, k, v = [tf.transpose(tf.reshape(t, [b, n, heads, w // heads]), [0, 2, 1, 3]) for t in tf.split(x @ qkv, 3, -1)]
    a = tf.matmul(q, k, transpose_b=True) * (w // heads) ** -0.5
    return tf.reshape(tf.transpose(tf.nn.softmax(a) @ v, [0, 2, 1, 3]), [b, n, w]) @ out


@loss
def vit(params, data):
    images, labels = data
    x = tf.nn.conv2d(images, params[0], 4, "VALID")
    b, w = images.shape[0], params[0].shape[-1]
    x = tf.reshape(x, [b, 64, w])
    x = tf.concat([tf.tile(params[1], [b, 1, 1]), x], 1) + params[2]
    for i in range(3, len(params) - 1, 10):
        s1, b1, qkv, out, s2, b2, w1, c1, w2, c2 = params[i : i + 10]
        x += attention(layer_norm(x, s1, b1), qkv, out, 4)
        x += tf.nn.gelu(layer_norm(x, s2, b2) @ w1 + c1) @ w2 + c2
    return cross_entropy(labels, x[:, 0] @ params[-1])


def gru_cell(h, x, w, b, wn, bn):
    r, z = tf.split(tf.sigmoid(tf.concat([x, h], 1) @ w + b), 2, 1)
    n = tf.tanh(tf.concat([x, r * h], 1) @ wn + bn)
    return z * h + (1 - z) * n


@loss
def seq2seq(params, data):
    src, tin, tout = data
    es, et = params[:2]
    h = tf.zeros([src.shape[1], 64])
    outs = []
    for t in range(src.shape[0]):
        h = gru_cell(h, tf.gather(es, src[t]), *params[2:6])
        outs.append(h)
    memory = tf.stack(outs, 1)
    wm, wq, v, out = params[10:]
    keys = memory @ wm
    total = 0.0
    for t in range(tin.shape[0]):
        scores = tf.reduce_sum(tf.tanh(keys + (h @ wq)[:, None]) * v, -1)
        context = tf.reduce_sum(tf.nn.softmax(scores)[..., None] * memory, 1)
        h = gru_cell(h, tf.concat([tf.gather(et, tin[t]), context], 1), *params[6:10])
        total += cross_entropy(tout[t], tf.concat([h, context], 1) @ out)
    return total / tin.shape[0]


@loss
def moe_partition(params, data):
    gate, w1, w2 = params
    x, y = data
    p = tf.nn.softmax(x @ gate)
    k = tf.argmax(p, 1, output_type=tf.int32)
    parts = tf.dynamic_partition(x, k, 8)
    where = tf.dynamic_partition(tf.range(512), k, 8)
    outs = [tf.nn.gelu(a @ w1[i]) @ w2[i] for i, a in enumerate(parts)]
    out = tf.dynamic_stitch(where, outs) * tf.reduce_max(p, 1)[:, None]
    return tf.reduce_mean(tf.square(out - y))


@loss
def ragged_mean(params, data):
    ids, lengths, _, labels = data
    r = tf.RaggedTensor.from_row_lengths(ids, lengths)
    x = tf.reduce_mean(tf.ragged.map_flat_values(tf.nn.embedding_lookup, params[0], r), axis=1)
    return cross_entropy(labels, mlp(x, params[1:], tf.nn.relu))


@loss
def maml(params, data):
    xs, ys, xq, yq = data
    total = 0.0
    for k in range(xs.shape[0]):
        fast = [tf.identity(p) for p in params]
        for _ in range(3):
            with tf.GradientTape() as tape:
                tape.watch(fast)
                inner = tf.reduce_mean(tf.square(mlp(xs[k], fast, tf.nn.relu) - ys[k]))
            fast = [p - 0.01 * g for p, g in zip(fast, tape.gradient(inner, fast))]
        total += tf.reduce_mean(tf.square(mlp(xq[k], fast, tf.nn.relu) - yq[k]))
    return total / xs.shape[0]


@step
def adafactor(params, data, rate):
    count, weights, slots = params[0], params[1:7], params[7:]
    with tf.GradientTape() as tape:
        value = cross_entropy(data[1], mlp(data[0], weights, tf.nn.relu))
    count.assign_add(1.0)
    beta = 1 - tf.pow(count, -0.8)
    for i, (p, g) in enumerate(zip(weights, tape.gradient(value, weights))):
        r, c = slots[2 * i], slots[2 * i + 1]
        g2 = tf.square(g) + 1e-30
        if g.shape.rank == 2:
            r.assign(beta * r + (1 - beta) * tf.reduce_mean(g2, 1))
            c.assign(beta * c + (1 - beta) * tf.reduce_mean(g2, 0))
            u = g * tf.math.rsqrt(r / tf.reduce_mean(r))[:, None] * tf.math.rsqrt(c)
        else:
            r.assign(beta * r + (1 - beta) * g2)
            u = g * tf.math.rsqrt(r)
        u /= tf.maximum(1.0, tf.sqrt(tf.reduce_mean(tf.square(u))))
        p.assign_sub(rate * tf.maximum(1e-3, tf.sqrt(tf.reduce_mean(tf.square(p)))) * u)
    return value


@loss
def sinkhorn(params, data):
    (x,), (y,) = params, data
    c = tf.reduce_sum(tf.square(x[:, None] - y[None]), -1)
    k = -c / 0.1
    n = x.shape[0]
    f, g = tf.zeros([n]), tf.zeros([n])
    la = -math.log(n)
    for _ in range(20):
        f = la - tf.reduce_logsumexp(k + g[None], 1)
        g = la - tf.reduce_logsumexp(k + f[:, None], 0)
    return tf.reduce_sum(tf.exp(k + f[:, None] + g[None]) * c)


@loss
def tensor_train(params, data):
    cores, out = params
    x, y = data
    phi = tf.stack([1 - x, x], -1)
    h = tf.ones([64, 1, 10])
    m = tf.einsum("bnp,npij->nbij", phi, cores)
    for i in range(28):
        h = h @ m[i]
    return cross_entropy(y, h[:, 0] @ out)
