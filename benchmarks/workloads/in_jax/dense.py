"""Dense nets in several precisions, normalisations, gradients of single examples, optimizers."""

import jax
import jax.numpy as jnp
from in_jax.train import cross_entropy, loss, mlp
from registry import STEPS, step


@loss
def normalisation(params, data):
    scale, shift, columns, gain = params
    x, targets = data
    x = (x - x.mean(1, keepdims=True)) * jax.lax.rsqrt(x.var(1, keepdims=True) + 1e-5) * scale + shift
    x = (x - x.mean(0)) * jax.lax.rsqrt(x.var(0) + 1e-5) * columns
    x = x * jax.lax.rsqrt(jnp.square(x).mean(1, keepdims=True) + 1e-5) * gain
    return jnp.mean(jnp.square(x - targets))


@loss
def mlp_float64(params, data):
    return cross_entropy(data[1], mlp(data[0], params, jax.nn.relu))


@loss
def mlp_bfloat16(params, data):
    half = [p.astype(jnp.bfloat16) for p in params]
    logits = mlp(data[0].astype(jnp.bfloat16), half, jax.nn.relu)
    return cross_entropy(data[1], logits.astype(jnp.float32))


@loss
def deep_plain(params, data):
    return cross_entropy(data[1], mlp(data[0], params, jax.nn.relu))


@step
def per_example_jacobian(params, data, rate):
    def example(params, x, label):
        return cross_entropy(label[None], mlp(x[None], params, jax.nn.relu))

    losses, gradients = jax.vmap(jax.value_and_grad(example), (None, 0, 0))(params, *data)
    squares = sum(jnp.square(g).sum(range(1, g.ndim)) for g in gradients)
    factors = jnp.minimum(1.0, jax.lax.rsqrt(squares + 1e-12))
    means = [(g * factors.reshape(-1, *[1] * p.ndim)).mean(0) for p, g in zip(params, gradients)]
    return losses.mean(), [p - rate * g for p, g in zip(params, means)]


STEPS["per_example_vmap"] = per_example_jacobian


def probe(weights):
    """The loss of an optimizer's step: cheap beside the update, it sees the parameters."""
    return sum(jnp.mean(jnp.square(w[0])) for w in weights)


@step
def adamw(params, data, rate):
    count, weights, ms, vs = params[0] + 1, params[1:11], params[11:21], params[21:]
    first, second = 1 - 0.9**count, 1 - 0.999**count
    ms = [0.9 * m + 0.1 * g for m, g in zip(ms, data)]
    vs = [0.999 * v + 0.001 * jnp.square(g) for v, g in zip(vs, data)]
    updated = [
        p * (1 - rate * 0.01) - rate / first * m / (jnp.sqrt(v) / jnp.sqrt(second) + 1e-8)
        for p, m, v in zip(weights, ms, vs)
    ]
    return probe(weights), [count, *updated, *ms, *vs]


@step
def lion(params, data, rate):
    weights, ms = params[1:11], params[11:]
    updated = [p - rate * (jnp.sign(0.9 * m + 0.1 * g) + 0.01 * p) for p, m, g in zip(weights, ms, data)]
    return probe(weights), [params[0], *updated, *(0.99 * m + 0.01 * g for m, g in zip(ms, data))]


@step
def rmsprop(params, data, rate):
    weights, vs = params[1:11], params[11:]
    vs = [0.9 * v + 0.1 * jnp.square(g) for v, g in zip(vs, data)]
    updated = [p - rate * g / (jnp.sqrt(v) + 1e-7) for p, v, g in zip(weights, vs, data)]
    return probe(weights), [params[0], *updated, *vs]
