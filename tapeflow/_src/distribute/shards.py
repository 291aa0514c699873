"""Which part of a dataset a process and a replica get: rows of batches, files, and how processes end together."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.data.csv_files import CsvRows
from tapeflow._src.data.files import FromFiles
from tapeflow._src.data.pipes.batching import Batching
from tapeflow._src.data.pipes.flattening import FlatMapped
from tapeflow._src.data.pipes.mapping import Mapped
from tapeflow._src.data.pipes.ordering import Cached, Passing, Repeated, Sharded, Shuffled, Skipped, Taken
from tapeflow._src.data.pipes.pipe import Iteration, Pipe
from tapeflow._src.data.pipes.seeds import SeedSource
from tapeflow._src.data.pipes.structure import Leaves
from tapeflow._src.distribute.values import PerReplica, PerReplicaSpec
from tapeflow._src.ops.arrays.constants import zeros
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor, RaggedTensorSpec
from tapeflow._src.types import nest
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor, SparseTensorSpec
from tapeflow._src.types.tensor_spec import TensorSpec

# The pipes that hand on batches as they are, or one batch for each.
_KEEPING_SIZE = (Cached, Mapped, Passing, Repeated, Shuffled, Skipped, Taken)

# ---- rows


def has_batches(pipe: Pipe) -> bool:
    """Whether the elements of a pipe have rows: a leaf that is no scalar."""
    return not pipe.specs or any(getattr(spec, "shape", None) is None or spec.shape.rank != 0 for spec in pipe.specs)


def batch_size(pipe: Pipe) -> int | None:
    """The size of the batches of a pipe of dense tensors: that of its elements, or else that of the last batching. None
    where it is not known."""
    if not all(isinstance(spec, TensorSpec) and spec.shape.rank for spec in pipe.specs):
        return None
    sizes = {spec.shape[0] for spec in pipe.specs}
    if len(sizes) == 1 and None not in sizes:
        return int(sizes.pop())
    while not isinstance(pipe, Batching):
        if not isinstance(pipe, _KEEPING_SIZE):
            return None
        pipe = pipe.inputs[0]
    return pipe.size


def sizes_for_worker(size: int, workers: int, replicas: int, rank: int) -> list[int]:
    """The sizes of the batches that the replicas of one worker take in turn: `size` rows in a step of all workers."""
    each, longer = divmod(size, workers * replicas)
    sizes = [each + (number < longer) for number in range(workers * replicas)]
    return sizes[rank * replicas :] + sizes[: rank * replicas]


def has_fixed_size(pipe: Pipe) -> bool:
    """Whether all leaves of the elements of a pipe have a known number of rows."""
    shapes = [getattr(spec, "shape", None) for spec in pipe.specs]
    return all(shape is not None and (shape.rank == 0 or (shape.rank and shape[0] is not None)) for shape in shapes)


def _rows(leaf: Any) -> int | None:
    """The number of rows of a leaf; a scalar has none."""
    if isinstance(leaf, SparseTensor):
        return int(leaf.dense_shape[0])
    if isinstance(leaf, RaggedTensor):
        return int(leaf.nrows())
    return int(leaf.shape[0]) if leaf.shape.rank else None


def _part(leaf: Any, total: int, number: int) -> Any:
    """The rows of one of `total` parts: as many as the first ones have, as long as there are rows."""
    rows = _rows(leaf)
    if rows is None:
        return leaf
    each = -(-rows // total)
    begin, end = min(each * number, rows), min(each * (number + 1), rows)
    return _sparse_rows(leaf, begin, end) if isinstance(leaf, SparseTensor) else leaf[begin:end]


def _sparse_rows(sparse: SparseTensor, begin: int, end: int) -> SparseTensor:
    first = sparse.indices[:, 0]
    chosen = primitives.Where(primitives.LogicalAnd(first >= begin, first < end))[:, 0]
    indices = primitives.GatherV2(sparse.indices, chosen, 0)
    moved = primitives.ConcatV2([indices[:, :1] - begin, indices[:, 1:]], 1)
    shape = primitives.ConcatV2([convert_to_tensor([end - begin], "int64"), sparse.dense_shape[1:]], 0)
    return SparseTensor(moved, primitives.GatherV2(sparse.values, chosen, 0), shape)


def _spec_of_part(spec: Any, total: int) -> Any:
    """The spec of one of `total` parts of a batch."""
    if isinstance(spec, TensorSpec) and spec.shape.rank:
        size = spec.shape[0]
        return TensorSpec([None if size is None or size % total else size // total, *spec.shape[1:]], spec.dtype)
    return _of_any_size(spec)


def _of_any_size(spec: Any) -> Any:
    """The spec of batches of any size."""
    if isinstance(spec, PerReplicaSpec):
        return PerReplicaSpec(*(_of_any_size(part) for part in spec._value_specs))
    if isinstance(spec, TensorSpec) and spec.shape.rank:
        return TensorSpec([None, *spec.shape[1:]], spec.dtype)
    if isinstance(spec, SparseTensorSpec) and spec.shape.rank:
        return SparseTensorSpec([None, *spec.shape[1:]], spec.dtype)
    if isinstance(spec, RaggedTensorSpec) and spec.shape.rank:
        return RaggedTensorSpec([None, *spec.shape[1:]], spec.dtype, spec.ragged_rank, spec.row_splits_dtype)
    return spec


def _empty(spec: Any) -> Any:
    """A batch without rows."""
    if isinstance(spec, PerReplicaSpec):
        return PerReplica([_empty(part) for part in spec._value_specs])
    shape = [0, *(size or 0 for size in spec.shape[1:])] if spec.shape.rank else []
    if isinstance(spec, SparseTensorSpec):
        return SparseTensor(np.zeros([0, len(shape)], np.int64), convert_to_tensor([], spec.dtype), shape)
    if isinstance(spec, RaggedTensorSpec):
        values = zeros([0, *(size or 0 for size in spec.shape[1 + spec.ragged_rank :])], spec.dtype)
        return RaggedTensor.from_nested_row_splits(
            values, [convert_to_tensor([0], spec.row_splits_dtype) for _ in range(spec.ragged_rank)]
        )
    return zeros(shape, spec.dtype)


def _for_each_replica(spec: Any, replicas: int) -> Any:
    """The structure of elements that have such a part for each of several replicas."""
    return spec if replicas == 1 else nest.map_structure(lambda leaf: PerReplicaSpec(*[leaf] * replicas), spec)


def _grouped(parts: Sequence[Leaves]) -> Leaves:
    """One element of the elements for each replica of this process."""
    return parts[0] if len(parts) == 1 else tuple(PerReplica(leaves) for leaves in zip(*parts))


class OnDevices(Pipe):
    """The elements of a pipe, with the part of each replica on its device. The elements of one replica become values
    of a replica where other processes have some."""

    name = "_DistributedDataset"

    def __init__(self, before: Pipe, processors: Sequence[int], wraps: bool) -> None:
        spec = nest.map_structure(PerReplicaSpec, before.spec) if wraps else before.spec
        super().__init__(spec, before)
        self._processors, self._wraps = processors, wraps

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        for element in self.inputs[0].begin(iteration):
            yield tuple([self._placed(leaf) for leaf in element])

    def _placed(self, leaf: Any) -> Any:
        parts = leaf.values if isinstance(leaf, PerReplica) else (leaf,)
        placed = [_on_processor(part, number) for part, number in zip(parts, self._processors)]
        return PerReplica(placed) if self._wraps or len(placed) > 1 else placed[0]

    def count(self) -> int:
        return self.inputs[0].count()


def _on_processor(part: Any, number: int) -> Any:
    """The part as a value of a logical processor; number 0 needs no name."""
    if number == 0:
        return part
    before = _core.place(number + 1, *_core.current_place()[1:])
    try:
        return nest.map_structure(primitives.Identity, part, expand_composites=True)
    finally:
        _core.place(*before)


class Parts(Pipe):
    """Some of `total` equal parts of each batch: one for each replica of this process."""

    name = "_DistributedDataset"

    def __init__(self, before: Pipe, total: int, wanted: range) -> None:
        spec = nest.map_structure(lambda leaf: _spec_of_part(leaf, total), before.spec)
        super().__init__(_for_each_replica(spec, len(wanted)), before)
        self._total, self._wanted = total, wanted

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        total = self._total
        for element in self.inputs[0].begin(iteration):
            yield _grouped([tuple([_part(leaf, total, number) for leaf in element]) for number in self._wanted])

    def count(self) -> int:
        return self.inputs[0].count()


class Rebatched(Pipe):
    """Each batch as `parts` smaller ones, one after the other."""

    name = "_RebatchDataset"

    def __init__(self, before: Pipe, parts: int) -> None:
        super().__init__(nest.map_structure(lambda leaf: _spec_of_part(leaf, parts), before.spec), before)
        self._parts = parts

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        for element in self.inputs[0].begin(iteration):
            rows = next((rows for rows in map(_rows, element) if rows is not None), 1)
            for number in range(min(self._parts, rows)):
                part = tuple([_part(leaf, self._parts, number) for leaf in element])
                if number == 0 or any(_rows(leaf) for leaf in part):
                    yield part


class InTurn(Pipe):
    """Batches for replicas in turn. Where they do not suffice at the end, the last replicas get empty ones; those of a
    fixed size are left out instead."""

    name = "_DistributedDataset"

    def __init__(self, before: Pipe, replicas: int, drops: bool) -> None:
        spec = before.spec if drops else nest.map_structure(_of_any_size, before.spec)
        super().__init__(_for_each_replica(spec, replicas), before)
        self._replicas, self._drops = replicas, drops

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        elements = iter(self.inputs[0].begin(iteration))
        while parts := list(islice(elements, self._replicas)):
            if self._drops and len(parts) < self._replicas:
                return
            empty = tuple(_empty(spec) for spec in self.inputs[0].specs)
            yield _grouped(parts + [empty] * (self._replicas - len(parts)))

    def count(self) -> int:
        before = self.inputs[0].count()
        if before < 0:
            return before
        return before // self._replicas if self._drops else -(-before // self._replicas)


class SideBySide(Pipe):
    """One batch of each of several datasets, for a replica each; a dataset that has ended goes on with empty ones."""

    name = "_DistributedDataset"

    def __init__(self, pipes: Sequence[Pipe]) -> None:
        spec = nest.map_structure(_of_any_size, pipes[0].spec)
        super().__init__(_for_each_replica(spec, len(pipes)), *pipes)

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        runs = [iter(pipe.begin(iteration)) for pipe in self.inputs]
        empty = tuple(_empty(spec) for spec in self.inputs[0].specs)
        while True:
            parts = [next(run, None) for run in runs]
            if all(part is None for part in parts):
                return
            yield _grouped([empty if part is None else part for part in parts])


class EndTogether(Pipe):
    """The elements of a pipe, and then empty ones as long as another process has elements."""

    name = "_DistributedDataset"

    def __init__(self, before: Pipe, group: Any) -> None:
        super().__init__(nest.map_structure(_of_any_size, before.spec), before)
        self._group = group

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        elements = iter(self.inputs[0].begin(iteration))
        empty = tuple(_empty(spec) for spec in self.inputs[0].specs)
        while True:
            element = next(elements, None)
            if not self._group.any(element is not None, "next element of a distributed dataset"):
                return
            yield empty if element is None else element


# ---- order and files


def _pipes_of(pipe: Pipe) -> Iterator[Pipe]:
    """A pipe and those before it, and the datasets that functions make in them."""
    yield pipe
    inner = getattr(pipe, "_inner", None)
    for before in (*pipe.inputs, *([inner] if isinstance(inner, Pipe) else [])):
        yield from _pipes_of(before)


def agree_on_seeds(pipe: Pipe, group: Any) -> None:
    """Lets all processes draw the seeds of the first one, so that shuffled elements come in one order. A collective."""
    found = (getattr(one, "_source", None) for one in _pipes_of(pipe))
    sources = [source for source in found if isinstance(source, SeedSource)]
    if not sources:
        return
    own = np.array([source.seeds for source in sources], np.int64)
    agreed = group.broadcast(own, "seeds of a distributed dataset")
    for source, (first, second) in zip(sources, agreed.tolist()):
        source.begin_at((first, second))


def shard_files(pipe: Pipe, workers: int, rank: int, required: bool) -> Pipe | None:
    """The pipe with every `workers`-th of its files; None if it reads none, or fewer files than there are workers."""
    found = _shard(pipe, workers, rank)
    if found is None and required:
        raise InvalidArgumentError.of(
            "AutoShardPolicy.FILE: Did not find a shardable source, walked to a node which is not a dataset of files, "
            f"or there are fewer files than {workers} workers. Consider AutoShardPolicy.DATA."
        )
    return found


def _shard(pipe: Pipe, workers: int, rank: int) -> Pipe | None:
    if isinstance(pipe, FlatMapped) and any(isinstance(one, (FromFiles, CsvRows)) for one in _pipes_of(pipe._inner)):
        return _with_input(pipe, 0, _every_nth(pipe.inputs[0], workers, rank))
    if isinstance(pipe, FromFiles) and pipe.inputs:
        return _with_input(pipe, 0, _every_nth(pipe.inputs[0], workers, rank))
    if isinstance(pipe, FromFiles) and not _core.is_symbolic(pipe._names):
        names = primitives.Reshape(pipe._names, [-1])
        return _changed(pipe, _names=names[rank::workers]) if names.shape[0] >= workers else None
    if isinstance(pipe, CsvRows):
        return _changed(pipe, _files=pipe._files[rank::workers]) if len(pipe._files) >= workers else None
    changed: Pipe | None = pipe if pipe.inputs else None
    for place, before in enumerate(pipe.inputs):  # all of them, so that zipped elements still belong together
        if changed is not None:
            changed = _with_input(changed, place, _shard(before, workers, rank))
    return changed


def _every_nth(pipe: Pipe, workers: int, rank: int) -> Pipe | None:
    return None if 0 <= pipe.count() < workers else Sharded(pipe, workers, rank)


def _with_input(pipe: Pipe, place: int, before: Pipe | None) -> Pipe | None:
    """A copy of a pipe that takes its elements from another one."""
    if before is None:
        return None
    old = pipe.inputs[place]
    inputs = (*pipe.inputs[:place], before, *pipe.inputs[place + 1 :])
    return _changed(pipe, **{name: before for name, value in vars(pipe).items() if value is old}, inputs=inputs)


def _changed(pipe: Pipe, **attributes: Any) -> Pipe:
    changed = copy.copy(pipe)
    changed.__dict__.update(attributes)
    return changed
