"""One step of a program checked three ways for every variable: reverse mode, forward mode, differences."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.frames import Frames
from tapeflow._src.diagnostics.numeric_probe import Probe, along, total_of
from tapeflow._src.diagnostics.variable_names import name_of_variable, variable_behind

_AGREES = 0.02  # relative; the target is often computed in float32


def check_step(
    probe: Probe,
    targets: list[Any],
    sources: list[Any],
    gradients: list[Any],
    frames: Frames,
    place: tuple[str, int],
) -> tuple[list[dict[str, str]], list[Finding]]:
    """A row for each variable, and findings where reverse mode disagrees with forward mode and both differences."""
    rows, found = [], []
    value = total_of(targets)
    for source, gradient in zip(sources, gradients):
        variable = variable_behind(source)
        if gradient is None or not isinstance(variable, _core.Variable) or not variable.dtype.is_floating:
            continue
        name = name_of_variable(source, frames)
        reverse, forward = along(gradient, variable), probe.forward(variable)
        sides = probe.sides(variable, value)
        finer = probe.sides(variable, value, 0.25) if _gap(sides) > 0 else None
        result = _judge(reverse, sides, finer)
        parts = [f"reverse {reverse:.6g}", "forward unknown" if forward is None else f"forward {forward:.6g}"]
        parts += [] if sides is None else [f"differences {sides[0]:.6g} and {sides[1]:.6g}"]
        rows.append({"name": f"three ways: {name}", "result": result, "detail": ", ".join(parts)})
        if result == "disagrees":
            found.append(
                Finding(
                    "wrong-gradient", "severe",
                    f"the gradient of {name} is not the derivative: along one direction {', '.join(parts)}",
                    *place, variable=name, evidence={"reverse": reverse, "forward": forward, "differences": sides},
                    remedy="Look for rules of tf.custom_gradient, random numbers, and paths through NumPy.",
                    confidence=0.85,
                )
            )  # fmt: skip
    return rows, found


def _gap(sides: tuple[float, float, float] | None) -> float:
    """By how much the slopes of two sides differ, beyond what rounding and a small curvature give; else 0."""
    if sides is None:
        return 0.0
    left, right, noise = sides
    gap = abs(left - right)
    return gap if gap > _AGREES * max(abs(left), abs(right)) + 2 * noise else 0.0


def _judge(
    reverse: float, sides: tuple[float, float, float] | None, finer: tuple[float, float, float] | None
) -> str:  # fmt: skip
    """At a kink the slopes of the sides differ for small steps, too; a derivative between them is right there."""
    if sides is None:
        return "not checked"
    left, right, noise = sides
    limit = _AGREES * max(abs(left), abs(right), abs(reverse)) + noise
    kink = finer is not None and _gap(finer) > 0.6 * _gap(sides)
    if kink and min(left, right) - limit <= reverse <= max(left, right) + limit:
        return "kink"
    return "agrees" if abs((left + right) / 2 - reverse) <= limit else "disagrees"
