"""`tf.Graph`: a graph that a program builds and runs in sessions; names, scopes, collections, the default graph."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from threading import local
from typing import Any

from tapeflow._src import _core
from tapeflow._src.autodiff.gradient_registry import NodeOverrides
from tapeflow._src.compat.v1.graph.contexts import lasting_context
from tapeflow._src.compat.v1.graph.operation import Operation, VariableOperation, operation_of
from tapeflow._src.compat.v1.variables.graph_variables import VariablesOfGraph
from tapeflow._src.namespace import lazy_members, public
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.types.tensor import Tensor
from tapeflow._src.variables import variable_creators

_SCOPE_NAME = re.compile(r"^[A-Za-z0-9_.\\/>-]*$")
_graph_numbers = itertools.count()
_NODE_NAME = re.compile(r"^[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*$")


def unique_name(graph: Any, name: str, mark_as_used: bool = True) -> str:
    """The name, with a number if it is taken; one that is not marked as used is given again."""
    unmarked = graph.__dict__.setdefault("_unmarked_names", {})
    found: str = unmarked.pop(name, None) or _core.Graph.unique_name(graph, name)
    if not mark_as_used:
        unmarked[name] = found
    return found


class _Defaults(local):
    """The graphs and sessions that are the default on this thread, outermost first, and where it began."""

    def __init__(self) -> None:
        self.graphs: list[Graph] = []
        self.sessions: list[Any] = []
        self.outermost: Graph | None = None


defaults = _Defaults()


@public("Graph", "compat.v1.Graph")
@lazy_members("tapeflow._src.compat.v1.graph.graph_def.SessionGraphDefinition", "as_graph_def", "graph_def_versions")
class Graph(VariablesOfGraph, _core.Graph):
    """Operations that run when a session asks for their results.

    >>> graph = tf.Graph()
    >>> with graph.as_default():
    ...     y = tf.constant(2.) * 3.
    >>> tf.compat.v1.Session(graph=graph).run(y)
    np.float32(6.0)
    """

    may_create_variables = True
    name = "graph"

    def __new__(cls) -> Graph:
        return super().__new__(cls, None, True)

    def __init__(self) -> None:
        self.seed: int | None = None
        self._collections: dict[Any, list[Any]] = {}
        self._node_by_name: dict[str, int] = {}
        self._named_nodes = 0
        self._overrides = NodeOverrides(self)
        self._outputs_by_name: dict[str, list[Any]] = {}  # of imported operations that several nodes stand for
        self._not_fed: set[str] = set()
        self._placeholders: list[Any] = []
        self._not_fetched: set[str] = set()
        self.held: list[Any] = []  # Python objects of which nodes have handles
        self.per_session: list[Any] = []  # what each session has its own of, beside variables: see queues.py
        self._begin_variables()
        self._begin_devices()

    # ---- the default graph

    @lasting_context
    def as_default(self) -> Iterator[Graph]:
        """Operations inside become part of this graph."""
        entered = _core.current_graph() is not self  # a tape goes on where the graph is the default already
        before = _core.swap_stage(self)
        defaults.graphs.append(self)
        try:
            with _core.StopRecording(True) if entered else nullcontext():
                yield self
        finally:
            if self in defaults.graphs:  # a test case may have begun anew
                defaults.graphs.remove(self)
            _core.swap_stage(before)

    @property
    def _variable_creator_stack(self) -> list[Any]:
        return variable_creators()

    @staticmethod
    def default_session() -> Any:
        """The session that `eval` and `run` use."""
        return defaults.sessions[-1] if defaults.sessions else None

    @property
    def finalized(self) -> bool:
        """Whether nothing can be added any more."""
        return self.frozen

    def finalize(self) -> None:
        """From now on adding an operation is an error."""
        self.frozen = True

    @property
    def version(self) -> int:
        """Grows with each operation."""
        return self.node_count

    @property
    def num_operations(self) -> int:
        """How many operations there are."""
        return len(self.get_operations())

    @property
    def building_function(self) -> bool:
        """Whether this is the graph of a function: no."""
        return False

    # Placeholders live as long as their graph, though a library may hold them by weak references alone.

    def add_placeholder(self, dtype: Any, shape: Any, name: str) -> Any:
        """A tensor that has to be fed."""
        self._placeholders.append(super().add_placeholder(dtype, shape, name))
        return self._placeholders[-1]

    def add_placeholder_with_default(self, value: Any, shape: Any, name: str) -> Any:
        """A tensor that can be fed."""
        self._placeholders.append(super().add_placeholder_with_default(value, shape, name))
        return self._placeholders[-1]

    # ---- elements by name

    def get_operations(self) -> list[Operation]:
        """All operations, in the order in which they were made."""
        return [operation_of(self, i) for i in range(self.node_count) if self.node(i) is not None]

    def _number_of(self, name: str) -> int | None:
        for i in range(self._named_nodes, self.node_count):
            facts = self.node(i)
            if facts is not None and facts[1]:
                self._node_by_name[facts[1]] = i
        self._named_nodes = self.node_count
        return self._node_by_name.get(name)

    def get_operation_by_name(self, name: str) -> Operation:
        """The operation of this name."""
        if not isinstance(name, str):
            raise TypeError(f"Operation names are strings (or similar), not {type(name).__name__}.")
        number = self._number_of(name)
        if number is not None:
            return operation_of(self, number)
        if name in self._variable_by_name:
            operation: Operation = self._variable_by_name[name].op
            return operation
        if re.search(r":\d+$", name):
            raise ValueError(f"Name {name!r} appears to refer to a Tensor, not a Operation.")
        raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")

    def get_tensor_by_name(self, name: str) -> Any:
        """The tensor of this name, as "add:0"."""
        if not isinstance(name, str):
            raise TypeError(f"Tensor names are strings (or similar), not {type(name).__name__}.")
        operation_name, colon, index = name.rpartition(":")
        if not index.isdigit() or not colon or ":" in operation_name:
            if self._number_of(name) is not None or name in self._variable_by_name:
                raise ValueError(
                    f"The name {name!r} refers to an Operation, not a Tensor. Tensor names must be of the form "
                    '"<op_name>:<output_index>".'
                )
            problem = "like an (invalid) Operation name, not a Tensor."
            if colon:
                problem = "a like a Tensor name, but is not a valid one."
            raise ValueError(
                f'The name {name!r} looks {problem} Tensor names must be of the form "<op_name>:<output_index>".'
            )
        if self._number_of(operation_name) is None:
            if operation_name in self._variable_by_name:
                return self._variable_by_name[operation_name].fetched_value()
            raise KeyError(
                f"The name {name!r} refers to a Tensor which does not exist. The operation, {operation_name!r}, does "
                "not exist in the graph."
            )
        outputs = self._outputs_by_name.get(operation_name) or self.get_operation_by_name(operation_name).outputs
        if int(index) >= len(outputs):
            raise KeyError(
                f"The name {name!r} refers to a Tensor which does not exist. The operation, {operation_name!r}, exists "
                f"but only has {len(outputs)} outputs."
            )
        return outputs[int(index)]

    def name_outputs(self, operation_name: str, outputs: list[Any]) -> None:
        """From now on "name:1" is the second of the outputs, which several nodes may give."""
        self._outputs_by_name[operation_name] = outputs

    # ---- what may be fed and fetched

    def prevent_feeding(self, tensor: Any) -> None:
        """From now on feeding a value for the tensor is an error."""
        self._not_fed.add(tensor.name)

    def prevent_fetching(self, op: Any) -> None:
        """From now on fetching the operation, or a tensor that it gives, is an error."""
        self._not_fetched.add(op.name)

    @property
    def _restricts_runs(self) -> bool:
        """Whether some tensor may not be fed or some operation not be fetched."""
        return bool(self._not_fed or self._not_fetched)

    def is_feedable(self, tensor: Any) -> bool:
        """Whether a value may be fed for the tensor."""
        return not self._not_fed or tensor.name not in self._not_fed

    def is_fetchable(self, tensor_or_op: Any) -> bool:
        """Whether a session may compute the tensor or the operation."""
        if not self._not_fetched:
            return True
        operation = tensor_or_op.op if isinstance(tensor_or_op, Tensor) else tensor_or_op
        return operation.name not in self._not_fetched

    def as_graph_element(self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True) -> Any:
        """The tensor or operation of this graph that `obj` is, or names."""
        kinds = " or ".join(
            kind for kind, allowed in (("Tensor", allow_tensor), ("Operation", allow_operation)) if allowed
        )
        if isinstance(obj, str):
            if ":" in obj and allow_tensor:
                return self.get_tensor_by_name(obj)
            if allow_operation:
                return self.get_operation_by_name(obj)
            return self.get_tensor_by_name(obj)
        if isinstance(obj, _core.Variable) and allow_tensor:
            return getattr(obj, "handle", obj).fetched_value()
        if isinstance(obj, Tensor) and allow_tensor:
            place = _core.place_of(obj)
            if place is not None and place[0] is not self:
                raise ValueError(f"Tensor {obj} is not an element of this graph.")
            return obj
        if isinstance(obj, Operation) and allow_operation:
            if obj.graph is not self:
                raise ValueError(f"Operation {obj!r} is not an element of this graph.")
            return obj
        raise TypeError(f"Can not convert a {type(obj).__name__} into a {kinds}.")

    # ---- names

    @lasting_context
    def name_scope(self, name: str | None) -> Iterator[str]:
        """Names of operations inside begin with `name`, made unique; one that ends with a slash is taken as it is."""
        outer = self.scope
        self.enter_name_scope(name)
        try:
            yield self.scope
        finally:
            self.scope = outer

    def enter_name_scope(self, name: str | None) -> str:
        """Goes into a scope; the caller puts `scope` back."""
        self.check_scope_name(name)
        if not name:
            self.scope = ""
        elif name.endswith("/"):
            self.scope = name
        else:
            self.scope = _core.Graph.unique_name(self, self.scope + name) + "/"
        return self.scope

    def check_scope_name(self, name: str | None) -> None:
        """An error for a name that no scope, and so no variable, can have here."""
        if name and not self.scope and not _NODE_NAME.match(name):
            raise ValueError(
                f"'{name}' is not a valid root scope name. A root scope name has to match the following pattern: "
                f"{_NODE_NAME.pattern}"
            )
        if name and not _SCOPE_NAME.match(name):
            raise ValueError(
                f"'{name}' is not a valid scope name. A scope name has to match the pattern: {_SCOPE_NAME.pattern}"
            )

    def get_name_scope(self) -> str:
        """The name scope that is open, without a slash at its end."""
        return self.scope.rstrip("/")

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        """The name in the present scope, with a number if it is taken."""
        return unique_name(self, self.scope + name, mark_as_used)

    def _get_control_flow_context(self) -> None:
        """The loop or branch of TensorFlow 1's kind that is being built: branches and loops are graphs."""

    def name_nodes(self, first: int, name: str | bytes | None, default: str, result: Any) -> None:
        """Names the nodes from `first` on, which one function made; the one that gives its result gets the name."""
        made = [i for i in range(first, self.node_count) if self.node(i) is not None]
        if not made:
            return
        if name is not None:
            name = name.decode() if isinstance(name, bytes) else name
            check_node_name(self.scope + name)
        last = _node_of(result)
        last = None if last is None or last < first else last
        if len(made) == 1 and last is not None:
            kind = self.node(last)[0]
            own = default in _OWN_NAMES or default[:1].isupper() or kind == "Composition"
            base = name or (default if own else default_name(kind))
            self.set_node_name(last, _core.Graph.unique_name(self, self.scope + base))
            return
        prefix = _core.Graph.unique_name(self, self.scope + (name or default))
        for i in made:
            if i != last:
                inner = default_name(self.node(i)[0])
                self.set_node_name(i, _core.Graph.unique_name(self, f"{prefix}/{inner}"))
        if last is not None:
            self.set_node_name(last, prefix)

    # ---- order, gradients

    @lasting_context
    def control_dependencies(self, control_inputs: Any) -> Iterator[None]:
        """Operations made inside run after the given ones; None forgets those of outer contexts."""
        before = self.control_scope
        scope = self.scope
        if control_inputs is None:
            self.control_scope = []
        else:
            several = isinstance(control_inputs, Iterable) and not isinstance(control_inputs, Tensor | IndexedSlices)
            items = [*control_inputs] if several else [control_inputs]
            self.control_scope = [*before, *(i for item in items for i in self.nodes_behind(item))]
        try:
            yield
        finally:
            self.control_scope = before
            self.scope = scope

    def operation_at(self, number: int) -> Operation:
        """The operation of a node."""
        return operation_of(self, number)

    def nodes_behind(self, item: Any) -> list[int]:
        """The numbers of the nodes that must run for a tensor, operation or variable to be there."""
        if item is None:
            return []
        if isinstance(item, IndexedSlices):
            return [*self.nodes_behind(item.values), *self.nodes_behind(item.indices)]
        if isinstance(item, list | tuple):
            return [i for part in item for i in self.nodes_behind(part)]
        if isinstance(item, VariableOperation | _core.Variable):
            return []
        if isinstance(item, Operation):
            return [self.as_graph_element(item)._number]
        element = self.as_graph_element(item)
        if isinstance(element, Operation):
            return self.nodes_behind(element)
        place = _core.place_of(element)
        return [place[2]] if place is not None and place[2] >= 0 else []

    @functools.cached_property
    def _graph_key(self) -> str:
        """A name that no other graph has; libraries keep what belongs to a graph under it."""
        return f"graph-key-{next(_graph_numbers)}/"

    def operation_of_call(self, call: Callable[[], Any]) -> Operation:
        """Calls a function that gives nothing; the operation waits for all that the function does."""
        first = self.node_count
        call()
        return self._add_no_op(range(first, self.node_count), "PartitionedCall")

    def add_group(self, inputs: list[Any], name: str, exact: bool = False) -> Operation:
        """An operation that does nothing, once all inputs are there. An `exact` name is the whole of it."""
        return self._add_no_op([i for item in inputs for i in self.nodes_behind(item)], name, exact)

    def _add_no_op(self, nodes: Iterable[int], name: str, exact: bool = False) -> Operation:
        before = self.control_scope
        self.control_scope = sorted({*before, *nodes})
        try:
            self.names_nodes = not exact
            number = self.add_no_op(name)
            if exact:
                self.set_node_name(number, name)
            return operation_of(self, number)
        finally:
            self.names_nodes = True
            self.control_scope = before

    @contextmanager
    def container(self, container_name: str) -> Iterator[str]:
        """Where variables live; there is one container."""
        yield container_name

    @contextmanager
    def gradient_override_map(self, op_type_map: dict[str, str]) -> Iterator[None]:
        """Operations inside take the gradients registered under other names.

        While a `tf.function` is traced, the operations of the function do.
        """
        traced = _core.current_graph()
        if traced is None or traced is self or not hasattr(traced, "gradient_overrides"):
            with self._overrides.block(op_type_map):
                yield
        else:
            with traced.gradient_overrides(op_type_map):
                yield

    def overriding_rules(self) -> dict[int, Callable[[list[Any]], list[Any]]]:
        """The rules that stand in place of the nodes' own."""
        return self._overrides.rules()

    # ---- collections

    @property
    def collections(self) -> list[Any]:
        """The keys of the collections that exist."""
        return list(self._collections)

    def add_to_collection(self, name: Any, value: Any) -> None:
        """Adds a value to the collection of this name."""
        self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        """Adds a value to several collections."""
        for name in [names] if isinstance(names, str) else dict.fromkeys(names):
            self.add_to_collection(name, value)

    def get_collection_ref(self, name: Any) -> list[Any]:
        """The collection itself: changing the list changes it."""
        return self._collections.setdefault(name, [])

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """The values of a collection; with `scope`, those whose names match it from their beginning."""
        values = list(self._collections.get(name, ()))
        if scope is None:
            return values
        pattern = re.compile(scope)
        return [value for value in values if hasattr(value, "name") and pattern.match(value.name)]

    def clear_collection(self, name: Any) -> None:
        """Empties a collection."""
        self._collections.pop(name, None)

    def get_all_collection_keys(self) -> list[str]:
        """The names of all collections."""
        return [key for key in self._collections if isinstance(key, str)]

    def __repr__(self) -> str:
        return f"<tf.Graph with {self.node_count} operations>"


def _node_of(result: Any) -> int | None:
    """The node that gives a tensor, or all tensors of a list; None if there is none, or more than one."""
    tensors = result if isinstance(result, list | tuple) else [result]
    places = [_core.place_of(x) if isinstance(x, Tensor) else None for x in tensors]
    nodes = {None if place is None else place[2] for place in places}
    return nodes.pop() if len(nodes) == 1 else None


def check_node_name(name: str) -> None:
    """An error for a name that no operation can have."""
    if not _NODE_NAME.match(name):
        raise ValueError(
            f"`{name}` is not a valid node name. Accepted names conform to Regex /re.compile({_NODE_NAME.pattern!r})/"
        )


_NAME_BY_TYPE = {"AddV2": "Add", "RealDiv": "truediv", "ConcatV2": "concat", "Pack": "stack", "Unpack": "unstack",
                 "GetItem": "strided_slice", "Transpose": "transpose", "Range": "range", "PadV2": "Pad",
                 "SplitV": "split", "Split": "split"}  # fmt: skip
# Functions whose one node is called as the function is.
_OWN_NAMES = {
    "zeros",
    "ones",
    "zeros_like",
    "ones_like",
    "Fill",
    "range",
    "concat",
    "stack",
    "transpose",
    "logistic_loss",
}


def default_name(kind: str) -> str:
    """What the node of an operation is called if nobody gives it a name."""
    return _NAME_BY_TYPE.get(kind, kind)


def get_default_graph() -> Graph:
    """The graph of the innermost `as_default`, or the one of the thread."""
    if defaults.graphs:
        return defaults.graphs[-1]
    if defaults.outermost is None:
        defaults.outermost = Graph()
    return defaults.outermost


@public("compat.v1.reset_default_graph")
def reset_default_graph() -> None:
    """Begins a new default graph.

    >>> tf.compat.v1.reset_default_graph()
    """
    if defaults.graphs:
        raise AssertionError("Do not use tf.reset_default_graph() to clear nested graphs.")
    defaults.variable_store = None  # of `get_variable` outside of graphs
    was_stage = defaults.outermost is not None and _core.current_graph() is defaults.outermost
    new = Graph()
    if was_stage:
        _core.swap_stage(new)
    defaults.outermost = new
