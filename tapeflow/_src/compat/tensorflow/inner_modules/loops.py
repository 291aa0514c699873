"""A function of the iteration number, run for all iterations at once or one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src.control_flow.maps import map_fn
from tapeflow._src.control_flow.vectorized_map import vectorized_map
from tapeflow._src.namespace import find_public
from tapeflow._src.types import nest

_range = find_public("range")


def pfor(
    loop_fn: Callable[[Any], Any],
    iters: Any,
    fallback_to_while_loop: bool = True,
    parallel_iterations: int | None = None,
    warn: bool = False,
) -> Any:
    """The results of `loop_fn(0)`, `loop_fn(1)`, ..., for all numbers at once, stacked; or for so many at once."""
    if parallel_iterations is not None and parallel_iterations < 1:
        raise ValueError(
            f"Argument `parallel_iterations` must be None or a positive integer. Received: {parallel_iterations}."
        )
    if parallel_iterations == 1:
        raise ValueError("Found `parallel_iterations == 1`. Use `for_loop` instead.")
    numbers = _range(iters)
    count = numbers.shape[0]
    if parallel_iterations is None or count is None or count <= parallel_iterations:
        return vectorized_map(loop_fn, numbers, fallback_to_while_loop, warn)
    parts = [
        vectorized_map(loop_fn, numbers[start : start + parallel_iterations], fallback_to_while_loop, warn)
        for start in range(0, count, parallel_iterations)
    ]
    return nest.map_structure(lambda *values: find_public("concat")(values, 0), *parts)


def for_loop(
    loop_fn: Callable[[Any], Any], loop_fn_dtypes: Any, iters: Any, parallel_iterations: int | None = None
) -> Any:
    """The results of `loop_fn(0)`, `loop_fn(1)`, ..., one after the other, stacked; in the structure of the dtypes."""
    if parallel_iterations is not None and parallel_iterations < 1:
        raise TypeError("parallel_iterations must be a positive integer.")
    found = map_fn(
        lambda i: nest.flatten(loop_fn(i)),
        _range(iters),
        fn_output_signature=nest.flatten(loop_fn_dtypes),
        parallel_iterations=parallel_iterations,
    )
    return nest.pack_sequence_as(loop_fn_dtypes, found)
