"""Why a gradient is None: reads what a tape saw and names the cause, the line, and the remedy."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.diagnostics.explanation import Explanation, NoGradientError, ends_at, shown_in_notebooks
from tapeflow._src.diagnostics.flow import Edge, Flow, has_gradient, is_tracked, known
from tapeflow._src.diagnostics.frames import Frames, names_of, user_frames
from tapeflow._src.diagnostics.no_path import without_a_path
from tapeflow._src.diagnostics.program import called_after, end_of_with
from tapeflow._src.diagnostics.question import Question
from tapeflow._src.diagnostics.source_line import source_line
from tapeflow._src.diagnostics.variable_names import describe_source, variable_behind
from tapeflow._src.types import nest


def explain(tape: Any, target: Any, sources: Any, is_none: bool = False) -> Any:
    """See `GradientTape.explain`. Of several targets, the one that says most about the source.

    `is_none` says that the gradient was computed and is None. For a structure of sources, a structure of answers.
    """
    frames = user_frames()
    flow = Flow(tape)
    targets = [variable_behind(t) for t in nest.flatten(target) if t is not None]
    flat = nest.flatten(sources)
    if not targets or not flat or not all(_core.is_tensor(variable_behind(s)) for s in flat):
        raise TypeError(
            "GradientTape.explain: needs a target and sources that are tensors or variables; "
            f"got {type(target).__name__} and {type(sources).__name__}"
        )
    answers = [
        explain_with(tape, flow, frames, targets, source, is_none, number if len(flat) > 1 else None)
        for number, source in enumerate(flat)
    ]
    return answers[0] if sources is flat[0] else shown_in_notebooks(nest.pack_sequence_as(sources, answers))


def explain_with(
    tape: Any, flow: Flow, frames: Frames, targets: list[Any], source: Any, is_none: bool,
    number: int | None, was_variable: bool = False,
) -> Explanation:  # fmt: skip
    """The answer about one source, from what was read of the tape already.

    `was_variable` says that an earlier call at the same line asked about a variable in the place of this source.
    """
    answers = [
        _Question(tape, flow, frames, t, variable_behind(source), is_none, was_variable).answer() for t in targets
    ]
    best = next((a for a in answers if a.cause not in ("no path", "variable not used")), answers[0])
    if best.cause == "connected":
        return best
    return best._replace(source=describe_source(source, frames, number))


def refuse_none(tape: Any, target: Any, sources: list[Any]) -> None:
    """Raises what `explain` answers; called by a strict tape instead of giving None."""
    raise NoGradientError(*explain(tape, target, sources, True))


class _Question(Question):
    def answer(self) -> Explanation:
        return self._about_the_tape() or self._about_dtypes() or self._about_the_path() or without_a_path(self)

    def _about_the_tape(self) -> Explanation | None:
        tape = self.tape
        gone = tape._forgot(self.target) if self.goal is None else None
        if gone == "used up":
            return Explanation(
                "tape used up",
                "The tape was used up by an earlier gradient call",
                "Ask for all gradients in one call, or make the tape with persistent=True.",
                None,
                *source_line(*tape._used_up_at()),
            )
        if gone == "reset":
            return Explanation(
                "tape reset",
                "The target was computed before the tape was reset, and the tape has forgotten it",
                "Compute the target after the reset.",
                None,
                *source_line(*tape._reset_at()),
            )
        if self.target is self.source and not self.is_none and has_gradient(self.source.dtype.name):
            text = "The gradient is not None: the target is the source itself"
            return Explanation("connected", text, "Call gradient.")
        return None

    def _about_dtypes(self) -> Explanation | None:
        if not has_gradient(self.source.dtype.name):
            step = self.flow.first_use.get(known(self.start)) if self.start is not None else None
            return Explanation(
                "source dtype",
                f"The source has dtype {self.source.dtype.name}; only floating point and complex values have gradients",
                "Cast it to a float before the tape uses it, and watch the result.",
                step.short_name or None if step else None,
                *(step.place if step else self.bound(self.source_names)),
            )
        if not has_gradient(self.target.dtype.name):
            step = self.flow.maker.get(known(self.goal)) if self.goal is not None else None
            return Explanation(
                "target dtype",
                f"The target has dtype {self.target.dtype.name}; a gradient needs a floating point or complex target",
                "Leave out the cast or comparison that made it.",
                step.short_name if step else None,
                *(step.place if step else self.bound(names_of(self.target, self.frames))),
            )
        return None

    def _about_the_path(self) -> Explanation | None:
        if self.start is None or self.goal is None:
            return None
        path = self.flow.path(known(self.start), known(self.goal))
        late = None
        if path is None and is_tracked(self.start):
            for step in self.flow.steps:
                if step.event == "watch" and step.outputs == [self.start]:
                    path = self.flow.path(step.inputs[0], known(self.goal))
                    late = None if isinstance(self.source, _core.Variable) or path is None else path[0].step
        if path is None:
            return None
        if late is not None:
            return self.not_watched(late, "it was watched only after it had been used")
        broken = [edge for edge in path if edge.breaks]
        if not is_tracked(self.start) and not (path and path[0].breaks and self._would_be_watched()):
            return self._untracked(path)
        if not broken:
            silent = next((e.step for e in path if e.step.short_name == "custom_gradient"), None)
            if silent is None and self.is_none and path:
                silent = path[0].step
            if silent is not None and (self.is_none or self.tape._used_up or self._turns_out_none()):
                return Explanation(
                    "operation without gradient",
                    f"The rule of {silent.short_name} gives no gradient for this input",
                    "Let the rule return a gradient for it.",
                    silent.short_name,
                    *silent.place,
                )
            if self.tape._used_up:
                return Explanation(
                    "tape used up",
                    "The target depends on the source, but the tape was used up by an earlier gradient call",
                    "Ask for all gradients in one call, or make the tape with persistent=True.",
                    None,
                    *source_line(*self.tape._used_up_at()),
                )
            if silent is not None and not self.tape._persistent:
                text = "The target depends on the source through a custom gradient: its rule decides what comes back"
                return Explanation("connected", text, "Call gradient.", "custom_gradient", *silent.place)
            return Explanation(
                "connected", "The gradient is not None: the target depends on the source", "Call gradient."
            )
        return self._broken(path, broken[0])

    def _turns_out_none(self) -> bool:
        """Whether a tape that can be asked again gives None."""
        with _core.StopRecording(True):
            return self.tape._persistent and self.tape.gradient(self.target, self.source) is None

    def _would_be_watched(self) -> bool:
        variable = isinstance(self.source, _core.Variable) and self.source.trainable
        return variable and self.tape._watches_accessed_variables

    def _broken(self, path: list[Edge], first: Edge) -> Explanation:
        as_index = next((e for e in path if self._is_index(e) and (e is first or self._is_whole(e.value))), None)
        if as_index is not None and first.breaks in ("operation", "dtype", "argument"):
            whole = next((e for e in path if self._is_whole(e.output)), first)
            became = "" if first is as_index else f"; it became integers in {whole.step.short_name}"
            return Explanation(
                "index or shape",
                f"{self.name_text()} reaches the target only as an index or a shape of "
                f"{as_index.step.short_name or 'a value'}{became}",
                "An index has zero gradient almost everywhere: weigh the values instead (tf.nn.softmax and a sum).",
                as_index.step.short_name or None,
                *as_index.step.place,
                integer_at=None if first.breaks == "argument" else first.step.place,
            )
        step, name = first.step, first.step.short_name
        match first.breaks:
            case "operation":
                return ends_at(step.short_name, step.place)
            case "dtype":
                dtype = self.flow.dtype.get(first.output, "another dtype")
                if name == "cast":
                    return ends_at(name, step.place, f", which makes it {dtype}")
                return Explanation(
                    "dtype on the path",
                    f"{name or 'The function called here'} turns the values into {dtype}, which has no gradient",
                    "Stay with floating point values on the way to the target.",
                    name or None,
                    *step.place,
                )
            case "paused":
                return Explanation(
                    "stop_recording",
                    f"{name or 'The step'} was computed inside tape.stop_recording()",
                    "Move what must be differentiated out of that block.",
                    name or None,
                    *step.place,
                )
            case "closed":
                file, line = source_line(*self.tape._opened_at())
                called = called_after(file, end_of_with(file, line), step.place[1]) if file == step.place[0] else None
                return Explanation(
                    "after the tape",
                    f"{name or 'The step'} was computed after the tape was closed",
                    "Move it into the `with` block.",
                    name or None,
                    *(step.place if called is None else (file, called)),
                )
            case "assign":
                return Explanation(
                    "assign",
                    "The value is assigned to a variable, and no gradient passes through the state of a variable",
                    "Use the assigned tensor itself for the target, not the variable.",
                    "assign",
                    *step.place,
                )
        kinds = {
            "numpy": "a NumPy array",
            "number": "a Python number",
            "boolean": "a condition of the program",
            "argument": "a Python number",
        }
        leaving = self.name_text() if path[0] is first else f"What is computed from {self.name_text(False)}"
        return Explanation(
            "numpy or numbers",
            f"{leaving} leaves as {kinds[str(first.breaks)]}, and what Python computes is not recorded",
            "Compute with operations of tf all the way, or wrap the function with tf.custom_gradient.",
            {"numpy": "numpy", "number": "float", "boolean": "bool"}.get(str(first.breaks)),
            *step.place,
        )

    def _is_index(self, edge: Edge) -> bool:
        if edge.breaks == "argument":
            return True
        return (
            self._is_whole(edge.value)
            and edge.step.short_name in primitives.indexing_functions
            and edge.step.event in ("record", "operation")
        )

    def _is_whole(self, value: int) -> bool:
        return not has_gradient(self.flow.dtype.get(value, "float32"))

    def _untracked(self, path: list[Edge]) -> Explanation:
        step = path[0].step if path else None
        if isinstance(self.source, _core.Variable):
            behind = self.flow.ancestors(known(self.goal))
            uses = [e.step for e in self.flow.edges.get(known(self.start), ()) if e.output in behind]
            return self.untracked_variable(min(uses, key=lambda use: use.order, default=step))
        return self.rebound() or self.not_watched(step, "this tape did not watch it")
