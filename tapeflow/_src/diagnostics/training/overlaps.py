"""Overlaps of predictions and labels, as Dice and IoU measure them: quotients that are large for good predictions."""

from __future__ import annotations

from tapeflow._src.diagnostics.flow import Flow, Step
from tapeflow._src.diagnostics.training.activations import DIVISIONS, constant, hands_on, moves_elements

_SUMS = {"reduce_sum", "reduce_mean", "sum", "mean"}
_PROBABILITIES = {"softmax", "sigmoid"}


def is_overlap(flow: Flow, step: Step) -> bool:
    """Whether a sum of products of labels and probabilities is divided by a sum that has both of them."""
    if step.short_name not in DIVISIONS or len(step.inputs) != 2:
        return False
    factors = _summed_product(flow, step.inputs[0])
    if factors is None:
        return False
    below = flow.ancestors(step.inputs[1])
    labels, probabilities = factors
    return probabilities in below and _root(flow, labels) in {_root(flow, v) for v in below}


def _summed_product(flow: Flow, value: int) -> tuple[int, int] | None:
    """Behind sums, constant factors and constants that are added: the labels and the probabilities."""
    summed = False
    for _ in range(12):
        step = flow.maker.get(value)
        if step is None or not step.inputs:
            return None
        name, numbers = step.short_name, [constant(flow, v) for v in step.inputs]
        if name in _SUMS or moves_elements(step):
            summed = summed or name in _SUMS
            value = step.inputs[0]
        elif (
            name in ("add", "add_v2", "multiply", "mul", *DIVISIONS) and len(numbers) == 2 and numbers.count(None) == 1
        ):
            if any(n is not None and n < 0 for n in numbers):
                return None
            value = step.inputs[numbers.index(None)]
        elif name in ("multiply", "mul") and summed and len(step.inputs) == 2:
            pairs = (step.inputs, step.inputs[::-1])
            return next(((a, b) for a, b in pairs if _is_data(flow, a) and _is_probability(flow, b)), None)
        else:
            return None
    return None


def _root(flow: Flow, value: int) -> int:
    """What a value was cast or reshaped from."""
    made = flow.maker.get(value)
    while made is not None and made.inputs and hands_on(made):
        value = made.inputs[0]
        made = flow.maker.get(value)
    return value


def _is_data(flow: Flow, value: int) -> bool:
    root = _root(flow, value)
    made = flow.maker.get(root)
    fed = made is not None and (made.event != "record" or made.short_name.lower() == "placeholder")
    return root in flow.leaves or fed


def _is_probability(flow: Flow, value: int) -> bool:
    made = flow.maker.get(_root(flow, value))
    return made is not None and made.short_name in _PROBABILITIES
