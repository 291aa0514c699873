"""`case` around another `cond`: the first function whose condition holds, conditions asked one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any


def case_helper(
    cond_fn: Callable[..., Any],
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None,
    exclusive: bool,
    name: str | None,
    allow_python_preds: bool = False,
    **cond_kwargs: Any,
) -> Any:
    """The result of the first function whose condition holds, else of `default`, else of the last function."""
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, Mapping) else list(pred_fn_pairs)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"Each entry in 'pred_fn_pairs' must be a 2-tuple. Received {pair}.")
        if not callable(pair[1]):
            raise TypeError(f"Callable fn for predicate {pair[0]} must be callable; got {pair[1]!r}")
    otherwise = default
    if otherwise is None:
        otherwise = pairs.pop()[1]
    for condition, function in reversed(pairs):
        otherwise = partial(cond_fn, condition, true_fn=function, false_fn=otherwise, **cond_kwargs)
    return otherwise()
