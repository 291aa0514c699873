"""Types of values on a mesh of devices or on workers of a coordinator: libraries ask for them, and no value has one."""

from __future__ import annotations

from typing import Any

from tapeflow._src.namespace import public


class _OnMesh:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            f"tf.experimental.dtensor.{type(self).__name__}: there are no meshes of devices. Use tf.distribute."
        )


@public("experimental.dtensor.DVariable")
class DVariable(_OnMesh):
    """A variable on a mesh of devices: there is none, and it cannot be made.

    >>> isinstance(tf.Variable(1.), tf.experimental.dtensor.DVariable)
    False
    """


@public("experimental.dtensor.DTensorDataset")
class DTensorDataset(_OnMesh):
    """A dataset on a mesh of devices: there is none, and it cannot be made.

    >>> isinstance(tf.data.Dataset.range(3), tf.experimental.dtensor.DTensorDataset)
    False
    """


@public("__internal__.distribute.ShardedVariable")
class ShardedVariable:
    """A variable that is split over several servers: there is none, and it cannot be made.

    >>> isinstance(tf.Variable(1.), tf.__internal__.distribute.ShardedVariable)
    False
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("tf.__internal__.distribute.ShardedVariable: variables are not split over servers.")


@public("distribute.experimental.coordinator.RemoteValue")
class RemoteValue:
    """A value that a worker of a coordinator computes: there is none, and it cannot be made.

    >>> isinstance(tf.constant(1.), tf.distribute.experimental.coordinator.RemoteValue)
    False
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("tf.distribute.experimental.coordinator: no strategy here has a coordinator.")
