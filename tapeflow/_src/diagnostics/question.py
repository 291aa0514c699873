"""A question to a tape about one source: what it asks about, and what answers of every kind need."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.diagnostics.explanation import Explanation
from tapeflow._src.diagnostics.flow import Flow, Step, is_tracked, known
from tapeflow._src.diagnostics.frames import Frames, Named, held_as, names_of, owners_of
from tapeflow._src.diagnostics.program import bindings_of, bound_at, made_by, uses_itself
from tapeflow._src.diagnostics.variable_names import describe_source


class Question:
    """Why is the gradient of a target by a source None?"""

    def __init__(
        self, tape: Any, flow: Flow, frames: Frames, target: Any, source: Any, is_none: bool,
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

    def name_text(self, starts: bool = True) -> str:
        return self.source_name[0].upper() + self.source_name[1:] if starts else self.source_name

    def bound(self, names: list[Named], made: tuple[str, int] | None = None) -> tuple[str | None, int | None]:
        """Where a value got its name; without a name, where it was made."""
        for named in names:
            if (line := bound_at(named, made)) is not None:
                return named.file, line
        return made or (None, None)

    def target_place(self) -> tuple[str, int] | None:
        step = self.flow.maker.get(known(self.goal)) if self.goal is not None else None
        return step.place if step is not None and step.code is not None else None

    def ancestor_variables(self) -> list[Any]:
        if self.goal is None:
            return []
        others = [v for v in self.tape.watched_variables() if v is not self.source]
        return [v for v in others if known(self.goal) in self.flow.reached(known(self.tape._index_of(v)))]

    def ancestors_by_name(self) -> tuple[str, ...]:
        return tuple(describe_source(held_as(v, self.frames), self.frames) for v in self.ancestor_variables()[:4])

    def is_one_of(self, value: Any, indices: set[int]) -> bool:
        index = self.tape._index_of(value)
        return index is not None and known(index) in indices

    def origins(self) -> list[int]:
        """The values that the target was computed from and that no operation on the tape made, latest use first."""
        if self.goal is None:
            return []
        flow = self.flow
        leaves = [v for v in flow.ancestors(known(self.goal)) if v >= 0]
        leaves = [v for v in leaves if v not in flow.maker or flow.maker[v].event == "constant"]
        return sorted(leaves, key=lambda v: flow.first_use[v].order if v in flow.first_use else -1)

    def untracked_variable(self, step: Step | None) -> Explanation:
        source, place = self.source, step.place if step else (None, None)
        operation = step.short_name or None if step else None
        if not self.tape._watches_accessed_variables:
            return Explanation(
                "variables not watched",
                f"The tape was made with watch_accessed_variables=False and {self.name_text(False)} was not watched",
                "Call tape.watch(variable) before it is used.",
                operation,
                *place,
            )
        if not source.trainable:
            return Explanation(
                "not trainable",
                f"{self.name_text()} has trainable=False, so tapes do not watch it by themselves",
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
            f"{self.name_text()} was only used {where}",
            "Use it inside the `with` block.",
            operation,
            *place,
        )

    def not_watched(self, step: Step | None, why: str) -> Explanation:
        return Explanation(
            "not watched",
            f"{self.name_text()} is a tensor, and {why}",
            "Call tape.watch(x) before it is used, or make it a tf.Variable.",
            step.short_name or None if step else None,
            *(step.place if step else (None, None)),
        )

    def rebound(self) -> Explanation | None:
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
                    made_by(named.file, again[-1].line),
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
