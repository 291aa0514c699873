"""`tf.experimental.DynamicRaggedShape`: what `tf.shape` gives for a ragged tensor, and tensors of such a shape."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import fill, ones, zeros
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.shaping import shape as dense_shape
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor, add_operation
from tapeflow._src.ops.ragged.row_partition import RowPartition
from tapeflow._src.types.dtypes import as_dtype, int32, int64


@public("experimental.DynamicRaggedShape")
class DynamicRaggedShape:
    """The shape of a ragged or dense tensor: how its rows are divided, and the shape of its flat values.

    >>> tf.shape(tf.ragged.constant([[1], [2, 3]]))
    <DynamicRaggedShape lengths=[2, (1, 2)] num_row_partitions=1>
    """

    def __init__(self, row_partitions: Any, inner_shape: Any, dtype: Any = None) -> None:
        self._partitions: tuple[RowPartition, ...] = tuple(row_partitions)
        kind = None if dtype is None else as_dtype(dtype)
        inner = convert_to_tensor(inner_shape, dtype_hint=int64)
        self._inner = inner if kind is None else cast(inner, kind)

    @classmethod
    def from_tensor(cls, t: Any, dtype: Any = None) -> DynamicRaggedShape:
        """The shape of a tensor.

        >>> tf.experimental.DynamicRaggedShape.from_tensor([[1, 2]]).inner_shape
        [1, 2]
        """
        if not isinstance(t, RaggedTensor):
            return cls((), dense_shape(t, dtype or int64))
        partitions = []
        part = t
        while isinstance(part, RaggedTensor):
            partitions.append(RowPartition(part.with_values(_places(part))))
            part = part.values
        return cls(partitions, dense_shape(part, dtype or t.row_splits.dtype))

    @classmethod
    def from_lengths(
        cls, lengths: Any, num_row_partitions: int | None = None, dtype: Any = int64
    ) -> DynamicRaggedShape:
        """The shape with these sizes; a dimension with rows of several lengths is a tuple of them.

        >>> tf.experimental.DynamicRaggedShape.from_lengths([2, (1, 3), 4])
        <DynamicRaggedShape lengths=[2, (1, 3), 4] num_row_partitions=1>
        """
        if not isinstance(lengths, list):
            raise ValueError("lengths should be a list")
        sizes = list(lengths)
        count = _partition_count(sizes, num_row_partitions)
        partitions: list[RowPartition] = []
        rows = sizes[0] if sizes else 0
        for axis in range(1, count + 1):
            size = sizes[axis]
            if isinstance(size, int):
                partitions.append(RowPartition.from_uniform_row_length(size, nrows=rows, dtype=dtype))
                rows *= size
            elif len(size) != rows:
                raise ValueError(f"Dimension {axis} has lengths for {len(size)} rows instead of {rows}: {sizes}")
            else:
                partitions.append(RowPartition.from_row_lengths(list(size), dtype=dtype))
                rows = builtins.sum(size)
        return cls(partitions, [rows, *sizes[count + 1 :]] if count else sizes, dtype)

    @property
    def rank(self) -> int | None:
        """The number of dimensions."""
        inner = self.inner_rank
        return None if inner is None else len(self._partitions) + inner

    @property
    def inner_rank(self) -> int | None:
        """The number of dimensions of the flat values."""
        result: int | None = self._inner.shape[0]
        return result

    @property
    def inner_shape(self) -> Any:
        """The shape of the flat values."""
        return self._inner

    @property
    def dtype(self) -> Any:
        """The dtype of the numbers in the shape."""
        return self._inner.dtype

    @property
    def num_row_partitions(self) -> int:
        """How many dimensions are divided by rows."""
        return len(self._partitions)

    @property
    def row_partitions(self) -> tuple[RowPartition, ...]:
        """How the rows are divided, the outermost first."""
        return self._partitions

    def with_dtype(self, dtype: Any) -> DynamicRaggedShape:
        """The same shape with numbers of another dtype."""
        return DynamicRaggedShape(self._partitions, self._inner, dtype)

    def is_uniform(self, axis: int) -> bool:
        """Whether a dimension is stored as one of uniform row length."""
        count = len(self._partitions)
        return axis == 0 or axis > count or self._partitions[axis - 1].uniform_row_length() is not None

    def static_lengths(self, ragged_lengths: bool = True) -> list[Any]:
        """For each dimension its size, or the lengths of its rows; None where it is dynamic."""
        found: list[Any] = [_known(self[0])] if self._partitions else []
        for partition in self._partitions:
            uniform, lengths = partition.uniform_row_length(), partition.row_lengths()
            if uniform is not None:
                found.append(_known(uniform))
            elif _core.is_symbolic(lengths) or not ragged_lengths:
                found.append(None)
            else:
                found.append(tuple(lengths.numpy().tolist()))
        inner = [_known(self._inner[i]) for i in range(self.inner_rank or 0)]
        return found + (inner[1:] if self._partitions else inner)

    def __getitem__(self, index: Any) -> Any:
        count = len(self._partitions)
        if isinstance(index, builtins.slice):
            start, stop, step = index.indices(self.rank or 0)
            dims = range(start, stop, step)
            if not all(self.is_uniform(axis) for axis in dims):
                raise ValueError("All relevant dimensions must be uniform")
            return DynamicRaggedShape((), [self[axis] for axis in dims], self.dtype)
        axis = index + (self.rank or 0) if index < 0 else index
        if not 0 <= axis < (self.rank or 0):
            raise IndexError(f"Index {index} out of range for a shape of rank {self.rank}")
        if axis > count or not count:
            return self._inner[axis - count]
        if axis == 0:
            return cast(self._partitions[0].nrows(), self.dtype)
        length = self._partitions[axis - 1].uniform_row_length()
        if length is None:
            raise ValueError(f"Index {axis} is not uniform")
        return cast(length, self.dtype)

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, DynamicRaggedShape) and self.static_lengths() == other.static_lengths()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        lengths = ", ".join(str(length) for length in self.static_lengths())
        return f"<DynamicRaggedShape lengths=[{lengths}] num_row_partitions={self.num_row_partitions}>"

    def __tf_operation__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs an operation that takes a shape."""
        make = _MAKERS.get(getattr(function, "__name__", ""))
        return NotImplemented if make is None else make(*args, **kwargs)

    def rows_of(self, flat_values: Any) -> Any:
        """The ragged tensor of this shape with these flat values."""
        for partition in reversed(self._partitions):
            flat_values = partition.rows_of(flat_values)
        return flat_values


def _partition_count(sizes: list[Any], wanted: int | None) -> int:
    """How many dimensions of these sizes are divided by rows: up to the last ragged one, or as many as wanted."""
    for size in sizes:
        if not isinstance(size, int) and not (isinstance(size, tuple) and all(isinstance(row, int) for row in size)):
            raise ValueError(f"element of lengths should be int or tuple of ints: instead {size!r}")
    if sizes and not isinstance(sizes[0], int):
        raise ValueError(f"The first dimension of lengths should be an int: instead {sizes[0]!r}")
    least = max((axis for axis, size in enumerate(sizes) if not isinstance(size, int)), default=0)
    count = least if wanted is None else wanted
    if not isinstance(count, int):
        raise ValueError("num_row_partitions should be an int or None")
    if not sizes and count > 0:
        raise ValueError("num_row_partitions==0 for a scalar shape")
    if sizes and count >= len(sizes):
        raise ValueError("num_row_partitions should be less than `len(lengths)` if shape is not scalar.")
    if count < least:
        raise ValueError(f"num_row_partitions should be at least {least} for lengths {sizes}; got {count}")
    return count


def _places(ragged: RaggedTensor) -> Tensor:
    last = cast(ragged.row_splits[-1], int64)
    return primitives.Range(cast(0, int64), last, cast(1, int64))


def _known(number: Any) -> int | None:
    return None if _core.is_symbolic(number) else int(number)


def _shape_of(input: Any, out_type: Any = None, name: str | None = None) -> DynamicRaggedShape:
    return DynamicRaggedShape.from_tensor(input, out_type or int32)


def _reshape(tensor: Any, shape: DynamicRaggedShape, name: str | None = None) -> Any:
    flat = tensor.flat_values if isinstance(tensor, RaggedTensor) else convert_to_tensor(tensor)
    return shape.rows_of(primitives.Reshape(flat, shape.inner_shape))


def _broadcast_to(input: Any, shape: DynamicRaggedShape, name: str | None = None) -> Any:
    pattern = shape.rows_of(zeros(shape.inner_shape, dtype="int32"))
    x = input if isinstance(input, RaggedTensor) else convert_to_tensor(input)
    return pattern.with_flat_values(cast(pattern.flat_values, x.dtype)) + x


_MAKERS: dict[str, Callable[..., Any]] = {
    "broadcast_to": _broadcast_to,
    "reshape": _reshape,
    "zeros": lambda shape, *args, **kwargs: shape.rows_of(zeros(shape.inner_shape, *args, **kwargs)),
    "ones": lambda shape, *args, **kwargs: shape.rows_of(ones(shape.inner_shape, *args, **kwargs)),
    "fill": lambda dims, value, *args, **kwargs: dims.rows_of(fill(dims.inner_shape, value)),
}
add_operation("shape", _shape_of)
