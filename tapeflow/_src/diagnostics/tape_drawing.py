"""A tape as a picture: its records from top to bottom as SVG, with the place marked where the gradient stops."""

from __future__ import annotations

import os
from html import escape
from typing import Any

from tapeflow._src.diagnostics.flow import Flow, Step
from tapeflow._src.diagnostics.why_none import explain

_LIMIT = 40  # boxes; of a longer tape the first and last half are drawn
_WIDTH, _HEIGHT, _GAP, _LEFT = 300, 34, 22, 90
_STYLE = (
    "<style>text{font:12px sans-serif}.line{fill:#777;font-size:10px}rect{fill:#eef3fb;stroke:#5b7db1}"
    "rect.broken{fill:#fdeaea;stroke:#c62828}path{fill:none;stroke:#5b7db1}path.broken{stroke:#c62828;"
    "stroke-width:2;stroke-dasharray:5 4}.why{fill:#c62828}</style>"
)


def svg(tape: Any, target: Any = None, source: Any = None) -> str:
    """See `GradientTape.svg`."""
    answer = None if target is None or source is None else explain(tape, target, source)
    flow = Flow(tape)
    broken = answer is not None and answer.cause != "connected"
    steps = [s for s in flow.steps if s.event in ("record", "operation", "assign")]
    if not broken:
        steps = [s for s in steps if s.event == "record"]
    marked = next(
        (
            s
            for s in steps
            if broken
            and answer
            and s.place == (answer.file, answer.line)
            and _name(s) == (answer.operation or _name(s))
        ),
        None,
    )
    shown, left_out = _abbreviate(steps, marked)
    return _draw(shown, left_out, marked, str(answer) if broken else "")


def _name(step: Step) -> str:
    return step.short_name or step.event


def _abbreviate(steps: list[Step], marked: Step | None) -> tuple[list[Step | None], int]:
    """The steps to draw; None stands for those left out."""
    if len(steps) <= _LIMIT:
        return list(steps), 0
    half = _LIMIT // 2
    middle = [marked, None] if marked in steps[half:-half] and marked else []
    left_out = len(steps) - 2 * half - len(middle) // 2
    return [*steps[:half], None, *middle, *steps[-half:]], left_out


def _draw(shown: list[Step | None], left_out: int, marked: Step | None, why: str) -> str:
    top = 30 if why else 10
    places = {step.order: top + i * (_HEIGHT + _GAP) for i, step in enumerate(shown) if step}
    maker: dict[int, Step] = {v: s for s in shown if s for v in s.outputs}
    parts: list[str] = []
    for i, step in enumerate(shown):
        y = top + i * (_HEIGHT + _GAP)
        if step is None:
            parts.append(f'<text x="{_LEFT + 10}" y="{y + 20}">... {left_out} more ...</text>')
            continue
        mark = ' class="broken"' if step is marked else ""
        for value in dict.fromkeys(step.inputs):
            origin = maker.get(value)
            if origin is not None and origin is not step:
                start = places[origin.order] + _HEIGHT
                bend = 0 if y - start <= _GAP else -min(_LEFT - 10, (y - start) // 6)
                x = _LEFT + 30
                parts.append(f'<path{mark} d="M{x} {start} C{x + bend} {start + 8} {x + bend} {y - 8} {x} {y}"/>')
            elif origin is None:
                parts.append(f'<path{mark} d="M{_LEFT - 20} {y + _HEIGHT // 2} L{_LEFT} {y + _HEIGHT // 2}"/>')
        file, line = step.place
        parts.append(f'<rect{mark} x="{_LEFT}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="5"/>')
        parts.append(f'<text x="{_LEFT + 10}" y="{y + 15}">{escape(_name(step))}</text>')
        parts.append(f'<text class="line" x="{_LEFT + 10}" y="{y + 28}">{escape(os.path.basename(file))}:{line}</text>')
        if mark:
            parts.append(f'<text class="why" x="{_LEFT + _WIDTH - 20}" y="{y + 22}">✗</text>')
    if why:
        parts.append(f'<text class="why" x="10" y="18">{escape(why)}</text>')
    height, width = top + len(shown) * (_HEIGHT + _GAP), max(_LEFT + _WIDTH + 20, 7 * len(why))
    body = "".join(parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">{_STYLE}{body}</svg>'
