"""Functions that are traced again and again, and which argument is the reason."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.source_line import source_line

_MANY = 5  # traces after which they are a fault, if a third of the calls are such
_LEAVES_GRAPH = {"py_function", "numpy_function", "py_func"}


class Retraces:
    """Is notified of every call of a `tf.function`, also of those that run eagerly for the doctor."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, list[Any]]] = {}
        self._calls: dict[int, int] = {}
        self._rows: list[dict[str, Any]] = []

    def see_call(self, traces: Any, call: Any, explain: Callable[[list[Any]], str]) -> None:
        """The observer: `traces` belong to the function, `explain` compares the call with other signatures."""
        key = id(traces)
        known = self._known.setdefault(key, (traces, []))[1]
        self._calls[key] = self._calls.get(key, 0) + 1
        if any(other.covers(call) for other in known):
            return
        file, line = source_line(*_core.current_line())
        if known and len(self._rows) < 100:
            text = explain(known[-3:])
            self._rows.append(
                {"function": text.partition(":")[0], "file": file, "line": line, "call": self._calls[key],
                 "why": text.partition(":")[2].strip(), "key": key}
            )  # fmt: skip
        known.append(call)

    def rows(self) -> list[dict[str, Any]]:
        """All second and later traces."""
        return [{k: v for k, v in row.items() if k != "key"} for row in self._rows]

    def findings(self) -> list[Finding]:
        """Functions for which many calls need a graph of their own."""
        found = []
        for key, (_, known) in self._known.items():
            if len(known) < _MANY or 3 * len(known) < self._calls[key]:
                continue
            row = next(r for r in reversed(self._rows) if r["key"] == key)
            why = [part.strip() for part in row["why"].splitlines()[1:]]
            found.append(
                Finding(
                    "retracing", "hint",
                    f"{row['function']} is traced for {len(known)} of {self._calls[key]} calls: "
                    f"{why[0] if why else 'its arguments differ'}",
                    row["file"], row["line"], evidence={"traces": len(known), "calls": self._calls[key]},
                    remedy=why[1] if len(why) > 1 else "Pass tensors of one shape and dtype.", confidence=0.9,
                )
            )  # fmt: skip
        return found


def graph_breaks(files: set[str]) -> list[dict[str, Any]]:
    """Calls of Python code from inside of graphs, which no plan can hold, as the program's text shows them."""
    found = []
    for file in sorted(files):
        try:
            tree = ast.parse("".join(linecache.getlines(file)))
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _LEAVES_GRAPH:
                found.append({"file": file, "line": node.lineno, "operation": node.func.attr})
    return found
