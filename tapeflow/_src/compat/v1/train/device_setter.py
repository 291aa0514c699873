"""`tf.compat.v1.train.replica_device_setter`: variables on parameter servers in turn, everything else on workers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from tapeflow._src.distribute.cluster import ClusterSpec
from tapeflow._src.namespace import public
from tapeflow._src.types.device_spec import DeviceSpec

STANDARD_PS_OPS = ("Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "MutableHashTableV2",
                   "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2", "MutableDenseHashTable",
                   "MutableDenseHashTableV2", "VarHandleOp", "BoostedTreesEnsembleResourceHandleOp",
                   "BoostedTreesQuantileStreamResourceHandleOp", "ResourceConditionalAccumulator",
                   "DecisionTreeResource")  # fmt: skip


@public("compat.v1.train.replica_device_setter")
def replica_device_setter(
    ps_tasks: int = 0,
    ps_device: str = "/job:ps",
    worker_device: str = "/job:worker",
    merge_devices: bool = True,
    cluster: Any = None,
    ps_ops: Any = None,
    ps_strategy: Any = None,
) -> Callable[[Any], str] | None:
    """A function for `tf.compat.v1.device`: names a parameter server for each variable, in turn, and workers else.

    >>> with tf.Graph().as_default(), tf.compat.v1.device(tf.compat.v1.train.replica_device_setter(ps_tasks=2)):
    ...     v = [tf.compat.v1.get_variable(name, [1]) for name in "ab"]
    ...     v[0].device, v[1].device, (v[0] + v[1]).device
    ('/job:ps/task:0', '/job:ps/task:1', '/job:worker')
    """
    if cluster is not None:
        tasks = ClusterSpec(cluster).as_dict()
        job = str(DeviceSpec.from_string(ps_device).job)
        if tasks.get(job) is None:
            return None
        ps_tasks = len(tasks[job])
    if ps_tasks == 0:
        return None
    if ps_strategy is None:
        turns = itertools.cycle(range(ps_tasks))
        ps_strategy = lambda op: next(turns)  # noqa: E731
    if not callable(ps_strategy):
        raise TypeError(f"replica_device_setter: ps_strategy must be callable; got {type(ps_strategy).__name__}")
    on_servers = set(STANDARD_PS_OPS if ps_ops is None else ps_ops)

    def choose(op: Any) -> str:
        if not merge_devices and op.device:
            return str(op.device)
        named = DeviceSpec.from_string(op.device or "")
        if ps_device and op.type in on_servers:
            server = DeviceSpec.from_string(ps_device)
            if server.job and named.job in (None, server.job):
                server = server.replace(task=ps_strategy(op))
            return server.make_merged_spec(named).to_string()
        return DeviceSpec.from_string(worker_device or "").make_merged_spec(named).to_string()

    return choose
