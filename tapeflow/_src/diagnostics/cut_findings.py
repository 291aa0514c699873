"""Gradients that miss a path as findings: each cut with the share of the sensitivity that is lost at it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src.diagnostics import partly_cut
from tapeflow._src.diagnostics.finding import Finding, source_text
from tapeflow._src.diagnostics.flow import Flow
from tapeflow._src.diagnostics.frames import user_frames
from tapeflow._src.diagnostics.numeric_probe import Probe, Sensitivity, total_of
from tapeflow._src.diagnostics.partly_cut import Cut
from tapeflow._src.diagnostics.source_line import place_text
from tapeflow._src.diagnostics.variable_names import name_of_variable, variable_behind

_MOST_VARIABLES = 4  # that are measured at one call of gradient
Pairs = list[tuple[Any, Any]]


class CutFindings:
    """Looks for cuts at calls of gradient. `report` is given findings; what agrees is listed in `checks`."""

    def __init__(self, report: Callable[[Finding | None], None], checks: list[dict[str, str]]) -> None:
        self._report, self._checks = report, checks

    def see(
        self, tape: Any, flow: Flow, probe: Probe | None, targets: list[Any], sources: list[Any], gradients: list[Any]
    ) -> None:
        """One call of gradient; `probe` can run the step again."""
        goals = [i for t in targets if t is not None and (i := tape._index_of(t)) is not None]
        searches = [partly_cut.CutSearch(flow, goal) for goal in goals]
        pairs_by_cut: dict[Cut, Pairs] = {}
        for source, gradient in zip(sources, gradients):
            start = tape._index_of(variable_behind(source)) if gradient is not None else None
            for cut in dict.fromkeys(c for search in searches for c in search.cuts(start)):
                pairs_by_cut.setdefault(cut, []).append((source, gradient))
        has_stops = any(cut.cause == "stop_gradient" for cut in pairs_by_cut)
        measured: dict[int, Sensitivity | None] = {}
        for cut in sorted(pairs_by_cut, key=lambda cut: (cut.deliberate, cut.certain)):
            share, largest = None, 0
            for number, (source, gradient) in enumerate(pairs_by_cut[cut]):
                found = self._measure(source, gradient, targets, probe, has_stops, measured)
                if found is not None and (share is None or share == 0.0):
                    share = found.lost_at_stops() if cut.cause == "stop_gradient" else found.lost_elsewhere()
                    largest = number
            beside = _others_on(variable_behind(pairs_by_cut[cut][largest][0]), cut, pairs_by_cut)
            self._add(cut, [source for source, _ in pairs_by_cut[cut]], largest, share, beside)

    def _measure(
        self, source: Any, gradient: Any, targets: list[Any], probe: Probe | None, has_stops: bool,
        measured: dict[int, Sensitivity | None],
    ) -> Sensitivity | None:  # fmt: skip
        """The sensitivity to a source, if it is a variable that can be moved."""
        variable = variable_behind(source)
        if id(variable) not in measured:
            movable = isinstance(variable, _core.Variable) and not _core.is_symbolic(gradient)
            if probe is None or not movable or len(measured) >= _MOST_VARIABLES:
                return None
            measured[id(variable)] = probe.measure(variable, gradient, total_of(targets), has_stops)
            probe.is_sure = probe.is_sure and measured[id(variable)] is not None
        return measured[id(variable)]

    def _add(
        self, cut: Cut, sources: list[Any], measured: int, share: float | None, beside: list[tuple[str, int]]
    ) -> None:  # fmt: skip
        """`share` is what the variable loses at this cut and at the places `beside` it together."""
        if share == 0.0 and cut.cause not in ("integer", "index", "bool"):
            self._checks.append({"name": f"{cut.file}:{cut.line}", "result": "agrees", "detail": "no path is lost"})
            return
        unmeasured = share is None and not cut.certain
        if unmeasured and (cut.guess or Probe.possible()):
            return
        if not share and cut.cause == "stop_gradient" and "stop_gradient" not in source_text(cut.file, cut.line):
            return  # inside a function that knows its derivative
        frames = user_frames()
        name = name_of_variable(sources[measured], frames)
        names = list(dict.fromkeys([name, *(name_of_variable(s, frames) for s in sources)]))
        what, remedy = partly_cut.describe(cut)
        where = f"here and at {_lines(beside, cut.file)} together" if share and beside else "here"
        lost = f"{share:.0%} of the sensitivity to {name} is lost" if share else f"a path from {name} is cut"
        if unmeasured:
            lost = f"a path from {name} may be cut"
        self._report(
            Finding(
                "partly-cut",
                "hint" if cut.deliberate or unmeasured else "warning",
                f"{lost} {where}: it {what}, while another path reaches the target"
                + "; not measured, as copies of the process are not safe beside other threads" * unmeasured,
                cut.file,
                cut.line,
                variable=name,
                evidence={
                    "lost": share, "cause": cut.cause, "operation": cut.operation, "variables": names[:10],
                    "together_with": [list(place) for place in beside] if share else [],
                },
                remedy=remedy,
                confidence=0.95 if share else 0.5 if unmeasured else 0.7,
            )
        )  # fmt: skip


def _others_on(variable: Any, cut: Cut, pairs_by_cut: dict[Cut, Pairs]) -> list[tuple[str, int]]:
    """Where else paths from a variable are cut in the same way, on purpose or not: one measurement sees all of them."""
    stops = cut.cause == "stop_gradient"
    others = {
        (other.file, other.line)
        for other, pairs in pairs_by_cut.items()
        if (other.cause == "stop_gradient") is stops and any(variable_behind(s) is variable for s, _ in pairs)
    }
    return sorted(others - {(cut.file, cut.line)})


def _lines(places: list[tuple[str, int]], file: str) -> str:
    """The places in words: "line 9 and 2 more"."""
    first = f"line {places[0][1]}" if places[0][0] == file else place_text(*places[0])
    return first if len(places) == 1 else f"{first} and {len(places) - 1} more"
