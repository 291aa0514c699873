"""The strategies that programs make: one replica, several in one process, one in each of several processes."""

from __future__ import annotations

import functools
import json
import os
from typing import Any

from tapeflow._src.config import logical_device_count
from tapeflow._src.distribute.cluster import MpiClusterResolver
from tapeflow._src.distribute.communicator import OneProcess
from tapeflow._src.distribute.cross_device import CrossDeviceOps, adds_in_order
from tapeflow._src.distribute.devices import processors
from tapeflow._src.distribute.options import CommunicationOptions
from tapeflow._src.distribute.processes import world
from tapeflow._src.distribute.strategy import Strategy
from tapeflow._src.namespace import public
from tapeflow._src.types.device_names import device_name, name_processes
from tapeflow._src.types.logging import get_logger


@public("distribute.OneDeviceStrategy")
class OneDeviceStrategy(Strategy):
    """A strategy with one replica, on the given device: a processor.

    >>> with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
    ...     tf.distribute.has_strategy()
    True
    """

    _mirrors_variables = False

    def __init__(self, device: str) -> None:
        self._begin(processors("OneDeviceStrategy", [device]), OneProcess(), None)


def _device_names(devices: Any) -> list[Any]:
    """The devices that were given, or all logical processors."""
    return list(devices) if devices else list(map(device_name, range(logical_device_count())))


@public("distribute.MirroredStrategy")
class MirroredStrategy(Strategy):
    """A strategy with one replica for each device of this process; they run one after the other.

    Without `devices` there is one replica for each logical processor: `tf.config.set_logical_device_configuration`
    makes several. `cross_device_ops` reduces what replicas merge; it adds in their order if none is given.

    >>> tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).num_replicas_in_sync
    2
    """

    _collective_key_base = 0  # tests of libraries count it up, so that groups differ: they do so here by themselves

    def __init__(self, devices: Any = None, cross_device_ops: Any = None) -> None:
        if cross_device_ops is not None and not isinstance(cross_device_ops, CrossDeviceOps):
            raise ValueError(
                f"MirroredStrategy: cross_device_ops must be a tf.distribute.CrossDeviceOps; got {cross_device_ops!r}"
            )
        self._begin(processors("MirroredStrategy", _device_names(devices)), OneProcess(), None)
        self._reduction = None if adds_in_order(cross_device_ops) else cross_device_ops


@public("distribute.experimental.CentralStorageStrategy", "compat.v1.distribute.experimental.CentralStorageStrategy")
class CentralStorageStrategy(Strategy):
    """Replicas on the devices of this process, with variables on one of them: here all devices share one memory.

    >>> tf.distribute.experimental.CentralStorageStrategy(["CPU:0"]).num_replicas_in_sync
    1
    """

    _mirrors_variables = False

    def __init__(self, compute_devices: Any = None, parameter_device: Any = None) -> None:
        if parameter_device is not None:
            processors("CentralStorageStrategy", [parameter_device])
        names = list(compute_devices) if compute_devices else ["CPU:0"]
        self._begin(processors("CentralStorageStrategy", names), OneProcess(), None)


@public("distribute.MultiWorkerMirroredStrategy")
class MultiWorkerMirroredStrategy(Strategy):
    """A strategy with one replica in each of the processes that `tapeflow run --workers` or `mpiexec` started.

    A program that was started alone has one replica.

    >>> tf.distribute.MultiWorkerMirroredStrategy().num_replicas_in_sync
    1
    """

    def __init__(self, cluster_resolver: Any = None, communication_options: Any = None) -> None:
        options = communication_options
        if options is not None and not isinstance(options, CommunicationOptions):
            raise ValueError(
                "MultiWorkerMirroredStrategy: communication_options must be a "
                f"tf.distribute.experimental.CommunicationOptions; got {options!r}"
            )
        group = world()
        if group.size == 1:
            _refuse_other_starts(cluster_resolver)
            _say_once_that_it_is_alone()
        own = MpiClusterResolver(group)
        if group.size > 1:
            name_processes(own.this_process, own.processes)
        self._begin(processors("MultiWorkerMirroredStrategy", ["CPU:0"]), group, options)
        if options is not None and options.timeout_seconds is not None and group.size > 1:
            group.deadline = options.timeout_seconds  # type: ignore[attr-defined]
        self._cluster_resolver = cluster_resolver or own

    cluster_resolver = property(lambda self: self._cluster_resolver, doc="The processes and their names.")


@functools.cache
def _say_once_that_it_is_alone() -> None:
    get_logger().warning(
        "MultiWorkerMirroredStrategy: this program was started alone, so it has one replica. "
        "`tapeflow run --workers N` starts it with several."
    )


def _refuse_other_starts(cluster_resolver: Any) -> None:
    """A program that was started by hand in several terminals would wait for processes that cannot be reached."""
    workers = []
    if cluster_resolver is not None:
        workers = cluster_resolver.cluster_spec().as_dict().get("worker", [])
    elif os.environ.get("TF_CONFIG"):
        cluster = json.loads(os.environ["TF_CONFIG"]).get("cluster", {})
        workers = [*cluster.get("chief", []), *cluster.get("worker", [])]
    if len(workers) > 1:
        raise RuntimeError(
            f"MultiWorkerMirroredStrategy: TF_CONFIG names {len(workers)} workers, but this process was started alone. "
            "Workers find each other through MPI here: start all of them with one command, "
            f"`tapeflow run --workers {len(workers)} program.py` (with `--hosts` for several machines), or with "
            f"`mpiexec -n {len(workers)} python program.py`."
        )


@public("distribute.experimental.MultiWorkerMirroredStrategy")
class ExperimentalMultiWorkerMirroredStrategy(MultiWorkerMirroredStrategy):
    """The strategy under its first name.

    >>> tf.distribute.experimental.MultiWorkerMirroredStrategy().num_replicas_in_sync
    1
    """

    def __init__(self, communication: Any = None, cluster_resolver: Any = None) -> None:
        super().__init__(cluster_resolver)


class _Refused(Strategy):
    _needs = ""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            f"{type(self).__name__}: {self._needs}. To train on several processes, use "
            "tf.distribute.MultiWorkerMirroredStrategy."
        )


@public("distribute.ParameterServerStrategy", "distribute.experimental.ParameterServerStrategy")
class ParameterServerStrategy(_Refused):
    """A class to ask about: a strategy of workers that do not wait for each other, of which no object can be made.

    >>> isinstance(tf.distribute.get_strategy(), tf.distribute.ParameterServerStrategy)
    False
    """

    _needs = "it needs parameter servers, which Tapeflow does not have"


@public("distribute.TPUStrategy", "distribute.experimental.TPUStrategy")
class TPUStrategy(_Refused):
    """A class to ask about: a strategy for Google's TPUs, of which no object can be made.

    >>> isinstance(tf.distribute.get_strategy(), tf.distribute.TPUStrategy)
    False
    """

    _needs = "it needs TPUs, which Tapeflow does not use"
