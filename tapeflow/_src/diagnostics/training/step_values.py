"""The values of a step: what each call of gradient adds to the course of training."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.diagnostics.flow import Edge, Flow, known
from tapeflow._src.diagnostics.program import user_frames
from tapeflow._src.diagnostics.source_line import source_line
from tapeflow._src.diagnostics.training.applied import AppliedGradients
from tapeflow._src.diagnostics.training.health import Course
from tapeflow._src.diagnostics.training.keras_layers import KerasLayers
from tapeflow._src.diagnostics.training.loss_sign import is_error
from tapeflow._src.diagnostics.training.meaning import layer_line
from tapeflow._src.diagnostics.training.variable_health import VariableHealth
from tapeflow._src.diagnostics.variable_names import learning_rate_of, name_of_variable, variable_behind
from tapeflow._src.diagnostics.why_none import made_at

_SATURATING = {"sigmoid": (0.01, 0.99), "tanh": (-0.99, 0.99)}
_ACTIVATIONS = {"relu", "relu6", "leaky_relu", "elu", "selu", "sigmoid", "tanh", "softplus", "gelu", "swish", "softmax"}
_MOST_STEPS = 2000


class StepValues:
    """Courses by the line that asks for gradients, and a row for each sampled step."""

    def __init__(self, applied: AppliedGradients, layers: KerasLayers, full: bool) -> None:
        self._applied, self._layers, self._full = applied, layers, full
        self.courses: dict[tuple[str, int], Course] = {}
        self.steps: list[dict[str, Any]] = []

    def see(
        self, tape: Any, flow: Flow | None, targets: list[Any], values: list[Any], sources: list[Any],
        gradients: list[Any], place: tuple[str, int], sampled: bool, finite: bool, seconds: float,
    ) -> None:  # fmt: skip
        """One call of gradient: `values` of its targets, and whether its gradients are to be looked at."""
        given = [(s, g) for s, g in zip(sources, gradients) if g is not None]
        pairs = [(s, g) for s, g in given if isinstance(variable_behind(s), _core.Variable)]
        scalar = len(values) == 1 and values[0].ndim == 0
        if not pairs or not scalar:
            return
        course = self.courses.get(place) or self.courses.setdefault(place, Course(place))
        if flow is not None and not course.losses:
            course.is_error = is_error(flow, tape._index_of(next(t for t in targets if t is not None)))
        loss = float(values[0])
        course.add_loss(loss)
        self._applied.see_step(place, pairs)
        if not sampled and finite:
            return
        frames = user_frames()
        if course.learning_rate_place is None and len(course.losses) in (1, 3):
            course.learning_rate, course.learning_rate_place = learning_rate_of(self._applied.optimizer, frames)
        total = 0.0
        for source, gradient in pairs:
            variable = variable_behind(source)
            health = course.variables.get(id(variable))
            if health is None:
                name = name_of_variable(source, frames)
                health = course.variables[id(variable)] = VariableHealth(name, variable, made_at(variable))
                if hasattr(source, "path"):
                    health.layer_place = self._layers.line_of(str(source.path))
                if flow is not None:
                    edge = _next_activation(flow, tape._index_of(variable))
                    if edge is not None:
                        health.activation = (edge.step.short_name, *edge.step.place)
                        health.silent_units = _silent_share(tape, edge)
                    uses = [e for e in flow.edges.get(known(tape._index_of(variable)), ()) if e.step.event == "record"]
                    health.used_once = len({e.step.order for e in uses}) < 2
            if hasattr(gradient, "indices"):
                health.sparse = True
                continue
            if not finite:
                continue
            array = np.asarray(gradient.numpy())
            health.see(array, np.asarray(variable.numpy()))
            total += health.norms[-1] ** 2 * array.size
        if not finite:
            return
        if self._full:
            if flow is not None and not course.activation_lines:
                course.activation_lines = _activation_lines(tape, flow, self._layers.lines_by_index(tape))
            _look_at_activations(tape, course)
        if len(self.steps) < _MOST_STEPS:
            self.steps.append(
                {"step": len(course.losses) - 1, "loss": loss, "grad_norm": math.sqrt(total), "seconds": seconds}
            )


def _look_at_activations(tape: Any, course: Course) -> None:
    if len(course.losses) > 20:
        return
    for number, (row, kept) in enumerate(zip(tape._records(), tape._kept())):
        name = row[0].rpartition(".")[2]
        limits = _SATURATING.get(name)
        if limits is None or kept[-1] is None or kept[-1].shape.num_elements() < 8:
            continue
        y = kept[-1].numpy()
        share = float(np.mean((y < limits[0]) | (y > limits[1])))
        place = course.activation_lines.get(number) or source_line(row[1], row[2])
        course.saturation.setdefault((number if course.activation_lines else 0, name, *place), []).append(share)


def _activation_lines(tape: Any, flow: Flow, line_of: dict[int, tuple[str, int]]) -> dict[int, tuple[str, int]]:
    """For the activations of Keras layers, by the number of the record: the lines that made the layers."""
    steps = {output: step for step in flow.steps if step.short_name in _SATURATING for output in step.outputs}
    found = {}
    for number, row in enumerate(tape._records()):
        step = steps.get(known(row[5][0])) if row[5] else None
        line = None if step is None else layer_line(flow, step, line_of)
        if line is not None:
            found[number] = line
    return found


def _next_activation(flow: Flow, index: Any) -> Edge | None:
    """The first activation behind a value, within a few operations."""
    if index is None:
        return None
    front = [known(index)]
    for _ in range(6):
        following = [edge for value in front for edge in flow.edges.get(value, ()) if edge.step.event == "record"]
        for edge in following:
            if edge.step.short_name in _ACTIVATIONS:
                return edge
        front = [edge.output for edge in following][:50]
    return None


def _silent_share(tape: Any, edge: Edge) -> float | None:
    """The share of an activation's results that are zero or below; None if the tape does not keep them."""
    for row, kept in zip(tape._records(), tape._kept()):
        if edge.output in map(known, row[5]):
            y = next((t for t in reversed(kept) if t is not None and not _core.is_symbolic(t)), None)
            return None if y is None or not y.shape.num_elements() else float(np.mean(y.numpy() <= 0))
    return None
