"""Values with one part for each replica: `PerReplica`, which is a composite tensor, and structures of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tapeflow._src.distribute import context
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
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

    @property
    def _devices(self) -> tuple[str, ...]:
        return tuple(value.device for value in self.values)

    def _get(self) -> Any:
        """The part of the replica that asks; the first one outside of replicas."""
        replica = context.get_replica_context()
        return self._values[0 if replica is None else replica.local_id]

    def __repr__(self) -> str:
        return self._shown(lambda value: value if isinstance(value, str) else repr(value))

    def __str__(self) -> str:
        return self._shown(str)

    def _shown(self, show: Callable[[Any], str]) -> str:
        parts = ",\n".join(f"  {number}: {show(value)}" for number, value in enumerate(self.values))
        return f"{type(self).__name__}:{{\n{parts}\n}}"


@public("types.experimental.distributed.PerReplica")
class PerReplica(DistributedValues, CompositeTensor):
    """A value that differs between replicas, such as their parts of a batch.

    >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> strategy.run(lambda: tf.distribute.get_replica_context().replica_id_in_sync_group).values
    (<tf.Tensor: shape=(), dtype=int32, numpy=0>, <tf.Tensor: shape=(), dtype=int32, numpy=1>)
    """

    _tensors_attribute = "_values"  # for calls of functions that are like earlier ones

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        replica = context.get_replica_context()
        if replica is None or not context.has_strategy():
            raise ValueError(
                "It looks like you are using a PerReplica object while not inside a replica context, which is not "
                "supported. Try running your op or function inside a replica context by using `strategy.run`"
            )
        return convert_to_tensor(self._values[replica.local_id], dtype)

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


class DistributedVariable(DistributedValues):
    """A variable with a copy in each replica. Functions of replicas take it whole: reading it gives the own copy."""

    is_distributed_variable = True
    _is_whole = True  # False of what an assignment returns in a replica
    _policy = None  # a variable's class says how it is merged


def select(structure: Any, replica: int) -> Any:
    """The structure with each value of several replicas replaced by its part for one replica of this process."""
    leaves = nest.flatten(structure)
    if not any(isinstance(leaf, DistributedValues) for leaf in leaves):
        return structure
    return nest.pack_sequence_as(structure, [_part(leaf, replica) for leaf in leaves])


def _part(leaf: Any, replica: int) -> Any:
    whole = isinstance(leaf, DistributedVariable) or not isinstance(leaf, DistributedValues)
    return leaf if whole else leaf.values[replica]


def regroup(results: Sequence[Any], always_wrap: bool = False) -> Any:
    """One structure of the results of this process's replicas, with a `PerReplica` where they are not one object, or
    for each of them if it `always_wrap`s."""
    first = results[0]
    if len(results) == 1 and not always_wrap:
        return first
    if isinstance(first, (list, tuple)):
        _require_alike(results, type(first), len)
        parts = [regroup(items, always_wrap) for items in zip(*results)]
        if hasattr(first, "_make"):
            return first._make(parts)
        return type(first)(parts) if type(first) in (list, tuple) else parts
    if isinstance(first, Mapping):
        _require_alike(results, Mapping, set)
        kind: Any = type(first)
        return kind({key: regroup([result[key] for result in results], always_wrap) for key in first})
    variable = _variable_of(first)
    if variable is not None and all(_variable_of(result) is variable for result in results):
        return variable
    return PerReplica(results) if always_wrap or any(result is not first for result in results) else first


def _variable_of(result: Any) -> Any:
    """The variable of a strategy that a result is, or of which it is a copy; else None, as for what an assignment in
    a replica returns: an object of its own, which stands for the copy of that replica."""
    if isinstance(result, DistributedVariable):
        return result if result._is_whole else None
    container = getattr(result, "_distributed_container", None)
    return None if container is None else container()


def _require_alike(results: Sequence[Any], kind: Any, content: Callable[[Any], Any]) -> None:
    if not all(isinstance(result, kind) and content(result) == content(results[0]) for result in results):
        raise ValueError(
            f"Strategy.run: all replicas must return the same structure; got {[type(r).__name__ for r in results]}"
        )
