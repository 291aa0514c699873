"""Losses with the wrong sign: errors that are made larger, likelihoods that are made smaller."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tapeflow._src import primitives
from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.flow import Flow, Step, known, number_of
from tapeflow._src.diagnostics.program import used_as_loss
from tapeflow._src.diagnostics.training.activations import DIVISIONS, constant, moves_elements
from tapeflow._src.diagnostics.training.overlaps import is_overlap

# What is small when predictions are good, and what is large then.
_ERRORS = {
    "squared_difference", "softmax_cross_entropy_with_logits", "sparse_softmax_cross_entropy_with_logits",
    "sigmoid_cross_entropy_with_logits", "sigmoid_cross_entropy", "l2_loss",
}  # fmt: skip
_LIKELIHOODS = {"log", "log_softmax", "log_sigmoid"}
_REDUCES = {"reduce_mean", "reduce_sum", "mean", "sum", "where", "gather_nd", "boolean_mask"}
_PROBABILITIES = {"softmax", "sigmoid"}
_BOUNDS = {"maximum", "minimum", "clip_by_value", "multiply", "mul"}
_HALF_LOG_2_PI = 0.9189385332046727
_SUMS = {"add", "add_n", "add_v2", "addv2"}


def wrong_sign(flow: Flow, goal: Any, asked_at: tuple[str, int]) -> Iterator[Finding]:
    """Follows a target back through sums and factors, with the sign that each term has in it.

    `asked_at` is the line that asks for the gradient, which may ascend.
    """
    if goal is None:
        return
    if _is_normal_density(flow, known(goal)) and not _has_minus(flow, flow.maker[known(goal)], asked_at):
        yield Finding(
            "wrong-sign",
            "severe",
            "the log-likelihood of a normal distribution, which is to be large, stands in the loss without a minus: "
            "descending makes the data less likely",
            *flow.maker[known(goal)].place,
            evidence={"operation": "log_prob", "sign": 1, "asked_at": list(asked_at)},
            remedy="loss = -tf.reduce_mean(...)",
            confidence=0.85,
        )
        return
    terms = list(_terms(flow, known(goal)))
    for step, sign, root, weighted, chosen in terms:
        name = step.short_name
        if name.startswith("sigmoid_cross") and any(constant(flow, v) is not None for v in step.inputs):
            continue  # all labels are the same: the game of a generator and a discriminator
        overlap = not weighted and is_overlap(flow, step)
        gaussian = not weighted and _is_squared_error(flow, step, True) and not _is_squared_error(flow, step)
        if gaussian and sign < 0:
            wrong, what = True, "a log-likelihood, which is to be large, stands in the loss without a minus"
        elif name in _ERRORS or _is_squared_error(flow, step):
            wrong, what = sign < 0, "an error, which is to be small, stands in the loss with a minus"
        elif overlap:
            wrong, what = sign > 0, "an overlap of predictions and labels, which is to be large, stands in the loss"
        elif name in _LIKELIHOODS and _is_likelihood(flow, step, root is not None or chosen):
            wrong, what = sign > 0, "a log-likelihood, which is to be large, stands in the loss without a minus"
        else:
            continue
        squared = _is_squared_error(flow, step, True)
        others = [s for s, other, *_ in terms if s.short_name == name and other != sign]
        right = [s for s in others if not squared or _is_squared_error(flow, s, True)]
        if wrong and not right:
            last = flow.maker[known(goal)]
            place = root.place if sign < 0 and root is not None and not gaussian else last.place
            if sign > 0 and _has_minus(flow, step, place):
                continue
            if overlap:
                place = place[0], used_as_loss(*place)
            yield Finding(
                "wrong-sign",
                "severe",
                f"{what}: descending makes the predictions worse",
                *place,
                evidence={"operation": name, "sign": sign, "asked_at": list(asked_at)},
                remedy="Take the minus away." if sign < 0 and not gaussian else "loss = -tf.reduce_mean(...)",
                confidence=0.85,
            )
            return


def _is_normal_density(flow: Flow, goal: int) -> bool:
    """Whether a target is the logarithm of a normal density, and of nothing that stands against it: all squares have a
    minus, and so has a multiple of log(2 pi) / 2.
    """
    squares: list[float] = []
    constants: list[float] = []
    stack = [(goal, 1.0)]
    for _ in range(200):
        if not stack:
            break
        value, factor = stack.pop()
        step = flow.maker.get(value)
        number = constant(flow, value)
        if number is not None or step is None or not step.inputs:
            constants += [] if number is None else [factor * number]
            continue
        name, inputs = step.short_name, step.inputs
        if name in _SUMS:
            stack += [(v, factor) for v in inputs]
        elif name in ("subtract", "sub"):
            stack += [(inputs[0], factor), (inputs[1], -factor)]
        elif name in ("negative", "neg"):
            stack.append((inputs[0], -factor))
        elif name == "square" or (name in ("multiply", "mul", "pow") and len(set(inputs)) == 1 + (name == "pow")):
            even = name != "pow" or constant(flow, inputs[1]) == 2
            squares += [factor] if even else []
        elif name in ("multiply", "mul", *DIVISIONS) and len(inputs) == 2:
            numbers = [constant(flow, v) for v in inputs]
            if numbers[1]:
                stack.append((inputs[0], factor / numbers[1] if name in DIVISIONS else factor * numbers[1]))
            elif numbers[0] and name not in DIVISIONS:
                stack.append((inputs[1], factor * numbers[0]))
        elif moves_elements(step) or name in ("reduce_mean", "reduce_sum", "mean", "sum"):
            stack.append((inputs[0], factor))
    halves = [c / _HALF_LOG_2_PI for c in constants]
    normal = [h for h in halves if abs(h) > 0.9 and abs(h - round(h)) < 1e-4 * abs(h)]
    return bool(squares and normal) and max(squares) < 0 and max(normal) < 0


def is_error(flow: Flow, goal: Any) -> bool:
    """Whether a target is a sum of errors, which is to be small."""
    terms = [] if goal is None else list(_terms(flow, known(goal)))
    errors = [sign > 0 for step, sign, *_ in terms if step.short_name in _ERRORS or _is_squared_error(flow, step)]
    return bool(errors) and all(errors)


class Term(NamedTuple):
    """A value that stands in the target with a sign."""

    value: int
    sign: int
    root: Step | None  # the last factor or minus on the way to it
    weighted: bool  # each example has a factor of its own, such as a reward
    chosen: bool  # positions, such as labels, choose its elements


def _terms(flow: Flow, goal: int) -> Iterator[tuple[Step, int, Step | None, bool, bool]]:
    """Each operation that is a term of the target, with the facts of the term."""
    stack = [Term(goal, 1, None, False, False)]
    seen: set[tuple[int, int]] = set()
    while stack:
        term = stack.pop()
        value, sign, root, weighted, chosen = term
        if (value, sign) in seen or len(seen) > 500:
            continue
        seen.add((value, sign))
        step = flow.maker.get(value)
        if step is None or step.event != "record":
            continue
        name = step.short_name
        if name in _SUMS:
            stack += [term._replace(value=v) for v in step.inputs]
        elif name in ("subtract", "sub") and len(step.inputs) == 2 and not _is_error(flow, step):
            stack += [term._replace(value=step.inputs[0]), term._replace(value=step.inputs[1], sign=-sign)]
        elif name in ("negative", "neg"):
            stack.append(term._replace(value=step.inputs[0], sign=-sign, root=step))
        elif name in ("multiply", "mul", *DIVISIONS) and len(step.inputs) == 2:
            square = _square_of(flow, step)
            yield step, sign if square is None else sign * square[1], root, weighted, chosen
            for value, other in ((step.inputs[0], step.inputs[1]), (step.inputs[1], step.inputs[0])):
                factor = _sign_of(flow, other)
                if factor is not None and not _is_constant(flow, value):
                    own = weighted or constant(flow, other) is None
                    stack.append(Term(value, sign * factor, step, own, chosen))
        elif (inner := _logsumexp_of(flow, step)) is not None:
            stack.append(term._replace(value=inner))
        elif (moves_elements(step) or name in _REDUCES) and step.inputs:
            chosen = chosen or name in primitives.indexing_functions
            if chosen and _is_reward(flow, root):
                continue
            stack.append(Term(step.inputs[-1] if name == "where" else step.inputs[0], sign, root, weighted, chosen))
        else:
            yield step, sign, root, weighted, chosen


def _logsumexp_of(flow: Flow, step: Step) -> int | None:
    """For `log(sum(exp(x - m)))`, which grows with x: that x."""
    made = [step]
    for name in ("reduce_sum", "exp", "subtract"):
        inner = flow.maker.get(made[-1].inputs[0]) if made[-1].inputs else None
        if inner is None or inner.short_name != name:
            return None
        made.append(inner)
    return made[-1].inputs[0] if step.short_name == "log" else None


def _is_reward(flow: Flow, factor: Step | None) -> bool:
    """Whether each chosen element has a factor of its own that is no mask: a reward is to be large, a cost small."""
    if factor is None or len(factor.inputs) != 2:
        return False
    for value in factor.inputs:
        about = flow.leaves.get(value, (None, False))[0]
        if about is not None and about[1] > 1:
            return not {number_of(about), number_of(about, last=True)} <= {0.0, 1.0}
    return False


def _is_constant(flow: Flow, value: int) -> bool:
    made = flow.maker.get(value)
    fed = made is not None and made.short_name.lower() == "placeholder"
    return fed or value in flow.leaves or (made is not None and made.event != "record")


def _sign_of(flow: Flow, value: int, depth: int = 8) -> int | None:
    """The sign of a factor that depends on no variable, plus for labels; None if it is not known, or depends on one."""
    about = flow.leaves.get(value, (None, False))[0]
    if about is not None:
        number = number_of(about) if about[1] == 1 else None
        return -1 if number is not None and number < 0 else 1
    made = flow.maker.get(value)
    if made is None:
        return 1
    name = made.short_name
    if name.lower() == "placeholder":
        return 1
    if (made.event == "record" and name not in ("cast", "identity", "reshape")) or depth == 0:
        return None
    if name in ("negative", "neg"):
        inner = _sign_of(flow, made.inputs[0], depth - 1)
        return None if inner is None else -inner
    if name in ("multiply", "divide", "truediv") and len(made.inputs) == 2:
        a, b = (_sign_of(flow, v, depth - 1) for v in made.inputs)
        return None if a is None or b is None else a * b
    if name in ("subtract", "sub"):
        first = flow.leaves.get(made.inputs[0], (None, False))[0]
        return 1 if first is not None and first[1] == 1 else None
    return _sign_of(flow, made.inputs[0], depth - 1) if name in ("cast", "identity", "reshape") else 1


def _is_unary(text: str, at: int) -> bool:
    """Whether a minus in a line has no left operand."""
    before = text[:at].rstrip()
    return re.search(r"[\w)\]]$", before) is None or re.search(r"\b(return|lambda|else|in)$", before) is not None


def _has_minus(flow: Flow, step: Step, place: tuple[str, int]) -> bool:
    """Whether the lines from a term to the target have a minus that the tape did not see, such as one of NumPy."""
    lines = range(min(step.place[1], place[1]), max(step.place[1], place[1]) + 1) if step.place[0] == place[0] else ()
    texts = [linecache.getline(place[0], n) for n in lines] or [linecache.getline(*place)]
    texts = [t.partition("#")[0] for t in texts]
    names = set(re.findall(r"[A-Za-z_]\w*", " ".join(texts)))
    bound = [t for t in linecache.getlines(place[0]) if re.match(r"\s*(\w+)\s*=\s*-", t)]
    texts += [t for t in bound if re.match(r"\s*(\w+)", t)[1] in names]  # type: ignore[index]
    return any(_is_unary(t, m.start()) for t in texts for m in re.finditer(r"-\s*[A-Za-z_(]|-[\d.]+\s*\*", t))


def _is_error(flow: Flow, step: Step) -> bool:
    """A difference of predictions and labels."""
    data = any(_is_constant(flow, v) and constant(flow, v) is None for v in step.inputs)
    return data and step.output_shapes != [()]


def _is_likelihood(flow: Flow, step: Step, is_scaled: bool) -> bool:
    """Whether a logarithm is that of probabilities: of labels, if no factor such as a label stands before it."""
    if step.short_name != "log":
        return is_scaled
    return _is_probability(flow, step.inputs[0], not is_scaled)


def _is_probability(flow: Flow, value: int, of_labels: bool) -> bool:
    """Whether a value is, or holds a part of, what a softmax or sigmoid gave; not its complement, nor a ratio.

    With `of_labels`, labels must have chosen them: by positions, or by a product with data.
    """
    for _ in range(8):
        step = flow.maker.get(value)
        if step is None or not step.inputs:
            return False
        if step.short_name in _PROBABILITIES:
            return not of_labels
        data = any(_is_constant(flow, v) and constant(flow, v) is None for v in step.inputs[1:] + step.inputs[:1])
        if step.short_name in primitives.indexing_functions or (step.short_name in ("multiply", "mul") and data):
            of_labels = False
        if not moves_elements(step) and step.short_name not in _REDUCES | _SUMS | _BOUNDS:
            return False
        made = [v for v in step.inputs if not _is_constant(flow, v)]
        value = made[0] if made else step.inputs[0]
    return False


def _square_of(flow: Flow, step: Step) -> tuple[int, int] | None:
    """For `z * z` and `-0.5 * z * z`: z, and the sign of the number before it."""
    if len(step.inputs) != 2 or step.inputs[0] == step.inputs[1]:
        return (step.inputs[0], 1) if len(step.inputs) == 2 else None
    for value, other in (step.inputs, step.inputs[::-1]):
        made = flow.maker.get(other)
        if made is not None and made.short_name in ("multiply", "mul") and value in made.inputs:
            numbers = [n for v in made.inputs if (n := constant(flow, v)) is not None]
            if len(made.inputs) == 2 and len(numbers) == 1:
                return value, -1 if numbers[0] < 0 else 1
    return None


def _is_squared_error(flow: Flow, step: Step, scaled: bool = False) -> bool:
    """The square or size of a difference of predictions and labels; with `scaled`, also by a standard deviation."""
    if step.short_name not in ("square", "pow", "abs", "multiply"):
        return False
    square = _square_of(flow, step) if step.short_name == "multiply" else None
    squared = step.short_name != "multiply" or square is not None
    made = flow.maker.get(step.inputs[0] if square is None else square[0]) if step.inputs else None
    if scaled and made is not None and made.short_name in DIVISIONS:
        made = flow.maker.get(made.inputs[0])
    return squared and made is not None and made.short_name in ("subtract", "sub") and _is_error(flow, made)
