"""One small tape, record by record, with formulas and numbers: what the slider of the report page steps through."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.diagnostics.flow import known
from tapeflow._src.diagnostics.frames import Frames
from tapeflow._src.diagnostics.source_line import source_line
from tapeflow._src.diagnostics.variable_names import name_of_variable

_MOST_RECORDS = 80
_SHOWN = 6  # elements of a tensor
# What an operation computes, and what its rule makes of the gradient dy.
_FORMULAS = {
    "add": ("y = a + b", "da = dy, db = dy"),
    "subtract": ("y = a - b", "da = dy, db = -dy"),
    "multiply": ("y = a * b", "da = dy * b, db = dy * a"),
    "realdiv": ("y = a / b", "da = dy / b, db = -dy * y / b"),
    "divide": ("y = a / b", "da = dy / b, db = -dy * y / b"),
    "negative": ("y = -x", "dx = -dy"),
    "pow": ("y = a ** p", "da = dy * p * a ** (p - 1)"),
    "square": ("y = x ** 2", "dx = dy * 2 * x"),
    "sqrt": ("y = sqrt(x)", "dx = dy / (2 * y)"),
    "exp": ("y = exp(x)", "dx = dy * y"),
    "log": ("y = log(x)", "dx = dy / x"),
    "sin": ("y = sin(x)", "dx = dy * cos(x)"),
    "cos": ("y = cos(x)", "dx = -dy * sin(x)"),
    "tanh": ("y = tanh(x)", "dx = dy * (1 - y ** 2)"),
    "sigmoid": ("y = 1 / (1 + exp(-x))", "dx = dy * y * (1 - y)"),
    "relu": ("y = max(x, 0)", "dx = dy where x > 0, else 0"),
    "softplus": ("y = log(1 + exp(x))", "dx = dy * sigmoid(x)"),
    "abs": ("y = |x|", "dx = dy * sign(x)"),
    "matmul": ("y = a @ b", "da = dy @ b', db = a' @ dy"),
    "reduce_sum": ("y = sum of x", "dx = dy for each element"),
    "reduce_mean": ("y = sum of x / n", "dx = dy / n for each element"),
    "reduce_max": ("y = max of x", "dx = dy at the maximum, else 0"),
    "maximum": ("y = max(a, b)", "dy goes to the larger one"),
    "minimum": ("y = min(a, b)", "dy goes to the smaller one"),
    "softmax": ("y = exp(x) / sum of exp(x)", "dx = y * (dy - sum of dy * y)"),
    "log_softmax": ("y = x - log(sum of exp(x))", "dx = dy - softmax(x) * sum of dy"),
    "squared_difference": ("y = (a - b) ** 2", "da = 2 * dy * (a - b), db = -da"),
    "identity": ("y = x", "dx = dy"),
    "reshape": ("y = x in another shape", "dx = dy in the shape of x"),
    "transpose": ("y = x with other axes first", "dx = dy with the axes put back"),
    "concat": ("y = the inputs one after the other", "each input gets its part of dy"),
    "gather": ("y = rows of x", "dx = dy added to those rows, else 0"),
    "where": ("y = a where the condition holds, else b", "da = dy there, db = dy elsewhere"),
    "cast": ("y = x in another dtype", "dx = dy in the dtype of x"),
}  # fmt: skip


def tape_steps(tape: Any, targets: list[Any]) -> list[dict[str, Any]]:
    """Rows for a tape of few records; none if it is large, symbolic, or has rules in Python, which may do other things.

    Asks the tape for the gradients of all values that it keeps: what it was asked for must be there already.
    """
    records = tape._records()
    names = [_short(row[0]) for row in records]
    if not 1 <= len(records) <= _MOST_RECORDS or any("custom" in n or "py_func" in n or "call" in n for n in names):
        return []
    if any(_core.is_symbolic(t) for t in targets if t is not None):
        return []
    value_by_index: dict[int, Any] = {}
    for kept in tape._kept():
        for tensor in kept:
            index = None if tensor is None else known(tape._index_of(tensor))
            if index is not None:
                value_by_index.setdefault(index, tensor)
    for target in targets:
        if target is not None:
            value_by_index[known(tape._index_of(target))] = target
    name_by_index = {}
    for variable in tape.watched_variables():
        index = known(tape._index_of(variable))
        value_by_index[index] = variable
        name_by_index[index] = name_of_variable(variable, Frames())
    gradients = _gradients(tape, targets, value_by_index)
    rows = []
    for row, name in zip(records, names):
        file, line = source_line(row[1], row[2])
        output = known(row[5][0]) if row[5] else -1
        forward, backward = _FORMULAS.get(name, (f"y = {name}(x)", ""))
        rows.append(
            {
                "operation": name, "file": file, "line": line,
                "formula": f"{forward};  {backward}" if backward else forward,
                "inputs": [_operand(known(i), name_by_index, value_by_index) for i in row[4]],
                "value": _text(value_by_index.get(output)), "gradient": _text(gradients.get(output)),
            }
        )  # fmt: skip
    return rows


def _gradients(tape: Any, targets: list[Any], value_by_index: dict[int, Any]) -> dict[int, Any]:
    known = ((i, t) for i, t in value_by_index.items() if i is not None)  # not what another tape recorded
    wanted = {i: t for i, t in known if t.dtype.is_floating and i < 1 << 30}
    found = tape.gradient([t for t in targets if t is not None], list(wanted.values()))
    return {i: getattr(g, "values", g) for i, g in zip(wanted, found) if g is not None}


def _short(name: str) -> str:
    name = name.rpartition(".")[2]
    return primitives.function_name(name) if name[:1].isupper() else name


def _operand(index: int, names: dict[int, str], values: dict[int, Any]) -> str:
    text = _text(values.get(index))
    return f"{names[index]} = {text}" if index in names else text


def _text(tensor: Any) -> str:
    """The numbers of a small tensor; of a larger one its shape and range."""
    if tensor is None:
        return "not kept"
    array = np.asarray(tensor.numpy())
    if array.dtype.kind not in "fiub":
        return f"{array.dtype} {list(array.shape)}"
    if array.size <= _SHOWN:
        return np.array2string(array, precision=4, separator=", ")
    return f"shape {list(array.shape)}, from {array.min():.4g} to {array.max():.4g}, mean {array.mean():.4g}"
