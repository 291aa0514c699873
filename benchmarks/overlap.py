"""How much of an input pipeline is hidden behind training: milliseconds per step, alone and together.

`python benchmarks/overlap.py` prints, for pipelines of Python and of NumPy work and for training steps that run eagerly
and in a `tf.function`, the time of the pipeline alone, of the step alone, and of both with `prefetch`. Two cores are
needed: one for the pipeline and one for the step.
"""

from __future__ import annotations

import argparse
import importlib
import time

import numpy as np

STEPS = 40


def milliseconds(run, steps: int = STEPS) -> float:
    run(3)
    start = time.perf_counter()
    run(steps)
    return (time.perf_counter() - start) / steps * 1000


def python_work(loops: int) -> int:
    total = 0
    for i in range(loops):
        total += i * i % 7
    return total


def numpy_work(table: np.ndarray, passes: int) -> np.ndarray:
    for _ in range(passes):
        table = np.sqrt(table * table + 1.0)
    return table


def calibrate(work, target: float) -> int:
    """How many repetitions take `target` milliseconds."""
    count = 1
    while True:
        start = time.perf_counter()
        work(count)
        spent = (time.perf_counter() - start) * 1000
        if spent >= target:
            return max(1, int(count * target / spent))
        count *= 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", default="tapeflow")
    parser.add_argument("--work", type=float, default=5.0, help="milliseconds per batch and per step")
    options = parser.parse_args()
    tf = importlib.import_module(options.library)
    tf.config.threading.set_intra_op_parallelism_threads(1)
    table = np.random.rand(1 << 14)
    works = {
        "python": (python_work, calibrate(python_work, options.work)),
        "numpy": (lambda n: numpy_work(table, n), calibrate(lambda n: numpy_work(table, n), options.work)),
    }

    size = 128
    w = tf.Variable(np.eye(size, dtype=np.float32) * 0.99)

    def layers(x, count: int):
        for _ in range(count):
            x = tf.tanh(tf.matmul(x, w))
        return x

    def train(x, count: int):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(layers(x, count)))
        w.assign_sub(0.001 * tape.gradient(loss, w))
        return loss

    rows = tf.ones([512, size])
    step_by_kind = {}
    for kind in ("eager", "function"):
        count = calibrate(lambda n, kind=kind: run_step(tf, train, rows, n, kind), options.work)
        step_by_kind[kind] = train if kind == "eager" else tf.function(train), max(1, count)

    for name, (work, count) in works.items():

        def batches(work=work, count=count):
            while True:
                work(count)
                yield np.ones([512, size], np.float32)

        for kind, (step, layers_count) in step_by_kind.items():
            spec = tf.TensorSpec([512, size], tf.float32)
            data = tf.data.Dataset.from_generator(batches, output_signature=spec)
            alone = iter(data)
            pipeline = milliseconds(lambda n, it=alone: [next(it) for _ in range(n)])
            training = milliseconds(lambda n, s=step, c=layers_count: [float(s(rows, c)) for _ in range(n)])
            both = iter(data.prefetch(4))
            together = milliseconds(
                lambda n, s=step, c=layers_count, it=both: [float(s(next(it), c)) for _ in range(n)]
            )
            print(
                f"{name:7} pipeline {pipeline:5.1f} ms   {kind:8} step {training:5.1f} ms   together {together:5.1f} ms"
                f"   of the longer one {together / max(pipeline, training):4.2f}"
            )


_functions: dict[int, object] = {}


def run_step(tf, train, rows, n: int, kind: str) -> None:
    """One step of `n` layers, traced before it is timed."""
    if kind == "function":
        if n not in _functions:
            _functions[n] = tf.function(train)
            for _ in range(3):  # traced, planned, run
                _functions[n](rows, n)
        train = _functions[n]
    float(train(rows, n))


if __name__ == "__main__":
    main()
