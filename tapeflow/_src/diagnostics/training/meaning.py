"""Traps of shape and meaning in the operations between variables and loss: broadcasts, double softmax, double means."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from tapeflow._src.diagnostics.finding import Finding, source_text
from tapeflow._src.diagnostics.flow import Flow, Step, known
from tapeflow._src.diagnostics.program import has_literal
from tapeflow._src.diagnostics.training.activations import (
    DIVISIONS,
    NO_LAYERS,
    LayerLines,
    activation_of,
    constant,
    hands_on,
    line_of,
)

_DIFFERENCES = {"subtract", "sub", "squared_difference"}
_SOFTMAXES = {"softmax"}
_LOGIT_LOSSES = {
    "softmax_cross_entropy_with_logits", "sparse_softmax_cross_entropy_with_logits", "log_softmax",
    "sigmoid_cross_entropy_with_logits", "sigmoid_cross_entropy",
}  # fmt: skip
_LOG_LOSSES = ("log", *_LOGIT_LOSSES)


def traps(flow: Flow, goal: Any, lines: LayerLines = NO_LAYERS) -> Iterator[Finding]:
    """What looks wrong between the values that a tape saw and the target; `lines` are those of Keras layers."""
    if goal is None:
        return
    above = flow.ancestors(known(goal))
    steps = [s for s in flow.steps if s.event in ("record", "operation") and not above.isdisjoint(s.outputs)]
    for step in steps:
        yield from _broadcast(flow, step)
        yield from _double_softmax(flow, step, lines)
        yield from _integer_division(flow, step)
    yield from averaged_twice(flow, goal)
    examples = _examples(flow, goal)
    for step in flow.steps:  # also beside the way to the target: Keras's losses go around a last softmax
        yield from _softmax_axis(flow, step, lines, examples)


def _rows_against_columns(a: Any, b: Any) -> bool:
    """(n, 1) against (n,), or (n, 1, 1) against (n, 1): the result has n times n rows. A size of -1 is unknown."""
    if a is None or b is None or len(a) != len(b) + 1 or not b:
        return False
    return bool(a[0] == b[0] and b[0] not in (0, 1) and all(d == 1 for d in (*a[1:], *b[1:])))


def _broadcast(flow: Flow, step: Step) -> Iterator[Finding]:
    if len(step.input_shapes) != 2 or step.event != "record":
        return
    a, b = step.input_shapes
    if not (_rows_against_columns(a, b) or _rows_against_columns(b, a)):
        return
    name = step.short_name
    makers = [flow.maker.get(value) for value in step.inputs]
    of_log = any(m is not None and m.short_name in ("log", "log1p", "log_sigmoid") for m in makers)
    if name not in _DIFFERENCES and not (name == "multiply" and (of_log or _is_summed(flow, step))):
        return
    product_of_variable = name == "multiply" and any(_is_variable(flow, v) for v in step.inputs)
    shorter = step.inputs[0 if len(a) < len(b) else 1]
    if product_of_variable or _is_variable(flow, shorter) or _have_one_root(flow, step):
        return
    longer = a if len(a) > len(b) else b
    made = _shape((longer[0], *longer[:-1]))
    yield Finding(
        "broadcast-loss",
        "severe",
        f"{name} of shapes {_shape(a)} and {_shape(b)} gives {made}: every prediction is compared with every label",
        *step.place,
        evidence={"shapes": [list(a), list(b)], "operation": name},
        remedy="Give both the same shape: tf.squeeze(predictions, -1), or labels[:, tf.newaxis].",
        confidence=0.95,
    )


def _is_variable(flow: Flow, value: int) -> bool:
    """Whether a value is a variable itself: centres or frequencies, not labels."""
    return value not in flow.maker and value not in flow.leaves


def _have_one_root(flow: Flow, step: Step) -> bool:
    """Whether both operands are one value, once with another dimension: all pairs, `x[:, None] - x`."""
    roots = []
    for value in step.inputs:
        made = flow.maker.get(value)
        while made is not None and made.inputs and hands_on(made):
            value = made.inputs[0]
            made = flow.maker.get(value)
        roots.append(value)
    return roots[0] == roots[1]


def _is_summed(flow: Flow, step: Step) -> bool:
    """Whether a matrix is reduced to a number by the next operation that is not elementwise."""
    outputs, shape = step.outputs, step.output_shapes[0]
    for _ in range(8):
        edges = [e for value in outputs for e in flow.edges.get(value, ()) if e.step.event == "record"]
        if len(edges) != 1:
            return False
        following = edges[0].step
        if following.short_name in ("reduce_mean", "reduce_sum", "mean", "sum"):
            return following.output_shapes == [()]
        matrices = {v for v, s in zip(following.inputs, following.input_shapes) if s == shape}
        if following.output_shapes != [shape] or len(matrices) > 1:  # another matrix: such a shape was meant
            return False
        outputs = following.outputs
    return False


def _shape(dims: Any) -> str:
    sizes = ("n" if d == -1 else str(d) for d in dims)
    return f"({', '.join(sizes)}{',' if len(dims) == 1 else ''})"


def _source_of(flow: Flow, value: int) -> Step | None:
    """The step that made a value, behind what only hands it on."""
    step = flow.maker.get(value)
    for _ in range(12):
        if step is None or not step.inputs:
            return step
        scaled = step.short_name in ("multiply", *DIVISIONS)  # by a temperature, which may be trained
        if hands_on(step) or (scaled and (constant(flow, step.inputs[-1]) is not None or _by_a_number(step))):
            value = step.inputs[0]
        elif step.short_name in ("maximum", "minimum", "add") and len(step.inputs) == 2:  # of a limit or an epsilon
            numbers = [constant(flow, v) for v in step.inputs]
            small = step.short_name != "add" or any(n is not None and abs(n) < 1e-2 for n in numbers)
            if numbers.count(None) != 1 or not small:
                return step
            value = step.inputs[numbers.index(None)]
        else:
            return step
        step = flow.maker.get(value)
    return step


def _by_a_number(step: Step) -> bool:
    return len(step.input_shapes) == 2 and step.input_shapes[1] == () and bool(step.input_shapes[0])


def _log_sigmoid_of(flow: Flow, step: Step) -> int | None:
    """For `log1p(exp(-abs(x)))`, as cross-entropies of logits are written out, that x."""
    if step.short_name != "log1p":
        return None
    made = flow.maker.get(step.inputs[0])
    for _ in range(3):
        if made is None or made.short_name not in ("exp", "negative", "abs", "where") or not made.inputs:
            return None
        if made.short_name in ("abs", "where"):
            return made.inputs[-1]
        made = flow.maker.get(made.inputs[0])
    return None


def _double_softmax(flow: Flow, step: Step, lines: LayerLines) -> Iterator[Finding]:
    name = step.short_name if step.short_name in _LOGIT_LOSSES else activation_of(flow, step)
    logits = step.inputs[:1]  # labels may well be the results of a softmax
    if (written_out := _log_sigmoid_of(flow, step)) is not None:
        name, logits = "sigmoid_cross_entropy_with_logits", [written_out]
    if name is None or name not in _LOGIT_LOSSES | _SOFTMAXES:
        return
    for value in logits:
        made = _source_of(flow, value)
        if made is None or made is step:
            continue
        before = activation_of(flow, made)
        if before in _SOFTMAXES or (before == "sigmoid" and name in _LOGIT_LOSSES):
            file, line = line_of(flow, made, before, lines)
            place = line_of(flow, step, name, lines) if name in _SOFTMAXES else step.place
            own = "it" if before in name else "a softmax" if "softmax" in name else "a sigmoid"
            called = re.search(r"\w*(cross_?entropy|log_?softmax|log_?sigmoid)\w*", source_text(*place), re.IGNORECASE)
            name = called[0] if called is not None and name in _LOGIT_LOSSES else name
            yield Finding(
                "double-softmax",
                "severe",
                f"{before} at line {line} is applied before {name}, which applies {own} itself",
                *place,
                evidence={"first": f"{file}:{line}", "second": name},
                remedy="Give the loss the raw logits, or use the loss for probabilities (from_logits=False).",
                confidence=0.95 if name != "softmax" else 0.85,
            )
            return


_NOT_THE_BATCH = re.compile(r"accum|micro|steps|replica|world|worker|shard", re.IGNORECASE)


def averaged_twice(flow: Flow, goal: Any) -> Iterator[Finding]:
    """Follows a target back through sums, means and constant factors, and multiplies what it is divided by.

    The divisor of the program's own numbers is kept apart from that of the means: a weight of a quarter is not a size.
    """
    stack: list[tuple[int, float, float, Step | None]] = [(known(goal), 1.0, 1.0, None)]
    for _ in range(200):
        if not stack:
            return
        value, means, numbers, division = stack.pop()
        step = flow.maker.get(value)
        if step is None or step.event != "record" or not step.inputs:
            continue
        name = step.short_name
        factor = constant(flow, step.inputs[1]) if len(step.inputs) == 2 else None
        if name in ("add", "addv2", "add_v2", "add_n"):
            stack += [(v, means, numbers, division) for v in step.inputs]
        elif hands_on(step) or name in ("negative", "reduce_sum", "sum"):
            stack.append((step.inputs[0], means, numbers, division))
        elif name in ("reduce_mean", "mean") and step.input_shapes:
            before, after = _elements(step.input_shapes[0]), _elements(step.output_shapes[0])
            stack.append((step.inputs[0], means * before / max(after, 1), numbers, division))
        elif name in DIVISIONS and factor:
            stack.append((step.inputs[0], means, numbers * factor, _written(division, step)))
        elif name in ("multiply", "mul") and (factor or constant(flow, step.inputs[0])):
            number = factor or constant(flow, step.inputs[0]) or 1.0
            if not has_literal(*step.place, number):  # else it is the weight of a term
                stack.append((step.inputs[0 if factor else 1], means, numbers / number, _written(division, step)))
        elif division is not None and step.output_shapes and step.output_shapes[0]:
            yield from _too_small(step.output_shapes[0], means, numbers, division)


def _written(division: Step | None, inner: Step) -> Step:
    """Of two divisions the one that the program writes: the outer one may be a library's, behind `model.fit`."""
    if division is not None and re.search(r"[/*]|div|mul|mean", source_text(*division.place)):
        return division
    return inner


def _too_small(shape: Any, means: float, numbers: float, division: Step) -> Iterator[Finding]:
    """A sum over a batch of n examples that is divided by n twice, and at least once by a number of the program."""
    n, elements, divisor = shape[0], _elements(shape), means * numbers
    if n is None or n < 3 or not any(math.isclose(divisor, n * k, rel_tol=1e-4) for k in (n, elements)):
        return
    if math.isclose(divisor, elements, rel_tol=1e-4):
        return  # one mean over all, of as many columns as rows
    if not any(math.isclose(numbers, k, rel_tol=1e-4) for k in (n, n * n, elements, n * elements)):
        return
    if _NOT_THE_BATCH.search(source_text(*division.place)):
        return
    yield Finding(
        "averaged-twice",
        "warning",
        f"the loss is a mean over {n} examples and is divided by {n} again",
        *division.place,
        evidence={"divisor": divisor, "examples": n},
        remedy="Use tf.reduce_sum before the division, or leave the division out.",
        confidence=0.85,
    )


def _elements(shape: Any) -> int:
    return math.prod(d or 1 for d in shape) if shape is not None else 1


def _softmax_axis(flow: Flow, step: Step, lines: LayerLines, examples: int | None) -> Iterator[Finding]:
    """A softmax over the batch, or over one class. Over another axis than the last it runs between two transposes.

    `examples` is the size of the batch.
    """
    shape = step.input_shapes[0] if step.input_shapes else None
    if shape is not None and len(shape) > 2 and step.short_name == "softmax":
        yield from _over_the_batch_of_blocks(flow, step, lines, examples)
    if shape is None or len(shape) != 2:
        return
    if step.short_name in DIVISIONS and _is_over_columns(flow, step):
        yield _over_the_batch(shape, step.place)
    if step.short_name != "softmax":
        return
    before = flow.maker.get(step.inputs[0]) if step.inputs else None
    turned = before is not None and before.short_name == "transpose" and before.place == step.place
    classes, rows = (shape[0], shape[1]) if turned else (shape[1], shape[0])
    if classes == 1 and not turned and (rows or 0) > 1:
        what, remedy = "a softmax over one class is 1 for every input, and its gradient is zero", "Use a sigmoid."
    elif (
        turned
        and (classes or 0) > 1
        and rows not in (0, 1)  # or it is not known
        and (
            _reaches(flow, step, _LOG_LOSSES)
            or (before is not None and _goes_around(flow, before))
            or (rows and rows == examples and classes != rows and _is_kept(flow, step, rows, classes))
        )
    ):
        yield _over_the_batch(shape, line_of(flow, _transposed_back(flow, step), "softmax", lines))
        return
    else:
        return
    place = line_of(flow, step, "softmax", lines)
    yield Finding(
        "softmax-axis", "severe", what, *place, evidence={"shape": list(shape)}, remedy=remedy, confidence=0.85
    )


def _over_the_batch_of_blocks(
    flow: Flow, step: Step, lines: LayerLines, examples: int | None
) -> Iterator[Finding]:  # fmt: skip
    """Weights over positions, (examples, positions, ...), that add up to 1 over the examples instead."""
    before = flow.maker.get(step.inputs[0]) if step.inputs else None
    given = before.input_shapes[0] if before is not None and before.short_name == "transpose" else None
    if before is None or given is None or before.place != step.place or examples is None or given[0] != examples:
        return
    turned = step.input_shapes[0]
    is_first = turned[-1] == examples and examples not in given[1:] and examples > 1
    back = _transposed_back(flow, step)
    if is_first and back is not step and given[1] and _is_kept(flow, back, examples, given[1]):
        yield _over_the_batch(given, line_of(flow, back, "softmax", lines))


def _over_the_batch(shape: Any, place: tuple[str, int]) -> Finding:
    return Finding(
        "softmax-axis",
        "severe",
        "this softmax goes over the batch, not over the classes: its columns add up to 1, not its rows",
        *place,
        evidence={"shape": list(shape)},
        remedy="tf.nn.softmax(logits, axis=-1)",
        confidence=0.85,
    )


def _examples(flow: Flow, goal: Any) -> int | None:
    """The first dimension of what the last sum or mean before the target runs over: the size of the batch."""
    value = known(goal)
    for _ in range(8):
        step = flow.maker.get(value)
        if step is None or not step.inputs or not step.input_shapes:
            return None
        shape = step.input_shapes[0]
        if shape:
            return int(shape[0]) if shape[0] else None
        value = step.inputs[0]
    return None


def _is_kept(flow: Flow, step: Step, examples: int, columns: int) -> bool:
    """Whether weights over the examples are used for each example: they are summed over their columns alone."""
    front = list(step.outputs)
    for _ in range(8):
        following: list[int] = []
        for value in front:
            for edge in flow.edges.get(value, ()):
                shapes = edge.step.output_shapes
                if edge.step.event != "record" or not shapes or shapes[0] is None:
                    continue
                if columns not in shapes[0]:
                    return bool(shapes[0]) and shapes[0][0] == examples
                following.append(edge.output)
        front = following[:20]
    return False


def _is_over_columns(flow: Flow, step: Step) -> bool:
    """Whether `exp(x) / sum(exp(x))` has sums over the first dimension, and a logarithm behind it."""
    if len(step.input_shapes) != 2 or activation_of(flow, step) != "softmax":
        return False
    (rows, classes), sums = step.input_shapes
    by_column = sums is not None and tuple(sums) in ((classes,), (1, classes)) and rows != classes
    return by_column and min(rows, classes) > 1 and _reaches(flow, step, _LOG_LOSSES)


def _goes_around(flow: Flow, turned: Step) -> bool:
    """Whether a loss takes the logits from before a softmax, as Keras's do."""
    return any(e.step.short_name in _LOGIT_LOSSES for e in flow.edges.get(turned.inputs[0], ()))


def _transposed_back(flow: Flow, step: Step) -> Step:
    """The transpose behind a softmax over another axis than the last."""
    following = [e.step for value in step.outputs for e in flow.edges.get(value, ()) if e.step.event == "record"]
    return next((s for s in following if s.short_name == "transpose"), step)


def _reaches(flow: Flow, step: Step, names: tuple[str, ...]) -> bool:
    """Whether one of some operations follows within a few."""
    front = list(step.outputs)
    for _ in range(6):
        following = [edge for value in front for edge in flow.edges.get(value, ()) if edge.step.event == "record"]
        if any(edge.step.short_name in names for edge in following):
            return True
        front = [edge.output for edge in following][:50]
    return False


def _integer_division(flow: Flow, step: Step) -> Iterator[Finding]:
    """An integer quotient that becomes a factor of the loss."""
    if step.short_name not in ("floordiv", "floor_div") or not step.outputs:
        return
    dtypes = [flow.dtype.get(v, "") for v in step.inputs]
    whole = [d.startswith(("int", "uint")) for d in dtypes if d]  # results beside the tape have no dtype here
    if not whole or not all(whole):
        return
    if not all(_is_number(flow, v) for v in step.inputs):
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


def _is_number(flow: Flow, value: int, depth: int = 6) -> bool:
    """Whether a value is one number, or was computed from single numbers."""
    about = flow.leaves.get(value, (None, False))[0]
    if about is not None:
        return bool(about[1] == 1)
    made = flow.maker.get(value)
    if made is None or not depth:
        return False
    if made.output_shapes:
        return made.output_shapes == [()]
    reduced = made.short_name in ("reduce_sum", "size", "reduce_max", "reduce_prod", "count_nonzero")
    return reduced or (bool(made.inputs) and all(_is_number(flow, v, depth - 1) for v in made.inputs))
