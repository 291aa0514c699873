"""A tape as a diagram: its records in layers, variables by name, and the place marked where the gradient stops."""

from __future__ import annotations

from typing import Any

from tapeflow._src.diagnostics.diagram import Box, draw
from tapeflow._src.diagnostics.flow import Flow, Step
from tapeflow._src.diagnostics.frames import names_of, user_frames
from tapeflow._src.diagnostics.source_line import short_place
from tapeflow._src.diagnostics.variable_names import made_at
from tapeflow._src.diagnostics.why_none import explain


def svg(tape: Any, target: Any = None, source: Any = None) -> str:
    """See `GradientTape.svg`."""
    answer = None if target is None or source is None else explain(tape, target, source)
    flow = Flow(tape)
    broken = answer is not None and answer.cause != "connected"
    steps = [s for s in flow.steps if s.event in ("record", "operation", "assign")]
    if not broken:
        steps = [s for s in steps if s.event == "record"]
    marked = None
    if broken and answer is not None:
        here = [s for s in steps if s.place == (answer.file, answer.line)]
        marked = next((s for s in here if _name(s) == (answer.operation or _name(s))), None)
    return draw(_boxes(tape, steps, marked), str(answer) if broken else "")


def _name(step: Step) -> str:
    return step.short_name or step.event


def _boxes(tape: Any, steps: list[Step], marked: Step | None) -> list[Box]:
    """The variables and other watched values that are read, then the steps."""
    made = {value for step in steps for value in step.outputs}
    read = dict.fromkeys(value for step in steps for value in step.inputs if value not in made)
    name_by_index = _variable_names(tape)
    watched = {value: name for value, name in name_by_index.items() if value in read}
    boxes = [Box(name, details, (), "variable", value) for value, (name, details) in watched.items()]
    box_by_value = {value: number for number, value in enumerate(watched)}
    kinds = _kinds(tape)
    record = 0
    for step in steps:
        file, line = step.place
        details: tuple[str, ...] = (short_place(file, line),)
        if step.event == "record":
            details = (kinds[record], *details)
            record += 1
        inputs = tuple(dict.fromkeys(box_by_value[value] for value in step.inputs if value in box_by_value))
        for value in step.outputs:
            box_by_value[value] = len(boxes)
        boxes.append(
            Box(_name(step), details, inputs, "broken" if step is marked else "node", (_name(step), file, line))
        )
    return boxes


def _variable_names(tape: Any) -> dict[int, tuple[str, tuple[str, ...]]]:
    """By index on the tape: the name of a watched variable, and its dtype and shape.

    A variable without a name of its own has that of the program; if there is none, the line that made it stands there.
    """
    found: dict[int, tuple[str, tuple[str, ...]]] = {}
    frames = user_frames()
    for variable in tape.watched_variables():
        index = tape._index_of(variable)
        if index is not None:
            name = variable.name.partition(":")[0]
            details: tuple[str, ...] = (_kind(variable.dtype.name, variable.shape),)
            if name == "Variable":
                labels = [named.label for named in names_of(variable, frames)]
                made = made_at(variable)
                details += (short_place(*made),) if made is not None and not labels else ()
                name = labels[0] if labels else name
            found[index] = (name, details)
    return found


def _kinds(tape: Any) -> list[str]:
    """For each record, the dtypes and shapes of its outputs."""
    return [
        ", ".join(_kind(dtype, shape) for dtype, shape in zip(record[7], shapes))
        for record, shapes in zip(tape._records(), tape._shapes())
    ]


def _kind(dtype: str, shape: Any) -> str:
    return f"{dtype}[{', '.join('?' if d is None else str(d) for d in shape)}]" if shape.rank is not None else dtype
