"""The log posterior of a mixture of Gaussians with a Wishart prior, and its gradient."""

import math

import numpy as np

import tapeflow as tf

INDEPENDENT = ("alpha", "mu", "q", "l")


def prepare(values):
    d, k = values["d"], values["k"]
    shapes = {"alpha": [k], "mu": [k, d], "q": [k, d], "l": [k, d * (d - 1) // 2]}
    variables = {name: tf.constant(np.reshape(values[name], shapes[name]), tf.float64) for name in INDEPENDENT}
    return variables, tf.constant(values["x"], tf.float64), values["m"], float(values["gamma"])


def log_sum_exp(x):
    greatest = tf.reduce_max(x, -1, keepdims=True)
    return tf.squeeze(greatest, -1) + tf.math.log(tf.reduce_sum(tf.exp(x - greatest), -1))


def triangular(q, below):
    """Lower triangular matrices with exp(q) on the diagonal and `below` under it, column by column."""
    size = q.shape[1]
    where = np.full((size, size), size + below.shape[1])  # the zero at the end
    np.fill_diagonal(where, np.arange(size))
    columns, rows = np.triu_indices(size, 1)
    where[rows, columns] = size + np.arange(below.shape[1])
    return tf.gather(tf.concat([tf.exp(q), below, tf.zeros_like(q[:, :1])], 1), where, axis=1)


@tf.function
def objective(variables, x, m, gamma):
    alpha, mu, q, below = (variables[name] for name in INDEPENDENT)
    (n, d), k = x.shape, alpha.shape[0]
    factors = triangular(q, below)
    whitened = tf.matmul(x, factors, transpose_b=True) - tf.matmul(mu[:, None], factors, transpose_b=True)
    sums = tf.reduce_sum(q, 1)
    beta = alpha + sums - 0.5 * tf.transpose(tf.reduce_sum(tf.square(whitened), 2))
    likelihood = tf.reduce_sum(log_sum_exp(beta)) - n * (d / 2 * math.log(2 * math.pi) + log_sum_exp(alpha))
    degrees = d + m + 1
    log_gamma = d * (d - 1) / 4 * math.log(math.pi) + sum(math.lgamma((degrees - j) / 2) for j in range(d))
    prior = k * (degrees * d * math.log(gamma / math.sqrt(2)) - log_gamma)
    prior += m * tf.reduce_sum(sums) - gamma**2 / 2 * tf.reduce_sum(tf.square(factors))
    return likelihood + prior


@tf.function
def jacobian(variables, x, m, gamma):
    with tf.GradientTape() as tape:
        tape.watch(variables)
        y = objective(variables, x, m, gamma)
    return tape.gradient(y, variables)
