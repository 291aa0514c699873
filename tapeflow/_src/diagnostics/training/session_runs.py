"""Sessions of TensorFlow 1: which runs are training steps, and the loss and the gradients of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.diagnostics.flow import Flow
from tapeflow._src.diagnostics.frames import Frames
from tapeflow._src.diagnostics.training.assignments import Assignments
from tapeflow._src.diagnostics.training.loss_sign import is_error
from tapeflow._src.diagnostics.training.step_values import GraphStep, Row, StepValues
from tapeflow._src.diagnostics.variable_names import variable_behind

_MOST_NODES = 50_000
_MOST_LOOKS, _MOST_VARIABLES = 50, 20  # at values around runs that are no training steps


class SessionRuns:
    """Adds the loss and the gradients to what a run fetches, if the run computes them anyway."""

    def __init__(self, values: StepValues, assignments: Assignments, guard: Callable[..., None]) -> None:
        self._values, self._assignments, self._guard = values, assignments, guard
        self._trained: dict[int, list[Any]] = {}  # by graph: variables of the last training step
        self._looks = _MOST_LOOKS
        self._steps: dict[int, list[GraphStep]] = {}  # by graph
        self._steps_by_fetch: dict[Any, tuple[Any, list[GraphStep]]] = {}
        self.gradients: list[Any] = []  # of the last run

    def see_gradients(
        self, graph: Any, tape: Any, flow: Flow, targets: list[Any], sources: list[Any], gradients: list[Any],
        place: tuple[str, int], frames: Frames,
    ) -> list[tuple[Any, Any]]:  # fmt: skip
        """A call of `tf.gradients`. The pairs of variables and gradients of one number are returned."""
        given = [(s, g) for s, g in zip(sources, gradients) if g is not None]
        pairs = [(s, g) for s, g in given if isinstance(variable_behind(s), _core.Variable)]
        if len(targets) != 1 or targets[0].shape.rank != 0 or not pairs or not getattr(graph, "graph_mode", False):
            return []
        error = is_error(flow, tape._index_of(targets[0]))
        step = GraphStep(place, targets[0], pairs, tape, flow, error, Frames(frames))
        self._steps.setdefault(id(graph), []).append(step)
        return pairs

    def run(self, session: Any, fetches: Any, compute: Callable[[Any], Any]) -> Any:
        """Runs a session, and looks at the values of the training steps that the run has."""
        start = time.perf_counter()
        self.gradients = []
        steps = self._steps_of(session.graph, fetches)
        if not steps:
            return self._run_beside(session, fetches, compute)
        before = [session._values_of([variable_behind(s) for s, _ in step.pairs]) for step in steps]
        wanted = [[step.target, [g for _, g in step.pairs if not hasattr(g, "indices")]] for step in steps]
        values, looked_at = compute([fetches, wanted])
        self._guard(self._look, session, zip(steps, before, looked_at), start)
        return values

    def _look(self, session: Any, runs: Iterable[tuple[GraphStep, list[Any], tuple[Any, Any]]], start: float) -> None:
        for step, old, (loss, gradients) in runs:
            self._trained[id(session.graph)] = [variable_behind(s) for s, _ in step.pairs][:_MOST_VARIABLES]
            self._assignments.see_step()
            self.gradients += gradients
            self._add(step, old, float(loss), list(gradients), time.perf_counter() - start)

    def _run_beside(self, session: Any, fetches: Any, compute: Callable[[Any], Any]) -> Any:
        """A run that is no training step: whether it changes what training steps changed before."""
        trained = [] if not self._looks else self._trained.get(id(session.graph), [])
        before = session._values_of(trained) if trained else []
        values = compute(fetches)
        if before:
            self._looks -= 1
            for variable, old, new in zip(trained, before, session._values_of(trained)):
                if old is not None and new is not None and not np.array_equal(old, new):
                    self._assignments.see(variable, "assign")
        return values

    def _add(self, step: GraphStep, old: list[Any], loss: float, gradients: list[Any], seconds: float) -> None:
        finite = np.isfinite(loss) and all(np.isfinite(g).all() for g in gradients)
        rows = []
        for (source, gradient), value in zip(step.pairs, old):
            sparse = hasattr(gradient, "indices")
            array = None if sparse else np.asarray(gradients.pop(0))
            looked_at = finite and not sparse and value is not None
            rows.append(Row(source, array if looked_at else None, value if looked_at else None, sparse))
        self._values.see_run(step, loss, rows, seconds)

    def _steps_of(self, graph: Any, fetches: Any) -> list[GraphStep]:
        """The training steps whose gradients the fetches need."""
        steps = self._steps.get(id(graph), [])
        if not steps or graph.node_count > _MOST_NODES:
            return []
        several = list(fetches) if isinstance(fetches, list | tuple) else [fetches]
        key = (id(graph), graph.node_count, *map(id, several))
        if key not in self._steps_by_fetch:
            needed = _needed(graph, several)
            found = [s for s in steps if all(_nodes(graph, g) <= needed for _, g in s.pairs)]
            self._steps_by_fetch[key] = (several, found)
        return self._steps_by_fetch[key][1]


def _nodes(graph: Any, item: Any) -> set[int]:
    return set(graph.nodes_behind(item))


def _needed(graph: Any, fetches: list[Any]) -> set[int]:
    """All nodes that run for the fetches; those of names and nested structures are not looked for."""
    plain = [f for f in fetches if not isinstance(f, str | dict | list | tuple)]
    stack = [n for f in plain for n in graph.nodes_behind(f)]
    seen = set(stack)
    while stack:
        operation = graph.operation_at(stack.pop())
        before = [n for x in (*operation.inputs, *operation.control_inputs) for n in graph.nodes_behind(x)]
        fresh = set(before) - seen
        seen |= fresh
        stack += fresh
    return seen
