"""Elements put together and taken apart: batches, padded batches, rows."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.data.pipes.pipe import INFINITE, UNKNOWN, Iteration, Pipe, as_count, known
from tapeflow._src.data.pipes.structure import Leaves, batched_spec, gathered, row, row_count, stacked, unbatched_spec
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.arrays.padding import pad
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor, RaggedTensorSpec
from tapeflow._src.primitives import ConcatV2
from tapeflow._src.types import nest, nest_paths
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import DataLossError, InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor, SparseTensorSpec
from tapeflow._src.types.tensor_shape import TensorShape, as_shape
from tapeflow._src.types.tensor_spec import NoneTensorSpec, TensorSpec


class Batching(Pipe):
    """A pipe that makes one element of `size` elements."""

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
        groups = _Groups(self.inputs[0].begin(iteration), iteration.number(self._size), self._drops)
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


class _Groups:
    """Elements, `size` at a time. After an error it goes on with a new group."""

    def __init__(self, elements: Iterator[Leaves], size: int, drops: bool) -> None:
        self._elements, self._size, self._drops = elements, size, drops

    def __iter__(self) -> _Groups:
        return self

    def __next__(self) -> list[Leaves]:
        group = list(itertools.islice(self._elements, self._size))
        if not group or (self._drops and len(group) < self._size):
            raise StopIteration
        return group


class Batched(Batching):
    """Batches of elements that have one shape. Elements that have numbers are gathered by them, all rows at once."""

    name = "_BatchDataset"

    def __init__(self, before: Pipe, size: Any, drops: Any) -> None:
        super().__init__(before, size, drops, batched_spec)

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


class PaddedBatched(Batching):
    """Batches of elements that are padded to one shape."""

    name = "_PaddedBatchDataset"

    def __init__(self, before: Pipe, size: Any, shapes: Any, values: Any, drops: Any) -> None:
        if not all(isinstance(spec, TensorSpec | NoneTensorSpec) for spec in before.specs):
            raise TypeError("`padded_batch` is only supported for datasets that produce tensor elements.")
        self._shapes = _padded_shapes(before, shapes)
        self._values = _padding_values(before, values)
        shape = iter(self._shapes)

        def batch(spec: Any, length: int | None) -> Any:
            return TensorSpec(TensorShape([length]).concatenate(next(shape)), spec.dtype)

        super().__init__(before, size, drops, batch)

    def together(self, group: list[Leaves]) -> Leaves:
        columns = zip(zip(*group), self._shapes, self._values)
        return tuple([_padded(parts, shape, value, i) for i, (parts, shape, value) in enumerate(columns)])


def _padded_shapes(before: Pipe, shapes: Any) -> list[TensorShape]:
    if shapes is None:
        for spec in before.specs:
            if spec.shape.rank is None:
                raise ValueError("You must provide `padded_shapes` argument because component has unknown rank.")
        return [spec.shape for spec in before.specs]
    flat = nest_paths.flatten_up_to(before.spec, shapes, check_types=False) if nest.is_nested(before.spec) else [shapes]
    found = []
    for spec, shape in zip(before.specs, flat):
        if _core.is_tensor(shape) or isinstance(shape, np.ndarray):
            shape = np.asarray(shape).tolist()
        if isinstance(shape, int):
            shape = [shape]
        shape = as_shape([None if size in (-1, None) else size for size in as_shape_list(shape)])
        if spec.shape.rank is not None and spec.shape.rank != shape.rank:
            raise ValueError(
                f"The padded shape {tuple(shape.as_list())} is not compatible with the shape "
                f"{tuple(spec.shape.as_list())} of the corresponding input component."
            )
        for padded, own in zip(shape.as_list(), spec.shape.as_list() if spec.shape.rank is not None else []):
            if padded is not None and own is not None and padded < own:
                raise ValueError(
                    f"The padded shape {tuple(shape.as_list())} is not compatible with the shape "
                    f"{tuple(spec.shape.as_list())} of the corresponding input component."
                )
        found.append(shape)
    return found


def as_shape_list(shape: Any) -> list[Any]:
    """The sizes of a shape in any of the forms in which programs give it; -1 stays."""
    return shape.as_list() if isinstance(shape, TensorShape) else list(shape)


def _padding_values(before: Pipe, values: Any) -> list[Any]:
    if values is None or not nest.is_nested(values):
        flat = [values] * len(before.specs)
    else:
        flat = nest_paths.flatten_up_to(before.spec, values, check_types=False)
    found = []
    for spec, value in zip(before.specs, flat):
        if value is None:
            value = b"" if spec.dtype.name == "string" else np.zeros([], spec.dtype.as_numpy_dtype)
        elif _core.is_tensor(value) and value.dtype != spec.dtype:
            raise TypeError(f"Padding value should be of type {spec.dtype.name}; got {value.dtype.name}.")
        own = convert_to_tensor(value)
        if (own.dtype.is_floating and not spec.dtype.is_floating) or (own.dtype.name == "string") != (
            spec.dtype.name == "string"
        ):
            raise TypeError(
                f"Invalid `padding_values`. `padding_values` values type {own.dtype!r} does not match type "
                f"{spec.dtype!r} of the corresponding input component."
            )
        tensor = convert_to_tensor(value, spec.dtype)
        if tensor.shape.rank != 0:
            raise ValueError(f"Padding value should be a scalar; got shape {tensor.shape}.")
        found.append(tensor)
    return found


def _padded(parts: tuple[Any, ...], shape: TensorShape, value: Any, number: int) -> Any:
    largest = [max(sizes) for sizes in zip(*[part.shape.as_list() for part in parts])]
    if len(largest) != shape.rank:
        raise InvalidArgumentError.of(
            f"All elements in a batch must have the same rank as the padded shape for component{number}: expected rank "
            f"{shape.rank} but got element with rank {len(largest)}",
        )
    sizes = [own if given is None else given for own, given in zip(largest, shape.as_list())]
    if any(own > size for own, size in zip(largest, sizes)):
        raise DataLossError.of(
            f"Attempted to pad to a smaller size than the input element. Component {number} has shape {largest}, the "
            f"padded shape is {sizes}.",
        )
    rows = []
    for part in parts:
        own = part.shape.as_list()
        if own != sizes:
            part = pad(part, [[0, size - length] for size, length in zip(sizes, own)], constant_values=value)
        rows.append(part)
    return stacked(rows, TensorSpec(sizes, parts[0].dtype), number)


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


class Rebatched(Batching):
    """Batches of another size, of elements that are batches already."""

    name = "_RebatchDataset"

    def __init__(self, before: Pipe, size: Any, drops: Any) -> None:
        def batch(spec: Any, length: int | None) -> Any:
            return batched_spec(unbatched_spec(spec), length)

        self._in_turn = None if _core.is_symbolic(size) or np.ndim(size) == 0 else [int(one) for one in size]
        if self._in_turn is not None and (min(self._in_turn, default=0) < 0 or not any(self._in_turn)):
            raise InvalidArgumentError.of(f"Batch sizes must not be negative, nor all 0; got {self._in_turn}.")
        same = self._in_turn is None or len(set(self._in_turn)) == 1
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
