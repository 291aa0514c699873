"""Sequences: a transformer, recurrent nets by PyTorch's own kernels, an embedding."""

import torch
import torch.nn.functional as nn
from in_torch.train import compile_if_asked, loss
from registry import step


@loss
def transformer(params, data):
    tokens, labels, _ = data
    heads, (batch, length), width = 4, tokens.shape, params[0].shape[1]

    def split(x):
        return x.view(batch, length, heads, width // heads).transpose(1, 2)

    x = nn.embedding(tokens, params[0]) + params[1]
    for i in range(2, len(params), 10):
        scale1, shift1, qkv, out, scale2, shift2, w1, b1, w2, b2 = params[i : i + 10]
        q, k, v = map(split, (nn.layer_norm(x, (width,), scale1, shift1) @ qkv).chunk(3, -1))
        y = nn.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + y.transpose(1, 2).reshape(batch, length, width) @ out
        y = nn.gelu(nn.layer_norm(x, (width,), scale2, shift2) @ w1 + b1, approximate="tanh")
        x = x + y @ w2 + b2
    return nn.cross_entropy((x @ params[0].t()).flatten(0, 1), labels.flatten())


# As in torch.nn.LSTM and torch.nn.GRU, torch.compile leaves the recurrent kernels alone.
run_gru = torch.compiler.disable(torch.gru)
run_lstm = torch.compiler.disable(torch.lstm)


@loss
def gru(params, data):
    w, u, b, c, v = params
    x, y = data
    h = x.new_zeros(1, x.shape[1], u.shape[0])
    _, h = run_gru(x, h, [w.t(), u.t(), b, c], True, 1, 0.0, True, False, False)
    return torch.mean(torch.square(h[0] @ v - y))


@loss
def bidirectional_lstm(params, data):
    x, y = data
    weights = []
    for w, u, b in (params[:3], params[3:6]):
        weights += [w.t(), u.t(), b, torch.zeros_like(b)]
    zeros = x.new_zeros(2, x.shape[1], params[1].shape[0])
    outputs, _, _ = run_lstm(x, (zeros, zeros), weights, True, 1, 0.0, True, True, False)
    return torch.mean(torch.square(outputs @ params[6] - y))


def embedding_loss(weights, words, labels):
    return nn.cross_entropy(nn.embedding(words, weights[0]).mean(1) @ weights[1], labels)


def adam(weights, ms, vs, gradients, rate):
    for p, m, v, g in zip(weights, ms, vs, gradients):
        m.mul_(0.9).add_(g, alpha=0.1)
        v.mul_(0.999).addcmul_(g, g, value=0.001)
        p.addcdiv_(m, v.sqrt().add_(1e-7), value=-rate)


def fused_adam(weights, ms, vs, gradients, rate):
    """PyTorch's own kernel; after a million steps its bias correction is 1."""
    count = torch.tensor(1e6)
    torch._fused_adam_(
        weights, gradients, ms, vs, [], [count] * 2, lr=rate, beta1=0.9, beta2=0.999, weight_decay=0.0, eps=1e-7,
        amsgrad=False, maximize=False,
    )  # fmt: skip


@step
def embedding_adam(params, data, rate):
    weights = params[:2]
    value = compile_if_asked(embedding_loss)(weights, *data)
    gradients = torch.autograd.grad(value, weights)
    with torch.no_grad():
        update = compile_if_asked(adam)
        (fused_adam if update is adam else update)(weights, params[2::2], params[3::2], gradients, rate)
    return value
