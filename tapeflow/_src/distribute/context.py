"""Which strategy and which replica a thread is in: `tf.distribute.get_strategy`, `tf.distribute.ReplicaContext`."""

from __future__ import annotations

import enum
from collections.abc import Callable
from threading import local
from typing import Any

from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.dtypes import int32
from tapeflow._src.types.enums import VariableAggregationV2 as VariableAggregation


@public("distribute.ReduceOp")
class ReduceOp(enum.Enum):
    """How the values of several replicas become one.

    >>> tf.distribute.ReduceOp.SUM
    <ReduceOp.SUM: 'SUM'>
    """

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation: Any) -> ReduceOp:
        """The reduction that merges assignments to a variable with this aggregation."""
        if aggregation == VariableAggregation.SUM:
            return ReduceOp.SUM
        if aggregation == VariableAggregation.MEAN:
            return ReduceOp.MEAN
        raise ValueError(
            f"Could not convert from `tf.VariableAggregation` {aggregation} to`tf.distribute.ReduceOp` type"
        )


def as_reduce_op(reduce_op: Any) -> ReduceOp:
    """The member that is meant by "SUM", "mean" or a member."""
    return reduce_op if isinstance(reduce_op, ReduceOp) else ReduceOp(str(reduce_op).upper())


_SUM = (ReduceOp.SUM, "SUM")
_IN_REPLICA = "Method requires being in cross-replica context, use get_replica_context().merge_call()"


@public("distribute.ReplicaContext")
class ReplicaContext:
    """What a function knows of its replica while a strategy runs it.

    >>> tf.distribute.get_replica_context().num_replicas_in_sync
    1
    """

    def __init__(self, strategy: Any, replica_id_in_sync_group: int, local_id: int = 0) -> None:
        self._strategy, self._id, self.local_id = strategy, replica_id_in_sync_group, local_id

    strategy = property(lambda self: self._strategy, doc="The strategy that runs the replica.")

    @property
    def replica_id_in_sync_group(self) -> Any:
        """The number of the replica, from 0; a tensor, except in the default strategy."""
        return self._id if self._strategy is _default[0] else convert_to_tensor(self._id, int32)

    _replica_id = property(lambda self: self._id)
    num_replicas_in_sync = property(lambda self: self._strategy.num_replicas_in_sync, doc="How many there are.")

    @property
    def devices(self) -> tuple[str, ...]:
        """Where the replica runs."""
        devices = self._strategy._local_devices
        return (devices[self.local_id],) if devices else ("",)

    @property
    def device_number(self) -> int:
        """The number of the logical processor on which the replica runs."""
        return int(self._strategy._processors[self.local_id])

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
        """The values of all replicas as one, in any structure; sparse gradients stay sparse."""
        sum_at_once = self._strategy._sum_at_once
        if sum_at_once is not None and options is None and reduce_op in _SUM:
            total = sum_at_once(value)
            if total is not None:
                return total
        return self._strategy._all_reduce(as_reduce_op(reduce_op), value, options)

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """The values of all replicas, joined along an axis, in which they may differ."""
        return self._strategy._all_gather(value, axis, options)

    def merge_call(self, merge_fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """Calls `merge_fn(strategy, *args)` once for all replicas of this process, with their arguments together."""
        return self._strategy._merge_call(merge_fn, args, kwargs or {})

    def __enter__(self) -> None:
        _places.stack.append((self._strategy, self))

    def __exit__(self, *exception: object) -> None:
        _places.stack.pop()


def require_cross_replica_context(strategy: Any, in_replica: str = _IN_REPLICA) -> None:
    """Raises TensorFlow's error in a replica, and in the scope of another strategy."""
    current = get_strategy()
    if strategy is _default[0]:
        if get_replica_context() is strategy._contexts[0]:  # in its `run`
            raise RuntimeError(in_replica)
        return
    if current is _default[0]:
        return
    if current is not strategy:
        raise RuntimeError(f"Mixing different tf.distribute.Strategy objects: {current} is not {strategy}")
    if get_replica_context() is not None:
        raise RuntimeError(in_replica)


class _Places(local):
    """The strategies and replicas that surround the caller, outermost first; empty where there is no strategy."""

    def __init__(self) -> None:
        self.stack: list[tuple[Any, ReplicaContext | None]] = []
        self.updating = 0  # how many `Strategy.extended.update` surround the caller
        self.exporting = 0  # how many `exporting` surround the caller


_places = _Places()
_default: list[Any] = []  # the default strategy and its only replica


def set_default(strategy: Any) -> None:
    """Says which strategy holds where the program names none."""
    _default[:] = [strategy, ReplicaContext(strategy, 0)]


def is_default(strategy: Any) -> bool:
    """Whether a strategy is the one that holds where the program names none."""
    return strategy is _default[0]


class inside:  # noqa: N801  a context manager
    """A block in which a strategy is in force, in one of its replicas or, with None, outside of them."""

    __slots__ = ("_place",)

    def __init__(self, strategy: Any, replica: ReplicaContext | None) -> None:
        if is_default(strategy):
            replica = _default[1]
        self._place = (strategy, replica)

    def __enter__(self) -> Any:
        _places.stack.append(self._place)
        return self._place[0]

    def __exit__(self, *exception: object) -> None:
        _places.stack.pop()


class merging(inside):  # noqa: N801  a context manager
    """A block outside of replicas, of the default strategy too: the function of a merge runs in it."""

    __slots__ = ()

    def __init__(self, strategy: Any) -> None:
        self._place = (strategy, None)


class updating:  # noqa: N801  a context manager
    """A block in which `Strategy.extended.update` changes a variable: assignments are not merged."""

    def __enter__(self) -> None:
        _places.updating += 1

    def __exit__(self, *exception: object) -> None:
        _places.updating -= 1


def is_updating() -> bool:
    """Whether the caller is inside of `Strategy.extended.update`."""
    return _places.updating > 0


class exporting:  # noqa: N801  a context manager
    """A block that traces functions for a file: variables stand for their first copies, as one process will have."""

    def __enter__(self) -> None:
        _places.exporting += 1

    def __exit__(self, *exception: object) -> None:
        _places.exporting -= 1


def is_exporting() -> bool:
    """Whether the caller is traced for a file."""
    return _places.exporting > 0


@public("distribute.get_strategy")
def get_strategy() -> Any:
    """The strategy that is in force: the one whose scope surrounds the caller, or else the default one.

    >>> tf.distribute.get_strategy().num_replicas_in_sync
    1
    """
    return _places.stack[-1][0] if _places.stack else _default[0]


@public("distribute.has_strategy")
def has_strategy() -> bool:
    """Whether the program has chosen a strategy for this place.

    >>> tf.distribute.has_strategy()
    False
    """
    return bool(_places.stack) and _places.stack[-1][0] is not _default[0]


@public("distribute.experimental_set_strategy")
def experimental_set_strategy(strategy: Any) -> None:
    """Puts a strategy in force from here on, without `with`; None takes it back.

    >>> tf.distribute.experimental_set_strategy(tf.distribute.OneDeviceStrategy("/cpu:0"))
    >>> tf.distribute.has_strategy()
    True
    >>> tf.distribute.experimental_set_strategy(None)
    """
    if len(_places.stack) > 1:
        raise RuntimeError("Must not be called inside a `tf.distribute.Strategy` scope.")
    _places.stack[:] = [] if strategy is None else [(strategy, None)]


@public("distribute.get_replica_context")
def get_replica_context() -> ReplicaContext | None:
    """The replica that runs the caller; None in the scope of a strategy, outside of its replicas.

    >>> tf.distribute.get_replica_context().replica_id_in_sync_group
    0
    """
    return _places.stack[-1][1] if _places.stack else _default[1]


@public("distribute.in_cross_replica_context")
def in_cross_replica_context() -> bool:
    """Whether the caller is in the scope of a strategy, outside of its replicas.

    >>> tf.distribute.in_cross_replica_context()
    False
    """
    return get_replica_context() is None
