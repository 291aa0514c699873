"""The graph of a function that is being traced, as programs see it that ask for the default graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.v1.graph.graph import Graph, get_default_graph
from tapeflow._src.control_flow.tracing import FuncGraph, building
from tapeflow._src.module import name_scope
from tapeflow._src.namespace import public


@public("compat.v1.get_default_graph")
def current_graph() -> Any:
    """The graph that operations go to: that of a function that is traced, of the innermost `as_default`, of the thread.

    >>> with tf.Graph().as_default() as graph:
    ...     tf.compat.v1.get_default_graph() is graph
    True
    """
    graph = _core.current_graph()
    return graph if isinstance(graph, FuncGraph) else get_default_graph()


@contextmanager
def _as_default(self: FuncGraph) -> Iterator[FuncGraph]:
    """Operations inside become part of this graph."""
    if _core.current_graph() is self:
        yield self
        return
    with building(self):
        yield self


@contextmanager
def _unchanged(self: FuncGraph, *_: Any, **__: Any) -> Iterator[None]:
    """Operations of a function run in the order of the program, and there is one place where they can."""
    yield


def _of_the_program(name: str) -> Any:
    """A method that asks the graph of the program: collections belong to it."""

    def ask(self: FuncGraph, *args: Any, **kwargs: Any) -> Any:
        return getattr(get_default_graph(), name)(*args, **kwargs)

    ask.__name__, ask.__doc__ = name, getattr(Graph, name).__doc__
    return ask


for _name in ("add_to_collection", "add_to_collections", "clear_collection", "get_all_collection_keys"):
    setattr(FuncGraph, _name, _of_the_program(_name))
for _name in ("get_collection", "get_collection_ref"):
    setattr(FuncGraph, _name, _of_the_program(_name))
for _name in ("colocate_with", "container", "control_dependencies", "device"):
    setattr(FuncGraph, _name, _unchanged)
FuncGraph.as_default = _as_default
FuncGraph.gradient_override_map = FuncGraph.gradient_overrides
FuncGraph.name_scope = lambda self, name: name_scope(name or "")
FuncGraph.outer_graph = property(lambda self: self.outer if self.outer is not None else get_default_graph())
FuncGraph.finalized = False
FuncGraph.seed = None
