"""Derivatives of functions of NumPy arrays from their values alone, each with an estimate of its error.

A directional derivative is a table of central differences with shrinking steps, extrapolated to step 0 (Ridders). The
error is the change between neighbours in that table; the entry with the smallest one is taken, element by element.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

# The ratio of two steps is no simple fraction, so that a periodic function is not met at the same phase twice.
_RATIO, _FIRST_STEP, _ROWS = 1.618, 0.09173, 18
_COMPLEX_STEP = 1e-100

ArrayFunction = Callable[[np.ndarray], np.ndarray]


class Derivative(NamedTuple):
    """A directional derivative of a vector: its elements, their errors, and the derivatives on either side."""

    value: np.ndarray
    error: np.ndarray
    smooth: np.ndarray  # False where the derivatives on the two sides differ
    left: np.ndarray
    right: np.ndarray


def directional_derivative(
    function: ArrayFunction, point: np.ndarray, direction: np.ndarray, step: float | None = None
) -> Derivative:
    """The derivative of `function`, from vectors to vectors, at `point` along `direction`."""
    middle = function(point)
    length = float(np.max(np.abs(direction))) or 1.0
    reach = max(1.0, float(np.max(np.abs(point[direction != 0]), initial=0.0)))
    step = _FIRST_STEP * reach / length if step is None else step / length
    best = np.full(middle.shape, np.nan)
    error = np.full(middle.shape, np.inf)
    rows: list[list[np.ndarray]] = []
    bends: list[np.ndarray] = []
    left = right = best
    epsilon = _epsilon(function(point + 0.7183 * step * direction))
    for _ in range(_ROWS):
        with np.errstate(all="ignore"):
            high, low = function(point + step * direction), function(point - step * direction)
            derivative = (high - low) / (2 * step)
            if not np.all(np.isfinite(derivative)) and np.all(np.isfinite(middle)) and len(rows) < 2:
                rows, step = [], step / 8  # beyond the edge of where the function is defined
                continue
            noise = epsilon * np.maximum(np.abs(middle), np.maximum(np.abs(high), np.abs(low)))
            row = [derivative]
            factor = 1.0
            for earlier in rows[-1] if rows else []:
                factor *= _RATIO**2
                row.append((row[-1] * factor - earlier) / (factor - 1))
                before = rows[-1][min(len(row) - 2, len(rows[-1]) - 1)]
                change = np.maximum(np.abs(row[-1] - row[-2]), np.abs(row[-1] - before)) + noise / step
                better = change < error
                best, error = np.where(better, row[-1], best), np.where(better, change, error)
            left, right = (middle - low) / step, (high - middle) / step
            bends.append(np.abs(right - left) - 64 * noise / step)
        worse = bool(rows) and bool(np.all(np.abs(row[-1] - rows[-1][-1]) >= 2 * error))
        rows.append(row)
        step /= _RATIO
        scale = np.abs(best) + np.abs(middle) + 1e-30
        converged = np.all(error <= 1e-11 * scale) or (worse and bool(np.all(error <= 1e-6 * scale)))
        if len(rows) >= 5 and converged:
            break
    return Derivative(best, error, ~_bends_forever(bends, best), left, right)


def _epsilon(values: np.ndarray) -> float:
    """The relative rounding of a function, read off its values: those of float32 have no digits beyond it."""
    with np.errstate(all="ignore"):
        for dtype in (np.float16, np.float32):
            if values.size and np.all(values == values.astype(dtype)):
                return float(np.finfo(dtype).eps)
    return float(np.finfo(np.float64).eps)


def _bends_forever(bends: list[np.ndarray], value: np.ndarray) -> np.ndarray:
    """Whether the one-sided derivatives of an element stay apart as the step shrinks; else the function is smooth."""
    if len(bends) < 4:
        return np.asarray(~np.isfinite(value))
    first, last = bends[len(bends) // 2 - 1], bends[-1]
    steps = len(bends) - len(bends) // 2
    shrinks = last <= first * _RATIO ** (-0.4 * steps)
    return np.asarray(~shrinks & (last > 1e-5 * (1 + np.abs(value))))


def complex_step_derivative(function: ArrayFunction, point: np.ndarray, direction: np.ndarray) -> np.ndarray | None:
    """The derivative by one step into the complex plane, exact to rounding; None if the function refuses or is deaf.

    Right only for functions that are analytic: compare one derivative with `directional_derivative` before using it.
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("error")
            result = function(point + 1j * _COMPLEX_STEP * direction)
    except Exception:  # whatever a black box raises when it meets a complex number
        return None
    if not np.iscomplexobj(result):
        return None
    return np.asarray(result).imag / _COMPLEX_STEP


class Jacobian(NamedTuple):
    """Derivatives by every input element: columns of values and errors, and how they were found."""

    value: np.ndarray
    error: np.ndarray
    smooth: np.ndarray
    method: str


def jacobian(function: ArrayFunction, point: np.ndarray, method: str = "auto", step: float | None = None) -> Jacobian:
    """All derivatives of `function` at `point`, of shape [outputs, inputs], by "complex" or "real" steps or "auto"."""
    directions = np.eye(point.size)
    if method != "real":
        columns = _complex_columns(function, point, directions, step)
        if columns is not None:
            error = np.finfo(np.float64).eps * 8 * np.abs(columns)
            return Jacobian(columns, error, np.full(columns.shape, True), "complex")
        if method == "complex":
            raise ValueError(
                "numerical_gradient: method='complex' needs a function that is analytic and takes complex arrays; this "
                "one raised an error, gave a real result, or disagrees with real differences. Use method='real'."
            )
    found: list[Any] = [directional_derivative(function, point, direction, step) for direction in directions]
    if not found:
        empty = np.zeros((function(point).size, 0))
        return Jacobian(empty, empty, empty == 0, "real")
    value, error, smooth = (np.stack([f[i] for f in found], axis=1) for i in range(3))
    return Jacobian(value, error, smooth, "real")


def _complex_columns(
    function: ArrayFunction, point: np.ndarray, directions: np.ndarray, step: float | None
) -> np.ndarray | None:
    """The Jacobian by complex steps, if it agrees with real differences along a direction that mixes all elements."""
    if not point.size:
        return None
    mixed = np.random.default_rng(0).uniform(0.5, 1.0, point.size)
    guess = complex_step_derivative(function, point, mixed)
    if guess is None:
        return None
    check = directional_derivative(function, point, mixed, step)
    allowed = 10 * check.error + 1e-6 * np.abs(check.value)
    if not np.all(np.isfinite(guess)) or not np.all(np.abs(guess - check.value) <= allowed) or not check.smooth.all():
        return None
    columns = []
    for direction in directions:
        column = complex_step_derivative(function, point, direction)
        if column is None:
            return None
        columns.append(column)
    return np.stack(columns, axis=1)
