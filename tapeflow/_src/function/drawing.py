"""A graph as text and as a drawing: its nodes in the order in which they run."""

from __future__ import annotations

import os
from typing import Any

from tapeflow._src.diagnostics.diagram import Box, draw
from tapeflow._src.diagnostics.source_line import source_line

_NAMES = 12  # operations of a branch that are named


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


def _region_lines(graph: Any) -> list[str]:
    """The parallel regions: a title for each, then `lane 1: MatMul, Cholesky  # file.py:7-9`."""
    lines = []
    for pipelined, lanes in graph.parallel_regions():
        lines.append("parallel region" + (", the second lane waits for the first:" if pipelined else ":"))
        for number, nodes in enumerate(lanes, 1):
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
            lines.append(f"  lane {number}: {', '.join(names)}{place}")
    return lines


def text(graph: Any) -> str:
    """One line per node, `%2 = AddV2(%0, %1) : float32[3]   # file.py:7`, then the parallel regions."""
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
    lines += [f"  {line}" for line in _region_lines(graph)]
    return "\n".join(lines) + "\n"


def svg(graph: Any) -> str:
    """The graph in layers, with arrows from values to their users; below, the parallel regions."""
    outputs = {id(t) for t in graph.outputs}
    box_by_id: dict[int, int] = {}
    kept: list[Any] = []
    boxes: list[Box] = []
    for title, inputs, results, line in _rows(graph):
        is_input = not inputs and not line
        kind = "output" if any(id(t) in outputs for t in results) else "input" if is_input else "node"
        kinds = ", ".join(_kind(t) for t in results)
        details = tuple(detail for detail in (kinds, line) if detail)
        read = tuple(dict.fromkeys(box_by_id[id(t)] for t in inputs if id(t) in box_by_id))
        kept.append((inputs, results))  # so that identities stay theirs
        box_by_id.update({id(t): len(boxes) for t in results})
        boxes.append(Box(title.removesuffix(":0") if is_input else title, details, read, kind, (title, line)))
    return draw(boxes, notes=_region_lines(graph))
