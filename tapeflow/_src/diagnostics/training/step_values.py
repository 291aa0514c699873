"""The values of a step: what each call of gradient adds to the course of training."""

from __future__ import annotations

import math
import weakref
from typing import Any, NamedTuple

import numpy as np

from tapeflow._src import _core
from tapeflow._src.diagnostics.flow import Edge, Flow, known
from tapeflow._src.diagnostics.frames import Frames, user_frames
from tapeflow._src.diagnostics.program import is_given_arguments
from tapeflow._src.diagnostics.training.activations import NO_LAYERS, LayerLines, activation_of, line_of
from tapeflow._src.diagnostics.training.applied import AppliedGradients
from tapeflow._src.diagnostics.training.health import Course
from tapeflow._src.diagnostics.training.keras_layers import KerasLayers
from tapeflow._src.diagnostics.training.loss_sign import is_error
from tapeflow._src.diagnostics.training.made_optimizers import MadeOptimizers
from tapeflow._src.diagnostics.training.variable_health import VariableHealth
from tapeflow._src.diagnostics.variable_names import (
    learning_rate_of,
    made_at,
    name_of_variable,
    rate_now,
    variable_behind,
)

_SATURATING = {"sigmoid": (0.01, 0.99), "tanh": (-0.99, 0.99)}
_SUMS = ("add", "bias_add", "addv2", "add_v2", "add_n", "subtract", "sub")
_MOST_STEPS = 2000


class Row(NamedTuple):
    """A variable in one step: its gradient and its value. Of gradients of rows alone (`sparse`) the value is seen, and
    whether the rows are zero.
    """

    source: Any
    gradient: np.ndarray[Any, Any] | None
    value: np.ndarray[Any, Any] | None
    sparse: bool
    rows_are_zero: bool = False


class GraphStep(NamedTuple):
    """A call of `tf.gradients` whose results sessions compute: where it stands, and the graph that it saw."""

    place: tuple[str, int]
    target: Any
    pairs: list[tuple[Any, Any]]
    tape: Any
    flow: Flow
    is_error: bool
    frames: Frames


class StepValues:
    """Courses by the line that asks for gradients, and a row for each sampled step."""

    def __init__(
        self, applied: AppliedGradients, layers: KerasLayers, optimizers: MadeOptimizers, full: bool
    ) -> None:  # fmt: skip
        self._applied, self._layers, self._optimizers, self._full = applied, layers, optimizers, full
        self.courses: dict[tuple[str, int], Course] = {}
        self._last_asked: tuple[Any, set[int]] = (lambda: None, set())  # the last tape, and what it was asked for
        self.steps: list[dict[str, Any]] = []

    def see(
        self, tape: Any, flow: Flow | None, targets: list[Any], values: list[Any], sources: list[Any],
        gradients: list[Any], place: tuple[str, int], sampled: bool, finite: bool, seconds: float,
    ) -> None:  # fmt: skip
        """One call of gradient: `values` of its targets, and whether its gradients are to be looked at."""
        self._applied.calls += 1
        pairs, variables = [], []
        for source, gradient in zip(sources, gradients):
            if gradient is not None and isinstance(variable := variable_behind(source), _core.Variable):
                pairs.append((source, gradient))
                variables.append(variable)
        scalar = len(values) == 1 and values[0].ndim == 0
        if not pairs or not scalar:
            return
        course = self.courses.get(place) or self.courses.setdefault(place, Course(place))
        if flow is not None and not course.losses:
            goal = tape._index_of(next(t for t in targets if t is not None))
            course.is_error = is_error(flow, goal)
            above = set() if goal is None else flow.ancestors(known(goal))
            course.behind = {id(v) for v in tape.watched_variables() if known(tape._index_of(v)) in above}
            course.asked = self._asked_of(tape)
        self._asked_of(tape).update(map(id, variables))
        course.add_loss(float(values[0]))
        course.see_applied(self._applied.steps, self._applied.applied_step)
        self._applied.see_step(place, pairs, variables)
        if not sampled and finite:
            return
        lines = NO_LAYERS if flow is None else self._layers.lines_by_index(tape)
        rows = [_row(source, gradient, finite) for source, gradient in pairs]
        self._add_step(course, tape, flow, rows, lines, user_frames(), seconds)
        if finite and self._full:
            if flow is not None and not course.saturating:
                course.saturating = _saturating(tape, flow, lines)
                course.gates = _gates(tape, flow, course.saturating)
            _look_at_activations(tape, course)

    def _asked_of(self, tape: Any) -> set[int]:
        """The variables, by id, that a tape was asked for in any of its calls."""
        if self._last_asked[0]() is not tape:
            self._last_asked = weakref.ref(tape), set()
        return self._last_asked[1]

    def see_run(self, step: GraphStep, loss: float, rows: list[Row], seconds: float) -> None:
        """One run of a session that computed gradients: the loss, and gradients and values from before the run."""
        course = self.courses.get(step.place) or self.courses.setdefault(step.place, Course(step.place))
        course.is_error = step.is_error
        course.add_loss(loss)
        self._add_step(course, step.tape, step.flow, rows, NO_LAYERS, step.frames or user_frames(), seconds)

    def _add_step(
        self, course: Course, tape: Any, flow: Flow | None, rows: list[Row], lines: LayerLines, frames: Frames,
        seconds: float,
    ) -> None:  # fmt: skip
        if course.learning_rate_place is None and len(course.losses) in (1, 3):
            optimizer = self._applied.optimizer_of([variable_behind(row.source) for row in rows])
            made = self._optimizers.line_of(optimizer)
            sets = made is not None and not is_given_arguments(*made, type(optimizer).__name__)
            course.learning_rate, course.learning_rate_place = learning_rate_of(optimizer, frames, made, sets)
        elif course.learning_rate is not None:
            course.last_rate = rate_now(self._applied.optimizer_of([variable_behind(row.source) for row in rows]))
        total = 0.0
        for row in rows:
            source, gradient, value, sparse, _ = row
            variable = variable_behind(source)
            health = course.variables.get(id(variable))
            if health is None:
                name = name_of_variable(source, frames)
                health = course.variables[id(variable)] = VariableHealth(name, variable, made_at(variable))
                if hasattr(source, "path"):
                    health.layer_place = self._layers.line_of(str(source.path))
                if flow is not None:
                    _look_at_uses(tape, flow, health, variable, lines)
            health.sparse = health.sparse or sparse
            if sparse and value is not None:
                health.see_rows(row.rows_are_zero, value)
            if gradient is None or value is None:
                continue
            health.see(gradient, value)
            if flow is not None and not health.added_to and health.zero_steps == health.steps:
                health.added_to = _added_to(flow, health.index)
            total += health.norms[-1] ** 2 * gradient.size
        if all(row.value is None and not row.sparse for row in rows):  # a step that is not finite
            return
        course.compare_directions()
        if len(self.steps) < _MOST_STEPS:
            number, loss = len(course.losses) - 1, course.losses[-1]
            self.steps.append({"step": number, "loss": loss, "grad_norm": math.sqrt(total), "seconds": seconds})


def _row(source: Any, gradient: Any, finite: bool) -> Row:
    if hasattr(gradient, "indices"):
        zero = finite and not np.any(gradient.values.numpy())
        return Row(source, None, np.asarray(variable_behind(source).numpy()), True, zero)
    if not finite:
        return Row(source, None, None, False)
    return Row(source, np.asarray(gradient.numpy()), np.asarray(variable_behind(source).numpy()), False)


def _look_at_uses(tape: Any, flow: Flow, health: VariableHealth, variable: Any, lines: LayerLines) -> None:
    """Where a variable goes: the next activation, and how often it is used."""
    index = known(tape._index_of(variable))
    found = _next_activation(flow, index)
    if found is not None:
        edge, name = found
        health.activation = (name, *line_of(flow, edge.step, name, lines))
        health.silent_units = _silent_share(tape, edge)
    uses = [e for e in flow.edges.get(index, ()) if e.step.event == "record"]
    health.used_once = len({e.step.order for e in uses}) < 2
    health.index = index
    health.first_use = min((e.step.order for e in uses), default=0)


def _added_to(flow: Flow, index: int | None) -> set[int]:
    """What those values came from, by index, that a variable is added to."""
    uses = [] if index is None else [e.step for e in flow.edges.get(index, ()) if e.step.event == "record"]
    others = [v for step in uses if step.short_name in _SUMS for v in step.inputs if v != index]
    return set().union(*(flow.ancestors(v) for v in others[:3])) - {index}


def _look_at_activations(tape: Any, course: Course) -> None:
    if len(course.losses) > 20:
        return
    records, saved = tape._records(), tape._kept()
    for number, (operation, name, place) in course.saturating.items():
        if number >= len(records) or records[number][0] != operation:
            continue
        y = _result(saved[number], name, operation)
        if y is None or y.size < 8:
            continue
        low, high = _SATURATING[name]
        course.saturation.setdefault((number, name, *place), []).append(float(np.mean((y < low) | (y > high))))


def _result(saved: Any, name: str, operation: str) -> np.ndarray[Any, Any] | None:
    """The result of an activation, from what the tape keeps of it."""
    held = saved[-1]
    if held is not None:
        return np.asarray(held.numpy())
    if operation.rpartition(".")[2] != name and len(saved) > 1 and saved[1] is not None:  # 1 / (1 + exp(-x))
        return np.asarray(1 / saved[1].numpy())
    return None


def _saturating(tape: Any, flow: Flow, lines: LayerLines) -> dict[int, tuple[str, str, tuple[str, int]]]:
    """The activations with limits, by the number of the record: the operation, the activation and its line."""
    numbers = {known(row[5][0]): number for number, row in enumerate(tape._records()) if row[5]}
    found = {}
    for step in flow.steps:
        name = activation_of(flow, step) if step.event == "record" else None
        number = numbers.get(step.outputs[0]) if step.outputs else None
        if name in _SATURATING and number is not None:
            found[number] = (str(step.operation), name, line_of(flow, step, name, lines))
    return found


def _gates(tape: Any, flow: Flow, saturating: dict[int, Any]) -> set[int]:
    """Of some records, by number, those whose results are multiplied with another value, as gates are."""
    found = set()
    for number in saturating:
        output = known(tape._records()[number][5][0])
        uses = [e.step for e in flow.edges.get(output, ()) if e.step.short_name in ("multiply", "mul")]
        if any(v != output and v in flow.maker and v not in flow.leaves for use in uses for v in use.inputs):
            found.add(number)
    return found


def _next_activation(flow: Flow, index: int) -> tuple[Edge, str] | None:
    """The first activation behind a value, within a few operations, and its name."""
    front = [index]
    for _ in range(6):
        following = [edge for value in front for edge in flow.edges.get(value, ()) if edge.step.event == "record"]
        for edge in following:
            name = activation_of(flow, edge.step)
            if name is not None:
                return edge, name
        front = [edge.output for edge in following if edge.value == index or not _is_layer(flow, edge)][:50]
    return None


def _is_layer(flow: Flow, edge: Edge) -> bool:
    """Whether a value meets the kernel of another layer."""
    others = [
        shape for v, shape in zip(edge.step.inputs, edge.step.input_shapes)
        if v != edge.value and v not in flow.maker and v not in flow.leaves
    ]  # fmt: skip
    return any(shape is not None and len(shape) >= 2 for shape in others)


def _silent_share(tape: Any, edge: Edge) -> float | None:
    """The share of an activation's results that are zero or below; None if the tape does not keep them."""
    for row, kept in zip(tape._records(), tape._kept()):
        if edge.output in map(known, row[5]):
            y = next((t for t in reversed(kept) if t is not None and not _core.is_symbolic(t)), None)
            return None if y is None or not y.shape.num_elements() else float(np.mean(y.numpy() <= 0))
    return None
