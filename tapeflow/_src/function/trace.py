"""Leaving a trace: `tf.init_scope`. Building graphs is in control_flow/tracing.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tapeflow._src import _core
from tapeflow._src.control_flow.tracing import FuncGraph, building
from tapeflow._src.namespace import public
from tapeflow._src.variables import counted_for

__all__ = ["FuncGraph", "building", "init_scope"]


class _RunningAtOnce:
    """Operations inside run as they are called, whatever is being built, and unseen by recorders."""

    def __enter__(self) -> None:
        self._graph = _core.swap_stage(None)
        self._pause = _core.StopRecording(True)
        self._pause.__enter__()

    def __exit__(self, *error: object) -> None:
        self._pause.__exit__(None, None, None)
        _core.swap_stage(self._graph)


running_at_once = _RunningAtOnce


@public("init_scope")
@contextmanager
def init_scope() -> Iterator[None]:
    """Lifts operations out of the function that is being traced: they run at once.

    >>> with tf.init_scope():
    ...     x = tf.constant(1.) + 1.
    >>> x
    <tf.Tensor: shape=(), dtype=float32, numpy=2.0>
    """
    graph = _core.current_graph()
    outermost = graph
    while outermost is not None and not outermost.graph_mode:
        outermost = outermost.outer
    if outermost is graph:  # nothing to leave: it may be the scope inside of another one
        with _core.StopRecording(True):
            yield
        return
    _core.swap_stage(outermost)
    try:
        with _core.StopRecording(True), counted_for(graph):
            yield
    finally:
        _core.swap_stage(graph)
