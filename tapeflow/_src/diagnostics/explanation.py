"""The answer to "why is it None?", and the exception that carries it."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable
from html import escape
from typing import Any, NamedTuple

from tapeflow._src import primitives
from tapeflow._src.diagnostics.html.tables import Html, block, code, mark, sheet, table
from tapeflow._src.diagnostics.source_line import place_text
from tapeflow._src.namespace import public


class Explanation(NamedTuple):
    """The answer of `GradientTape.explain`: prints as a sentence, and can be taken apart."""

    cause: str
    text: str
    advice: str
    operation: str | None = None
    file: str | None = None
    line: int | None = None
    source: str | None = None  # which source: its names, and where it was made
    depends_on: tuple[str, ...] = ()  # what the target does depend on, where that helps
    integer_at: tuple[str, int] | None = None  # for an index: the line where the values became integers

    def __str__(self) -> str:
        place = f" ({place_text(self.file, self.line or 0)})" if self.file else ""
        about = f" The source is {self.source}." if self.source else ""
        others = f" The target depends on {', '.join(self.depends_on)}." if self.depends_on else ""
        return f"{self.text}{place}. {self.advice}{about}{others}"

    def _repr_html_(self) -> str:
        rows: list[tuple[str, object]] = [("why", self.text), ("do", self.advice)]
        if self.file:
            source = linecache.getline(self.file, self.line or 0).strip()
            where = escape(place_text(self.file, self.line or 0))
            rows.insert(1, ("where", Html(where + (code(source) if source else ""))))
        rows += [("operation", self.operation)] if self.operation else []
        rows += [("source", self.source)] if self.source else []
        rows += [("the target depends on", ", ".join(self.depends_on))] if self.depends_on else []
        return block(mark(self.cause, "good" if self.cause == "connected" else "severe"), {}, sheet(rows))


class ExplanationList(list[Any]):
    """The answers for a list of sources."""

    def _repr_html_(self) -> str:
        return _answers_html(enumerate(self))


class ExplanationTuple(tuple[Any, ...]):
    """The answers for a tuple of sources."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return _answers_html(enumerate(self))


class ExplanationDict(dict[Any, Any]):
    """The answers for a dictionary of sources."""

    def _repr_html_(self) -> str:
        return _answers_html(self.items())


_SHOWN_AS: dict[type, Callable[[Any], Any]] = {list: ExplanationList, tuple: ExplanationTuple, dict: ExplanationDict}


def shown_in_notebooks(answers: Any) -> Any:
    """A structure of answers, which notebooks show as a table; other structures stay as they are."""
    shown = _SHOWN_AS.get(type(answers))
    return answers if shown is None else shown(answers)


def _answers_html(answers: Iterable[tuple[Any, Any]]) -> str:
    rows: list[tuple[object, ...]] = []
    for name, answer in answers:
        if isinstance(answer, Explanation):
            good = answer.cause == "connected"
            where = place_text(answer.file, answer.line or 0) if answer.file else ""
            rows.append((name, mark(answer.cause, "good" if good else "severe"), answer.text, where, answer.advice))
        else:
            rows.append((name, "", str(answer), "", ""))
    return block("explanations", {}, table(("source", "cause", "why", "where", "do"), rows))


@public("autodiff.NoGradientError")
class NoGradientError(ValueError):
    """Raised by `GradientTape(strict=True)` instead of giving None; `explanation` says why, `explanations` for each.

    >>> x = tf.Variable(7.)
    >>> with tf.GradientTape(strict=True) as tape:
    ...     y = tf.floor(x)
    >>> try:
    ...     tape.gradient(y, x)
    ... except tf.autodiff.NoGradientError as error:
    ...     print(error.explanation.operation)
    floor
    """

    def __init__(self, *explanations: Explanation) -> None:
        first = explanations[0]
        if len(explanations) == 1:
            text = f"the gradient is None. {first}"
        else:
            rows = "".join(f"\n  {number}. {answer}" for number, answer in enumerate(explanations, 1))
            text = f"{len(explanations)} gradients are None.{rows}"
        super().__init__(f"GradientTape.gradient: {text}")
        self.explanation, self.explanations = first, explanations


def ends_at(operation: str, place: tuple[str, int], effect: str = "") -> Explanation:
    """The answer for an operation on the path through which no gradient flows."""
    advice = primitives.facts_by_function.get(operation, {}).get("advice")
    return Explanation(
        "stop_gradient" if operation == "stop_gradient" else "operation without gradient",
        f"The path from the source ends at {operation}{effect}, through which no gradient flows",
        advice or "Use an operation that has a gradient, or give it one with tf.custom_gradient.",
        operation,
        *place,
    )
