"""A physics-informed network for a vibrating beam, u_tt + u_xxxx = 0: derivatives of order 4 inside a loss.

python examples/physics_informed.py
"""

import itertools

import numpy as np

import tapeflow as tf

SIZES = (2, 32, 32, 1)


def make_parameters(dtype=tf.float64, seed: int = 0):
    """Weights and biases of a network from (x, t) to u."""
    random = np.random.default_rng(seed)
    weights = [tf.Variable(random.normal(size=s) / s[0] ** 0.5, dtype=dtype) for s in itertools.pairwise(SIZES)]
    return weights, [tf.Variable(0.1 * random.normal(size=s), dtype=dtype) for s in SIZES[1:]]


def network(parameters, x, t):
    """u at the points (x, t), each of shape [n]."""
    h = tf.stack([x, t], axis=1)
    weights, biases = parameters
    for w, b in zip(weights[:-1], biases[:-1]):
        h = tf.tanh(h @ w + b)
    return (h @ weights[-1] + biases[-1])[:, 0]


def derivative(function, z, order: int):
    """The derivative of `function` by z, of the given order, point by point."""
    if order == 0:
        return function(z)
    with tf.GradientTape() as tape:
        tape.watch(z)
        below = derivative(function, z, order - 1)
    return tape.gradient(below, z)


def beam_residual(parameters, x, t):
    u_xxxx = derivative(lambda z: network(parameters, z, t), x, 4)
    u_tt = derivative(lambda z: network(parameters, x, z), t, 2)
    return u_tt + u_xxxx


def loss_and_gradients(parameters, x, t):
    """The mean square of the residual; its gradient passes through five nested tapes."""
    flat = [*parameters[0], *parameters[1]]
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(beam_residual(parameters, x, t) ** 2)
    return loss, tape.gradient(loss, flat, unconnected_gradients="zero")


def main(steps: int = 20, rate: float = 1e-3):
    random = np.random.default_rng(1)
    parameters = make_parameters()
    x, t = (tf.constant(random.uniform(size=64)) for _ in range(2))
    losses = []
    for _ in range(steps):
        loss, gradients = loss_and_gradients(parameters, x, t)
        gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
        for variable, gradient in zip([*parameters[0], *parameters[1]], gradients):
            variable.assign_sub(rate * 10.0 * gradient)
        losses.append(float(loss))
    return losses


if __name__ == "__main__":
    losses = main()
    print(f"mean square of u_tt + u_xxxx: {losses[0]:.4f}, after {len(losses)} steps {losses[-1]:.4f}")
