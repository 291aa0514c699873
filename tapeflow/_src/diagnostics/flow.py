"""The flow of values over a tape: records and events as one graph, and the likeliest path between two values."""

from __future__ import annotations

import bisect
import heapq
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any, NamedTuple

from tapeflow._src import primitives
from tapeflow._src.diagnostics.program import controlled_by, is_literal, reads_shape, relation, relation_and_hops
from tapeflow._src.diagnostics.source_line import source_line

_UNFOLLOWED, _RECORD_OUTPUT = 1 << 31, 1 << 30
_FLAT = {"sign"}  # operations with a gradient that is zero everywhere; breaks where the question is about zeros
_MOST_AT_ONCE = 100  # steps of one instruction that are looked at; a loop may have thousands
_FLOATING = ("float", "bfloat", "complex", "half")


class Step(NamedTuple):
    """A record, or an event of the provenance log."""

    event: str
    operation: str | None
    code: CodeType | None
    instruction: int
    inputs: list[int]
    outputs: list[int]
    moment: str
    stops: bool
    dtypes: list[str]
    order: int
    input_shapes: list[Any] = []  # noqa: RUF012  (a tuple has no state)
    output_shapes: list[Any] = []  # noqa: RUF012

    @property
    def place(self) -> tuple[str, int]:
        return source_line(self.code, self.instruction)

    @property
    def short_name(self) -> str:
        name = (self.operation or "").rpartition(".")[2]
        if name[:1].isupper():  # an operation without a public name
            name = primitives.function_name(name)
        return {"select": "where"}.get(name, name)


class Edge(NamedTuple):
    """From one value to another by a step. An edge that breaks the gradient says how."""

    step: Step
    value: int
    output: int
    breaks: str | None
    cost: int


# The surer it is that a value went this way, the lower the cost.
_COST = {"numpy": 300, "number": 300, "boolean": 500, "argument": 350}
_NEARER = {"same": 150, "bound": 100, "possible": 0}
_SHAPE_COST = 320  # that it went on as a shape alone, though it may have gone by its elements
_ON_PURPOSE = 140  # of a break that is meant: beside it another one is the cause
_CONTROL_COST = 800  # that a value was made because of a condition


def known(index: Any) -> Any:
    """An index as the graph names it: outputs of records have one name, whatever their dtype."""
    if index is not None and index >= _UNFOLLOWED and index & _RECORD_OUTPUT:
        return index & (_RECORD_OUTPUT - 1)
    return index


def is_tracked(index: int | None) -> bool:
    """Whether an index, as the tape gives it, is that of a watched value."""
    return index is not None and index < _UNFOLLOWED


def has_gradient(dtype: str) -> bool:
    """Whether values of a dtype have gradients."""
    return dtype.startswith(_FLOATING)


def number_of(about: tuple[str, int, int, int], last: bool = False) -> float | None:
    """The first or last element of a leaf, of the dtypes that numbers usually have."""
    formats = {"float32": "<f", "float64": "<d", "int32": "<i", "int64": "<q"}
    if about[0] not in formats or about[1] == 0:
        return None
    size = struct.calcsize(formats[about[0]])
    held = min(8, size * about[1])
    at = held - size if last else 0
    word = about[3] if last else about[2]
    return float(struct.unpack_from(formats[about[0]], word.to_bytes(8, "little"), at)[0])


class Flow:
    """The graph of all that a tape saw. With `flat`, operations whose gradient is always zero count as breaks."""

    def __init__(self, tape: Any, flat: bool = False) -> None:
        self._flat = flat
        self.leaves: dict[int, tuple[Any, bool]] = tape._leaves()
        self.steps = list(_steps(tape))
        self.edges: dict[int, list[Edge]] = defaultdict(list)
        self.maker: dict[int, Step] = {}
        self.first_use: dict[int, Step] = {}
        self.dtype: dict[int, str] = {index: about[0] for index, (about, _) in self.leaves.items()}
        for step in self.steps:
            for value in step.inputs:
                self.first_use.setdefault(value, step)
            if step.event in ("record", "operation", "constant"):
                self.maker.update(dict.fromkeys(step.outputs, step))
                self.dtype.update(zip(step.outputs, step.dtypes))
        self._values_read = {
            (value, step.code, step.instruction)
            for step in self.steps
            if step.event in ("numpy", "number")
            for value in step.inputs
        }
        self._arrivals_like: dict[Any, list[tuple[int, int]]] = defaultdict(list)
        self._arrivals_at: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)  # order and node, by line
        self._made_of_python: list[tuple[int, int, tuple[str, int]]] = []  # order, value and line
        for place, (order, index, step) in enumerate(self._find_arrivals()):
            self._arrivals_like[self.leaves[index][0]].append((order, index))
            # What Python may hold when the value arrives has a node of its own, below zero.
            node, here = -1 - place, self._arrivals_at[step.place]
            self.edges[node].append(Edge(step, node, index, None, 0))
            if here:
                self.edges[here[-1][1]].append(Edge(step, here[-1][1], node, None, 1))
            here.append((order, node))
        self._results_at: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)  # order and value, by line
        for step in self.steps:
            if step.event == "record" and step.outputs:
                self._results_at[step.place].append((step.order, step.outputs[0]))
        for step in self.steps:
            self._connect(step)

    def _find_arrivals(self) -> list[tuple[int, int, Step]]:
        """The values that were made from what Python held, in order; not those that the program has as literals."""
        arrivals = []
        for index, (about, fresh) in self.leaves.items():
            step = self.maker.get(index) or (self.first_use.get(index) if fresh else None)
            if step is None:
                continue
            self._made_of_python.append((step.order, index, step.place))
            ends = number_of(about), number_of(about, last=True)
            if not is_literal(*step.place, ends, about[1]):
                arrivals.append((step.order, index, step))
        return sorted(arrivals, key=lambda arrival: arrival[:2])

    def _connect(self, step: Step) -> None:
        for value in step.inputs:
            for output in step.outputs:
                breaks = self._break(step, value, output)
                cost = _ON_PURPOSE if breaks and step.short_name == "stop_gradient" else 100 if breaks else 1
                self.edges[value].append(Edge(step, value, output, breaks, cost))
            if step.event in ("numpy", "number", "boolean", "argument", "shape"):
                for edge in self._returns(step, value):
                    self.edges[value].append(edge)

    def _break(self, step: Step, value: int, output: int) -> str | None:
        if step.event in ("assign", "watch"):
            return step.event
        if step.moment != "open":
            return step.moment
        if step.event != "record" or value >= _UNFOLLOWED or not has_gradient(self.dtype.get(value, "float32")):
            return None
        if step.stops or (self._flat and step.short_name in _FLAT):
            return "operation"
        return None if has_gradient(self.dtype.get(output, "float32")) else "dtype"

    def _returns(self, step: Step, value: int) -> Iterable[Edge]:
        """Where a value that left for Python may have come back."""
        yield from self._returns_at_once(step, value)
        if step.event == "shape":
            return
        for place, arrivals in self._arrivals_at.items():
            at = bisect.bisect_left(arrivals, (step.order, -1 << 60))
            how, hops = relation_and_hops(step.place, place) if at < len(arrivals) else ("none", 0)
            if how != "none":
                cost = _COST[step.event] - _NEARER[how] + min(3 * hops, _NEARER["bound"] // 2)
                yield Edge(step, value, arrivals[at][1], step.event, cost)
        like = self._arrivals_like.get(self.leaves.get(value, (None, False))[0], [])
        at = bisect.bisect_left(like, (step.order, -1))
        if at < len(like) and like[at][1] != value:
            yield Edge(step, value, like[at][1], step.event, 150)
        yield from self._controlled(step, value)

    def _controlled(self, step: Step, value: int) -> Iterable[Edge]:
        """The values that Python made, or did not make, because of what it read in a condition."""
        file, line = step.place
        for first, last in controlled_by(file, line):
            for order, index, (made_file, made_line) in self._made_of_python:
                if order > step.order and made_file == file and first <= made_line <= last:
                    yield Edge(step, value, index, step.event, _CONTROL_COST)
            for made in (place for place in self._results_at if place[0] == file and first <= place[1] <= last):
                results = self._results_at[made]
                at = bisect.bisect_right(results, (step.order, 1 << 60))
                if at < len(results):  # the next result of each line
                    yield Edge(step, value, results[at][1], step.event, _CONTROL_COST)

    def is_guess(self, edge: Edge) -> bool:
        """Whether nothing but time says that a value which left for Python came back so."""
        return edge.cost >= _COST.get(edge.breaks or "", 1 << 60)

    def _returns_at_once(self, step: Step, value: int) -> Iterable[Edge]:
        """A function of Tapeflow that reads a value, and what it makes of it: same instruction. A shape: same line."""
        dtype = self.dtype.get(value, "float32")
        whole = dtype.startswith(("int", "uint"))
        if step.event == "shape" and (value, step.code, step.instruction) in self._values_read:
            return  # not the shape alone
        for other in self.steps[step.order + 1 : step.order + 1 + _MOST_AT_ONCE]:
            if not other.outputs or other.event == "assign":
                continue
            same = other.code is step.code and other.instruction == step.instruction
            if step.event == "shape":  # a call into a library is one instruction, and reads many shapes
                same = same or other.place == step.place
                if same and not all(self.leaves.get(i, (None, False))[1] for i in other.inputs):
                    continue
            if not same:
                return
            for output in other.outputs:
                if step.event in ("argument", "shape") or whole:
                    exact = other.instruction == step.instruction
                    cost = _SHAPE_COST if step.event == "shape" else 100
                    yield Edge(other, value, output, "argument", cost if exact else cost + 10)
                elif other.event == "constant" and "string" in (dtype, self.dtype.get(output)):
                    yield Edge(other, value, output, "dtype", 100)
            if step.event != "shape":
                return

    def path(self, start: int, goal: int) -> list[Edge] | None:
        """The likeliest path from one value to another, or None."""
        best, heap = {start: 0}, [(0, start)]
        back: dict[int, Edge] = {}
        while heap:
            cost, value = heapq.heappop(heap)
            if value == goal:
                break
            if cost > best[value]:
                continue
            reached_by = back.get(value)
            assigned = reached_by.step.order if reached_by is not None and reached_by.breaks == "assign" else -1
            for edge in self.edges[value]:
                if edge.step.order < assigned:
                    continue  # the variable was read before the assignment
                total = cost + edge.cost
                if total < best.get(edge.output, 1 << 60):
                    best[edge.output], back[edge.output] = total, edge
                    heapq.heappush(heap, (total, edge.output))
        if goal not in best:
            return None
        path: list[Edge] = []
        while goal != start:
            path.append(back[goal])
            goal = back[goal].value
        return path[::-1]

    def ancestors(self, goal: int) -> set[int]:
        """All values that a value was computed from, itself included."""
        parents = defaultdict(set)
        for value, edges in self.edges.items():
            for edge in edges:
                if edge.breaks not in ("numpy", "number", "boolean"):
                    parents[edge.output].add(value)
        seen, stack = {goal}, [goal]
        while stack:
            for parent in parents[stack.pop()] - seen:
                seen.add(parent)
                stack.append(parent)
        return seen

    def read_as_shape(self, value: int | None, origins: list[int], sizes: set[float]) -> Step | None:
        """Where the program read the shape of a value of these sizes, if one of the origins is such a number."""
        mine = set() if value is None else {value}
        read = [s for s in self.steps if s.event == "shape" and set(s.inputs) <= mine and reads_shape(*s.place)]
        for origin in origins if read else ():
            about, fresh = self.leaves.get(origin, (None, False))
            made = fresh or origin in self.maker
            if about and made and about[1] == 1 and number_of(about) in sizes:
                step = self.maker.get(origin) or self.first_use[origin]
                before = [s for s in read if s.order < step.order]
                related = [s for s in before if relation(s.place, step.place) in ("same", "bound")]
                if related:
                    return related[-1]
        return None

    def after(self, reached: set[int], goal: int | None, fits: Callable[[tuple[str, int]], bool]) -> Step | None:
        """The first record for the goal, behind all that made one of the values, whose line fits."""
        last = max((s.order for s in self.steps if not reached.isdisjoint(s.outputs)), default=-1)
        above = set() if goal is None else self.ancestors(goal)
        later = (s for s in self.steps[last + 1 :] if s.event == "record" and not above.isdisjoint(s.outputs))
        return next((s for s in later if fits(s.place)), None)

    def reached(self, start: int) -> set[int]:
        """All values that a gradient can come back from to a value, itself included."""
        seen, stack = {start}, [start]
        while stack:
            for edge in self.edges[stack.pop()]:
                if edge.breaks is None and edge.step.event == "record" and edge.output not in seen:
                    seen.add(edge.output)
                    stack.append(edge.output)
        return seen


def _steps(tape: Any) -> Iterable[Step]:
    records, events = tape._rows(), tape._events()
    order = at = 0
    for event, operation, code, instruction, records_before, inputs, outputs, moment in [*events, *_END]:
        while at < len(records) and (not event or records[at][-1] < records_before):
            yield _recorded(records[at], order)
            at, order = at + 1, order + 1
        if event:
            yield Step(
                event, operation, code, instruction, _known_all(inputs), _known_all(outputs), moment, False, [], order
            )
            order += 1


def _recorded(row: tuple[Any, ...], order: int) -> Step:
    """A row that the core wrote: a record, or a node of a graph that a record ran."""
    name, code, instruction, _, consumed, produced, stops, dtypes, given_shapes, made_shapes, _ = row
    event = "assign" if name == "assign" else "record"
    inputs, outputs = _known_all(consumed), _known_all(produced)
    return Step(
        event, name, code, instruction, inputs, outputs, "open", stops, dtypes, order, given_shapes, made_shapes
    )


_END: list[Any] = [("", None, None, 0, 1 << 60, [], [], "open")]


def _known_all(indices: list[int]) -> list[int]:
    return [known(i) for i in indices]
