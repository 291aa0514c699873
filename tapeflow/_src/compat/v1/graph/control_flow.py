"""`tf.cond`, `tf.case` and `tf.while_loop` with the arguments of TensorFlow 1, which give a single result bare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src.control_flow import branches, loops
from tapeflow._src.namespace import public


class _Results:
    """How the results of control flow in graphs are arranged: as TensorFlow 2 does, or as TensorFlow 1 does."""

    v1 = False


@public("compat.v1.enable_control_flow_v2")
def enable_control_flow_v2() -> None:
    """Results of branches and loops in graphs keep their structure, as in TensorFlow 2.

    >>> tf.compat.v1.enable_control_flow_v2()
    >>> tf.compat.v1.control_flow_v2_enabled()
    True
    """
    _Results.v1 = False


@public("compat.v1.disable_control_flow_v2")
def disable_control_flow_v2() -> None:
    """A single result of branches in graphs is given bare, as in TensorFlow 1.

    >>> tf.compat.v1.disable_control_flow_v2()
    >>> tf.compat.v1.control_flow_v2_enabled()
    False
    >>> tf.compat.v1.enable_control_flow_v2()
    """
    _Results.v1 = True


@public("compat.v1.control_flow_v2_enabled")
def control_flow_v2_enabled() -> bool:
    """Whether results of branches and loops in graphs keep their structure.

    >>> tf.compat.v1.control_flow_v2_enabled()
    True
    """
    return not _Results.v1


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
    """`tf.while_loop`; in graphs, and where the body returns it bare, a single loop variable is given bare.

    >>> tf.compat.v1.while_loop(lambda i: i < 10, lambda i: i * 2, [tf.constant(1)])
    <tf.Tensor: shape=(), dtype=int32, numpy=16>
    """
    kind: Any = None  # of what the body returns

    def noted(*values: Any) -> Any:
        nonlocal kind
        result = body(*values)
        kind = type(result)
        return result

    found = loops.while_loop(
        cond,
        noted if callable(body) else body,
        loop_vars,
        shape_invariants,
        parallel_iterations,
        back_prop,
        swap_memory,
        maximum_iterations,
        name,
    )
    if len(found) == 1:
        bare = _core.is_tracing() or kind not in (list, tuple)
        return found[0] if bare and not return_same_structure else found
    as_body = kind in (list, tuple) and type(found) in (list, tuple) and (_Results.v1 or not _core.is_tracing())
    return kind(found) if as_body else found


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
    """`tf.cond` (deprecated: `fn1`, `fn2`); eagerly, the one element of a list or tuple is unpacked unless `strict`.

    >>> tf.compat.v1.cond(tf.constant(True), lambda: [1.], lambda: [2.])
    1.0
    """
    for new, old, what, before in ((true_fn, fn1, "true_fn", "fn1"), (false_fn, fn2, "false_fn", "fn2")):
        if new is not None and old is not None:
            raise TypeError(f"cond(): '{what}' and '{before}' may not be set simultaneously.")
    return _unpacked(branches.cond(pred, true_fn or fn1, false_fn or fn2, name), strict)


@public("compat.v1.case")
def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """`tf.case`; eagerly, the one element of a list or tuple comes bare unless `strict`.

    >>> tf.compat.v1.case([(tf.constant(True), lambda: [1])], default=lambda: [2])
    1
    """
    return _unpacked(branches.case(pred_fn_pairs, default, exclusive, name=name), strict)


def _unpacked(result: Any, strict: bool) -> Any:
    single = isinstance(result, list | tuple) and len(result) == 1 and not hasattr(result, "_fields")
    return result[0] if single and not strict and (_Results.v1 or not _core.is_tracing()) else result
