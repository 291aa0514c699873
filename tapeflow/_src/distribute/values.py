"""Values with one part for each replica: `PerReplica`, which is a composite tensor, and structures of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapeflow._src.distribute import context
from tapeflow._src.namespace import public
from tapeflow._src.types import nest
from tapeflow._src.types.tensor_spec import CompositeTensor, TypeSpec, type_spec_from_value


@public("distribute.DistributedValues")
class DistributedValues:
    """A value with one part for each replica.

    >>> isinstance(tf.constant(1.), tf.distribute.DistributedValues)
    False
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = tuple(values)

    values = property(lambda self: self._values, doc="The parts, in the order of the replicas of this process.")

    @property
    def _primary(self) -> Any:
        return self._values[0]

    def _get(self) -> Any:
        """The part of the replica that asks; the first one outside of replicas."""
        replica = context.get_replica_context()
        return self._values[0 if replica is None else replica.local_id]

    def __repr__(self) -> str:
        parts = ",\n".join(f"  {number}: {value!r}" for number, value in enumerate(self._values))
        return f"{type(self).__name__}:{{\n{parts}\n}}"


@public("types.experimental.distributed.PerReplica")
class PerReplica(DistributedValues, CompositeTensor):
    """A value that differs between replicas, such as their parts of a batch.

    >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> strategy.run(lambda: tf.distribute.get_replica_context().replica_id_in_sync_group).values
    (0, 1)
    """

    @property
    def _type_spec(self) -> PerReplicaSpec:
        return PerReplicaSpec(*(type_spec_from_value(value) for value in self._values))


class PerReplicaSpec(TypeSpec):
    """The spec of a `PerReplica`: one for each part."""

    value_type = PerReplica

    def __init__(self, *value_specs: Any) -> None:
        self._value_specs = tuple(value_specs)

    def _serialize(self) -> tuple[Any, ...]:
        return self._value_specs

    @property
    def _component_specs(self) -> Any:
        return self._value_specs

    def _to_components(self, value: PerReplica) -> Any:
        return value.values

    def _from_components(self, components: Any) -> PerReplica:
        return PerReplica(tuple(components))


@public("types.experimental.distributed.Mirrored")
class Mirrored(DistributedValues):
    """A value whose parts are equal in all replicas.

    >>> issubclass(tf.types.experimental.distributed.Mirrored, tf.distribute.DistributedValues)
    True
    """


def select(structure: Any, replica: int) -> Any:
    """The structure with each `PerReplica` replaced by its part for one replica of this process."""
    return _map(lambda leaf: leaf.values[replica] if isinstance(leaf, DistributedValues) else leaf, structure)


def regroup(results: Sequence[Any]) -> Any:
    """One structure of the results of all replicas of this process, with a `PerReplica` for each leaf."""
    if len(results) == 1:
        return results[0]
    first = results[0]
    leaves = [nest.flatten(result) for result in results]
    if any(len(other) != len(leaves[0]) for other in leaves):
        raise ValueError(
            f"Strategy.run: all replicas must return the same structure; got {[type(r).__name__ for r in results]}"
        )
    grouped = [same if (same := _one_object(parts)) is not None else PerReplica(parts) for parts in zip(*leaves)]
    if all(part is None for part in leaves[0]) and all(all(p is None for p in other) for other in leaves):
        return first
    return nest.pack_sequence_as(first, grouped)


def _one_object(parts: Sequence[Any]) -> Any:
    """The variable that all replicas returned, if they did: it is one object for all of them."""
    first = parts[0]
    return first if hasattr(first, "assign") and all(part is first for part in parts) else None


def _map(function: Callable[[Any], Any], structure: Any) -> Any:
    leaves = nest.flatten(structure)
    if not any(isinstance(leaf, DistributedValues) for leaf in leaves):
        return structure
    return nest.pack_sequence_as(structure, [function(leaf) for leaf in leaves])
