"""Numeric derivatives of a program's own step: the step runs again in copies of the process, with moved weights."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import select
import signal
import struct
import sys
import threading
import time
import warnings
from typing import Any, NamedTuple

import numpy as np

from tapeflow._src import _core
from tapeflow._src.ops.random.seeds import fork_copy

_PATIENCE = 5.0  # seconds that one run of the step may take
_BUDGET = 10.0  # seconds for all runs of a probe
# Address, step, calls of gradient to pass by, whether the direction is that of the weights; target, derivative.
_ORDER, _ANSWER = "<QdQ?", "<dd"
_ANSWERED = 17  # exit code of a copy that sent its answer
# Packages of notebooks and debuggers, whose threads wait for messages that a copy does not get.
_IDLE = {"ipykernel", "IPython", "zmq", "tornado", "debugpy", "_pydevd_bundle"}


class Probe:
    """A copy of the process that waits at the beginning of a step, and runs it as often as it is asked to.

    The copy is a fork: it has the random state, the data and the Python frames of that moment. For each run it forks
    again: that copy moves a variable, goes on until the gradient is asked for, sends the target's value and ends. Its
    output goes nowhere.
    """

    def __init__(self) -> None:
        self.is_copy = False
        self.calls = 0  # of gradient on the tape, so far
        self.is_sure = True  # whether everything that was asked for could be measured
        self._server, self._orders, self._results = 0, -1, -1
        self._moved: Any = None
        self._way: Any = None  # the direction, in a copy
        self._along_weights = False
        self._accumulator: Any = None  # in a copy that runs in forward mode
        self._spent = 0.0

    @staticmethod
    def possible() -> bool:
        """Forks are safe while this is the only thread of a plain process that runs Python, beside a notebook's."""
        if not hasattr(os, "fork") or "mpi4py.MPI" in sys.modules:
            return False
        here = threading.current_thread()
        return all(thread is here or _only_waits(thread) for thread in threading.enumerate())

    def start(self) -> None:
        """Makes the copy. Returns in its copies, too, when they have received their task."""
        to_copy, from_here = os.pipe()
        to_here, from_copy = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that there are other threads
            self._server = fork_copy()
        if self._server == 0:
            os.close(from_here)
            os.close(to_here)
            self.is_copy = True
            self._serve(to_copy, from_copy)
            return
        os.close(to_copy)
        os.close(from_copy)
        self._orders, self._results = from_here, to_here

    def _serve(self, orders: int, results: int) -> None:
        """In the copy: a fork for each order. Returns in these forks only."""
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        while True:
            order = os.read(orders, struct.calcsize(_ORDER))
            if len(order) < struct.calcsize(_ORDER):
                os._exit(0)
            child = fork_copy()
            if child == 0:
                self._results = results
                self._begin_run(*struct.unpack(_ORDER, order))
                return
            _, status = os.waitpid(child, 0)
            if os.waitstatus_to_exitcode(status) != _ANSWERED:
                os.write(results, struct.pack(_ANSWER, np.nan, np.nan))

    def _begin_run(self, address: int, step: float, calls: int, along_weights: bool) -> None:
        signal.alarm(int(_PATIENCE))
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (a notebook has its own)
        self._moved, self.calls = ctypes.cast(address, ctypes.py_object).value, calls  # copies have the same addresses
        if not isinstance(self._moved, _core.Variable):  # it was made after the copy
            os._exit(1)
        self._way = direction_at(self._moved, along_weights)
        if math.isinf(step):
            package = sys.modules["tapeflow"]
            way = np.asarray(self._way, self._moved.dtype.as_numpy_dtype)
            self._accumulator = package.autodiff.ForwardAccumulator(self._moved, package.constant(way))
            self._accumulator.__enter__()
        elif step:
            move = np.asarray(step * self._way, self._moved.dtype.as_numpy_dtype)
            self._moved.assign_add(move)
        else:
            package = sys.modules["tapeflow"]
            package.stop_gradient = package.identity  # type: ignore[attr-defined]  # in this copy alone

    def answer(self, targets: list[Any], pairs: list[tuple[Any, Any]]) -> None:
        """In a copy, when a gradient is asked for: sends the target's value and the derivative, and ends."""
        if self.calls > 0:
            self.calls -= 1
            return
        value = total_of(targets)
        slope = next((_along(g, self._way) for v, g in pairs if v is self._moved and g is not None), 0.0)
        if self._accumulator is not None:
            slope = total_of([self._accumulator.jvp(t) for t in targets if t is not None])
        with contextlib.suppress(OSError):
            os.write(self._results, struct.pack(_ANSWER, value, slope))
        os._exit(_ANSWERED)

    def _run(self, variable: Any, step: float) -> tuple[float, float] | None:
        """The target's value and the derivative with the variable moved; None if the step did not get there."""
        if self._orders < 0 or self._spent > _BUDGET:
            return None
        start = time.perf_counter()
        answer = b""
        with contextlib.suppress(OSError):
            os.write(self._orders, struct.pack(_ORDER, id(variable), step, self.calls, self._along_weights))
            ready, _, _ = select.select([self._results], [], [], _PATIENCE + 1)
            answer = os.read(self._results, struct.calcsize(_ANSWER)) if ready else b""
        self._spent += time.perf_counter() - start
        if len(answer) < struct.calcsize(_ANSWER):
            self.end()
            return None
        value, slope = struct.unpack(_ANSWER, answer)
        return (value, slope) if np.isfinite(value) else None

    def forward(self, variable: Any) -> float | None:
        """The derivative by forward mode along the direction; None if the step did not get there."""
        answer = self._run(variable, math.inf)
        return None if answer is None else answer[1]

    def sides(self, variable: Any, value: float, scale: float = 1.0) -> tuple[float, float, float] | None:
        """The differences to the left and to the right of the target's value, and their rounding error."""
        weights = np.asarray(variable.numpy(), np.float64)
        size = scale * 1e-3 * max(float(np.sqrt(np.mean(weights * weights))) if weights.size else 0.0, 1e-1)
        right, left = self._run(variable, size), self._run(variable, -size)
        if right is None or left is None:
            return None
        noise = 8 * float(np.finfo(np.float32).eps) * max(abs(value), abs(right[0]), abs(left[0])) / size
        return (value - left[0]) / size, (right[0] - value) / size, noise

    def measure(self, variable: Any, gradient: Any, value: float, has_stops: bool) -> Sensitivity | None:
        """The derivative of the target along one direction in the variable's space; None if nothing is sure.

        `has_stops` asks for the derivative that the program would have if `tf.stop_gradient` let gradients pass.
        """
        if not np.isfinite(value):
            return None
        found = self._measure(variable, gradient, value, has_stops)
        if found is not None and found.lost_elsewhere() == 0.0:  # a penalty moves most along the weights themselves
            self._along_weights = True
            second = self._measure(variable, gradient, value, has_stops)
            self._along_weights = False
            if second is not None and second.lost_elsewhere() > 0.0:
                return second
        return found

    def _measure(self, variable: Any, gradient: Any, value: float, has_stops: bool) -> Sensitivity | None:
        weights = np.asarray(variable.numpy(), np.float64)
        rms = max(float(np.sqrt(np.mean(weights * weights))) if weights.size else 0.0, 1e-1)
        analytic = _along(gradient, direction_at(variable, self._along_weights))
        found = self._difference(variable, analytic, 1e-2 * rms) or self._difference(variable, analytic, 1e-3 * rms)
        if found is None:
            return None
        through = self._run(variable, 0.0) if has_stops else None
        whole = analytic if through is None else through[1]
        # What stop_gradient lets pass has a curvature of its own, which the differences are not corrected for.
        return Sensitivity(
            found[0], analytic, whole, found[1], norm_of(gradient), 0.01 if has_stops else 0.002
        )  # fmt: skip

    def _difference(self, variable: Any, analytic: float, size: float) -> tuple[float, float] | None:
        """The numeric derivative and its rounding error; None if two sizes disagree, as at a jump or kink."""
        coarse = self._slope(variable, analytic, size)
        fine = self._slope(variable, analytic, 0.3 * size) if coarse is not None else None
        if coarse is None or fine is None:
            return None
        agrees = abs(coarse[0] - fine[0]) <= 0.2 * abs(fine[0] - analytic) + fine[1]
        return fine if agrees else None

    def _slope(self, variable: Any, analytic: float, size: float) -> tuple[float, float] | None:
        """A central difference, less what the gradient says about its curvature, and its rounding error."""
        sides = [self._run(variable, step) for step in (size, -size)]
        if sides[0] is None or sides[1] is None:
            return None
        (high, above), (low, below) = sides[0], sides[1]
        bend = (above + below - 2 * analytic) / 6  # of the mean slope between the two, by Simpson's rule
        return (high - low) / (2 * size) - bend, 8 * float(np.finfo(np.float32).eps) * max(abs(high), abs(low)) / size

    def end(self) -> None:
        """Lets go of the copies."""
        if self._orders < 0:
            return
        os.close(self._orders)
        os.close(self._results)
        self._orders = -1
        with contextlib.suppress(OSError):
            os.killpg(self._server, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.kill(self._server, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.waitpid(self._server, 0)


def _only_waits(thread: threading.Thread) -> bool:
    """Whether a thread belongs to a notebook or debugger, by its class or by the function that it runs."""
    homes = (type(thread).__module__, getattr(getattr(thread, "_target", None), "__module__", None) or "")
    return any(home.partition(".")[0] in _IDLE for home in homes)


class Sensitivity(NamedTuple):
    """Derivatives of the target along one direction."""

    numeric: float
    analytic: float
    through: float  # as analytic, if tf.stop_gradient let gradients pass
    noise: float
    typical: float = 0.0  # the norm of the gradient: how large derivatives along directions usually are
    smallest: float = 0.01  # share that can be told from the error of the differences

    def lost_at_stops(self) -> float:
        """The share that `tf.stop_gradient` takes away; 0. if it is too small to measure."""
        return self._share(self.through, self.analytic)

    def lost_elsewhere(self) -> float:
        """The share that is lost where nothing is recorded; 0. if it is too small to measure."""
        return self._share(self.numeric, self.through)

    def _share(self, whole: float, part: float) -> float:
        lost = abs(whole - part)
        largest = max(abs(self.numeric), abs(self.analytic), self.typical)
        return 0.0 if lost <= self.smallest * largest + self.noise else lost / (lost + abs(part))


def total_of(targets: list[Any]) -> float:
    """The sum of all elements of the targets: what a gradient is the derivative of."""
    return sum(float(np.sum(t.numpy())) for t in targets if t is not None)


def norm_of(gradient: Any) -> float:
    """The Euclidean norm of a gradient, dense or sparse."""
    return float(np.linalg.norm(np.asarray(getattr(gradient, "values", gradient).numpy(), np.float64)))


def along(gradient: Any, variable: Any) -> float:
    """The derivative that a gradient, dense or sparse, gives along the direction of random numbers."""
    return _along(gradient, direction(variable.shape))


def _along(gradient: Any, way: np.ndarray[Any, Any]) -> float:
    if hasattr(gradient, "indices"):
        rows = way[np.asarray(gradient.indices.numpy())]
        return float(np.sum(np.asarray(gradient.values.numpy(), np.float64) * rows))
    return float(np.sum(np.asarray(gradient.numpy(), np.float64) * way))


def direction_at(variable: Any, along_weights: bool) -> np.ndarray[Any, Any]:
    """A direction of mean square 1: that of the variable's own value, or of random numbers."""
    value = np.asarray(variable.numpy(), np.float64)
    size = math.sqrt(float(np.mean(value * value))) if along_weights and value.size else 0.0
    return value / size if size > 0 else direction(variable.shape)


def direction(shape: Any) -> np.ndarray[Any, Any]:
    """Normal random numbers of mean square 1, always the same."""
    numbers = np.asarray(np.random.default_rng(7).normal(size=tuple(shape)))
    return np.asarray(numbers / np.sqrt(np.mean(numbers * numbers))) if numbers.size else np.asarray(numbers)
