"""The Hessian of a function of 200 parameters: the Jacobian of a gradient.

python examples/hessian.py
"""

import numpy as np

import tapeflow as tf


def make_problem(parameters: int = 200, examples: int = 50, dtype=tf.float64):
    """Logistic regression: inputs, labels in {0, 1}, and parameters at which to look."""
    random = np.random.default_rng(0)
    x = tf.constant(random.normal(size=(examples, parameters)) / parameters**0.5, dtype)
    labels = tf.constant(random.integers(0, 2, examples), dtype)
    return x, labels, tf.Variable(random.normal(size=parameters), dtype=dtype)


def loss(x, labels, w):
    """The mean cross entropy, and half the square of the parameters."""
    logits = tf.linalg.matvec(x, w)
    entropy = tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.reduce_mean(entropy) + 0.5 * tf.reduce_sum(w * w)


def hessian(x, labels, w):
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = loss(x, labels, w)
        gradient = inner.gradient(y, w)
    return outer.jacobian(gradient, w)


if __name__ == "__main__":
    found = hessian(*make_problem())
    values = tf.linalg.eigvalsh(found)
    print(f"Hessian of shape {tuple(found.shape)}; eigenvalues from {float(values[0]):.4f} to {float(values[-1]):.4f}")
