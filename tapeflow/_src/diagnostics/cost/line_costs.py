"""Time, memory and gradients by line: what each line of the program costs in a step, forward and backward."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.diagnostics.source_line import source_line

_MOST_ROWS = 400
_FIRST_STEPS = 3


class LineCosts:
    """Adds up what tapes keep and how long operations take. `check` sees every operation (a NumericsCheck)."""

    def __init__(self, check: Any) -> None:
        self._check = check
        self._lines: dict[tuple[str, int], dict[str, Any]] = {}
        self.measured_steps = 0
        self._measuring = False
        self._kept = self._peak = 0
        self._peak_lines: list[tuple[tuple[str, int], int]] = []

    @property
    def places(self) -> set[tuple[str, int]]:
        return set(self._lines)

    def is_due(self, calls: int) -> bool:
        """Whether the next step is measured: the first ones, then fewer and fewer, since measuring is dear."""
        return calls < _FIRST_STEPS or calls & (calls - 1) == 0

    def begin_step(self) -> None:
        """A step that is measured begins."""
        self.measured_steps += 1
        self._measuring = True
        _core.reset_memory_peak()
        self._check.measure(True)

    def end_step(self) -> None:
        """Its gradients are there."""
        if not self._measuring:
            return
        self._measuring = False
        self._check.measure(False)
        self._peak = max(self._peak, _core.memory_info()["peak"])

    def see_records(self, tape: Any) -> None:
        """What a tape keeps, by line."""
        kept: dict[tuple[str, int], int] = {}
        for name, code, instruction, size, *_ in tape._records():
            line = source_line(code, instruction)
            kept[line] = kept.get(line, 0) + size
            self._entry(line)["operations"].add(name.rpartition(".")[2])
        for line, size in kept.items():
            self._lines[line]["bytes_kept"] = max(self._lines[line]["bytes_kept"], size)
        if sum(kept.values()) > self._kept:
            self._kept = sum(kept.values())
            self._peak_lines = sorted(kept.items(), key=lambda row: -row[1])[:20]

    def _entry(self, line: tuple[str, int]) -> dict[str, Any]:
        new = {
            "bytes_kept": 0,
            "operations": set(),
            "forward_seconds": 0.0,
            "backward_seconds": 0.0,
            "largest_gradient": None,
        }
        return self._lines.setdefault(line, new)

    def _times(self) -> list[tuple[str, tuple[str, int], bool, float, int, int, float]]:
        steps = max(self.measured_steps, 1)
        return [
            (name.rpartition(".")[2], source_line(code, instruction), backward, ns / 1e9 / steps, calls, size, largest)
            for name, code, instruction, backward, ns, calls, size, largest in self._check.times()
        ]

    def rows(self, marks: dict[tuple[str | None, int | None], list[str]]) -> list[dict[str, Any]]:
        """The lines of the report: per measured step."""
        for entry in self._lines.values():
            entry.update(forward_seconds=0.0, backward_seconds=0.0)
        for name, line, backward, seconds, _, _, largest in self._times():
            entry = self._entry(line)
            entry["backward_seconds" if backward else "forward_seconds"] += seconds
            entry["operations"].add(name)
            if backward:
                entry["largest_gradient"] = max(entry["largest_gradient"] or 0.0, largest)
        rows = [
            {"file": file, "line": line, "forward_seconds": round(about["forward_seconds"], 9),
             "backward_seconds": round(about["backward_seconds"], 9), "bytes_kept": about["bytes_kept"],
             "largest_gradient": about["largest_gradient"], "operations": sorted(about["operations"]),
             "marks": marks.get((file, line), [])}
            for (file, line), about in self._lines.items()
        ]  # fmt: skip
        return sorted(rows, key=lambda row: (row["file"], row["line"]))[:_MOST_ROWS]

    def operations(self) -> list[dict[str, Any]]:
        """The same by operation, the dearest first."""
        table: dict[str, dict[str, Any]] = {}
        for name, _, backward, seconds, calls, size, _ in self._times():
            new = {"operation": name, "calls": 0, "forward_seconds": 0.0, "backward_seconds": 0.0, "bytes": 0}
            row = table.setdefault(name, new)
            row["backward_seconds" if backward else "forward_seconds"] += seconds
            row["calls"] += 0 if backward else calls
            row["bytes"] += size
        rows = sorted(table.values(), key=lambda row: -row["forward_seconds"] - row["backward_seconds"])[:40]
        return [r | {k: round(r[k], 9) for k in ("forward_seconds", "backward_seconds")} for r in rows]

    def memory(self) -> dict[str, Any]:
        """What tapes kept at most, by line, and the peak of all tensors."""
        return {
            "kept": self._kept,
            "peak": self._peak,
            "at_peak": [{"file": file, "line": line, "bytes": size} for (file, line), size in self._peak_lines if size],
        }
