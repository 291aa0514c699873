"""Makes training steps of workloads written for JAX: the whole step under jax.jit, the parameters donated."""

import jax
import jax.numpy as jnp
import numpy as np
from registry import STEPS, losses


@losses
def loss(function):
    """Returns the loss and the new parameters."""

    def run(params, data, rate):
        value, gradients = jax.value_and_grad(function)(params, data)
        return value, [p - rate * g for p, g in zip(params, gradients)]

    return run


def build(name: str, values, compiled: bool):
    """A function without arguments that does one step and returns the loss as a float."""
    jax.config.update("jax_enable_x64", any(p.dtype == np.float64 for p in values.params))
    params = [jnp.array(p) for p in values.params]
    data = [jnp.array(d) for d in values.data]

    def run(params, data):
        return STEPS[name](params, data, values.rate)

    run = jax.jit(run, donate_argnums=0) if compiled else run

    def call():
        nonlocal params
        value, params = run(params, data)
        value = float(value)
        jax.block_until_ready(params)
        return value

    return call


def mlp(x, params, activation):
    """The layers of `params`: weight and bias of each, one after the other."""
    for w, b in zip(params[:-2:2], params[1:-2:2]):
        x = activation(x @ w + b)
    return x @ params[-2] + params[-1]


def cross_entropy(labels, logits):
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1)
    return -jnp.mean(chosen)


def sigmoid_cross_entropy(labels, logits):
    return jax.nn.softplus(logits) - logits * labels
