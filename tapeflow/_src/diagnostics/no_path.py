"""Why a gradient is None where nothing that was recorded leads from the source to the target."""

from __future__ import annotations

import math
from functools import partial

from tapeflow._src import _core
from tapeflow._src.diagnostics.explanation import Explanation
from tapeflow._src.diagnostics.flow import is_tracked, known
from tapeflow._src.diagnostics.frames import is_direct, named_tensors, names_of, twins_of
from tapeflow._src.diagnostics.program import (
    DERIVATIVES,
    bindings_of,
    bound_at,
    computations_of,
    differentiates,
    end_of_with,
    overwritten_at,
    uses_name,
)
from tapeflow._src.diagnostics.question import Question
from tapeflow._src.diagnostics.source_line import place_text, source_line
from tapeflow._src.diagnostics.variable_names import forgotten_weight, is_variable, made_at


def without_a_path(question: Question) -> Explanation:
    return (
        _another_tape(question)
        or _copied(question)
        or question.rebound()
        or _computed_outside(question)
        or _made_again(question)
        or _from_shape(question)
        or _no_path(question)
    )


def _another_tape(question: Question) -> Explanation | None:
    origins = set(question.origins())
    values = [question.target] if question.goal is None else []
    values += [v for _, v in named_tensors(question.frames, lambda v: question.is_one_of(v, origins))]
    for value in values:
        elsewhere = None if isinstance(value, _core.Variable) else question.tape._elsewhere(value)
        if elsewhere is not None and value is not question.source:
            return Explanation(
                "another tape",
                "What the target is made of was recorded by another tape, not by this one",
                "Ask the tape that was open there, or open this one around both.",
                None,
                *source_line(*elsewhere),
            )
    return None


def _computed_outside(question: Question) -> Explanation | None:
    opened_file, opened_line = source_line(*question.tape._opened_at())
    closed_line = end_of_with(opened_file, opened_line)
    names = {n.name for n in question.source_names}
    if question.goal is None:
        values = [
            (n, question.target) for n in names_of(question.target, question.frames) if is_direct(n, question.target)
        ]
    else:
        origins = {o for o in question.origins() if not question.flow.leaves.get(o, (None, False))[1]}
        values = [
            (n, v)
            for n, v in named_tensors(question.frames, lambda v: not is_variable(v) and question.is_one_of(v, origins))
            if is_direct(n, v) or n.item
        ]
    for named, _ in values:
        for binding in reversed(computations_of(named)):
            inside = named.file == opened_file and opened_line <= binding.line <= closed_line
            if inside or not any(uses_name(named, binding, name, binding.line) for name in names):
                continue
            smooth = any(uses_name(named, binding, name, binding.line, smooth=True) for name in names)
            if not smooth and (twin := _used_twin(question)) is not None:
                return twin  # what has no gradient would have none in the block, either
            after = named.file == opened_file and binding.line > closed_line and question.goal is None
            return Explanation(
                "after the tape" if after else "before the tape",
                f"`{named.name}` was computed {'after the tape was closed' if after else 'before the tape opened'}",
                "Move it into the `with` block.",
                None,
                named.file,
                binding.line,
            )
    if question.goal is None and is_variable(question.target):
        return _target_is_variable(question, opened_file, range(opened_line, closed_line + 1))
    if question.goal is None:
        return Explanation(
            "target not recorded",
            "The target was not computed while this tape was open",
            "Compute it inside the `with` block.",
            None,
            *question.bound(names_of(question.target, question.frames)),
        )
    return None


def _target_is_variable(question: Question, file: str, block: range) -> Explanation:
    """The target is a variable as it stands; its line is where it got a second name in the block, if it did."""
    all_names = names_of(question.target, question.frames)
    again = [(n, b.line) for n in all_names for b in bindings_of(n) if any(o.name in b.uses for o in all_names)]
    names = [(n, line) for n, line in again if n.file == file and line in block]
    names += [(n, line) for n in all_names if (line := bound_at(n)) is not None]
    other = f"`{names[0][0].label}`" if names else question.target.name
    return Explanation(
        "no path",
        f"The target {other} is a variable itself, and does not depend on {question.name_text(False)}",
        "Check that the right value was used, or ask with unconnected_gradients='zero'.",
        None,
        *((names[0][0].file, names[0][1]) if names else made_at(question.target) or (None, None)),
    )


def _made_again(question: Question) -> Explanation | None:
    if isinstance(question.source, _core.Variable):
        return None
    likeness = question.tape._likeness(question.source)
    for origin in reversed(question.origins()):
        about, _ = question.flow.leaves.get(origin, (None, False))
        if about != likeness or origin == known(question.start):
            continue
        if likeness[1] == 1 and origin not in question.flow.maker:
            continue  # that two numbers are equal says little
        step = question.flow.maker.get(origin) or question.flow.first_use.get(origin)
        named = next(
            (n for n, _ in named_tensors(question.frames, partial(question.is_one_of, indices={origin}))), None
        )
        made_here = origin in question.flow.maker or question.flow.leaves[origin][1]
        place = step.place if made_here and step else question.bound([named] if named else [])
        if place[0] is None and step:
            place = step.place
        return Explanation(
            "constant made again",
            f"The target uses another tensor with the value of {question.name_text(False)}, not that tensor itself",
            "Make the constant once and use that same object.",
            None,
            *place,
        )
    return None


def _from_shape(question: Question) -> Explanation | None:
    """The target uses a number that is a dimension of the source, which the program read."""
    dims = [float(d) for d in question.source.shape]
    read = question.flow.read_as_shape(known(question.start), question.origins(), {*dims, math.prod(dims)})
    return (
        None
        if read is None
        else Explanation(
            "index or shape",
            f"The target uses the shape of {question.name_text(False)}, not its values",
            "A shape has no gradient: use the values themselves.",
            "shape",
            *read.place,
        )
    )


def _no_path(question: Question) -> Explanation:
    if isinstance(question.source, _core.Variable) and not is_tracked(question.start):
        if not question.tape._watches_accessed_variables or not question.source.trainable:
            return question.untracked_variable(
                question.flow.first_use.get(known(question.start)) if question.start else None
            )
        if (twin := _used_twin(question)) is not None:
            return twin
        return Explanation(
            "variable not used",
            f"{question.name_text()} was not read while the tape was recording",
            "Use the variable itself inside the `with` block (a value read earlier does not count).",
            None,
            *(
                forgotten_weight(question.source, {s.place for s in question.flow.steps if s.event == "record"})
                or question.bound(names_of(question.target, question.frames), question.target_place())
            ),
            depends_on=question.ancestors_by_name(),
        )
    if not is_tracked(question.start):
        step = question.flow.first_use.get(known(question.start)) if question.start is not None else None
        return question.not_watched(step, "this tape did not watch it, nor does the target use it")
    if (derivative := _constant_derivative(question)) is not None:
        return derivative
    nearest, place = _nearest(question)
    return Explanation(
        "no path",
        f"The target does not depend on {question.name_text(False)}: {nearest}",
        "Check that the right value was used, or ask with unconnected_gradients='zero'.",
        None,
        *place,
        depends_on=question.ancestors_by_name(),
    )


def _used_twin(question: Question) -> Explanation | None:
    """The target uses another model of the same form, such as a target network, in the place of the source's."""
    behind = set() if question.goal is None else question.flow.ancestors(known(question.goal))
    for named, variables in twins_of(question.source, question.frames):
        indices = [known(i) for v in variables if (i := question.tape._index_of(v)) is not None]
        edges = [e for i in indices if i in behind for e in question.flow.edges.get(i, ()) if e.output in behind]
        # A part of the target may be computed with it on purpose, behind a stop_gradient.
        used = [e.step for e in edges if known(question.goal) in question.flow.reached(e.output)]
        used = used or [e.step for e in edges]
        if used:
            return Explanation(
                "variable not used",
                f"{question.name_text()} was not read while the tape was recording: "
                f"the target is computed with `{named.name}`, which has variables of the same shapes",
                "Compute it with the model whose variables are asked for, or ask for those of the other one.",
                None,
                *min(used, key=lambda step: step.order).place,
                depends_on=question.ancestors_by_name(),
            )
    return None


def _constant_derivative(question: Question) -> Explanation | None:
    """The target is made of derivatives of what the source does reach: that must be linear in the source."""
    reached = question.flow.reached(known(question.start))
    place = _differentiated_at(question) if len(reached) > 1 else None
    if place is None and len(reached) > 1:
        step = question.flow.after(reached, known(question.goal), lambda place: differentiates(*place))
        place = None if step is None else step.place
    if place is None:
        return None
    return Explanation(
        "constant derivative",
        f"The target is computed from a derivative that does not depend on {question.name_text(False)}: "
        "what was differentiated here is linear in it",
        "A derivative of something linear (or of relu) is constant: ask with unconnected_gradients='zero'.",
        None,
        *place,
        depends_on=question.ancestors_by_name(),
    )


def _differentiated_at(question: Question) -> tuple[str, int] | None:
    """The line that bound the target, if it asks for a derivative."""
    for named in names_of(question.target, question.frames):
        line = bound_at(named, question.target_place())
        binding = next((b for b in bindings_of(named) if b.line == line), None)
        if binding is not None and any(use.rpartition(".")[2] in DERIVATIVES for use in binding.uses):
            return named.file, binding.line
    return None


def _nearest(question: Question) -> tuple[str, tuple[str | None, int | None]]:
    """The last thing that does depend on the source, and its line."""
    reached = question.flow.reached(known(question.start))
    steps = [s for s in question.flow.steps if s.event == "record" and s.short_name != "identity"]
    made = (s for s in reversed(steps) if not reached.isdisjoint(s.outputs))
    last = next((s for s in made if not set(s.outputs) <= {question.start}), None)
    if last is None:
        bound = question.bound(names_of(question.target, question.frames), question.target_place())
        return "nothing that was recorded does", bound
    file, line = last.place
    said = f"the last value that does is the result of {last.short_name} at {place_text(file, line)}"
    again = overwritten_at(file, line)
    return (said, (file, line)) if again is None else (f"{said}, whose name gets another value here", (file, again))


def _copied(question: Question) -> Explanation | None:
    """The target uses a copy of the variable, or the variable that the source is a copy of."""
    if not is_variable(question.source):
        return None
    for other in question.ancestor_variables():
        for copy, original in ((other, question.source), (question.source, other)):
            made_from = getattr(copy, "_copy_of", None)
            if made_from is None or made_from() is not original:
                continue
            used = "a copy of" if copy is other else "the variable that it is a copy of, not"
            return Explanation(
                "copied variable",
                f"The target uses {used} {question.name_text(False)}: a copy is a variable of its own",
                "Use one variable in both places, or ask for the gradient by the one that is used.",
                None,
                *(made_at(copy) or (None, None)),
            )
    return None
