"""`tf.distribute.CrossDeviceOps`: how the values of several devices of one process become one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.config import device
from tapeflow._src.distribute.collectives import require_numbers
from tapeflow._src.distribute.context import ReduceOp
from tapeflow._src.distribute.devices import whole_name
from tapeflow._src.distribute.options import CommunicationOptions
from tapeflow._src.distribute.values import DistributedValues, Mirrored, PerReplica
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.math.arithmetic import add_n
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import float64, int32
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.variables import Variable


@public("distribute.CrossDeviceOps")
class CrossDeviceOps:
    """How the values of several devices of one process are reduced; `tf.distribute.MirroredStrategy` takes one.

    A class of a program's own implements `reduce_implementation` and `batch_reduce_implementation`.

    >>> strategy = tf.distribute.MirroredStrategy(["CPU:0"], cross_device_ops=tf.distribute.ReductionToOneDevice())
    """

    def reduce(self, reduce_op: Any, per_replica_value: Any, destinations: Any, options: Any = None) -> Any:
        """The values of all devices as one, on the devices of `destinations`: a value, a variable or a name."""
        _require_destinations(destinations)
        value = _as_per_replica(per_replica_value)
        if len(value.values) == 1 and value._devices == _devices_of(destinations):
            return primitives.Identity(value.values[0])
        return self.reduce_implementation(reduce_op, value, destinations, options or CommunicationOptions())

    def batch_reduce(self, reduce_op: Any, value_destination_pairs: Any, options: Any = None) -> Any:
        """Like `reduce`, for several pairs of a value and its destinations."""
        pairs = []
        for pair in value_destination_pairs:
            if not isinstance(pair, tuple):
                raise ValueError("Each element of `value_destination_pairs` should be a tuple.")
            if len(pair) != 2:
                raise ValueError("Each element of `value_destination_pairs` should be a tuple of size 2.")
            _require_destinations(pair[1])
            pairs.append((_as_per_replica(pair[0]), pair[1]))
        if all(len(value.values) == 1 and value._devices == _devices_of(where) for value, where in pairs):
            return [value.values[0] for value, _ in pairs]
        return self.batch_reduce_implementation(reduce_op, pairs, options or CommunicationOptions())

    def broadcast(self, tensor: Any, destinations: Any) -> Any:
        """The tensor on the devices of `destinations`."""
        _require_destinations(destinations)
        return self.broadcast_implementation(tensor, destinations)

    def reduce_implementation(self, reduce_op: Any, per_replica_value: Any, destinations: Any, options: Any) -> Any:
        """What `reduce` calls for the values of several devices."""
        raise NotImplementedError("_reduce method must be implemented in descendants.")

    def batch_reduce_implementation(self, reduce_op: Any, value_destination_pairs: Any, options: Any) -> Any:
        """What `batch_reduce` calls for the values of several devices."""
        raise NotImplementedError("batch_reduce_implementation method must be implemented in descendants.")

    def broadcast_implementation(self, tensor: Any, destinations: Any) -> Any:
        """What `broadcast` calls."""
        return copies_on(tensor, _devices_of(destinations))

    def _gather(self, per_replica_value: Any, destinations: Any, axis: Any, options: Any = None) -> Any:
        if isinstance(per_replica_value, IndexedSlices):
            raise NotImplementedError("gather/all_gather does not support IndexedSlices")
        _require_destinations(destinations)
        value = _as_per_replica(per_replica_value)
        return self._gather_implementation(value, destinations, axis, options or CommunicationOptions())

    def _gather_implementation(self, per_replica_value: Any, destinations: Any, axis: Any, options: Any) -> Any:
        raise NotImplementedError("_gather method must be implemented in descendants.")


@public("distribute.ReductionToOneDevice")
class ReductionToOneDevice(CrossDeviceOps):
    """Copies the values to one device and reduces them there, by `accumulation_fn` of their list: `tf.add_n`.

    >>> largest = lambda values: tf.reduce_max(tf.stack(values), 0)
    >>> strategy = tf.distribute.MirroredStrategy(
    ...     ["CPU:0", "CPU:1"], tf.distribute.ReductionToOneDevice(accumulation_fn=largest))
    >>> def step():
    ...     replica = tf.distribute.get_replica_context()
    ...     return replica.all_reduce("SUM", tf.cast(replica.replica_id_in_sync_group, tf.float32))
    >>> strategy.run(step).values[0].numpy()
    np.float32(1.0)
    """

    def __init__(self, reduce_to_device: Any = None, accumulation_fn: Callable[[list[Any]], Any] | None = None) -> None:
        self.reduce_to_device, self.accumulation_fn = reduce_to_device, accumulation_fn or add_n
        super().__init__()

    def reduce_implementation(self, reduce_op: Any, per_replica_value: Any, destinations: Any, options: Any) -> Any:
        """Reduces on one device, then broadcasts."""
        if not isinstance(reduce_op, ReduceOp):
            raise ValueError("`reduce_op` must be Reduce.SUM or Reduce.MEAN.")
        values = per_replica_value.values
        with device(self.reduce_to_device or _devices_of(destinations)[0]):
            reduced = joined(values) if isinstance(values[0], IndexedSlices) else self.accumulation_fn(list(values))
            if reduce_op is ReduceOp.MEAN:
                reduced = divided(reduced, len(values))
        return self.broadcast(reduced, destinations)

    def batch_reduce_implementation(self, reduce_op: Any, value_destination_pairs: Any, options: Any) -> Any:
        """Reduces one value after the other."""
        return [
            self.reduce_implementation(reduce_op, value, destinations=where, options=options)
            for value, where in value_destination_pairs
        ]

    def _gather_implementation(self, per_replica_value: Any, destinations: Any, axis: Any, options: Any) -> Any:
        with device(self.reduce_to_device or _devices_of(destinations)[0]):
            gathered = primitives.ConcatV2(list(per_replica_value.values), axis)
        return self.broadcast(gathered, destinations)


class AllReduceCrossDeviceOps(CrossDeviceOps):
    """TensorFlow's algorithms for graphics cards. The devices here are processors, which share one memory: the result
    is that of `ReductionToOneDevice`, in any number of packs."""

    def __init__(self, all_reduce_alg: str = "nccl", num_packs: int = 1) -> None:
        self.num_packs = num_packs
        super().__init__()

    def reduce_implementation(self, reduce_op: Any, per_replica_value: Any, destinations: Any, options: Any) -> Any:
        """Adds in the order of the replicas."""
        return ReductionToOneDevice().reduce(reduce_op, per_replica_value, destinations)

    def batch_reduce_implementation(self, reduce_op: Any, value_destination_pairs: Any, options: Any) -> Any:
        """Adds in the order of the replicas."""
        return ReductionToOneDevice().batch_reduce(reduce_op, value_destination_pairs)

    def _gather_implementation(self, per_replica_value: Any, destinations: Any, axis: Any, options: Any) -> Any:
        return ReductionToOneDevice()._gather(per_replica_value, destinations, axis)


@public("distribute.HierarchicalCopyAllReduce")
class HierarchicalCopyAllReduce(AllReduceCrossDeviceOps):
    """Adds by TensorFlow's scheme for graphics cards; the sum is the same.

    >>> tf.distribute.HierarchicalCopyAllReduce(num_packs=1).num_packs
    1
    """

    def __init__(self, num_packs: int = 1) -> None:
        if num_packs < 0:
            raise ValueError(f"HierarchicalCopy requires num_packs >= 0, but {num_packs} is specified")
        super().__init__("hierarchical_copy", num_packs)


@public("distribute.NcclAllReduce")
class NcclAllReduce(AllReduceCrossDeviceOps):
    """Adds by NCCL in TensorFlow; the sum is the same.

    >>> tf.distribute.NcclAllReduce().num_packs
    1
    """

    def __init__(self, num_packs: int = 1) -> None:
        if num_packs < 0:
            raise ValueError(f"NCCL all-reduce requires num_packs >= 0, but {num_packs} is specified")
        super().__init__("nccl", num_packs)


def adds_in_order(operations: Any) -> bool:
    """Whether the result is that of a strategy's own sum, which needs no list of values with their destinations."""
    if type(operations) is ReductionToOneDevice:
        return operations.accumulation_fn is add_n
    return operations is None or type(operations) in (NcclAllReduce, HierarchicalCopyAllReduce)


def is_reduced_by(operations: Any, value: Any) -> bool:
    """Whether a program's own operations reduce a value. As in TensorFlow, they do not for int32."""
    if operations is None:
        return False
    parts = value.values if isinstance(value, DistributedValues) else (value,)
    return all(getattr(part, "dtype", None) != int32 for part in parts)


def added(values: list[Any]) -> Any:
    """The sum of the replicas of one process, in their order."""
    if len(values) == 1:
        return values[0]
    if isinstance(values[0], IndexedSlices):
        return joined(values)
    require_numbers("all_reduce", values[:1])
    return reduce(primitives.LogicalOr, values) if values[0].dtype.is_bool else primitives.AddN(values)


def joined(slices: Sequence[Any]) -> IndexedSlices:
    """The sum of sparse values: the rows of all of them."""
    rows = primitives.ConcatV2([part.values for part in slices], 0)
    return IndexedSlices(rows, primitives.ConcatV2([part.indices for part in slices], 0), slices[0].dense_shape)


def divided(value: Any, count: int) -> Any:
    """A sum as a mean of so many values; that of integers is float64."""
    if isinstance(value, IndexedSlices):
        return IndexedSlices(divided(value.values, count), value.indices, value.dense_shape)
    require_numbers("all_reduce", [value], bools=False)
    if value.dtype.is_integer:
        value = cast(value, float64)
    return primitives.RealDiv(value, primitives.Cast(float(count), value.dtype))


def on_devices(value: Any, destinations: Any) -> Any:
    """A value on the devices that are meant: one for each part of a distributed value, or a named one."""
    if isinstance(destinations, DistributedValues):
        devices = destinations._devices
        return value if len(devices) == 1 else copies_on(value, devices)
    return _on_device(value, destinations) if isinstance(destinations, str) else value


def copies_on(value: Any, devices: Sequence[str]) -> Any:
    """A value with a copy on each device."""
    copies = [_on_device(value, name) for name in devices]
    return copies[0] if len(copies) == 1 else Mirrored(copies)


def _on_device(value: Any, name: str) -> Any:
    with device(name):
        return nest.map_structure(primitives.Identity, value, expand_composites=True)


def _as_per_replica(value: Any) -> Any:
    if isinstance(value, DistributedValues):
        return value
    return PerReplica((value if isinstance(value, IndexedSlices) else convert_to_tensor(value),))


def _devices_of(destinations: Any) -> tuple[str, ...]:
    if isinstance(destinations, DistributedValues):
        return destinations._devices
    name = destinations if isinstance(destinations, str) else destinations.device
    return (whole_name("CrossDeviceOps", name) if name else "",)


def _require_destinations(destinations: Any) -> None:
    known = isinstance(destinations, (DistributedValues, IndexedSlices, Variable, str))
    if not known and not _core.is_tensor(destinations):
        raise ValueError(
            "destinations must be one of a `DistributedValues` object, a tf.Variable object, or a device string."
        )
    if isinstance(destinations, str) and not destinations:
        raise ValueError("destinations can not be empty")
