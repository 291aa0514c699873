"""A graph as text and as a drawing: its nodes in the order in which they run."""

from __future__ import annotations

from typing import Any, NamedTuple

from tapeflow._src import _core
from tapeflow._src.diagnostics.diagram import Box, draw
from tapeflow._src.diagnostics.source_line import short_file, short_place, source_line
from tapeflow._src.variables import Variable

_NAMES = 12  # operations of a branch that are named


class _Row(NamedTuple):
    """An input or a node: title, inputs, outputs, line of the program, and the variable that it reads or assigns."""

    title: str
    inputs: list[Any]
    outputs: list[Any]
    place: str
    variable: Any = None


def _rows(graph: Any) -> list[_Row]:
    rows = [_Row(tensor.name, [], [tensor], "") for tensor in graph.inputs]
    variables = _variables(graph)
    for number in range(graph.node_count):
        node = graph.node(number)
        if node is None:
            continue
        operation, _, inputs, outputs, code, instruction = node
        file, line = source_line(code, instruction)
        place = short_place(file, line) if line else ""
        rows.append(_Row(operation, inputs, outputs, place, variables.get(number)))
    return rows


def _variables(graph: Any) -> dict[int, Any]:
    """The variable that a node reads or assigns, by the node's number."""
    first_parameter = {node[6]: node[2][0][1] for node in _core.graph_data(graph)[2] if node[2]}
    return {number: value for number, value in first_parameter.items() if isinstance(value, Variable)}


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
            files = {short_file(file) for file, line in places if line}
            numbers = [line for _, line in places if line]
            place = ""
            if len(files) == 1:
                first, last = min(numbers), max(numbers)
                place = f"  # {short_place(next(file for file, line in places if line), first)}" + (
                    f"-{last}" if last > first else ""
                )
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
    for title, inputs, outputs, place, _ in _rows(graph):
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
    for title, inputs, results, line, variable in _rows(graph):
        key: object = (title, line)
        is_input = not inputs and not line and variable is None
        kind = "output" if any(id(t) in outputs for t in results) else "input" if is_input else "node"
        kinds = ", ".join(_kind(t) for t in results)
        if variable is not None:
            name = variable.name.removesuffix(":0")
            if results and kind != "output":
                kind, title, key = "variable", name, id(variable)
            else:
                title = f"{title} {name}"
        details = tuple(detail for detail in (kinds, line) if detail)
        read = tuple(dict.fromkeys(box_by_id[id(t)] for t in inputs if id(t) in box_by_id))
        kept.append((inputs, results))  # so that identities stay theirs
        box_by_id.update({id(t): len(boxes) for t in results})
        boxes.append(Box(title.removesuffix(":0") if is_input else title, details, read, kind, key))
    return draw(boxes, notes=_region_lines(graph))
