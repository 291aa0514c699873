"""Whether gradients go where they belong: to their own variables, once, by one optimizer, and not added up forever."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.program import user_frames
from tapeflow._src.diagnostics.source_line import source_line
from tapeflow._src.diagnostics.variable_names import name_of_variable, variable_behind

_KEPT_STEPS = 12


class AppliedGradients:
    """Follows gradients from `tape.gradient` to `apply_gradients`."""

    def __init__(self, report: Callable[[Finding | None], None]) -> None:
        self._report = report
        self.optimizer: Any = None
        self._source_by_gradient: dict[int, Any] = {}
        self._alive: list[list[Any]] = []
        self._applied: dict[tuple[int, int], int] = {}  # gradient and variable, to the number of the step
        self._optimizers: dict[int, set[int]] = {}  # variable, to those that changed it since the last gradient
        self._sums: dict[int, np.ndarray[Any, Any]] = {}
        self._summed_applies = 0
        self._applies = 0
        self._sum_place: tuple[str, int] | None = None
        self.ever_applied: set[int] = set()
        self._asked: dict[int, tuple[Any, tuple[str, int]]] = {}
        self._steps = 0

    def see_step(self, place: tuple[str, int], pairs: list[tuple[Any, Any]]) -> None:
        """A call of gradient that gave these."""
        self._steps += 1
        self._optimizers.clear()
        self._alive.append([g for _, g in pairs])
        for source, gradient in pairs:
            self._source_by_gradient[id(gradient)] = variable_behind(source)
            self._asked[id(variable_behind(source))] = (source, place)
            if self._steps <= _KEPT_STEPS and not hasattr(gradient, "indices"):
                variable = id(variable_behind(source))
                array = np.asarray(gradient.numpy(), np.float64)
                before = self._sums.get(variable)
                self._sums[variable] = array if before is None or before.shape != array.shape else before + array
        if len(self._alive) > _KEPT_STEPS:
            for gradient in self._alive.pop(0):
                self._source_by_gradient.pop(id(gradient), None)

    def see_apply(self, optimizer: Any, pairs: list[tuple[Any, Any]]) -> None:
        """An optimizer is about to change variables."""
        self.optimizer = optimizer
        place = source_line(*_core.current_line())
        frames = user_frames()
        self._applies += 1
        for gradient, given in pairs:
            variable = variable_behind(given)
            if gradient is None or not isinstance(variable, _core.Variable):
                continue
            self.ever_applied.add(id(variable))
            own = self._source_by_gradient.get(id(gradient))
            if own is not None and own is not variable:
                self._wrong(place, name_of_variable(own, frames), name_of_variable(given, frames))
            key = (id(gradient), id(variable))
            if own is not None and self._applied.get(key) == self._steps:
                self._twice(place, name_of_variable(given, frames))
            self._applied[key] = self._steps
            others = self._optimizers.setdefault(id(variable), set())
            others.add(id(optimizer))
            if len(others) == 2:
                self._two(place, name_of_variable(given, frames))
        self._look_for_sums(pairs, place)

    def _wrong(self, place: tuple[str, int], own: str, given: str) -> None:
        self._report(
            Finding(
                "applied-to-wrong", "severe", f"the gradient of {own} is applied to {given}", *place, variable=given,
                evidence={"gradient_of": own, "applied_to": given},
                remedy="Keep the order: zip(tape.gradient(loss, variables), variables).",
                confidence=0.97,
            )
        )  # fmt: skip

    def _twice(self, place: tuple[str, int], name: str) -> None:
        self._report(
            Finding(
                "applied-twice", "severe", f"the same gradient of {name} is applied a second time", *place,
                variable=name, evidence={"step": self._steps},
                remedy="Apply each gradient once; compute it anew for another step.", confidence=0.95,
            )
        )  # fmt: skip

    def _two(self, place: tuple[str, int], name: str) -> None:
        self._report(
            Finding(
                "two-optimizers", "warning", f"{name} is changed by two optimizers in one step", *place, variable=name,
                remedy="Give each variable to one optimizer.", confidence=0.85,
            )
        )  # fmt: skip

    def _look_for_sums(self, pairs: list[tuple[Any, Any]], place: tuple[str, int]) -> None:
        """What is applied is the sum of all gradients since the program began, step after step."""
        if self._steps < 2 or self._steps > _KEPT_STEPS:
            return
        for gradient, given in pairs:
            total = self._sums.get(id(variable_behind(given)))
            if gradient is None or total is None or hasattr(gradient, "indices") or _core.is_symbolic(gradient):
                continue
            array = np.asarray(gradient.numpy(), np.float64)
            same = array.shape == total.shape and np.allclose(array, total, rtol=1e-4, atol=1e-7) and array.any()
            if same and id(gradient) not in self._source_by_gradient:
                self._summed_applies += 1
                self._sum_place = place
            return

    def findings(self) -> list[Finding]:
        """What can be told at the end."""
        found = []
        if self._summed_applies >= 3 and self._sum_place is not None:
            found.append(
                Finding(
                    "accumulated-gradients", "severe",
                    f"what is applied in step {self._steps} is the sum of the gradients of all steps: the sum is never "
                    "set to zero", *self._sum_place, evidence={"applies": self._summed_applies},
                    remedy="Set the accumulators to zero after each apply_gradients.", confidence=0.9,
                )
            )  # fmt: skip
        left = [about for v, about in self._asked.items() if v not in self.ever_applied]
        if self._applies >= 2 and left and len(left) < len(self._asked):
            places = {place for _, place in left}
            applied_places = {self._asked[v][1] for v in self.ever_applied if v in self._asked}
            common = places & applied_places
            names = [name_of_variable(source, []) for source, place in left if place in common]
            if names:
                found.append(
                    Finding(
                        "not-applied", "warning",
                        f"gradients of {', '.join(names[:3])} are computed but never given to the optimizer",
                        *next(iter(common)), variable=names[0], evidence={"variables": names[:20]},
                        remedy="Pass all pairs of gradients and variables to apply_gradients.", confidence=0.85,
                    )
                )  # fmt: skip
        return found
