"""Classes of values that are spread over replicas; with one replica there are none, so programs only ask for them."""

from __future__ import annotations

from tapeflow.namespace import public


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
