"""Which functions to wrap in `tf.recompute_grad` so that a tape keeps no more than a budget."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from tapeflow._src.diagnostics.flow import Flow, Step
from tapeflow._src.diagnostics.source_line import source_line


class Block(NamedTuple):
    """The records that one function of the program made."""

    file: str
    function: str
    first_line: int
    last_line: int
    bytes_kept: int
    bytes_in: int  # of what enters it, which stays kept
    operations: int

    @property
    def saved(self) -> int:
        return self.bytes_kept - self.bytes_in

    def as_dict(self) -> dict[str, Any]:
        wrap = f"{self.function} = tf.recompute_grad({self.function})"
        if self.function.startswith("<"):
            wrap = f"put lines {self.first_line} to {self.last_line} into a function and wrap it in tf.recompute_grad"
        return self._asdict() | {"saved": self.saved, "remedy": wrap}


def blocks(tape: Any, flow: Flow) -> list[Block]:
    """The candidates, those that save most first. Module-level code is one candidate as a whole."""
    groups: dict[Any, list[tuple[Step, int]]] = {}
    records = [s for s in flow.steps if s.event == "record"]
    for step, row in zip(records, tape._rows()):
        if step.code is not None:
            groups.setdefault(step.code, []).append((step, row[3]))
    found = []
    for code, members in groups.items():
        inside = {value for step, _ in members for value in step.outputs}
        entering: dict[int, int] = {}
        for step, _ in members:
            for value, shape in zip(step.inputs, step.input_shapes):
                if value not in inside:
                    entering[value] = 4 * math.prod(d or 1 for d in shape or ())
        lines = [source_line(step.code, step.instruction)[1] for step, _ in members]
        kept = sum(size for _, size in members)
        found.append(
            Block(code.co_filename, code.co_name, min(lines), max(lines), kept, min(sum(entering.values()), kept),
                  len(members))
        )  # fmt: skip
    return sorted(found, key=lambda block: -block.saved)


def advice(candidates: list[Block], kept: int, budget: int) -> list[Block]:
    """The fewest functions that bring what is kept below the budget; all that help if they do not suffice."""
    chosen = []
    for block in candidates:
        if kept <= budget or block.saved <= 0:
            break
        chosen.append(block)
        kept -= block.saved
    return chosen
