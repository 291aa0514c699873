"""Nodes and points: attention over the edges of a graph, convolution over nearest points."""

import jax
import jax.numpy as jnp
from in_jax.train import cross_entropy, loss
from jax import nn


@loss
def gat(params, data):
    w, al, ar, out = params
    x, src, dst, labels = data
    n = x.shape[0]
    h = (x @ w).reshape(n, 4, 16)
    left, right = (h * al).sum(-1), (h * ar).sum(-1)
    e = nn.leaky_relu(left[src] + right[dst], 0.2)
    m = jax.lax.stop_gradient(jax.ops.segment_max(e, dst, n))
    p = jnp.exp(e - m[dst])
    z = jax.ops.segment_sum(p, dst, n)
    a = p / z[dst]
    y = jax.ops.segment_sum(a[..., None] * h[src], dst, n)
    return cross_entropy(labels, nn.elu(y.reshape(n, 64)) @ out)


@loss
def point_cloud(params, data):
    x, labels = data
    s = (x * x).sum(-1)
    d = s[:, :, None] + s[:, None] - 2 * x @ x.swapaxes(1, 2)
    near = jax.lax.top_k(-d, 8)[1]
    n = jax.vmap(lambda x, i: x[i])(x, near)
    c = jnp.broadcast_to(x[:, :, None], n.shape)
    h = nn.leaky_relu(jnp.concatenate([c, n - c], -1) @ params[0] + params[1], 0.2)
    return cross_entropy(labels, h.max(2).max(1) @ params[2] + params[3])
