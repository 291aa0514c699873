"""`tf.distribute.Strategy`: how a program's steps run in several replicas, in this process and in others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.config import list_logical_devices
from tapeflow._src.distribute import collectives, replicas
from tapeflow._src.distribute.communicator import Communicator, OneProcess
from tapeflow._src.distribute.context import (
    ReduceOp,
    ReplicaContext,
    as_reduce_op,
    get_replica_context,
    inside,
    set_default,
    updating,
)
from tapeflow._src.distribute.input import (
    DistributedDataset,
    InputContext,
    distributed,
    from_function,
)
from tapeflow._src.distribute.options import pack_size
from tapeflow._src.distribute.values import DistributedValues, PerReplica, regroup, select
from tapeflow._src.distribute.variables import creator
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import float32
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.variables import variable_creator_scope

_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:{}"


@public("distribute.StrategyExtended")
class StrategyExtended:
    """What libraries ask of a strategy, beyond what programs do.

    >>> v = tf.Variable(1.)
    >>> tf.distribute.get_strategy().extended.update(v, lambda v, x: v.assign_add(x), args=(2.,)).numpy()
    np.float32(3.0)
    """

    experimental_require_static_shapes = False

    def __init__(self, container_strategy: Any) -> None:
        self._strategy = container_strategy

    def update(self, var: Any, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, group: bool = True) -> Any:
        """Calls `fn(var, *args)` for each copy of a variable: a process has one. Without `group`, gives a tuple."""
        with updating():
            result = fn(var, *select(args, 0), **select(kwargs or {}, 0))
        return result if group else (result,)

    def update_non_slot(
        self, colocate_with: Any, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, group: bool = True
    ) -> Any:
        """Calls `fn(*args)` where other variables are kept."""
        with updating():
            result = fn(*select(args, 0), **select(kwargs or {}, 0))
        return result if group else (result,)

    def colocate_vars_with(self, colocate_with_variable: Any) -> AbstractContextManager[None]:
        """A block in which new variables are kept with another one: all are kept by the process."""
        return nullcontext()

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable belongs to this strategy."""
        return getattr(v, "_distribute_strategy", self._strategy) is self._strategy

    def value_container(self, value: Any) -> Any:
        """The variable of which `value` is the copy of one replica: itself."""
        return value

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any = None) -> Any:
        """The values of all replicas as one."""
        return self._strategy._reduce(as_reduce_op(reduce_op), value, options)

    def batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any, options: Any = None) -> list[Any]:
        """Like `reduce_to`, for several values at once."""
        values = [value for value, _ in value_destination_pairs]
        return list(self._strategy._reduce(as_reduce_op(reduce_op), values, options))

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """The tensor for each replica."""
        return tensor

    def call_for_each_replica(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """Calls `fn` in each replica, as `Strategy.run` does."""
        return self._strategy.run(fn, args, kwargs)

    def read_var(self, v: Any) -> Any:
        """The value of a variable."""
        return v.read_value()

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The devices of the replicas."""
        found: tuple[str, ...] = self._strategy._devices("worker_devices")
        return found

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The devices of the variables."""
        found: tuple[str, ...] = self._strategy._devices("parameter_devices")
        return found

    def _in_multi_worker_mode(self) -> bool:
        return bool(self._strategy._group.size > 1)

    @property
    def experimental_between_graph(self) -> bool:
        """Whether every process builds its own graphs."""
        return self._in_multi_worker_mode()

    @property
    def should_checkpoint(self) -> bool:
        """Whether this process writes checkpoints."""
        return bool(self._strategy._group.rank == 0)

    should_save_summary = should_checkpoint
    experimental_should_init = True
    _num_replicas_in_sync = property(lambda self: self._strategy.num_replicas_in_sync)
    _global_batch_size = True


@public("distribute.Strategy")
class Strategy:
    """How steps are run and variables kept; `tf.distribute.get_strategy()` gives the one that is in force.

    >>> strategy = tf.distribute.get_strategy()
    >>> strategy.run(lambda x: x + 1, args=(2,))
    3
    """

    def __init__(self, extended: Any = None) -> None:
        self._begin(1, OneProcess(), None)

    def _begin(self, replicas_here: int, group: Communicator, options: Any) -> None:
        self._replicas_here, self._group, self._options = replicas_here, group, options
        self._local_devices = tuple(_DEVICE.format(number) for number in range(replicas_here))
        self._extended = StrategyExtended(self)
        first = group.rank * replicas_here
        self._contexts = [ReplicaContext(self, first + number, number) for number in range(replicas_here)]

    extended = property(lambda self: self._extended, doc="What libraries ask of the strategy.")
    _should_use_with_coordinator = False  # no strategy here hands its steps to a coordinator of workers
    cluster_resolver = property(lambda self: None, doc="The machines: this one alone.")

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas work together."""
        return self._replicas_here * self._group.size

    def _devices(self, what: str) -> tuple[str, ...]:
        return self._local_devices

    # ---- running

    @contextmanager
    def scope(self) -> Iterator[Any]:
        """A block in which this strategy is in force: variables made in it belong to the strategy."""
        with inside(self, None):
            if self.num_replicas_in_sync == 1:
                yield self
            else:
                with variable_creator_scope(creator(self)):
                    yield self

    def run(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, options: Any = None) -> Any:
        """Calls `fn` in each replica, with its parts of the arguments; gives the results of this process's replicas."""
        replica = get_replica_context()
        if replica is not None and replica.strategy is self:
            raise RuntimeError("Strategy.run: it is called in a replica already; call it in the scope of the strategy.")
        return replicas.run_replicas(self._contexts, fn, tuple(args), kwargs or {})

    def _merge_call(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        return replicas.merge(self, function, args, kwargs)

    # ---- values of several replicas

    def reduce(self, reduce_op: Any, value: Any, axis: Any = None) -> Any:
        """The values of all replicas as one; with an axis, also the values along it."""
        operation = as_reduce_op(reduce_op)
        if axis is None:
            return self._reduce(operation, value, self._options)
        parts = [_along_axis(part, axis, operation) for part in self.experimental_local_results(value)]
        totals = self._reduce(ReduceOp.SUM, regroup([total for total, _ in parts]), self._options)
        if operation is ReduceOp.SUM:
            return totals
        counts = self._reduce(ReduceOp.SUM, regroup([count for _, count in parts]), self._options)
        return primitives.RealDiv(totals, cast(counts, totals.dtype))

    def _reduce(self, operation: ReduceOp, value: Any, options: Any) -> Any:
        """Called outside of replicas: sums over the replicas of this process, then over the processes."""
        leaves = nest.flatten(value)
        sums = [_add([_as_value(part) for part in self._parts(leaf)]) for leaf in leaves]
        return nest.pack_sequence_as(value, self._across_processes(operation, sums, options))

    def _parts(self, leaf: Any) -> tuple[Any, ...]:
        """The values of a leaf in the replicas of this process; one that is not distributed is the same in each."""
        if isinstance(leaf, DistributedValues):
            return tuple(leaf.values)
        return (leaf,) * self._replicas_here

    def _across_processes(self, operation: ReduceOp, sums: list[Any], options: Any) -> list[Any]:
        dense = [place for place, value in enumerate(sums) if _core.is_tensor(value)]
        for place, total in zip(
            dense,
            collectives.all_reduce(self._group, [sums[place] for place in dense], pack_size(options or self._options)),
        ):
            sums[place] = total
        for place, value in enumerate(sums):
            if isinstance(value, IndexedSlices) and self._group.size > 1:
                rows = collectives.all_gather(self._group, value.values)
                sums[place] = IndexedSlices(rows, collectives.all_gather(self._group, value.indices), value.dense_shape)
        if operation is ReduceOp.MEAN and self.num_replicas_in_sync > 1:
            return [_divided(value, self.num_replicas_in_sync) for value in sums]
        return sums

    def _all_reduce(self, operation: ReduceOp, value: Any, options: Any) -> Any:
        """Called in a replica."""
        if self.num_replicas_in_sync == 1:
            return value
        leaves = [_as_value(leaf) for leaf in nest.flatten(value)]
        if self._replicas_here == 1:
            reduced = self._across_processes(operation, leaves, options)
        else:
            reduced = self._all_reduce_here(operation, leaves, options)
        return nest.pack_sequence_as(value, reduced)

    def _all_reduce_here(self, operation: ReduceOp, leaves: list[Any], options: Any) -> list[Any]:
        def across(values: Any) -> list[Any]:
            def reduce(strategy: Any, *parts: Any) -> list[Any]:
                return list(strategy._reduce(operation, list(parts), options))

            return list(self._merge_call(reduce, tuple(values), {}))

        if any(isinstance(leaf, IndexedSlices) for leaf in leaves):
            return across(leaves)
        return collectives.linear(lambda *values: across(values), leaves, across, across)

    def _from_first_replica(self, value: Any) -> Any:
        """Called in a replica: the value of the first one of all."""

        def choose(strategy: Any, parts: Any) -> Any:
            return collectives.broadcast(self._group, strategy._parts(parts)[0])

        return self._merge_call(choose, (value,), {})

    def gather(self, value: Any, axis: int) -> Any:
        """The values of all replicas, joined along an axis."""
        parts = [convert_to_tensor(part) for part in self._parts(value)]
        here = parts[0] if len(parts) == 1 else primitives.ConcatV2(parts, axis)
        return _gather_along(self._group, here, axis)

    def _all_gather(self, value: Any, axis: int) -> Any:
        if self.num_replicas_in_sync == 1:
            return value
        if self._replicas_here == 1:
            return nest.map_structure(lambda leaf: _gather_along(self._group, convert_to_tensor(leaf), axis), value)

        def merge(strategy: Any, parts: Any) -> Any:
            return nest.map_structure(lambda leaf: strategy.gather(leaf, axis), parts)

        return self._merge_call(merge, (value,), {})

    def _share_initial_value(self, variable: Any) -> None:
        """All processes begin with the value of the first one."""
        if self._group.size > 1 and not _core.is_tracing():
            variable.assign(collectives.broadcast(self._group, variable.read_value()))

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The values of this process's replicas."""
        return value.values if isinstance(value, DistributedValues) else (value,)

    # ---- input

    def _input_context(self) -> InputContext:
        return InputContext(self._group.size, self._group.rank, self.num_replicas_in_sync)

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """The dataset, with each element split among the replicas."""
        return dataset if isinstance(dataset, DistributedDataset) else distributed(self, dataset, options)

    def distribute_datasets_from_function(self, dataset_fn: Callable[[Any], Any], options: Any = None) -> Any:
        """The dataset that the function makes for this process; its elements are batches of one replica."""
        return from_function(self, dataset_fn(self._input_context()))

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def experimental_distribute_values_from_function(self, value_fn: Callable[[Any], Any]) -> Any:
        """What the function gives for each replica."""
        values = [value_fn(ValueContext(c.replica_id_in_sync_group, self.num_replicas_in_sync)) for c in self._contexts]
        return PerReplica(values) if len(values) > 1 else values[0]


@public("distribute.experimental.ValueContext")
class ValueContext:
    """For which replica `experimental_distribute_values_from_function` asks a value.

    >>> tf.distribute.experimental.ValueContext(1, 4).replica_id_in_sync_group
    1
    """

    def __init__(self, replica_id_in_sync_group: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.replica_id_in_sync_group, self.num_replicas_in_sync = replica_id_in_sync_group, num_replicas_in_sync


class DefaultStrategy(Strategy):
    """The strategy of programs that name none."""

    def _devices(self, what: str) -> tuple[str, ...]:
        raise RuntimeError(f"{what}() method unsupported by default tf.distribute.Strategy.")

    def run(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, options: Any = None) -> Any:
        """Calls `fn`."""
        return fn(*args, **kwargs) if kwargs else fn(*args)

    def _reduce(self, operation: ReduceOp, value: Any, options: Any) -> Any:
        return value

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """The dataset itself."""
        return dataset

    def distribute_datasets_from_function(self, dataset_fn: Callable[[Any], Any], options: Any = None) -> Any:
        """The dataset that the function makes."""
        return dataset_fn(InputContext())


def _as_value(leaf: Any) -> Any:
    return leaf if isinstance(leaf, IndexedSlices) else convert_to_tensor(leaf)


def _add(values: list[Any]) -> Any:
    """The sum of the replicas of one process, in their order."""
    if len(values) == 1:
        return values[0]
    if isinstance(values[0], IndexedSlices):
        rows = primitives.ConcatV2([v.values for v in values], 0)
        return IndexedSlices(rows, primitives.ConcatV2([v.indices for v in values], 0), values[0].dense_shape)
    return primitives.AddN(values)


def _divided(value: Any, count: int) -> Any:
    if isinstance(value, IndexedSlices):
        return IndexedSlices(_divided(value.values, count), value.indices, value.dense_shape)
    if value.dtype.is_integer:
        return primitives.FloorDiv(value, primitives.Cast(count, value.dtype))
    return primitives.RealDiv(value, primitives.Cast(float(count), value.dtype))


def _along_axis(value: Any, axis: Any, operation: ReduceOp) -> tuple[Any, Any]:
    """The sum along an axis, and over how many elements it goes. A scalar is a sum of one element."""
    value = convert_to_tensor(value)
    if operation is ReduceOp.MEAN and value.dtype.is_integer:
        value = cast(value, float32)
    rank = value.shape.rank
    if rank == 0 and axis in (0, -1):
        return value, convert_to_tensor(1.0)
    if rank is not None and isinstance(axis, int) and not -rank <= axis < rank:
        raise ValueError(f"Strategy.reduce: `axis` = {axis} out of range for `value` with rank {rank}")
    count = primitives.GatherV2(primitives.Shape(value), axis, 0)
    return primitives.Sum(value, axis), cast(count, float32)


def _gather_along(group: Communicator, value: Any, axis: int) -> Any:
    if value.shape.rank == 0:
        raise ValueError("Strategy.gather: values must have at least one dimension; got a scalar")
    if axis < 0:
        axis += value.shape.rank
    if axis == 0 or group.size == 1:
        return collectives.all_gather(group, value)
    order = [axis, *(i for i in range(value.shape.rank) if i != axis)]
    gathered = collectives.all_gather(group, primitives.Transpose(value, order))
    return primitives.Transpose(gathered, [order.index(i) for i in range(len(order))])


def processor_numbers(who: str, devices: Any) -> list[int]:
    """The numbers of logical processors that names such as "CPU:1" or "/cpu:0" mean."""
    present = len(list_logical_devices("CPU"))
    numbers = []
    for device in devices:
        kind, _, number = str(device).rpartition("/")[2].removeprefix("device:").upper().partition(":")
        if kind != "CPU" or not (number or "0").isdecimal():
            raise ValueError(f"{who}: this program has processors alone ('/cpu:0'); got {device!r}")
        numbers.append(int(number or 0))
    if len(set(numbers)) != len(numbers):
        raise ValueError(f"{who}: `devices` has duplicated entries: {list(devices)}")
    if numbers and max(numbers) >= max(present, len(numbers)):
        raise ValueError(
            f"{who}: device CPU:{max(numbers)} does not exist; there are {present} logical processors. "
            "tf.config.set_logical_device_configuration makes more of them."
        )
    return numbers


set_default(DefaultStrategy())
