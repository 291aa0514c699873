"""Gradients that are None as findings: grouped by cause and line, and without those that another call gives."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.diagnostics.explanation import Explanation
from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.flow import Flow, known
from tapeflow._src.diagnostics.frames import Frames
from tapeflow._src.diagnostics.source_line import place_text
from tapeflow._src.diagnostics.variable_names import name_of_variable, variable_behind
from tapeflow._src.diagnostics.why_none import explain_with

_UNRELATED = ("no path", "variable not used", "variables not watched")


class NoneFindings:
    """Collects explanations over the calls of gradient."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str | None, int | None], tuple[Explanation, list[str], list[int], bool, Any]] = {}
        self._connected: set[int] = set()
        self._variable_at: set[tuple[tuple[str, int], int]] = set()  # lines and places in their lists of sources
        self._alive: list[Any] = []

    def see(
        self, tape: Any, flow: Flow, frames: Frames, targets: list[Any], sources: list[Any],
        gradients: list[Any], place: tuple[str, int],
    ) -> None:  # fmt: skip
        """One call of gradient."""
        everything = all(g is None for g in gradients)
        targets = [t for t in targets if t is not None]
        flat = Flow(tape, flat=True) if any(_is_symbolic(g) or _is_zero(g) for g in gradients) else flow
        goals = {known(i) for t in targets if (i := tape._index_of(t)) is not None}
        for number, (source, gradient) in enumerate(zip(sources, gradients)):
            variable = variable_behind(source)
            self._alive.append(variable)
            if isinstance(variable, _core.Variable):
                self._variable_at.add((place, number))
            is_none = gradient is None
            start = tape._index_of(variable) if _is_symbolic(gradient) else None
            is_flat = start is not None and flat.reached(known(start)).isdisjoint(goals)
            if not is_none and not _is_zero(gradient) and not is_flat:
                self._connected.add(id(variable))
                continue
            if not targets or not _core.is_tensor(variable):
                continue
            index = number if len(sources) > 1 else None
            was_variable = (place, number) in self._variable_at
            answer = explain_with(
                tape, flow if is_none else flat, frames, targets, source, is_none, index, was_variable
            )
            if answer.cause == "connected":
                if not is_none:
                    self._connected.add(id(variable))
                continue
            where = (answer.cause, *(answer.integer_at or (answer.file, answer.line)))
            row = self._rows.setdefault(where, (answer, [], [], everything, (place, is_none)))
            name = name_of_variable(source, frames)
            if name not in row[1]:
                row[1].append(name)
            row[2].append(id(variable))

    def see_later(self, sources: list[Any], gradients: list[Any]) -> None:
        """A call of gradient that is not looked at: what it gives was not None for good, as a term that begins late."""
        open_ids = {i for _, _, ids, *_ in self._rows.values() for i in ids} - self._connected
        for source, gradient in zip(sources, gradients) if open_ids else ():
            variable = variable_behind(source)
            if id(variable) in open_ids and gradient is not None and not _is_zero(gradient):
                self._connected.add(id(variable))

    def findings(self) -> list[Finding]:
        """One for each cause and line."""
        found = []
        for (cause, file, line), (answer, names, ids, everything, (place, is_none)) in self._rows.items():
            if cause in _UNRELATED and not everything and all(i in self._connected for i in ids):
                continue
            if cause == "constant derivative" and not everything:
                severity = "hint"  # as of the last bias of a network whose derivatives alone are in the loss
            else:
                severity = "severe" if everything or cause not in _UNRELATED else "warning"
            many = f" and {len(names) - 1} more" if len(names) > 1 else ""
            state = "None" if is_none else "zero"
            found.append(
                Finding(
                    "none-gradient",
                    severity,
                    f"the gradient of {names[0]}{many} is {state}: {answer.text}",
                    file or place[0],
                    line or place[1],
                    variable=names[0],
                    evidence={
                        "cause": cause, "operation": answer.operation, "variables": names[:20],
                        "source": answer.source, "depends_on": list(answer.depends_on),
                        "asked_at": place_text(*place),
                    },
                    remedy=answer.advice,
                    confidence=0.95 if cause not in _UNRELATED else 0.85,
                )
            )  # fmt: skip
        return found


def _is_symbolic(gradient: Any) -> bool:
    return gradient is not None and _core.is_tensor(gradient) and bool(_core.is_symbolic(gradient))


def _is_zero(gradient: Any) -> bool:
    if gradient is None or hasattr(gradient, "indices") or not _core.is_tensor(gradient) or _core.is_symbolic(gradient):
        return False
    return gradient.dtype.is_floating and not gradient.numpy().any()
