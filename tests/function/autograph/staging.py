"""A small stand-in for tracing: eager tensors count as staged, and both branches of `tf.cond` are run."""

from __future__ import annotations

from contextlib import contextmanager

import tapeflow as tf
from tapeflow._src import _core
from tapeflow._src.function.autograph import operators as operators
from tapeflow._src.function.autograph.conversion import convert

calls: list[str] = []


def _cond(pred, true_fn, false_fn, name=None):
    calls.append("cond")
    results = [true_fn(), false_fn()]
    return results[0] if bool(pred) else results[1]


def _while_loop(cond, body, loop_vars, **options):
    calls.append("while_loop")
    options.pop("shape_invariants", None)
    return tf.while_loop(cond, body, loop_vars, **options)


@contextmanager
def staging():
    """Inside, every tensor decides in the graph."""
    saved = (operators.staged, operators.cond, operators.while_loop)
    operators.staged, operators.cond, operators.while_loop = _core.is_tensor, _cond, _while_loop
    calls.clear()
    try:
        yield calls
    finally:
        operators.staged, operators.cond, operators.while_loop = saved


def run_staged(function, *args, **kwargs):
    """The result of the converted function with tensors staged."""
    with staging():
        return convert(function)(*args, **kwargs)
