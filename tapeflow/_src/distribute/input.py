"""Datasets of a strategy: which part of its input a process reads. shards.py cuts batches and files."""

from __future__ import annotations

import enum
from types import SimpleNamespace
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.data.dataset import Dataset
from tapeflow._src.data.iterator import Cursor, Iterator
from tapeflow._src.data.options import AutoShardPolicy
from tapeflow._src.data.pipes import batching
from tapeflow._src.data.pipes.pipe import Iteration, Pipe
from tapeflow._src.data.pipes.structure import map_leaves
from tapeflow._src.data.session_iterators import (
    SessionIterator,
    get_legacy_output_classes,
    get_legacy_output_shapes,
    get_legacy_output_types,
)
from tapeflow._src.distribute.shards import (
    EndTogether,
    InTurn,
    OnDevices,
    Parts,
    Rebatched,
    SideBySide,
    agree_on_seeds,
    batch_size,
    has_batches,
    has_fixed_size,
    shard_files,
    sizes_for_worker,
)
from tapeflow._src.distribute.values import PerReplicaSpec
from tapeflow._src.namespace import public


@public("distribute.InputReplicationMode")
class InputReplicationMode(enum.Enum):
    """Whether a dataset function is called once per process or once per replica.

    >>> tf.distribute.InputReplicationMode.PER_WORKER.value
    'PER_WORKER'
    """

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


@public("distribute.InputOptions")
class InputOptions:
    """Settings of distributed datasets. They concern transfers to accelerators; a processor has none.

    >>> tf.distribute.InputOptions().experimental_fetch_to_device
    True
    """

    def __init__(
        self,
        experimental_fetch_to_device: bool | None = None,
        experimental_replication_mode: Any = InputReplicationMode.PER_WORKER,
        experimental_place_dataset_on_device: bool = False,
        experimental_per_replica_buffer_size: int = 1,
    ) -> None:
        self.experimental_fetch_to_device = (
            True if experimental_fetch_to_device is None else experimental_fetch_to_device
        )
        self.experimental_replication_mode = experimental_replication_mode
        self.experimental_place_dataset_on_device = experimental_place_dataset_on_device
        self.experimental_per_replica_buffer_size = experimental_per_replica_buffer_size


@public("distribute.InputContext")
class InputContext:
    """Which part of its input a process reads.

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

    def __repr__(self) -> str:
        return (
            f"tf.distribute.InputContext(input pipeline id {self.input_pipeline_id}, total: {self.num_input_pipelines})"
        )


@public("distribute.DistributedDataset")
class DistributedDataset(Dataset):
    """A dataset whose elements have one part for each replica.

    >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(4))
    >>> [part.numpy().tolist() for part in next(iter(dataset)).values]
    [[0, 1], [2, 3]]
    """

    @property
    def cardinality(self) -> Any:
        """The number of elements; TensorFlow has it as an attribute of these datasets."""
        return np.int64(self._pipe.count())

    def __iter__(self) -> Iterator:
        iterator = super().__iter__()
        iterator.__class__ = DistributedIterator
        return iterator


@public("distribute.DistributedIterator")
class DistributedIterator(Iterator):
    """An iterator over a distributed dataset.

    >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    >>> dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(4))
    >>> isinstance(iter(dataset), tf.distribute.DistributedIterator)
    True
    """


class _OneReplica:
    """Describes the elements of an iterator as one replica sees them."""

    element_spec: Any

    @property
    def _part(self) -> SimpleNamespace:
        first = map_leaves(
            lambda leaf: leaf._value_specs[0] if isinstance(leaf, PerReplicaSpec) else leaf, self.element_spec
        )
        return SimpleNamespace(element_spec=first)

    output_types = property(lambda self: get_legacy_output_types(self._part), doc="The dtypes of the elements.")
    output_shapes = property(lambda self: get_legacy_output_shapes(self._part), doc="The shapes of the elements.")
    output_classes = property(lambda self: get_legacy_output_classes(self._part), doc="The classes of the elements.")


class InputIterator(_OneReplica, DistributedIterator):
    """An iterator as TensorFlow 1's strategies give it to eager programs: `initialize` puts it at the beginning."""

    def __init__(self, dataset: Dataset) -> None:
        super().__init__(Cursor(dataset._pipe, Iteration()), dataset.element_spec)
        self._pipe = dataset._pipe

    def initialize(self) -> None:
        """Puts the iterator at the beginning of its dataset."""
        self._cursor = Cursor(self._pipe, Iteration())

    initializer = property(initialize, doc="Puts the iterator at the beginning of its dataset.")


class SessionInputIterator(_OneReplica, SessionIterator):
    """An iterator as TensorFlow 1's strategies give it to graphs that sessions run."""

    def initialize(self) -> Any:
        """The operation that puts the iterator at the beginning of its dataset."""
        return self.initializer


def input_iterator(dataset: Dataset) -> Iterator:
    """An iterator over a dataset of a strategy, with TensorFlow 1's methods."""
    if _core.current_graph() is None:
        return InputIterator(dataset)
    return SessionInputIterator(dataset._pipe, dataset.element_spec, one_shot=False)


def distributed(strategy: Any, dataset: Dataset, options: Any) -> DistributedDataset:
    """The dataset of global batches, with each one cut into equal parts for the replicas, the last ones shorter.

    By `AutoShardPolicy.DATA`, all processes read the same global batches, so that they end together, and a replica
    takes its rows of each. By `FILE` a process reads its own files, and its rows become batches of the size of a
    replica's part; `AUTO` means that if there are files for all processes. By `OFF` each process reads everything, in
    batches that are as small.
    """
    _require_dataset(dataset, "experimental_distribute_dataset: dataset")
    if not has_batches(dataset._pipe):
        raise ValueError(
            "experimental_distribute_dataset: the dataset must be batched, as each replica gets a part of a batch; "
            f"got elements of {dataset.element_spec}"
        )
    policy = dataset.options().experimental_distribute.auto_shard_policy
    here, group, total = strategy._replicas_here, strategy._group, strategy.num_replicas_in_sync
    pipe = dataset._pipe
    if total == 1:
        return _as_distributed(pipe, strategy, dataset)
    if group.size > 1:
        agree_on_seeds(pipe, group)
    if policy in (AutoShardPolicy.FILE, AutoShardPolicy.AUTO):
        required = policy == AutoShardPolicy.FILE and group.size > 1
        sharded = shard_files(pipe, group.size, group.rank, required)
        if sharded is not None or policy == AutoShardPolicy.FILE:
            return _own_batches(sharded or pipe, strategy, dataset)
    if policy in (AutoShardPolicy.OFF, AutoShardPolicy.HINT):
        return _own_batches(pipe, strategy, dataset)
    parts = Parts(pipe, total, range(group.rank * here, (group.rank + 1) * here))
    return _as_distributed(parts, strategy, dataset)


def _own_batches(pipe: Pipe, strategy: Any, dataset: Dataset) -> DistributedDataset:
    """The rows of this process alone, in batches of the sizes that its replicas take in turn; where the size of a
    global batch is not known, each batch cut among the replicas."""
    here, group = strategy._replicas_here, strategy._group
    size = batch_size(pipe)
    if size is not None:
        batches: Pipe = batching.Rebatched(pipe, sizes_for_worker(size, group.size, here, group.rank), False)
        return _in_turn(batches, strategy, dataset)
    parts: Pipe = pipe if group.size == 1 else Rebatched(pipe, group.size)
    return _together(parts if here == 1 else Parts(parts, here, range(here)), strategy, dataset)


def _require_dataset(dataset: Any, what: str) -> None:
    if not isinstance(dataset, Dataset):
        raise TypeError(f"{what} must be a tf.data.Dataset; got {dataset!r}")


def from_function(strategy: Any, dataset: Dataset) -> DistributedDataset:
    """The batches of one process: one for each of its replicas in turn."""
    _require_dataset(dataset, "distribute_datasets_from_function: what dataset_fn gives")
    return _in_turn(dataset._pipe, strategy, dataset)


def _in_turn(pipe: Pipe, strategy: Any, dataset: Dataset) -> DistributedDataset:
    here = strategy._replicas_here
    if here > 1:
        pipe = InTurn(pipe, here, drops=strategy._group.size == 1 and has_fixed_size(pipe))
    return _together(pipe, strategy, dataset)


def from_functions(strategy: Any, datasets: list[Dataset]) -> DistributedDataset:
    """The batches of one process, of which each replica has a dataset of its own."""
    if len(datasets) == 1:
        return from_function(strategy, datasets[0])
    for dataset in datasets:
        _require_dataset(dataset, "distribute_datasets_from_function: what dataset_fn gives")
    return _together(SideBySide([dataset._pipe for dataset in datasets]), strategy, datasets[0])


def _together(pipe: Pipe, strategy: Any, dataset: Dataset) -> DistributedDataset:
    group = strategy._group
    return _as_distributed(pipe if group.size == 1 else EndTogether(pipe, group), strategy, dataset)


def _as_distributed(pipe: Pipe, strategy: Any, dataset: Dataset) -> DistributedDataset:
    wraps = strategy._replicas_here == 1 and strategy._group.size > 1
    if wraps or any(strategy._processors):
        pipe = OnDevices(pipe, strategy._processors, wraps)
    return DistributedDataset(pipe, dataset._options)
