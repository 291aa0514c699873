"""The values of a step: what each call of gradient adds to the course of training."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.diagnostics.flow import Flow, known
from tapeflow._src.diagnostics.program import user_frames
from tapeflow._src.diagnostics.source_line import source_line
from tapeflow._src.diagnostics.training.applied import AppliedGradients
from tapeflow._src.diagnostics.training.health import Course, VariableHealth
from tapeflow._src.diagnostics.variable_names import learning_rate_of, name_of_variable, variable_behind
from tapeflow._src.diagnostics.why_none import made_at

_SATURATING = {"sigmoid": (0.01, 0.99), "tanh": (-0.99, 0.99)}
_ACTIVATIONS = {"relu", "relu6", "leaky_relu", "elu", "selu", "sigmoid", "tanh", "softplus", "gelu", "swish"}
_MOST_STEPS = 2000


class StepValues:
    """Courses by the line that asks for gradients, and a row for each sampled step."""

    def __init__(self, applied: AppliedGradients, full: bool) -> None:
        self._applied, self._full = applied, full
        self.courses: dict[tuple[str, int], Course] = {}
        self.steps: list[dict[str, Any]] = []

    def see(
        self, tape: Any, flow: Flow | None, values: list[Any], sources: list[Any], gradients: list[Any],
        place: tuple[str, int], sampled: bool, finite: bool, seconds: float,
    ) -> None:  # fmt: skip
        """One call of gradient: `values` of its targets, and whether its gradients are to be looked at."""
        given = [(s, g) for s, g in zip(sources, gradients) if g is not None]
        pairs = [(s, g) for s, g in given if isinstance(variable_behind(s), _core.Variable)]
        scalar = len(values) == 1 and values[0].ndim == 0
        if not pairs or not scalar:
            return
        course = self.courses.get(place) or self.courses.setdefault(place, Course(place))
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
                if flow is not None:
                    health.activation = _next_activation(flow, tape._index_of(variable))
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
            _look_at_activations(tape, course)
        if len(self.steps) < _MOST_STEPS:
            self.steps.append(
                {"step": len(course.losses) - 1, "loss": loss, "grad_norm": math.sqrt(total), "seconds": seconds}
            )


def _look_at_activations(tape: Any, course: Course) -> None:
    if len(course.losses) > 20:
        return
    for row, kept in zip(tape._records(), tape._kept()):
        name = row[0].rpartition(".")[2]
        limits = _SATURATING.get(name)
        if limits is None or kept[-1] is None or kept[-1].shape.num_elements() < 8:
            continue
        y = kept[-1].numpy()
        share = float(np.mean((y < limits[0]) | (y > limits[1])))
        course.saturation.setdefault((*source_line(row[1], row[2]), name), []).append(share)


def _next_activation(flow: Flow, index: Any) -> tuple[str, str, int] | None:
    """The first activation behind a value, within a few operations."""
    if index is None:
        return None
    front = [known(index)]
    for _ in range(6):
        following = [edge for value in front for edge in flow.edges.get(value, ()) if edge.step.event == "record"]
        for edge in following:
            if edge.step.short_name in _ACTIVATIONS:
                return (edge.step.short_name, *edge.step.place)
        front = [edge.output for edge in following][:50]
    return None
