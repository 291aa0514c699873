#!/usr/bin/env python3
"""Branches of one tf.function at the same time, against one operation after the other.

Each program is traced twice, once with `set_inter_op_parallelism_threads(1)`; both
run in turns, and the fastest call of each counts. Usage:

  branches.py [--work cholesky,svd,...] [--seconds 1.0]
"""

import argparse
import time

import numpy as np

import tapeflow as tf


def _matrices(count, size):
    rng = np.random.default_rng(0)
    parts = [rng.standard_normal((size, size)).astype("float32") for _ in range(count)]
    return [tf.constant(p @ p.T + size * np.eye(size, dtype="float32")) for p in parts]


def _towers(steps, batch, units, gradient, count=2):
    """Recurrent networks over the same inputs: two as in a bidirectional layer, or one."""
    rng = np.random.default_rng(0)
    x = tf.constant(rng.standard_normal((steps, batch, units)).astype("float32"))
    w = [tf.Variable(rng.standard_normal((2 * units, units)).astype("float32") * 0.05) for _ in range(count)]

    def loss(x):
        states = [tf.zeros([batch, units])] * count
        for t in range(steps):
            for k, row in enumerate((t, steps - 1 - t)[:count]):
                states[k] = tf.tanh(tf.matmul(tf.concat([x[row], states[k]], 1), w[k]))
        return tf.reduce_sum(states[0] * states[-1])

    def step(x):
        with tf.GradientTape() as tape:
            y = loss(x)
        return tape.gradient(y, w)

    return (step if gradient else loss), [x]


WORK = {
    "cholesky": lambda: (lambda *a: [tf.linalg.cholesky(x) for x in a], _matrices(4, 400)),
    "solve": lambda: (lambda a, b, c, d: (tf.linalg.solve(a, b), tf.linalg.solve(c, d)), _matrices(4, 200)),
    "svd": lambda: (lambda *a: [tf.linalg.svd(x) for x in a], _matrices(4, 100)),
    "eigh_and_qr": lambda: (lambda a, b: (tf.linalg.eigh(a), tf.linalg.qr(b)), _matrices(2, 128)),
    "sort": lambda: (lambda *a: [tf.sort(tf.reshape(x, [-1])) for x in a], _matrices(2, 200)),
    "towers": lambda: _towers(40, 32, 128, False),
    "towers_gradient": lambda: _towers(40, 32, 128, True),
    "one_gradient": lambda: _towers(40, 32, 128, True, count=1),
    "small": lambda: (lambda *a: [tf.linalg.cholesky(x) for x in a], _matrices(4, 8)),
}


def measure(program, args, seconds):
    """The fastest call with branches and without, in seconds."""
    functions = []
    for limit in (0, 1):
        tf.config.threading.set_inter_op_parallelism_threads(limit)
        functions.append(tf.function(program, autograph=False))
        functions[-1](*args)
    best = [float("inf"), float("inf")]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for k, function in enumerate(functions):
            tf.config.threading.set_inter_op_parallelism_threads(k)
            for _ in range(3):
                start = time.perf_counter()
                function(*args)
                best[k] = min(best[k], time.perf_counter() - start)
    tf.config.threading.set_inter_op_parallelism_threads(0)
    return best, len(functions[0].get_concrete_function(*args).graph.branches())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", default=",".join(WORK))
    parser.add_argument("--seconds", type=float, default=1.0)
    options = parser.parse_args()
    print(f"{'work':<16} {'sections':>8} {'serial us':>10} {'branches us':>12} {'ratio':>6}")
    for name in options.work.split(","):
        program, args = WORK[name]()
        (parallel, serial), sections = measure(program, args, options.seconds)
        print(f"{name:<16} {sections:>8} {serial * 1e6:>10.1f} {parallel * 1e6:>12.1f} {serial / parallel:>6.2f}")


if __name__ == "__main__":
    main()
