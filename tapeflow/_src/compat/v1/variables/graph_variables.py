"""The variables of a graph: without a value until a session runs their initializers; each session has its own."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src._core import Tensor
from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.devices import DevicesOfGraph
from tapeflow._src.compat.v1.graph.operation import Operation, VariableOperation, operation_of
from tapeflow._src.io.protos import messages
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.device_spec import DeviceSpec
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.tensor_shape import TensorShape, as_shape
from tapeflow._src.variable_rows import check_declared


class VariablesOfGraph(DevicesOfGraph):
    """What a graph knows of the variables made in it."""

    def _begin_variables(self) -> None:
        self.created_variables: list[Any] = []
        self.first_value_by_stream: list[tuple[Any, Any]] = []  # of random numbers: these begin with a value
        self.held_by: Any = None  # the session whose values are in the variables
        self.variable_store: Any = None  # see variable_scope.py
        self.wanted_collections: Any = None
        self._variable_by_name: dict[str, Any] = {}
        self._facts_by_name: dict[str, tuple[VariableOperation, int, Any, Any]] = {}

    def add_variable(
        self,
        variable: Any,
        initial_value: Any,
        trainable: bool,
        name: str | None,
        dtype: Any,
        shape: Any,
        checked: bool,
    ) -> None:
        """Sets up a variable of this graph: its name, its initializer and the tensor that reads it."""
        base = name or "Variable"
        device_blocks = self._device_blocks
        self.check_scope_name(base)
        full = base[:-1] if base.endswith("/") else _core.Graph.unique_name(self, self.scope + base)
        scope, controls = self.scope, self.control_scope
        self.scope, self.control_scope = f"{full}/Initializer/", []
        try:
            value = initial_value() if callable(initial_value) else initial_value
            if isinstance(value, _core.Variable):
                value = value.fetched_value() if value.graph is self else value.read_value()
            value = self._first_tensor(value, dtype)
            known = value.shape if checked else TensorShape(None)
            declared = as_shape(shape) if shape is not None else known
            if checked:
                check_declared(known, declared)
            variable._name = full
            variable._declare(value.dtype, declared, trainable, f"{full}:0")
            operation = VariableOperation(self, full)
            self._apply_device_functions(operation)
            self._open_blocks((None, DeviceSpec.from_string(operation.device)))
            first = self.node_count
            self.names_nodes = False
            variable.assign(value)
            self.set_node_name(first, _core.Graph.unique_name(self, f"{full}/Assign"))
            self.set_node_name(first + 1, _core.Graph.unique_name(self, f"{full}/Initialized"))
            self.control_scope = []
            reading = variable.read_value()
            self.set_node_name(self.node_count - 2, _core.Graph.unique_name(self, f"{full}/Read/ReadVariableOp"))
            self.set_node_name(self.node_count - 1, _core.Graph.unique_name(self, f"{full}/Read/Identity"))
        finally:
            self.names_nodes = True
            self.scope, self.control_scope = scope, controls
            self._open_blocks(device_blocks)
        variable._graph = self
        variable._unique_id = f"{full}_{id(variable)}"
        self._variable_by_name[full] = variable
        self._facts_by_name[full] = (operation, first, value, reading)
        self.created_variables.append(variable)
        self._collect(variable, trainable)

    def declare_variable(self, variable: Any, dtype: Any, shape: TensorShape, name: str) -> None:
        """Sets up a variable without an initializer: it has no value until the graph assigns one."""
        full = _core.Graph.unique_name(self, self.scope + name)
        variable._declare(dtype, shape, False, f"{full}:0")
        operation = VariableOperation(self, full)
        self._apply_device_functions(operation)
        self.names_nodes = False
        try:
            reading = variable.read_value()
            self.set_node_name(self.node_count - 2, _core.Graph.unique_name(self, f"{full}/ReadVariableOp"))
            self.set_node_name(self.node_count - 1, _core.Graph.unique_name(self, f"{full}/Read/Identity"))
        finally:
            self.names_nodes = True
        variable._name, variable._graph = full, self
        variable._unique_id = f"{full}_{id(variable)}"
        self._variable_by_name[full] = variable
        self._facts_by_name[full] = (operation, -1, None, reading)
        self.created_variables.append(variable)

    def _first_tensor(self, value: Any, dtype: Any) -> Tensor:
        if _core.is_symbolic(value) and dtype is not None and value.dtype != as_dtype(dtype):
            raise ValueError(
                f"Variable: the initial value has dtype {value.dtype.name}, not the given {as_dtype(dtype).name}"
            )
        tensor = convert_to_tensor(value, dtype)
        return tensor if _core.is_symbolic(tensor) else self.add_constant(tensor, "initial_value")

    def _collect(self, variable: Any, trainable: bool) -> None:
        keys = self.wanted_collections
        keys = [GraphKeys.GLOBAL_VARIABLES] if keys is None else list(keys)
        if trainable and GraphKeys.TRAINABLE_VARIABLES not in keys:
            keys.append(GraphKeys.TRAINABLE_VARIABLES)
        for key in keys:
            self.add_to_collection(key, variable)

    def variable_def(self, variable: Any, scope: str | None) -> Any:
        """The message that stands for a variable, its names without `scope`; None if it is not made in `scope`."""
        _, first, value, reading = self._facts_by_name[variable._name]
        if scope and not variable._name.startswith(f"{scope}/"):
            return None
        names = {
            "variable_name": f"{variable._name}:0",
            "initializer_name": operation_of(self, first).name if first >= 0 else "",
            "snapshot_name": reading.name,
            "initial_value_name": value.name if isinstance(value, Tensor) else "",
        }
        part = variable._save_slice_info
        return messages.VariableDef(
            save_slice_info_def=part and part.to_proto(scope),
            **{field: name.removeprefix(f"{scope}/") if scope else name for field, name in names.items()},
            is_resource=True,
            trainable=variable.trainable,
            synchronization=variable.synchronization.value,
            aggregation=int(getattr(variable.aggregation, "value", variable.aggregation)),
        )

    def variable_of_def(self, message: Any, scope: str | None) -> Any:
        """The variable that a message stands for; it is in this graph, perhaps within `scope`."""
        name = f"{scope}/{message.variable_name}" if scope else message.variable_name
        variable = self._variable_by_name.get(name.removesuffix(":0"))
        if variable is None:
            raise KeyError(
                f"The name {name!r} refers to a Tensor which does not exist. The operation, "
                f"{name.removesuffix(':0')!r}, does not exist in the graph."
            )
        return variable

    def variable_meant(self, item: Any) -> Any:
        """The variable that something to be fetched is, or names; None if it is something else."""
        if isinstance(item, str):
            return self._variable_by_name.get(item.removesuffix(":0"))
        return getattr(item, "handle", item) if isinstance(item, _core.Variable) else None

    def variable_operation(self, variable: Any) -> Operation:
        """The operation that stands for the variable."""
        return self._facts_by_name[variable._name][0]

    def initializer_of(self, variable: Any) -> Operation:
        """The operation that gives the variable its first value."""
        return operation_of(self, self._facts_by_name[variable._name][1])

    def begin_variable_with(self, variable: Any, value: Any) -> None:
        """Replaces the first value of a variable: its initializer is another operation from now on."""
        name = variable._name
        operation, _, _, reading = self._facts_by_name[name]
        scope, controls = self.scope, self.control_scope
        self.scope, self.control_scope, self.names_nodes = f"{name}/Initializer/", [], False
        try:
            first = self._first_tensor(value, variable.dtype)
            assign = self.node_count
            variable.assign(first)
            self.set_node_name(assign, _core.Graph.unique_name(self, f"{name}/Assign"))
            self.set_node_name(assign + 1, _core.Graph.unique_name(self, f"{name}/Initialized"))
        finally:
            self.scope, self.control_scope, self.names_nodes = scope, controls, True
        self._facts_by_name[name] = (operation, assign, first, reading)

    def initial_value_of(self, variable: Any) -> Any:
        """The tensor that is its first value."""
        return self._facts_by_name[variable._name][2]

    def reading_of(self, variable: Any) -> Any:
        """The tensor that reads the variable, and runs nothing else."""
        return self._facts_by_name[variable._name][3]

    def load_variable(self, variable: Any, value: Any, session: Any) -> None:
        """Puts a value into a variable, in a session."""
        session = session or self.default_session()
        if session is None:
            raise ValueError("Either session argument should be provided or default session should be established")
        session.set_variable(variable, value)
