"""Structured models: attention, routed experts, ragged batches, inner training loops, transport, tensor networks."""

import math

import torch
import torch.nn.functional as nn
from in_torch.train import channels_first, compile_if_asked, loss, loss_of_parts, mlp, part
from registry import step

relu = nn.relu


@loss
@channels_first
def vit(params, data):
    images, labels = data
    b, w = images.shape[0], params[1].shape[-1]
    x = nn.conv2d(images, params[0], stride=4).flatten(2).transpose(1, 2)
    x = torch.cat([params[1].expand(b, 1, w), x], 1) + params[2]
    for i in range(3, len(params) - 1, 10):
        s1, b1, qkv, out, s2, b2, w1, c1, w2, c2 = params[i : i + 10]
        q, k, v = [
            t.view(b, 65, 4, w // 4).transpose(1, 2) for t in (nn.layer_norm(x, (w,), s1, b1) @ qkv).chunk(3, -1)
        ]
        x = x + nn.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, 65, w) @ out
        x = x + nn.gelu(nn.layer_norm(x, (w,), s2, b2) @ w1 + c1) @ w2 + c2
    return nn.cross_entropy(x[:, 0] @ params[-1], labels)


@part
def gru_cell(h, x, w, b, wn, bn):
    r, z = torch.sigmoid(torch.addmm(b, torch.cat([x, h], 1), w)).chunk(2, 1)
    n = torch.tanh(torch.addmm(bn, torch.cat([x, r * h], 1), wn))
    return z * h + (1 - z) * n


@part
def decode(h, x, y, memory, keys, params):
    _, wq, v, out = params[10:]
    scores = (torch.tanh(keys + (h @ wq)[:, None]) * v).sum(-1)
    context = (torch.softmax(scores, -1)[..., None] * memory).sum(1)
    h = gru_cell(h, torch.cat([x, context], 1), *params[6:10])
    return h, nn.cross_entropy(torch.cat([h, context], 1) @ out, y)


@loss_of_parts
def seq2seq(params, data):
    src, tin, tout = data
    es, et = params[:2]
    h = torch.zeros(src.shape[1], 64)
    outs = []
    xs = nn.embedding(src, es)
    for t in range(src.shape[0]):
        h = gru_cell(h, xs[t], *params[2:6])
        outs.append(h)
    memory = torch.stack(outs, 1)
    keys = memory @ params[10]
    total = 0.0
    xs = nn.embedding(tin, et)
    for t in range(tin.shape[0]):
        h, term = decode(h, xs[t], tout[t], memory, keys, params)
        total = total + term
    return total / tin.shape[0]


@loss
def maml(params, data):
    def task(xs, ys, xq, yq):
        def inner(p):
            return (mlp(xs, p, relu) - ys).square().mean()

        fast = list(params)
        for _ in range(3):
            fast = [p - 0.01 * g for p, g in zip(fast, torch.func.grad(inner)(fast))]
        return (mlp(xq, fast, relu) - yq).square().mean()

    return torch.func.vmap(task)(*data).mean()


def ce_mlp(weights, x, y):
    return nn.cross_entropy(mlp(x, weights, relu), y)


def adafactor_update(count, weights, slots, grads, rate):
    beta = 1 - count**-0.8
    for i, (p, g) in enumerate(zip(weights, grads)):
        r, c = slots[2 * i], slots[2 * i + 1]
        g2 = g.square() + 1e-30
        if g.ndim == 2:
            r.lerp_(g2.mean(1), 1 - beta)
            c.lerp_(g2.mean(0), 1 - beta)
            u = g * torch.rsqrt(r / r.mean())[:, None] * torch.rsqrt(c)
        else:
            r.lerp_(g2, 1 - beta)
            u = g * torch.rsqrt(r)
        u = u / torch.clamp(u.square().mean().sqrt(), min=1.0)
        p.sub_(rate * torch.clamp(p.square().mean().sqrt(), min=1e-3) * u)


@step
def adafactor(params, data, rate):
    count, weights, slots = params[0], params[1:7], params[7:]
    value = compile_if_asked(ce_mlp)(weights, *data)
    grads = torch.autograd.grad(value, weights)
    with torch.no_grad():
        count += 1
        compile_if_asked(adafactor_update)(count, weights, slots, grads, rate)
    return value


@loss
def sinkhorn(params, data):
    (x,), (y,) = params, data
    c = (x[:, None] - y[None]).square().sum(-1)
    k = -c / 0.1
    n = x.shape[0]
    f, g = torch.zeros(n), torch.zeros(n)
    la = -math.log(n)
    for _ in range(20):
        f = la - torch.logsumexp(k + g[None], 1)
        g = la - torch.logsumexp(k + f[:, None], 0)
    return (torch.exp(k + f[:, None] + g[None]) * c).sum()


@loss
def moe_partition(params, data):
    gate, w1, w2 = params
    x, y = data
    best, k = torch.softmax(x @ gate, 1).max(1)
    out = torch.zeros_like(x)
    for i in range(8):
        rows = (k == i).nonzero()[:, 0]
        out = out.index_add(0, rows, nn.gelu(x[rows] @ w1[i]) @ w2[i])
    return (out * best[:, None] - y).square().mean()


@loss
def ragged_mean(params, data):
    ids, lengths, _, labels = data
    starts = lengths.cumsum(0) - lengths
    x = nn.embedding_bag(ids, params[0], starts, mode="mean")
    return nn.cross_entropy(mlp(x, params[1:], relu), labels)


@loss
def tensor_train(params, data):
    cores, out = params
    x, y = data
    m = torch.einsum("bnp,npij->nbij", torch.stack([1 - x, x], -1), cores)
    h = torch.ones(64, 1, 10)
    for i in range(28):
        h = h @ m[i]
    return nn.cross_entropy(h[:, 0] @ out, y)
