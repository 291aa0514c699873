"""`tf.while_loop`: a loop over values that change in each round."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow.namespace import public
from tapeflow.ops.conversion import convert_to_tensor
from tapeflow.types import nest


def _as_value(value: Any) -> Any:
    """Numbers and arrays become tensors; tensors, variables, TensorArrays and other structures stay."""
    plain = isinstance(value, int | float | complex | str | bytes | np.ndarray | np.generic)
    return convert_to_tensor(value) if plain else value


@public("while_loop")
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> Any:
    """Repeats `loop_vars = body(*loop_vars)` while `cond(*loop_vars)` holds; gives the last values.

    >>> tf.while_loop(lambda i: i < 10, lambda i: (i * 2,), (tf.constant(1),))[0]
    16
    """
    if not callable(cond):
        raise TypeError("'cond' must be callable.")
    if not callable(body):
        raise TypeError("'body' must be callable.")
    if parallel_iterations < 1:
        raise TypeError("'parallel_iterations' must be a positive integer.")
    values = nest.map_structure(_as_value, list(loop_vars))
    limit = None if maximum_iterations is None else int(maximum_iterations)
    single = len(values) == 1
    rounds = 0
    while (limit is None or rounds < limit) and bool(cond(*values)):
        result = body(*values)
        # One loop variable may be returned bare.
        if single and not (isinstance(result, list | tuple) and len(result) == 1):
            result = (result,)
        result = list(result)
        nest.assert_same_structure(values, result, check_types=False)
        values = nest.map_structure(_as_value, result)
        rounds += 1
    return type(loop_vars)(values) if isinstance(loop_vars, list) else _like_tuple(loop_vars, values)


def _like_tuple(loop_vars: Any, values: list[Any]) -> Any:
    return type(loop_vars)(*values) if hasattr(loop_vars, "_fields") else tuple(values)
