"""What a tape holds, by line of the program, and how it prints."""

from __future__ import annotations

from typing import Any

from tapeflow._src.diagnostics.source_line import place_text, source_line


def summary(tape: Any) -> str:
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
    lines = [f"{len(records)} record{'' if len(records) == 1 else 's'}, {total} bytes kept"]
    for (file, line), (count, kept, operations) in rows.items():
        lines.append(f"  {place_text(file, line)}  {count} x {', '.join(operations)}, {kept} bytes")
    return "\n".join(lines)


def text(tape: Any) -> str:
    """See `GradientTape.__repr__`."""
    state = "recording" if tape._recording else "used up" if tape._used_up else "closed"
    kind = "persistent, " if tape._persistent else ""
    return f"<tf.GradientTape: {kind}{state}, {len(tape._records())} records>"
