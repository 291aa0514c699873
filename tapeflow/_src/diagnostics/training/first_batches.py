"""Datasets that begin anew for each training step, so that every step gets the first batch."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.source_line import source_line

_FEWEST = 5  # steps with the first batch
_MOST_PLACES = 200


class _Begun:
    """The iterations over one dataset that one line began."""

    def __init__(self) -> None:
        self.times = 0  # in a row, that one element was taken for one step
        self.dataset: Any = None
        self.pipe: Any = None  # what gives the batches; behind `take(1)`, what that takes from
        self.cursor: Any = None  # of the last iteration
        self.step = 0  # when it began


class FirstBatches:
    """Receives every iterator that the program makes, and counts those that give one batch to one step."""

    def __init__(self) -> None:
        self._begun: dict[tuple[Any, int, int], _Begun] = {}

    def see(self, dataset: Any, cursor: Any, step: int) -> None:
        """An iteration is about to begin, after so many steps."""
        pipe = cursor.source
        key = (*_core.current_line(), id(pipe))
        if key not in self._begun and len(self._begun) >= _MOST_PLACES:
            return
        begun = self._begun.setdefault(key, _Begun())
        if begun.cursor is not None:
            again = step == begun.step + 1 and begun.cursor.drawn == 1 and not begun.cursor.is_random
            is_meant = dataset is begun.dataset and _count(dataset) == 1  # take(1), before the loop
            again = again and not is_meant
            begun.times = begun.times + 1 if again else 0
        begun.dataset, begun.pipe, begun.cursor, begun.step = dataset, pipe, cursor, step

    def findings(self) -> list[Finding]:
        """One for each line; datasets of one batch alone are meant to be so."""
        repeated = [(key, begun) for key, begun in self._begun.items() if begun.times >= _FEWEST]
        return [
            Finding(
                "repeated-batch",
                "warning",
                f"the dataset begins anew for each step: {begun.times + 1} steps in a row got its first batch",
                *source_line(key[0], key[1]),
                evidence={"steps": begun.times + 1},
                remedy="for batch in dataset: ..., or make the iterator once, before the loop.",
                confidence=0.9,
            )
            for key, begun in repeated
            if int(begun.pipe.count()) != 1
        ]


def _count(dataset: Any) -> int:
    """How many elements a dataset has; a distributed one says it by a property."""
    cardinality = dataset.cardinality
    return int(cardinality() if callable(cardinality) else cardinality)
