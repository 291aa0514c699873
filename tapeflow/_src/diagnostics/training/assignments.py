"""Assignments to variables beside the optimizers: what changes weights from outside, and at which line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.source_line import source_line

_MOST_STEPS = 1000
_FEWEST = 3  # steps in a row after which weights were replaced


class Assignments:
    """Is notified of every assignment, and of the steps in between."""

    def __init__(self, guard: Callable[..., None]) -> None:
        self._guard = guard  # calls what reads values, so that no tape sees it
        self.changed: set[int] = set()  # variables, by id, that anything changed after they were made
        self.changed_in_steps: set[int] = set()  # those that the program itself changed after its first step
        self.inside_optimizer = False
        self.listening = True  # not while the doctor works
        self.on_change: Callable[[Any, tuple[Any, int]], None] | None = None  # called before a change by the program
        self._replaced: dict[tuple[Any, int], dict[int, list[int]]] = {}  # by instruction and variable: in which steps
        self._names: dict[int, Any] = {}
        self._raw_places: dict[int, tuple[Any, int]] = {}  # by variable: the code and instruction that changed it last
        self._step = 0
        self._applied_step: dict[int, int] = {}

    def see_step(self) -> None:
        self._step += 1

    @property
    def places(self) -> dict[int, tuple[str, int]]:
        """By variable: the line that changed it last."""
        return {key: source_line(*raw) for key, raw in self._raw_places.items()}

    def see_applied(self, variable: Any) -> None:
        """An optimizer is about to change it."""
        self._raw_places[id(variable)] = _core.current_line()
        self._applied_step[id(variable)] = self._step
        self.changed.add(id(variable))

    def see(self, variable: Any, how: str) -> None:
        """The observer of the core."""
        if self.inside_optimizer or not self.listening:
            return
        key = id(variable)
        if key not in self._names:
            self._names[key] = variable
            self.changed.add(key)
        if self._step:
            self.changed_in_steps.add(key)
        place = self._raw_places[key] = _core.current_line()
        if self.on_change is not None:
            self._guard(self.on_change, variable, place)
        if how == "assign" and key in self._applied_step:
            steps = self._replaced.setdefault(place, {}).setdefault(key, [])
            if len(steps) < _MOST_STEPS:
                steps.append(self._step)

    def resets(self, unchanged: set[int], jumping: set[int]) -> Iterator[tuple[tuple[str, int], Any]]:
        """Lines that replace, step after step, what the optimizer made of a variable."""
        for place, steps_by_variable in self._replaced.items():
            for key, steps in steps_by_variable.items():
                often = len(set(steps)) >= _FEWEST and len(set(steps)) >= 0.8 * (max(steps) - min(steps) + 1)
                if often and (key in unchanged or key in jumping):
                    yield source_line(*place), self._names[key]
                    break


def weights_changed(place: tuple[str, int], name: str, steps: int) -> Finding:
    """The finding for a line that undoes the optimizer's work."""
    return Finding(
        "weights-changed",
        "severe",
        f"an optimizer changes {name}, but this line gives it other values before the next step",
        *place,
        variable=name,
        evidence={"steps": steps},
        remedy="Take set_weights, assign, or the restored checkpoint out of the loop.",
        confidence=0.9,
    )


def jumps(before: np.ndarray[Any, Any], after: np.ndarray[Any, Any]) -> bool:
    """Whether a variable has nothing in common with what it was: a new draw, not a step."""
    size, step = norm(before), after - before
    return size > 1e-6 and norm(step) > 0.7 * size


def dot(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """The inner product of two vectors. Not by a threaded library: waking its threads costs more than the sum."""
    return float(np.vdot(a, b).real) if np.iscomplexobj(a) else float(np.einsum("i,i", a, b))


def norm(a: np.ndarray[Any, Any]) -> float:
    """The length of a vector, also where its squares are too large for its dtype."""
    square = dot(a, a)
    if square == math.inf and a.dtype != np.float64:
        a = a.astype(np.float64)
        square = dot(a, a)
    return math.sqrt(max(square, 0.0))
