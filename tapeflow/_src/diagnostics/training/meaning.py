"""Traps of shape and meaning in the operations between variables and loss: broadcasts, double softmax, double means."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.flow import Flow, Step, known, number_of

_DIFFERENCES = {"subtract", "sub", "squared_difference"}
_HANDS_ON = {"identity", "reshape", "cast", "squeeze", "expand_dims", "stop_gradient", "transpose", "clip_by_value"}
_SOFTMAXES = {"softmax"}
_LOGIT_LOSSES = {
    "softmax_cross_entropy_with_logits", "sparse_softmax_cross_entropy_with_logits", "log_softmax",
    "sigmoid_cross_entropy_with_logits", "sigmoid_cross_entropy",
}  # fmt: skip


def traps(flow: Flow, goal: Any) -> Iterator[Finding]:
    """What looks wrong between the values that a tape saw and the target."""
    if goal is None:
        return
    above = flow.ancestors(known(goal))
    steps = [s for s in flow.steps if s.event in ("record", "operation") and not above.isdisjoint(s.outputs)]
    for step in steps:
        yield from _broadcast(flow, step)
        yield from _double_softmax(flow, step)
        yield from _averaged_twice(flow, step)
        yield from _integer_division(flow, step)


def _rows_against_columns(a: Any, b: Any) -> bool:
    """(n, 1) against (n,): the result is (n, n)."""
    return a is not None and b is not None and len(a) == 2 and len(b) == 1 and a[1] == 1 and a[0] == b[0] and b[0] > 1


def _broadcast(flow: Flow, step: Step) -> Iterator[Finding]:
    if len(step.input_shapes) != 2 or step.event != "record":
        return
    a, b = step.input_shapes
    if not (_rows_against_columns(a, b) or _rows_against_columns(b, a)):
        return
    name = step.short_name
    makers = [flow.maker.get(value) for value in step.inputs]
    of_log = any(m is not None and m.short_name in ("log", "log1p", "log_sigmoid") for m in makers)
    if name not in _DIFFERENCES and not (name == "multiply" and of_log):
        return
    n = max(a[0], b[0])
    yield Finding(
        "broadcast-loss",
        "severe",
        f"{name} of shapes {_shape(a)} and {_shape(b)} gives ({n}, {n}): every prediction is compared with every label",
        *step.place,
        evidence={"shapes": [list(a), list(b)], "operation": name},
        remedy="Give both the same shape: tf.squeeze(predictions, -1), or labels[:, tf.newaxis].",
        confidence=0.95,
    )


def _shape(dims: Any) -> str:
    return f"({', '.join(map(str, dims))}{',' if len(dims) == 1 else ''})"


def _source_of(flow: Flow, value: int) -> Step | None:
    """The step that made a value, behind what only hands it on."""
    step = flow.maker.get(value)
    for _ in range(12):
        if step is None or step.short_name not in _HANDS_ON or not step.inputs:
            return step
        step = flow.maker.get(step.inputs[0])
    return step


def _double_softmax(flow: Flow, step: Step) -> Iterator[Finding]:
    name = step.short_name
    if name not in _LOGIT_LOSSES | _SOFTMAXES:
        return
    for value in step.inputs:
        made = _source_of(flow, value)
        if made is None or made is step:
            continue
        before = made.short_name
        if before in _SOFTMAXES or (before == "sigmoid" and name.startswith("sigmoid")):
            file, line = made.place
            yield Finding(
                "double-softmax",
                "severe",
                f"{before} at line {line} is applied before {name}, which applies it itself",
                *step.place,
                evidence={"first": f"{file}:{line}", "second": name},
                remedy="Give the loss the raw logits, or use the loss for probabilities (from_logits=False).",
                confidence=0.95 if name != "softmax" else 0.85,
            )
            return


def _averaged_twice(flow: Flow, step: Step) -> Iterator[Finding]:
    """A mean over the batch that is divided by the size of the batch."""
    if step.short_name not in ("divide", "truediv", "real_div", "realdiv", "div") or len(step.inputs) != 2:
        return
    mean = _source_of(flow, step.inputs[0])
    if mean is None or mean.short_name not in ("reduce_mean", "mean") or not mean.input_shapes:
        return
    about, _ = flow.leaves.get(_leaf_of(flow, step.inputs[1]), (None, False))
    divisor = number_of(about) if about and about[1] == 1 else None
    shape = mean.input_shapes[0]
    if divisor is None or not shape or divisor != shape[0] or shape[0] < 3 or step.output_shapes != [()]:
        return
    yield Finding(
        "averaged-twice",
        "warning",
        f"the loss is a mean over {shape[0]} examples and is divided by {shape[0]} again",
        *step.place,
        evidence={"mean": f"{mean.place[0]}:{mean.place[1]}", "divisor": divisor},
        remedy="Use tf.reduce_sum before the division, or leave the division out.",
        confidence=0.85,
    )


def _leaf_of(flow: Flow, value: int) -> int:
    """The value itself, or what it was cast from."""
    made = flow.maker.get(value)
    while made is not None and made.short_name in ("cast", "identity") and made.inputs:
        value = made.inputs[0]
        made = flow.maker.get(value)
    return value


def _integer_division(flow: Flow, step: Step) -> Iterator[Finding]:
    """An integer quotient that becomes a factor of the loss."""
    if step.short_name not in ("floordiv", "floor_div") or not step.outputs:
        return
    dtypes = [flow.dtype.get(v, "") for v in step.inputs]
    sizes = [about[1] for v in step.inputs if (about := flow.leaves.get(v, (None, False))[0]) is not None]
    if not dtypes or not all(d.startswith(("int", "uint")) for d in dtypes) or sizes != [1] * len(dtypes):
        return
    casts = [e.step for e in flow.edges.get(step.outputs[0], ()) if e.step.short_name == "cast"]
    if casts:
        yield Finding(
            "integer-division",
            "warning",
            "// of integers drops the fraction, and the result is used as a number in the loss",
            *step.place,
            evidence={"dtypes": dtypes},
            remedy="Divide with /, or cast to a float before the division.",
            confidence=0.75,
        )
