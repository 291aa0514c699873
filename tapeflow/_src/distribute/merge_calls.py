"""Merges as Keras calls them: `tf.__internal__.distribute`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src.distribute import strategy as _strategy  # noqa: F401  it sets the default strategy
from tapeflow._src.distribute.context import get_replica_context
from tapeflow._src.namespace import public

public("experimental.dtensor.UNSHARDED")("unsharded")


@public("__internal__.distribute.strategy_supports_no_merge_call")
def strategy_supports_no_merge_call() -> bool:
    """Whether replicas may update variables without a merge: where a process has one replica, yes.

    >>> tf.__internal__.distribute.strategy_supports_no_merge_call()
    True
    """
    replica = get_replica_context()
    return replica is None or replica.strategy._replicas_here == 1


@public("__internal__.distribute.interim.maybe_merge_call")
def maybe_merge_call(fn: Callable[..., Any], strategy: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls `fn(strategy, *args)` once for all replicas of this process.

    >>> strategy = tf.distribute.get_strategy()
    >>> tf.__internal__.distribute.interim.maybe_merge_call(lambda strategy, x: x + 1, strategy, 2)
    3
    """
    replica = get_replica_context()
    if replica is None or replica.strategy._replicas_here == 1:
        return fn(strategy, *args, **kwargs)
    return replica.merge_call(fn, args=args, kwargs=kwargs)
