"""Choosing one of several functions: `tf.cond`, `tf.case`, `tf.switch_case`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tapeflow import _core
from tapeflow.namespace import public
from tapeflow.types.errors import InvalidArgumentError


def _require_callable(function: Any, what: str) -> None:
    if not callable(function):
        raise TypeError(f"'{what}' must be callable.")


@public("cond")
def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """The result of `true_fn()` if the predicate holds, else of `false_fn()`.

    >>> tf.cond(tf.constant(1.) > 0., lambda: 10, lambda: 20)
    10
    """
    _require_callable(true_fn, "true_fn")
    _require_callable(false_fn, "false_fn")
    return true_fn() if bool(pred) else false_fn()


@public("case")
def case(
    pred_fn_pairs: Any,
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """The result of the first function whose predicate holds, else of `default`.

    >>> tf.case([(tf.constant(False), lambda: 1)], default=lambda: 2)
    2
    """
    pairs = list(pred_fn_pairs.items()) if isinstance(pred_fn_pairs, Mapping) else list(pred_fn_pairs)
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"Each entry in 'pred_fn_pairs' must be a 2-tuple. Received {pair}.")
    pairs = [(p.deref() if hasattr(p, "deref") else p, function) for p, function in pairs]
    for _, function in pairs:
        _require_callable(function, "pred_fn_pairs")
    if default is not None:
        _require_callable(default, "default")
    truths = [bool(p) for p, _ in pairs]
    if exclusive and sum(truths) > 1:
        raise InvalidArgumentError(None, None, "case: More than one condition evaluated as True but exclusive=True.")
    for holds, (_, function) in zip(truths, pairs):
        if holds:
            return function()
    if default is None:
        raise InvalidArgumentError(None, None, "case: Input error: None of conditions evaluated as True")
    return default()


@public("switch_case")
def switch_case(
    branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None, name: str = "switch_case"
) -> Any:
    """The result of the function with number `branch_index`; of `default`, or the last function, if there is none.

    >>> tf.switch_case(tf.constant(1), [lambda: 10, lambda: 20])
    20
    """
    if not _core.is_tensor(branch_index):
        raise TypeError(f"'branch_index' must be a Tensor, got {type(branch_index)}")
    if not branch_index.dtype.is_integer:
        raise TypeError(f"'branch_index' must be an integer Tensor, got {branch_index.dtype}")
    if isinstance(branch_fns, Mapping) or (branch_fns and isinstance(branch_fns[0], tuple)):
        function_by_index = dict(branch_fns)
    else:
        function_by_index = dict(enumerate(branch_fns))
    if not function_by_index:
        raise ValueError("switch_case: `branch_fns` must hold at least one function")
    for function in function_by_index.values():
        _require_callable(function, "branch_fns")
    last = function_by_index[max(function_by_index)]
    return function_by_index.get(int(branch_index), default or last)()


@public("control_dependencies")
@contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """Operations inside run after `control_inputs`, as they do anyway when run one by one.

    >>> with tf.control_dependencies([tf.constant(1)]):
    ...     x = tf.constant(2)
    >>> x
    2
    """
    graph = _core.current_graph()
    if graph is not None and graph.takes_everything:
        with graph.control_dependencies(control_inputs):
            yield
        return
    if callable(control_inputs):
        control_inputs()
    yield
