"""What watching costs: a training step without a doctor, with one that monitors, and with one in full mode.

.venv/bin/python benchmarks/doctor_cost.py

Each step runs in turn with and without, in the same process; the table shows ratios of the medians. The doctor looks
at the first steps of a program more closely: what these cost in full mode beyond the plain ones is a column of its own.
Full mode runs functions eagerly for 200 steps, and then in turn with stretches of calls as graphs if they are small:
for steps below a millisecond the ratio is that of 4,000 later ones, and the first 200 have a column of their own.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from contextlib import nullcontext

import tapeflow as tf

FIRST, WATCHED, ROUNDS = 20, 200, 7
SHORT = 1e-3  # seconds of a step


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


def seconds(
    step: Callable[[], object], context: Callable[[], object], counts: tuple[int, ...]
) -> tuple[float, float, float]:
    """The time of the first steps together, of one of the next ones, and of one of those that follow."""
    with context():  # type: ignore[attr-defined]
        times = [time.perf_counter()]
        for count in counts:
            for _ in range(count):
                step()
            times.append(time.perf_counter())
    first, watched, later = (b - a for a, b in itertools.pairwise(times))
    return first, watched / counts[1], later / counts[2]


def main() -> None:
    modes = {
        "none": nullcontext,
        "monitor": lambda: tf.debugging.Doctor(mode="monitor"),
        "full": lambda: tf.debugging.Doctor(mode="full"),
    }
    print(f"{'step':34}{'plain':>12}{'monitor':>10}{'full':>8}{f'to {WATCHED}':>8}{f'first {FIRST}':>12}")
    for width, batch in ((64, 32), (256, 128), (512, 256)):
        eager, function = problem(width, batch)
        for name, step in (("eager", eager), ("function", function)):
            step()  # functions are traced before the plain ones are timed
            _, usual, _ = seconds(step, nullcontext, (1, 10, 1))
            counts = (FIRST, WATCHED - FIRST, 4000) if usual < SHORT else (FIRST, 20, 40)
            times: dict[str, list[tuple[float, float, float]]] = {mode: [] for mode in modes}
            for _ in range(ROUNDS):
                for mode, context in modes.items():
                    times[mode].append(seconds(step, context, counts))
            plain = statistics.median(after for *_, after in times["none"])
            ratios = [
                statistics.median(b[column] / a[column] for a, b in zip(times["none"], times[mode]))
                for mode, column in (("monitor", 2), ("full", 2), ("full", 1))
            ]
            first = statistics.median(b[0] - a[0] for a, b in zip(times["none"], times["full"]))
            title = f"{name}, {width} wide, batch {batch}"
            shown = f"{ratios[0]:9.2f}x{ratios[1]:7.2f}x{ratios[2]:7.2f}x"
            print(f"{title:34}{plain * 1e3:9.2f} ms{shown}{first * 1e3:9.0f} ms")


if __name__ == "__main__":
    main()
