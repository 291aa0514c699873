"""Which strategy and which replica a thread is in: `tf.distribute.get_strategy`, `tf.distribute.ReplicaContext`."""

from __future__ import annotations

import enum
from collections.abc import Callable
from threading import local
from typing import Any

from tapeflow._src.namespace import public


@public("distribute.ReduceOp")
class ReduceOp(enum.Enum):
    """How the values of several replicas become one.

    >>> tf.distribute.ReduceOp.SUM
    <ReduceOp.SUM: 'SUM'>
    """

    SUM = "SUM"
    MEAN = "MEAN"


def as_reduce_op(reduce_op: Any) -> ReduceOp:
    """The member that is meant by "SUM", "mean" or a member."""
    return reduce_op if isinstance(reduce_op, ReduceOp) else ReduceOp(str(reduce_op).upper())


@public("distribute.ReplicaContext")
class ReplicaContext:
    """What a function knows of its replica while a strategy runs it.

    >>> tf.distribute.get_replica_context().num_replicas_in_sync
    1
    """

    def __init__(self, strategy: Any, replica_id_in_sync_group: int) -> None:
        self._strategy, self._id = strategy, replica_id_in_sync_group

    strategy = property(lambda self: self._strategy, doc="The strategy that runs the replica.")
    replica_id_in_sync_group = property(lambda self: self._id, doc="The number of the replica, from 0.")
    num_replicas_in_sync = property(lambda self: self._strategy.num_replicas_in_sync, doc="How many there are.")
    devices = property(lambda self: ("",), doc="Where the replica runs.")

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
        """The values of all replicas as one: with one replica, `value` itself."""
        as_reduce_op(reduce_op)
        return value

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """The values of all replicas, joined along an axis: with one replica, `value` itself."""
        return value

    def merge_call(self, merge_fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """Calls `merge_fn(strategy, *args)` once for all replicas."""
        with inside(self._strategy, None):
            return merge_fn(self._strategy, *args, **(kwargs or {}))


class _Places(local):
    """The strategies and replicas that surround the caller, outermost first; empty where there is no strategy."""

    def __init__(self) -> None:
        self.stack: list[tuple[Any, ReplicaContext | None]] = []


_places = _Places()
_default: list[Any] = []  # the default strategy and its only replica


def set_default(strategy: Any) -> None:
    """Says which strategy holds where the program names none."""
    _default[:] = [strategy, ReplicaContext(strategy, 0)]


class inside:  # noqa: N801  a context manager
    """A block in which a strategy is in force, in one of its replicas or, with None, outside of them."""

    __slots__ = ("_place",)

    def __init__(self, strategy: Any, replica: ReplicaContext | None) -> None:
        if strategy is _default[0]:
            replica = _default[1]
        self._place = (strategy, replica)

    def __enter__(self) -> Any:
        _places.stack.append(self._place)
        return self._place[0]

    def __exit__(self, *exception: object) -> None:
        _places.stack.pop()


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
    return get_strategy() is not _default[0]


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
