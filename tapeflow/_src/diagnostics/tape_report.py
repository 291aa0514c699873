"""What a tape holds, by line of the program, and how it prints."""

from __future__ import annotations

from typing import Any

from tapeflow._src.diagnostics.html.tables import block, table
from tapeflow._src.diagnostics.source_line import counted, place_text, source_line


class Summary(str):
    """The text of a summary, with its rows: the line, its records, their operations and the bytes they keep."""

    rows: list[tuple[str, int, str, int]]

    def __new__(cls, title: str, rows: list[tuple[str, int, str, int]]) -> Summary:
        lines = [f"  {place}  {count} x {names}, {kept} bytes" for place, count, names, kept in rows]
        summary = super().__new__(cls, "\n".join([title, *lines]))
        summary.rows = rows
        return summary

    def __reduce__(self) -> tuple[Any, ...]:
        return Summary, (self.partition("\n")[0], self.rows)

    def _repr_html_(self) -> str:
        rows = [(place, count, names, f"{kept:,}") for place, count, names, kept in self.rows]
        shown = table(("line", "records", "operations", "bytes kept"), rows, numbers=(1, 3))
        return block(f"tf.GradientTape: {self.partition(chr(10))[0]}", {}, shown)


def summary(tape: Any) -> Summary:
    """See `GradientTape.summary`."""
    rows: dict[tuple[str, int], list[Any]] = {}
    records = tape._records()
    for operation, code, instruction, kept, *_ in records:
        row = rows.setdefault(source_line(code, instruction), [0, 0, []])
        row[0] += 1
        row[1] += kept
        if operation not in row[2]:
            row[2].append(operation)
    total = sum(record[3] for record in records)
    title = f"{counted(len(records), 'record')}, {counted(total, 'byte')} kept"
    return Summary(
        title,
        [
            (place_text(file, line), count, ", ".join(operations), kept)
            for (file, line), (count, kept, operations) in rows.items()
        ],
    )


def text(tape: Any) -> str:
    """See `GradientTape.__repr__`."""
    state = "recording" if tape._recording else "used up" if tape._used_up else "closed"
    kind = "persistent, " if tape._persistent else ""
    return f"<tf.GradientTape: {kind}{state}, {counted(len(tape._records()), 'record')}>"
