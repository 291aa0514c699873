"""Small charts as SVG: sparklines of a table, and the timeline of a run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

Numbers = Sequence[float | None]


def number_text(value: Any) -> str:
    """A number with three digits; a dash for what is not known.

    >>> number_text(0.000123456), number_text(None)
    ('0.000123', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:.3g}"


def bytes_text(count: float | None) -> str:
    """A number of bytes with its unit.

    >>> bytes_text(1536)
    '1.5 KB'
    """
    if count is None:
        return "-"
    for unit in ("B", "KB", "MB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GB"


def seconds_text(seconds: float | None) -> str:
    """A time with its unit.

    >>> seconds_text(0.0025)
    '2.5 ms'
    """
    if not seconds:
        return "-"
    for factor, unit in ((1.0, "s"), (1e3, "ms")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def _scaled(values: Numbers, height: float, logarithmic: bool) -> list[float | None]:
    """Heights from 0 at the bottom; None for what cannot be drawn."""

    def scale(value: float | None) -> float | None:
        if value is None or not math.isfinite(value) or (logarithmic and value <= 0):
            return None
        return math.log10(value) if logarithmic else value

    found = [scale(value) for value in values]
    known = [value for value in found if value is not None]
    if not known:
        return [None] * len(found)
    low, high = min(known), max(known)
    span = (high - low) or 1.0
    return [None if value is None else height * (value - low) / span for value in found]


def _polylines(values: Numbers, width: float, height: float, top: float, logarithmic: bool) -> tuple[str, str]:
    """Lines between neighbouring known values, and marks where a value is NaN or infinite."""
    heights = _scaled(values, height, logarithmic)
    step = width / max(1, len(values) - 1)
    pieces: list[list[str]] = [[]]
    marks = []
    for i, (value, y) in enumerate(zip(values, heights)):
        if y is None:
            pieces.append([])
            if value is not None and not math.isfinite(value):
                marks.append(f'<circle class="bad" cx="{i * step:.1f}" cy="{top:.1f}" r="3"/>')
        else:
            pieces[-1].append(f"{i * step:.1f},{top + height - y:.1f}")
    lines = [f'<polyline points="{" ".join(piece)}"/>' for piece in pieces if len(piece) > 1]
    dots = [f'<circle cx="{p[0].split(",")[0]}" cy="{p[0].split(",")[1]}" r="1.5"/>' for p in pieces if len(p) == 1]
    return "".join(lines + dots), "".join(marks)


def _ends(values: Numbers) -> str:
    """The first and the last finite value, in words."""
    known = [v for v in values if v is not None and math.isfinite(v)]
    return f"from {number_text(known[0])} to {number_text(known[-1])}" if known else "no finite value"


def sparkline(values: Numbers, label: str) -> str:
    """A line without axes, on a logarithmic scale; NaN and infinity are red dots."""
    if not values:
        return "-"
    line, marks = _polylines(values, 96, 18, 4, logarithmic=True)
    return (
        f'<svg class="spark" width="100" height="26" viewBox="-2 0 100 26" role="img" '
        f'aria-label="{escape(label)}: {_ends(values)}">{line}{marks}</svg>'
    )


def timeline(rows: Sequence[tuple[str, Numbers, bool]], steps: Sequence[int], events: Sequence[tuple[int, str]]) -> str:
    """Charts of the same steps below each other: a title, values, and whether the scale is logarithmic.

    `events` are positions among the steps with their texts; each is a vertical line.
    """
    width, height, gap, left = 620.0, 60.0, 34.0, 90.0
    parts = []
    for number, (title, values, logarithmic) in enumerate(rows):
        top = 16 + number * (height + gap)
        line, marks = _polylines(values, width, height, 0, logarithmic)
        known = [v for v in values if v is not None and math.isfinite(v)]
        bounds = (number_text(max(known)), number_text(min(known))) if known else ("-", "-")
        parts.append(
            f'<g transform="translate({left},{top})"><rect class="frame" width="{width}" height="{height}"/>'
            f'{line}{marks}<text x="-8" y="10" class="end">{bounds[0]}</text>'
            f'<text x="-8" y="{height}" class="end">{bounds[1]}</text>'
            f'<text x="0" y="-4">{escape(title)}{" (log)" if logarithmic else ""}</text></g>'
        )
    bottom = 16 + len(rows) * (height + gap) - gap
    for position, text in events:
        x = left + width * position / max(1, len(steps) - 1)
        parts.append(
            f'<line class="event" x1="{x:.1f}" x2="{x:.1f}" y1="16" y2="{bottom}"><title>{escape(text)}</title></line>'
        )
    if steps:
        parts.append(f'<text x="{left}" y="{bottom + 14}">step {steps[0]}</text>')
        parts.append(f'<text x="{left + width}" y="{bottom + 14}" class="end">step {steps[-1]}</text>')
    said = "; ".join(f"{title} {_ends(values)}" for title, values, _ in rows)
    return (
        f'<svg class="timeline" viewBox="0 0 {left + width + 12} {bottom + 22}" role="img" '
        f'aria-label="timeline of {escape(said)}">{"".join(parts)}</svg>'
    )


def bars(rows: Sequence[tuple[str, float | None, bool]], text: Any = number_text) -> str:
    """Horizontal bars, a label and a value each; a cut one is red, and drawn at its full width."""
    largest = max((value for _, value, _ in rows if value is not None and math.isfinite(value)), default=0.0) or 1.0
    parts = []
    for label, value, cut in rows:
        share = 100.0 if value is None or not math.isfinite(value) else 100.0 * value / largest
        mark = ' class="cut"' if cut else ""
        said = "cut" if cut and value is None else text(value)
        parts.append(
            f'<li{mark}><span class="label">{escape(label)}</span>'
            f'<span class="bar"><i style="width:{share:.1f}%"></i></span>'
            f'<span class="value">{escape(said)}</span></li>'
        )
    return f'<ul class="bars">{"".join(parts)}</ul>'
