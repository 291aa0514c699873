"""Sequences: a transformer, recurrent nets, an embedding."""

import jax
import jax.numpy as jnp
from in_jax.train import cross_entropy, loss
from registry import step


def layer_norm(x, scale, shift):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * scale + shift


@loss
def transformer(params, data):
    tokens, labels, mask = data
    heads, (batch, length), width = 4, tokens.shape, params[0].shape[1]

    def split(x):
        return x.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)

    x = params[0][tokens] + params[1]
    for i in range(2, len(params), 10):
        scale1, shift1, qkv, out, scale2, shift2, w1, b1, w2, b2 = params[i : i + 10]
        q, k, v = map(split, jnp.split(layer_norm(x, scale1, shift1) @ qkv, 3, axis=-1))
        weights = jax.nn.softmax(q @ k.swapaxes(-1, -2) * (width // heads) ** -0.5 + mask)
        x += (weights @ v).transpose(0, 2, 1, 3).reshape(batch, length, width) @ out
        x += jax.nn.gelu(layer_norm(x, scale2, shift2) @ w1 + b1, approximate=True) @ w2 + b2
    return cross_entropy(labels, x @ params[0].T)


@loss
def gru(params, data):
    w, u, b, c, v = params
    x, y = data

    def cell(h, inputs):
        r, z, n = jnp.split(inputs, 3, axis=1)
        hr, hz, hn = jnp.split(h @ u + c, 3, axis=1)
        z = jax.nn.sigmoid(z + hz)
        h = (1 - z) * jnp.tanh(n + jax.nn.sigmoid(r + hr) * hn) + z * h
        return h, None

    h, _ = jax.lax.scan(cell, jnp.zeros((x.shape[1], u.shape[0])), x @ w + b)
    return jnp.mean(jnp.square(h @ v - y))


def lstm(x, w, u, b, reverse):
    def cell(state, inputs):
        h, c = state
        i, f, g, o = jnp.split(inputs + h @ u, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((x.shape[1], u.shape[0]))
    return jax.lax.scan(cell, (zeros, zeros), x @ w + b, reverse=reverse)[1]


@loss
def bidirectional_lstm(params, data):
    x, y = data
    outputs = [lstm(x, *params[:3], False), lstm(x, *params[3:6], True)]
    return jnp.mean(jnp.square(jnp.concatenate(outputs, -1) @ params[6] - y))


@step
def embedding_adam(params, data, rate):
    words, labels = data

    def loss_of(weights):
        return cross_entropy(labels, weights[0][words].mean(1) @ weights[1])

    value, gradients = jax.value_and_grad(loss_of)(params[:2])
    ms = [0.9 * m + 0.1 * g for m, g in zip(params[2::2], gradients)]
    vs = [0.999 * v + 0.001 * jnp.square(g) for v, g in zip(params[3::2], gradients)]
    weights = [p - rate * m / (jnp.sqrt(v) + 1e-7) for p, m, v in zip(params[:2], ms, vs)]
    return value, [*weights, ms[0], vs[0], ms[1], vs[1]]
