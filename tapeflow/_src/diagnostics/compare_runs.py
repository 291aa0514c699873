"""Two reports compared: the first operation and the first step that differ, and findings that came or went."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.diagnostics.flow import number_of
from tapeflow._src.diagnostics.source_line import source_line

_CLOSE = 1e-5


def fingerprints(tape: Any, most: int = 300) -> list[list[Any]]:
    """For each of the first records: the operation, its line, and a number that stands for the values that it keeps
    and for the ends of its constants. Records of which nothing is known are left out.
    """
    rows, leaves = [], tape._leaves()
    for row, kept in zip(tape._records()[:most], tape._kept()):
        marks = [m for t in kept if t is not None and (m := _mark(t)) is not None]
        constants = [leaves[i][0] for i in row[4] if i in leaves and leaves[i][0] is not None]
        ends = [number_of(about, last) for about in constants for last in (False, True)]
        marks += [(1 + n) * end for n, end in enumerate(ends) if end is not None]
        if marks:
            file, line = source_line(row[1], row[2])
            rows.append([row[0], os.path.basename(file), line, f"{sum(marks):.9g}"])
    return rows


def _mark(tensor: Any) -> float | None:
    if not tensor.dtype.is_floating or _core.is_symbolic(tensor) or tensor.shape.num_elements() > 1_000_000:
        return None
    array = np.asarray(tensor.numpy(), np.float64)
    return float(np.sum(array * np.cos(np.arange(array.size).reshape(array.shape))))


def compare(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What differs between the reports of two runs."""
    ids = [{f["id"]: f["message"] for f in report["findings"]} for report in (before, after)]
    return {
        "new": {i: text for i, text in ids[1].items() if i not in ids[0]},
        "gone": {i: text for i, text in ids[0].items() if i not in ids[1]},
        "operation": _first_operation(before.get("trace") or [], after.get("trace") or []),
        "step": _first_step(before.get("steps") or [], after.get("steps") or []),
    }


def _differs(a: float, b: float) -> bool:
    return abs(a - b) > _CLOSE * max(abs(a), abs(b)) + 1e-12 if a == a and b == b else (a == a) != (b == b)


def _first_operation(before: list[Any], after: list[Any]) -> dict[str, Any] | None:
    for number, (a, b) in enumerate(zip(before, after)):
        if a[0] != b[0] or _differs(float(a[3]), float(b[3])):
            return {"number": number, "before": a, "after": b}
    if len(before) != len(after):
        longer = before if len(before) > len(after) else after
        number = min(len(before), len(after))
        return {"number": number, "before": None, "after": longer[number]}
    return None


def _first_step(before: list[Any], after: list[Any]) -> dict[str, Any] | None:
    for a, b in zip(before, after):
        if _differs(a["loss"], b["loss"]) or _differs(a["grad_norm"], b["grad_norm"]):
            return {"step": b["step"], "before": [a["loss"], a["grad_norm"]], "after": [b["loss"], b["grad_norm"]]}
    return None


def text(difference: dict[str, Any]) -> str:
    """The comparison in a few lines."""
    lines = ["compared with the other run:"]
    operation, step = difference["operation"], difference["step"]
    if operation is not None:
        name, file, line, _ = operation["after"]
        lines.append(f"  the first operation whose values differ is {name} at {file}:{line}")
    if step is not None:
        lines.append(
            f"  the first step that differs is {step['step']}: loss {step['before'][0]:.6g} -> {step['after'][0]:.6g}"
        )
    if operation is None and step is None:
        lines.append("  operations and steps have the same values")
    lines += [f"  new: {message}" for message in difference["new"].values()]
    lines += [f"  gone: {message}" for message in difference["gone"].values()]
    return "\n".join(lines)
