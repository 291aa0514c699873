"""`tf.distribute.Strategy`: how a program's steps are run; all strategies here have one replica, on the processor."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.distribute.context import ReplicaContext, as_reduce_op, inside, set_default
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import float32


@public("distribute.StrategyExtended")
class StrategyExtended:
    """What libraries ask of a strategy, beyond what programs do.

    >>> v = tf.Variable(1.)
    >>> tf.distribute.get_strategy().extended.update(v, lambda v, x: v.assign_add(x), args=(2.,)).numpy()
    3.0
    """

    experimental_require_static_shapes = False

    def __init__(self, container_strategy: Any) -> None:
        self._strategy = container_strategy

    def update(self, var: Any, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, group: bool = True) -> Any:
        """Calls `fn(var, *args)` for each copy of a variable: there is one. Without `group`, gives a tuple."""
        result = fn(var, *args, **kwargs) if kwargs else fn(var, *args)
        return result if group else (result,)

    def colocate_vars_with(self, colocate_with_variable: Any) -> AbstractContextManager[None]:
        """A block in which new variables lie where another one does: there is one place."""
        return nullcontext()

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable belongs to this strategy: all do."""
        return True

    def value_container(self, value: Any) -> Any:
        """The variable of which `value` is the copy of one replica: itself."""
        return value

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any = None) -> Any:
        """The values of all replicas as one."""
        as_reduce_op(reduce_op)
        return value

    def batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any, options: Any = None) -> list[Any]:
        """Like `reduce_to`, for several values."""
        return [self.reduce_to(reduce_op, value, place) for value, place in value_destination_pairs]

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The devices of the replicas."""
        found: tuple[str, ...] = self._strategy._devices("worker_devices")
        return found

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The devices of the variables."""
        found: tuple[str, ...] = self._strategy._devices("parameter_devices")
        return found


@public("distribute.Strategy")
class Strategy:
    """How steps are run and variables kept; `tf.distribute.get_strategy()` gives the one that is in force.

    >>> strategy = tf.distribute.get_strategy()
    >>> strategy.run(lambda x: x + 1, args=(2,))
    3
    """

    num_replicas_in_sync = 1

    def __init__(self, extended: Any = None) -> None:
        self._extended = StrategyExtended(self)
        self._replica = ReplicaContext(self, 0)

    extended = property(lambda self: self._extended, doc="What libraries ask of the strategy.")
    cluster_resolver = property(lambda self: None, doc="The machines: this one alone.")

    def _devices(self, what: str) -> tuple[str, ...]:
        return ("/job:localhost/replica:0/task:0/device:CPU:0",)

    def scope(self) -> AbstractContextManager[Any]:
        """A block in which this strategy is in force."""
        return inside(self, None)

    def run(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, options: Any = None) -> Any:
        """Calls `fn` in each replica: once."""
        with inside(self, self._replica):
            return fn(*args, **(kwargs or {}))

    def reduce(self, reduce_op: Any, value: Any, axis: Any) -> Any:
        """The values of all replicas as one; with an axis, also the values along it."""
        operation = as_reduce_op(reduce_op)
        if axis is None:
            return value
        if operation.value == "SUM":
            return primitives.Sum(value, axis)
        value = convert_to_tensor(value)
        return primitives.Mean(cast(value, float32) if value.dtype.is_integer else value, axis)

    def gather(self, value: Any, axis: int) -> Any:
        """The values of all replicas, joined along an axis."""
        return value

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """The values of this machine's replicas."""
        return (value,)

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """The dataset, with each element split among the replicas: the dataset itself."""
        return dataset

    def distribute_datasets_from_function(self, dataset_fn: Callable[[Any], Any], options: Any = None) -> Any:
        """The dataset that the function makes for this machine."""
        return dataset_fn(InputContext())

    def experimental_distribute_values_from_function(self, value_fn: Callable[[Any], Any]) -> Any:
        """What the function gives for each replica."""
        return value_fn(self._replica)


class DefaultStrategy(Strategy):
    """The strategy of programs that name none."""

    def _devices(self, what: str) -> tuple[str, ...]:
        raise RuntimeError(f"{what}() method unsupported by default tf.distribute.Strategy.")

    def run(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None, options: Any = None) -> Any:
        """Calls `fn`."""
        return fn(*args, **kwargs) if kwargs else fn(*args)


@public("distribute.InputContext")
class InputContext:
    """Which part of its input a machine reads.

    >>> tf.distribute.InputContext(num_replicas_in_sync=2).get_per_replica_batch_size(8)
    4
    """

    def __init__(self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1) -> None:
        self.num_input_pipelines, self.input_pipeline_id = num_input_pipelines, input_pipeline_id
        self.num_replicas_in_sync = num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The size of a replica's part of a batch."""
        if global_batch_size % self.num_replicas_in_sync:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size!r} is not divisible by `num_replicas_in_sync` "
                f"{self.num_replicas_in_sync!r} "
            )
        return global_batch_size // self.num_replicas_in_sync


def _require_processor(who: str, devices: Any) -> None:
    for device in devices:
        if not str(device).upper().rstrip("0123456789").rstrip(":").endswith("CPU"):
            raise ValueError(f"{who}: this program has one device, the processor ('/cpu:0'); got {device!r}")
    if len(devices) > 1:
        raise ValueError(f"{who}: there is one replica, on '/cpu:0'; got {len(devices)} devices: {list(devices)}")


@public("distribute.OneDeviceStrategy")
class OneDeviceStrategy(Strategy):
    """A strategy with one replica, on the given device: the processor.

    >>> with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
    ...     tf.distribute.has_strategy()
    True
    """

    def __init__(self, device: str) -> None:
        _require_processor("OneDeviceStrategy", [device])
        super().__init__()


@public("distribute.MirroredStrategy")
class MirroredStrategy(Strategy):
    """A strategy with one replica for each graphics card, or else one on the processor; here it is the latter.

    >>> tf.distribute.MirroredStrategy().num_replicas_in_sync
    1
    """

    def __init__(self, devices: Any = None, cross_device_ops: Any = None) -> None:
        _require_processor("MirroredStrategy", [] if devices is None else list(devices))
        super().__init__()


class _SeveralMachines(Strategy):
    _needs = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            f"{type(self).__name__}: {self._needs}, which Tapeflow does not have; it runs on one machine's processor. "
            "tf.distribute.get_strategy() gives the strategy that does."
        )


@public("distribute.MultiWorkerMirroredStrategy")
class MultiWorkerMirroredStrategy(_SeveralMachines):
    """A class to ask about: a strategy of several machines, of which no object can be made.

    >>> isinstance(tf.distribute.get_strategy(), tf.distribute.MultiWorkerMirroredStrategy)
    False
    """

    _needs = "it needs several machines"


@public("distribute.TPUStrategy")
class TPUStrategy(_SeveralMachines):
    """A class to ask about: a strategy for Google's TPUs, of which no object can be made.

    >>> isinstance(tf.distribute.get_strategy(), tf.distribute.TPUStrategy)
    False
    """

    _needs = "it needs TPUs"


set_default(DefaultStrategy())
