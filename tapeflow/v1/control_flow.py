"""`tf.cond` and `tf.while_loop` with the arguments of TensorFlow 1, which give a single result bare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow.control_flow import branches, loops
from tapeflow.namespace import public


@public("compat.v1.while_loop")
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Repeats `body` while `cond` holds; gives the last values, or the one value if there is one loop variable.

    >>> tf.compat.v1.while_loop(lambda i: i < 10, lambda i: i * 2, [tf.constant(1)])
    16
    """
    as_tuple = False

    def noted(*values: Any) -> Any:
        nonlocal as_tuple
        result = body(*values)
        as_tuple = type(result) is tuple
        return result

    found = loops.while_loop(
        cond, noted, loop_vars, shape_invariants, parallel_iterations, back_prop, swap_memory, maximum_iterations, name
    )
    if return_same_structure:
        return found
    if len(found) == 1:
        return found[0]
    return tuple(found) if as_tuple and type(found) is list else found


@public("compat.v1.cond")
def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Callable[[], Any] | None = None,
    fn2: Callable[[], Any] | None = None,
) -> Any:
    """The result of one of two functions (older: `fn1`, `fn2`); a list of one result is that result unless `strict`.

    >>> tf.compat.v1.cond(tf.constant(True), lambda: [1.], lambda: [2.])
    1.0
    """
    if fn1 is not None and true_fn is not None:
        raise TypeError("cond(): 'true_fn' and 'fn1' may not be set simultaneously.")
    if fn2 is not None and false_fn is not None:
        raise TypeError("cond(): 'false_fn' and 'fn2' may not be set simultaneously.")
    found = branches.cond(pred, fn1 if true_fn is None else true_fn, fn2 if false_fn is None else false_fn, name)
    single = isinstance(found, list | tuple) and len(found) == 1 and not hasattr(found, "_fields")
    return found[0] if single and not strict else found
