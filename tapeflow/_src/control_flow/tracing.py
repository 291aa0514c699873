"""Tracing functions into graphs of their own: branches, bodies of loops, and whatever they use from around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tapeflow._src import _core
from tapeflow._src.autodiff.gradient_registry import NodeOverrides
from tapeflow._src.namespace import lazy_members
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.random.seeds import Stream
from tapeflow._src.types import nest
from tapeflow._src.types.errors import InvalidArgumentError


@lazy_members(
    "tapeflow._src.compat.v1.graph.graph_def.FunctionGraphDefinition",
    *(
        "as_graph_def",
        "get_operations",
        "get_operation_by_name",
        "get_tensor_by_name",
        "name_nodes_now",
        "as_graph_element",
    ),
)
@lazy_members(
    "tapeflow._src.compat.v1.graph.function_graph.FunctionGraphContexts",
    *("as_default", "name_scope", "colocate_with", "container", "control_dependencies", "device"),
    *("add_to_collection", "add_to_collections", "clear_collection", "get_all_collection_keys", "get_collection"),
    *(
        "get_collection_ref",
        "gradient_override_map",
        "outer_graph",
        "_apply_device_functions",
        "_get_control_flow_context",
        "unique_name",
    ),
)
class FuncGraph(_core.Graph):
    """The graph of one traced function."""

    def __init__(self, outer: Any = None, graph_mode: bool = False) -> None:
        self.name = "graph"
        self.created_variables: list[Any] = []
        # Streams of random numbers; those of branches and loops live as long as the function around.
        self.streams: list[Any] = getattr(outer, "streams", [])
        self.may_create_variables = outer is None or outer.may_create_variables
        self.follows_first_call = outer is not None and getattr(outer, "follows_first_call", False)
        if outer is not None:
            self.name, self.created_variables = outer.name, outer.created_variables
        self.input_names: list[str] = []
        self.first_arguments: list[Any] = []  # of the call that is traced, as far as variables may be made of them
        self.exit_callbacks: list[Callable[[], Any]] = []  # called when the function has been traced
        # Python objects of which nodes have handles; those of branches and loops live as long as the function around.
        self.held: list[Any] = getattr(outer, "held", [])
        self.awaited: list[int] = []  # nodes of the program's graph around, which run before this graph
        self._overrides: NodeOverrides | None = None

    building_function = True
    finalized = False
    seed: int | None = None
    trainable_variables = property(lambda self: tuple(v for v in self.variables if v.trainable))

    # Set by the function that is made of the graph: they give its arguments and results in their structures.
    describe_inputs: Callable[[], Any] | None = None
    describe_outputs: Callable[[list[Any]], Any] | None = None

    @property
    def structured_input_signature(self) -> Any:
        """The arguments of the function that the graph is of, with a specification for each tensor; or None."""
        return None if self.describe_inputs is None else self.describe_inputs()

    @property
    def structured_outputs(self) -> Any:
        """The result of the function that the graph is of, with the graph's tensors in it; or None."""
        return None if self.describe_outputs is None else self.describe_outputs(self.outputs)

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables that the graph uses; the state of random operations is none of them."""
        return tuple(v for v in self.variables_used if not isinstance(v, Stream))

    def first_value(self, tensor: Any) -> Any:
        """What a tensor is in the call that is traced, for a variable that begins with it."""
        given = self.inputs if self.first_arguments else []
        try:
            (value,) = self.evaluate([tensor], given, self.first_arguments, [])
        except InvalidArgumentError as error:
            raise ValueError(
                "Tensor-typed variable initializers must either be wrapped in an init_scope or callable (e.g., "
                "`tf.Variable(lambda : tf.truncated_normal([10, 40]))`) when building functions. Please file a feature "
                "request if this restriction inconveniences you."
            ) from error
        return value

    @contextmanager
    def gradient_overrides(self, op_type_map: dict[str, str]) -> Iterator[None]:
        """A block in which operations of the given types take the gradients registered under the given names."""
        if self._overrides is None:
            self._overrides = NodeOverrides(self)
        with self._overrides.block(op_type_map):
            yield
        self._overrides.install()

    def overriding_rules(self) -> dict[int, Callable[[list[Any]], list[Any]]]:
        """The rules that stand in place of the nodes' own."""
        return {} if self._overrides is None else self._overrides.rules()

    def input_name(self, value: int) -> str:
        """The name of an input, as `x:0`."""
        places = [_core.place_of(tensor) for tensor in self.inputs]
        place = next((i for i, found in enumerate(places) if found is not None and found[1] == value), 0)
        return f"{self.input_names[place] if place < len(self.input_names) else f'Placeholder_{value}'}:0"


@contextmanager
def building(graph: Any) -> Iterator[Any]:
    """Operations inside become nodes of `graph`; recorders that were open before do not receive them."""
    with _core.StopRecording(True, False), graph:  # what is computed while tracing may still be the first NaN
        yield graph


@contextmanager
def building_inside(graph: Any) -> Iterator[Any]:
    """The same for a graph that runs inside another one.

    What is done to known values that the recorders around it track becomes nodes too, so that they receive it.
    """
    _core.keep_tracked(graph, True)
    try:
        with building(graph):
            yield graph
    finally:
        _core.keep_tracked(graph, False)


@contextmanager
def scratch_graph() -> Iterator[Any]:
    """Operations inside go to a graph that is thrown away; outside of a trace they run as always."""
    outer = _core.current_graph()
    if outer is None:
        yield None
        return
    with building(FuncGraph(outer)) as graph:
        yield graph


def trace_body(function: Callable[..., Any], outer: Any, specs: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """The graph of a function of symbolic tensors with these dtypes and shapes, and what the function returned."""
    graph = FuncGraph(outer)
    with building_inside(graph):
        result = function(*[graph.add_input(dtype, shape) for dtype, shape in specs])
    return graph, result


def await_outer(graph: Any, control_inputs: Any) -> None:
    """Makes the graph of a branch or body wait for those of `control_inputs` that belong to the graph of a session."""
    program = _graph_of_session(graph)
    if program is None:
        return
    owned = [item for item in nest.flatten(control_inputs) if getattr(item, "graph", None) is program]
    graph.awaited += program.nodes_behind(owned)


def _graph_of_session(graph: Any) -> Any:
    while graph is not None and not graph.graph_mode:
        graph = graph.outer
    return graph


@contextmanager
def awaiting(outer: Any, graphs: Sequence[Any]) -> Iterator[None]:
    """The node that is made inside runs after all that its graphs wait for."""
    nodes = [node for graph in graphs for node in graph.awaited]
    if not nodes or not outer.graph_mode:
        if nodes:
            outer.awaited += nodes
        yield
        return
    before = outer.control_scope
    outer.control_scope = [*before, *nodes]
    try:
        yield
    finally:
        outer.control_scope = before


def share_captures(outer: Any, graphs: Sequence[Any]) -> list[Any]:
    """Makes all graphs take the same tensors of `outer`, after their own inputs; gives these tensors."""
    taken: dict[int, Any] = {}
    for graph in graphs:
        graph.capture_held_constants()
        for variable in graph.captured_variables:
            convert_to_tensor(variable)  # records the read on the open tapes
        for tensor in graph.captures:
            taken.setdefault(id(tensor), tensor)
    tensors = list(taken.values())
    for graph in graphs:
        graph.take(tensors)
    changed = {id(v): v for graph in [outer, *graphs] for v in graph.changing}
    outer.changing = list(changed.values())
    return tensors
