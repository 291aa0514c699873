"""Our compiled mode against our eager one: the steps of each workload in turns, in one process.

    python benchmarks/workloads/modes.py [NAME ...] [--seconds 4]

Prints the least processor time of a step in both modes, and eager / compiled: below 1, tf.function made it slower. Two
processes that are timed one after the other differ by more on a busy machine.
"""

import argparse
import math
import time

from values import VALUES
from worker import load


def least_times(steps: list, seconds: float) -> list:
    """The least processor time of each step, in turns for at least eight rounds."""
    best, end, rounds = [math.inf] * len(steps), time.perf_counter() + seconds, 0
    while time.perf_counter() < end or rounds < 8:
        rounds += 1
        for i, step in enumerate(steps):
            start = time.process_time()
            step()
            best[i] = min(best[i], time.process_time() - start)
    return best


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(VALUES))
    parser.add_argument("--seconds", type=float, default=4.0, help="of each workload")
    options = parser.parse_args()
    train = load("tapeflow")
    for name in options.names or VALUES:
        steps = [train.build(name, VALUES[name](), compiled) for compiled in (False, True)]
        for step in steps:
            step()
        eager, compiled = least_times(steps, options.seconds)
        print(f"{name:22} {eager * 1e3:9.3f} ms {compiled * 1e3:9.3f} ms {eager / compiled:6.2f}", flush=True)


if __name__ == "__main__":
    main()
