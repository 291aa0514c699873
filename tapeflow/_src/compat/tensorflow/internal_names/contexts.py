"""Blocks and questions about how a program runs: eager mode, TensorFlow 2's behaviour, loading, reading in replicas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.tensorflow.inner_modules import execution_context
from tapeflow._src.namespace import public

public("__internal__.eager_context.eager_mode")(execution_context.eager_mode)
public("__internal__.tf2.enabled")(execution_context.enabled)
public("__internal__.ops.is_resource_variable")(execution_context.is_resource_variable)


@public("__internal__.eager_context.get_device_name")
def get_device_name() -> str:
    """The name of the device on which operations run now; empty if none was chosen.

    >>> tf.__internal__.eager_context.get_device_name()
    ''
    """
    return execution_context.context().device_name


_load_options: list[Any] = []


@public("__internal__.load_context")
@contextmanager
def load_context(load_options: Any) -> Iterator[None]:
    """A block in which a saved model is loaded with these options.

    >>> with tf.__internal__.load_context(None):
    ...     pass
    """
    _load_options.append(load_options)
    try:
        yield
    finally:
        _load_options.pop()


def get_load_options() -> Any:
    """The options of the innermost `load_context`, or None."""
    return _load_options[-1] if _load_options else None


_synchronised_reads = [0]


@public("__internal__.distribute.variable_sync_on_read_context")
@contextmanager
def variable_sync_on_read_context() -> Iterator[None]:
    """A block in which a variable that is aggregated when it is read gives the aggregate.

    >>> with tf.__internal__.distribute.variable_sync_on_read_context():
    ...     pass
    """
    _synchronised_reads[0] += 1
    try:
        yield
    finally:
        _synchronised_reads[0] -= 1


def in_variable_sync_on_read_context() -> bool:
    """Whether the caller is inside of such a block."""
    return _synchronised_reads[0] > 0


@public("__internal__.execute_fn_for_device")
def execute_fn_for_device(
    device_branch_fns: dict[str, Callable[[], Any]], default_fn: Callable[[], Any], name: str = "execute_fn"
) -> Any:
    """Runs the function for the device that there is, the CPU; the default one if it is not among them.

    >>> tf.__internal__.execute_fn_for_device({"GPU": lambda: 1, "CPU": lambda: 2}, lambda: 3)
    2
    """
    by_kind = {kind.upper(): function for kind, function in device_branch_fns.items()}
    return by_kind.get("CPU", default_fn)()


@public("__internal__.get_enclosing_xla_context")
def get_enclosing_xla_context() -> None:
    """The block of another compiler around the caller: there is none.

    >>> tf.__internal__.get_enclosing_xla_context()
    """
    return


def in_function() -> bool:
    """Whether a function is being traced."""
    return _core.is_tracing()
