"""The nodes of a graph or a function of TensorFlow, in an order in which they can run.

A program is made once of messages: it finds the operation of every node, checks its attributes and resolves the names
of its inputs. Running it calls operations of Tapeflow: at once, or to build the graph that is being traced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from tapeflow._src import _core
from tapeflow._src.compat.graph_def.attributes import python_value
from tapeflow._src.compat.graph_def.op_defs import OpDef, find_op_def
from tapeflow._src.compat.raw_ops.operation import find_raw_operation, has_raw_operation
from tapeflow._src.types import nest
from tapeflow._src.types.errors import InvalidArgumentError, OpError, UnimplementedError
from tapeflow._src.types.tensor_spec import CompositeTensor

Place = tuple[str, int]

# Attributes that choose a device, a layout of memory or a name, and change no value.
_WITHOUT_EFFECT = frozenset(
    ("use_cudnn_on_gpu", "container", "shared_name", "allowed_devices", "parallel_iterations", "swap_memory")
    + ("grad_a", "grad_b", "grad_x", "grad_y", "a_is_sparse", "b_is_sparse", "memory_mode", "debug_name", "config")
    + (
        "config_proto",
        "executor_type",
        "lower_using_switch_merge",
        "validate_shape",
        "use_locking",
        "use_inter_op_parallelism",
    )
    + ("validate_indices", "message", "propagate_nans", "incompatible_shape_error", "is_distributed_communication")
    + ("bad_indices_policy",)
)


class Context(NamedTuple):
    """What the nodes of a program may need while they run: the library, variables by name, and tensors by place."""

    library: Any
    resources: dict[str, Any]
    values: dict[str, list[Any]]


Handler = Callable[["Step", list[Any], Context], Any]
handler_by_op: dict[str, Handler] = {}


def handles(*ops: str) -> Callable[[Handler], Handler]:
    """Registers what runs nodes of these operations."""

    def register(handler: Handler) -> Handler:
        handler_by_op.update(dict.fromkeys(ops, handler))
        return handler

    return register


class Step:
    """One node: where its inputs come from, its attributes as Python values, and what runs it."""

    def __init__(self, node: Any, inputs: list[Place], controls: list[str], op_def: OpDef | None, where: str) -> None:
        self.node, self.name, self.op, self.where = node, node.name, node.op, where
        self.inputs, self.controls, self.op_def = inputs, controls, op_def
        self.attributes = {
            name: python_value(value) for name, value in node.attr.items() if name != "value" or node.op != "Const"
        }
        if op_def is not None:
            self.attributes = op_def.complete(self.attributes)
        self.handler: Handler = _raw_handler(self) if node.op not in handler_by_op else handler_by_op[node.op]

    def run(self, values: list[Any], context: Context) -> list[Any]:
        """The outputs for these inputs."""
        try:
            result = self.handler(self, values, context)
        except (OpError, TypeError, ValueError, LookupError, AttributeError, NotImplementedError) as error:
            if getattr(error, "_names_a_node", False):
                raise
            raise _located(error, self) from error
        outputs = result if isinstance(result, list) else flat_outputs(result)
        shapes = self.attributes.get("_output_shapes")
        if shapes is not None:
            self._narrow(outputs, shapes)
        return outputs

    def _narrow(self, outputs: list[Any], shapes: list[Any]) -> None:
        """Says of the outputs what the file knows of their shapes."""
        for output, shape in zip(outputs, shapes):
            if isinstance(output, _core.Tensor) and shape.rank is not None and not output.shape.is_fully_defined():
                try:
                    output.set_shape(shape)
                except ValueError as error:
                    raise _located(error, self) from error


def _located(error: Exception, step: Step) -> Exception:
    """The same error, which also says at which node it came."""
    text = f"{step.where}: node '{step.name}' ({step.op}): {error}"
    kind: Any = type(error)
    found: Exception = kind.of(text) if isinstance(error, OpError) else _same_kind(error, text)
    found._names_a_node = True  # type: ignore[attr-defined]
    return found


def _same_kind(error: Exception, text: str) -> Exception:
    """A refusal of the operation keeps its class; that something is missing is a fault of the graph."""
    if isinstance(error, NotImplementedError):
        return UnimplementedError.of(text)
    kind = next((k for k in (TypeError, ValueError) if isinstance(error, k)), None)
    return InvalidArgumentError.of(text) if kind is None else kind(text)


def flat_outputs(result: Any) -> list[Any]:
    """What an operation gives as one list: those of a tuple or a list in order, nothing for None."""
    if result is None:
        return []
    if isinstance(result, list | tuple):
        return [x for item in result for x in flat_outputs(item)]
    if isinstance(result, CompositeTensor):
        return list(nest.flatten(result, expand_composites=True))
    return [result]


# ---- operations of tf.raw_ops


def is_known(op: str) -> bool:
    """Whether nodes of this operation can run."""
    return op in handler_by_op or has_raw_operation(op)


def _raw_handler(step: Step) -> Handler:
    op_def = step.op_def
    if op_def is None or not has_raw_operation(step.op):
        raise missing_operation(step.op, step.name, step.where)
    operation = find_raw_operation(step.op)
    accepted = {name for name, _ in operation._parameters}
    fixed = _fixed_arguments(step, op_def, accepted)
    arguments = op_def.inputs
    sizes = [argument.size(step.attributes) for argument in arguments]
    wanted = sum(sizes)

    def run(step: Step, values: list[Any], context: Context) -> Any:
        if len(values) != wanted:
            raise ValueError(f"the operation takes {wanted} inputs by its attributes; got {len(values)}")
        rest = iter(values)
        given = {
            argument.python_name: [next(rest) for _ in range(size)] if argument.is_list else next(rest)
            for argument, size in zip(arguments, sizes)
        }
        return operation(**fixed, **given)

    return run


def _fixed_arguments(step: Step, op_def: OpDef, accepted: set[str]) -> dict[str, Any]:
    """The attributes of a node that its operation takes; ValueError if it is given one that it cannot honour."""
    fixed, inferred = {}, op_def.inferred()
    for name, attribute in op_def.attributes.items():
        value = step.attributes.get(name, attribute.default)
        if attribute.python_name in accepted:
            fixed[attribute.python_name] = value
        elif (
            name in inferred
            or name in _WITHOUT_EFFECT
            or attribute.kind in ("type", "list(type)", "list(shape)")
            or any(name in (output.kind, output.length) for output in op_def.outputs)
        ):
            continue
        elif attribute.has_default and not _same(value, attribute.default):
            raise UnimplementedError.of(
                f"{step.where}: node '{step.name}' ({step.op}): the attribute {name}={value!r} is not supported"
            )
    return fixed


def _same(value: Any, default: Any) -> bool:
    if isinstance(value, float) and isinstance(default, float):
        return abs(value - default) <= 1e-6 * abs(default)
    if hasattr(value, "as_list"):
        return bool((None if value.rank is None else value.as_list()) == default)
    return bool(value == default)


def missing_operation(op: str, node: str, where: str) -> Exception:
    """The error for a node whose operation Tapeflow lacks."""
    return UnimplementedError.of(
        f"{where}: node '{node}': Op type not registered '{op}'. Tapeflow has no operation of this name, so the graph "
        "cannot be read"
    )


# ---- programs


class Program:
    """Nodes with their inputs resolved. `inputs` are names that a call gives values; `outputs` are places."""

    def __init__(
        self,
        nodes: Iterable[Any],
        inputs: list[str],
        outputs: list[str],
        targets: Iterable[str],
        library: Any,
        where: str,
    ) -> None:
        self._library, self._where = library, where
        self.inputs = inputs
        self._node_by_name: dict[str, Any] = {node.name: node for node in nodes}
        self._given = set(inputs)
        self.outputs = [self.place_of(text) for text in outputs]
        wanted = [name for name, _ in self.outputs]
        self.steps = self._ordered([*wanted, *(name.lstrip("^") for name in targets)])

    def place_of(self, text: str) -> Place:
        """The node and the number of the output that "node", "node:1" or "node:output:1" means."""
        name, *rest = text.split(":")
        if name in self._given:
            return name, 0
        node = self._node_by_name.get(name)
        if node is None:
            raise ValueError(f"{self._where}: Unknown input node '{name}'")
        if not rest:
            return name, 0
        try:
            number = int(rest[-1])
        except ValueError:
            raise ValueError(f"{self._where}: '{text}' is no output of a node") from None
        return name, number + (self._offset(node, rest[0]) if len(rest) == 2 else 0)

    def _offset(self, node: Any, output: str) -> int:
        """How many outputs of a node stand before the one of this name."""
        function = self._library.find(node.op)
        if function is not None:
            names = [arg.name for arg in function.signature.output_arg]
            if output in names:
                return names.index(output)
        op_def = find_op_def(node.op)
        if op_def is None:
            raise missing_operation(node.op, node.name, self._where)
        before = 0
        attributes: dict[str, Any] = {}
        for argument in op_def.outputs:
            if argument.name == output:
                return before
            if argument.is_list and not attributes:
                attributes = op_def.complete({name: python_value(value) for name, value in node.attr.items()})
            before += argument.size(attributes)
        raise ValueError(f"{self._where}: node '{node.name}' ({node.op}) has no output '{output}'")

    def _ordered(self, wanted: list[str]) -> list[Step]:
        """The steps that the wanted nodes need, each after what it takes."""
        step_by_name: dict[str, Step] = {}
        order: list[Step] = []
        open_names: set[str] = set()
        waiting = [(name, False) for name in reversed(wanted)]
        while waiting:
            name, ready = waiting.pop()
            if name in self._given or (name in step_by_name and not ready):
                if name in open_names and name not in self._given and not ready:
                    raise ValueError(f"{self._where}: node '{name}' needs its own output")
                continue
            if ready:
                open_names.discard(name)
                order.append(step_by_name[name])
                continue
            step = step_by_name[name] = self._step(name)
            open_names.add(name)
            waiting.append((name, True))
            needs = [*(place[0] for place in step.inputs), *step.controls]
            waiting += [(needed, False) for needed in reversed(needs)]
        return order

    def _step(self, name: str) -> Step:
        node = self._node_by_name.get(name)
        if node is None:
            raise ValueError(f"{self._where}: Unknown input node '{name}'")
        inputs = [self.place_of(text) for text in node.input if not text.startswith("^")]
        controls = [text[1:] for text in node.input if text.startswith("^")]
        if "_gradient_op_type" in node.attr:  # its rule reads tensors, which must be there first
            kind = node.attr["_gradient_op_type"].s.decode(errors="replace")
            controls += [text.partition(":")[0] for text in self._library.captured_by_type.get(kind, ())]
        controls = [control for control in controls if control not in self._given]
        if self._library.find(node.op) is not None:
            return _call_step(node, inputs, controls, self._where)
        return Step(node, inputs, controls, find_op_def(node.op), self._where)

    def run(self, given: Mapping[str, Any], resources: dict[str, Any]) -> dict[str, list[Any]]:
        """The outputs of all nodes, by name, for these inputs."""
        values: dict[str, list[Any]] = {name: [value] for name, value in given.items()}
        context = Context(self._library, resources, values)
        for step in self.steps:
            if step.name not in values:
                values[step.name] = step.run([self._value(values, place, step) for place in step.inputs], context)
        return values

    def _value(self, values: dict[str, list[Any]], place: Place, step: Step) -> Any:
        outputs = values[place[0]]
        if place[1] >= len(outputs):
            raise ValueError(
                f"{self._where}: node '{step.name}' ({step.op}) takes output {place[1]} of '{place[0]}', which has "
                f"{len(outputs)}"
            )
        return outputs[place[1]]

    def results(self, given: Mapping[str, Any], resources: dict[str, Any]) -> list[Any]:
        """The wanted outputs for these inputs."""
        values = self.run(given, resources)
        return [values[name][number] for name, number in self.outputs]


def _call_step(node: Any, inputs: list[Place], controls: list[str], where: str) -> Step:
    """A node whose operation is a function of the library."""
    step = Step.__new__(Step)
    step.node, step.name, step.op, step.where = node, node.name, node.op, where
    step.inputs, step.controls, step.op_def, step.attributes = inputs, controls, None, {"f": node.op}
    step.handler = handler_by_op["PartitionedCall"]
    return step


def run_node(node: Any, values: list[Any], library: Any, resources: dict[str, Any]) -> list[Any]:
    """The outputs of one node for these inputs."""
    where = library.where
    if library.find(node.op) is not None:
        step = _call_step(node, [], [], where)
    else:
        step = Step(node, [], [], find_op_def(node.op), where)
    return step.run(values, Context(library, resources, {}))
