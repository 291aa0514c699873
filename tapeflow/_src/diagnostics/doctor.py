"""`tf.debugging.Doctor`: watches the gradients of a program and reports what is wrong with it."""

from __future__ import annotations

import json
import linecache
import math
import os
import platform
import time
from collections.abc import Callable
from dataclasses import replace
from html import escape
from types import TracebackType
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.diagnostics import meaning, partly_cut, report_text, static_traps
from tapeflow._src.diagnostics.applied import AppliedGradients
from tapeflow._src.diagnostics.custom_rule import check_rule
from tapeflow._src.diagnostics.finding import SEVERITIES, Finding, is_silenced
from tapeflow._src.diagnostics.flow import Flow, known
from tapeflow._src.diagnostics.graph_tape import GraphTape
from tapeflow._src.diagnostics.health import Course, VariableHealth
from tapeflow._src.diagnostics.keras_watch import KerasWatch
from tapeflow._src.diagnostics.nan_origin import NanOrigins, Origin
from tapeflow._src.diagnostics.none_findings import NoneFindings
from tapeflow._src.diagnostics.numeric_probe import Probe, direction, lost_share
from tapeflow._src.diagnostics.observers import observers
from tapeflow._src.diagnostics.program import user_frames
from tapeflow._src.diagnostics.report import page
from tapeflow._src.diagnostics.source_line import source_line
from tapeflow._src.diagnostics.variable_names import learning_rate_of, name_of_variable, variable_behind
from tapeflow._src.diagnostics.why_none import made_at
from tapeflow._src.namespace import public
from tapeflow._src.types.library_folders import is_library

_ANALYSED_CALLS = 3  # of gradient, at each line: later ones have the same structure
_MOST_ROWS = 20_000
_MONITOR_SHARE, _FULL_SHARE = 0.03, 0.4  # of the time, for looking at values
_ALWAYS = 12  # the first steps at each line, which are looked at in any case in full mode
_JSON_LIMIT = 256 * 1024
_SATURATING = {"sigmoid": (0.01, 0.99), "tanh": (-0.99, 0.99)}
_ACTIVATIONS = {"relu", "relu6", "leaky_relu", "elu", "selu", "sigmoid", "tanh", "softplus", "gelu", "swish"}


@public("debugging.Doctor")
class Doctor:
    """Watches the gradients that are computed inside the context, and reports what is wrong with the program.

    `findings` lists the faults, each with its line, evidence and remedy; `report()` is everything as a dictionary, and
    `print(doctor)` shows it. The program computes what it would compute without.

    Args:
      steps: After so many steps (calls of `gradient`) the doctor stops watching. None: it watches to the end.
      mode: "full" looks at every operation (functions run eagerly); "monitor" samples steps and leaves functions as
        they are, at a few per cent of the time.

    >>> w = tf.Variable(2.)
    >>> with tf.debugging.Doctor() as doctor:
    ...     with tf.GradientTape() as tape:
    ...         loss = tf.round(w) * 3.
    ...     gradient = tape.gradient(loss, w)
    >>> [finding.kind for finding in doctor.findings]
    ['none-gradient']
    """

    def __init__(self, steps: int | None = None, mode: str = "full") -> None:
        if mode not in ("full", "monitor"):
            raise ValueError(f"Doctor: mode must be 'full' or 'monitor'; got {mode!r}")
        if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 1):
            raise ValueError(f"Doctor: steps must be a positive integer or None; got {steps!r}")
        self._limit, self._full = steps, mode == "full"
        self._found: list[Finding] = []
        self._courses: dict[tuple[str, int], Course] = {}
        self._analysed: dict[tuple[str, int], int] = {}
        self._steps: list[dict[str, Any]] = []
        self._lines: dict[tuple[str, int], dict[str, Any]] = {}
        self._checks: list[dict[str, str]] = []
        self._trace: list[list[Any]] = []
        self._rules_seen: set[Any] = set()
        self._origins = NanOrigins()
        self._nones = NoneFindings()
        self._applied = AppliedGradients(self._add)
        self._keras = KerasWatch(self._see_apply, self._add)
        self._probe: Probe | None = None
        self._probe_tape: Any = None
        self._probed: set[tuple[str, int]] = set()
        self._watching = False
        self._calls = 0
        self._spent = 0.0  # seconds
        self._sees_gradients = True
        self._opened = self._began = time.perf_counter()
        self._ran_eagerly = False
        self._error: BaseException | None = None

    # ---- beginning and end

    def __enter__(self) -> Doctor:
        if self._watching:
            raise RuntimeError("Doctor: it is watching already.")
        self._watching = True
        self._keras.begin()
        self._began = time.perf_counter()
        _core.set_tape_observers(self._see_tape, self._see_gradient)
        observers.custom_gradient = self._see_rule if self._full else None
        observers.graph_gradients = self._see_graph_gradients
        observers.apply_gradients = self._see_apply
        observers.session_run = self._see_values
        self._ran_eagerly = _core.get_run_eagerly()
        if self._full:
            _core.set_run_eagerly(True)
            self._origins.start()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._error = self._error or error
        self.stop()

    def ended_by(self, error: BaseException | None) -> None:
        """Says which error ended the program, where the context did not see it."""
        self._error = error

    def sources(self) -> dict[str, str]:
        """The text of the files that findings and lines name."""
        files = {f.file for f in self.findings if f.file} | {file for file, _ in self._lines}
        return {file: "".join(linecache.getlines(file)) for file in files if not is_library(file)}

    def stop(self) -> None:
        """Stops watching. What was found stays."""
        if not self._watching:
            return
        self._watching = False
        _core.set_tape_observers(None, None)
        observers.custom_gradient = observers.graph_gradients = None
        observers.apply_gradients = observers.session_run = None
        if self._full:
            self._origins.stop()
            _core.set_run_eagerly(self._ran_eagerly)
        self._end_probe()
        self._keras.remove()

    # ---- what the program does

    def _guard(self, look: Callable[..., None], *what: Any) -> None:
        """Looks without being seen: nothing is recorded meanwhile, and no fault of the doctor ends the program."""
        start = time.perf_counter()
        try:
            with _core.StopRecording(True):
                look(*what)
        except Exception as error:
            if os.environ.get("TAPEFLOW_DOCTOR_RAISES"):
                raise
            self._checks.append({"name": "doctor", "result": "failed", "detail": f"{type(error).__name__}: {error}"})
        finally:
            self._spent += time.perf_counter() - start

    def _has_time(self) -> bool:
        """Whether watching took less than its share of the time so far."""
        share = _FULL_SHARE if self._full else _MONITOR_SHARE
        return self._spent < share * (time.perf_counter() - self._began)

    def _see_tape(self, tape: Any) -> None:
        if not self._full:  # a tape that nobody asks about is used up as it would be
            watched = self._calls < _ANALYSED_CALLS or self._has_time()
            if watched is not self._sees_gradients:
                self._sees_gradients = watched
                _core.set_tape_observers(self._see_tape, self._see_gradient if watched else None)
            if not watched:
                return
        self._keras.install()
        if _core.is_tracing() or _core.is_recording():
            return
        self._opened = time.perf_counter()
        self._origins.begin_step()
        place = source_line(*_core.current_line())
        if self._full and self._probe is None and place not in self._probed and Probe.possible():
            self._probed.add(place)
            self._probe, self._probe_tape = Probe(), tape
            self._probe.start()

    def _see_gradient(self, tape: Any, targets: list[Any], sources: list[Any], gradients: list[Any]) -> None:
        if self._probe is not None and self._probe.is_copy and tape is self._probe_tape:
            self._probe.answer(sum(float(np.sum(t.numpy())) for t in targets if t is not None))
        self._guard(self._look_at_gradient, tape, targets, sources, gradients)
        if tape is self._probe_tape:
            self._end_probe()
        self._calls += 1
        if self._limit is not None and self._calls >= self._limit:
            self.stop()

    def _end_probe(self) -> None:
        if self._probe is not None:
            self._probe.end()
        self._probe = self._probe_tape = None

    def _look_at_gradient(self, tape: Any, targets: list[Any], sources: list[Any], gradients: list[Any]) -> None:
        place = source_line(*_core.current_line())
        traced = any(_core.is_symbolic(t) for t in targets if _core.is_tensor(t))
        times = self._analysed[place] = self._analysed.get(place, 0) + 1
        flow = None
        if times <= _ANALYSED_CALLS and len(tape._records()) <= _MOST_ROWS:
            flow = Flow(tape)
            self._look_at_structure(tape, flow, targets, sources, gradients, place)
        if not traced:
            sampled = self._has_time() or (self._full and times <= _ALWAYS)
            self._look_at_values(tape, flow, targets, sources, gradients, place, sampled)

    def _look_at_structure(
        self, tape: Any, flow: Flow, targets: list[Any], sources: list[Any], gradients: list[Any],
        place: tuple[str, int],
    ) -> None:  # fmt: skip
        frames = user_frames()
        self._nones.see(tape, flow, frames, targets, sources, gradients, place)
        goals = [tape._index_of(t) for t in targets if t is not None]
        for goal in goals:
            for finding in meaning.traps(flow, goal):
                self._add(finding)
        self._look_for_cuts(tape, flow, goals, targets, sources, gradients)
        kept: dict[tuple[str, int], int] = {}
        for name, code, instruction, size, *_ in tape._records():
            line = source_line(code, instruction)
            kept[line] = kept.get(line, 0) + size
            entry = self._lines.setdefault(line, {"bytes_kept": 0, "operations": set()})
            entry["operations"].add(name.rpartition(".")[2])
        for line, size in kept.items():
            self._lines[line]["bytes_kept"] = max(self._lines[line]["bytes_kept"], size)
        if not self._trace and not _core.is_tracing():
            self._trace = _fingerprints(tape)

    def _look_for_cuts(
        self, tape: Any, flow: Flow, goals: list[Any], targets: list[Any], sources: list[Any], gradients: list[Any]
    ) -> None:
        found: dict[partly_cut.Cut, list[tuple[Any, Any]]] = {}
        for source, gradient in zip(sources, gradients):
            if gradient is None:
                continue
            for goal in goals:
                for cut in partly_cut.cuts(flow, tape._index_of(variable_behind(source)), goal):
                    found.setdefault(cut, []).append((source, gradient))
        if not found:
            return
        first = min(found, key=lambda cut: (cut.deliberate, cut.certain))
        share = self._lost_share(tape, found[first], targets)
        for cut, pairs in found.items():
            self._add_cut(cut, pairs, share)

    def _lost_share(self, tape: Any, pairs: list[tuple[Any, Any]], targets: list[Any]) -> float | None:
        """By one numeric derivative, along a direction in the space of the first variable that can be moved."""
        if self._probe is None or tape is not self._probe_tape:
            return None
        for source, gradient in pairs:
            variable = variable_behind(source)
            if not isinstance(variable, _core.Variable) or hasattr(gradient, "indices") or _core.is_symbolic(gradient):
                continue
            value = np.asarray(variable.numpy(), np.float64)
            size = 1e-3 * max(float(np.sqrt(np.mean(value * value))), 1e-1)
            analytic = float(np.sum(np.asarray(gradient.numpy(), np.float64) * direction(value.shape, 7)))
            total = sum(float(np.sum(t.numpy())) for t in targets if t is not None)
            probe = self._probe
            return lost_share(lambda step, p=probe, v=variable: p.run(v, step, 7), analytic, total, size)  # type: ignore[misc]
        return None

    def _add_cut(self, cut: partly_cut.Cut, pairs: list[tuple[Any, Any]], share: float | None) -> None:
        if share == 0.0 and cut.cause != "integer":
            self._checks.append({"name": f"{cut.file}:{cut.line}", "result": "agrees", "detail": "no path is lost"})
            return
        if share is None and not cut.certain:
            return
        frames = user_frames()
        names = list(dict.fromkeys(name_of_variable(s, frames) for s, _ in pairs))
        what, remedy = partly_cut.describe(cut)
        lost = f"{share:.0%} of the sensitivity to {names[0]} is lost" if share else f"a path from {names[0]} is cut"
        self._add(
            Finding(
                "partly-cut",
                "hint" if cut.deliberate else "warning",
                f"{lost} here: it {what}, while another path reaches the target",
                cut.file,
                cut.line,
                variable=names[0],
                evidence={"lost": share, "cause": cut.cause, "operation": cut.operation, "variables": names[:10]},
                remedy=remedy,
                confidence=0.95 if share else 0.7,
            )
        )

    # ---- values of a step

    def _look_at_values(
        self, tape: Any, flow: Flow | None, targets: list[Any], sources: list[Any], gradients: list[Any],
        place: tuple[str, int], sampled: bool,
    ) -> None:  # fmt: skip
        tensors = [t for t in targets if t is not None and _core.is_tensor(t)]
        values = [np.asarray(t.numpy(), np.float64) for t in tensors if t.dtype.is_floating]
        suspicious = not self._full or self._origins.seen_in_step > 0
        finite = not suspicious or not self._not_finite(tensors, values, sources, gradients)
        given = [(s, g) for s, g in zip(sources, gradients) if g is not None]
        pairs = [(s, g) for s, g in given if isinstance(variable_behind(s), _core.Variable)]
        scalar = len(values) == 1 and values[0].ndim == 0
        if not pairs or not scalar:
            return
        course = self._courses.get(place) or self._courses.setdefault(place, Course(place))
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
            self._look_at_activations(tape, course)
        if len(self._steps) < 2000:
            seconds = time.perf_counter() - self._opened
            self._steps.append(
                {"step": len(course.losses) - 1, "loss": loss, "grad_norm": math.sqrt(total), "seconds": seconds}
            )

    def _look_at_activations(self, tape: Any, course: Course) -> None:
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

    def _not_finite(self, tensors: list[Any], values: list[Any], sources: list[Any], gradients: list[Any]) -> bool:
        """Reports the origin of NaNs and infinities among targets and gradients; whether there were any."""
        bad = [t for t, v in zip([t for t in tensors if t.dtype.is_floating], values) if not np.isfinite(v).all()]
        named = None
        if not bad:
            for source, gradient in zip(sources, gradients):
                dense = getattr(gradient, "values", gradient) if gradient is not None else None
                if dense is not None and dense.dtype.is_floating and not np.isfinite(dense.numpy()).all():
                    bad.append(dense)
                    named = source
        if not bad:
            return False
        self._add_origin(self._origins.of(bad[0]), "the target" if named is None else "a gradient", named)
        return True

    def _add_origin(self, origin: Origin | None, reached: str, source: Any = None) -> None:
        poisoned = any(f.kind in ("nan", "infinity", "bad-data") for f in self._found)
        if origin is None or (origin.kind == "data" and poisoned):
            return
        step = self._calls
        where = f" at position {list(origin.position)}" if origin.position else ""
        given = f" of {', '.join(f'{n:g}' for n in origin.operands)}" if origin.operands else ""
        if origin.kind == "data":
            what = "NaN" if origin.counts[2] else "an infinity"
            message = f"the data given to {origin.name} already had {what}{where}; it reaches {reached}"
            kind = "bad-data"
        else:
            what = "NaN" if origin.kind == "nan" else "infinity"
            named = f"tf.{origin.function}" if origin.name.islower() else f"the operation {origin.operation}"
            work = f"the gradient of {origin.gradient_of}" if origin.gradient_of else named
            message = f"{work} makes {what}{given}{where}; it reaches {reached}"
            kind = "nan" if origin.kind == "nan" else "infinity"
        row = origin.position[0] if origin.position else None
        self._add(
            Finding(
                kind,
                "severe",
                message,
                origin.file,
                origin.line,
                variable=None if source is None else name_of_variable(source, user_frames()),
                evidence={
                    "operation": origin.operation, "backward": origin.gradient_of is not None, "step": step, "row": row,
                    "position": list(origin.position), "operands": [_number(n) for n in origin.operands],
                    "negative_infinities": origin.counts[0], "infinities": origin.counts[1], "nans": origin.counts[2],
                },
                remedy=origin.remedy,
                confidence=0.95,
            )
        )  # fmt: skip

    def _see_values(self, values: list[Any]) -> None:
        """What a session gave: if something is not finite, where that came from."""
        for value in values:
            array = np.asarray(value)
            if array.dtype.kind == "f" and not np.isfinite(array).all() and self._origins.origins:
                fresh = self._origins.origins[self._origins.step_start :] or self._origins.origins
                self._add_origin(next((o for o in fresh if o.kind != "infinity"), fresh[0]), "a fetched value")
                return
        self._origins.begin_step()

    # ---- rules, graphs and optimizers

    def _see_rule(self, name: str, evaluate: Any, inputs: list[Any], results: list[Any], flat: Any, rule: Any) -> None:
        code = getattr(rule, "__code__", None)
        if code in self._rules_seen or (code is not None and is_library(code.co_filename)):
            return
        self._rules_seen.add(code)
        self._guard(lambda: self._add(check_rule(name, evaluate, inputs, results, flat, code)))

    def _see_graph_gradients(self, graph: Any, targets: list[Any], sources: list[Any], gradients: list[Any]) -> None:
        def look() -> None:
            tape = GraphTape(graph)
            flow = Flow(tape)
            place = source_line(*_core.current_line())
            self._nones.see(tape, flow, user_frames(), targets, sources, gradients, place)
            for target in targets:
                for finding in meaning.traps(flow, tape._index_of(target)):
                    self._add(finding)
                for source, gradient in zip(sources, gradients):
                    cuts = [] if gradient is None else partly_cut.cuts(
                        flow, tape._index_of(variable_behind(source)), tape._index_of(target)
                    )  # fmt: skip
                    for cut in cuts:
                        if cut.certain:
                            self._add_cut(cut, [(source, gradient)], None)

        self._guard(look)

    def _see_apply(self, optimizer: Any, pairs: list[tuple[Any, Any]]) -> None:
        self._guard(self._applied.see_apply, optimizer, pairs)

    # ---- the report

    def _add(self, finding: Finding | None) -> None:
        if finding is None or (finding.file and is_library(finding.file) and finding.kind != "none-gradient"):
            return
        same = (finding.kind, finding.file, finding.line)
        if all((f.kind, f.file, f.line) != same for f in self._found):
            self._found.append(finding)

    @property
    def findings(self) -> list[Finding]:
        """What is wrong, the worst first; without what the program silences by `# tapeflow: ok`."""
        found = [*self._nones.findings(), *self._found]
        for course in self._courses.values():
            course.applied = self._applied.ever_applied
            found += course.findings()
        if any(f.kind == "learning-rate-too-high" for f in found):
            found = [_after_explosion(f) if f.kind in ("nan", "infinity") else f for f in found]
        found += self._applied.findings()
        found += self._keras.idle_layers() if self._courses or self._calls else []
        found += static_traps.findings({c.place[0] for c in self._courses.values()})
        unique = {(f.kind, f.file, f.line): f for f in reversed(found)}
        return sorted(
            (f for f in unique.values() if not is_silenced(f)),
            key=lambda f: (SEVERITIES.index(f.severity), found.index(f)),
        )

    @property
    def verdict(self) -> str:
        """ "crashed" if an error ended the program, "findings" if something is wrong, else "healthy"."""
        if self._error is not None and not isinstance(self._error, SystemExit | KeyboardInterrupt):
            return "crashed"
        return "findings" if any(f.severity != "hint" for f in self.findings) else "healthy"

    def report(self, program: str = "") -> dict[str, Any]:
        """Everything as a dictionary; docs/doctor.md describes it."""
        findings = self.findings
        cause = {f.variable: f for f in reversed(findings) if f.variable}
        variables = [
            health.as_dict() | _status(cause.get(health.name))
            for course in self._courses.values()
            for health in course.variables.values()
        ]
        marks: dict[tuple[str | None, int | None], list[str]] = {}
        for f in findings:
            marks.setdefault((f.file, f.line), []).append(f.id)
        return {
            "version": 1,
            "program": program,
            "verdict": self.verdict,
            "error": None if self._error is None else f"{type(self._error).__name__}: {self._error}",
            "findings": [f.as_dict() for f in findings],
            "variables": variables,
            "steps": _thin(self._steps, 500),
            "lines": [
                {"file": file, "line": line, "bytes_kept": about["bytes_kept"],
                 "operations": sorted(about["operations"]), "marks": marks.get((file, line), [])}
                for (file, line), about in self._lines.items()
            ],
            "checks": self._checks[:50],
            "trace": self._trace,
            "environment": {"python": platform.python_version(), "numpy": np.__version__, "mode": self._mode},
            "gradient_calls": self._calls,
            "seconds": time.perf_counter() - self._began,
        }  # fmt: skip

    @property
    def _mode(self) -> str:
        return "full" if self._full else "monitor"

    def save_json(self, path: str, program: str = "") -> None:
        """Writes report.json, at most 256 KB: what does not fit is left out, the findings last."""
        report = self.report(program)
        for drop in ("trace", "lines", "checks", "steps", "variables", "environment", None):
            text = json.dumps(report, indent=1, default=str)
            if len(text.encode()) <= _JSON_LIMIT or drop is None:
                break
            report[drop] = report[drop][:50] if isinstance(report[drop], list) and len(report[drop]) > 50 else []
        while len(text.encode()) > _JSON_LIMIT and len(report["findings"]) > 1:
            report["findings"] = report["findings"][: len(report["findings"]) // 2]
            text = json.dumps(report, indent=1, default=str)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def save_html(self, path: str, program: str = "") -> None:
        """Writes the report as one page, with the lines of the program."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(page.html(self.report(program) | {"sources": self.sources()}))

    def __str__(self) -> str:
        return report_text.text(self.report())

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def __repr__(self) -> str:
        return f"<tf.debugging.Doctor: {self.verdict}, {len(self.findings)} findings, {self._calls} gradient calls>"


def _after_explosion(finding: Finding) -> Finding:
    """A NaN that comes when the loss has exploded is what follows, not the cause."""
    return replace(finding, severity="warning", message=f"{finding.message}, after the loss had grown without bounds")


def _status(finding: Finding | None) -> dict[str, Any]:
    return {"status": "ok" if finding is None else finding.severity, "cause": finding and finding.id}


def _number(x: float) -> float | str:
    return x if math.isfinite(x) else str(x)


def _thin(rows: list[Any], most: int) -> list[Any]:
    every = max(1, -(-len(rows) // most))
    return rows[::every]


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


def _fingerprints(tape: Any, most: int = 300) -> list[list[Any]]:
    """For each of the first records: the operation, its line, and a number that stands for a value it keeps."""
    rows = []
    for row, kept in zip(tape._records()[:most], tape._kept()):
        tensor = next((t for t in reversed(kept) if t is not None and t.dtype.is_floating), None)
        if tensor is None or _core.is_symbolic(tensor) or tensor.shape.num_elements() > 1_000_000:
            continue
        array = np.asarray(tensor.numpy(), np.float64)
        mark = float(np.sum(array * np.cos(np.arange(array.size).reshape(array.shape))))
        file, line = source_line(row[1], row[2])
        rows.append([row[0], os.path.basename(file), line, f"{mark:.9g}"])
    return rows
