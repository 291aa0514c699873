"""A step of meta-learning: the gradient by the starting point of training passes through a step of that training.

python examples/meta_learning.py
"""

import numpy as np

import tapeflow as tf

INNER_RATE, OUTER_RATE = 0.1, 0.05


def make_task(random, dtype=tf.float64):
    """A sine of random height and shift: ten points to learn from, ten to be judged by."""
    height, shift = random.uniform(0.5, 2.0), random.uniform(0, np.pi)
    x = random.uniform(-3, 3, size=(20, 1))
    y = height * np.sin(x + shift)
    return [tf.constant(part, dtype) for part in (x[:10], y[:10], x[10:], y[10:])]


def make_parameters(dtype=tf.float64, hidden: int = 16):
    random = np.random.default_rng(0)
    shapes = [(1, hidden), (hidden,), (hidden, 1), (1,)]
    return [tf.Variable(0.5 * random.normal(size=shape), dtype=dtype) for shape in shapes]


def loss(parameters, x, y):
    w1, b1, w2, b2 = parameters
    return tf.reduce_mean((tf.tanh(x @ w1 + b1) @ w2 + b2 - y) ** 2)


def adapted_loss(parameters, task):
    """The loss on new points after one step of gradient descent on the given ones."""
    x, y, new_x, new_y = task
    with tf.GradientTape() as tape:
        before = loss(parameters, x, y)
    gradients = tape.gradient(before, parameters)
    return loss([p - INNER_RATE * g for p, g in zip(parameters, gradients)], new_x, new_y)


def meta_gradient(parameters, tasks):
    """The mean loss after adaptation, and its gradient by the parameters before it."""
    with tf.GradientTape() as tape:
        total = tf.add_n([adapted_loss(parameters, task) for task in tasks]) / len(tasks)
    return total, tape.gradient(total, parameters)


def main(steps: int = 100):
    random = np.random.default_rng(1)
    tasks = [make_task(random) for _ in range(4)]
    parameters = make_parameters()
    losses = []
    for _ in range(steps):
        total, gradients = meta_gradient(parameters, tasks)
        for parameter, gradient in zip(parameters, gradients):
            parameter.assign_sub(OUTER_RATE * gradient)
        losses.append(float(total))
    return losses


if __name__ == "__main__":
    losses = main()
    print(f"loss after adaptation: {losses[0]:.4f} at first, {losses[-1]:.4f} after {len(losses)} meta-steps")
