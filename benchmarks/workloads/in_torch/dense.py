"""Dense nets in several precisions, normalisations, gradients of single examples, optimizers."""

import torch
import torch.nn.functional as nn
from in_torch.train import compile_if_asked, loss, mlp
from registry import STEPS, step


@loss
def normalisation(params, data):
    scale, shift, columns, gain = params
    x, targets = data
    x = nn.layer_norm(x, x.shape[1:], scale, shift)
    x = nn.batch_norm(x, None, None, columns, None, training=True, eps=1e-5)
    x = nn.rms_norm(x, x.shape[1:], gain, 1e-5)
    return (x - targets).square().mean()


@loss
def mlp_float64(params, data):
    return nn.cross_entropy(mlp(data[0], params, nn.relu), data[1])


@loss
def mlp_bfloat16(params, data):
    half = [p.bfloat16() for p in params]
    return nn.cross_entropy(mlp(data[0].bfloat16(), half, nn.relu).float(), data[1])


@loss
def deep_plain(params, data):
    return nn.cross_entropy(mlp(data[0], params, nn.relu), data[1])


def clipped_gradients(params, x, labels):
    """The losses of the examples and the mean of their gradients, each clipped to a norm of 1."""

    def example(params, x, label):
        value = nn.cross_entropy(mlp(x[None], params, nn.relu), label[None])
        return value, value

    gradients, losses = torch.func.vmap(torch.func.grad(example, has_aux=True), (None, 0, 0))(params, x, labels)
    squares = sum(g.square().flatten(1).sum(1) for g in gradients)
    factors = torch.clamp(torch.rsqrt(squares + 1e-12), max=1.0)
    return losses.mean(), [(g * factors.view(-1, *[1] * (g.ndim - 1))).mean(0) for g in gradients]


@step
def per_example_jacobian(params, data, rate):
    with torch.no_grad():
        value, gradients = compile_if_asked(clipped_gradients)(tuple(params), *data)
        torch._foreach_add_(params, gradients, alpha=-rate)
    return value


STEPS["per_example_vmap"] = per_example_jacobian


def probe(weights):
    """The loss of an optimizer's step: cheap beside the update, it sees the parameters."""
    return sum(w[0].square().mean() for w in weights)


@step
def adamw(params, data, rate):
    """PyTorch's own fused kernel: it is faster than what torch.compile makes."""
    count, weights, ms, vs = params[0], params[1:11], params[11:21], params[21:]
    with torch.no_grad():
        value = probe(weights)
        count += 1
        torch._fused_adamw_(
            weights, data, ms, vs, [], [count] * 10, lr=rate, beta1=0.9, beta2=0.999, weight_decay=0.01, eps=1e-8,
            amsgrad=False, maximize=False,
        )  # fmt: skip
    return value


def lion_update(weights, ms, gradients, rate):
    for p, m, g in zip(weights, ms, gradients):
        p.mul_(1 - rate * 0.01).add_(m.lerp(g, 0.1).sign_(), alpha=-rate)
        m.lerp_(g, 0.01)


@step
def lion(params, data, rate):
    weights, ms = params[1:11], params[11:]
    with torch.no_grad():
        value = probe(weights)
        compile_if_asked(lion_update)(weights, ms, data, rate)
    return value


def rmsprop_update(weights, vs, gradients, rate):
    for p, v, g in zip(weights, vs, gradients):
        v.mul_(0.9).addcmul_(g, g, value=0.1)
        p.addcdiv_(g, v.sqrt().add_(1e-7), value=-rate)


@step
def rmsprop(params, data, rate):
    weights, vs = params[1:11], params[11:]
    with torch.no_grad():
        value = probe(weights)
        compile_if_asked(rmsprop_update)(weights, vs, data, rate)
    return value
