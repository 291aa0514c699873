"""The graph of a function that is being traced, as programs see it that ask for the default graph."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.v1.graph.graph import Graph, get_default_graph, unique_name
from tapeflow._src.control_flow.tracing import FuncGraph, await_outer, building
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


def _of_the_program(name: str) -> Any:
    """A method of the graph of the program: collections belong to it."""

    def ask(self: FuncGraph, *args: Any, **kwargs: Any) -> Any:
        return getattr(get_default_graph(), name)(*args, **kwargs)

    ask.__name__, ask.__doc__ = name, getattr(Graph, name).__doc__
    return ask


class FunctionGraphContexts:
    """The members of a function's graph that programs know from `tf.Graph`: its blocks and collections."""

    @contextmanager
    def as_default(self: Any) -> Iterator[FuncGraph]:
        """Operations inside become part of this graph."""
        if _core.current_graph() is self:
            yield self
            return
        with building(self):
            yield self

    def name_scope(self: Any, name: str | None) -> Any:
        """A block in which names of operations begin with `name`."""
        return name_scope(name or "")

    @contextmanager
    def _unchanged(self: Any, *_: Any, **__: Any) -> Iterator[None]:
        """A block without effect: operations of a function run in program order, on the one device."""
        yield

    @contextmanager
    def control_dependencies(self: Any, control_inputs: Any) -> Iterator[None]:
        """A block whose operations run after the given ones: those of a function run in program order anyway."""
        await_outer(self, control_inputs if control_inputs is not None else [])
        yield

    def unique_name(self: Any, name: str, mark_as_used: bool = True) -> str:
        """The name, with a number if it is taken."""
        return unique_name(self, name, mark_as_used)

    def _apply_device_functions(self: Any, op: Any) -> None:
        """Lets the open `device` blocks place an operation: there is one device."""

    def _get_control_flow_context(self: Any) -> None:
        """The loop or branch of TensorFlow 1's kind that is being built: branches and loops are graphs."""

    colocate_with = container = device = _unchanged
    add_to_collection = _of_the_program("add_to_collection")
    add_to_collections = _of_the_program("add_to_collections")
    clear_collection = _of_the_program("clear_collection")
    get_all_collection_keys = _of_the_program("get_all_collection_keys")
    get_collection = _of_the_program("get_collection")
    get_collection_ref = _of_the_program("get_collection_ref")
    gradient_override_map = FuncGraph.gradient_overrides

    @property
    def outer_graph(self: Any) -> Any:
        """The graph in which the function was traced."""
        return self.outer if self.outer is not None else get_default_graph()
