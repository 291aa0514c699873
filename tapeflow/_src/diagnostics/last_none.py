"""What is known about gradients that were None when an error about None ends the program: told above the traceback."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Any

from tapeflow._src import _core
from tapeflow._src.diagnostics.explanation import Explanation
from tapeflow._src.diagnostics.why_none import explain
from tapeflow._src.namespace import public
from tapeflow._src.types import nest

_LONGEST_TAPE = 20_000  # records; explaining takes time that grows with them
_MOST_SITES = 100


class _Memory:
    """The explanations of gradients that were None, by the place that asked for them; once each."""

    def __init__(self) -> None:
        self.by_site: dict[tuple[Any, int, int], list[Explanation]] = {}
        self.latest: list[Explanation] = []
        self.shows = bool(os.environ.get("TAPEFLOW_EXPLAIN", "") not in ("", "0"))
        self.hooked = False


_memory = _Memory()


def remember_none(tape: Any, target: Any, sources: Any) -> None:
    """Called by the core when a gradient is None: explains it once for each place that asks."""
    code, instruction = _core.current_line()
    site = (code, instruction, len(nest.flatten(sources)))
    known = _memory.by_site.get(site)
    if known is None:
        if len(_memory.by_site) >= _MOST_SITES:
            return
        known = _memory.by_site[site] = _explanations(tape, target, sources)
        if _memory.shows and known:
            print(_text(known), file=sys.stderr)
    _memory.latest = known
    if not _memory.hooked and known:
        _memory.hooked = True
        _hook.previous = sys.excepthook
        sys.excepthook = _hook


def _explanations(tape: Any, target: Any, sources: Any) -> list[Explanation]:
    if len(tape._records()) > _LONGEST_TAPE:
        return []
    try:
        answers = explain(tape, target, list(nest.flatten(sources)), False)
    except Exception:  # an explanation must never be the error
        return []
    return [a for a in answers if a.cause != "connected"]


def _text(explanations: list[Explanation]) -> str:
    many = f"{len(explanations)} gradients are" if len(explanations) > 1 else "a gradient is"
    rows = {str(answer): None for answer in explanations}
    shown = list(rows)[:5]
    more = [f"... and {len(rows) - 5} more"] if len(rows) > 5 else []
    return "\n".join([f"Tapeflow: {many} None.", *(f"  {row}" for row in [*shown, *more])])


class _Hook:
    """Stands before the excepthook that was there."""

    previous: Any = None

    def __call__(self, kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if _is_about_none(error) and _memory.latest:
            print(_text(_memory.latest), file=sys.stderr)
        self.previous(kind, error, traceback)


_hook = _Hook()


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


_core.register_objects({"remember_none": remember_none})
