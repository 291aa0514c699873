"""`tf.debugging.Doctor`: watches the gradients of a program and reports what is wrong with it."""

from __future__ import annotations

import linecache
import os
import time
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.diagnostics import compare_runs, last_none, report_data, report_text
from tapeflow._src.diagnostics.cost import recompute_advice, retraces
from tapeflow._src.diagnostics.cost.line_costs import LineCosts
from tapeflow._src.diagnostics.custom_rule import check_rule
from tapeflow._src.diagnostics.cut_findings import CutFindings
from tapeflow._src.diagnostics.finding import SEVERITIES, Finding, Findings, is_silenced
from tapeflow._src.diagnostics.flow import Flow, known
from tapeflow._src.diagnostics.frames import named_values, user_frames
from tapeflow._src.diagnostics.graph_stretches import NON_FINITE, GraphStretches
from tapeflow._src.diagnostics.graph_tape import GraphTape
from tapeflow._src.diagnostics.html.findings import doctor as doctor_html
from tapeflow._src.diagnostics.nan_findings import NanFindings
from tapeflow._src.diagnostics.none_findings import NoneFindings
from tapeflow._src.diagnostics.numeric_probe import Probe
from tapeflow._src.diagnostics.observers import observers
from tapeflow._src.diagnostics.report import page, tape_steps
from tapeflow._src.diagnostics.source_line import counted, source_line
from tapeflow._src.diagnostics.training import health as health_module
from tapeflow._src.diagnostics.training import loss_sign, meaning, static_traps, step_check
from tapeflow._src.diagnostics.training.applied import AppliedGradients
from tapeflow._src.diagnostics.training.assignments import Assignments, weights_changed
from tapeflow._src.diagnostics.training.curvature import Curvature
from tapeflow._src.diagnostics.training.first_batches import FirstBatches
from tapeflow._src.diagnostics.training.keras_layers import KerasLayers
from tapeflow._src.diagnostics.training.keras_watch import KerasWatch
from tapeflow._src.diagnostics.training.made_optimizers import MadeOptimizers
from tapeflow._src.diagnostics.training.named_arrays import NamedArrays
from tapeflow._src.diagnostics.training.session_runs import SessionRuns
from tapeflow._src.diagnostics.training.step_values import StepValues
from tapeflow._src.diagnostics.variable_names import variable_behind
from tapeflow._src.namespace import public
from tapeflow._src.types.library_folders import is_library

_ANALYSED_CALLS = 3  # of gradient, at each line: later ones have the same structure
_CHECKED_CALLS = 3  # of each custom gradient
_MOST_ROWS = 20_000
_MOST_PROBES = 4  # copies of the process that wait at once
_PROBED_LINES = 40  # that open tapes and have a copy in any case; the others have one if there is time
_MONITOR_SHARE, _FULL_SHARE = 0.03, 0.3  # of the time, for looking at values
_MOST_UNSEEN = 1000  # tapes in a row that a monitor does not look at
_ALWAYS = 12  # the first steps at each line, which are looked at in any case in full mode


@public("debugging.Doctor")
class Doctor:
    """Watches the gradients that are computed inside the context, and reports what is wrong with the program.

    `findings` lists the faults, each with its line, evidence and remedy; `report()` is everything as a dictionary, and
    `print(doctor)` shows it. The program computes what it would compute without.

    Args:
      steps: After so many steps (calls of `gradient`) the doctor stops watching. None: it watches to the end.
      mode: "full" looks at every operation (functions run eagerly); "monitor" samples steps and leaves functions as
        they are, at a few per cent of the time.
      check_step: Whether the first step at each line is checked by reverse mode, forward mode and differences, for
        every variable. Copies of the process run it again, five times for each.
      curvature: Whether the largest eigenvalue of the Hessian is computed for the first step at each line, by exact
        Hessian-vector products; the report has it under `courses`, with the learning rate that it bounds.
      memory_budget: Bytes that a tape may keep; the report says what to wrap in `tf.recompute_grad` for it.

    >>> w = tf.Variable(2.)
    >>> with tf.debugging.Doctor() as doctor:
    ...     with tf.GradientTape() as tape:
    ...         loss = tf.round(w) * 3.
    ...     gradient = tape.gradient(loss, w)
    >>> [finding.kind for finding in doctor.findings]
    ['none-gradient']
    """

    def __init__(
        self, steps: int | None = None, mode: str = "full", memory_budget: int | None = None, check_step: bool = False,
        curvature: bool = False,
    ) -> None:  # fmt: skip
        if mode not in ("full", "monitor"):
            raise ValueError(f"Doctor: mode must be 'full' or 'monitor'; got {mode!r}")
        if steps is not None and (isinstance(steps, bool) or not isinstance(steps, int) or steps < 1):
            raise ValueError(f"Doctor: steps must be a positive integer or None; got {steps!r}")
        if memory_budget is not None and memory_budget < 0:
            raise ValueError(f"Doctor: memory_budget must not be negative; got {memory_budget!r}")
        self._limit, self._full, self._memory_budget = steps, mode == "full", memory_budget
        self._check_step = check_step
        self._curvature = Curvature() if curvature else None
        self._found: list[Finding] = []
        self._analysed: dict[tuple[str, int], int] = {}
        self._checks: list[dict[str, str]] = []
        self._trace: list[list[Any]] = []
        self._tape: list[dict[str, Any]] = []
        self._rules_seen: dict[Any, int] = {}
        self._nans = NanFindings(self._add, lambda: self._found)
        self._costs, self._retraces = LineCosts(self._nans.origins.check), retraces.Retraces()
        self._blocks: list[recompute_advice.Block] = []
        self._cuts = CutFindings(self._add, self._checks)
        self._nones, self._arrays = NoneFindings(), NamedArrays()
        self._first_batches = FirstBatches()
        self._assignments, self._layers = Assignments(self._guard), KerasLayers()
        self._optimizers = MadeOptimizers()
        self._applied = AppliedGradients(self._add, self._assignments, self._full)
        self._values = StepValues(self._applied, self._layers, self._optimizers, self._full)
        self._sessions = SessionRuns(self._values, self._assignments, self._guard)
        self._keras = KerasWatch(self._see_apply, self._add, self._assignments)
        self._probes: list[tuple[Any, Probe]] = []  # of tapes that were not asked for a gradient yet
        self._copy: tuple[Any, Probe] | None = None  # in a copy that a probe made
        self._probed: dict[tuple[str, int], list[Probe]] = {}  # by the line that opens the tape
        self._stretches = GraphStretches()
        self._nans.ask_copy = self._stretches.ask
        self._watching = False
        self._asked = True  # whether the last tape was asked for a gradient
        self._had_inner = False  # whether another tape recorded that
        self._calls = 0
        self._spent = 0.0  # seconds
        self._sees_gradients = True
        self._tapes = 0  # that were opened
        self._opened = self._began = time.perf_counter()
        self._ran_eagerly = False
        self._error: BaseException | None = None

    # ---- beginning and end

    def __enter__(self) -> Doctor:
        if self._watching:
            raise RuntimeError("Doctor: it is watching already.")
        self._watching = True
        self._keras.begin()
        self._layers.begin()
        self._optimizers.begin()
        _core.set_assignment_observer(self._assignments.see, not self._full)  # outside of tapes they cost too much
        self._began = time.perf_counter()
        _core.set_tape_observers(self._see_tape, self._see_gradient)
        observers.custom_gradient = self._see_rule if self._full else None
        observers.graph_gradients = self._see_graph_gradients
        observers.jacobians, observers.unseen = self._see_jacobians, self._unseen
        observers.apply_gradients = self._see_apply
        observers.function_call = self._see_function
        observers.session_run = self._see_session
        observers.iterator = self._see_iterator if self._full else None
        self._ran_eagerly = _core.get_run_eagerly()
        if self._full:
            _core.set_run_eagerly(True)
            self._nans.origins.start()
        return self

    def __exit__(self, kind: Any, error: BaseException | None, traceback: TracebackType | None) -> None:
        self._error = self._error or error
        self.stop()

    def ended_by(self, error: BaseException | None) -> None:
        """Says which error ended the program, where the context did not see it."""
        self._error = error

    def sources(self) -> dict[str, str]:
        """The text of the files that findings and lines name."""
        files = self._files() | {f.file for f in self.findings if f.file and not is_library(f.file)}
        return {file: "".join(linecache.getlines(file)) for file in sorted(files)}

    def _files(self) -> set[str]:
        """The program's own files that were seen at work."""
        return {file for file, _ in self._costs.places if not is_library(file)}

    def stop(self) -> None:
        """Stops watching. What was found stays."""
        if not self._watching:
            return
        self._watching = False
        if not self._asked:
            self._guard(self._nans.see_unfinished_step, isinstance(self._error, Exception))
        self._guard(lambda: self._add(self._stretches.finish()))
        _core.set_tape_observers(None, None)
        observers.custom_gradient = observers.graph_gradients = observers.function_call = observers.jacobians = None
        observers.apply_gradients = observers.session_run = observers.unseen = observers.iterator = None
        if self._full:
            self._nans.origins.stop()
            _core.set_run_eagerly(self._ran_eagerly)
        self._end_probes()
        if self._curvature is not None:
            self._curvature.end()
        self._keras.remove()
        self._layers.remove()
        self._optimizers.remove()
        _core.set_assignment_observer(None)

    # ---- what the program does

    def _guard(self, look: Callable[..., None], *what: Any) -> None:
        """Looks without being seen: nothing is recorded meanwhile, and no fault of the doctor ends the program."""
        start = time.perf_counter()
        self._assignments.listening = False
        paused = last_none.pause(True)
        try:
            with _core.StopRecording(True):
                look(*what)
        except Exception as error:
            if os.environ.get("TAPEFLOW_DOCTOR_RAISES"):
                raise
            self._checks.append({"name": "doctor", "result": "failed", "detail": f"{type(error).__name__}: {error}"})
        finally:
            last_none.pause(paused)
            self._assignments.listening = True
            self._spent += time.perf_counter() - start

    def _has_time(self) -> bool:
        """Whether watching took less than its share of the time so far."""
        share = _FULL_SHARE if self._full else _MONITOR_SHARE
        return self._spent < share * (time.perf_counter() - self._began)

    def _tapes_until_time(self) -> int:
        """About how many tapes will open before a monitor has time again."""
        elapsed = time.perf_counter() - self._began
        wait = self._spent / _MONITOR_SHARE - elapsed
        return int(min(_MOST_UNSEEN, self._tapes * wait / elapsed))

    def _see_tape(self, tape: Any) -> None:
        if self._full and self._stretches.has_woken():
            self._nans.origins.start()
        if not self._full:  # a tape that nobody asks about is used up as it would be
            self._tapes += 1
            watched = self._calls < _ANALYSED_CALLS or self._has_time()
            if watched is not self._sees_gradients or not watched:
                self._sees_gradients = watched
                unseen = 0 if watched else self._tapes_until_time()
                self._tapes += unseen
                _core.set_tape_observers(self._see_tape, self._see_gradient if watched else None, unseen)
            if not watched:
                return
        self._keras.install()
        if _core.is_tracing() or _core.is_recording():
            return
        self._opened = time.perf_counter()
        self._asked = False
        self._nans.origins.begin_step()
        self._layers.begin_step()
        place = source_line(*_core.current_line())
        before = self._probed.setdefault(place, [])
        again = not before or (len(before) < _ANALYSED_CALLS and not before[-1].is_sure)
        again = again and (len(self._probed) <= _PROBED_LINES or self._has_time())
        if self._full and self._copy is None and again and Probe.possible():
            probe = Probe()
            before.append(probe)
            probe.start()
            if probe.is_copy:
                self._copy = tape, probe
            self._probes.append((tape, probe))
            self._end_probes(but=_MOST_PROBES)
            self._spent += time.perf_counter() - self._opened
        if self._curvature is not None and self._copy is None:
            self._unseen(self._curvature.begin_step, place)
        if self._full and self._costs.is_due(self._calls):
            self._costs.begin_step()

    def _see_gradient(self, tape: Any, targets: list[Any], sources: list[Any], gradients: list[Any]) -> None:
        if self._copy is not None:
            if tape is self._copy[0]:
                self._copy[1].answer(targets, [(variable_behind(s), g) for s, g in zip(sources, gradients)])
            return
        self._asked = True
        if self._full:
            self._costs.end_step()
        if missing := [number for number, gradient in enumerate(gradients) if gradient is None]:
            last_none.register_none(tape, targets, sources, missing)  # for an error that ends the program
        inner = bool(_core.is_recording())
        self._keras.see_gradient(sources, inner)
        self._guard(self._look_at_gradient, tape, targets, sources, gradients, inner or self._had_inner)
        self._had_inner = inner
        if (probe := self._probe_of(tape)) is not None:
            probe.calls += 1
            if not tape._persistent or probe.calls >= _ANALYSED_CALLS:
                probe.end()
        self._calls += 1
        poisoned = any(f.kind in NON_FINITE for f in self._found)
        outermost = self._full and not _core.is_tracing() and not _core.is_recording()
        if outermost and self._stretches.see_step(self._calls, not poisoned):
            self._nans.origins.stop()
        if self._limit is not None and self._calls >= self._limit:
            self.stop()

    def _probe_of(self, tape: Any) -> Probe | None:
        return next((probe for held, probe in self._probes if held is tape), None)

    def _end_probes(self, but: int = 0) -> None:
        """Ends all probes but the last ones."""
        while len(self._probes) > but:
            self._probes.pop(0)[1].end()

    def _look_at_gradient(
        self, tape: Any, targets: list[Any], sources: list[Any], gradients: list[Any], nested: bool
    ) -> None:
        place = source_line(*_core.current_line())
        traced = any(_core.is_symbolic(t) for t in targets if _core.is_tensor(t))
        times = self._analysed[place] = self._analysed.get(place, 0) + 1
        flow = None
        if times <= _ANALYSED_CALLS and len(tape._records()) <= _MOST_ROWS:
            flow = Flow(tape)
            self._look_at_structure(tape, flow, targets, sources, gradients, place)
        else:
            self._nones.see_later(sources, gradients)
        if not traced:
            sampled = self._has_time() or (self._full and times <= _ALWAYS)
            self._look_at_values(tape, flow, targets, sources, gradients, place, sampled)
            if nested and times == 1 and place in self._values.courses:
                visible = named_values(user_frames())
                trains = any(hasattr(value, "apply_gradients") for _, value in visible)
                self._values.courses[place].is_for_its_own_sake = not trains
                self._values.courses[place].is_nested = True
            if not self._tape and self._full:
                self._tape = self._step_through(tape, targets)

    def _step_through(self, tape: Any, targets: list[Any]) -> list[dict[str, Any]]:
        """The records of a small tape with their gradients; the tape is asked once more."""
        steps: list[dict[str, Any]] = self._unseen(tape_steps.tape_steps, tape, targets)
        return steps

    def _unseen(self, act: Callable[..., Any], *what: Any) -> Any:
        """Uses tapes that the doctor does not watch."""
        _core.set_tape_observers(None, None)
        try:
            return act(*what)
        finally:
            _core.set_tape_observers(self._see_tape, self._see_gradient)

    def _look_at_structure(
        self, tape: Any, flow: Flow, targets: list[Any], sources: list[Any], gradients: list[Any],
        place: tuple[str, int],
    ) -> None:  # fmt: skip
        frames = user_frames()
        self._arrays.see(frames)
        self._nones.see(tape, flow, frames, targets, sources, gradients, place)
        goals = [tape._index_of(t) for t in targets if t is not None]
        layers = self._layers.lines_by_index(tape)
        for goal in goals:
            trains = any(isinstance(variable_behind(s), _core.Variable) for s in sources)  # else a sampler may ascend
            trains_all = trains and self._trains_all(tape, flow, goal, sources)
            signs = loss_sign.wrong_sign(flow, goal, place) if trains_all else ()
            for finding in (*meaning.traps(flow, goal, layers), *signs):
                self._add(finding)
        self._applied.see_structure(tape, flow, targets, sources, place)
        probe = self._probe_of(tape)
        if self._check_step and probe is not None:
            rows, wrong = step_check.check_step(probe, targets, sources, gradients, frames, place)
            self._checks += rows
            self._found += wrong
        self._cuts.see(tape, flow, self._probe_of(tape), targets, sources, gradients)
        self._costs.see_records(tape)
        if self._memory_budget is not None and not self._blocks:
            self._blocks = recompute_advice.blocks(tape, flow)
        if not self._trace and not _core.is_tracing():
            self._trace = compare_runs.fingerprints(tape)

    def _trains_all(self, tape: Any, flow: Flow, goal: Any, sources: list[Any]) -> bool:
        """Whether all trainable variables behind a target are asked for. Else others make the predictions: an attack
        on them, or a generator that plays against them, makes their error large on purpose.
        """
        asked = {id(variable_behind(s)) for s in sources}
        others = [v for v in tape.watched_variables() if id(v) not in asked]
        behind = flow.ancestors(known(goal)) if goal is not None and others else set()
        return all(known(tape._index_of(v)) not in behind for v in others)

    def _look_at_values(
        self, tape: Any, flow: Flow | None, targets: list[Any], sources: list[Any], gradients: list[Any],
        place: tuple[str, int], sampled: bool,
    ) -> None:  # fmt: skip
        tensors = [t for t in targets if t is not None and _core.is_tensor(t)]
        values = [np.asarray(t.numpy(), np.float64) for t in tensors if t.dtype.is_floating]
        suspicious = not self._full or self._nans.origins.seen_in_step > 0 or self._stretches.were_unseen()
        self._nans.step, self._nans.place = self._calls, place
        finite = not suspicious or not self._nans.see_step(tape, tensors, values, sources, gradients)
        if not suspicious:
            self._nans.see_finite_step()
        self._nans.origins.end_step()
        seconds = time.perf_counter() - self._opened
        if self._curvature is not None:
            self._unseen(self._curvature.see, place, values, sources, gradients)
        self._values.see(tape, flow, targets, values, sources, gradients, place, sampled, finite, seconds)

    # ---- rules, graphs and optimizers

    def _see_rule(self, name: str, evaluate: Any, inputs: list[Any], results: list[Any], flat: Any, rule: Any) -> None:
        code = getattr(rule, "__code__", None)
        times = self._rules_seen[code] = self._rules_seen.get(code, 0) + 1
        if times > _CHECKED_CALLS or (code is not None and is_library(code.co_filename)):
            return
        self._guard(lambda: self._add(self._unseen(check_rule, name, evaluate, inputs, results, flat, code)))

    def _see_graph_gradients(self, graph: Any, targets: list[Any], sources: list[Any], gradients: list[Any]) -> None:
        def look() -> None:
            tape = GraphTape(graph)
            flow = Flow(tape)
            place, frames = source_line(*_core.current_line()), user_frames()
            self._nones.see(tape, flow, frames, targets, sources, gradients, place)
            for target in targets:
                goal = tape._index_of(target)
                for finding in (*meaning.traps(flow, goal), *loss_sign.wrong_sign(flow, goal, place)):
                    self._add(finding)
            self._cuts.see(tape, flow, None, targets, sources, gradients)
            pairs = self._sessions.see_gradients(graph, tape, flow, targets, sources, gradients, place, frames)
            self._applied.see_graph(place, pairs)

        self._guard(look)

    def _see_jacobians(self, tape: Any, target: Any, sources: list[Any], jacobians: list[Any]) -> None:
        def look() -> None:
            place = source_line(*_core.current_line())
            self._nones.see(tape, Flow(tape), user_frames(), [target], sources, jacobians, place)

        if self._copy is None:
            self._guard(look)

    def _see_session(self, session: Any, fetches: Any, compute: Callable[[Any], Any]) -> Any:
        """Runs a session; its values are looked at as those of a step."""
        sampled = self._full or self._calls < _ANALYSED_CALLS or self._has_time()
        self._calls += 1
        values = self._sessions.run(session, fetches, compute) if sampled else compute(fetches)
        fetched = [v for v in _fetched(values) if v is not None]
        self._guard(self._nans.see_values, fetched, self._sessions.gradients if sampled else [])
        return values

    def _see_iterator(self, dataset: Any, cursor: Any) -> None:
        self._guard(self._first_batches.see, dataset, cursor, self._calls)

    def _see_function(self, traces: Any, call: Any, explain: Any) -> None:
        self._guard(self._retraces.see_call, traces, call, explain)

    def _see_apply(self, optimizer: Any, pairs: list[tuple[Any, Any]]) -> None:
        self._guard(self._applied.see_apply, optimizer, pairs)

    # ---- the report

    def _add(self, finding: Finding | None) -> None:
        if finding is None or (finding.file and is_library(finding.file) and finding.kind != "none-gradient"):
            return
        self._stretches.tell(finding)
        same = (finding.kind, finding.file, finding.line)
        if all((f.kind, f.file, f.line) != same for f in self._found):
            self._found.append(finding)

    @property
    def findings(self) -> list[Finding]:
        """What is wrong, the worst first; without what the program silences by `# tapeflow: ok`."""
        found = [*self._nones.findings(), *self._found, *self._resets()]
        ascending = {place for place, course in self._values.courses.items() if course.ascends}
        ascended = [list(place) for place in ascending | self._applied.ascending]
        found = [f for f in found if f.kind != "wrong-sign" or f.evidence.get("asked_at") not in ascended]
        reset = any(f.kind == "weights-changed" for f in found)
        for course in self._values.courses.values():
            course.applied, course.changed_at = self._applied.ever_applied, self._assignments.places
            found += [f for f in course.findings() if not (reset and f.kind == "weights-changed")]
        found += [*self._retraces.findings(), *self._first_batches.findings()]
        trained = {key for course in self._values.courses.values() for key, v in course.variables.items() if v.changed}
        found += self._layers.findings(self._assignments.changed, trained)
        found = [_left_out(f) if self._nans.was_left_out(f) else f for f in found]
        if any(f.kind in ("learning-rate-too-high", "exploding-gradients") for f in found):
            found = [_after_explosion(f) if f.kind in ("nan", "infinity") else f for f in found]
        found += [*self._applied.findings(), *self._left_out()]
        found += self._keras.idle_layers() if self._values.courses or self._calls else []
        found += static_traps.findings({c.place[0] for c in self._values.courses.values()}, self._arrays)
        found = _without_consequences(found)
        unique = {(f.kind, f.file, f.line): f for f in reversed(found)}
        shown = [f for f in unique.values() if not is_silenced(f)]
        return Findings(sorted(shown, key=lambda f: (SEVERITIES.index(f.severity), found.index(f))))

    def _left_out(self) -> list[Finding]:
        return self._applied.left_out(self._layers.variables(), self._layers.frozen_variables())

    def _advice(self) -> list[dict[str, Any]]:
        """What to recompute for the memory budget."""
        kept = self._costs.memory()["kept"]
        budget = kept if self._memory_budget is None else self._memory_budget
        return [block.as_dict() for block in recompute_advice.advice(self._blocks, kept, budget)]

    def _resets(self) -> list[Finding]:
        """Lines that undo what optimizers did."""
        health = {k: v for course in self._values.courses.values() for k, v in course.variables.items() if v.calls >= 4}
        unchanged = {k for k, v in health.items() if v.changed == 0 and v.zero_steps < v.calls}
        rows = {k: v for course in self._values.courses.values() for k, v in course.variables.items() if v.sparse}
        rows = {k: v for k, v in rows.items() if v.values_seen >= 4 and v.values_changed == 0}
        health, unchanged = health | rows, unchanged | set(rows)
        jumping = {k for k, v in health.items() if v.jumps >= 0.8 * (min(v.calls, 30) - 1)}
        return [
            weights_changed(place, health[id(v)].name, max(health[id(v)].calls, health[id(v)].values_seen))
            for place, v in self._assignments.resets(unchanged, jumping)
        ]

    @property
    def verdict(self) -> str:
        """ "crashed" if an error ended the program, "findings" if something is wrong, else "healthy"."""
        if self._error is not None and not isinstance(self._error, SystemExit | KeyboardInterrupt):
            return "crashed"
        return "findings" if any(f.severity != "hint" for f in self.findings) else "healthy"

    def report(self, program: str = "") -> dict[str, Any]:
        """Everything as a dictionary; docs/doctor.md describes it."""
        findings = self.findings
        health = [v.as_dict() for course in self._values.courses.values() for v in course.variables.values()]
        marks = report_data.marks_by_line(findings)
        return {
            "version": 1,
            "program": program,
            "verdict": self.verdict,
            "error": None if self._error is None else f"{type(self._error).__name__}: {self._error}",
            "findings": [f.as_dict() for f in findings],
            "variables": report_data.variable_rows(health, findings),
            "steps": report_data.thinned(self._values.steps),
            "courses": [c.as_dict() | self._curvature_at(c.place) for c in self._values.courses.values()],
            "lines": self._costs.rows(marks),
            "operations": self._costs.operations(),
            "memory": self._costs.memory() | {"budget": self._memory_budget, "recompute": self._advice()},
            "flow": report_data.flow_rows(health, findings),
            "tape": self._tape,
            "thresholds": health_module.THRESHOLDS | {"sampled_share": _FULL_SHARE if self._full else _MONITOR_SHARE},
            "retraces": self._retraces.rows()[:50],
            "graph_breaks": retraces.graph_breaks(self._files())[:50],
            "checks": self._checks[:50],
            "trace": self._trace,
            "environment": report_data.environment(self._mode),
            "gradient_calls": self._calls,
            "seconds": time.perf_counter() - self._began,
        }  # fmt: skip

    def _curvature_at(self, place: tuple[str, int]) -> dict[str, Any]:
        """The largest eigenvalue of the Hessian, and the learning rate above which gradient descent diverges."""
        found = None if self._curvature is None else self._curvature.eigenvalues.get(place)
        if found is None:
            return {}
        value = found["eigenvalue"]
        return {"curvature": found | {"largest_stable_rate": 2 / value if value > 0 else None}}

    @property
    def _mode(self) -> str:
        return "full" if self._full else "monitor"

    def save_json(self, path: str, program: str = "") -> None:
        """Writes report.json, at most 256 KB: what does not fit is left out, the findings last."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(report_data.as_json(self.report(program)))

    def save_html(self, path: str, program: str = "") -> None:
        """Writes the report as one page, with the lines of the program."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(page.html(self.report(program) | {"sources": self.sources()}))

    def __str__(self) -> str:
        return report_text.text(self.report())

    def _repr_html_(self) -> str:
        return doctor_html(self.report())

    def __repr__(self) -> str:
        calls = counted(self._calls, "gradient call")
        return f"<tf.debugging.Doctor: {self.verdict}, {counted(len(self.findings), 'finding')}, {calls}>"


def _fetched(values: Any) -> list[Any]:
    """The values of a run in any structure; the keys of dictionaries need no order, as those of hooks have none."""
    if isinstance(values, dict | list | tuple):
        children = values.values() if isinstance(values, dict) else values
        return [leaf for child in children for leaf in _fetched(child)]
    return [values]


def _left_out(finding: Finding) -> Finding:
    """Gradients that were not finite in a step that the program left out, as dynamic loss scales do."""
    return replace(finding, severity="hint", message=f"{finding.message}; later steps are finite again")


def _after_explosion(finding: Finding) -> Finding:
    """A NaN that comes when the loss has exploded is what follows, not the cause."""
    return replace(finding, severity="hint", message=f"{finding.message}, after the loss had grown without bounds")


# A finding of the first kinds explains one of the second kinds: at the same line, or anywhere.
_EXPLAINED_HERE = {"applied-to-wrong": {"two-optimizers"}, "logits-mismatch": {"activation-mismatch"}}
_EXPLAINED = {
    "applied-to-wrong": {"wrong-sign", "never-applied", "learning-rate-too-high"},
    "accumulated-gradients": {"learning-rate-too-high"}, "softmax-axis": {"activation-mismatch", "zero-gradient"},
    "integer-division": {"zero-gradient"}, "logits-mismatch": {"zero-gradient"},
}  # fmt: skip


def _without_consequences(found: list[Finding]) -> list[Finding]:
    """Leaves out what only follows from another finding."""
    here = {(other, f.file, f.line) for f in found for other in _EXPLAINED_HERE.get(f.kind, ())}
    anywhere = {other for f in found for other in _EXPLAINED.get(f.kind, ())}
    return [f for f in found if f.kind not in anywhere and (f.kind, f.file, f.line) not in here]
