"""Why a gradient is None: reads what a tape recorded and names the cause, the line, and the remedy."""

from __future__ import annotations

from typing import Any, NamedTuple

from tapeflow import _core
from tapeflow.autodiff.source_line import source_line


class Explanation(NamedTuple):
    """The answer of `GradientTape.explain`: prints as a sentence, and can be taken apart."""

    cause: str
    text: str
    advice: str
    operation: str | None = None
    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = f" ({self.file}:{self.line})" if self.file else ""
        return f"{self.text}{place}. {self.advice}"


class _Record(NamedTuple):
    operation: str
    code: Any
    instruction: int
    kept: int
    inputs: list[int | None]
    outputs: list[int]
    stops: bool


# What to do about operations through which no gradient passes.
_REMEDY = {
    "stop_gradient": "tf.stop_gradient is there to block the gradient: leave it out if that is not meant.",
    "floordiv": "Divide with / instead of //, or use tf.grad_pass_through.",
    "round": "Use tf.grad_pass_through(tf.round) for a straight-through gradient.",
    "floor": "Use tf.grad_pass_through(tf.floor) for a straight-through gradient.",
    "argmax": "A position has no slope: use tf.nn.softmax for a smooth choice.",
    "argmin": "A position has no slope: use tf.nn.softmax for a smooth choice.",
}
_COMPARISONS = {"greater", "greater_equal", "less", "less_equal", "equal", "not_equal"}


def explain(tape: Any, target: Any, source: Any) -> Explanation:
    """See `GradientTape.explain`."""
    records = [_Record(*row) for row in tape._records()]
    start, goal = tape._index_of(source), tape._index_of(target)
    if not records and tape._used_up:
        return Explanation(
            "tape used up",
            "The tape was used up by an earlier gradient call",
            "Ask before calling gradient, or make the tape with persistent=True.",
        )
    if not _is_differentiable(source):
        return Explanation(
            "source dtype",
            f"The source has dtype {source.dtype.name}; only floating point and complex values have gradients",
            "Cast it to a float before the tape uses it, and watch the result.",
        )
    if start is None:
        return _explain_unfollowed_source(tape, source)
    if not _is_differentiable(target):
        return Explanation(
            "target dtype",
            f"The target has dtype {target.dtype.name}; a gradient needs a floating point or complex target",
            "Leave out the cast or comparison that made it.",
        )
    reached, stops = _walk(records, start)
    if goal is not None and goal in reached:
        return Explanation("connected", "The gradient is not None: the target depends on the source", "Call gradient.")
    if stops:
        return _explain_stop(stops[-1])
    if goal is None:
        return Explanation(
            "target not recorded",
            "The target was not computed on this tape from anything it watches, but before it was opened, after it was "
            "closed, inside stop_recording, on another tape, or through NumPy or Python numbers",
            "Compute it inside the `with` block, with operations of tf.",
        )
    return Explanation(
        "no path",
        "The target does not depend on the source: " + _nearest(records, reached, start),
        "Check that the right variable was used, or ask with unconnected_gradients='zero'.",
    )


def _is_differentiable(value: Any) -> bool:
    return value.dtype.is_floating or value.dtype.is_complex


def _explain_unfollowed_source(tape: Any, source: Any) -> Explanation:
    if isinstance(source, _core.Variable):
        if not tape._watches_accessed_variables:
            return Explanation(
                "variables not watched",
                f"The tape was made with watch_accessed_variables=False and {source.name} was not watched",
                "Call tape.watch(variable) before it is used.",
            )
        if not source.trainable:
            return Explanation(
                "not trainable",
                f"The variable {source.name} has trainable=False, so tapes do not watch it by themselves",
                "Make it trainable, or call tape.watch(variable) before it is used.",
            )
        return Explanation(
            "variable not used",
            f"The variable {source.name} was not read while the tape was recording",
            "Use the variable itself inside the `with` block (a value read earlier does not count).",
        )
    return Explanation(
        "not watched",
        "The source is a tensor that the tape does not watch",
        "Call tape.watch(x) before it is used. If x was a variable, `x = x + 1` made it a tensor: use x.assign_add(1).",
    )


def _walk(records: list[_Record], start: int) -> tuple[set[int], list[_Record]]:
    """All values a gradient can come back from, and the records behind which it cannot, in order."""
    reached, stops = {start}, []
    for record in records:
        if any(i in reached for i in record.inputs):
            if record.stops:
                stops.append(record)
            else:
                reached.update(record.outputs)
    return reached, stops


def _explain_stop(record: _Record) -> Explanation:
    operation = record.operation.rpartition(".")[2]
    file, line = source_line(record.code, record.instruction)
    cause = "stop_gradient" if operation == "stop_gradient" else "operation without gradient"
    advice = _REMEDY.get(operation, "Use an operation with a slope, or give it one with tf.custom_gradient.")
    if operation in _COMPARISONS:
        advice = "A comparison is a step: use tf.sigmoid for a smooth one, or tf.where to choose between smooth values."
    return Explanation(
        cause,
        f"The path from the source ends at {operation}, through which no gradient flows",
        advice,
        operation,
        file,
        line,
    )


def _nearest(records: list[_Record], reached: set[int], start: int) -> str:
    """The last thing that does depend on the source."""
    last = next((r for r in reversed(records) if any(i in reached for i in r.outputs)), None)
    if last is None:
        return "nothing that was recorded does"
    file, line = source_line(last.code, last.instruction)
    return f"the last value that does is the result of {last.operation.rpartition('.')[2]} at {file}:{line}"
