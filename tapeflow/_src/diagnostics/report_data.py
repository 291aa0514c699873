"""report.json: its rows, and its text, which is kept below a limit."""

from __future__ import annotations

import json
import math
from typing import Any

from tapeflow._src.diagnostics.finding import Finding

_JSON_LIMIT = 256 * 1024
_MOST_STEPS = 500
# What is shortened first if the report is too large.
_DROPPED = ("trace", "lines", "checks", "steps", "variables", "environment")


def variable_rows(variables: list[dict[str, Any]], findings: list[Finding]) -> list[dict[str, Any]]:
    """The variables with their status: that of the worst finding about them, and its id as the cause."""
    cause = {f.variable: f for f in reversed(findings) if f.variable}
    return [v | _status(cause.get(v["name"])) for v in variables]


def _status(finding: Finding | None) -> dict[str, Any]:
    return {"status": "ok" if finding is None else finding.severity, "cause": finding and finding.id}


def marks_by_line(findings: list[Finding]) -> dict[tuple[str | None, int | None], list[str]]:
    """The ids of the findings at each line."""
    marks: dict[tuple[str | None, int | None], list[str]] = {}
    for finding in findings:
        marks.setdefault((finding.file, finding.line), []).append(finding.id)
    return marks


def thinned(rows: list[Any], most: int = _MOST_STEPS) -> list[Any]:
    """Every n-th row, so that at most so many stay."""
    every = max(1, -(-len(rows) // most))
    return rows[::every]


def as_json(report: dict[str, Any]) -> str:
    """The text of report.json, at most 256 KB: what does not fit is left out, the findings last."""
    report = _finite(report)
    for drop in (*_DROPPED, None):
        text = json.dumps(report, indent=1, default=str)
        if len(text.encode()) <= _JSON_LIMIT or drop is None:
            break
        rows = report[drop]
        report[drop] = rows[:50] if isinstance(rows, list) and len(rows) > 50 else []
    while len(text.encode()) > _JSON_LIMIT and len(report["findings"]) > 1:
        report["findings"] = report["findings"][: len(report["findings"]) // 2]
        text = json.dumps(report, indent=1, default=str)
    return text


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become text."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
