"""Datasets of a strategy: which part of each batch a replica gets, and how processes end together."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.data.dataset import Dataset
from tapeflow._src.data.iterator import Iterator
from tapeflow._src.data.options import AutoShardPolicy
from tapeflow._src.data.pipes.pipe import Iteration, Pipe
from tapeflow._src.distribute.values import PerReplica, PerReplicaSpec
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import zeros
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor, RaggedTensorSpec
from tapeflow._src.types import nest
from tapeflow._src.types.sparse_tensor import SparseTensor, SparseTensorSpec
from tapeflow._src.types.tensor_spec import TensorSpec


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


@public("distribute.DistributedIterator")
class DistributedIterator(Iterator):
    """A class to ask about: iterators over distributed datasets are plain iterators.

    >>> isinstance(iter(tf.data.Dataset.range(2)), tf.distribute.DistributedIterator)
    False
    """


def distributed(strategy: Any, dataset: Dataset, options: Any) -> DistributedDataset:
    """The dataset of global batches, with each one cut into equal parts for the replicas, the last ones shorter.

    All processes read the same global batches, so that they end together; a replica takes its rows of each. With
    `AutoShardPolicy.OFF` each process keeps its batches whole and cuts them among its own replicas.
    """
    policy = dataset.options().experimental_distribute.auto_shard_policy
    here, group = strategy._replicas_here, strategy._group
    if policy == AutoShardPolicy.FILE and group.size > 1:
        return from_function(strategy, _split_here(dataset.shard(group.size, group.rank), here), split=False)
    if policy in (AutoShardPolicy.OFF, AutoShardPolicy.HINT) and group.size > 1:
        return from_function(strategy, _split_here(dataset, here), split=False)
    total, first = strategy.num_replicas_in_sync, group.rank * here
    if total == 1:
        return _as_distributed(dataset)
    if group.size > 1:
        dataset = Dataset(_SameOrder(dataset._pipe, group), dataset._options)
    return _as_distributed(dataset.map(lambda *batch: _parts(_element(batch), total, range(first, first + here))))


def from_function(strategy: Any, dataset: Dataset, split: bool = True) -> DistributedDataset:
    """The batches of one process: one for each of its replicas in turn. Where the processes have different numbers of
    batches, those that have ended go on with empty ones until all have."""
    here, group = strategy._replicas_here, strategy._group
    if split and here > 1:
        dataset = dataset.batch(here, drop_remainder=True).map(lambda *batch: _unstacked(_element(batch), here))
    if group.size > 1:
        dataset = Dataset(_EndTogether(dataset._pipe, group), dataset._options)
    return _as_distributed(dataset)


def _as_distributed(dataset: Dataset) -> DistributedDataset:
    return DistributedDataset(dataset._pipe, dataset._options)


def _element(batch: tuple[Any, ...]) -> Any:
    """What a dataset gave to a function of any number of arguments."""
    return batch[0] if len(batch) == 1 else batch


def _split_here(dataset: Dataset, here: int) -> Dataset:
    return dataset if here == 1 else dataset.map(lambda *batch: _parts(_element(batch), here, range(here)))


def _parts(batch: Any, total: int, wanted: range) -> Any:
    """The parts of a batch for some of the replicas: plain for one, `PerReplica` for several."""
    leaves = nest.flatten(batch)
    return _grouped([nest.pack_sequence_as(batch, [_part(x, total, number) for x in leaves]) for number in wanted])


def _grouped(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    return nest.map_structure(lambda *leaves: PerReplica(leaves), *parts)


def _part(leaf: Any, total: int, number: int) -> Any:
    """The rows of one replica: as many as the first ones have, as long as there are rows."""
    if isinstance(leaf, SparseTensor):
        rows = leaf.dense_shape[0]
    elif leaf.shape.rank == 0:
        return leaf
    else:
        rows = primitives.Cast(primitives.GatherV2(primitives.Shape(leaf), 0, 0), "int64")
    each = (rows + (total - 1)) // total
    begin = primitives.Minimum(each * number, rows)
    end = primitives.Minimum(each * (number + 1), rows)
    if isinstance(leaf, SparseTensor):
        return _sparse_rows(leaf, begin, end)
    part = leaf[begin:end]
    size = leaf.shape[0] if leaf.shape.rank else None
    if size is not None and size % total == 0 and _core.is_tensor(part):
        part = primitives.EnsureShape(part, [size // total, *leaf.shape[1:]])
    return part


def _sparse_rows(sparse: SparseTensor, begin: Any, end: Any) -> SparseTensor:
    first = sparse.indices[:, 0]
    chosen = primitives.Where(primitives.LogicalAnd(first >= begin, first < end))[:, 0]
    indices = primitives.GatherV2(sparse.indices, chosen, 0)
    moved = primitives.ConcatV2([indices[:, :1] - begin, indices[:, 1:]], 1)
    shape = primitives.ConcatV2([primitives.Reshape(end - begin, [1]), sparse.dense_shape[1:]], 0)
    return SparseTensor(moved, primitives.GatherV2(sparse.values, chosen, 0), shape)


def _unstacked(batch: Any, count: int) -> Any:
    leaves = nest.flatten(batch)
    return _grouped([nest.pack_sequence_as(batch, [leaf[number] for leaf in leaves]) for number in range(count)])


class _SameSeeds(Iteration):
    """A run whose shuffles have the same order in all processes: that of the first one."""

    __slots__ = ("_group",)

    def __init__(self, iteration: Iteration, group: Any) -> None:
        super().__init__(iteration.values)
        self.drawn, self.held, self.states, self._repeats = (
            iteration.drawn,
            iteration.held,
            iteration.states,
            iteration._repeats,
        )
        self._group = group

    def seeds(self, pipe: Any) -> tuple[int, int]:
        """The seeds that the first process drew."""
        own = np.asarray(super().seeds(pipe), np.int64)
        first, second = self._group.broadcast(own, "seeds of a distributed dataset").tolist()
        return first, second

    def within(self, tensors: Sequence[Any], values: Sequence[Any]) -> Iteration:
        """This run, with the values of further symbolic tensors."""
        return _SameSeeds(super().within(tensors, values), self._group)


class _SameOrder(Pipe):
    """The elements of a pipe, in the same order in all processes."""

    name = "SameOrderDataset"

    def __init__(self, source: Pipe, group: Any) -> None:
        super().__init__(source.spec, source)
        self._source, self._group = source, group

    def begin(self, iteration: Iteration) -> Any:
        """The elements of a run."""
        return self._source.begin(_SameSeeds(iteration, self._group))

    def count(self) -> int:
        """The number of elements."""
        return self._source.count()


class _EndTogether(Pipe):
    """The elements of a pipe, and then empty ones as long as another process has elements."""

    name = "EndTogetherDataset"

    def __init__(self, source: Pipe, group: Any) -> None:
        super().__init__(nest.map_structure(_of_any_size, source.spec), source)
        self._source, self._group = source, group

    def begin(self, iteration: Iteration) -> Any:
        """The elements of a run."""
        elements = iter(self._source.begin(iteration))
        empty = tuple(_empty(spec) for spec in self._source.specs)
        while True:
            element = next(elements, None)
            if not self._group.any(element is not None, "next element of a distributed dataset"):
                return
            yield empty if element is None else element


def _of_any_size(spec: Any) -> Any:
    """The spec of batches of any size."""
    if isinstance(spec, PerReplicaSpec):
        return PerReplicaSpec(*(_of_any_size(part) for part in spec._value_specs))
    if isinstance(spec, TensorSpec) and spec.shape.rank:
        return TensorSpec([None, *spec.shape[1:]], spec.dtype)
    return spec


def _empty(spec: Any) -> Any:
    """A batch without rows."""
    if isinstance(spec, PerReplicaSpec):
        return PerReplica([_empty(part) for part in spec._value_specs])
    if isinstance(spec, SparseTensorSpec):
        shape = [0, *(size or 0 for size in spec.shape[1:])]
        return SparseTensor(np.zeros([0, len(shape)], np.int64), convert_to_tensor([], spec.dtype), shape)
    if isinstance(spec, RaggedTensorSpec):
        return RaggedTensor.from_row_splits(convert_to_tensor([], spec.dtype), np.zeros(1, np.int64))
    shape = [0, *(size or 0 for size in spec.shape[1:])] if spec.shape.rank else []
    return zeros(shape, spec.dtype)
