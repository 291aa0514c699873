"""Speed of random numbers and of sorting: millions of elements a second, beside NumPy and (where installed) PyTorch.

`python benchmarks/random_sort.py [elements]`
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tapeflow as tf

try:
    import torch
except ImportError:
    torch = None


def rate(call: Callable[[], Any], elements: int) -> float:
    """Millions of elements a second, the best of several rounds."""
    call()
    best = float("inf")
    for _ in range(7):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return elements / best / 1e6


def contestants(n: int) -> dict[str, dict[str, Callable[[], Any]]]:
    numpy_generator = np.random.Generator(np.random.Philox(1))
    values = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    x = tf.constant(values)
    table: dict[str, dict[str, Callable[[], Any]]] = {
        "uniform": {
            "tapeflow": lambda: tf.random.uniform([n]),
            "numpy": lambda: numpy_generator.random(n, np.float32),
        },
        "normal": {
            "tapeflow": lambda: tf.random.normal([n]),
            "numpy": lambda: numpy_generator.standard_normal(n, np.float32),
        },
        "truncated_normal": {"tapeflow": lambda: tf.random.truncated_normal([n])},
        "sort": {"tapeflow": lambda: tf.sort(x), "numpy": lambda: np.sort(values)},
        "argsort": {"tapeflow": lambda: tf.argsort(x), "numpy": lambda: np.argsort(values, kind="stable")},
        "top_k 100": {"tapeflow": lambda: tf.math.top_k(x, 100), "numpy": lambda: np.argpartition(values, n - 100)},
        "sort rows of 100": {
            "tapeflow": lambda: tf.sort(tf.reshape(x, [-1, 100])),
            "numpy": lambda: np.sort(values.reshape(-1, 100)),
        },
    }
    if torch is not None:
        t = torch.from_numpy(values)
        table["uniform"]["torch"] = lambda: torch.rand(n)
        table["normal"]["torch"] = lambda: torch.randn(n)
        table["sort"]["torch"] = lambda: torch.sort(t)
        table["argsort"]["torch"] = lambda: torch.argsort(t)
        table["top_k 100"]["torch"] = lambda: torch.topk(t, 100)
        table["sort rows of 100"]["torch"] = lambda: torch.sort(t.reshape(-1, 100))
    return table


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    for threads in (1, 0):
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        if torch is not None and threads:
            torch.set_num_threads(threads)
        print(f"{n} float32, {threads or 'all'} thread(s): millions of elements a second")
        for what, calls in contestants(n).items():
            print(f"  {what:18}", "  ".join(f"{who} {rate(call, n):7.1f}" for who, call in calls.items()))


if __name__ == "__main__":
    main()
