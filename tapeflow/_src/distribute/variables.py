"""Variables of a strategy: mirrored ones, equal in all replicas, and ones that each replica changes by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np

from tapeflow._src import primitives, variables
from tapeflow._src.distribute import context
from tapeflow._src.distribute.collectives import broadcast
from tapeflow._src.distribute.context import ReduceOp
from tapeflow._src.distribute.values import DistributedValues, DistributedVariable, PerReplica, select
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.enums import VariableAggregationV2 as VariableAggregation
from tapeflow._src.types.enums import VariableSynchronization
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.types.tensor import Reference, Tensor
from tapeflow._src.types.trackable import Trackable


def _merged(strategy: Any, value: Tensor, aggregation: VariableAggregation, name: str) -> Any:
    """The values that all replicas assign, as one."""
    if aggregation == VariableAggregation.ONLY_FIRST_REPLICA:
        return strategy._from_first_replica(value)
    operation = ReduceOp.MEAN if aggregation == VariableAggregation.MEAN else ReduceOp.SUM
    if strategy._reduction is not None:
        return strategy._merge_call(_reduced, (operation, value), {})
    return strategy._all_reduce(operation, value, None, f"all_reduce of the assignment to variable {name}")


def _reduced(strategy: Any, operation: ReduceOp, parts: Any) -> Any:
    """What replicas assign, as one, by the strategy's `CrossDeviceOps`."""
    if isinstance(parts, DistributedValues):
        return strategy.extended.reduce_to(operation, parts, parts)
    return strategy._reduce(operation, [parts], None)[0]


def _merged_rows(strategy: Any, rows: IndexedSlices, aggregation: VariableAggregation, name: str) -> Any:
    """The rows that all replicas scatter, one after the other."""
    values, indices = convert_to_tensor(rows.values), convert_to_tensor(rows.indices)
    if aggregation == VariableAggregation.ONLY_FIRST_REPLICA:
        return IndexedSlices(strategy._from_first_replica(values), strategy._from_first_replica(indices))
    if aggregation == VariableAggregation.NONE:
        return rows
    operation = ReduceOp.MEAN if aggregation == VariableAggregation.MEAN else ReduceOp.SUM
    return strategy._all_reduce(operation, IndexedSlices(values, indices), None, f"all_gather of rows of {name}")


_NOT_LINEAR = ("scatter_min", "scatter_max", "scatter_update")  # they cannot be merged by a sum or mean


class MirroredVariable(variables.Variable, DistributedVariable):
    """A variable with a copy in each replica. In a replica it stands for the replica's copy, elsewhere for the first.

    An assignment in a replica is merged with those of the others by the variable's `aggregation`; one in the scope of
    the strategy is made in all replicas of this process. Its state is in attributes of the object alone: libraries
    derive wrappers from the class and hand on to the variable what the wrapper lacks.
    """

    _distribute_strategy: Any
    _copies: tuple[Any, ...]
    _container: Any  # a weak reference to the variable

    @property
    def _is_whole(self) -> bool:  # type: ignore[override]
        return self._container() is self

    def _assign(self, method: str, value: Any) -> Any:
        replica, strategy = context.get_replica_context(), self._distribute_strategy
        own = getattr(super(), method)
        if context.is_updating():
            return own(value)
        if replica is None or replica.strategy is not strategy:
            return self._assign_all(method, value)
        if self.aggregation != VariableAggregation.NONE:
            value = _merged(strategy, convert_to_tensor(value, self.dtype), self.aggregation, self.name)
        return own(value)

    def _assign_all(self, method: str, value: Any) -> Any:
        if not isinstance(value, DistributedValues):
            value = convert_to_tensor(value, self.dtype)
        getattr(super(), method)(select(value, 0))
        for number, copy in enumerate(self._copies, 1):
            getattr(copy, method)(select(value, number))
        return self

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Sets the value in all replicas."""
        return self._assign("assign", value)

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds to the value in all replicas."""
        return self._assign("assign_add", delta)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts from the value in all replicas."""
        return self._assign("assign_sub", delta)

    def _scatter(self, slices: Any, who: str, *combine: Any) -> Any:
        own, strategy = super()._scatter, self._distribute_strategy
        if context.is_updating() or not isinstance(slices, IndexedSlices):
            return own(slices, who, *combine)
        if who in _NOT_LINEAR and self.aggregation in (VariableAggregation.SUM, VariableAggregation.MEAN):
            raise NotImplementedError(
                f"{who} is only supported for mirrored variable (variable created within certain "
                "`tf.distribute.Strategy` scope) with NONE or `ONLY_FIRST_REPLICA` aggregation, got: "
                f"{self.aggregation}."
            )
        replica = context.get_replica_context()
        if replica is not None and replica.strategy is strategy:
            slices = _merged_rows(strategy, slices, self.aggregation, self.name)
            with context.updating():
                return own(slices, who, *combine)
        with context.updating():
            own(slices, who, *combine)
            for copy in self._copies:
                copy._scatter(slices, who, *combine)
        return self

    @property
    def values(self) -> tuple[Any, ...]:
        """The copies of this process's replicas."""
        first = self._container()._first_copy(variables.Variable)
        first._distributed_container = self._container
        return (first, *self._copies)

    @property
    def synchronization(self) -> VariableSynchronization:
        """When the copies are made equal: when they are written."""
        return VariableSynchronization.ON_WRITE

    @property
    def _replica_number(self) -> int | None:
        """The number of the replica of this variable's strategy that asks; None outside of its replicas."""
        replica = context.get_replica_context()
        if replica is None or replica.strategy is not self._distribute_strategy:
            return None
        return int(replica._replica_id)

    distribute_strategy = property(lambda self: self._distribute_strategy, doc="The strategy that made the variable.")
    _values = property(lambda self: self.values)
    _primary = property(lambda self: self.values[0])

    def _get(self) -> Any:
        replica = context.get_replica_context()
        return self.values[0 if replica is None else replica.local_id]

    __repr__ = DistributedValues.__repr__

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        with self._distribute_strategy.scope():
            return super().__deepcopy__(memo)


def mirrored(variable: Any, strategy: Any, copies: list[Any]) -> MirroredVariable:
    """A new variable as one of a strategy: it begins with the value that it has in the first process."""
    variable.__class__ = MirroredVariable
    variable._distribute_strategy = strategy
    variable._container = ref(variable)
    for copy in copies:
        copy._distributed_container = variable._container
    variable._copies = tuple(copies)
    if copies:
        variable._set_copies(variable._copies)
    return variable  # type: ignore[no-any-return]


class SyncOnReadVariable(DistributedVariable, Trackable):
    """A variable that each replica changes by itself; outside of replicas its value is the sum or mean of theirs."""

    is_tensor_like = True

    def __init__(self, strategy: Any, components: list[Any], aggregation: VariableAggregation) -> None:
        super().__init__(components)
        self._distribute_strategy, self._aggregation = strategy, aggregation
        self._unique_id = components[0]._unique_id

    distribute_strategy = property(lambda self: self._distribute_strategy, doc="The strategy that made the variable.")
    aggregation = property(lambda self: self._aggregation)
    synchronization = property(lambda self: VariableSynchronization.ON_READ)
    name = property(lambda self: self._values[0].name)
    _name = property(lambda self: self._values[0]._name)
    _shared_name = property(lambda self: self._values[0]._shared_name)
    dtype = property(lambda self: self._values[0].dtype)
    shape = property(lambda self: self._values[0].shape)
    trainable = property(lambda self: self._values[0].trainable)
    device = property(lambda self: self._get().device)
    constraint = property(lambda self: self._values[0].constraint)
    initializer = property(lambda self: None)
    op = property(lambda self: self._get().op)
    graph = property(lambda self: self._get().graph)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """`isinstance(v, tf.Variable)` holds, as it does for TensorFlow's variables of this kind."""
        return variables.Variable

    def _replica(self) -> Any:
        """The replica of this variable's strategy that asks; None outside of its replicas. A graph for a file is that
        of the first one."""
        if context.is_exporting():
            return self._distribute_strategy._contexts[0]
        replica = context.get_replica_context()
        return replica if replica is not None and replica.strategy is self._distribute_strategy else None

    def _get(self) -> Any:
        replica = self._replica()
        return self._values[0 if replica is None else replica.local_id]

    @property
    def handle(self) -> Any:
        """What checkpoints read and write: the merged value, or that of a replica where values are not merged."""
        merges = self._replica() is None and self._aggregation != VariableAggregation.NONE
        return self if merges else self._get().handle

    def _total(self) -> Any:
        """The value outside of replicas."""
        strategy = self._distribute_strategy
        values = [component.read_value() for component in self._values]
        if self._aggregation == VariableAggregation.ONLY_FIRST_REPLICA:
            return broadcast(strategy._group, values[0])
        if self._aggregation == VariableAggregation.NONE:
            raise _no_aggregation()
        operation = ReduceOp.MEAN if self._aggregation == VariableAggregation.MEAN else ReduceOp.SUM
        return strategy.reduce(operation, PerReplica(values) if len(values) > 1 else values[0], axis=None)

    def read_value(self) -> Any:
        """In a replica its own value; outside, the sum or mean of all."""
        return self._total() if self._replica() is None else self._get().read_value()

    value = read_value

    def numpy(self) -> Any:
        """The value as a NumPy array."""
        return self.read_value().numpy()

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        return convert_to_tensor(self.read_value(), dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.numpy(), dtype)

    def is_initialized(self, name: str | None = None) -> Any:
        """Whether the variable has a value."""
        return self._values[0].is_initialized()

    def _update(self, method: str, value: Any, args: Any) -> Any:
        if self._replica() is not None:
            return getattr(self._get(), method)(value, *args)
        value = convert_to_tensor(value, self.dtype)
        if self._aggregation == VariableAggregation.NONE:
            raise _no_aggregation()
        if method == "assign" and self._aggregation == VariableAggregation.SUM:
            replicas = self._distribute_strategy.num_replicas_in_sync
            if replicas > 1:
                value = primitives.Cast(
                    primitives.RealDiv(primitives.Cast(value, "float64"), float(replicas)), self.dtype
                )
        elif method != "assign" and self._aggregation == VariableAggregation.SUM:
            raise ValueError(
                f"SyncOnReadVariable does not support `{method}` in cross-replica context when aggregation is set to "
                "`tf.VariableAggregation.SUM`."
            )
        for component in self._values:
            getattr(component, method)(value, *args)
        return self

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Sets the value of the replica; outside of replicas, so that the sum or mean of all is `value`."""
        return self._update("assign", value, ())

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds to the value of the replica."""
        return self._update("assign_add", delta, ())

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts from the value of the replica."""
        return self._update("assign_sub", delta, ())

    def ref(self) -> Reference:
        """A hashable stand-in."""
        return Reference(self)

    def get_shape(self) -> Any:
        """The shape."""
        return self.shape

    __repr__ = DistributedValues.__repr__

    def _serialize_to_tensors(self) -> dict[str, Any]:
        return {"VARIABLE_VALUE": self._total()}

    def _restore_from_tensors(self, tensors: dict[str, Any]) -> Any:
        return self._update("assign", tensors["VARIABLE_VALUE"], ())


def _no_aggregation() -> ValueError:
    return ValueError(
        "Could not convert from `tf.VariableAggregation` VariableAggregationV2.NONE to`tf.distribute.ReduceOp` type"
    )


def _operator(name: str) -> Callable[..., Any]:
    def apply(self: SyncOnReadVariable, *operands: Any) -> Any:
        return getattr(self.read_value(), name)(*operands)

    return apply


def _refused(name: str) -> Callable[..., Any]:
    def refuse(self: SyncOnReadVariable, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"Variables with `synchronization=ON_READ` doesn't support `{name}`")

    return refuse


for _name in ("add", "sub", "mul", "div", "min", "max", "update"):
    setattr(SyncOnReadVariable, f"scatter_{_name}", _refused(f"scatter_{_name}"))
for _name in Tensor.OVERLOADABLE_OPERATORS:
    setattr(SyncOnReadVariable, _name, _operator(_name))
for _name in ("__float__", "__int__", "__bool__", "__index__", "__len__", "__iter__", "__format__"):
    setattr(SyncOnReadVariable, _name, _operator(_name))
SyncOnReadVariable.__hash__ = object.__hash__  # type: ignore[method-assign]


def creator(strategy: Any) -> Callable[..., Any]:
    """What `tf.Variable` and `tf.compat.v1.Variable` make in the scope of a strategy: a mirrored variable, or one on
    the device of the only replica."""

    def create(next_creator: Callable[..., Any], **arguments: Any) -> Any:
        if strategy.num_replicas_in_sync == 1 and not strategy._mirrors_variables:
            with strategy._at_first_device():
                variable = next_creator(**arguments)
            variable._distribute_strategy = strategy
            return variable
        synchronization = arguments.get("synchronization") or VariableSynchronization.AUTO
        aggregation = arguments.get("aggregation") or VariableAggregation.NONE
        if synchronization == VariableSynchronization.NONE:
            raise ValueError(
                "`NONE` variable synchronization mode is not supported with tf.distribute strategy. Please change the "
                f"`synchronization` for variable: {arguments.get('name')}"
            )
        on_read = synchronization == VariableSynchronization.ON_READ
        if not on_read:
            arguments["synchronization"] = VariableSynchronization.ON_WRITE
        elif arguments.get("trainable") is None:
            arguments["trainable"] = False
        with strategy._at_replica(0):
            first = next_creator(**arguments)
        if "_constructor_arguments" not in vars(type(first)):  # neither `tf.Variable` nor TensorFlow 1's
            return first
        strategy._share_initial_value(first)
        copies = []
        if strategy._replicas_here > 1:
            value = first.initialized_value() if first.graph is not None else convert_to_tensor(first.numpy())
            numbers = range(1, strategy._replicas_here)
            copies = [_copy(strategy, next_creator, arguments, value, number) for number in numbers]
        if on_read:
            return SyncOnReadVariable(strategy, [first, *copies], aggregation)
        return mirrored(first, strategy, copies)

    return create


def _copy(strategy: Any, next_creator: Callable[..., Any], arguments: dict[str, Any], value: Any, number: int) -> Any:
    changed = {"initial_value": value, "name": f"{arguments.get('name') or 'Variable'}/replica_{number}"}
    with strategy._at_replica(number):
        return next_creator(**{**arguments, **changed})
