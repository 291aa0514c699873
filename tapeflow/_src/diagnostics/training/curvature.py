"""The largest eigenvalue of the Hessian of a loss, by power iteration over exact Hessian-vector products."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.diagnostics.training.assignments import norm
from tapeflow._src.diagnostics.variable_names import variable_behind
from tapeflow._src.namespace import find_public

_ITERATIONS, _TOLERANCE = 50, 1e-3


class Curvature:
    """Puts a tape of its own around the first step at each line, which records the gradient as well."""

    def __init__(self) -> None:
        self.eigenvalues: dict[tuple[str, int], dict[str, Any]] = {}  # by the line that asks for gradients
        self._opened: set[tuple[str, int]] = set()
        self._tape: Any = None

    def begin_step(self, place: tuple[str, int]) -> None:
        """A tape is about to open at a line."""
        self.end()
        if place not in self._opened:
            self._opened.add(place)
            self._tape = find_public("GradientTape")(persistent=True)
            self._tape.__enter__()

    def end(self) -> Any:
        """Stops recording; the tape, if there was one."""
        tape, self._tape = self._tape, None
        if tape is not None:
            tape.__exit__(None, None, None)
        return tape

    def see(self, place: tuple[str, int], values: list[Any], sources: list[Any], gradients: list[Any]) -> None:
        """The gradients of the step; those of one number by dense variables are differentiated again."""
        tape = self.end()
        pairs = [
            (variable_behind(s), g)
            for s, g in zip(sources, gradients)
            if g is not None and not hasattr(g, "indices") and isinstance(variable_behind(s), _core.Variable)
        ]
        if tape is None or not pairs or len(values) != 1 or values[0].ndim or not np.isfinite(values[0]):
            return
        self.eigenvalues[place] = _largest(tape, [v for v, _ in pairs], [g for _, g in pairs])


def _largest(tape: Any, variables: list[Any], gradients: list[Any]) -> dict[str, Any]:
    """Power iteration: the eigenvalue of the largest size, its sign included, and how far the last two differ."""
    random = np.random.default_rng(0)
    way = [random.normal(size=v.shape) for v in variables]
    value, change, count = 0.0, float("inf"), 0
    while count < _ITERATIONS and change > _TOLERANCE * abs(value):
        count += 1
        length = norm(np.concatenate([w.reshape(-1) for w in way]))
        if length == 0:
            return {"eigenvalue": 0.0, "iterations": count, "converged": True}
        way = [w / length for w in way]
        seeds = [find_public("constant")(w, g.dtype) for w, g in zip(way, gradients)]
        product = tape.gradient(gradients, variables, output_gradients=seeds, unconnected_gradients="zero")
        image = [np.asarray(find_public("convert_to_tensor")(p).numpy(), np.float64) for p in product]
        before, value = value, float(sum(np.vdot(w, i) for w, i in zip(way, image)))
        change = abs(value - before)
        way = image
    return {"eigenvalue": value, "iterations": count, "converged": change <= _TOLERANCE * abs(value)}
