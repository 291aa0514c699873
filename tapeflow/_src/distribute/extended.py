"""`tf.distribute.StrategyExtended`: what libraries ask of a strategy."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tapeflow._src.data.dataset import Dataset
from tapeflow._src.distribute.context import (
    ReduceOp,
    as_reduce_op,
    get_replica_context,
    get_strategy,
    has_strategy,
    is_default,
    updating,
)
from tapeflow._src.distribute.cross_device import is_reduced_by, on_devices
from tapeflow._src.distribute.multi_step import MultiStepContext, run_steps
from tapeflow._src.distribute.values import DistributedValues, DistributedVariable, Mirrored, regroup, select
from tapeflow._src.namespace import public
from tapeflow._src.types import nest


@public("distribute.StrategyExtended")
class StrategyExtended:
    """What libraries ask of a strategy, beyond what programs do.

    >>> v = tf.Variable(1.)
    >>> tf.distribute.get_strategy().extended.update(v, lambda v, x: v.assign_add(x), args=(2.,)).numpy()
    np.float32(3.0)
    """

    experimental_require_static_shapes = False
    experimental_enable_get_next_as_optional = True

    def __init__(self, container_strategy: Any) -> None:
        self._strategy = container_strategy

    def update(self, var: Any, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, group: bool = True) -> Any:
        """Calls `fn(var, *args)` for each copy of a variable in this process. Without `group`, gives a tuple."""
        strategy, kwargs = self._strategy, kwargs or {}
        if strategy.num_replicas_in_sync > 1 and not isinstance(var, DistributedVariable):
            raise AssertionError(
                f"Strategy.extended.update: the variable {getattr(var, 'name', var)!r} was not created in the scope of "
                "the strategy, so its replicas would differ. Create variables, models and optimizers inside "
                "`with strategy.scope():`."
            )
        if not isinstance(var, DistributedVariable) or strategy._replicas_here == 1:
            with updating():
                result = fn(var, *select(args, 0), **select(kwargs, 0))
            return result if group else (result,)
        replica = get_replica_context()
        if replica is not None and replica.strategy is strategy:  # it updates its own copy
            with updating():
                result = fn(var.values[replica.local_id], *args, **kwargs)
            return result if group else (result,)
        results = []
        for number, copy in enumerate(var.values):
            with updating(), strategy._at_replica(number):
                results.append(fn(copy, *select(args, number), **select(kwargs, number)))
        return regroup(results) if group else tuple(results)

    def update_non_slot(
        self, colocate_with: Any, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, group: bool = True
    ) -> Any:
        """Calls `fn(*args)` where other variables are kept."""
        results = []
        for number in range(self._strategy._replicas_here):
            with updating(), self._strategy._at_replica(number):
                results.append(fn(*select(args, number), **select(kwargs or {}, number)))
        return regroup(results) if group else tuple(results)

    def colocate_vars_with(self, colocate_with_variable: Any) -> AbstractContextManager[None]:
        """A block in which new variables are kept with another one: all are kept by the process."""
        current = get_strategy()
        if current is not self._strategy and max(current.num_replicas_in_sync, self._strategy.num_replicas_in_sync) > 1:
            if has_strategy():
                raise RuntimeError(
                    f"Mixing different tf.distribute.Strategy objects: {current} is not {self._strategy}"
                )
            raise RuntimeError(f'Need to be inside "with strategy.scope()" for {self._strategy}')
        return nullcontext()

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable belongs to this strategy."""
        made_by = getattr(v, "_distribute_strategy", None)
        return made_by is (None if is_default(self._strategy) else self._strategy)

    def value_container(self, value: Any) -> Any:
        """The variable of which `value` is the copy of one replica, or else the value itself."""
        container = getattr(value, "_distributed_container", None)
        return value if container is None else container()

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any = None) -> Any:
        """The values of all replicas as one, on the devices of a variable or of another value, or on a named one."""
        operation = as_reduce_op(reduce_op)
        if operation is ReduceOp.MEAN and isinstance(value, (Mirrored, DistributedVariable)):
            return value
        if self._strategy._replicas_here == 1:  # one message for all of a structure
            reduced = self._strategy._reduce(operation, value, options)
            return nest.map_structure(lambda leaf: on_devices(leaf, destinations), reduced)

        def reduce(leaf: Any) -> Any:
            if isinstance(leaf, DistributedValues) and isinstance(destinations, DistributedValues):
                own = self._strategy._reduction
                if is_reduced_by(own, leaf):
                    return own.reduce(operation, leaf, destinations, options)
            reduced = self._strategy._reduce_one(operation, leaf, options)
            return reduced if reduced is leaf else on_devices(reduced, destinations)

        return nest.map_structure(reduce, value)

    def batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any, options: Any = None) -> list[Any]:
        """Like `reduce_to`, for several values at once."""
        pairs, operation = list(value_destination_pairs), as_reduce_op(reduce_op)
        own = self._strategy._reduction
        mine = [place for place, (value, _) in enumerate(pairs) if is_reduced_by(own, value)]
        found = dict(zip(mine, own.batch_reduce(operation, [pairs[place] for place in mine], options))) if mine else {}
        rest = [place for place in range(len(pairs)) if place not in found]
        reduced = self._strategy._reduce(operation, [pairs[place][0] for place in rest], options)
        found |= {place: on_devices(value, pairs[place][1]) for place, value in zip(rest, reduced)}
        return [found[place] for place in range(len(pairs))]

    def broadcast_to(self, tensor: Any, destinations: Any) -> Any:
        """The tensor on the devices of a variable or of another value, or on a named one."""
        if isinstance(tensor, (int, float)):
            return tensor
        own = self._strategy._reduction
        return own.broadcast(tensor, destinations) if is_reduced_by(own, tensor) else on_devices(tensor, destinations)

    def call_for_each_replica(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """Calls `fn` in each replica, as `Strategy.run` does."""
        return self._strategy.run(fn, args, kwargs)

    def experimental_run_steps_on_iterator(
        self, fn: Callable[..., Any], iterator: Any, iterations: int = 1, initial_loop_values: Any = None
    ) -> MultiStepContext:
        """Calls `fn(context, element)` for so many elements of an iterator, as TensorFlow 1's strategies do.

        `context.set_last_step_output` names outputs, which `last_step_outputs` of the result gives; those that no step
        names are the `initial_loop_values`. In a graph, `run_op` of the result runs the steps.
        """
        return run_steps(self._strategy, fn, iterator, iterations, initial_loop_values)

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: Any = None) -> Any:
        """The rows of arrays as a dataset."""
        return Dataset.from_tensor_slices(numpy_input)

    def non_slot_devices(self, var_list: Any) -> tuple[str, ...]:
        """The devices of variables that belong to no other variable: those of the replicas."""
        return self.parameter_devices

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

    @property
    def worker_devices_by_replica(self) -> tuple[tuple[str, ...], ...]:
        """The devices of each replica: one."""
        return tuple((device,) for device in self.worker_devices)

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
    _cluster_resolver = property(lambda self: self._strategy.cluster_resolver)
    _task_type = property(lambda self: self._cluster_resolver.task_type)
    _task_id = property(lambda self: self._cluster_resolver.task_id)
    _id_in_cluster = property(lambda self: self._strategy._group.rank)
    _num_replicas_in_sync = property(lambda self: self._strategy.num_replicas_in_sync)
    _global_batch_size = True
