"""Generative models: a spline flow, a denoiser, a radiance field, dilated convolutions of audio."""

import math

import tensorflow as tf
from in_tensorflow.train import cross_entropy, loss, mlp


def group_norm(x, scale, shift, groups=8):
    b, h, w, c = x.shape
    g = tf.reshape(x, [b, h, w, groups, c // groups])
    mean, variance = tf.nn.moments(g, [1, 2, 4], keepdims=True)
    return tf.reshape((g - mean) * tf.math.rsqrt(variance + 1e-5), [b, h, w, c]) * scale + shift


@loss
def spline_flow(params, data):
    (x,) = data
    w1, b1, w2, b2 = params
    a, b = tf.split(x, 2, axis=1)
    theta = tf.reshape(tf.nn.relu(a @ w1 + b1) @ w2 + b2, [x.shape[0], 8, 25])
    widths = 6.0 * tf.nn.softmax(theta[..., :8])
    heights = 6.0 * tf.nn.softmax(theta[..., 8:16])
    slopes = tf.nn.softplus(theta[..., 16:])
    xs = tf.cumsum(widths, -1) - 3.0
    ys = tf.cumsum(heights, -1) - 3.0
    inside = tf.clip_by_value(b, -2.99, 2.99)
    k = tf.minimum(tf.reduce_sum(tf.cast(inside[..., None] >= xs, tf.int32), -1), 7)

    def pick(t):
        return tf.gather(t, k[..., None], batch_dims=2)[..., 0]

    w, h, d0, d1 = pick(widths), pick(heights), pick(slopes[..., :-1]), pick(slopes[..., 1:])
    x0, y0 = pick(xs) - w, pick(ys) - h
    s = h / w
    xi = (inside - x0) / w
    den = s + (d1 + d0 - 2 * s) * xi * (1 - xi)
    y = y0 + h * (s * xi * xi + d0 * xi * (1 - xi)) / den
    slope = s * s * (d1 * xi * xi + 2 * s * xi * (1 - xi) + d0 * (1 - xi) ** 2) / (den * den)
    mask = tf.abs(b) < 2.99
    y = tf.where(mask, y, b)
    log_det = tf.reduce_sum(tf.where(mask, tf.math.log(slope), 0.0), 1)
    return tf.reduce_mean(0.5 * tf.reduce_sum(y * y, 1) - log_det)


@loss
def diffusion(params, data):
    x, noise, t = data
    c1, emb, s1, h1, c2, c3, s2, h2, c4, up, s3, h3, c5, c6 = params
    a = tf.cos(t * math.pi / 2)[:, None, None, None]
    noisy = a * x + tf.sqrt(1 - a * a) * noise
    freq = tf.exp(-math.log(1000.0) * tf.range(16, dtype=tf.float32) / 16)
    angles = t[:, None] * 1000 * freq
    e = tf.concat([tf.sin(angles), tf.cos(angles)], 1) @ emb
    h = tf.nn.conv2d(noisy, c1, 1, "SAME") + e[:, None, None]
    skip = h + tf.nn.conv2d(tf.nn.silu(group_norm(h, s1, h1)), c2, 1, "SAME")
    d = tf.nn.conv2d(skip, c3, 2, "SAME")
    d = d + tf.nn.conv2d(tf.nn.silu(group_norm(d, s2, h2)), c4, 1, "SAME")
    u = tf.nn.conv2d_transpose(d, up, [8, 32, 32, 32], 2, "SAME")
    u = tf.concat([u, skip], -1)
    u = tf.nn.conv2d(tf.nn.silu(group_norm(u, s3, h3)), c5, 1, "SAME")
    return tf.reduce_mean(tf.square(tf.nn.conv2d(tf.nn.silu(u), c6, 1, "SAME") - noise))


@loss
def nerf(params, data):
    p, delta, target = data
    enc = tf.concat([p, *[f(p * 2.0**i) for i in range(4) for f in (tf.sin, tf.cos)]], -1)
    h = mlp(enc, params, tf.nn.relu)
    sigma, rgb = tf.nn.softplus(h[..., 0]), tf.sigmoid(h[..., 1:])
    alpha = 1 - tf.exp(-sigma * delta)
    w = alpha * tf.math.cumprod(1 - alpha + 1e-10, -1, exclusive=True)
    return tf.reduce_mean(tf.square(tf.reduce_sum(w[..., None] * rgb, 1) - target))


@loss
def wavenet(params, data):
    x, labels = data
    x = x @ params[0]
    total = 0.0
    for i in range(6):
        w, skip, res = params[1 + 3 * i : 4 + 3 * i]
        d = 2**i
        y = tf.nn.conv1d(tf.pad(x, [[0, 0], [d, 0], [0, 0]]), w, 1, "VALID", dilations=d)
        a, b = tf.split(y, 2, axis=-1)
        g = tf.tanh(a) * tf.sigmoid(b)
        total += g @ skip
        x += g @ res
    return cross_entropy(labels, tf.nn.relu(total + x) @ params[-1])
