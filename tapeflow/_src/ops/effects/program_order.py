"""Functions with an effect in a graph: they run in program order each time the graph runs, not while it is traced."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src.ops.arrays.conversion import convert_to_tensor, get_static_value
from tapeflow._src.ops.effects.host_call import call_with_places
from tapeflow._src.types import nest
from tapeflow._src.types.errors import InvalidArgumentError


def run_later(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    named: Callable[..., Any],
    resource: Any = None,
) -> Any:
    """Adds a node that calls the function with the values of the tensors among its arguments.

    Files know the node as a call of `named`, which changes the variable `resource`. A graph of TensorFlow 1 runs it
    only if it is asked to: there the operation is the result.
    """
    leaves = nest.flatten([args, kwargs], expand_composites=True)
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, _core.Tensor | _core.Variable)]
    tensors = [_core.convert_to_tensor(leaves[i], None, None, "function") for i in places]

    def run(values: list[Any]) -> list[Any]:
        given = list(leaves)
        for place, value in zip(places, values):
            given[place] = value
        positional, named = nest.pack_sequence_as([args, kwargs], given, expand_composites=True)
        function(*positional, **named)
        return []

    call = call_with_places(named, [args, kwargs], leaves, places, effect=True, whole=False)
    run.raw_call = call._replace(resource=resource)  # type: ignore[attr-defined]
    _core.call_python(run, tensors, [], [], None, True)
    graph = _core.current_graph()
    return graph.operation_at(graph.node_count - 1) if graph.graph_mode else None


def effect(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that acts whenever the graph runs, whatever its arguments are."""

    @functools.wraps(function)
    def act(*args: Any, **kwargs: Any) -> Any:
        return run_later(function, args, kwargs, function) if _core.is_tracing() else function(*args, **kwargs)

    return act


def assertion(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that checks its arguments: now if their values are known, else whenever the graph runs."""

    @functools.wraps(function)
    def check(*args: Any, **kwargs: Any) -> Any:
        graph = _core.current_graph()
        if graph is not None:  # what objects of other classes become may belong to the graph
            args, kwargs = nest.map_structure(_as_tensor, [args, kwargs])
        deferred = graph is not None and graph.graph_mode
        if deferred or (
            graph is not None and any(map(_is_deferred, nest.flatten([args, kwargs], expand_composites=True)))
        ):
            if deferred and function.__name__ not in _WHEN_RUN:
                _check_constants(function, args, kwargs)
            return run_later(_telling(function, _name_of(args, kwargs)), args, kwargs, function)
        try:
            return function(*args, **kwargs)
        except InvalidArgumentError:
            if graph is None or function.__name__ not in _WHEN_RUN:
                raise
            # It may stand in a branch that is not taken.
            return run_later(_telling(function, _name_of(args, kwargs)), args, kwargs, function)

    return check


def _as_tensor(leaf: Any) -> Any:
    return convert_to_tensor(leaf) if hasattr(type(leaf), "__tf_tensor__") else leaf


_WHEN_RUN = {"Assert", "assert_near"}  # TensorFlow does not look at constants of a graph for these


def _check_constants(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Runs a check at once if all that it looks at are constants of the graph."""
    leaves = nest.flatten([args, kwargs], expand_composites=True)
    values = [get_static_value(leaf) if _core.is_tensor(leaf) else leaf for leaf in leaves]
    if any(_core.is_tensor(leaf) and value is None for leaf, value in zip(leaves, values)):
        return
    given, named = nest.pack_sequence_as([args, kwargs], values, expand_composites=True)
    graph = _core.current_graph()
    _core.swap_stage(None)
    try:
        function(*given, **named)
    finally:
        _core.swap_stage(graph)


def _name_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """The name of the tensor that is checked, in a graph that has names."""
    graph = _core.current_graph()
    checked = args[0] if args else kwargs.get("x")
    named = graph is not None and graph.graph_mode and _core.is_symbolic(checked)
    return str(checked.name) if named else ""  # type: ignore[union-attr]


def _telling(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The check with an error that begins as that of a graph's Assert operation, and names the tensor."""

    def check(*args: Any, **kwargs: Any) -> None:
        try:
            function(*args, **kwargs)
        except (InvalidArgumentError, ValueError) as error:
            message = error.message if isinstance(error, InvalidArgumentError) else str(error)
            if hasattr(function, "graph_message"):
                message = function.graph_message(*args, **kwargs)
            message = message.replace("did not hold.", "did not hold element-wise:", 1)
            message = message.replace("Tensor  must", f"Tensor {name} must", 1)
            raise InvalidArgumentError.of(f"assertion failed: {message}") from None

    return check


def shape_assertion(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that checks shapes: now if they are known, else whenever the graph runs."""

    @functools.wraps(function)
    def check(*args: Any, **kwargs: Any) -> Any:
        leaves = nest.flatten([args, kwargs], expand_composites=True) if _core.is_tracing() else ()
        if any(_core.is_symbolic(x) and not x.shape.is_fully_defined() for x in leaves):
            return run_later(_telling(function, _name_of(args, kwargs)), args, kwargs, function)
        return function(*args, **kwargs)

    return check


def _is_deferred(leaf: Any) -> bool:
    return _core.is_symbolic(leaf) or isinstance(leaf, _core.Variable)
