"""Diagrams of computations as SVG: boxes in layers, arrows between them, long programs folded."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from tapeflow._src.diagnostics.layered_layout import layered_layout

_LIMIT = 60  # boxes
_LETTER, _SMALL_LETTER, _MARGIN = 7.2, 5.8, 16.0
_STYLE = (
    "<style>"
    ".tfd{font-family:system-ui,sans-serif}"
    ".tfd text{fill:#1b2430;font-size:12px;text-anchor:middle}.tfd text.small{fill:#5f6b7a;font-size:10px}"
    ".tfd rect{fill:#eef3fb;stroke:#5b7db1}.tfd rect.variable{fill:#fff6e5;stroke:#b7791f}"
    ".tfd rect.input{fill:#fff;stroke:#8a94a3}.tfd rect.output{fill:#eaf7ea;stroke:#3a8a3a}"
    ".tfd rect.fold{stroke-dasharray:4 3}.tfd rect.broken{fill:#fdeaea;stroke:#c62828;stroke-width:2}"
    ".tfd path{fill:none;stroke:#5b7db1;stroke-width:1.3}"
    ".tfd path.broken{stroke:#c62828;stroke-width:2;stroke-dasharray:5 4}.tfd path.head{fill:#5b7db1;stroke:none}"
    ".tfd text.why{fill:#c62828;text-anchor:start}.tfd text.note{text-anchor:start}"
    "@media(prefers-color-scheme:dark){.tfd text{fill:#e6ebf2}.tfd text.small{fill:#a3b0c2}.tfd text.why{fill:#ff8a80}"
    ".tfd rect{fill:#1d2a3d;stroke:#7fa3d8}.tfd path{stroke:#7fa3d8}.tfd rect.variable{fill:#3a2d12}"
    ".tfd rect.input{fill:#20252c}.tfd rect.output{fill:#17301a}.tfd rect.broken{fill:#431c1c}}"
    "</style>"
)


class Box(NamedTuple):
    """One operation, variable, input or fold: its name, what stands below it in small letters, and the boxes it reads.

    `key` identifies what it does and where, so that repeated runs are found.
    """

    title: str
    details: tuple[str, ...]
    inputs: tuple[int, ...]
    kind: str = "node"
    key: object = None


def draw(boxes: Sequence[Box], caption: str = "", notes: Sequence[str] = (), limit: int = _LIMIT) -> str:
    """An SVG of boxes in the order in which they run; more than `limit` are folded.

    >>> svg = draw([Box("x", (), (), "variable"), Box("sin", ("float32[2]",), (0,))])
    >>> svg.count("<rect")
    2
    """
    shown = fold(boxes, limit)
    sizes = [_size(box) for box in shown]
    edges = [(start, end) for end, box in enumerate(shown) for start in dict.fromkeys(box.inputs)]
    layout = layered_layout(sizes, edges)
    lines = textwrap.wrap(caption, max(80, int(layout.width / _LETTER)))
    top = _MARGIN + 16.0 * len(lines)
    parts = [_path(route, top, shown[end].kind == "broken") for (_, end), route in zip(edges, layout.routes)]
    parts += [_box(box, size, x, y + top) for box, size, (x, y) in zip(shown, sizes, layout.positions)]
    for number, line in enumerate(lines):
        parts.append(f'<text class="why" x="{_MARGIN:.0f}" y="{18 + 16 * number}">{escape(line)}</text>')
    height = top + layout.height + _MARGIN
    for note in notes:
        height += 16
        parts.append(
            f'<text class="note" x="{_MARGIN:.0f}" y="{height - 6:.0f}" xml:space="preserve">{escape(note)}</text>'
        )
    longest = max((len(line) * _LETTER for line in (*lines, *notes)), default=0.0)
    width = max(layout.width, longest) + 2 * _MARGIN
    label = escape(caption or f"a diagram of {len(boxes)} operations")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tfd" role="img" aria-label="{label}" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:100%;height:auto">'
        f'{_STYLE}<defs><marker id="tfd-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto-start-reverse"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>'
        f"{''.join(parts)}</svg>"
    )


def _size(box: Box) -> tuple[float, float]:
    letters = [len(box.title) * _LETTER, *(len(detail) * _SMALL_LETTER for detail in box.details)]
    return max(56.0, max(letters) + 20.0), 24.0 + 13.0 * len(box.details)


def _box(box: Box, size: tuple[float, float], x: float, y: float) -> str:
    width, height = size
    x += _MARGIN
    texts = [f'<text x="{x:.1f}" y="{y + 16:.1f}">{escape(box.title)}</text>']
    for number, detail in enumerate(box.details):
        texts.append(f'<text class="small" x="{x:.1f}" y="{y + 29 + 13 * number:.1f}">{escape(detail)}</text>')
    mark = f' class="{box.kind}"' if box.kind != "node" else ""
    rounded = 12 if box.kind in ("variable", "input") else 5
    return (
        f'<g><rect{mark} x="{x - width / 2:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{rounded}"/>'
        f"{''.join(texts)}</g>"
    )


def _path(points: list[tuple[float, float]], top: float, broken: bool) -> str:
    moved = [(x + _MARGIN, y + top) for x, y in points]
    x, y = moved[0]
    text = f"M{x:.1f} {y:.1f}"
    for number, (end_x, end_y) in enumerate(moved[1:], 1):
        middle = (y + end_y) / 2
        if number % 2 == 0 or abs(end_x - x) < 0.5:  # beside a box of the layer
            text += f"L{end_x:.1f} {end_y:.1f}"
        else:
            text += f"C{x:.1f} {middle:.1f} {end_x:.1f} {middle:.1f} {end_x:.1f} {end_y:.1f}"
        x, y = end_x, end_y
    mark = ' class="broken"' if broken else ""
    return f'<path{mark} d="{text}" marker-end="url(#tfd-arrow)"/>'


# ------------------------------------------------------------------------------------------------------------ folding


def fold(boxes: Sequence[Box], limit: int) -> list[Box]:
    """At most about `limit` boxes: repeated runs become one box, then neighbours of the same line, then neighbours.

    Folds are runs of neighbours in program order, so the folded graph has no cycles.
    """
    if len(boxes) <= limit:
        return list(boxes)
    runs = _repeated_runs(boxes)
    if len(runs) > limit:
        runs = _joined(runs, boxes, limit)
    return _quotient(boxes, runs)


def _is_fixed(box: Box) -> bool:
    return box.kind in ("variable", "input", "output", "broken")


def _repeated_runs(boxes: Sequence[Box]) -> list[tuple[int, int]]:
    """Half-open runs of neighbours: the iterations of a loop are one run."""
    runs, at, keys = [], 0, [None if _is_fixed(box) else box.key for box in boxes]
    while at < len(boxes):
        best = 1
        for period in range(1, min(64, (len(boxes) - at) // 2) + 1):
            end = at
            while end + period < len(boxes) and keys[end] is not None and keys[end] == keys[end + period]:
                end += 1
            length = end - at + period
            if end - at >= 2 * period and length > best:
                best = length - length % period
        runs.append((at, at + best))
        at += best
    return runs


def _joined(runs: list[tuple[int, int]], boxes: Sequence[Box], limit: int) -> list[tuple[int, int]]:
    """Neighbouring runs without fixed boxes, joined so that about `limit` are left."""
    free = sum(not _is_fixed(boxes[start]) for start, _ in runs)
    fixed = len(runs) - free
    size = max(2, -(-free // max(4, limit - fixed)))
    joined: list[tuple[int, int]] = []
    count = 0
    for start, end in runs:
        if not joined or count == 0 or count == size or _is_fixed(boxes[start]):
            joined.append((start, end))
            count = 0 if _is_fixed(boxes[start]) else 1
        else:
            joined[-1] = (joined[-1][0], end)
            count += 1
    return joined


def _quotient(boxes: Sequence[Box], runs: list[tuple[int, int]]) -> list[Box]:
    run_of = {i: number for number, (start, end) in enumerate(runs) for i in range(start, end)}
    folded = []
    for number, (start, end) in enumerate(runs):
        inputs = dict.fromkeys(run_of[i] for box in boxes[start:end] for i in box.inputs if run_of[i] != number)
        if end - start == 1:
            folded.append(boxes[start]._replace(inputs=tuple(inputs)))
            continue
        names = list(dict.fromkeys(box.title for box in boxes[start:end]))
        title = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        places = list(dict.fromkeys(box.details[-1] for box in boxes[start:end] if box.details))
        where = (places[0],) if len(places) == 1 else (f"{places[0]} ... {places[-1]}",) if places else ()
        folded.append(Box(title, (f"{end - start} operations", *where), tuple(inputs), "fold"))
    return folded
