"""The course of one variable over the steps: gradient norms, updates, zeros."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapeflow._src.diagnostics.training.assignments import dot, jumps, norm

_CLOSELY = 30  # steps for which directions are compared
_COPIED_ELEMENTS = 4_000_000  # values and gradients of larger variables are not kept from one step to the next


class VariableHealth:
    """The course of one variable: one entry per sampled step."""

    def __init__(self, name: str, variable: Any, made: tuple[str, int] | None) -> None:
        self.name, self.made = name, made
        self.shape = tuple(variable.shape)
        self.norms: list[float] = []
        self.update_ratios: list[float] = []
        self.zero_steps = 0
        self.calls = 0
        self.dtype, self.trainable = variable.dtype.name, bool(variable.trainable)
        self.zeros = 0.0  # share of exact zeros in the last gradient
        self.sparse = False
        self.values_seen = self.values_changed = 0  # of a variable whose gradients have rows alone
        self.row_steps = 0  # those whose gradient had rows alone
        self.never_zero: np.ndarray[Any, Any] | None = None  # per unit, whether its gradient was ever not zero
        self.values_compared = self.equal_units = 0  # values whose units were compared; whose were alike
        self.zero_run = 0  # how many of the last steps had a gradient of zeros alone
        self.last: np.ndarray[Any, Any] | None = None
        self.last_step: np.ndarray[Any, Any] | None = None  # how it moved before the last gradient
        self.gradient_before: np.ndarray[Any, Any] | None = None  # the last gradient but one
        self._last_gradient: np.ndarray[Any, Any] | None = None
        self._last_value: np.ndarray[Any, Any] | None = None
        self.uphill = self.downhill = 0  # steps along the gradient, and against it
        self.sign_steps = 0  # those along the gradient by the same amount in most elements: by its sign
        self.overshoots = 0  # steps after which the loss grows along their direction: they went past its minimum
        self.summed_steps, self.square_sum = 0, 0.0  # the first steps, and the sum of their squared gradients
        self._gradient_sum: np.ndarray[Any, Any] | None = None
        self.sum_factors: list[float] = []  # steps by the sum of all gradients so far, where they are parallel
        self.jumps = 0  # steps after which nothing is left of the old value
        self.growth = 1.0  # the largest factor by which one of the first steps made it larger
        self.changed = 0
        self.weight_norm = 0.0
        self.first_influence = 0.0  # the norms of the first gradient and of usual weights, multiplied
        self.first_ratio = 0.0  # the norm of the first gradient by that of the first value, or of usual weights
        self.activation: tuple[str, str, int] | None = None  # the next activation behind it, and its line
        self.silent_units: float | None = None  # the share of its results that were zero or below in the first step
        self.index: int | None = None  # on the first tape
        self.first_use = 0  # the order of the first operation that used it, on the first tape
        self.added_to: set[int] = set()  # what the values came from that it was added to, by index
        self.used_once = True  # in the step; what is used twice may cancel itself
        self.layer_place: tuple[str, int] | None = None  # the line that made its Keras layer

    @property
    def place(self) -> tuple[str, int] | None:
        """The line that made it, or its layer."""
        return self.layer_place or self.made

    @property
    def activation_place(self) -> tuple[str, int] | None:
        """The line of the activation behind it; of a Keras layer, the line that made the layer."""
        return (self.activation and self.activation[1:]) or self.layer_place or self.made

    @property
    def steps(self) -> int:
        """All that were looked at."""
        return self.calls + self.row_steps

    def see_rows(self, are_zero: bool, value: np.ndarray[Any, Any]) -> None:
        """One more step with a gradient of rows alone."""
        self.row_steps += 1
        self.zero_steps += are_zero
        if value.size > _COPIED_ELEMENTS or self.values_seen >= _CLOSELY:
            return
        self.values_seen += 1
        self.values_changed += self._last_value is not None and not np.array_equal(self._last_value, value)
        self._last_value = value.copy()

    def see(self, gradient: np.ndarray[Any, Any], value: np.ndarray[Any, Any]) -> None:
        """One more step."""
        self.calls += 1
        g = gradient.reshape(-1)
        self.norms.append(norm(g) / math.sqrt(g.size) if g.size else 0.0)
        flat = value.reshape(-1)
        old_norm, self.weight_norm = self.weight_norm, norm(flat)
        if self.calls == 1:
            size = self.norms[-1] * math.sqrt(g.size)
            self.first_influence = size * max(self.weight_norm, _usual_norm(self.shape))
            self.first_ratio = size / max(self.weight_norm, _usual_norm(self.shape), 1e-12)
        zeros = g.size - np.count_nonzero(g)
        self.zeros = zeros / g.size if g.size else 0.0
        self.zero_steps += bool(zeros == g.size)
        self.zero_run = self.zero_run + 1 if zeros == g.size else 0
        if zeros and gradient.ndim >= 1 and gradient.shape[-1] > 1:
            alive = np.any(gradient.reshape(-1, gradient.shape[-1]) != 0, axis=0)
            self.never_zero = alive if self.never_zero is None else self.never_zero | alive
        elif gradient.ndim >= 1:
            self.never_zero = np.ones(gradient.shape[-1], bool)
        if self.values_compared < 4 and gradient.ndim == 2 and gradient.shape[1] > 1 and zeros < g.size:
            self._compare_units(gradient, value)
        self.last_step, self.gradient_before = None, self._last_gradient
        if self.last is not None:
            step = self.last_step = flat - self.last
            moved = norm(step)
            self.changed += moved > 0
            if self.weight_norm > 1e-3:
                self.update_ratios.append(moved / self.weight_norm)
            if self.calls <= 6 and old_norm > 1e-3 * math.sqrt(flat.size):
                self.growth = max(self.growth, self.weight_norm / old_norm)
            looked_at = self.calls <= _CLOSELY
            self.jumps += looked_at and jumps(self.last, flat)
            if looked_at and moved > 0 and self._last_gradient is not None:
                along = dot(step, self._last_gradient)
                self.uphill += along > 0
                self.sign_steps += along > 0 and _is_of_one_size(step) and not _is_of_one_size(self._last_gradient)
                self.downhill += along < 0
                self.overshoots += dot(step, g) > 0
                self._compare_with_sum(step, moved)
        if self.calls <= 12 and not np.iscomplexobj(g):
            self.summed_steps += 1
            self.square_sum += self.norms[-1] ** 2 * g.size
            self._gradient_sum = g if self._gradient_sum is None else self._gradient_sum + g
        small = value.size <= _COPIED_ELEMENTS
        self.last, self._last_gradient = (flat.copy(), g) if small else (None, None)

    def _compare_units(self, gradient: np.ndarray[Any, Any], value: np.ndarray[Any, Any]) -> None:
        """Counts values, not steps: that units are alike before anything moved them does not say that they stay so."""
        if self.last is not None and np.array_equal(self.last, value.reshape(-1)):
            return
        self.values_compared += 1
        same = np.ptp(value, axis=1).max() == 0 and np.allclose(gradient, gradient[:, :1], rtol=1e-5, atol=0)
        self.equal_units += bool(same)

    def _compare_with_sum(self, step: np.ndarray[Any, Any], moved: float) -> None:
        """Whether a step goes along the sum of all gradients so far, and not along the last one."""
        total, last = self._gradient_sum, self._last_gradient
        if total is None or last is None or self.calls > 12:
            return
        size, own = norm(total), norm(last)
        if min(size, own) == 0 or abs(dot(step, last)) > 0.999 * moved * own:
            return
        if abs(dot(step, total)) > (1 - 1e-5) * moved * size:
            self.sum_factors.append(moved / size)

    def squared_mean_gradient(self) -> float:
        """The square of the length of the mean gradient of the first steps."""
        if self._gradient_sum is None or not self.summed_steps:
            return 0.0
        return norm(self._gradient_sum) ** 2 / self.summed_steps**2

    @property
    def follows_sum(self) -> bool:
        """Whether it is moved by the sum of all gradients since the beginning: they are never set to zero."""
        few = len(self.sum_factors) < 3 or len(self.sum_factors) < min(self.calls, 12) - 4
        return not few and max(self.sum_factors) < 1.001 * min(self.sum_factors)

    def as_dict(self) -> dict[str, Any]:
        dead = None if self.never_zero is None else float(1 - self.never_zero.mean())
        return {
            "name": self.name,
            "shape": list(self.shape),
            "dtype": self.dtype,
            "trainable": self.trainable,
            "layer": self.name.rpartition("/")[0] or None,
            "file": self.place[0] if self.place else None,
            "line": self.place[1] if self.place else None,
            "steps": self.steps,
            "grad_norms": _thinned(self.norms),
            "update_ratios": _thinned(self.update_ratios),
            "zeros": self.zeros,
            "dead_units": dead,
        }


def _is_of_one_size(step: np.ndarray[Any, Any]) -> bool:
    """Whether most elements have the same absolute value."""
    sizes = np.abs(step)
    return step.size >= 4 and float(np.mean(np.isclose(sizes, np.median(sizes), rtol=1e-2))) > 0.6


def _usual_norm(shape: tuple[int, ...]) -> float:
    """The norm that Glorot's initialisation gives a kernel: that of zeros says nothing about its influence."""
    if len(shape) < 2:
        return 0.0
    window = math.prod(shape[:-2])
    return math.sqrt(math.prod(shape) * 2 / max(1, window * (shape[-2] + shape[-1])))


def _thinned(series: list[float], most: int = 100) -> list[float | None]:
    every = max(1, -(-len(series) // most))
    return [None if not math.isfinite(x) else float(f"{x:.4g}") for x in series[::every]]
