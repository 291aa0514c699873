"""`tensorflow.python.eager.monitoring`: values that a library notes about itself; nobody collects them."""

from __future__ import annotations

from typing import Any


class Cell:
    """One value of a gauge."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def set(self, value: Any) -> None:
        """Notes a value."""
        self._value = type(self._value)(value)

    def value(self) -> Any:
        """The value that was noted last."""
        return self._value


class Gauge:
    """A value for each combination of labels."""

    _first: Any = 0

    def __init__(self, name: str, description: str, *labels: str) -> None:
        self.name, self.description, self._labels = name, description, labels
        self._cell_by_labels: dict[tuple[str, ...], Cell] = {}

    def get_cell(self, *labels: str) -> Cell:
        """The cell of these values of the labels."""
        if len(labels) != len(self._labels):
            raise ValueError(f"The {self.name} gauge needs {len(self._labels)} labels, got {len(labels)}.")
        return self._cell_by_labels.setdefault(labels, Cell(self._first))


class BoolGauge(Gauge):
    """A gauge of booleans."""

    _first = False


class IntGauge(Gauge):
    """A gauge of integers."""


class StringGauge(Gauge):
    """A gauge of strings."""

    _first = ""
