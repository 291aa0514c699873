"""One numeric derivative of a program's own step: the step runs again in copies of the process, with moved weights."""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import struct
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

_PATIENCE = 5.0  # seconds that a copy may take


class Probe:
    """Two copies of the process that wait at the beginning of a step, to run it with a variable moved to and fro.

    They are forks: each has the random state, the data and the Python frames of this moment. A copy moves the variable,
    goes on until the gradient is asked for, sends the target's value and ends. Its output goes nowhere.
    """

    def __init__(self) -> None:
        self.children: list[tuple[int, int, int]] = []  # process, pipe to it, pipe from it
        self.is_copy = False
        self._result_pipe = -1

    @staticmethod
    def possible() -> bool:
        """Forks are safe while this is the only Python thread of a plain process."""
        return hasattr(os, "fork") and threading.active_count() == 1 and "mpi4py.MPI" not in sys.modules

    def start(self) -> None:
        """Makes the copies. Returns in them, too, when they have been told what to do."""
        for _ in range(2):
            to_child, from_parent = os.pipe()
            to_parent, from_child = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(from_parent)
                os.close(to_parent)
                self._be_copy(to_child, from_child)
                return
            os.close(to_child)
            os.close(from_child)
            self.children.append((child, from_parent, to_parent))

    def _be_copy(self, orders: int, results: int) -> None:
        self.is_copy, self.children = True, []
        order = os.read(orders, 24)
        if len(order) < 24:
            os._exit(0)
        signal.alarm(int(_PATIENCE) + 1)
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        address, step, seed = struct.unpack("<QdQ", order)
        variable = ctypes.cast(address, ctypes.py_object).value  # the copy has the same objects at the same places
        variable.assign_add(np.asarray(step * direction(variable.shape, seed), variable.dtype.as_numpy_dtype))
        self._result_pipe = results

    def answer(self, value: float) -> None:
        """In a copy, at the end of the step."""
        with contextlib.suppress(OSError):
            os.write(self._result_pipe, struct.pack("<d", value))
        os._exit(0)

    def run(self, variable: Any, size: float, seed: int) -> tuple[float, float] | None:
        """The target with the variable moved forth and back; None if a copy did not get there."""
        values: list[float] = []
        for (_, orders, results), sign in zip(self.children, (1.0, -1.0)):
            os.write(orders, struct.pack("<QdQ", id(variable), sign * size, seed))
            ready, _, _ = select.select([results], [], [], _PATIENCE)
            sent = os.read(results, 8) if ready else b""
            if len(sent) == 8:
                values.append(struct.unpack("<d", sent)[0])
        self.end()
        return (values[0], values[1]) if len(values) == 2 else None

    def end(self) -> None:
        """Lets go of the copies."""
        for child, orders, results in self.children:
            os.close(orders)
            os.close(results)
            with contextlib.suppress(OSError):
                os.kill(child, signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.waitpid(child, 0)
        self.children = []


def direction(shape: Any, seed: int) -> np.ndarray[Any, Any]:
    """Normal random numbers of mean square 1, the same for the same seed."""
    numbers = np.asarray(np.random.default_rng(seed).normal(size=tuple(shape)))
    return np.asarray(numbers / np.sqrt(np.mean(numbers * numbers))) if numbers.size else np.asarray(numbers)


def lost_share(
    run: Callable[[float], tuple[float, float] | None], analytic: float, value: float, size: float
) -> float | None:
    """Which share of the sensitivity the gradient misses, in [0, ...); None if it cannot be told, 0. if nothing is."""
    moved = run(size)
    if moved is None or not all(np.isfinite(moved)):
        return None
    numeric = (moved[0] - moved[1]) / (2 * size)
    if not np.isfinite(analytic) or not np.isfinite(value):
        return None
    noise = 8 * np.finfo(np.float32).eps * max(abs(value), abs(moved[0]), abs(moved[1])) / size
    if abs(numeric - analytic) <= 0.01 * max(abs(numeric), abs(analytic)) + noise:
        return 0.0
    return abs(numeric - analytic) / max(abs(numeric), abs(analytic))
