"""Generative models: a spline flow, a denoiser, a radiance field, dilated convolutions of audio."""

import math

import jax
import jax.numpy as jnp
from in_jax.train import cross_entropy, loss, mlp
from jax import nn


def conv(x, w, stride=1, padding="SAME", dilation=1):
    n = x.ndim - 2
    spec = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}[n]
    return jax.lax.conv_general_dilated(
        x, w, [stride] * n, padding, rhs_dilation=[dilation] * n, dimension_numbers=spec
    )


def group_norm(x, scale, shift, groups=8):
    b, h, w, c = x.shape
    g = x.reshape(b, h, w, groups, c // groups)
    m, v = g.mean((1, 2, 4), keepdims=True), g.var((1, 2, 4), keepdims=True)
    return ((g - m) * jax.lax.rsqrt(v + 1e-5)).reshape(b, h, w, c) * scale + shift


@loss
def spline_flow(params, data):
    (x,) = data
    w1, b1, w2, b2 = params
    a, b = jnp.split(x, 2, 1)
    theta = (nn.relu(a @ w1 + b1) @ w2 + b2).reshape(x.shape[0], 8, 25)
    widths = 6.0 * nn.softmax(theta[..., :8])
    heights = 6.0 * nn.softmax(theta[..., 8:16])
    slopes = nn.softplus(theta[..., 16:])
    xs = jnp.cumsum(widths, -1) - 3.0
    ys = jnp.cumsum(heights, -1) - 3.0
    inside = jnp.clip(b, -2.99, 2.99)
    k = jnp.minimum((inside[..., None] >= xs).sum(-1), 7)[..., None]

    def pick(t):
        return jnp.take_along_axis(t, k, -1)[..., 0]

    w, h, d0, d1 = pick(widths), pick(heights), pick(slopes[..., :-1]), pick(slopes[..., 1:])
    x0, y0 = pick(xs) - w, pick(ys) - h
    s = h / w
    xi = (inside - x0) / w
    den = s + (d1 + d0 - 2 * s) * xi * (1 - xi)
    y = y0 + h * (s * xi * xi + d0 * xi * (1 - xi)) / den
    slope = s * s * (d1 * xi * xi + 2 * s * xi * (1 - xi) + d0 * (1 - xi) ** 2) / (den * den)
    mask = jnp.abs(b) < 2.99
    y = jnp.where(mask, y, b)
    log_det = jnp.where(mask, jnp.log(slope), 0.0).sum(1)
    return (0.5 * (y * y).sum(1) - log_det).mean()


@loss
def diffusion(params, data):
    x, noise, t = data
    c1, emb, s1, h1, c2, c3, s2, h2, c4, up, s3, h3, c5, c6 = params
    a = jnp.cos(t * math.pi / 2)[:, None, None, None]
    noisy = a * x + jnp.sqrt(1 - a * a) * noise
    freq = jnp.exp(-math.log(1000.0) * jnp.arange(16) / 16)
    angles = t[:, None] * 1000 * freq
    e = jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], 1) @ emb
    h = conv(noisy, c1) + e[:, None, None]
    skip = h + conv(nn.silu(group_norm(h, s1, h1)), c2)
    d = conv(skip, c3, 2)
    d = d + conv(nn.silu(group_norm(d, s2, h2)), c4)
    u = jax.lax.conv_transpose(d, up, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), transpose_kernel=True)
    u = jnp.concatenate([u, skip], -1)
    u = conv(nn.silu(group_norm(u, s3, h3)), c5)
    return jnp.square(conv(nn.silu(u), c6) - noise).mean()


@loss
def nerf(params, data):
    p, delta, target = data
    enc = jnp.concatenate([p, *[f(p * 2.0**i) for i in range(4) for f in (jnp.sin, jnp.cos)]], -1)
    h = mlp(enc, params, nn.relu)
    sigma, rgb = nn.softplus(h[..., 0]), nn.sigmoid(h[..., 1:])
    alpha = 1 - jnp.exp(-sigma * delta)
    keep = jnp.cumprod(1 - alpha + 1e-10, -1)
    w = alpha * jnp.concatenate([jnp.ones((128, 1)), keep[:, :-1]], 1)
    return jnp.square((w[..., None] * rgb).sum(1) - target).mean()


@loss
def wavenet(params, data):
    x, labels = data
    x = x @ params[0]
    total = 0.0
    for i in range(6):
        w, skip, res = params[1 + 3 * i : 4 + 3 * i]
        d = 2**i
        y = conv(jnp.pad(x, [[0, 0], [d, 0], [0, 0]]), w, padding="VALID", dilation=d)
        a, b = jnp.split(y, 2, -1)
        g = jnp.tanh(a) * nn.sigmoid(b)
        total += g @ skip
        x += g @ res
    return cross_entropy(labels, nn.relu(total + x) @ params[-1])
