"""Running a graph one operation at a time: each operation runs once, and what it gives is kept for later parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from tapeflow._src import _core

# The operation, when it began and ended (nanoseconds since the epoch), and what it gave.
Event = tuple[Any, int, int, list[Any]]


class StepwiseRun:
    """The values that a run has so far, by the number of the tensor, and the nodes that ran for them."""

    def __init__(self, graph: Any, report: Callable[[Event], None] | None = None) -> None:
        self._graph, self._report = graph, report
        self._value_by_number: dict[int, Any] = {}
        self._nodes_run: set[int] = set()

    def feed(self, tensor: Any, value: Any) -> None:
        """Gives a tensor a value."""
        self._value_by_number[_number(tensor)] = value

    def compute(self, tensors: list[Any], operations: Iterable[int]) -> list[Any]:
        """The values of tensors, once the operations and all that is needed for them have run."""
        for number in sorted(self._needed([*map(_node, tensors), *operations], tensors)):
            self._run_node(number)
        return [tensor if _core.place_of(tensor) is None else self._value(tensor) for tensor in tensors]

    def _value(self, tensor: Any) -> Any:
        number = _number(tensor)
        if number not in self._value_by_number:  # a value that no node of this graph gives
            self._value_by_number[number] = self._graph.subgraph([tensor], [], []).call([])[0]
        return self._value_by_number[number]

    def _needed(self, nodes: list[int], tensors: list[Any]) -> set[int]:
        """The nodes that have to run, besides those that did: a node whose outputs are all fed does not."""
        fed = {_node(tensor) for tensor in tensors if _number(tensor) in self._value_by_number}
        waiting = [number for number in nodes if number >= 0 and number not in fed]
        found: set[int] = set()
        while waiting:
            number = waiting.pop()
            if number in found or number in self._nodes_run:
                continue
            found.add(number)
            inputs = [x for x in self._graph.node(number)[2] if _core.place_of(x) is not None]
            waiting += [_node(x) for x in inputs if _number(x) not in self._value_by_number and _node(x) >= 0]
            waiting += self._graph.controls(number)
        return found

    def _run_node(self, number: int) -> None:
        _, _, inputs, outputs = self._graph.node(number)[:4]
        inputs = [x for x in inputs if _core.place_of(x) is not None]
        program = self._graph.subgraph(list(outputs), inputs, [number], True)
        given = [self._value(x) for x in inputs]
        begin = time.time_ns()
        results = program.call(given)
        if self._report is not None:
            self._report((self._graph.operation_at(number), begin, time.time_ns(), results))
        for tensor, value in zip(outputs, results):
            self._value_by_number.setdefault(_number(tensor), value)
        self._nodes_run.add(number)


def _number(tensor: Any) -> int:
    """The number of a tensor in its graph; that of an ordinary tensor is none of them."""
    place = _core.place_of(tensor)
    return -1 if place is None else place[1]


def _node(tensor: Any) -> int:
    place = _core.place_of(tensor)
    return -1 if place is None else place[2]
