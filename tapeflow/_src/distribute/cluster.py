"""`tf.distribute.cluster_resolver`: which processes there are, what they are called, and which one this is."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from tapeflow._src.distribute.communicator import Communicator
from tapeflow._src.io.protos import messages
from tapeflow._src.namespace import public


@public("train.ClusterSpec", "compat.v1.train.ClusterSpec")
class ClusterSpec:
    """The addresses of processes, by the name of their job.

    >>> tf.train.ClusterSpec({"worker": ["a:1", "b:1"]}).num_tasks("worker")
    2
    """

    def __init__(self, cluster: Any) -> None:
        if isinstance(cluster, ClusterSpec):
            cluster = cluster._tasks
        elif getattr(getattr(cluster, "DESCRIPTOR", None), "name", "") == "ClusterDef":
            cluster = {job.name: dict(job.tasks) for job in cluster.job}
        if not isinstance(cluster, Mapping):
            raise TypeError(
                "`cluster` must be a dictionary mapping one or more job names to lists of network addresses, or a "
                f"`ClusterDef` protocol buffer; got {type(cluster).__name__}"
            )
        for job, tasks in cluster.items():
            if not isinstance(tasks, (Mapping, list, tuple)):
                raise TypeError(
                    f"The tasks for job {job!r} must be a list or a dictionary from integers to strings; got "
                    f"{type(tasks).__name__}"
                )
        self._tasks: dict[str, dict[int, str]] = {
            job: dict(tasks) if isinstance(tasks, Mapping) else dict(enumerate(tasks)) for job, tasks in cluster.items()
        }

    jobs = property(lambda self: list(self._tasks), doc="The names of the jobs.")

    def as_dict(self) -> dict[str, Any]:
        """The addresses by job: a list if tasks are numbered from 0 on, otherwise a dictionary."""
        return {
            job: [tasks[i] for i in sorted(tasks)] if set(tasks) == set(range(len(tasks))) else dict(tasks)
            for job, tasks in self._tasks.items()
        }

    def as_cluster_def(self) -> Any:
        """The cluster as a `tf.train.ClusterDef`."""
        jobs = [messages.JobDef(name=job, tasks=self._tasks[job]) for job in sorted(self._tasks)]
        return messages.ClusterDef(job=jobs)

    def _job(self, name: str) -> dict[int, str]:
        if name not in self._tasks:
            raise ValueError(f"No such job in cluster: {name!r}")
        return self._tasks[name]

    def num_tasks(self, job_name: str) -> int:
        """How many processes a job has."""
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The numbers of a job's processes."""
        return sorted(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """The address of a process."""
        tasks = self._job(job_name)
        if task_index not in tasks:
            raise ValueError(f"No task with index {task_index!r} in job {job_name!r}")
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """The addresses of a job's processes."""
        tasks = self._job(job_name)
        return [tasks.get(i) for i in range(max(tasks) + 1)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterSpec) and self._tasks == other._tasks

    def __bool__(self) -> bool:
        return bool(self._tasks)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"ClusterSpec({dict(sorted(self.as_dict().items()))!r})"


@public("distribute.cluster_resolver.ClusterResolver", "compat.v1.distribute.cluster_resolver.ClusterResolver")
class ClusterResolver:
    """Describes the processes of a program and which one this is.

    >>> resolver = tf.distribute.cluster_resolver
    >>> issubclass(resolver.TFConfigClusterResolver, resolver.ClusterResolver)
    True
    """

    task_type: str | None = None
    task_id: int | None = None
    rpc_layer: str | None = None
    environment = ""

    def cluster_spec(self) -> ClusterSpec:
        """The processes."""
        raise NotImplementedError("ClusterResolver.cluster_spec: subclasses define it")

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The address of a process; empty for this one."""
        if task_type is not None and task_id is not None:
            return _address(self.cluster_spec().task_address(task_type, task_id), rpc_layer or self.rpc_layer)
        return ""

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """How many accelerators a process has, by kind: none."""
        return {}


def _address(address: str, layer: str | None) -> str:
    return f"{layer}://{address}" if layer else address


class MpiClusterResolver(ClusterResolver):
    """The processes that a launcher of MPI started, by the names that TF_CONFIG has for them if it names as many: a
    chief first, if there is one, then the workers. Otherwise all are workers, and the first is the chief."""

    def __init__(self, group: Communicator) -> None:
        cluster = _tf_config().get("cluster", {})
        named = {job: list(cluster[job]) for job in ("chief", "worker") if cluster.get(job)}
        if sum(map(len, named.values())) != group.size:
            named = {"worker": [f"rank-{rank}" for rank in range(group.size)]}
        self._spec = ClusterSpec(named)
        self.processes = [(job, number) for job, addresses in named.items() for number in range(len(addresses))]
        self.task_type, self.task_id = self.this_process = self.processes[group.rank]

    def cluster_spec(self) -> ClusterSpec:
        """The processes."""
        return self._spec


def _tf_config() -> dict[str, Any]:
    return dict(json.loads(os.environ.get("TF_CONFIG") or "{}"))


@public(
    "distribute.cluster_resolver.TFConfigClusterResolver",
    "compat.v1.distribute.cluster_resolver.TFConfigClusterResolver",
)
class TFConfigClusterResolver(ClusterResolver):
    """The processes that the environment variable TF_CONFIG names.

    >>> import os
    >>> os.environ["TF_CONFIG"] = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}}'
    >>> tf.distribute.cluster_resolver.TFConfigClusterResolver().task_id
    1
    >>> del os.environ["TF_CONFIG"]
    """

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:
        task = _tf_config().get("task", {})
        self.task_type = task.get("type") if task_type is None else task_type
        index = task.get("index") if task_id is None else task_id
        self.task_id = None if index is None else int(index)
        self.rpc_layer = rpc_layer or _tf_config().get("rpc_layer")
        self.environment = environment or _tf_config().get("environment", "")

    def cluster_spec(self) -> ClusterSpec:
        """The processes."""
        return ClusterSpec(_tf_config().get("cluster", {}))

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The address of a process, by default of this one."""
        spec = self.cluster_spec()
        if not spec.as_dict() or (len(spec.jobs) == 1 and spec.num_tasks(spec.jobs[0]) == 1):
            return ""
        job, number = task_type or self.task_type, self.task_id if task_id is None else task_id
        return "" if job is None else _address(spec.task_address(job, number or 0), rpc_layer or self.rpc_layer)


@public(
    "distribute.cluster_resolver.SimpleClusterResolver", "compat.v1.distribute.cluster_resolver.SimpleClusterResolver"
)
class SimpleClusterResolver(ClusterResolver):
    """The processes that the program names.

    >>> spec = tf.train.ClusterSpec({"worker": ["a:1", "b:1"]})
    >>> tf.distribute.cluster_resolver.SimpleClusterResolver(spec, task_type="worker", task_id=1).task_id
    1
    """

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: Any = None,
        rpc_layer: str | None = None,
    ) -> None:
        if not isinstance(cluster_spec, ClusterSpec):
            raise TypeError("cluster_spec must be a `tf.train.ClusterSpec`.")
        self._spec, self._master, self._accelerators = cluster_spec, master, num_accelerators
        self.task_type, self.task_id, self.environment, self.rpc_layer = task_type, task_id, environment, rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """The processes."""
        return self._spec

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The address of a process, or the one that was given."""
        if task_type is not None and task_id is not None:
            return super().master(task_type, task_id, rpc_layer)
        return _address(self._master, rpc_layer or self.rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """What was given."""
        return dict(self._accelerators or {})


@public(
    "distribute.cluster_resolver.SlurmClusterResolver", "compat.v1.distribute.cluster_resolver.SlurmClusterResolver"
)
class SlurmClusterResolver(ClusterResolver):
    """The processes of a Slurm job step, read from the variables that `srun` sets.

    >>> resolver = tf.distribute.cluster_resolver
    >>> issubclass(resolver.SlurmClusterResolver, resolver.ClusterResolver)
    True
    """

    def __init__(
        self,
        jobs: dict[str, int] | None = None,
        port_base: int = 8888,
        gpus_per_node: int | None = None,
        gpus_per_task: int | None = None,
        tasks_per_node: Any = None,
        auto_set_gpu: bool = True,
        rpc_layer: str = "grpc",
    ) -> None:
        if "SLURM_PROCID" not in os.environ:
            raise RuntimeError("SlurmClusterResolver: SLURM_PROCID is not set; start the program with `srun`")
        hosts = expand_hosts(os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_NODELIST", "localhost"))
        counts = tasks_per_node if tasks_per_node is not None else os.environ.get("SLURM_STEP_TASKS_PER_NODE", "1")
        per_host = [counts] * len(hosts) if isinstance(counts, int) else expand_counts(counts)
        addresses = [f"{host}:{port_base + i}" for host, count in zip(hosts, per_host) for i in range(count)]
        jobs = jobs or {"worker": len(addresses)}
        if sum(jobs.values()) != len(addresses):
            raise RuntimeError(
                f"SlurmClusterResolver: the jobs name {sum(jobs.values())} tasks, but there are {len(addresses)}"
            )
        rank = int(os.environ["SLURM_PROCID"])
        tasks, begin = {}, 0
        for job, count in jobs.items():
            tasks[job] = addresses[begin : begin + count]
            if begin <= rank < begin + count:
                self.task_type, self.task_id = job, rank - begin
            begin += count
        self._spec, self.rpc_layer = ClusterSpec(tasks), rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """The processes."""
        return self._spec

    def get_task_info(self) -> tuple[str | None, int | None]:
        """The job of this process and its number in it."""
        return self.task_type, self.task_id


@public("distribute.cluster_resolver.TPUClusterResolver", "compat.v1.distribute.cluster_resolver.TPUClusterResolver")
class TPUClusterResolver(ClusterResolver):
    """A class to look for TPUs with, of which no object can be made: programs that find none go on without them.

    >>> try:
    ...     tf.distribute.cluster_resolver.TPUClusterResolver()
    ... except ValueError:
    ...     strategy = tf.distribute.get_strategy()
    """

    def __init__(self, tpu: str | None = None, zone: str | None = None, project: str | None = None, **kwargs: Any):
        raise ValueError(
            "TPUClusterResolver: Please provide a TPU Name to connect to. There is none: Tapeflow runs on processors"
        )

    @classmethod
    def connect(cls, tpu: str | None = None, zone: str | None = None, project: str | None = None) -> ClusterResolver:
        """The same error."""
        return cls(tpu, zone, project)


@public("distribute.cluster_resolver.UnionResolver", "compat.v1.distribute.cluster_resolver.UnionResolver")
class UnionResolver(ClusterResolver):
    """The processes of several resolvers; what else it says is that of the first one.

    >>> def resolver(**tasks):
    ...     return tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec(tasks))
    >>> tf.distribute.cluster_resolver.UnionResolver(resolver(worker=["a:1"]), resolver(ps=["b:1"])).cluster_spec()
    ClusterSpec({'ps': ['b:1'], 'worker': ['a:1']})
    """

    def __init__(
        self,
        *args: ClusterResolver,
        rpc_layer: str | None = None,
        task_type: str | None = None,
        task_id: int | None = None,
    ) -> None:
        if not args:
            raise ValueError("At least one ClusterResolver is required.")
        for resolver in args:
            if not isinstance(resolver, ClusterResolver):
                raise TypeError(f"All arguments must be a sub-class of `ClusterResolver`; got {resolver!r}")
        first = args[0]
        self._resolvers = args
        self.rpc_layer = rpc_layer or first.rpc_layer
        self.task_type, self.task_id = task_type or first.task_type, task_id or first.task_id
        self.environment = first.environment

    def cluster_spec(self) -> ClusterSpec:
        """All processes: lists of a job are joined; where one has numbers, all have, and they must differ."""
        found = [resolver.cluster_spec().as_dict() for resolver in self._resolvers]
        merged: dict[str, Any] = {}
        for job in dict.fromkeys(name for cluster in found for name in cluster):
            parts = [cluster[job] for cluster in found if job in cluster]
            if all(isinstance(part, list) for part in parts):
                merged[job] = [address for part in parts for address in part]
                continue
            tasks = merged[job] = {}
            for part in parts:
                numbered = dict(enumerate(part)) if isinstance(part, list) else part
                twice = tasks.keys() & numbered.keys()
                if twice:
                    raise KeyError(f"Duplicate keys detected when merging two ClusterSpecs: {twice!r}")
                tasks.update(numbered)
        return ClusterSpec(merged)

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The address of a process, or what the first resolver says."""
        if task_type is not None and task_id is not None:
            return super().master(task_type, task_id, rpc_layer)
        return self._resolvers[0].master(rpc_layer=rpc_layer)

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """What the first resolver says."""
        return self._resolvers[0].num_accelerators(task_type, task_id, config_proto)


def expand_hosts(text: str) -> list[str]:
    """Slurm's short form of host names: `n[1-3,7],m2` means n1, n2, n3, n7, m2."""
    hosts = []
    for name, _, ranges, tail in re.findall(r"([^,\[]+)(\[([^\]]*)\])?([^,]*)", text):
        if not ranges:
            hosts.append(name + tail)
        for part in filter(None, ranges.split(",")):
            first, _, last = part.partition("-")
            numbers = range(int(first), int(last or first) + 1)
            hosts += [f"{name}{number:0{len(first)}d}{tail}" for number in numbers]
    return hosts


def expand_counts(text: str) -> list[int]:
    """Slurm's short form of counts: `2(x3),1` means 2, 2, 2, 1."""
    counts: list[int] = []
    for count, repeat in re.findall(r"(\d+)(?:\(x(\d+)\))?", text):
        counts += [int(count)] * int(repeat or 1)
    return counts
