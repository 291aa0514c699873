"""report.json: its rows, and its text, which is kept below a limit."""

from __future__ import annotations

import json
import math
import os
import platform
from typing import Any

import numpy as np

from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.source_line import counted

_JSON_LIMIT = 256 * 1024
_MOST_STEPS = 500
# What is shortened first if the report is too large.
_DROPPED = ("trace", "tape", "retraces", "operations", "lines", "checks", "steps", "variables", "environment")


def variable_rows(variables: list[dict[str, Any]], findings: list[Finding]) -> list[dict[str, Any]]:
    """The variables with their status: that of the worst finding about them, and its id as the cause."""
    cause = {f.variable: f for f in reversed(findings) if f.variable}
    return [v | _status(v, cause.get(v["name"])) for v in variables]


def _status(variable: dict[str, Any], finding: Finding | None) -> dict[str, Any]:
    """A variable whose gradients are all zero gets a light, too, where the finding is about what lies behind it."""
    idle = variable["steps"] > 0 and bool(variable["grad_norms"]) and not any(variable["grad_norms"])
    status = finding.severity if finding is not None else "warning" if idle else "ok"
    return {"status": status, "cause": finding and finding.id}


def marks_by_line(findings: list[Finding]) -> dict[tuple[str | None, int | None], list[str]]:
    """The ids of the findings at each line."""
    marks: dict[tuple[str | None, int | None], list[str]] = {}
    for finding in findings:
        marks.setdefault((finding.file, finding.line), []).append(finding.id)
    return marks


def flow_rows(variables: list[dict[str, Any]], findings: list[Finding]) -> list[dict[str, Any]]:
    """The size of the gradient at each layer, from the first to the last, and where it is cut."""
    cut = {v for f in findings if f.kind == "none-gradient" for v in f.evidence.get("variables", ())}
    rows: dict[str, list[float]] = {}
    for variable in variables:
        norms = [n for n in variable["grad_norms"] if n is not None]
        rows.setdefault(variable["layer"] or variable["name"], []).extend(norms[:1])
    flow = [{"layer": layer, "norm": max(norms) if norms else None, "cut": False} for layer, norms in rows.items()]
    return [*flow, *({"layer": name, "norm": None, "cut": True} for name in sorted(cut))][:100]


def environment(mode: str) -> dict[str, Any]:
    """Versions and the machine."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": f"{platform.machine()}, {counted(os.cpu_count() or 1, 'processor')}",
        "mode": mode,
    }


def thinned(rows: list[Any], most: int = _MOST_STEPS) -> list[Any]:
    """Every n-th row, so that at most so many stay."""
    every = max(1, -(-len(rows) // most))
    return rows[::every]


def as_json(report: dict[str, Any]) -> str:
    """The text of report.json, at most 256 KB: what does not fit is left out, the findings last.

    `left_out` says how many rows of what that were.
    """
    report = _finite(report) | {"left_out": {}}
    for drop in (*_DROPPED, None):
        text = json.dumps(report, indent=1, default=str)
        if len(text.encode()) <= _JSON_LIMIT or drop is None:
            break
        _shorten(report, drop, 50)
    while len(text.encode()) > _JSON_LIMIT and len(report["findings"]) > 1:
        _shorten(report, "findings", max(1, len(report["findings"]) * 4 // 5))
        text = json.dumps(report, indent=1, default=str)
    return text


def _shorten(report: dict[str, Any], name: str, most: int) -> None:
    """Keeps the first rows of a list; of a short list, or of what is no list, nothing."""
    rows = report[name]
    report[name] = rows[:most] if isinstance(rows, list) and len(rows) > most else []
    report["left_out"][name] = report["left_out"].get(name, 0) + len(rows) - len(report[name])


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become text."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
