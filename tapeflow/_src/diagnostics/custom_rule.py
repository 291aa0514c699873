"""Whether the rule of a function with a custom gradient is its derivative, at the first arguments that it is given."""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.diagnostics.finding import Finding
from tapeflow._src.ops.arrays.conversion import convert_to_tensor

_SMALL, _LARGE = 1e-3, 4e-3


def check_rule(
    name: str, evaluate: Callable[[list[Any]], list[Any]], inputs: list[Any], results: list[Any],
    rule: Callable[[list[Any]], list[Any]], code: CodeType | None,
) -> Finding | None:  # fmt: skip
    """Compares the rule with differences of the function, along one direction. None if they agree or nothing is sure.

    A rule that differs on purpose is no finding: the straight-through gradient of a function that is constant almost
    everywhere, or any rule of a function that hands its argument on.
    """
    floats = [i for i, x in enumerate(inputs) if x.dtype.is_floating and not _core.is_symbolic(x)]
    if not floats or len(floats) != len(inputs) or not all(y.dtype.is_floating for y in results):
        return None
    values = [np.asarray(x.numpy(), np.float64) for x in inputs]
    outputs = [np.asarray(y.numpy(), np.float64) for y in results]
    if any(y.shape == x.shape and np.array_equal(x, y) for x in values for y in outputs):
        return None
    random = np.random.default_rng(0)
    moves = [random.choice([-1.0, 1.0], size=x.shape) * np.maximum(1e-2, np.abs(x)) for x in values]
    weights = [random.normal(size=y.shape) for y in outputs]

    def along(size: float) -> float:
        sides = []
        for sign in (1.0, -1.0):
            moved = [
                convert_to_tensor((x + sign * size * v).astype(t.dtype.as_numpy_dtype))
                for x, v, t in zip(values, moves, inputs)
            ]
            sides.append(sum(float(np.sum(w * np.asarray(y.numpy()))) for w, y in zip(weights, evaluate(moved))))
        return (sides[0] - sides[1]) / (2 * size)

    numeric, again = along(_SMALL), along(_LARGE)
    dys = [convert_to_tensor(w.astype(y.dtype.as_numpy_dtype)) for w, y in zip(weights, results)]
    try:
        found = rule(dys)
    except Exception as error:  # as it will in the program
        return _finding(name, code, f"the rule of {name} fails: {error}", {"function": name})
    if any(g is None or hasattr(g, "indices") for g in found):
        return None
    analytic = sum(float(np.sum(np.asarray(g.numpy(), np.float64) * v)) for g, v in zip(found, moves))
    scale = max(abs(numeric), abs(analytic), 1e-12)
    noise = 1e-6 * sum(float(np.sum(np.abs(w * y))) for w, y in zip(weights, outputs)) / _SMALL
    is_smooth = abs(numeric - again) <= 0.02 * scale + noise
    if not is_smooth or abs(numeric) <= noise or abs(numeric - analytic) <= 0.05 * scale + noise:
        return None
    message = f"the rule of {name} is not its derivative: along one direction it gives {analytic:.5g}, "
    message += f"differences give {numeric:.5g}"
    return _finding(name, code, message, {"rule": analytic, "differences": numeric, "function": name})


def _finding(name: str, code: CodeType | None, message: str, evidence: dict[str, Any]) -> Finding:
    lines = [line for _, _, line in code.co_lines() if line] if code is not None else []
    return Finding(
        "wrong-custom-gradient",
        "severe",
        message,
        code.co_filename if code is not None else None,
        max(lines) if lines else None,
        evidence=evidence,
        remedy=f"Check the rule of {name} by tf.test.compute_gradient or tf.debugging.check_gradients.",
        confidence=0.9,
    )
