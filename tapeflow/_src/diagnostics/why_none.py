"""Why a gradient is None: reads what a tape saw and names the cause, the line, and the remedy."""

from __future__ import annotations

import math
from types import FrameType
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.diagnostics.explanation import Explanation, NoGradientError, ends_at, shown_in_notebooks
from tapeflow._src.diagnostics.flow import Edge, Flow, Step, has_gradient, is_tracked, known
from tapeflow._src.diagnostics.program import (
    DERIVATIVES,
    Named,
    bindings_of,
    bound_at,
    differentiates,
    end_of_with,
    held_as,
    is_direct,
    named_values,
    names_of,
    owners_of,
    user_frames,
    uses_itself,
    uses_name,
)
from tapeflow._src.diagnostics.source_line import place_text, source_line
from tapeflow._src.diagnostics.variable_names import (
    describe_source,
    forgotten_weight,
    is_variable,
    made_at,
    variable_behind,
)
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
    tape: Any, flow: Flow, frames: list[FrameType], targets: list[Any], source: Any, is_none: bool,
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


class _Question:
    def __init__(
        self, tape: Any, flow: Flow, frames: list[FrameType], target: Any, source: Any, is_none: bool,
        was_variable: bool = False,
    ) -> None:  # fmt: skip
        self.is_none, self.was_variable = is_none, was_variable
        self.tape, self.flow, self.frames, self.target, self.source = tape, flow, frames, target, source
        self.start, self.goal = tape._index_of(source), tape._index_of(target)
        self.source_names = names_of(source, frames)
        self.source_name = f"`{self.source_names[0].label}`" if self.source_names else "the source"
        if not self.source_names:
            self.source_names = owners_of(source, frames)
            if self.source_names:
                self.source_name = f"a variable of `{self.source_names[0].name}`"

    def answer(self) -> Explanation:
        return self._about_the_tape() or self._about_dtypes() or self._about_the_path() or self._without_a_path()

    # ---- what needs no path

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
                *(step.place if step else self._bound(self.source_names)),
            )
        if not has_gradient(self.target.dtype.name):
            step = self.flow.maker.get(known(self.goal)) if self.goal is not None else None
            return Explanation(
                "target dtype",
                f"The target has dtype {self.target.dtype.name}; a gradient needs a floating point or complex target",
                "Leave out the cast or comparison that made it.",
                step.short_name if step else None,
                *(step.place if step else self._bound(names_of(self.target, self.frames))),
            )
        return None

    # ---- there is a path from the source to the target, broken or not

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
            return self._not_watched(late, "it was watched only after it had been used")
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
                f"{self._name()} reaches the target only as an index or a shape of "
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
                return Explanation(
                    "after the tape",
                    f"{name or 'The step'} was computed after the tape was closed",
                    "Move it into the `with` block.",
                    name or None,
                    *step.place,
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
        return Explanation(
            "numpy or numbers",
            f"{self._name()} leaves as {kinds[str(first.breaks)]}, and what Python computes is not recorded",
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
            return self._untracked_variable(step)
        return self._rebound() or self._not_watched(step, "the program did not watch it")

    def _untracked_variable(self, step: Step | None) -> Explanation:
        source, place = self.source, step.place if step else (None, None)
        operation = step.short_name or None if step else None
        if not self.tape._watches_accessed_variables:
            return Explanation(
                "variables not watched",
                f"The tape was made with watch_accessed_variables=False and {self._name(False)} was not watched",
                "Call tape.watch(variable) before it is used.",
                operation,
                *place,
            )
        if not source.trainable:
            return Explanation(
                "not trainable",
                f"{self._name()} has trainable=False, so tapes do not watch it by themselves",
                "Make it trainable, or call tape.watch(variable) before it is used.",
                operation,
                *place,
            )
        moment = step.moment if step else "open"
        cause = {"paused": "stop_recording", "closed": "after the tape"}.get(moment, "not watched")
        where = {"paused": "inside tape.stop_recording()", "closed": "after the tape was closed"}.get(
            moment, "unwatched"
        )
        return Explanation(
            cause,
            f"{self._name()} was only used {where}",
            "Use it inside the `with` block.",
            operation,
            *place,
        )

    def _not_watched(self, step: Step | None, why: str) -> Explanation:
        return Explanation(
            "not watched",
            f"{self._name()} is a tensor, and {why}",
            "Call tape.watch(x) before it is used, or make it a tf.Variable.",
            step.short_name or None if step else None,
            *(step.place if step else (None, None)),
        )

    # ---- there is no path

    def _without_a_path(self) -> Explanation:
        return (
            self._another_tape()
            or self._copied()
            or self._rebound()
            or self._computed_outside()
            or self._made_again()
            or self._from_shape()
            or self._no_path()
        )

    def _origins(self) -> list[int]:
        """The values that the target was computed from and that no operation on the tape made, latest use first."""
        if self.goal is None:
            return []
        flow = self.flow
        leaves = [v for v in flow.ancestors(known(self.goal)) if v >= 0]
        leaves = [v for v in leaves if v not in flow.maker or flow.maker[v].event == "constant"]
        return sorted(leaves, key=lambda v: flow.first_use[v].order if v in flow.first_use else -1)

    def _another_tape(self) -> Explanation | None:
        origins = set(self._origins())
        values = [self.target] if self.goal is None else []
        values += [v for _, v in named_values(self.frames) if _core.is_tensor(v) and self._is_one_of(v, origins)]
        for value in values:
            elsewhere = None if isinstance(value, _core.Variable) else self.tape._elsewhere(value)
            if elsewhere is not None and value is not self.source:
                return Explanation(
                    "another tape",
                    "What the target is made of was recorded by another tape, not by this one",
                    "Ask the tape that was open there, or open this one around both.",
                    None,
                    *source_line(*elsewhere),
                )
        return None

    def _is_one_of(self, value: Any, indices: set[int]) -> bool:
        index = self.tape._index_of(value)
        return index is not None and known(index) in indices

    def _rebound(self) -> Explanation | None:
        if isinstance(self.source, _core.Variable):
            return None
        for named in self.source_names:
            bindings = bindings_of(named)
            again = [b for b in bindings if not b.makes_variable and uses_itself(b, named.name)]
            holder = named._replace(name=named.name.partition(".")[0])
            makers = bindings if holder == named else [*bindings, *bindings_of(holder)]
            if again and (self.was_variable or any(b.makes_variable for b in makers)):
                return Explanation(
                    "rebound",
                    f"`{named.name}` was a variable, but here the name was given to a tensor computed from it",
                    f"Change the variable in place: {named.name}.assign(...), assign_add or assign_sub.",
                    None,
                    named.file,
                    again[-1].line,
                )
            if len(bindings) > 1 and again and is_tracked(self.start):
                return Explanation(
                    "rebound",
                    f"`{named.name}` is now another tensor than the one the target was computed from",
                    "Give the new value another name.",
                    None,
                    named.file,
                    again[-1].line,
                )
        return None

    def _computed_outside(self) -> Explanation | None:
        opened_file, opened_line = source_line(*self.tape._opened_at())
        closed_line = end_of_with(opened_file, opened_line)
        names = {n.name for n in self.source_names}
        if self.goal is None:
            values = [(n, self.target) for n in names_of(self.target, self.frames) if is_direct(n, self.target)]
        else:
            origins = {o for o in self._origins() if not self.flow.leaves.get(o, (None, False))[1]}
            values = [
                (n, v)
                for n, v in named_values(self.frames)
                if _core.is_tensor(v) and not is_variable(v) and self._is_one_of(v, origins) and is_direct(n, v)
            ]
        for named, _ in values:
            for binding in reversed(bindings_of(named)):
                inside = named.file == opened_file and opened_line <= binding.line <= closed_line
                if inside or not any(uses_name(named, binding, name, binding.line) for name in names):
                    continue
                after = named.file == opened_file and binding.line > closed_line and self.goal is None
                return Explanation(
                    "after the tape" if after else "before the tape",
                    f"`{named.name}` was computed {'after the tape was closed' if after else 'before the tape opened'}",
                    "Move it into the `with` block.",
                    None,
                    named.file,
                    binding.line,
                )
        if self.goal is None and is_variable(self.target):
            return self._target_is_variable(opened_file, range(opened_line, closed_line + 1))
        if self.goal is None:
            return Explanation(
                "target not recorded",
                "The target was not computed while this tape was open",
                "Compute it inside the `with` block.",
                None,
                *self._bound(names_of(self.target, self.frames)),
            )
        return None

    def _target_is_variable(self, file: str, block: range) -> Explanation:
        """The target is a variable as it stands; its line is where it got a second name in the block, if it did."""
        all_names = names_of(self.target, self.frames)
        again = [(n, b.line) for n in all_names for b in bindings_of(n) if any(o.name in b.uses for o in all_names)]
        names = [(n, line) for n, line in again if n.file == file and line in block]
        names += [(n, line) for n in all_names if (line := bound_at(n)) is not None]
        other = f"`{names[0][0].label}`" if names else self.target.name
        return Explanation(
            "no path",
            f"The target {other} is a variable itself, and does not depend on {self._name(False)}",
            "Check that the right value was used, or ask with unconnected_gradients='zero'.",
            None,
            *((names[0][0].file, names[0][1]) if names else made_at(self.target) or (None, None)),
        )

    def _made_again(self) -> Explanation | None:
        if isinstance(self.source, _core.Variable):
            return None
        likeness = self.tape._likeness(self.source)
        for origin in reversed(self._origins()):
            about, _ = self.flow.leaves.get(origin, (None, False))
            if about != likeness or origin == known(self.start):
                continue
            if likeness[1] == 1 and origin not in self.flow.maker:
                continue  # that two numbers are equal says little
            step = self.flow.maker.get(origin) or self.flow.first_use.get(origin)
            named = next(
                (n for n, v in named_values(self.frames) if _core.is_tensor(v) and self._is_one_of(v, {origin})), None
            )
            made_here = origin in self.flow.maker or self.flow.leaves[origin][1]
            place = step.place if made_here and step else self._bound([named] if named else [])
            if place[0] is None and step:
                place = step.place
            return Explanation(
                "constant made again",
                f"The target uses another tensor with the value of {self._name(False)}, not that tensor itself",
                "Make the constant once and use that same object.",
                None,
                *place,
            )
        return None

    def _from_shape(self) -> Explanation | None:
        """The target uses a number that is a dimension of the source, which the program read."""
        dims = [float(d) for d in self.source.shape]
        read = self.flow.read_as_shape(known(self.start), self._origins(), {*dims, math.prod(dims)})
        return (
            None
            if read is None
            else Explanation(
                "index or shape",
                f"The target uses the shape of {self._name(False)}, not its values",
                "A shape has no gradient: use the values themselves.",
                "shape",
                *read.place,
            )
        )

    def _no_path(self) -> Explanation:
        if isinstance(self.source, _core.Variable) and not is_tracked(self.start):
            if not self.tape._watches_accessed_variables or not self.source.trainable:
                return self._untracked_variable(self.flow.first_use.get(known(self.start)) if self.start else None)
            return Explanation(
                "variable not used",
                f"{self._name()} was not read while the tape was recording",
                "Use the variable itself inside the `with` block (a value read earlier does not count).",
                None,
                *(
                    forgotten_weight(self.source, {s.place for s in self.flow.steps if s.event == "record"})
                    or self._bound(names_of(self.target, self.frames), self._target_place())
                ),
                depends_on=self._ancestors_by_name(),
            )
        if not is_tracked(self.start):
            step = self.flow.first_use.get(known(self.start)) if self.start is not None else None
            return self._not_watched(step, "the program did not watch it, nor does the target use it")
        if (derivative := self._constant_derivative()) is not None:
            return derivative
        nearest, place = self._nearest()
        return Explanation(
            "no path",
            f"The target does not depend on {self._name(False)}: {nearest}",
            "Check that the right value was used, or ask with unconnected_gradients='zero'.",
            None,
            *place,
            depends_on=self._ancestors_by_name(),
        )

    def _constant_derivative(self) -> Explanation | None:
        """The target is made of derivatives of what the source does reach: that must be linear in the source."""
        reached = self.flow.reached(known(self.start))
        place = self._differentiated_at() if len(reached) > 1 else None
        if place is None and len(reached) > 1:
            step = self.flow.after(reached, known(self.goal), lambda place: differentiates(*place))
            place = None if step is None else step.place
        if place is None:
            return None
        return Explanation(
            "constant derivative",
            f"The target is computed from a derivative that does not depend on {self._name(False)}: "
            "what was differentiated here is linear in it",
            "A derivative of something linear (or of relu) is constant: ask with unconnected_gradients='zero'.",
            None,
            *place,
            depends_on=self._ancestors_by_name(),
        )

    def _differentiated_at(self) -> tuple[str, int] | None:
        """The line that bound the target, if it asks for a derivative."""
        for named in names_of(self.target, self.frames):
            line = bound_at(named, self._target_place())
            binding = next((b for b in bindings_of(named) if b.line == line), None)
            if binding is not None and any(use.rpartition(".")[2] in DERIVATIVES for use in binding.uses):
                return named.file, binding.line
        return None

    def _nearest(self) -> tuple[str, tuple[str | None, int | None]]:
        """The last thing that does depend on the source, and its line."""
        reached = self.flow.reached(known(self.start))
        steps = [s for s in self.flow.steps if s.event == "record" and s.short_name != "identity"]
        made = (s for s in reversed(steps) if not reached.isdisjoint(s.outputs))
        last = next((s for s in made if not set(s.outputs) <= {self.start}), None)
        if last is None:
            bound = self._bound(names_of(self.target, self.frames), self._target_place())
            return "nothing that was recorded does", bound
        file, line = last.place
        return f"the last value that does is the result of {last.short_name} at {place_text(file, line)}", (file, line)

    def _name(self, starts: bool = True) -> str:
        return self.source_name[0].upper() + self.source_name[1:] if starts else self.source_name

    def _bound(self, names: list[Named], made: tuple[str, int] | None = None) -> tuple[str | None, int | None]:
        """Where a value got its name; without a name, where it was made."""
        for named in names:
            if (line := bound_at(named, made)) is not None:
                return named.file, line
        return made or (None, None)

    def _target_place(self) -> tuple[str, int] | None:
        step = self.flow.maker.get(known(self.goal)) if self.goal is not None else None
        return step.place if step is not None and step.code is not None else None

    def _ancestor_variables(self) -> list[Any]:
        if self.goal is None:
            return []
        others = [v for v in self.tape.watched_variables() if v is not self.source]
        return [v for v in others if known(self.goal) in self.flow.reached(known(self.tape._index_of(v)))]

    def _ancestors_by_name(self) -> tuple[str, ...]:
        return tuple(describe_source(held_as(v, self.frames), self.frames) for v in self._ancestor_variables()[:4])

    def _copied(self) -> Explanation | None:
        """The target uses a copy of the variable, or the variable that the source is a copy of."""
        if not is_variable(self.source):
            return None
        for other in self._ancestor_variables():
            for copy, original in ((other, self.source), (self.source, other)):
                made_from = getattr(copy, "_copy_of", None)
                if made_from is None or made_from() is not original:
                    continue
                used = "a copy of" if copy is other else "the variable that it is a copy of, not"
                return Explanation(
                    "copied variable",
                    f"The target uses {used} {self._name(False)}: a copy is a variable of its own",
                    "Use one variable in both places, or ask for the gradient by the one that is used.",
                    None,
                    *(made_at(copy) or (None, None)),
                )
        return None
