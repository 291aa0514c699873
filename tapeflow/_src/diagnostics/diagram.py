"""Diagrams of computations as SVG: boxes in layers, arrows between them, long programs folded."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from tapeflow._src.diagnostics.layered_layout import Layout, layered_layout
from tapeflow._src.diagnostics.source_line import counted

_LIMIT, _FEWEST = 60, 8  # boxes
_BESIDE = 6  # variables of one reader that have a box each
_WIDEST = 1600.0  # what a page can show with legible letters
_DENSEST = 5  # edges for each box
_LONGEST = 48  # letters of a line in a box
_LETTER, _SMALL_LETTER, _MARGIN = 7.2, 5.8, 16.0
# Colours that fit on light and dark pages: text in that of the page, thin colours on its ground.
_STYLE = (
    "<style>"
    ".tfd{font-family:system-ui,sans-serif;color:inherit}"
    ".tfd text{fill:currentColor;font-size:12px;text-anchor:middle}.tfd text.small{opacity:.72;font-size:10px}"
    ".tfd rect{fill:#5b8fd9;fill-opacity:.13;stroke:#5b7db1}.tfd rect.variable{fill:#e0a030;stroke:#b7791f}"
    ".tfd rect.input{fill:none;stroke:#8a94a3}.tfd rect.output{fill:#3fae52;stroke:#3a8a3a}"
    ".tfd rect.fold{stroke-dasharray:4 3}.tfd rect.group{fill:#e0a030;stroke:#b7791f;stroke-dasharray:4 3}"
    ".tfd rect.broken{fill:#e05050;fill-opacity:.2;stroke:#d63b3b;stroke-width:2}"
    ".tfd path{fill:none;stroke:#5b7db1;stroke-width:1.3}"
    ".tfd path.broken{stroke:#d63b3b;stroke-width:2;stroke-dasharray:5 4}.tfd path.head{fill:#5b7db1;stroke:none}"
    ".tfd text.why{fill:#d63b3b;text-anchor:start}.tfd text.note{text-anchor:start}"
    "</style>"
)


class Box(NamedTuple):
    """One operation, variable, input or fold: its name, what stands below it in small letters, and the boxes it reads.

    `key` identifies what it does and where, so that repeated runs are found; of a variable, which one it is.
    """

    title: str
    details: tuple[str, ...]
    inputs: tuple[int, ...]
    kind: str = "node"
    key: object = None


def draw(boxes: Sequence[Box], caption: str = "", notes: Sequence[str] = (), limit: int = _LIMIT) -> str:
    """An SVG of boxes in the order in which they run; more than `limit`, or too many beside each other, are folded.

    >>> svg = draw([Box("x", (), (), "variable"), Box("sin", ("float32[2]",), (0,))])
    >>> svg.count("<rect")
    2
    """
    shown, sizes, edges, layout = _folded_layout(boxes, limit)
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
    label = escape(caption or f"a diagram of {counted(len(boxes), 'operation')}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="tfd" role="img" aria-label="{label}" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:100%;height:auto">'
        f'{_STYLE}<defs><marker id="tfd-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto-start-reverse"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>'
        f"{''.join(parts)}</svg>"
    )


def _folded_layout(
    boxes: Sequence[Box], limit: int
) -> tuple[list[Box], list[tuple[float, float]], list[tuple[int, int]], Layout]:
    """The boxes that are shown, their sizes, the edges between them, and their places: a fold that is not too wide."""
    while True:
        shown = fold(boxes, limit)
        sizes = [_size(box) for box in shown]
        edges = [(start, end) for end, box in enumerate(shown) for start in dict.fromkeys(box.inputs)]
        if len(edges) <= _DENSEST * len(shown) or limit <= _FEWEST:
            layout = layered_layout(sizes, edges)
            if layout.width <= _WIDEST or limit <= _FEWEST:
                return shown, sizes, edges, layout
        limit = 3 * min(limit, len(boxes)) // 4


def _clipped(text: str) -> str:
    """A long text without its middle: of names with scopes, the end says most."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 3]}...{text[-(_LONGEST - _LONGEST // 3 - 3) :]}"


def _size(box: Box) -> tuple[float, float]:
    letters = [len(_clipped(box.title)) * _LETTER, *(len(_clipped(detail)) * _SMALL_LETTER for detail in box.details)]
    return max(56.0, max(letters) + 20.0), 24.0 + 13.0 * len(box.details)


def _box(box: Box, size: tuple[float, float], x: float, y: float) -> str:
    width, height = size
    x += _MARGIN
    full = f"<title>{escape(box.title)}</title>" if len(box.title) > _LONGEST else ""
    texts = [f'{full}<text x="{x:.1f}" y="{y + 16:.1f}">{escape(_clipped(box.title))}</text>']
    for number, detail in enumerate(box.details):
        texts.append(
            f'<text class="small" x="{x:.1f}" y="{y + 29 + 13 * number:.1f}">{escape(_clipped(detail))}</text>'
        )
    mark = f' class="{box.kind}"' if box.kind != "node" else ""
    rounded = 12 if box.kind in ("variable", "group", "input") else 5
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


class _Run(NamedTuple):
    """Neighbours from `start` to before `end` that become one box; `times` iterations of a loop, if it is one."""

    start: int
    end: int
    times: int = 1


def fold(boxes: Sequence[Box], limit: int) -> list[Box]:
    """At most about `limit` boxes: repeated runs become one box, then neighbours of the same line, then neighbours.

    Folds are runs of neighbours in program order, so the folded graph has no cycles. Variables that the same fold
    reads become one box.
    """
    variables = [number for number, box in enumerate(boxes) if _is_variable(box)]
    steps = [number for number, box in enumerate(boxes) if not _is_variable(box)]
    ordered = [boxes[number] for number in steps]
    runs = [_Run(i, i + 1) for i in range(len(ordered))] if len(boxes) <= limit else _repeated_runs(ordered)
    if len(runs) > limit:
        runs = _joined(runs, ordered, limit)
    run_of = {steps[i]: number for number, run in enumerate(runs) for i in range(run.start, run.end)}
    readers: dict[int, dict[int, None]] = {number: {} for number in variables}
    for step in steps:
        for i in boxes[step].inputs:
            if i in readers:
                readers[i][run_of[step]] = None
    groups: list[list[int]] = []
    for read, same in _by_value({number: tuple(runs[i] for i in readers[number]) for number in variables}).items():
        together = len(same) > _BESIDE or any(run.end - run.start > 1 for run in read)
        groups += [same] if together else [[number] for number in same]
    first = len(groups)
    place = {step: first + run for step, run in run_of.items()}
    place |= {number: at for at, group in enumerate(groups) for number in group}
    shown = [_group([boxes[number] for number in group]) for group in groups]
    for number, run in enumerate(runs, first):
        members = ordered[run.start : run.end]
        inputs = tuple(dict.fromkeys(place[i] for box in members for i in box.inputs if place[i] != number))
        shown.append(_folded(members, inputs, run.times))
    return shown


def _by_value(value_by_key: dict[int, tuple[_Run, ...]]) -> dict[tuple[_Run, ...], list[int]]:
    keys: dict[tuple[_Run, ...], list[int]] = {}
    for key, value in value_by_key.items():
        keys.setdefault(value, []).append(key)
    return keys


def _is_variable(box: Box) -> bool:
    return box.kind == "variable" and not box.inputs


def _is_fixed(box: Box) -> bool:
    return box.kind in ("variable", "input", "output", "broken")


def _repeated_runs(boxes: Sequence[Box]) -> list[_Run]:
    """The iterations of a loop are one run; all else stands alone."""
    runs, at, keys = [], 0, [None if _is_fixed(box) else box.key for box in boxes]
    while at < len(boxes):
        best, times = 1, 1
        for period in range(1, min(64, (len(boxes) - at) // 2) + 1):
            end = at
            while end + period < len(boxes) and keys[end] is not None and keys[end] == keys[end + period]:
                end += 1
            iterations = (end - at + period) // period
            if iterations >= 3 and iterations * period > best:
                best, times = iterations * period, iterations
        runs.append(_Run(at, at + best, times))
        at += best
    return runs


def _joined(runs: list[_Run], boxes: Sequence[Box], limit: int) -> list[_Run]:
    """Neighbouring runs without fixed boxes, joined so that about `limit` are left."""
    free = sum(not _is_fixed(boxes[run.start]) for run in runs)
    fixed = len(runs) - free
    size = max(2, -(-free // max(4, limit - fixed)))
    joined: list[_Run] = []
    count = 0
    for run in runs:
        if not joined or count == 0 or count == size or _is_fixed(boxes[run.start]):
            joined.append(run)
            count = 0 if _is_fixed(boxes[run.start]) else 1
        else:
            joined[-1] = _Run(joined[-1].start, run.end)
            count += 1
    return joined


def _group(variables: list[Box]) -> Box:
    """Variables as one box."""
    if len(variables) == 1:
        return variables[0]
    names = list({box.title if box.key is None else box.key: box.title for box in variables}.values())
    if len(names) == 1:
        return Box(names[0], variables[0].details[:1], (), "group")
    between = ", " if len(names) == 2 else " ... "
    title = names[0] if len({*names}) == 1 else f"{names[0]}{between}{names[-1]}"
    return Box(title, (f"{len(names)} variables",), (), "group")


def _folded(members: Sequence[Box], inputs: tuple[int, ...], times: int) -> Box:
    """Neighbours as one box."""
    if len(members) == 1:
        return members[0]._replace(inputs=inputs)
    names = list(dict.fromkeys(box.title for box in members))
    title = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    places = list(dict.fromkeys(box.details[-1] for box in members if box.details))
    where = (places[0],) if len(places) == 1 else (f"{places[0]} ... {places[-1]}",) if places else ()
    count = f"{len(members)} operations"
    if 1 < times < len(members):
        count += f", {times} times {len(members) // times}"
    return Box(title, (count, *where), inputs, "fold")
