"""Partly cut gradients as findings: the paths that are missing, confirmed by one numeric derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.diagnostics import partly_cut
from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.flow import Flow
from tapeflow._src.diagnostics.numeric_probe import Probe, direction, lost_share
from tapeflow._src.diagnostics.program import user_frames
from tapeflow._src.diagnostics.variable_names import name_of_variable, variable_behind


class CutFindings:
    """Looks for cuts in a call of gradient. `report` is given findings; what agrees is listed in `checks`."""

    def __init__(self, report: Callable[[Finding | None], None], checks: list[dict[str, str]]) -> None:
        self._report, self._checks = report, checks

    def see(
        self, tape: Any, flow: Flow, probe: Probe | None, targets: list[Any], sources: list[Any], gradients: list[Any]
    ) -> None:
        """One call of gradient; `probe` holds copies of the process that can run the step again."""
        goals = [tape._index_of(t) for t in targets if t is not None]
        found: dict[partly_cut.Cut, list[tuple[Any, Any]]] = {}
        for source, gradient in zip(sources, gradients):
            if gradient is None:
                continue
            for goal in goals:
                for cut in partly_cut.cuts(flow, tape._index_of(variable_behind(source)), goal):
                    found.setdefault(cut, []).append((source, gradient))
        if not found:
            return
        first = min(found, key=lambda cut: (cut.deliberate, cut.certain))
        share = None if probe is None else _lost_share(probe, found[first], targets)
        for cut, pairs in found.items():
            self.add(cut, pairs, share)

    def add(self, cut: partly_cut.Cut, pairs: list[tuple[Any, Any]], share: float | None) -> None:
        if share == 0.0 and cut.cause != "integer":
            self._checks.append({"name": f"{cut.file}:{cut.line}", "result": "agrees", "detail": "no path is lost"})
            return
        if share is None and not cut.certain:
            return
        frames = user_frames()
        names = list(dict.fromkeys(name_of_variable(s, frames) for s, _ in pairs))
        what, remedy = partly_cut.describe(cut)
        lost = f"{share:.0%} of the sensitivity to {names[0]} is lost" if share else f"a path from {names[0]} is cut"
        self._report(
            Finding(
                "partly-cut",
                "hint" if cut.deliberate else "warning",
                f"{lost} here: it {what}, while another path reaches the target",
                cut.file,
                cut.line,
                variable=names[0],
                evidence={"lost": share, "cause": cut.cause, "operation": cut.operation, "variables": names[:10]},
                remedy=remedy,
                confidence=0.95 if share else 0.7,
            )
        )


def _lost_share(probe: Probe, pairs: list[tuple[Any, Any]], targets: list[Any]) -> float | None:
    """By one numeric derivative, along a direction in the space of the first variable that can be moved."""
    for source, gradient in pairs:
        variable = variable_behind(source)
        if not isinstance(variable, _core.Variable) or hasattr(gradient, "indices") or _core.is_symbolic(gradient):
            continue
        value = np.asarray(variable.numpy(), np.float64)
        size = 1e-3 * max(float(np.sqrt(np.mean(value * value))), 1e-1)
        analytic = float(np.sum(np.asarray(gradient.numpy(), np.float64) * direction(value.shape, 7)))
        total = sum(float(np.sum(t.numpy())) for t in targets if t is not None)
        return lost_share(lambda step, v=variable: probe.run(v, step, 7), analytic, total, size)  # type: ignore[misc]
    return None
