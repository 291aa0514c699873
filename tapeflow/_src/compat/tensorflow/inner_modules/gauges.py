"""`tensorflow.python.eager.monitoring`: values that a library notes about itself; nobody collects them."""

from __future__ import annotations

import bisect
import functools
import time
from collections.abc import Callable
from typing import Any

from tapeflow._src.namespace import find_public


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
    _cell_type: type[Any] = Cell

    def __init__(self, name: str, description: str, *labels: str) -> None:
        self.name, self.description, self._labels = name, description, labels
        self._cell_by_labels: dict[tuple[str, ...], Any] = {}

    def get_cell(self, *labels: str) -> Any:
        """The cell of these values of the labels."""
        if len(labels) != len(self._labels):
            raise ValueError(f"The {self.name} gauge needs {len(self._labels)} labels, got {len(labels)}.")
        return self._cell_by_labels.setdefault(labels, self._cell_type(self._first))


class BoolGauge(Gauge):
    """A gauge of booleans."""

    _first = False


class IntGauge(Gauge):
    """A gauge of integers."""


class StringGauge(Gauge):
    """A gauge of strings."""

    _first = ""


class CounterCell(Cell):
    """One number of a counter."""

    def increase_by(self, value: int) -> None:
        """Adds to the number."""
        self._value += value


class Counter(Gauge):
    """A number that grows, for each combination of labels."""

    _cell_type = CounterCell


class ExponentialBuckets:
    """The limits of a histogram: `scale * growth_factor**i`, `bucket_count` of them."""

    def __init__(self, scale: float, growth_factor: float, bucket_count: int) -> None:
        self.limits = [scale * growth_factor**i for i in range(bucket_count)]


class SamplerCell:
    """The samples of one combination of labels."""

    def __init__(self, limits: list[float]) -> None:
        self._limits = limits
        self._samples: list[float] = []

    def add(self, value: float) -> None:
        """Notes a sample."""
        self._samples.append(value)

    def value(self) -> Any:
        """A histogram of the samples."""
        samples = self._samples
        counts = [0] * (len(self._limits) + 1)
        for sample in samples:
            counts[bisect.bisect_right(self._limits, sample)] += 1
        return find_public("compat.v1.HistogramProto")(
            min=min(samples, default=0.0),
            max=max(samples, default=0.0),
            num=len(samples),
            sum=sum(samples),
            sum_squares=sum(x * x for x in samples),
            bucket_limit=[*self._limits, float("inf")],
            bucket=counts,
        )


class Sampler:
    """A histogram for each combination of labels."""

    def __init__(self, name: str, buckets: ExponentialBuckets, description: str, *labels: str) -> None:
        self.name, self.description, self._labels = name, description, labels
        self._limits = buckets.limits
        self._cell_by_labels: dict[tuple[str, ...], SamplerCell] = {}

    def get_cell(self, *labels: str) -> SamplerCell:
        """The cell of these values of the labels."""
        if len(labels) != len(self._labels):
            raise ValueError(f"The {self.name} sampler needs {len(self._labels)} labels, got {len(labels)}.")
        return self._cell_by_labels.setdefault(labels, SamplerCell(self._limits))


open_sections: list[str] = []


class MonitoredTimer:
    """Adds the microseconds of a block to the cell of a counter."""

    def __init__(
        self, cell: CounterCell, monitored_section_name: str | None = None, avoid_repetitive_counting: bool = False
    ) -> None:
        self.cell, self.monitored_section_name = cell, monitored_section_name
        self._once, self._start = avoid_repetitive_counting, 0.0
        self._counting = True

    def __enter__(self) -> MonitoredTimer:
        name = self.monitored_section_name
        self._counting = not (self._once and name in open_sections)
        if self._counting and name:
            open_sections.append(name)
        self._start = time.perf_counter()
        return self

    def __exit__(self, *exception: Any) -> None:
        if not self._counting:
            return
        self.cell.increase_by(int((time.perf_counter() - self._start) * 1e6))
        if self.monitored_section_name:
            open_sections.remove(self.monitored_section_name)


def monitored_timer(cell: CounterCell) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that adds the microseconds of each call to the cell of a counter."""

    def decorate(func: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(func)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with MonitoredTimer(cell):
                return func(*args, **kwargs)

        return timed

    return decorate


names: dict[str, Any] = {
    kind.__name__: kind
    for kind in (BoolGauge, Counter, ExponentialBuckets, IntGauge, MonitoredTimer, Sampler, StringGauge)
} | {"MonitoredTimerSections": open_sections, "monitored_timer": monitored_timer}
