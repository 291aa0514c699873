"""Variables of TensorFlow 1 graphs in checkpoints: a session holds their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src.train.checkpoint.object_graph import value_of, variable_of
from tapeflow._src.train.checkpoint.serialized import SerializedTensor
from tapeflow._src.variables import session_graph

session_providers: list[Callable[[], Any]] = []  # Keras 2 registers the function that gives its session


def is_in_graph(variable: Any) -> bool:
    """Whether a variable has its value in a session."""
    return getattr(variable, "_graph", None) is not None


def current_session() -> Any:
    """The default session, or the one that a registered function gives; None without one."""
    graph = session_graph()
    session = None if graph is None else graph.default_session()
    if session is None and graph is not None and session_providers:
        return session_providers[-1]()
    return session


def needed_session(session: Any) -> Any:
    """The given session, or the current one."""
    session = current_session() if session is None else session
    if session is None:
        raise ValueError("Either session argument should be provided or default session should be established")
    return session


def values_of(leaf_by_key: dict[str, Any], session: Any) -> dict[str, Any]:
    """The values of leaves by their keys; those of a graph are computed in one run of the session."""
    in_graph = {key: v for key, leaf in leaf_by_key.items() if is_in_graph(v := variable_of(leaf))}
    if session_graph() is not None:
        in_graph.update({key: part.tensor() for key, part in leaf_by_key.items() if isinstance(part, SerializedTensor)})
    computed = needed_session(session).run(list(in_graph.values())) if in_graph else []
    found = dict(zip(in_graph, computed))
    values: dict[str, Any] = {}
    for key, leaf in leaf_by_key.items():
        value = found[key] if key in found else value_of(leaf)
        values.update({key + end: part for end, part in value.items()} if isinstance(value, dict) else {key: value})
    return values


def initialize(variables: list[Any], session: Any) -> None:
    """Runs the initializers of those that are variables of a graph."""
    initializers = [v.initializer for v in variables if is_in_graph(v)]
    if initializers:
        needed_session(session).run(initializers)
