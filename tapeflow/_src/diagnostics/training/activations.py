"""Which activation a step of a tape is, also where the program writes it out, and the line that stands for it."""

from __future__ import annotations

import linecache
import math
import re
from typing import NamedTuple

from tapeflow._src import primitives
from tapeflow._src.diagnostics.flow import Flow, Step, number_of

Place = tuple[str, int]

_NAMED = {"relu", "relu6", "leaky_relu", "elu", "selu", "sigmoid", "tanh", "softplus", "gelu", "swish", "softmax"}
DIVISIONS = ("divide", "truediv", "real_div", "realdiv", "div", "div_no_nan")
_NUMBERS = ("cast", "identity", "reshape", "squeeze", "strided_slice", "getitem", "reduce_prod", "gather")
_SPREADS = ("broadcast_to", "fill", "zeros_like", "ones_like")
# How a line of the program writes an activation, if it applies it itself.
_WORDS = {
    "relu": r"\brelu\b|\bReLU\b|maximum|\bwhere\b|clip", "sigmoid": r"\bsigmoid\b|\bexp\b",
    "softmax": r"\b[sS]oftmax\b|\bexp\b", "tanh": r"\btanh\b",
}  # fmt: skip


class LayerLines(NamedTuple):
    """By the indices of a tape: the lines that made the Keras layers of variables, and those of layers' results."""

    variables: dict[int, Place]
    results: dict[int, Place]


NO_LAYERS = LayerLines({}, {})


def moves_elements(step: Step) -> bool:
    """Whether the elements of the result are some of the operands', in another order, shape or dtype."""
    return primitives.moves_elements(step.operation or "") or step.short_name == "cast"


def hands_on(step: Step) -> bool:
    """Whether the result has the elements of the first operand, all of them."""
    before, after = step.input_shapes[:1], step.output_shapes[:1]
    known = before and after and before[0] is not None and after[0] is not None
    return moves_elements(step) and not (known and math.prod(before[0]) != math.prod(after[0]))


def activation_of(flow: Flow, step: Step) -> str | None:
    """The name of the activation that a step is, or that it ends: `tf.maximum(x, 0.)` is a relu."""
    name = step.short_name
    if name in _NAMED:
        return name
    if name == "maximum" and any(constant(flow, v) == 0 for v in step.inputs):
        made = [flow.maker.get(v) for v in step.inputs]
        clipped = any(m is not None and m.short_name == "minimum" and m.place == step.place for m in made)
        return None if clipped else "relu"
    if name == "where" and len(step.inputs) == 3:
        test = flow.maker.get(step.inputs[0])
        compared = test is not None and test.short_name in ("greater", "greater_equal", "less", "less_equal")
        return "relu" if compared and any(constant(flow, v) == 0 for v in step.inputs[1:]) else None
    if name == "multiply" and any(_is_sign_mask(flow, v) for v in step.inputs):
        return "relu"
    if name in DIVISIONS and len(step.inputs) == 2:
        return _quotient(flow, step)
    return None


def _is_sign_mask(flow: Flow, value: int) -> bool:
    """Whether a value is `tf.cast(x > 0, dtype)`."""
    made = flow.maker.get(value)
    test = flow.maker.get(made.inputs[0]) if made is not None and made.short_name == "cast" and made.inputs else None
    return test is not None and test.short_name == "greater" and constant(flow, test.inputs[1]) == 0


def _quotient(flow: Flow, step: Step) -> str | None:
    """`1 / (1 + exp(-x))`, or `exp(x) / sum(exp(x))`."""
    above, below = step.inputs
    under = flow.maker.get(below)
    if under is None:
        return None
    if constant(flow, above) == 1 and under.short_name in ("add", "addv2", "add_v2"):
        one = any(constant(flow, v) == 1 for v in under.inputs)
        return "sigmoid" if one and any(_is_exp(flow, v) for v in under.inputs) else None
    summed = under.short_name in ("reduce_sum", "sum") and _is_exp(flow, under.inputs[0])
    return "softmax" if summed and _is_exp(flow, above) else None


def _is_exp(flow: Flow, value: int) -> bool:
    made = flow.maker.get(value)
    return made is not None and made.short_name == "exp"


def constant(flow: Flow, value: int) -> float | None:
    """The number that a value is, was cast from, or is filled with; a size may have come through `tf.shape`."""
    made = flow.maker.get(value)
    if made is not None and made.event != "record" and made.short_name in _SPREADS:
        return 0.0 if made.short_name == "zeros_like" else constant(flow, made.inputs[-1]) if made.inputs else None
    leaf = _leaf_of(flow, value)
    about, _ = flow.leaves.get(leaf, (None, False))
    sliced = about is not None and leaf != value and about[0].startswith("int") and about[1] <= 8
    return number_of(about) if about is not None and (about[1] == 1 or sliced) else None


def _leaf_of(flow: Flow, value: int) -> int:
    """The value itself, or what it was cast from, also the first element of a shape."""
    made = flow.maker.get(value)
    while made is not None and made.short_name in _NUMBERS and made.inputs and value not in flow.leaves:
        value = made.inputs[0]
        made = flow.maker.get(value)
    return value


def line_of(flow: Flow, step: Step, name: str, lines: LayerLines) -> Place:
    """The line that stands for an activation: its own where the program applies it, else that of the Keras layer."""
    word = re.escape(name) if name not in _WORDS else _WORDS[name]
    if re.search(word, linecache.getline(*step.place)):
        return step.place
    return layer_line(flow, step, lines) or step.place


def layer_line(flow: Flow, step: Step, lines: LayerLines) -> Place | None:
    """The line that made the layer which a step ends, or whose weights a value was computed with last."""
    for value in step.outputs:
        if value in lines.results:
            return lines.results[value]
    front = list(step.inputs)
    for _ in range(4):
        for value in front:
            if value in lines.variables:
                return lines.variables[value]
        front = [i for value in front if (made := flow.maker.get(value)) is not None for i in made.inputs]
    return None
