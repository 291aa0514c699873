"""Changes by hand along a gradient that an optimizer applies as well: each step is made twice."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.frames import user_frames
from tapeflow._src.diagnostics.source_line import source_line
from tapeflow._src.diagnostics.training.assignments import dot, norm
from tapeflow._src.diagnostics.variable_names import name_of_variable

_STEPS = 12
_FEWEST = 3
_MOST_ELEMENTS = 1_000_000
_ALIGNED = 1 - 1e-6  # the cosine of what is the same direction but for rounding
_SAME_RATE = 1e-3  # how far the rates of two steps of a scalar may be apart


class ChangesByHand:
    """Compares what the program does to variables itself with their gradients of the same step."""

    def __init__(self, report: Callable[[Finding | None], None]) -> None:
        self._report = report
        self._steps = 0
        self._gradients: dict[int, Any] = {}  # of the step, by variable
        self._open: dict[int, tuple[Any, np.ndarray[Any, Any], Any]] = {}  # changed: its value before, and where
        self._along: dict[int, tuple[Any, Any]] = {}  # changed along the gradient in this step, and where
        self._moves: dict[int, np.ndarray[Any, Any]] = {}  # the last change of each variable by the program
        self._applied: dict[int, Any] = {}  # by optimizers, in this step, and where
        self._counts: dict[Any, int] = {}  # by the code and instruction of the change
        self._last_scalars: dict[int, tuple[float, float]] = {}  # by variable: its last gradient and change

    def see_step(self, pairs: list[tuple[Any, Any]], variables: list[Any]) -> bool:
        """A call of gradient gave these pairs of source and gradient. Whether changes of this step are looked at."""
        self.end_step()
        self._steps += 1
        looked_at = self._steps <= _STEPS
        self._gradients = {id(v): gradient for v, (_, gradient) in zip(variables, pairs)} if looked_at else {}
        if not looked_at:
            self._moves.clear()
        return looked_at

    def see_change(self, variable: Any, place: tuple[Any, int]) -> None:
        """The program is about to change a variable."""
        key = id(variable)
        gradient = self._gradients.get(key)
        if gradient is None or hasattr(gradient, "indices") or variable.shape.num_elements() > _MOST_ELEMENTS:
            return
        if self._applied.get(key) == place:  # it is the optimizer that changes it
            return
        self._settle(key)
        self._open[key] = (variable, np.array(variable.numpy()).reshape(-1), place)

    def gradient_of(self, variable: Any) -> Any:
        """The gradient that the step gave for a variable; None after the first steps."""
        return self._gradients.get(id(variable))

    def see_apply(self, variable: Any) -> None:
        """An optimizer is about to change a variable."""
        self._settle(id(variable))
        self._applied[id(variable)] = _core.current_line()

    def _settle(self, key: int) -> None:
        """Looks at the change of a variable that was open."""
        if key not in self._open or key not in self._gradients:
            return
        variable, before, place = self._open.pop(key)
        moved = np.asarray(variable.numpy()).reshape(-1) - before
        gradient = np.asarray(self._gradients[key].numpy()).reshape(-1)
        last = self._moves.get(key)
        self._moves[key] = moved
        if last is not None and norm(last + moved) < _SAME_RATE * norm(moved):
            return  # it takes back a trial step
        size = norm(moved) * norm(gradient) if moved.shape == gradient.shape else 0.0
        if size == 0 or dot(moved, gradient) > -_ALIGNED * size:
            return
        if moved.size > 1 or self._has_a_rate(key, float(gradient[0]), float(moved[0])):
            self._along[key] = (variable, place)

    def _has_a_rate(self, key: int, gradient: float, moved: float) -> bool:
        """Whether the changes of a scalar, which has no direction, go with its gradient from one step to the next."""
        before, change = self._last_scalars.get(key, (gradient, 0.0))
        self._last_scalars[key] = (gradient, moved)
        if math.isclose(before, gradient, rel_tol=10 * _SAME_RATE):
            return False
        return math.isclose(moved * before, change * gradient, rel_tol=_SAME_RATE)

    def end_step(self) -> None:
        """Counts the variables that were moved along their gradient, by hand and by an optimizer."""
        if not self._open and not self._along and not self._applied:
            return
        for key in list(self._open):
            self._settle(key)
        for variable, place in [about for key, about in self._along.items() if key in self._applied]:
            self._counts[place] = self._counts.get(place, 0) + 1
            if self._counts[place] == _FEWEST:
                name = name_of_variable(variable, user_frames())
                self._report(
                    Finding(
                        "applied-twice", "severe",
                        f"{name} is moved along its gradient here, and by an optimizer in the same step",
                        *source_line(*place), variable=name, evidence={"steps": _FEWEST},
                        remedy="Leave one of them out: apply_gradients, or the assignment.", confidence=0.9,
                    )
                )  # fmt: skip
        self._open, self._along, self._applied = {}, {}, {}
