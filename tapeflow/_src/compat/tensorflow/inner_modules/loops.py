"""A function of the iteration number, run for all iterations at once or one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src.control_flow.maps import map_fn
from tapeflow._src.control_flow.vectorized_map import vectorized_map
from tapeflow._src.namespace import find_public

_range = find_public("range")


def pfor(
    loop_fn: Callable[[Any], Any],
    iters: Any,
    fallback_to_while_loop: bool = True,
    parallel_iterations: int | None = None,
    warn: bool = False,
) -> Any:
    """The results of `loop_fn(0)`, `loop_fn(1)`, ..., for all numbers at once, stacked."""
    return vectorized_map(loop_fn, _range(iters), fallback_to_while_loop, warn)


def for_loop(
    loop_fn: Callable[[Any], Any], loop_fn_dtypes: Any, iters: Any, parallel_iterations: int | None = None
) -> Any:
    """The results of `loop_fn(0)`, `loop_fn(1)`, ..., one after the other, stacked."""
    return map_fn(loop_fn, _range(iters), fn_output_signature=loop_fn_dtypes, parallel_iterations=parallel_iterations)
