"""`tf.distribute.Strategy`: how a program's steps run in several replicas, in this process and in others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.data.dataset import Dataset
from tapeflow._src.distribute import collectives, replicas
from tapeflow._src.distribute.communicator import Communicator, OneProcess, WithDeadline
from tapeflow._src.distribute.context import (
    ReduceOp,
    ReplicaContext,
    as_reduce_op,
    get_replica_context,
    get_strategy,
    inside,
    require_cross_replica_context,
    set_default,
)
from tapeflow._src.distribute.cross_device import added, divided, is_reduced_by
from tapeflow._src.distribute.devices import Processor
from tapeflow._src.distribute.extended import StrategyExtended
from tapeflow._src.distribute.input import (
    DistributedDataset,
    InputContext,
    InputReplicationMode,
    distributed,
    from_function,
    from_functions,
    input_iterator,
)
from tapeflow._src.distribute.keras_workers import train_together, work_together
from tapeflow._src.distribute.options import merged, pack_size, travels_narrow
from tapeflow._src.distribute.values import DistributedValues, Mirrored, regroup
from tapeflow._src.distribute.variables import creator
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.passing import group as group_operations
from tapeflow._src.types import nest
from tapeflow._src.types.device_names import device_name
from tapeflow._src.types.dtypes import float32, float64
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.variables import variable_creator_scope


@public("distribute.Strategy")
class Strategy:
    """How steps are run and variables kept; `tf.distribute.get_strategy()` gives the one that is in force.

    >>> strategy = tf.distribute.get_strategy()
    >>> strategy.run(lambda x: x + 1, args=(2,))
    3
    """

    def __init__(self, extended: Any = None) -> None:
        self._begin([Processor(device_name(0), 0)], OneProcess(), None)

    def _begin(self, processors: Sequence[Processor], group: Communicator, options: Any) -> None:
        """`processors` are those of this process's replicas."""
        replicas_here = len(processors)
        self._replicas_here, self._group, self._options = replicas_here, group, options
        self._processors = tuple(processor.number for processor in processors)
        self._local_devices = tuple(processor.name for processor in processors)
        self._extended = StrategyExtended(self)
        first = group.rank * replicas_here
        self._contexts = [ReplicaContext(self, first + number, number) for number in range(replicas_here)]
        # The sum of one tensor on the shortest way, where there is one: it gives None for what needs more.
        self._sum_at_once = getattr(group, "sum_at_once", None) if options is None and replicas_here == 1 else None

    extended = property(lambda self: self._extended, doc="What libraries ask of the strategy.")
    _reduction: Any = None  # the `CrossDeviceOps` of a program, where its results are not those of `_reduce`
    _mirrors_variables = True  # whether variables of a strategy with one replica are mirrored ones too
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
        require_cross_replica_context(self)
        entered = get_strategy() is self
        with inside(self, None):
            if entered:
                yield self
            else:
                with variable_creator_scope(creator(self)):
                    yield self

    @contextmanager
    def _at_replica(self, number: int) -> Iterator[None]:
        """A block that computes in the place of one of this process's replicas."""
        before = _core.place(self._processors[number] + 1, number, _core.current_place()[2])
        try:
            yield
        finally:
            _core.place(*before)

    def _at_first_device(self) -> AbstractContextManager[None]:
        """A block that computes in the place of the first replica; processor 0 needs no name."""
        return self._at_replica(0) if self._processors[0] else nullcontext()

    def configure(
        self, session_config: Any = None, cluster_spec: Any = None, task_type: Any = None, task_id: Any = None
    ) -> None:
        """Prepares for sessions of TensorFlow 1: nothing has to be, as they run in this process."""

    def update_config_proto(self, config_proto: Any) -> Any:
        """A copy of the settings of a session, as the strategy needs them: no setting depends on it."""
        return deepcopy(config_proto)

    def run(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, options: Any = None) -> Any:
        """Calls `fn` in each replica, with its parts of the arguments; gives the results of this process's replicas."""
        if not isinstance(args, (list, tuple)):
            raise ValueError(f"positional args must be a list or tuple, got {type(args)}")
        if not callable(fn):
            raise TypeError(f"Strategy.run: `fn` must be callable; got {fn!r}")
        with self.scope(), self._at_first_device():
            return replicas.run_replicas(self._contexts, fn, tuple(args), kwargs or {})

    def experimental_run(self, fn: Callable[..., Any], input_iterator: Any = None) -> Any:
        """Calls `fn` in each replica, with the next element of an iterator if there is one."""
        return self.run(fn, () if input_iterator is None else (input_iterator.get_next(),))

    def _merge_call(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        return replicas.merge(self, function, args, kwargs)

    # ---- values of several replicas

    def reduce(self, reduce_op: Any, value: Any, axis: Any) -> Any:
        """The values of all replicas as one; with an axis, also the values along it."""
        require_cross_replica_context(self)
        operation = as_reduce_op(reduce_op)
        if axis is None:
            return nest.map_structure(lambda leaf: self._reduce_one(operation, leaf, self._options), value)
        if any(isinstance(leaf, DistributedValues) for leaf in nest.flatten(value)) and nest.is_nested(value):
            return nest.map_structure(lambda leaf: self.reduce(operation, leaf, axis), value)
        parts = [_along_axis(part, axis, operation) for part in self._parts(value)]
        totals = self._reduce(ReduceOp.SUM, regroup([total for total, _ in parts]), self._options)
        if operation is ReduceOp.SUM:
            return totals
        counts = self._reduce(ReduceOp.SUM, regroup([count for _, count in parts]), self._options)
        return primitives.RealDiv(totals, cast(counts, totals.dtype))

    def _reduce_one(self, operation: ReduceOp, leaf: Any, options: Any) -> Any:
        """One leaf of a value; one that is not distributed is equal in all replicas of this process."""
        if isinstance(leaf, DistributedValues) or self._replicas_here == 1:
            return self._reduce(operation, leaf, options)
        if operation is ReduceOp.MEAN or (isinstance(leaf, (int, float)) and leaf == 0):
            return leaf
        raise ValueError(
            f"A non-DistributedValues value {leaf!s} cannot be reduced with the given reduce op {operation}."
        )

    def _reduce(self, operation: ReduceOp, value: Any, options: Any) -> Any:
        """Called outside of replicas: sums over the replicas of this process, then over the processes."""
        leaves = nest.flatten(value)
        if operation is ReduceOp.SUM:  # as in TensorFlow, one tensor that all replicas of a process share counts once
            parts = [tuple(x.values) if isinstance(x, DistributedValues) else (x,) for x in leaves]
        else:
            parts = [self._parts(leaf) for leaf in leaves]
        sums = [added([_as_value(part) for part in own]) for own in parts]
        return nest.pack_sequence_as(value, self._across_processes(operation, sums, options))

    def _parts(self, leaf: Any) -> tuple[Any, ...]:
        """The values of a leaf in the replicas of this process; one that is not distributed is the same in each."""
        if isinstance(leaf, DistributedValues):
            return tuple(leaf.values)
        return (leaf,) * self._replicas_here

    def _across_processes(
        self, operation: ReduceOp, sums: list[Any], options: Any, name: str = "all_reduce"
    ) -> list[Any]:
        dense = [place for place, value in enumerate(sums) if _core.is_tensor(value)]
        group, options = self._group_with(options), merged(options, self._options)
        if dense and group.size > 1:
            values, narrow = [sums[place] for place in dense], travels_narrow(options)
            totals = collectives.all_reduce(group, values, pack_size(options), name, narrow)
            for place, total in zip(dense, totals):
                sums[place] = total
        for place, value in enumerate(sums):
            if isinstance(value, IndexedSlices) and group.size > 1:
                rows = collectives.all_gather(group, value.values)
                sums[place] = IndexedSlices(rows, collectives.all_gather(group, value.indices), value.dense_shape)
        if operation is ReduceOp.MEAN and self.num_replicas_in_sync > 1:
            return [divided(value, self.num_replicas_in_sync) for value in sums]
        return sums

    def _group_with(self, options: Any) -> Communicator:
        """The processes, with the deadline that options of a call name."""
        seconds = getattr(options, "timeout_seconds", None)
        return self._group if seconds is None or self._group.size == 1 else WithDeadline(self._group, seconds)

    def _all_reduce(self, operation: ReduceOp, value: Any, options: Any, name: str = "all_reduce") -> Any:
        """Called in a replica."""
        if self.num_replicas_in_sync == 1:
            return value
        leaves = [_as_value(leaf) for leaf in nest.flatten(value)]
        if self._replicas_here == 1:
            reduced = self._across_processes(operation, leaves, options, name)
        else:
            reduced = self._all_reduce_here(operation, leaves, options)
        return nest.pack_sequence_as(value, reduced)

    def _all_reduce_here(self, operation: ReduceOp, leaves: list[Any], options: Any) -> list[Any]:
        def across(values: Any) -> list[Any]:
            def reduce(strategy: Any, *parts: Any) -> list[Any]:
                if self._reduction is not None:
                    pairs = [(part, part) for part in parts]
                    reduced: list[Any] = self._extended.batch_reduce_to(operation, pairs, options)
                    return reduced
                reduced = list(strategy._reduce(operation, list(parts), options))
                return [self._for_each_replica(value) for value in reduced]

            return list(self._merge_call(reduce, tuple(values), {}))

        if any(isinstance(leaf, IndexedSlices) for leaf in leaves):
            return across(leaves)

        def again(values: Any) -> list[Any]:
            return self._all_reduce_here(operation, list(values), options)

        return collectives.linear(lambda *values: across(values), leaves, again, again)

    def _for_each_replica(self, value: Any) -> Any:
        """A value as one tensor for each replica of this process."""
        if isinstance(value, IndexedSlices):
            parts = zip(self._for_each_replica(value.values).values, self._for_each_replica(value.indices).values)
            return Mirrored([IndexedSlices(rows, indices, value.dense_shape) for rows, indices in parts])
        return Mirrored([value, *(primitives.Identity(value) for _ in range(1, self._replicas_here))])

    def _from_first_replica(self, value: Any) -> Any:
        """Called in a replica: the value of the first one of all."""

        def choose(strategy: Any, parts: Any) -> Any:
            first = convert_to_tensor(strategy._parts(parts)[0])
            if is_reduced_by(self._reduction, first):
                return self._extended.broadcast_to(first, parts)
            return self._for_each_replica(collectives.broadcast(self._group, first))

        if self._replicas_here == 1:
            return collectives.broadcast(self._group, value)
        return self._merge_call(choose, (value,), {})

    def gather(self, value: Any, axis: int) -> Any:
        """The values of all replicas, joined along an axis. One that is not distributed is the value of a process."""
        require_cross_replica_context(
            self,
            "tf.distribute.Strategy.gather method requires cross-replica context, use "
            "get_replica_context().all_gather() instead",
        )
        return nest.map_structure(lambda leaf: self._gather(leaf, axis), value)

    def _gather(self, leaf: Any, axis: int, destinations: Any = None) -> Any:
        own = self.experimental_local_results(leaf)
        if any(isinstance(part, IndexedSlices) for part in own):
            raise NotImplementedError("gather does not support IndexedSlices")
        parts = [convert_to_tensor(part) for part in own]
        if isinstance(leaf, DistributedValues) and any(part.shape.rank == 0 for part in parts):
            raise ValueError("Strategy.gather: values must have at least one dimension; got scalars")
        rank = parts[0].shape.rank
        if rank is not None and not -rank <= axis < rank:
            raise ValueError(f"Strategy.gather: `axis` = {axis} out of range for `value` with rank {rank}")
        if len(parts) > 1 and is_reduced_by(self._reduction, leaf):
            return self._reduction._gather(leaf, destinations or self._local_devices[0], axis, self._options)
        here = parts[0] if len(parts) == 1 else primitives.ConcatV2(parts, axis)
        return here if self._group.size == 1 else _gather_along(self._group, here, axis)

    def _all_gather(self, value: Any, axis: int, options: Any) -> Any:
        if self.num_replicas_in_sync == 1:
            return value
        if any(isinstance(leaf, IndexedSlices) for leaf in nest.flatten(value)):
            raise NotImplementedError("all_gather does not support IndexedSlices")
        leaves = [convert_to_tensor(leaf) for leaf in nest.flatten(value)]
        if any(leaf.shape.rank == 0 for leaf in leaves):
            raise ValueError("ReplicaContext.all_gather: values must have at least one dimension; got a scalar")
        for leaf in leaves:
            rank = leaf.shape.rank
            if rank is not None and not -rank <= axis < rank:
                raise ValueError(
                    f"ReplicaContext.all_gather: `axis` = {axis} out of range for `value` with rank {rank}"
                )
        if self._replicas_here == 1:
            gathered = [_gather_along(self._group_with(options), leaf, axis) for leaf in leaves]
        else:
            gathered = [self._all_gather_here(leaf, axis) for leaf in leaves]
        return nest.pack_sequence_as(value, gathered)

    def _all_gather_here(self, leaf: Any, axis: int) -> Any:
        """Called in one of several replicas of this process. The cotangent of a part is its rows of the sum of all."""
        rows: list[Any] = []

        def gather(value: Any) -> list[Any]:
            def join(strategy: Any, parts: Any) -> Any:
                sizes = [primitives.Reshape(primitives.Shape(part)[axis], [1]) for part in strategy._parts(parts)]
                counts = _gather_along(self._group, primitives.ConcatV2(sizes, 0), 0)
                gathered = strategy._gather(parts, axis, parts)
                whole = isinstance(gathered, DistributedValues)  # it is in all replicas already
                return gathered if whole else self._for_each_replica(gathered), self._for_each_replica(counts)

            joined, counts = self._merge_call(join, (value,), {})
            number = int(get_replica_context()._replica_id)  # type: ignore[union-attr]
            begin = primitives.Sum(counts[:number], 0)
            rows[:] = [primitives.Range(begin, begin + counts[number], primitives.Cast(1, begin.dtype))]
            return [joined]

        def backward(dys: Any) -> list[Any]:
            return [primitives.GatherV2(self._all_reduce(ReduceOp.SUM, dys[0], None), rows[0], axis)]

        def forward(tangents: Any) -> list[Any]:
            return [self._all_gather_here(tangents[0], axis)]

        return collectives.linear(gather, [leaf], backward, forward)[0]

    def _share_initial_value(self, variable: Any) -> None:
        """All processes begin with the value of the first one."""
        if self.num_replicas_in_sync > 1:
            train_together()
        if self._group.size > 1 and not _core.is_tracing():
            work_together(self._group)
            name = f"broadcast of the initial value of variable {variable.name}"
            variable.assign(collectives.broadcast(self._group, variable.read_value(), name))

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The values of this process's replicas; of a structure, one structure for each replica."""
        if isinstance(value, DistributedValues):
            return tuple(value.values)
        if not any(isinstance(leaf, DistributedValues) for leaf in nest.flatten(value)):
            return (value,)
        leaves = [self._parts(leaf) for leaf in nest.flatten(value)]
        return tuple(nest.pack_sequence_as(value, list(own)) for own in zip(*leaves))

    # ---- input

    def _input_context(self) -> InputContext:
        return InputContext(self._group.size, self._group.rank, self.num_replicas_in_sync)

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """The dataset, with each element split among the replicas."""
        return dataset if isinstance(dataset, DistributedDataset) else distributed(self, dataset, options)

    def distribute_datasets_from_function(self, dataset_fn: Callable[[Any], Any], options: Any = None) -> Any:
        """The dataset that the function makes for this process; its elements are batches of one replica."""
        mode = getattr(options, "experimental_replication_mode", InputReplicationMode.PER_WORKER)
        if mode == InputReplicationMode.PER_REPLICA:
            contexts = [
                InputContext(self.num_replicas_in_sync, int(c._replica_id), self.num_replicas_in_sync)
                for c in self._contexts
            ]
            return from_functions(self, [dataset_fn(context) for context in contexts])
        return from_function(self, dataset_fn(self._input_context()))

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    unwrap = experimental_local_results

    def group(self, value: Any, name: str | None = None) -> Any:
        """One operation that waits for the values of all replicas of this process."""
        return group_operations(*self.experimental_local_results(value), name=name)

    def colocate_vars_with(self, colocate_with_variable: Any) -> AbstractContextManager[None]:
        """A block in which new variables are kept with another one."""
        return self._extended.colocate_vars_with(colocate_with_variable)

    def make_dataset_iterator(self, dataset: Any) -> Any:
        """An iterator over a dataset whose elements are split among the replicas, as TensorFlow 1 has it."""
        return input_iterator(self.experimental_distribute_dataset(dataset))

    def make_input_fn_iterator(
        self, input_fn: Callable[[Any], Any], replication_mode: Any = InputReplicationMode.PER_WORKER
    ) -> Any:
        """An iterator over the dataset that the function makes for this process, as TensorFlow 1 has it."""
        if replication_mode != InputReplicationMode.PER_WORKER:
            raise ValueError(
                f"make_input_fn_iterator: Input replication mode not supported: {replication_mode!r}. Use PER_WORKER."
            )
        return input_iterator(self.distribute_datasets_from_function(input_fn))

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Any:
        """The rows of arrays, in any structure, as a dataset. Lists of arrays are stacked."""
        return Dataset.from_tensor_slices(numpy_input)

    def experimental_distribute_values_from_function(self, value_fn: Callable[[Any], Any]) -> Any:
        """What the function gives for each replica."""
        values = [value_fn(ValueContext(int(c._replica_id), self.num_replicas_in_sync)) for c in self._contexts]
        return regroup(values, always_wrap=True)


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

    _mirrors_variables = False

    def _devices(self, what: str) -> tuple[str, ...]:
        raise RuntimeError(f"{what}() method unsupported by default tf.distribute.Strategy.")

    @contextmanager
    def scope(self) -> Iterator[Any]:
        """A block in which no other strategy is in force."""
        with inside(self, None):
            yield self

    def reduce(self, reduce_op: Any, value: Any, axis: Any) -> Any:
        """The value, summed or averaged along the axis."""
        if axis is not None:
            return super().reduce(reduce_op, value, axis)
        require_cross_replica_context(self)
        as_reduce_op(reduce_op)
        return value

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


def _along_axis(value: Any, axis: Any, operation: ReduceOp) -> tuple[Any, Any]:
    """The sum along an axis, and over how many elements it goes. A scalar is a sum of one element."""
    value = convert_to_tensor(value)
    if operation is ReduceOp.MEAN and value.dtype.is_integer:
        value = cast(value, float32 if value.dtype.size < 4 else float64)
    rank = value.shape.rank
    if rank == 0 and axis in (0, -1):
        return value, convert_to_tensor(1.0)
    axes = [axis] if isinstance(axis, int) else list(axis)
    if rank is not None and not all(-rank <= one < rank for one in axes):
        raise ValueError(f"Strategy.reduce: `axis` = {axis} out of range for `value` with rank {rank}")
    shape, size = primitives.Shape(value), convert_to_tensor(1)
    for one in axes:
        size = size * shape[one]
    return primitives.Sum(value, axes), cast(size, float32)


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


set_default(DefaultStrategy())
