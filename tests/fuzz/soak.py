"""python -m tests.fuzz.soak STEPS: many steps in one process, and what must hold all along.

Memory stays flat; a step whose allocation fails raises ResourceExhaustedError and leaves variables as they were; an
interrupt ends a step and no more; ten thousand signatures of one function are traced and let go.
"""

from __future__ import annotations

import gc
import os
import random
import resource
import signal
import sys
import warnings

import numpy as np

import tapeflow as tf


def resident() -> int:
    """The memory of this process in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


class Model:
    """A small network with a recurrent loop, a custom gradient and an embedding, trained with momentum."""

    def __init__(self) -> None:
        chance = np.random.default_rng(0)
        shapes = [(20, 8), (8, 8), (8, 1)]
        self.weights = [tf.Variable(chance.normal(size=shape).astype(np.float32) * 0.1) for shape in shapes]
        self.momenta = [tf.Variable(tf.zeros_like(w)) for w in self.weights]
        self.traced = tf.function(self.step)

    def step(self, ids: tf.Tensor, wanted: tf.Tensor) -> tf.Tensor:
        table, inner, last = self.weights
        with tf.GradientTape() as tape:
            h = tf.reduce_mean(tf.gather(table, ids), axis=1)
            for _ in range(3):
                h = tf.tanh(h @ inner)
            loss = tf.reduce_mean(tf.square(h @ last - wanted))
        for w, m, g in zip(self.weights, self.momenta, tape.gradient(loss, self.weights)):
            m.assign(0.9 * m + tf.convert_to_tensor(g))
            w.assign_sub(0.01 * m)
        return loss


def batch(number: int) -> tuple[tf.Tensor, tf.Tensor]:
    chance = np.random.default_rng(number % 64)
    ids = chance.integers(0, 20, (4, 5))
    return tf.constant(ids), tf.constant((ids.sum(1, keepdims=True) / 100).astype(np.float32))


def check_flat_memory(steps: int) -> str:
    model = Model()
    batches = [batch(i) for i in range(64)]
    settle, first = max(steps // 10, 100), 0
    for number in range(steps):
        run = model.step if number % 4 == 0 else model.traced
        run(*batches[number % 64])
        if number == settle:
            gc.collect()
            first = resident()
    gc.collect()
    grown = resident() - first
    assert grown < 8 * 2**20, f"memory grew by {grown / 2**20:.1f} MiB in {steps - settle} steps"
    return f"{steps} steps: memory grew by {max(grown, 0) / 2**20:.1f} MiB"


def check_failing_allocations(times: int) -> str:
    """Allocations that exceed the limit of the process, at random sizes: a typed error, and everything as before."""
    model = Model()
    model.traced(*batch(0))
    chance, refused = random.Random(0), 0
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    for number in range(times):
        before = [w.numpy() for w in model.weights]
        resource.setrlimit(resource.RLIMIT_AS, (resident() + 6 * 2**30, hard))
        try:
            with tf.GradientTape() as tape:
                x = model.weights[1] * 2.0
                tf.reduce_sum(tf.ones([chance.randrange(2**31, 2**33)]) * tf.reduce_sum(x))
        except tf.errors.ResourceExhaustedError:
            refused += 1
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        assert all(np.array_equal(a, w.numpy()) for a, w in zip(before, model.weights))
        assert np.isfinite(model.traced(*batch(number)).numpy())
        assert tape.gradient(x, model.weights[1]) is not None
    assert refused, "no allocation failed"
    return f"{times} allocations beyond the limit: {refused} refused with ResourceExhaustedError"


def check_interrupts(times: int) -> str:
    model = Model()
    interrupted, armed = 0, False

    def interrupt(*_: object) -> None:
        if armed:
            raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    for number in range(times):
        try:
            armed = True
            signal.setitimer(signal.ITIMER_REAL, random.Random(number).uniform(1e-4, 3e-3))
            for i in range(50):
                model.step(*batch(i))
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        assert np.isfinite(model.step(*batch(0)).numpy())
    return f"{times} runs with an interrupt: {interrupted} interrupted, all went on"


def check_signatures(count: int) -> str:
    square = tf.function(lambda x, n: tf.reduce_sum(x * x) * n)
    for number in range(count):
        assert square(tf.ones([3]), number).numpy() == 3.0 * number
    gc.collect()
    before = resident()
    del square
    gc.collect()
    return f"{count} signatures traced: {(before - resident()) / 2**20:.0f} MiB given back"


def main(steps: int) -> None:
    """All checks; the smaller ones grow with the number of steps."""
    warnings.simplefilter("ignore")
    few = max(steps // 1000, 10)
    for check, count in ((check_flat_memory, steps), (check_failing_allocations, few), (check_interrupts, few),
                         (check_signatures, max(steps // 100, 100))):  # fmt: skip
        print(check(count), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
