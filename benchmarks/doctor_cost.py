"""What watching costs: a training step without a doctor, with one that monitors, and with one in full mode.

.venv/bin/python benchmarks/doctor_cost.py

Each step runs in turn with and without, in the same process; the table shows ratios of the medians. The doctor looks
at the first steps of a program more closely: what these cost in full mode beyond the plain ones is a column of its own.
Full mode runs functions eagerly.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext

import tapeflow as tf

FIRST, STEPS, ROUNDS = 20, 60, 7


def problem(width: int, batch: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """An eager training step of a perceptron, and the same as a function."""
    shapes = [(width, width), (width,), (width, width), (width,), (width, 10), (10,)]
    variables = [tf.Variable(tf.random.normal(s, stddev=0.05)) for s in shapes]
    x, y = tf.random.normal([batch, width]), tf.random.uniform([batch], 0, 10, tf.int32)

    def step() -> object:
        with tf.GradientTape() as tape:
            h = x
            for w, b in zip(variables[:-2:2], variables[1:-2:2]):
                h = tf.nn.relu(h @ w + b)
            logits = h @ variables[-2] + variables[-1]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
        for v, dv in zip(variables, tape.gradient(loss, variables)):
            v.assign_sub(1e-4 * dv)
        return loss

    return step, tf.function(step)


def seconds(step: Callable[[], object], context: Callable[[], object]) -> tuple[float, float]:
    """The time of all first steps together, and of one of those that follow."""
    with context():  # type: ignore[attr-defined]
        times = [time.perf_counter()]
        for count in (FIRST, STEPS):
            for _ in range(count):
                step()
            times.append(time.perf_counter())
    return times[1] - times[0], (times[2] - times[1]) / STEPS


def main() -> None:
    modes = {
        "none": nullcontext,
        "monitor": lambda: tf.debugging.Doctor(mode="monitor"),
        "full": lambda: tf.debugging.Doctor(mode="full"),
    }
    print(f"{'step':34}{'plain':>12}{'monitor':>10}{'full':>8}{f'first {FIRST}':>12}")
    for width, batch in ((64, 32), (256, 128), (512, 256)):
        eager, function = problem(width, batch)
        for name, step in (("eager", eager), ("function", function)):
            step()  # functions are traced before the plain ones are timed
            times: dict[str, list[tuple[float, float]]] = {mode: [] for mode in modes}
            for _ in range(ROUNDS):
                for mode, context in modes.items():
                    times[mode].append(seconds(step, context))
            plain = statistics.median(after for _, after in times["none"])
            ratios = [
                statistics.median(b / a for (_, a), (_, b) in zip(times["none"], times[m])) for m in ("monitor", "full")
            ]
            first = statistics.median(b - a for (a, _), (b, _) in zip(times["none"], times["full"]))
            title = f"{name}, {width} wide, batch {batch}"
            print(f"{title:34}{plain * 1e3:9.2f} ms{ratios[0]:9.2f}x{ratios[1]:7.2f}x{first * 1e3:9.0f} ms")


if __name__ == "__main__":
    main()
