"""A graph as text and as a drawing: its nodes in the order in which they run."""

from __future__ import annotations

import os
from html import escape
from typing import Any

from tapeflow._src.diagnostics.source_line import source_line

_LIMIT = 200  # boxes; of a longer graph the first and last half are drawn
_NAMES = 12  # operations of a branch that are named
_WIDTH, _HEIGHT, _GAP, _LEFT = 320, 34, 18, 140
_STYLE = (
    "<style>text{font:12px sans-serif}.line{fill:#777;font-size:10px}rect{fill:#eef3fb;stroke:#5b7db1}"
    "rect.input{fill:#fff;stroke:#777}rect.output{fill:#eaf7ea;stroke:#3a8a3a}path{fill:none;stroke:#8aa4cc}</style>"
)


def _rows(graph: Any) -> list[tuple[str, list[Any], list[Any], str]]:
    """For each input and node: its title, what it takes, what it gives, and the line of the program."""
    rows: list[tuple[str, list[Any], list[Any], str]] = [(tensor.name, [], [tensor], "") for tensor in graph.inputs]
    for number in range(graph.node_count):
        node = graph.node(number)
        if node is None:
            continue
        operation, _, inputs, outputs, code, instruction = node
        file, line = source_line(code, instruction)
        rows.append((operation, inputs, outputs, f"{os.path.basename(file)}:{line}" if line else ""))
    return rows


def _kind(tensor: Any) -> str:
    return f"{tensor.dtype.name}{list(tensor.shape) if tensor.shape.rank is not None else '[?]'}".replace("None", "?")


def _branch_lines(graph: Any) -> list[str]:
    """What runs at the same time: a title for each section, then `branch 1: MatMul, Cholesky  # file.py:7-9`."""
    lines = []
    for follows, parts in graph.branches():
        lines.append("at the same time" + (", the second behind the first:" if follows else ":"))
        for number, nodes in enumerate(parts, 1):
            names = [operation for operation, _, _ in nodes]
            if len(names) > _NAMES:
                names[_NAMES:] = [f"and {len(names) - _NAMES} more"]
            places = [source_line(code, instruction) for _, code, instruction in nodes]
            files = {os.path.basename(file) for file, line in places if line}
            numbers = [line for _, line in places if line]
            place = ""
            if len(files) == 1:
                first, last = min(numbers), max(numbers)
                place = f"  # {files.pop()}:{first}" + (f"-{last}" if last > first else "")
            lines.append(f"  branch {number}: {', '.join(names)}{place}")
    return lines


def text(graph: Any) -> str:
    """One line per node, `%2 = AddV2(%0, %1) : float32[3]   # file.py:7`, then what runs at the same time."""
    number_by_id: dict[int, int] = {}
    kept = []

    def show(tensor: Any) -> str:
        kept.append(tensor)
        number = number_by_id.get(id(tensor))
        return _kind(tensor) if number is None else f"%{number}"

    lines = [f"{graph.name}:"]
    for title, inputs, outputs, place in _rows(graph):
        given = ", ".join(show(t) for t in inputs)
        for tensor in outputs:
            number_by_id[id(tensor)] = len(number_by_id)
        names = ", ".join(show(t) for t in outputs)
        kinds = ", ".join(_kind(t) for t in outputs)
        is_input = title.endswith(":0") and not inputs
        call = f"input {title[:-2]}" if is_input else f"{title}({given})"
        lines.append(
            f"  {names + ' = ' if names else ''}{call}{' : ' + kinds if kinds else ''}{'  # ' + place if place else ''}"
        )
    lines.append(f"  return {', '.join(show(t) for t in graph.outputs)}")
    lines += [f"  {line}" for line in _branch_lines(graph)]
    return "\n".join(lines) + "\n"


def svg(graph: Any) -> str:
    """The graph from top to bottom, with arcs from values to their users; below, what runs at the same time."""
    rows = _rows(graph)
    skipped = max(0, len(rows) - _LIMIT)
    if skipped:
        rows = rows[: _LIMIT // 2] + rows[len(rows) - _LIMIT // 2 :]
    outputs = {id(t) for t in graph.outputs}
    y_by_id: dict[int, int] = {}
    parts: list[str] = []
    for place, (title, inputs, results, line) in enumerate(rows):
        y = 20 + place * (_HEIGHT + _GAP)
        kind = "output" if any(id(t) in outputs for t in results) else "input" if not inputs and not line else "node"
        for tensor in inputs:
            start = y_by_id.get(id(tensor))
            if start is not None:
                bend = min(_LEFT - 10, 12 + (y - start) // 6)
                parts.append(
                    f'<path d="M{_LEFT} {start + _HEIGHT // 2} C{_LEFT - bend} {start + _HEIGHT // 2} '
                    f'{_LEFT - bend} {y + _HEIGHT // 2} {_LEFT} {y + _HEIGHT // 2}"/>'
                )
        for tensor in results:
            y_by_id[id(tensor)] = y
        label = escape(f"{title}  {', '.join(_kind(t) for t in results)}")
        parts.append(
            f'<rect class="{kind}" x="{_LEFT}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="4"/>'
            f'<text x="{_LEFT + 8}" y="{y + 15}">{label}</text>'
            f'<text class="line" x="{_LEFT + 8}" y="{y + 28}">{escape(line)}</text>'
        )
    if skipped:
        parts.append(f'<text x="{_LEFT}" y="14">{skipped} nodes in the middle are left out</text>')
    height = 40 + len(rows) * (_HEIGHT + _GAP)
    for line in _branch_lines(graph):
        parts.append(f'<text x="{_LEFT}" y="{height}" xml:space="preserve">{escape(line)}</text>')
        height += _GAP
    size = f'width="{_LEFT + _WIDTH + 20}" height="{height}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{_STYLE}{"".join(parts)}</svg>'
