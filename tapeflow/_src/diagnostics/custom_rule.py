"""Whether the rule of a function with a custom gradient is its derivative, at the first arguments that it is given."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.diagnostics.flow import Flow
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor

_SMALL, _LARGE = 1e-3, 4e-3
_DIRECTIONS = 3  # of all elements of the results
_ELEMENTS = 4  # single elements, in which small deviations do not cancel
_MOST_INPUTS = 6
Arrays = list[np.ndarray[Any, Any]]


def check_rule(
    name: str, evaluate: Callable[[list[Any]], list[Any]], inputs: list[Any], results: list[Any],
    rule: Callable[[list[Any]], list[Any]], code: CodeType | None,
) -> Finding | None:  # fmt: skip
    """Compares the rule with differences of the function, input by input. None if they agree or nothing is sure.

    Inputs for which the rule gives None, on purpose or not, are left to the explanation of gradients that are None.

    A rule that differs on purpose is no finding: the straight-through gradient of a function that rounds, or any rule
    of a function that hands its argument on.
    """
    floats = [i for i, x in enumerate(inputs) if x.dtype.is_floating]
    if not floats or any(map(_core.is_symbolic, inputs)) or not all(y.dtype.is_floating for y in results):
        return None
    values = {i: np.asarray(inputs[i].numpy(), np.float64) for i in floats}
    outputs = [np.asarray(y.numpy(), np.float64) for y in results]
    if any(y.shape == x.shape and np.array_equal(x, y) for x in values.values() for y in outputs):
        return None
    random = np.random.default_rng(0)
    for number in range(_DIRECTIONS + _ELEMENTS):
        weights = [np.asarray(random.normal(size=y.shape)) for y in outputs]
        if number >= _DIRECTIONS:
            weights = [_one_element(w, random) for w in weights]
        dys = [convert_to_tensor(w.astype(y.dtype.as_numpy_dtype)) for w, y in zip(weights, results)]
        try:
            found = rule(dys)[: len(inputs)]  # without those of variables
        except Exception as error:  # as it will in the program
            return _finding(name, code, f"the rule of {name} fails: {error}", {"function": name})
        given = [i for i in floats if found[i] is not None and not hasattr(found[i], "indices")]
        noise = 1e-6 * sum(float(np.sum(np.abs(w * y))) for w, y in zip(weights, outputs)) / _SMALL
        for argument in given[:_MOST_INPUTS]:
            x = values[argument]
            move = random.choice([-1.0, 1.0], size=x.shape) * np.maximum(1e-2, np.abs(x))
            small, large = (_along(evaluate, inputs, argument, x, move, weights, size) for size in (_SMALL, _LARGE))
            analytic = float(np.sum(np.asarray(found[argument].numpy(), np.float64) * move))
            if _differs(analytic, small, large, noise):
                if _rounds(evaluate, inputs, argument):
                    return None
                about = f" by its argument {argument + 1}" if len(inputs) > 1 else ""
                message = f"the rule of {name} is not its derivative{about}: along one direction it gives "
                message += f"{analytic:.5g}, differences give {small:.5g}"
                evidence = {"rule": analytic, "differences": small, "function": name, "argument": argument + 1}
                return _finding(name, code, message, evidence, argument)
    return None


def _rounds(evaluate: Callable[[list[Any]], list[Any]], inputs: list[Any], argument: int) -> bool:
    """Whether a function rounds its argument, or takes its sign, on the way to its results."""
    with find_public("GradientTape")() as tape:
        tape.watch(inputs[argument])
        evaluate(inputs)
    flow = Flow(tape, flat=True)
    edges = [e for edges in flow.edges.values() for e in edges if e.breaks in ("operation", "dtype")]
    return any(flow.dtype.get(e.output) != "bool" for e in edges)


def _one_element(weights: np.ndarray[Any, Any], random: np.random.Generator) -> np.ndarray[Any, Any]:
    """The same, but zero everywhere except at one element."""
    kept = np.zeros_like(weights)
    if weights.size:
        kept.reshape(-1)[random.integers(weights.size)] = 1.0
    return kept


def _along(
    evaluate: Callable[[list[Any]], list[Any]], inputs: list[Any], number: int, x: Any, move: Any,
    weights: Arrays, size: float,
) -> float:  # fmt: skip
    """The derivative of the weighted outputs by one input along a direction, as a central difference."""
    sides = []
    for sign in (1.0, -1.0):
        moved = list(inputs)
        moved[number] = convert_to_tensor((x + sign * size * move).astype(inputs[number].dtype.as_numpy_dtype))
        sides.append(sum(float(np.sum(w * np.asarray(y.numpy()))) for w, y in zip(weights, evaluate(moved))))
    return (sides[0] - sides[1]) / (2 * size)


def _differs(analytic: float, small: float, large: float, noise: float) -> bool:
    """Whether a derivative is surely not the one that differences of two sizes give."""
    scale = max(abs(small), abs(analytic), 1e-12)
    is_smooth = abs(small - large) <= 0.02 * scale + noise
    return is_smooth and abs(small) > noise and abs(small - analytic) > 0.05 * scale + noise


def _line_of(code: CodeType, argument: int | None) -> int | None:
    """The line of a rule that computes what it gives for an argument; else its last one."""
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except (SyntaxError, ValueError):
        tree = ast.Module([], [])
    lines = [line for _, _, line in code.co_lines() if line]
    own = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.lineno in lines]
    inner = max(own, key=lambda n: n.lineno, default=None)
    given = [n.value for n in ast.walk(inner) if isinstance(n, ast.Return)] if inner is not None else []
    value = given[-1] if given else None
    if isinstance(value, ast.Tuple) and argument is not None and argument < len(value.elts):
        value = value.elts[argument]
    if inner is not None and isinstance(value, ast.Name):
        assigned = [n for n in ast.walk(inner) if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == value.id]
        if assigned:
            return assigned[-1].value.lineno
    return max(lines, default=None)


def _finding(
    name: str, code: CodeType | None, message: str, evidence: dict[str, Any], argument: int | None = None
) -> Finding:
    return Finding(
        "wrong-custom-gradient",
        "severe",
        message,
        code.co_filename if code is not None else None,
        None if code is None else _line_of(code, argument),
        evidence=evidence,
        remedy=f"Check the rule of {name} by tf.test.compute_gradient or tf.debugging.check_gradients.",
        confidence=0.9,
    )
