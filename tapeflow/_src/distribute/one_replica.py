"""What libraries ask about several replicas where there is one: classes without objects, merges of one value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src.namespace import public

public("experimental.dtensor.UNSHARDED")("unsharded")


@public("distribute.DistributedValues")
class DistributedValues:
    """A value with one part for each replica.

    >>> isinstance(tf.constant(1.), tf.distribute.DistributedValues)
    False
    """


@public("distribute.DistributedDataset")
class DistributedDataset:
    """A dataset whose elements have one part for each replica.

    >>> dataset = tf.distribute.get_strategy().experimental_distribute_dataset(tf.data.Dataset.range(2))
    >>> isinstance(dataset, tf.distribute.DistributedDataset)
    False
    """


@public("distribute.DistributedIterator")
class DistributedIterator:
    """An iterator whose elements have one part for each replica.

    >>> isinstance(iter(tf.data.Dataset.range(2)), tf.distribute.DistributedIterator)
    False
    """


@public("__internal__.distribute.strategy_supports_no_merge_call")
def strategy_supports_no_merge_call() -> bool:
    """Whether replicas may update variables without waiting for each other: where there is one, yes.

    >>> tf.__internal__.distribute.strategy_supports_no_merge_call()
    True
    """
    return True


@public("__internal__.distribute.interim.maybe_merge_call")
def maybe_merge_call(fn: Callable[..., Any], strategy: Any, *args: Any, **kwargs: Any) -> Any:
    """Calls `fn(strategy, *args)` for all replicas at once; with one replica there is nothing to merge.

    >>> strategy = tf.distribute.get_strategy()
    >>> tf.__internal__.distribute.interim.maybe_merge_call(lambda strategy, x: x + 1, strategy, 2)
    3
    """
    return fn(strategy, *args, **kwargs)
