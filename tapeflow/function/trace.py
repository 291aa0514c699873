"""Tracing: calling a Python function once with symbolic tensors, so that its operations become a graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tapeflow import _core
from tapeflow.namespace import public


class FuncGraph(_core.Graph):
    """The graph of one traced function."""

    def __init__(self, outer: Any = None, takes_everything: bool = False) -> None:
        self.name = "graph"
        self.created_variables: list[Any] = []
        self.may_create_variables = True


@contextmanager
def building(graph: Any) -> Iterator[Any]:
    """Operations inside become nodes of `graph`; recorders that were open before do not hear of them."""
    with _core.StopRecording(True), graph:
        yield graph


@contextmanager
def running_at_once() -> Iterator[None]:
    """Operations inside run as they are called, whatever is being built, and unheard by recorders."""
    graph = _core.swap_stage(None)
    try:
        with _core.StopRecording(True):
            yield
    finally:
        _core.swap_stage(graph)


@public("init_scope")
@contextmanager
def init_scope() -> Iterator[None]:
    """Lifts operations out of the function that is being traced: they run at once.

    >>> with tf.init_scope():
    ...     x = tf.constant(1.) + 1.
    >>> x
    2.0
    """
    graph = _core.current_graph()
    outermost = graph
    while outermost is not None and not outermost.takes_everything:
        outermost = outermost.outer
    _core.swap_stage(outermost)
    try:
        with _core.StopRecording(True):
            yield
    finally:
        _core.swap_stage(graph)


def trace_body(
    function: Callable[..., Any], outer: Any, inputs: Sequence[Any], changing: Sequence[Any] = ()
) -> tuple[Any, Any]:
    """The graph of a branch or a loop body, called with symbolic tensors like `inputs`, and its result."""
    graph = FuncGraph(outer)
    graph.changing = list(changing)
    with building(graph):
        arguments = [graph.add_input(x.dtype, x.shape) for x in inputs]
        result = function(*arguments)
    return graph, result
