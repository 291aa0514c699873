"""The enumerations among TensorFlow's public names."""

from __future__ import annotations

from enum import Enum

from tapeflow._src.namespace import public


@public("UnconnectedGradients")
class UnconnectedGradients(Enum):
    """What `tape.gradient` returns for a source that the target does not depend on: None, or zeros.

    >>> tf.UnconnectedGradients("zero")
    <UnconnectedGradients.ZERO: 'zero'>
    """

    NONE = "none"
    ZERO = "zero"


@public("VariableSynchronization", "compat.v1.VariableSynchronization")
class VariableSynchronization(Enum):
    """When the copies of a distributed variable become equal.

    >>> tf.VariableSynchronization.ON_READ.value
    3
    """

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class _Aggregation(Enum):
    """Members of TensorFlow 1's and 2's classes are equal when their values are."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Aggregation) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


@public("VariableAggregation")
class VariableAggregationV2(_Aggregation):
    """How the copies of a distributed variable are made one.

    >>> tf.VariableAggregation.MEAN.value
    2
    """

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


@public("compat.v1.VariableAggregation")
class VariableAggregation(_Aggregation):
    """TensorFlow 1's class of the same members.

    >>> tf.compat.v1.VariableAggregation.MEAN == tf.VariableAggregation.MEAN
    True
    """

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


@public("AggregationMethod", "compat.v1.AggregationMethod")
class AggregationMethod:
    """How `tf.gradients` adds the parts of a gradient; every choice gives the same sum here.

    >>> tf.AggregationMethod.DEFAULT == tf.AggregationMethod.ADD_N
    True
    """

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2
