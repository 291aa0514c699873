"""Choosing between two functions at once where the condition is known, in the graph where it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src.control_flow.branches import cond
from tapeflow._src.namespace import public


@public("__internal__.smart_cond.smart_cond")
def smart_cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """Calls one of two functions if `pred` is known, and is `tf.cond` if it is not.

    >>> tf.__internal__.smart_cond.smart_cond(True, lambda: "yes", lambda: "no")
    'yes'
    """
    if not callable(true_fn):
        raise TypeError(f"Argument `true_fn` must be callable. Received {true_fn}")
    if not callable(false_fn):
        raise TypeError(f"Argument `false_fn` must be callable. Received {false_fn}")
    known = known_condition(pred)
    if known is None:
        return cond(pred, true_fn, false_fn, name)
    return true_fn() if known else false_fn()


def known_condition(pred: Any) -> bool | None:
    """The value of a condition, or None if it is not known yet."""
    if isinstance(pred, _core.Variable):
        return None
    if isinstance(pred, _core.Tensor):
        value = _core.known_value(pred)
        return None if value is None else bool(value)
    if isinstance(pred, bool) or (isinstance(pred, int) and pred in (0, 1)):
        return bool(pred)
    raise TypeError(
        f"Argument `pred` must be a Tensor, or a Python bool, or 1 or 0. Received: pred={pred} of type "
        f"{type(pred).__name__}"
    )
