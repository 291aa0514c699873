"""The report of a doctor as plain text."""

from __future__ import annotations

import os
from typing import Any

from tapeflow._src.diagnostics.source_line import counted, place_text

_MARK = {"severe": "SEVERE", "warning": "warning", "hint": "hint"}


def text(report: dict[str, Any]) -> str:
    """A verdict line, then each finding with its line of source, evidence and remedy; figures at the end."""
    findings = report["findings"]
    lines = [f"tapeflow doctor: {verdict(report)}"]
    for finding in findings:
        lines += ["", *_finding_lines(finding)]
    lines += ["", figures(report)]
    return "\n".join(lines)


def verdict(report: dict[str, Any]) -> str:
    """The verdict in one line: the findings by severity, or the error that ended the program."""
    count = {s: sum(f["severity"] == s for f in report["findings"]) for s in _MARK}
    parts = [f"{n} {name}" for name, n in count.items() if n]
    if report["verdict"] == "healthy":
        return "healthy" + (f" ({', '.join(parts)})" if parts else "")
    if report["verdict"] == "crashed":
        return f"the program ended with {report['error']}" + (f"; {', '.join(parts)}" if parts else "")
    return ", ".join(parts)


def _finding_lines(finding: dict[str, Any]) -> list[str]:
    where = _where(finding["file"], finding["line"]) if finding["file"] else "the program"
    lines = [f"{_MARK[finding['severity']]}: {finding['message']}", f"  at {where}  [{finding['id']}]"]
    if finding["source"]:
        lines.append(f"      {finding['source']}")
    if finding["remedy"]:
        lines.append(f"  do: {finding['remedy']}")
    lines.append(f"  sure: {finding['confidence']:.0%}; silence with `# tapeflow: ok {finding['kind']}`")
    return lines


def _where(file: str, line: int) -> str:
    named = place_text(file, line)
    return named if not named.startswith(file) else f"{os.path.relpath(file)}:{line}"


def figures(report: dict[str, Any]) -> str:
    """What was watched: calls, variables, loss, norms, time."""
    steps = report["steps"]
    parts = [counted(report["gradient_calls"], "gradient call"), counted(len(report["variables"]), "variable")]
    if steps:
        parts.append(f"loss {steps[0]['loss']:.4g} -> {steps[-1]['loss']:.4g}")
        parts.append(f"gradient norm {steps[0]['grad_norm']:.3g} -> {steps[-1]['grad_norm']:.3g}")
    parts.append(f"{report['seconds']:.1f} s")
    curved = [_curvature(course) for course in report["courses"] if "curvature" in course]
    return "\n".join(["watched: " + ", ".join(parts), *curved])


def _curvature(course: dict[str, Any]) -> str:
    found = course["curvature"]
    rate = found["largest_stable_rate"]
    bound = "" if rate is None else f"; gradient descent is stable below a learning rate of {rate:.3g}"
    where = _where(course["file"], course["line"])
    return f"largest eigenvalue of the Hessian at {where}: {found['eigenvalue']:.4g}{bound}"
