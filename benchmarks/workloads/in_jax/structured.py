"""Structured models: attention, routed experts, ragged batches, inner training loops, transport, tensor networks."""

import functools
import math

import jax
import jax.numpy as jnp
from in_jax.sequence import layer_norm
from in_jax.train import cross_entropy, loss, mlp
from in_jax.vision import conv
from registry import step

relu = jax.nn.relu
gelu = functools.partial(jax.nn.gelu, approximate=False)


def attention(x, qkv, out, heads):
    b, n, w = x.shape
    q, k, v = [t.reshape(b, n, heads, w // heads).transpose(0, 2, 1, 3) for t in jnp.split(x @ qkv, 3, -1)]
    a = q @ k.swapaxes(-1, -2) * (w // heads) ** -0.5
    return (jax.nn.softmax(a) @ v).transpose(0, 2, 1, 3).reshape(b, n, w) @ out


@loss
def vit(params, data):
    images, labels = data
    b, w = images.shape[0], params[0].shape[-1]
    x = conv(images, params[0], 4).reshape(b, 64, w)
    x = jnp.concatenate([jnp.tile(params[1], (b, 1, 1)), x], 1) + params[2]
    for i in range(3, len(params) - 1, 10):
        s1, b1, qkv, out, s2, b2, w1, c1, w2, c2 = params[i : i + 10]
        x += attention(layer_norm(x, s1, b1), qkv, out, 4)
        x += gelu(layer_norm(x, s2, b2) @ w1 + c1) @ w2 + c2
    return cross_entropy(labels, x[:, 0] @ params[-1])


def gru_cell(h, x, w, b, wn, bn):
    r, z = jnp.split(jax.nn.sigmoid(jnp.concatenate([x, h], 1) @ w + b), 2, 1)
    n = jnp.tanh(jnp.concatenate([x, r * h], 1) @ wn + bn)
    return z * h + (1 - z) * n


@loss
def seq2seq(params, data):
    src, tin, tout = data
    es, et = params[:2]

    def enc(h, x):
        h = gru_cell(h, x, *params[2:6])
        return h, h

    h, outs = jax.lax.scan(enc, jnp.zeros((src.shape[1], 64)), es[src])
    memory = outs.transpose(1, 0, 2)
    wm, wq, v, out = params[10:]
    keys = memory @ wm

    def dec(h, xt):
        x, t = xt
        scores = (jnp.tanh(keys + (h @ wq)[:, None]) * v).sum(-1)
        context = (jax.nn.softmax(scores)[..., None] * memory).sum(1)
        h = gru_cell(h, jnp.concatenate([x, context], 1), *params[6:10])
        return h, cross_entropy(t, jnp.concatenate([h, context], 1) @ out)

    return jax.lax.scan(dec, h, (et[tin], tout))[1].mean()


@loss
def moe_partition(params, data):
    gate, w1, w2 = params
    x, y = data
    p = jax.nn.softmax(x @ gate)
    k = p.argmax(1)
    h = gelu(jnp.einsum("nd,edh->enh", x, w1))
    o = jnp.einsum("enh,ehd->end", h, w2)
    out = (jax.nn.one_hot(k, 8).T[..., None] * o).sum(0) * p.max(1)[:, None]
    return jnp.square(out - y).mean()


@loss
def ragged_mean(params, data):
    ids, lengths, seg, labels = data
    x = jax.ops.segment_sum(params[0][ids], seg, 128) / lengths[:, None]
    return cross_entropy(labels, mlp(x.astype("float32"), params[1:], relu))


@loss
def maml(params, data):
    def task(xs, ys, xq, yq):
        def inner(p):
            return jnp.square(mlp(xs, p, relu) - ys).mean()

        fast = params
        for _ in range(3):
            fast = [p - 0.01 * g for p, g in zip(fast, jax.grad(inner)(fast))]
        return jnp.square(mlp(xq, fast, relu) - yq).mean()

    return jax.vmap(task)(*data).mean()


@step
def adafactor(params, data, rate):
    count, weights, slots = params[0] + 1, params[1:7], params[7:]
    value, grads = jax.value_and_grad(lambda w: cross_entropy(data[1], mlp(data[0], w, relu)))(weights)
    beta = 1 - count**-0.8
    ws, ss = [], []
    for i, (p, g) in enumerate(zip(weights, grads)):
        r, c = slots[2 * i], slots[2 * i + 1]
        g2 = jnp.square(g) + 1e-30
        if g.ndim == 2:
            r = beta * r + (1 - beta) * g2.mean(1)
            c = beta * c + (1 - beta) * g2.mean(0)
            u = g * jax.lax.rsqrt(r / r.mean())[:, None] * jax.lax.rsqrt(c)
        else:
            r = beta * r + (1 - beta) * g2
            u = g * jax.lax.rsqrt(r)
        u /= jnp.maximum(1.0, jnp.sqrt(jnp.square(u).mean()))
        ws.append(p - rate * jnp.maximum(1e-3, jnp.sqrt(jnp.square(p).mean())) * u)
        ss += [r, c]
    return value, [count, *ws, *ss]


@loss
def sinkhorn(params, data):
    (x,), (y,) = params, data
    c = jnp.square(x[:, None] - y[None]).sum(-1)
    k = -c / 0.1
    n = x.shape[0]
    f, g = jnp.zeros(n), jnp.zeros(n)
    la = -math.log(n)
    for _ in range(20):
        f = la - jax.nn.logsumexp(k + g[None], 1)
        g = la - jax.nn.logsumexp(k + f[:, None], 0)
    return (jnp.exp(k + f[:, None] + g[None]) * c).sum()


@loss
def tensor_train(params, data):
    cores, out = params
    x, y = data
    m = jnp.einsum("bnp,npij->nbij", jnp.stack([1 - x, x], -1), cores)
    h, _ = jax.lax.scan(lambda h, m: (h @ m, None), jnp.ones((64, 1, 10)), m)
    return cross_entropy(y, h[:, 0] @ out)
