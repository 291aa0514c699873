"""Explains, above the traceback, gradients that were None when an error about None ends the program."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tapeflow._src import _core
from tapeflow._src.diagnostics.explanation import Explanation
from tapeflow._src.diagnostics.flow import Flow
from tapeflow._src.diagnostics.frames import Frames, user_frames
from tapeflow._src.diagnostics.graph_tape import GraphTape
from tapeflow._src.diagnostics.observers import observers
from tapeflow._src.diagnostics.source_line import place_text, source_line
from tapeflow._src.diagnostics.variable_names import variable_behind
from tapeflow._src.diagnostics.why_none import explain_with
from tapeflow._src.namespace import public
from tapeflow._src.types import nest

_LONGEST_TAPE = 20_000  # records; explaining takes time that grows with them
_MOST_SITES = 100


class _Memory:
    """The explanations of gradients that were None, by the place that asked for them; once each."""

    def __init__(self) -> None:
        self.by_site: dict[tuple[Any, int, tuple[int, ...]], list[Explanation]] = {}
        self.latest: Callable[[], list[Explanation]] | None = None
        self.asked_at = ""
        self.shows = bool(os.environ.get("TAPEFLOW_EXPLAIN", "") not in ("", "0"))
        self.hooked = False
        self.paused = False  # while a doctor asks tapes itself


_memory = _Memory()


def register_none(tape: Any, target: Any, sources: Any, missing: list[int]) -> None:
    """Called by the core when gradients are None: explains them once for each place that asks.

    `missing` has the numbers of the sources, as they are flattened.
    """
    if _memory.paused:
        return
    code, instruction = _core.current_line()
    site = (code, instruction, tuple(missing))
    known, fresh = _memory.by_site.get(site), None
    if known is None:
        if len(_memory.by_site) >= _MOST_SITES:
            return
        known = fresh = _explanations(tape, target, nest.flatten(sources), missing, user_frames())
        _memory.by_site[site] = known
    _keep(lambda: known, fresh)


def shows() -> bool:
    """Whether gradients that are None are explained when they are asked for."""
    return _memory.shows


def register_none_jvp() -> None:
    """Called when a tangent is None and no tape knows why: an error about None says how to get the reason."""
    if not _memory.paused:
        _keep(list, None)


def pause(paused: bool) -> bool:
    """Whether gradients that are None are let pass from now on; returns whether they were before."""
    before, _memory.paused = _memory.paused, paused
    return before


def register_missing(tape: Any, target: Any, sources: list[Any], jacobians: list[Any]) -> None:
    """Called when Jacobians are None: as `register_none`, and notifies a doctor."""
    register_none(tape, target, sources, [number for number, found in enumerate(jacobians) if found is None])
    if observers.jacobians is not None and not _memory.paused:
        observers.jacobians(tape, target, sources, jacobians)


def remember_graph_none(graph: Any, targets: list[Any], sources: list[Any], gradients: list[Any]) -> None:
    """Called when gradients of a graph are None: keeps what is needed to explain them, if an error asks for it."""
    frames = user_frames()
    missing = [number for number, gradient in enumerate(gradients) if gradient is None]

    def explain_later() -> list[Explanation]:
        return _explanations(GraphTape(graph), targets, sources, missing, frames)

    _keep(explain_later, explain_later() if _memory.shows else None)


def _keep(latest: Callable[[], list[Explanation]], fresh: list[Explanation] | None) -> None:
    _memory.latest = latest
    _memory.asked_at = place_text(*source_line(*_core.current_line()))
    if _memory.shows and fresh:
        print(_text(fresh), file=sys.stderr)
    if not _memory.hooked:
        _memory.hooked = True
        _hook.previous = sys.excepthook
        sys.excepthook = _hook


def _explanations(tape: Any, target: Any, sources: list[Any], missing: list[int], frames: Frames) -> list[Explanation]:
    if len(tape._records()) > _LONGEST_TAPE:
        return []
    targets = [variable_behind(t) for t in nest.flatten(target) if t is not None]
    try:
        flow = Flow(tape)
        return [
            explain_with(tape, flow, frames, targets, sources[i], True, i if len(sources) > 1 else None)
            for i in missing
        ]
    except Exception:  # an explanation must never be the error
        return []


def _text(explanations: list[Explanation]) -> str:
    """One row for each cause and line, with all sources that it is about."""
    many = f"{len(explanations)} gradients are" if len(explanations) > 1 else "a gradient is"
    groups: dict[tuple[str, str], list[Explanation]] = {}
    for answer in explanations:
        groups.setdefault((answer.cause, f"{answer.file}:{answer.line}"), []).append(answer)
    rows = [_row(group) for group in groups.values()]
    more = [f"... and {len(rows) - 5} more"] if len(rows) > 5 else []
    return "\n".join([f"Tapeflow: {many} None at {_memory.asked_at}.", *(f"  {row}" for row in [*rows[:5], *more])])


def _row(group: list[Explanation]) -> str:
    first, others = group[0], len(group) - 1
    row = str(first)
    if others:
        row += f" So it is for {others} more: {'; '.join(str(a.source) for a in group[1:4])}{' ...' * (others > 3)}."
    return row


class _Hook:
    """Stands before the excepthook that was there."""

    previous: Any = None

    def __call__(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if (text := text_about(error)) is not None:
            print(text, file=sys.stderr)
        self.previous(kind, error, traceback)


_hook = _Hook()


def text_about(error: BaseException | None) -> str | None:
    """The explanation of the last gradients that were None, if an error or what caused it is about None."""
    seen: list[BaseException] = []
    while error is not None and error not in seen and not _is_about_none(error):
        seen.append(error)
        error = error.__cause__ or error.__context__
    if error is None or error in seen or _memory.latest is None:
        return None
    explanations = _memory.latest()
    if _memory.latest is list:
        return (
            f"Tapeflow: a Jacobian-vector product is None at {_memory.asked_at}: nothing that forward mode followed "
            "leads from the primals to it. Set TAPEFLOW_EXPLAIN=1, or run `tapeflow doctor`, for the reason."
        )
    return _text(explanations) if explanations else None


def _is_about_none(error: BaseException) -> bool:
    if not isinstance(error, TypeError | ValueError | AttributeError):
        return False
    text = str(error)
    return "None" in text or "No gradients provided" in text


@public("debugging.enable_gradient_explanations")
def enable_gradient_explanations() -> None:
    """From now on, a gradient that is None is explained on stderr, once for each line that asks for it.

    The environment variable `TAPEFLOW_EXPLAIN=1` does the same for a whole program. Without either, the explanation is
    shown when an error about None ends the program.

    >>> tf.debugging.enable_gradient_explanations()
    >>> tf.debugging.disable_gradient_explanations()
    """
    _memory.shows = True


@public("debugging.disable_gradient_explanations")
def disable_gradient_explanations() -> None:
    """Ends `tf.debugging.enable_gradient_explanations`.

    >>> tf.debugging.disable_gradient_explanations()
    """
    _memory.shows = False


_core.register_objects({"register_none": register_none})
observers.graph_none = remember_graph_none
