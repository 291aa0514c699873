"""Elements put together and taken apart: batches, padded batches, rows."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.data.pipes.background import Ahead
from tapeflow._src.data.pipes.mapping import parallel_calls, threads_for
from tapeflow._src.data.pipes.pipe import INFINITE, UNKNOWN, Iteration, Pipe, as_count, known
from tapeflow._src.data.pipes.structure import Leaves, batched_spec, gathered, row, row_count, stacked, unbatched_spec
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor, RaggedTensorSpec
from tapeflow._src.primitives import ConcatV2
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import DataLossError, InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor, SparseTensorSpec
from tapeflow._src.types.tensor_shape import TensorShape, as_shape
from tapeflow._src.types.tensor_spec import TensorSpec


class Batching(Pipe):
    """A pipe that makes one element of `size` elements."""

    _calls: Any = None  # how many batches are put together at a time
    _deterministic: bool | None = None

    def __init__(self, before: Pipe, size: Any, drops: Any, batch: Callable[[Any, int | None], Any]) -> None:
        self._size = as_count(size, "batch_size")
        if isinstance(self._size, int) and self._size <= 0:
            raise InvalidArgumentError.of(f"Batch size must be greater than zero; got {self._size}.")
        self._drops = bool(drops)
        known_size = known(self._size) if self._drops else None
        super().__init__(
            nest.map_structure(lambda spec: batch(spec, known_size), before.spec), before, symbols=[self._size]
        )

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        groups = Groups(self.inputs[0].begin(iteration), iteration.number(self._size), self._drops)
        threads = 1 if self._calls is None else threads_for(self._calls, iteration)
        if threads > 1:
            ordered = iteration.is_ordered(self._deterministic)
            return Ahead(groups, threads, self.together, threads, ordered, at_once=not ordered)
        return map(self.together, groups)

    @property
    def size(self) -> int | None:
        """How many elements a full batch has, where that is known."""
        return known(self._size)

    def together(self, group: list[Leaves]) -> Leaves:
        """One element of several."""
        raise NotImplementedError

    def count(self) -> int:
        before, size = self.inputs[0].count(), known(self._size)
        if before < 0:
            return before
        if size is None:
            return UNKNOWN
        return before // size if self._drops else -(-before // size)


class Groups:
    """Elements, `size` at a time. After an error it goes on with a new group."""

    def __init__(self, elements: Iterator[Leaves], size: int, drops: bool) -> None:
        self._elements, self._size, self._drops = elements, size, drops

    def __iter__(self) -> Groups:
        return self

    def __next__(self) -> list[Leaves]:
        group = list(itertools.islice(self._elements, self._size))
        if not group or (self._drops and len(group) < self._size):
            raise StopIteration
        return group


class Batched(Batching):
    """Batches of elements that have one shape. Elements that have numbers are gathered by them, all rows at once."""

    name = "_BatchDataset"

    def __init__(
        self, before: Pipe, size: Any, drops: Any, calls: Any = None, deterministic: bool | None = None
    ) -> None:
        super().__init__(before, size, drops, batched_spec)
        if calls is not None:
            self.name = "_ParallelBatchDataset"
            self._calls, self._deterministic = parallel_calls(calls, self), deterministic

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        return self._rows(iteration) if self.inputs[0].indexed else super().begin(iteration)

    def _rows(self, iteration: Iteration) -> Iterator[Leaves]:
        table, places = self.inputs[0].order(iteration)
        size = iteration.number(self._size)
        if isinstance(places, range) and places.step == 1 and all(isinstance(x, _core.Tensor) for x in table):
            for start in range(0, len(places), size):
                part = places[start : start + size]
                if self._drops and len(part) < size:
                    return
                yield tuple([leaf[part.start : part.stop] for leaf in table])
            return
        numbers = iter(places)
        while True:
            group = np.fromiter(itertools.islice(numbers, size), np.int64)
            if not len(group) or (self._drops and len(group) < size):
                return
            yield tuple([gathered(leaf, group) for leaf in table])

    def together(self, group: list[Leaves]) -> Leaves:
        return tuple(
            [stacked(parts, spec, i) for i, (parts, spec) in enumerate(zip(zip(*group), self.inputs[0].specs))]
        )


class RaggedBatched(Batching):
    """Batches in which dimensions of unknown size are ragged."""

    name = "_BatchDataset"

    def __init__(self, before: Pipe, size: Any, drops: Any, splits: Any) -> None:
        self._splits = as_dtype(splits)
        super().__init__(before, size, drops, self._spec)

    def _spec(self, spec: Any, size: int | None) -> Any:
        if not isinstance(spec, TensorSpec):
            return batched_spec(spec, size)
        if spec.shape.rank is None:
            raise ValueError("Unable to create ragged batches: the rank of an element is not known.")
        rank = max((i + 1 for i, length in enumerate(spec.shape.as_list()) if length is None), default=0)
        if rank == 0:
            return batched_spec(spec, size)
        return RaggedTensorSpec(TensorShape([size]).concatenate(spec.shape), spec.dtype, rank, self._splits)

    def together(self, group: list[Leaves]) -> Leaves:
        result = []
        for number, (parts, spec, before) in enumerate(zip(zip(*group), self.specs, self.inputs[0].specs)):
            if isinstance(spec, RaggedTensorSpec) and isinstance(before, TensorSpec):
                result.append(self._ragged(parts, spec))
            else:
                result.append(stacked(parts, before, number))
        return tuple(result)

    def _ragged(self, parts: tuple[Any, ...], spec: RaggedTensorSpec) -> Any:
        """Rows of which the first `ragged_rank - 1` dimensions are ragged inside, too."""
        depth = spec.ragged_rank
        splits = [[0] for _ in range(depth)]
        for part in parts:
            sizes = part.shape.as_list()
            rows = 1
            for level in range(depth):
                for _ in range(rows):
                    splits[level].append(splits[level][-1] + sizes[level])
                rows *= sizes[level]
        inner = spec.shape.as_list()[depth + 1 :]
        flat = [part.numpy().reshape([-1, *part.shape.as_list()[depth:]]) for part in parts]
        values = convert_to_tensor(np.concatenate(flat) if flat else np.zeros([0, *inner], spec.dtype.as_numpy_dtype))
        return RaggedTensor.from_nested_row_splits(
            values, [convert_to_tensor(level, self._splits) for level in splits], validate=False
        )


class SparseBatched(Batching):
    """Batches of which the rows are the elements, in a sparse tensor."""

    name = "_DenseToSparseBatchDataset"

    def __init__(self, before: Pipe, size: Any, row_shape: Any) -> None:
        self._row = as_shape(row_shape)
        (spec,) = before.specs
        if not isinstance(spec, TensorSpec):
            raise TypeError(f"`sparse_batch` is only supported for datasets of tensors; got {spec}")
        super().__init__(
            before, size, False, lambda spec, n: SparseTensorSpec(TensorShape([n]).concatenate(self._row), spec.dtype)
        )

    def together(self, group: list[Leaves]) -> Leaves:
        arrays = [part.numpy() for (part,) in group]
        for array in arrays:
            if self._row.rank not in (array.ndim, None):
                raise InvalidArgumentError.of(
                    f"Input element had shape ({list(array.shape)}) that is incompatible with the row shape "
                    f"({self._row.as_list()})."
                )
        largest = np.max([array.shape for array in arrays], axis=0)
        sizes = [own if given is None else given for given, own in zip(self._row.as_list(), largest)]
        for array in arrays:
            if any(own > size for own, size in zip(array.shape, sizes)):
                raise DataLossError.of(
                    f"Input element had shape ({list(array.shape)}) that is larger than the row shape ({sizes}).",
                )
        places = [np.argwhere(np.ones(array.shape, bool)) for array in arrays]
        indices = np.concatenate([np.insert(place, 0, i, axis=1) for i, place in enumerate(places)])
        values = np.concatenate([array.reshape(-1) for array in arrays])
        return (SparseTensor(indices, values, [len(arrays), *map(int, sizes)]),)


class Unbatched(Pipe):
    """The rows of each element."""

    name = "_UnbatchDataset"

    def __init__(self, before: Pipe) -> None:
        if not before.specs:
            raise ValueError("Cannot unbatch an input with no components.")
        shapes = [spec.shape for spec in before.specs if getattr(spec, "shape", None) is not None]
        if any(shape.rank == 0 for shape in shapes):
            raise ValueError("Cannot unbatch an input with scalar components.")
        sizes = [shape[0] for shape in shapes if shape.rank is not None and shape[0] is not None]
        if any(size != sizes[0] for size in sizes):
            raise ValueError(
                "`unbatch()` is only supported for datasets of elements whose components have a matching leading "
                f"dimension. Encountered both {sizes[0]} and {next(size for size in sizes if size != sizes[0])}."
            )
        super().__init__(nest.map_structure(unbatched_spec, before.spec), before)

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        for element in self.inputs[0].begin(iteration):
            if any(isinstance(leaf, _core.Tensor) and leaf.shape.rank == 0 for leaf in element):
                raise InvalidArgumentError.of("Input element must have a non-scalar value in each component.")
            counts = {row_count(leaf) for leaf in element if leaf is not None}
            if len(counts) > 1:
                raise InvalidArgumentError.of(
                    f"Input element must have the same batch size in each component; got {sorted(counts)}."
                )
            for place in range(next(iter(counts), 0)):
                yield tuple([row(leaf, place) for leaf in element])

    def count(self) -> int:
        before = self.inputs[0].count()
        sizes = [spec.shape[0] for spec in self.inputs[0].specs if getattr(spec, "shape", None) and spec.shape.rank]
        size = next((size for size in sizes if size is not None), None)
        if before == 0 or before == INFINITE:
            return before
        return UNKNOWN if before < 0 or size is None else before * size


def _whole_parts(before: Pipe, size: Any) -> int | None:
    """The batch size, if all batches before have one size that it divides."""
    shapes = [getattr(spec, "shape", None) for spec in before.specs]
    sizes = {shape[0] for shape in shapes if shape is not None and shape.rank} - {None}
    if len(sizes) != 1 or _core.is_symbolic(size) or int(size) <= 0:
        return None
    return None if sizes.pop() % int(size) else int(size)


class Rebatched(Batching):
    """Batches of another size, of elements that are batches already."""

    name = "_RebatchDataset"

    def __init__(self, before: Pipe, size: Any, drops: Any) -> None:
        def batch(spec: Any, length: int | None) -> Any:
            return batched_spec(unbatched_spec(spec), fixed if length is None else length)

        self._in_turn = None if _core.is_symbolic(size) or np.ndim(size) == 0 else [int(one) for one in size]
        if self._in_turn is not None and (min(self._in_turn, default=0) < 0 or not any(self._in_turn)):
            raise InvalidArgumentError.of(f"Batch sizes must not be negative, nor all 0; got {self._in_turn}.")
        same = self._in_turn is None or len(set(self._in_turn)) == 1
        fixed = _whole_parts(before, self._in_turn[0] if self._in_turn else size) if same else None
        super().__init__(before, max(self._in_turn) if self._in_turn else size, bool(drops) and same, batch)
        self._drops = bool(drops)

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        sizes = itertools.cycle(self._in_turn or [iteration.number(self._size)])
        size = next(sizes)
        waiting: deque[Leaves] = deque()
        rows = 0
        for element in self.inputs[0].begin(iteration):
            start, length = 0, row_count(element[0])
            while rows + length - start >= size:
                stop = start + size - rows
                yield self._joined([*waiting, tuple([leaf[start:stop] for leaf in element])])
                waiting.clear()
                rows, start, size = 0, stop, next(sizes)
            if start < length:
                waiting.append(tuple([leaf[start:] for leaf in element]))
                rows += length - start
        if rows and not self._drops:
            yield self._joined(list(waiting))

    def _joined(self, parts: list[Leaves]) -> Leaves:
        return parts[0] if len(parts) == 1 else tuple([ConcatV2(list(leaves), 0) for leaves in zip(*parts)])

    def count(self) -> int:
        before = self.inputs[0].count()
        size, own = known(self._size), self.inputs[0].specs[0].shape
        if before < 0:
            return before
        if size is None or self._in_turn or not own.rank or own[0] is None:
            return UNKNOWN
        return int(before * own[0] // size if self._drops else -(-before * own[0] // size))
