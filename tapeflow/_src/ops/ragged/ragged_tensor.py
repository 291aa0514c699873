"""`tf.RaggedTensor`, rows of different lengths as flat values and the places where rows begin; and `tf.ragged`."""

from __future__ import annotations

import builtins
import itertools
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dims_of
from tapeflow._src.ops.arrays.constants import range as numbers_up_to
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor, padding_value_of
from tapeflow._src.ops.arrays.indexing import boolean_mask as dense_boolean_mask
from tapeflow._src.ops.effects.assertions import assert_equal
from tapeflow._src.ops.math.reductions import reduce_logsumexp, reduce_std, reduce_variance
from tapeflow._src.ops.sparse.sparse import as_sparse, crossed_rows, hash_features, join_features
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import DType, as_dtype, float32, float64, int32, int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.tensor_shape import TensorShape, as_shape
from tapeflow._src.types.tensor_spec import CompositeTensor, TensorSpec, TypeSpec


def _splits_tensor(splits: Any, dtype: Any = None) -> Any:
    if dtype is None:
        dtype = splits.dtype if _core.is_tensor(splits) and splits.dtype == int32 else int64
    return cast(convert_to_tensor(splits, dtype_hint=dtype), dtype)


def _from_lengths(lengths: Any) -> Any:
    zero = _core.convert_to_tensor([0], lengths.dtype, None, "ragged")
    return primitives.ConcatV2([zero, primitives.Cumsum(lengths, 0, False, False)], 0)


def _spans(starts: Any, lengths: Any, step: int = 1) -> Any:
    """The numbers from each start on, as many as the lengths say, one span behind the other."""
    splits = _from_lengths(lengths)
    rows = row_splits_to_segment_ids(splits)
    places = primitives.Cumsum(rows - rows + 1, 0, True, False) - primitives.GatherV2(splits, rows, 0, 0)
    return primitives.GatherV2(starts, rows, 0, 0) + step * places


def _span_of(key: builtins.slice, lengths: Any) -> tuple[Any, Any, int]:
    """Where a Python slice of rows of these lengths begins in each row, how many it takes, and its step."""
    step = 1 if key.step is None else int(key.step)
    least, beyond = (0, 0) if step > 0 else (-1, 1)

    def place(at: Any, otherwise: Any) -> Any:
        if at is None:
            return otherwise
        at = cast(at, lengths.dtype)
        at = primitives.SelectV2(at < 0, at + lengths, at + (lengths - lengths))
        return primitives.Minimum(primitives.Maximum(at, least), lengths - beyond)

    begin = place(key.start, lengths - lengths if step > 0 else lengths - 1)
    end = place(key.stop, lengths if step > 0 else lengths - lengths - 1)
    count = (end - begin + step - 1) // step if step > 0 else (begin - end - step - 1) // -step
    return begin, primitives.Maximum(count, 0), step


def _values_tensor(values: Any) -> Any:
    return values if isinstance(values, RaggedTensor) else convert_to_tensor(values)


def _row_count(values: Any) -> int:
    return int(values.nrows()) if isinstance(values, RaggedTensor) else values.shape[0]


def _invalid(who: str, what: str) -> InvalidArgumentError:
    return InvalidArgumentError(None, None, f"Arguments to {who} do not form a valid RaggedTensor: {what}")


@public("RaggedTensor", "compat.v1.RaggedTensor")
class RaggedTensor(CompositeTensor):
    """Rows `values[row_splits[i]:row_splits[i + 1]]`; the values may be ragged themselves.

    >>> tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 3]).to_list()
    [[1, 2], [3]]
    """

    __array_priority__ = 200
    is_tensor_like = True

    def __init__(self, values: Any, row_splits: Any, uniform_row_length: int | None = None) -> None:
        self._values, self._row_splits, self._uniform_row_length = values, row_splits, uniform_row_length

    # ---- making one

    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows between neighbouring splits."""
        values, splits = _values_tensor(values), _splits_tensor(row_splits)
        if values.shape.rank == 0:
            raise InvalidArgumentError(None, None, "from_row_splits: values must have at least one dimension")
        if splits.shape.rank != 1:
            raise ValueError(f"Shape {splits.shape} must have rank 1")
        if splits.shape[0] == 0:
            raise ValueError("row_splits tensor may not be empty.")
        if validate:
            at = splits.numpy()
            if at[0] != 0:
                raise _invalid(
                    "from_row_splits", f"zero\nCondition x == y did not hold.\nFirst 1 elements of x:\n[{at[0]}]"
                )
            if (np.diff(at) < 0).any():
                raise _invalid("from_row_splits", f"row_splits must not decrease; got {at.tolist()}")
            if at[-1] != _row_count(values):
                raise _invalid(
                    "from_row_splits",
                    f"the last row split must be the number of values, {_row_count(values)}; got {at[-1]}",
                )
        return cls(values, splits)

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows of these lengths."""
        lengths = _splits_tensor(row_lengths)
        if validate and lengths.shape.num_elements() and lengths.numpy().min() < 0:
            raise InvalidArgumentError(
                None,
                None,
                "Arguments to from_row_lengths do not form a valid RowPartition.  \nCondition x >= 0 did not hold "
                f"element-wise: {lengths.numpy().tolist()}",
            )
        return cls.from_row_splits(values, _from_lengths(lengths), validate=validate)

    @classmethod
    def from_value_rowids(
        cls, values: Any, value_rowids: Any, nrows: Any = None, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """The row of each value, in order."""
        rows = _splits_tensor(value_rowids)
        at = rows.numpy()
        count = int(nrows) if nrows is not None else int(at[-1]) + 1 if at.size else 0
        if validate and at.size and ((np.diff(at) < 0).any() or at[0] < 0 or at[-1] >= count):
            raise _invalid("from_value_rowids", f"value_rowids must be sorted and in [0, {count}); got {at.tolist()}")
        values = _values_tensor(values)
        if validate and _row_count(values) != rows.shape[0]:
            raise _invalid(
                "from_value_rowids", f"{_row_count(values)} values need as many value_rowids; got {rows.shape[0]}"
            )
        return cls(values, segment_ids_to_row_splits(rows, count, rows.dtype))

    @classmethod
    def from_row_starts(
        cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """The place where each row begins."""
        values, starts = _values_tensor(values), _splits_tensor(row_starts)
        end = _core.convert_to_tensor([_row_count(values)], starts.dtype, None, "ragged")
        return cls.from_row_splits(values, primitives.ConcatV2([starts, end], 0), validate=validate)

    @classmethod
    def from_row_limits(
        cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """The place where each row ends."""
        limits = _splits_tensor(row_limits)
        zero = _core.convert_to_tensor([0], limits.dtype, None, "ragged")
        return cls.from_row_splits(values, primitives.ConcatV2([zero, limits], 0), validate=validate)

    @classmethod
    def from_uniform_row_length(
        cls, values: Any, uniform_row_length: Any, nrows: Any = None, validate: bool = True, name: str | None = None
    ) -> RaggedTensor:
        """Rows of one length."""
        values, length = _values_tensor(values), int(uniform_row_length)
        count = int(nrows) if nrows is not None else (_row_count(values) // length if length else 0)
        if validate and count * length != _row_count(values):
            raise _invalid("from_uniform_row_length", f"{_row_count(values)} values are not {count} rows of {length}")
        splits = _core.convert_to_tensor(np.arange(count + 1, dtype=np.int64) * length, int64, None, "ragged")
        return cls(values, splits, length)

    @classmethod
    def from_nested_row_splits(
        cls, flat_values: Any, nested_row_splits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Splits for each ragged dimension, the outermost first."""
        result = flat_values
        for splits in reversed(list(nested_row_splits)):
            result = cls.from_row_splits(result, splits, validate=validate)
        return result

    @classmethod
    def from_nested_row_lengths(
        cls, flat_values: Any, nested_row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Lengths for each ragged dimension, the outermost first."""
        result = flat_values
        for lengths in reversed(list(nested_row_lengths)):
            result = cls.from_row_lengths(result, lengths, validate=validate)
        return result

    @classmethod
    def from_nested_value_rowids(
        cls,
        flat_values: Any,
        nested_value_rowids: Any,
        nested_nrows: Any = None,
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Rows of the values for each ragged dimension, the outermost first."""
        rows = list(nested_value_rowids)
        counts = list(nested_nrows) if nested_nrows is not None else [None] * len(rows)
        result = flat_values
        for ids, count in zip(reversed(rows), reversed(counts)):
            result = cls.from_value_rowids(result, ids, count, validate=validate)
        return result

    @classmethod
    def from_tensor(
        cls,
        tensor: Any,
        lengths: Any = None,
        padding: Any = None,
        ragged_rank: int = 1,
        name: str | None = None,
        row_splits_dtype: Any = int64,
    ) -> RaggedTensor:
        """The rows of a dense tensor, cut to `lengths`, or without the `padding` at their ends."""
        x = convert_to_tensor(tensor)
        dims, dtype = x.shape.as_list(), as_dtype(row_splits_dtype)
        if None in dims:
            sizes = primitives.Shape(x, int64)
            dims = [sizes[axis] if size is None else size for axis, size in enumerate(dims)]
        if not 0 < ragged_rank < len(dims):
            raise ValueError(f"ragged_rank must be in [1, {len(dims)}); got {ragged_rank}")
        if lengths is not None and padding is not None:
            raise ValueError("Specify argument `lengths` or `padding`, but not both.")
        if isinstance(lengths, list | tuple) and lengths and not isinstance(lengths[0], int):
            outer = cls.from_tensor(x, lengths[0], row_splits_dtype=dtype)
            if len(lengths) == 1:
                return outer
            return cls(cls.from_tensor(outer.values, lengths[1:], row_splits_dtype=dtype), outer.row_splits)
        if ragged_rank > 1:
            inner = primitives.Reshape(x, [dims[0] * dims[1], *dims[2:]])
            values = cls.from_tensor(inner, lengths, padding, ragged_rank - 1, None, dtype)
            return cls(values, _even_splits(dims, dtype), x.shape[1])
        flat = primitives.Reshape(x, [dims[0] * dims[1], *dims[2:]])
        if padding is not None:
            filler = convert_to_tensor(padding, dtype=x.dtype)
            same = primitives.Equal(x, filler)
            if len(dims) > 2:
                same = primitives.All(same, list(range(2, len(dims))), False)
            kept = primitives.SelectV2(same, convert_to_tensor(0, int64), cast(_counting(dims[1]), int64) + 1)
            lengths = primitives.Maximum(primitives.Max(kept, 1, False), convert_to_tensor(0, int64))  # of nothing, too
        if lengths is None:
            return cls(flat, _even_splits(dims, dtype), x.shape[1])
        counts = primitives.Minimum(cast(lengths, dtype), cast(dims[1], dtype))
        mask = primitives.Less(cast(_counting(dims[1]), dtype), primitives.ExpandDims(counts, 1))
        return cls(dense_boolean_mask(x, mask), _from_lengths(counts))

    @classmethod
    def from_sparse(cls, st_input: Any, name: str | None = None, row_splits_dtype: Any = int64) -> RaggedTensor:
        """The rows of a sparse matrix whose elements stand at the beginning of their rows."""
        x = as_sparse(st_input, "from_sparse")
        rows = x.indices[:, 0]
        result = cls.from_value_rowids(x.values, rows, int(x.dense_shape[0]))
        place = result._places_in_rows()
        if not np.array_equal(place.numpy(), x.indices.numpy()[:, 1]):
            raise InvalidArgumentError(None, None, "from_sparse: SparseTensor is not right-ragged")
        return result.with_row_splits_dtype(row_splits_dtype)

    # ---- parts

    @property
    def values(self) -> Any:
        """The rows one after the other; ragged if there are more ragged dimensions."""
        return self._values

    @property
    def row_splits(self) -> Any:
        """Where rows begin and end, of shape [nrows + 1]."""
        return self._row_splits

    @property
    def flat_values(self) -> Any:
        """The innermost values."""
        return self._values.flat_values if isinstance(self._values, RaggedTensor) else self._values

    @property
    def nested_row_splits(self) -> tuple[Any, ...]:
        """The splits of all ragged dimensions, the outermost first."""
        inner = self._values.nested_row_splits if isinstance(self._values, RaggedTensor) else ()
        return (self._row_splits, *inner)

    @property
    def ragged_rank(self) -> int:
        """The number of ragged dimensions."""
        return len(self.nested_row_splits)

    @property
    def uniform_row_length(self) -> Any:
        """The one length of all rows, if it is known."""
        return None if self._uniform_row_length is None else convert_to_tensor(self._uniform_row_length, dtype=int64)

    @property
    def dtype(self) -> DType:
        """The `tf.DType` of the values."""
        return self._values.dtype

    @property
    def shape(self) -> TensorShape:
        """The shape, with None for ragged dimensions."""
        splits = self._row_splits.shape[0]
        rows = None if splits is None else splits - 1
        return TensorShape([rows, self._uniform_row_length]).concatenate(self._values.shape[1:])

    def get_shape(self) -> TensorShape:
        """The shape, with None for ragged dimensions."""
        return self.shape

    def nrows(self, out_type: Any = None, name: str | None = None) -> Any:
        """The number of rows."""
        dtype = out_type or self._row_splits.dtype
        if self._row_splits.shape[0] is None:
            return cast(primitives.Shape(self._row_splits, int64)[0] - 1, dtype)
        return convert_to_tensor(self._row_splits.shape[0] - 1, dtype=dtype)

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """The lengths of the rows along `axis`."""
        if axis == 0:
            return self.nrows()
        if axis == 1:
            return self._row_splits[1:] - self._row_splits[:-1]
        if isinstance(self._values, RaggedTensor):
            return self.with_values(self._values.row_lengths(axis - 1))
        size = self._values.shape[axis - 1]
        return self.with_values(primitives.BroadcastTo(cast(size, self._row_splits.dtype), [_row_count(self._values)]))

    def nested_row_lengths(self, name: str | None = None) -> tuple[Any, ...]:
        """The lengths of the rows of all ragged dimensions."""
        return tuple(s[1:] - s[:-1] for s in self.nested_row_splits)

    def row_starts(self, name: str | None = None) -> Any:
        """Where each row begins."""
        return self._row_splits[:-1]

    def row_limits(self, name: str | None = None) -> Any:
        """Where each row ends."""
        return self._row_splits[1:]

    def value_rowids(self, name: str | None = None) -> Any:
        """The row of each value."""
        return row_splits_to_segment_ids(self._row_splits)

    def nested_value_rowids(self, name: str | None = None) -> tuple[Any, ...]:
        """The rows of the values of all ragged dimensions."""
        return tuple(row_splits_to_segment_ids(s) for s in self.nested_row_splits)

    def bounding_shape(self, axis: Any = None, name: str | None = None, out_type: Any = None) -> Any:
        """The smallest dense shape that holds all rows."""
        if any(_core.is_symbolic(splits) for splits in self.nested_row_splits):
            whole = cast(self._staged_bounds(), out_type or self._row_splits.dtype)
            return whole if axis is None else primitives.GatherV2(whole, axis, 0, 0)
        dims: list[int] = [self._row_splits.shape[0] - 1]
        for lengths in self.nested_row_lengths():
            numbers = lengths.numpy()
            dims.append(int(numbers.max()) if numbers.size else 0)
        dims += self.flat_values.shape.as_list()[1:]
        chosen = dims if axis is None else [dims[a] for a in dims_of(axis)]
        result = convert_to_tensor(chosen, dtype=out_type or self._row_splits.dtype)
        return result if axis is None or isinstance(axis, list | tuple) else result[0]

    def _staged_bounds(self) -> Any:
        """`bounding_shape` of rows whose lengths only running tells."""
        inner = self._values
        rest = inner._staged_bounds() if isinstance(inner, RaggedTensor) else primitives.Shape(inner, int64)
        lengths = primitives.ConcatV2([cast(self.row_lengths(), int64), cast([0], int64)], 0)
        own = primitives.Pack([self.nrows(int64), primitives.Max(lengths, None, False)], 0)
        return primitives.ConcatV2([own, rest[1:]], 0)

    def with_values(self, new_values: Any) -> RaggedTensor:
        """The same rows with other values."""
        return RaggedTensor(_values_tensor(new_values), self._row_splits, self._uniform_row_length)

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """The same rows with other innermost values."""
        inner = self._values.with_flat_values(new_values) if isinstance(self._values, RaggedTensor) else new_values
        return self.with_values(inner)

    def with_row_splits_dtype(self, dtype: Any) -> RaggedTensor:
        """The same rows with splits of another dtype."""
        values = self._values.with_row_splits_dtype(dtype) if isinstance(self._values, RaggedTensor) else self._values
        return RaggedTensor(values, cast(self._row_splits, dtype), self._uniform_row_length)

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """The dimensions from `outer_axis` to `inner_axis` as one."""
        rank = self.shape.rank
        outer, inner = (a if a >= 0 else a + rank for a in (outer_axis, inner_axis))
        if not 0 <= outer <= inner < rank:
            raise ValueError(
                f"Expected outer_axis ({outer_axis}) to be less than or equal to inner_axis ({inner_axis})"
            )
        if outer == inner:
            return self
        if outer > 0:
            if isinstance(self._values, RaggedTensor):
                return (
                    self.with_values(self._values.merge_dims(outer - 1, inner - 1))
                    if outer > 1
                    else self._merge_rows(inner)
                )
            dims = self._values.shape.as_list()
            if outer == 1:
                size = int(np.prod(dims[1:inner], dtype=np.int64))
                return RaggedTensor(
                    primitives.Reshape(self._values, [dims[0] * size, *dims[inner:]]), self._row_splits * size
                )
            merged = [*dims[: outer - 1], int(np.prod(dims[outer - 1 : inner], dtype=np.int64)), *dims[inner:]]
            return self.with_values(primitives.Reshape(self._values, merged))
        if inner == 1:
            return self._values
        if isinstance(self._values, RaggedTensor):
            return self._values.merge_dims(0, inner - 1)
        dims = self._values.shape.as_list()
        return primitives.Reshape(self._values, [-1, *dims[inner:]])

    def _merge_rows(self, inner: int) -> RaggedTensor:
        splits = primitives.GatherV2(self._values.row_splits, self._row_splits, 0, 0)
        result = RaggedTensor(self._values.values, splits)
        return result if inner == 2 else result.merge_dims(1, inner - 1)

    # ---- other forms

    def _places_in_rows(self) -> Any:
        rows = self.value_rowids()
        known = rows.shape[0]
        places = numbers_up_to(primitives.Shape(rows, int64)[0]) if known is None else np.arange(known)
        return cast(places, rows.dtype) - primitives.GatherV2(self._row_splits, rows, 0, 0)

    def _coordinates(self) -> Any:
        """The position in the dense tensor of each of the flat values, without their inner dimensions."""
        columns = primitives.Pack([self.value_rowids(), self._places_in_rows()], 1)
        if not isinstance(self._values, RaggedTensor):
            return columns
        inner = self._values._coordinates()
        outer = primitives.GatherV2(columns, inner[:, 0], 0, 0)
        return primitives.ConcatV2([outer, inner[:, 1:]], 1)

    def to_tensor(self, default_value: Any = None, name: str | None = None, shape: Any = None) -> Any:
        """A dense tensor with `default_value` (zero) behind the end of each row; larger or cut if `shape` says so.

        >>> tf.ragged.constant([[1, 2], [3]]).to_tensor()
        [[1, 2], [3, 0]]
        """
        if _core.is_symbolic(self._row_splits) and not isinstance(self._values, RaggedTensor):
            wanted = None if shape is None or _core.is_tensor(shape) else as_shape(shape).as_list()
            if shape is None or wanted is not None:
                return self._staged_tensor(default_value, None if wanted is None else wanted[1])
        flat, dims = self.flat_values, self.bounding_shape().numpy().tolist()
        coordinates = cast(self._coordinates(), int32)
        ragged = self.ragged_rank + 1
        places = cast(np.arange(_row_count(flat)), int32)
        if shape is not None:
            wanted = (
                as_shape(shape).as_list()
                if not _core.is_tensor(shape)
                else [None if d < 0 else d for d in dims_of(shape)]
            )
            dims = [d if w is None else w for d, w in zip(dims, wanted)]
            inside = primitives.All(primitives.Less(coordinates, np.asarray(dims[:ragged], np.int32)), 1, False)
            places = cast(primitives.Squeeze(primitives.Where(inside), [1]), int32)
            coordinates = primitives.GatherV2(coordinates, places, 0, 0)
        values = primitives.GatherV2(flat, places, 0, 0)
        if default_value is None and flat.dtype.name != "string":
            return primitives.ScatterNd(coordinates, values, dims)
        filler = convert_to_tensor("" if default_value is None else default_value, dtype=flat.dtype)
        return primitives.TensorScatterUpdate(primitives.BroadcastTo(filler, dims), coordinates, values)

    def _staged_tensor(self, default_value: Any, width: Any) -> Any:
        """`to_tensor` of rows whose lengths only running tells; a `width` that is given cuts or fills them."""
        values = self._values
        lengths = self.row_lengths()
        width = primitives.Max(lengths, None, False) if width is None else cast(width, lengths.dtype)
        rows = primitives.Cumsum(self.row_lengths(), 0, True, False)[:, None]
        at = primitives.Range(cast(0, width.dtype), width, cast(1, width.dtype))[None, :]
        inside = at < self.row_lengths()[:, None]
        for _ in range(values.shape.rank - 1):
            inside = primitives.ExpandDims(inside, -1)
        filler = padding_value_of(0 if default_value is None else default_value, values.dtype)
        # One row more, so that there is a place to look at even where there are no values.
        more = primitives.ConcatV2([values, primitives.BroadcastTo(filler, primitives.Shape(values[:1], int32))], 0)
        last = primitives.Maximum(primitives.Shape(more, int64)[0] - 1, 0)
        places = primitives.Minimum(cast(rows + at, int64), last)
        return primitives.SelectV2(inside, primitives.GatherV2(more, places, 0, 0), filler)

    def to_sparse(self, name: str | None = None) -> SparseTensor:
        """A SparseTensor with the values at the beginning of the rows."""
        flat, indices = self.flat_values, cast(self._coordinates(), int64)
        inner = flat.shape.as_list()[1:]
        if inner:
            size = int(np.prod(inner, dtype=np.int64))
            spots = np.stack(np.unravel_index(np.arange(size), inner), 1).astype(np.int64)
            count = indices.shape[0]
            outer = primitives.Reshape(
                primitives.BroadcastTo(indices[:, None, :], [count, size, indices.shape[1]]), [count * size, -1]
            )
            indices = primitives.ConcatV2([outer, primitives.Tile(spots, [count, 1])], 1)
            flat = primitives.Reshape(flat, [-1])
        return SparseTensor(indices, flat, cast(self.bounding_shape(), int64))

    def to_list(self) -> list[Any]:
        """The values as nested lists.

        >>> tf.ragged.constant([[1, 2], [3]]).to_list()
        [[1, 2], [3]]
        """
        inner = self._values.to_list() if isinstance(self._values, RaggedTensor) else self._values.numpy().tolist()
        at = self._row_splits.numpy().tolist()
        return [inner[start:end] for start, end in itertools.pairwise(at)]

    def numpy(self) -> np.ndarray:
        """A NumPy array of the rows; of objects if they differ in length."""
        at = self._row_splits.numpy().tolist()
        inner = self._values.numpy()
        rows = [inner[start:end] for start, end in itertools.pairwise(at)]
        if len({row.shape for row in rows}) <= 1 and all(
            row.dtype != object or isinstance(self._values, _core.Tensor) for row in rows
        ):
            return np.stack(rows) if rows else np.zeros((0, 0), self.dtype.as_numpy_dtype)
        result = np.empty(len(rows), dtype=object)
        for i, row in enumerate(rows):
            result[i] = row
        return result

    def __getitem__(self, key: Any) -> Any:
        keys = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in [k for k in keys if not _core.is_tensor(k)]:
            at = keys.index(Ellipsis)
            used = sum(k is not None for k in keys) - 1
            keys[at : at + 1] = [builtins.slice(None)] * (self.shape.rank - used)
        return self._item(keys)

    def _item(self, keys: list[Any]) -> Any:
        if not keys:
            return self
        first, rest = keys[0], keys[1:]
        if first is None:
            return expand_dims(self._item(rest), 0)
        if isinstance(first, builtins.slice):
            whole = first == builtins.slice(None)
            picked = self if whole else gather_rows(self, _positions(self._row_splits)[first])
            return picked._inner_item(rest) if rest else picked
        if _core.is_symbolic(first) or _core.is_symbolic(self._row_splits):
            splits = self._row_splits
            part = self._values[splits[:-1][first] : splits[1:][first]]
            return part[tuple(rest)] if rest else part
        row = int(first)
        count = self._row_splits.shape[0] - 1
        if not -count <= row < count:
            raise IndexError(f"Row key {row} out of bounds")
        start, end = (int(n) for n in self._row_splits.numpy()[row % count : row % count + 2])
        part = self._values[start:end]
        return part[tuple(rest)] if rest else part

    def _inner_item(self, keys: list[Any]) -> Any:
        first, rest = keys[0], keys[1:]
        if first is None:
            return expand_dims(self._inner_item(rest) if rest else self, 1)
        if isinstance(first, builtins.slice):
            if first == builtins.slice(None):
                picked = self
            else:
                begin, count, step = _span_of(first, self.row_lengths())
                values = gather_rows(self._values, _spans(self._row_splits[:-1] + begin, count, step))
                picked = RaggedTensor(values, _from_lengths(count))
            if not rest:
                return picked
            inner = picked._values
            if isinstance(inner, RaggedTensor):
                return picked.with_values(inner._inner_item(rest))
            return picked.with_values(inner[(builtins.slice(None), *rest)])
        raise ValueError("Cannot index into an inner ragged dimension.")

    # ---- specs, printing

    @property
    def _type_spec(self) -> RaggedTensorSpec:
        return RaggedTensorSpec(self.shape, self.dtype, self.ragged_rank, self._row_splits.dtype)

    def _shape_invariant_to_type_spec(self, shape: Any) -> RaggedTensorSpec:
        shape = as_shape(shape)
        if shape.rank is not None and shape.rank <= self.ragged_rank:
            raise ValueError(
                f"Incompatible shape invariant {shape} for a RaggedTensor with ragged rank {self.ragged_rank}: its "
                "rank must be greater."
            )
        return RaggedTensorSpec(shape, self.dtype, self.ragged_rank, self._row_splits.dtype)

    def __repr__(self) -> str:
        if _core.is_symbolic(self._row_splits) or _core.is_symbolic(self.flat_values):
            return f"tf.RaggedTensor(values={self._values}, row_splits={self._row_splits})"
        return f"<tf.RaggedTensor {_text_of(self.numpy())}>"

    def __len__(self) -> int:
        raise TypeError("object of type 'RaggedTensor' has no len()")

    def __iter__(self) -> Any:
        return (self[i] for i in range(self._row_splits.shape[0] - 1))

    def __bool__(self) -> bool:
        raise TypeError("RaggedTensor may not be used as a boolean.")

    __hash__ = None  # type: ignore[assignment]

    def __tf_operation__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs an operation that was called with a ragged argument."""
        name = getattr(function, "__name__", "")
        if name in _OPERATIONS and _holds_ragged(args[0] if args else next(iter(kwargs.values()))):
            staged = _STAGED_OPERATIONS[name]
            return NotImplemented if function is staged else staged(*args, **kwargs)
        if name == "gather":
            return _gather_at(*args, **kwargs)
        if name == "embedding_lookup":
            return _elementwise(lambda ids: function(args[0], ids, *args[2:], **kwargs), args[1:2], {})
        composed = isinstance(function, _core.Composition)
        if name in _DENSE or (composed and name not in _COMPOSED):
            return NotImplemented
        return _elementwise(function, args, kwargs)


def _gather_at(
    params: Any,
    indices: RaggedTensor,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: int = 0,
    name: Any = None,
) -> Any:
    """The slices of a dense tensor along `axis`, in the rows of the indices."""
    if batch_dims or not isinstance(indices, RaggedTensor):
        return NotImplemented
    x = convert_to_tensor(params)
    axis = range(x.shape.rank)[axis or 0]
    found = primitives.GatherV2(x, indices.flat_values, axis, 0)
    if axis == 0:
        return indices.with_flat_values(found)
    if indices.ragged_rank > 1:
        raise ValueError("gather: indices with several ragged dimensions select along the first axis alone")
    outer, (count, *inner) = found.shape.as_list()[:axis], found.shape.as_list()[axis:]
    copies, rows = int(np.prod(outer)), indices.row_splits.shape[0] - 1
    starts = np.arange(copies)[:, None] * count + indices.row_splits.numpy()[None, :-1]
    splits = np.append(starts.reshape(-1), copies * count)
    result = RaggedTensor.from_row_splits(primitives.Reshape(found, [copies * count, *inner]), splits)
    for size in (rows, *reversed(outer[1:])):
        result = RaggedTensor.from_uniform_row_length(result, size)
    return result


def _text_of(value: Any) -> str:
    """Rows as NumPy prints them, with commas."""
    if isinstance(value, np.ndarray):
        return np.array2string(value, separator=", ", formatter={"all": _text_of})
    return repr(value) if isinstance(value, bytes) else str(value)


@public("RaggedTensorSpec")
class RaggedTensorSpec(TypeSpec):
    """The spec of a `tf.RaggedTensor`.

    >>> tf.RaggedTensorSpec([None, None])
    RaggedTensorSpec(TensorShape([None, None]), tf.float32, 1, tf.int64)
    """

    value_type = RaggedTensor

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = float32,
        ragged_rank: int | None = None,
        row_splits_dtype: Any = int64,
        flat_values_spec: Any = None,
    ) -> None:
        self._shape = as_shape(shape)
        self._dtype = as_dtype(dtype) if dtype is not None else flat_values_spec.dtype
        self._row_splits_dtype = as_dtype(row_splits_dtype)
        if ragged_rank is None:
            if self._shape.rank is None:
                raise ValueError("Must specify ragged_rank or a shape with a known rank.")
            ragged_rank = self._shape.rank - 1
        self._ragged_rank = int(ragged_rank)

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._dtype, self._ragged_rank, self._row_splits_dtype

    @property
    def shape(self) -> TensorShape:
        """The shape, with None for ragged dimensions."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The `tf.DType` of the values."""
        return self._dtype

    @property
    def ragged_rank(self) -> int:
        """The number of ragged dimensions."""
        return self._ragged_rank

    @property
    def row_splits_dtype(self) -> DType:
        """The `tf.DType` of the splits."""
        return self._row_splits_dtype

    @property
    def _component_specs(self) -> tuple[TensorSpec, ...]:
        inner = self._shape[self._ragged_rank + 1 :] if self._shape.rank is not None else None
        flat = TensorSpec(None if inner is None else TensorShape([None]).concatenate(inner), self._dtype)
        rows = self._shape[0] if self._shape.rank else None
        counts = [None if rows is None else rows + 1, *[None] * (self._ragged_rank - 1)][: self._ragged_rank]
        return flat, *(TensorSpec([count], self._row_splits_dtype) for count in counts)

    def _to_components(self, value: RaggedTensor) -> tuple[Any, ...]:
        return value.flat_values, *value.nested_row_splits

    def _from_components(self, components: Any) -> RaggedTensor:
        flat, *splits = components
        return RaggedTensor.from_nested_row_splits(flat, splits, validate=False)


# ---- rows


def _counting(count: Any) -> Any:
    """The numbers below `count`: an array if it is known."""
    return np.arange(count) if isinstance(count, int) else numbers_up_to(count)


def _even_splits(dims: list[Any], dtype: DType) -> Any:
    """Where rows begin and end that all have the same number of elements."""
    return cast(_counting(dims[0] + 1) * dims[1], dtype)


def _positions(splits: Any) -> Any:
    """The numbers of the rows: an array if their count is known, else a tensor."""
    count = splits.shape[0]
    if count is not None:
        return np.arange(count - 1)
    return numbers_up_to(primitives.Shape(splits, int64)[0] - 1)


def gather_rows(x: Any, rows: Any) -> Any:
    """The rows of a dense or ragged tensor at the given positions."""
    positions = cast(convert_to_tensor(rows, dtype_hint=int64), int64)
    if not isinstance(x, RaggedTensor):
        return primitives.GatherV2(x, positions, 0, 0)
    if not _core.is_symbolic(positions) and not _core.is_symbolic(x.row_splits):
        chosen, count = positions.numpy().reshape(-1), x.row_splits.shape[0] - 1
        if chosen.size and (chosen.min() < 0 or chosen.max() >= count):
            raise InvalidArgumentError(None, None, f"gather: indices must be in [0, {count}); got {chosen.tolist()}")
    flat = positions if positions.shape.rank == 1 else primitives.Reshape(positions, [-1])
    starts = primitives.GatherV2(x.row_splits, flat, 0, 0)
    lengths = primitives.GatherV2(x.row_splits, flat + 1, 0, 0) - starts
    values = gather_rows(x.values, _spans(starts, lengths))
    result = RaggedTensor(values, _from_lengths(lengths))
    if positions.shape.rank == 0:
        return values
    return result


@public("ragged.row_splits_to_segment_ids")
def row_splits_to_segment_ids(splits: Any, name: str | None = None, out_type: Any = None) -> Any:
    """The row of each value.

    >>> tf.ragged.row_splits_to_segment_ids([0, 2, 3])
    [0, 0, 1]
    """
    splits = _splits_tensor(splits)
    if splits.shape.rank != 1:
        raise ValueError(f"row_splits_to_segment_ids: Shape {splits.shape} must have rank 1")
    if _core.is_symbolic(splits):
        inner = splits[1:-1]
        begun = primitives.UnsortedSegmentSum(inner - inner + 1, inner, splits[-1] + 1)
        return cast(primitives.Cumsum(begun, 0, False, False)[:-1], out_type or splits.dtype)
    count, at = splits.shape[0] - 1, splits.numpy()
    return cast(np.repeat(np.arange(count), np.diff(at)), out_type or splits.dtype)


@public("ragged.segment_ids_to_row_splits")
def segment_ids_to_row_splits(
    segment_ids: Any, num_segments: Any = None, out_type: Any = None, name: str | None = None
) -> Any:
    """Where rows begin and end, from the row of each value.

    >>> tf.ragged.segment_ids_to_row_splits([0, 0, 2])
    [0, 2, 2, 3]
    """
    ids = _splits_tensor(segment_ids)
    if ids.shape.rank != 1:
        raise ValueError(f"segment_ids_to_row_splits: Shape {ids.shape} must have rank 1")
    numbers = ids.numpy()
    count = int(num_segments) if num_segments is not None else int(numbers[-1]) + 1 if numbers.size else 0
    lengths = np.bincount(numbers, minlength=count)
    return cast(np.concatenate([[0], np.cumsum(lengths)]), out_type or ids.dtype)


@public("ragged.constant")
def constant(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = int64,
) -> Any:
    """A ragged tensor from nested lists.

    >>> tf.ragged.constant([[1, 2], [3]]).row_splits
    [0, 2, 3]
    """

    def depth(part: Any) -> int:
        return 1 + max((depth(p) for p in part), default=0) if isinstance(part, list) else 0

    def plain(part: Any) -> Any:
        if isinstance(part, np.ndarray):
            part = part.tolist()
        return [plain(p) for p in part] if isinstance(part, list | tuple) else part

    pylist = plain(pylist)
    levels = depth(pylist)
    if not isinstance(pylist, list):
        return convert_to_tensor(pylist, dtype=dtype)
    if ragged_rank is None:
        inner_rank = 0 if inner_shape is None else len(tuple(inner_shape))
        ragged_rank = max(levels - 1 - inner_rank, 0) if levels else 0
    if ragged_rank < 0 or (ragged_rank >= levels and levels > 1):
        raise ValueError(f"Invalid pylist={pylist}: incompatible with ragged_rank={ragged_rank}")
    splits, current = [], pylist
    for _ in range(ragged_rank):
        if any(not isinstance(row, list) for row in current):
            raise ValueError(f"Invalid pylist={pylist}: all scalar values must have the same nesting depth")
        splits.append(np.cumsum([0, *(len(row) for row in current)]))
        current = [item for row in current for item in row]
    if inner_shape is not None and not current:
        values = _core.convert_to_tensor(np.zeros((0, *dims_of(inner_shape)), np.float32), None, None, "ragged")
        values = cast(values, dtype or float32)
    else:
        values = convert_to_tensor(current, dtype=dtype)
    for at in reversed(splits):
        values = RaggedTensor(values, cast(at, row_splits_dtype))
    return values


@public("ragged.range")
def range_(
    starts: Any,
    limits: Any = None,
    deltas: Any = 1,
    dtype: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = int64,
) -> RaggedTensor:
    """A row of numbers for each start, limit and step.

    >>> tf.ragged.range([1, 2], [3, 5]).to_list()
    [[1, 2], [2, 3, 4]]
    """
    if limits is None:
        starts, limits = 0, starts
    parts = [convert_to_tensor(v) for v in (starts, limits, deltas)]
    ordered = (int32, int64, float32, float64)
    common = as_dtype(dtype) if dtype is not None else max((p.dtype for p in parts), key=ordered.index)
    first, last, step = np.broadcast_arrays(*(np.atleast_1d(p.numpy()) for p in parts))
    if (step == 0).any():
        raise InvalidArgumentError(None, None, "ragged.range: Requires delta != 0")
    rows = [np.arange(a, b, s) for a, b, s in zip(first.tolist(), last.tolist(), step.tolist())]
    values = _core.convert_to_tensor(np.concatenate(rows) if rows else [], common, None, "range")
    return RaggedTensor(values, cast(np.cumsum([0, *(len(r) for r in rows)]), row_splits_dtype))


@public("ragged.map_flat_values")
def map_flat_values(op: Any, *args: Any, **kwargs: Any) -> Any:
    """`op` applied to the innermost values; all ragged arguments must have the same rows.

    >>> tf.ragged.map_flat_values(tf.square, tf.ragged.constant([[1, 2], [3]])).to_list()
    [[1, 4], [9]]
    """
    found = [a for a in nest.flatten((args, kwargs)) if isinstance(a, RaggedTensor)]
    if not found:
        return op(*args, **kwargs)
    for other in found[1:]:
        same = len(other.nested_row_splits) == len(found[0].nested_row_splits) and all(
            np.array_equal(a.numpy(), b.numpy()) for a, b in zip(other.nested_row_splits, found[0].nested_row_splits)
        )
        if not same:
            raise InvalidArgumentError(
                None, None, "map_flat_values: all ragged arguments must have the same row splits"
            )

    def inner(value: Any) -> Any:
        if isinstance(value, RaggedTensor):
            return value.flat_values
        if isinstance(value, list | tuple):
            return type(value)(inner(v) for v in value)
        return value

    result = op(*(inner(a) for a in args), **{key: inner(v) for key, v in kwargs.items()})
    return found[0].with_flat_values(result)


@public("ragged.boolean_mask")
def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """The elements whose place in `mask` is true, in their rows.

    >>> tf.ragged.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]]).to_list()
    [[1], [3, 4]]
    """
    if isinstance(mask, list) and any(isinstance(m, list) for m in mask):
        mask = constant(mask, dtype="bool")
    if not isinstance(mask, RaggedTensor):
        mask = convert_to_tensor(mask)
        if mask.shape.rank == 1:
            places = primitives.Squeeze(primitives.Where(mask), [1])
            return gather_rows(data if isinstance(data, RaggedTensor) else convert_to_tensor(data), places)
        mask = RaggedTensor.from_tensor(mask, ragged_rank=mask.shape.rank - 1)
    if not isinstance(data, RaggedTensor):
        data = constant(data) if isinstance(data, list) else convert_to_tensor(data)
    if not isinstance(data, RaggedTensor):
        data = RaggedTensor.from_tensor(data, ragged_rank=mask.ragged_rank)
    inner = boolean_mask(data.values, mask.values)
    if isinstance(mask.values, RaggedTensor):
        return RaggedTensor(inner, data.row_splits)
    kept = primitives.UnsortedSegmentSum(
        cast(mask.values, data.row_splits.dtype), data.value_rowids(), int(data.nrows())
    )
    return RaggedTensor(inner, _from_lengths(kept))


# ---- joining


def _as_ragged(x: Any) -> RaggedTensor:
    if isinstance(x, RaggedTensor):
        return x
    tensor = convert_to_tensor(x)
    return RaggedTensor.from_tensor(tensor)


def concat(values: Any, axis: Any, name: str = "concat") -> Any:
    """Ragged tensors joined along `axis`."""
    parts = [x if isinstance(x, RaggedTensor) else convert_to_tensor(x) for x in values]
    rank = parts[0].shape.rank
    for part in parts[1:]:
        if None not in (rank, part.shape.rank) and part.shape.rank != rank:
            raise ValueError(f"concat: Shape {part.shape} must have rank {rank}")
    axis = int(axis)
    if not -rank <= axis < rank:
        raise ValueError(f"concat: axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
    axis %= rank
    ragged = [_as_ragged(x) for x in parts]
    if axis == 0:
        rows = [x.values for x in ragged]
        inner = concat(rows, 0) if any(isinstance(r, RaggedTensor) for r in rows) else primitives.ConcatV2(rows, 0)
        return RaggedTensor(inner, _from_lengths(primitives.ConcatV2([x.row_lengths() for x in ragged], 0)))
    counts = {x.row_splits.shape[0] for x in ragged} - {None}
    if len(counts) > 1:
        raise InvalidArgumentError(
            None, None, f"concat: Input tensors have incompatible shapes: {[str(x.shape) for x in ragged]}"
        )
    if axis > 1:
        return ragged[0].with_values(
            concat([x.values for x in ragged], axis - 1)
            if any(isinstance(x.values, RaggedTensor) for x in ragged)
            else primitives.ConcatV2([x.values for x in ragged], axis - 1)
        )
    starts, begin = [], 0
    for x in ragged:
        starts.append(cast(x.row_splits[:-1], int64) + begin)
        begin = begin + cast(x.row_splits[-1], int64)
    order = _spans(
        primitives.Reshape(primitives.Pack(starts, 1), [-1]),
        primitives.Reshape(primitives.Pack([cast(x.row_lengths(), int64) for x in ragged], 1), [-1]),
    )
    picked = [gather_rows(x.values, _spans(x.row_splits[:1], x.row_splits[-1:])) for x in ragged]
    lengths = ragged[0].row_lengths()
    for x in ragged[1:]:
        lengths = lengths + cast(x.row_lengths(), lengths.dtype)
    if any(isinstance(p, RaggedTensor) for p in picked):
        return RaggedTensor(gather_rows(concat(picked, 0), order), _from_lengths(lengths))
    joined = primitives.ConcatV2(picked, 0)
    wide = primitives.GatherV2(primitives.ExpandDims(joined, 0), order, 1, 0)
    return RaggedTensor(primitives.Squeeze(wide, [0]), _from_lengths(lengths))


@public("ragged.stack")
def stack(values: Any, axis: int = 0, name: str | None = None) -> Any:
    """Tensors put side by side along a new dimension; they need not have one shape.

    >>> tf.ragged.stack([[1, 2], [3]]).to_list()
    [[1, 2], [3]]
    """
    if isinstance(values, RaggedTensor | _core.Tensor):
        values = [values]
    parts = [
        x
        if isinstance(x, RaggedTensor)
        else constant(x)
        if isinstance(x, list) and x and isinstance(x[0], list)
        else convert_to_tensor(x)
        for x in values
    ]
    if not parts:
        raise ValueError("ragged.stack: values must not be empty")
    rank = parts[0].shape.rank
    axis = axis if axis >= 0 else axis + rank + 1
    dtype = next((x.row_splits.dtype for x in parts if isinstance(x, RaggedTensor)), int32)
    if rank == 0:
        return primitives.Pack(parts, 0)
    if axis == 0:
        lengths = cast([_row_count(x) for x in parts], dtype)
        if rank == 1:
            return RaggedTensor(primitives.ConcatV2(parts, 0), _from_lengths(lengths))
        return RaggedTensor(concat(parts, 0), _from_lengths(lengths))
    return concat([expand_dims(x, axis) for x in parts], axis)


def expand_dims(input: Any, axis: Any, name: str | None = None) -> Any:
    """A dimension of 1 put in at `axis`."""
    if not isinstance(input, RaggedTensor):
        return primitives.ExpandDims(input, axis)
    rank = input.shape.rank
    axis = int(axis) if int(axis) >= 0 else int(axis) + rank + 1
    if axis == 0:
        return RaggedTensor(input, cast([0, int(input.nrows())], input.row_splits.dtype), None)
    if axis == 1:
        return RaggedTensor.from_uniform_row_length(input, 1).with_row_splits_dtype(input.row_splits.dtype)
    return input.with_values(expand_dims(input.values, axis - 1))


@public("ragged.stack_dynamic_partitions")
def stack_dynamic_partitions(data: Any, partitions: Any, num_partitions: Any, name: str | None = None) -> RaggedTensor:
    """The slices of `data` as rows, by the numbers in `partitions`.

    >>> tf.ragged.stack_dynamic_partitions([1, 2, 3], [0, 1, 0], 2).to_list()
    [[1, 3], [2]]
    """
    parts = primitives.DynamicPartition(data, partitions, int(num_partitions))
    return RaggedTensor(primitives.ConcatV2(parts, 0), cast(np.cumsum([0, *(p.shape[0] for p in parts)]), int64))


@public("ragged.cross")
def cross(inputs: Any, name: str | None = None) -> RaggedTensor:
    """All combinations of one feature of each input, row by row, as text.

    >>> tf.ragged.cross([tf.constant([["a"]]), tf.constant([["b"]])]).to_list()
    [[b'a_X_b']]
    """
    return constant(
        crossed_rows(inputs, lambda features: join_features(features, "_X_")), dtype="string", ragged_rank=1
    )


@public("ragged.cross_hashed")
def cross_hashed(
    inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> RaggedTensor:
    """All combinations of one feature of each input, row by row, hashed into `num_buckets` numbers.

    >>> tf.ragged.cross_hashed([tf.constant([["a"]]), tf.constant([["b"]])], num_buckets=1).to_list()
    [[0]]
    """
    rows = crossed_rows(inputs, lambda features: hash_features(features, num_buckets, hash_key))
    return constant(rows, dtype=int64, ragged_rank=1)


# ---- operations on ragged arguments


def _spread(x: Any, like: RaggedTensor) -> Any:
    """The elements of a dense tensor, broadcast to the rows of a ragged one, for each of its flat values."""
    tensor = convert_to_tensor(x, dtype_hint=like.dtype)
    rank, inner_rank = like.shape.rank, like.flat_values.shape.rank - 1
    if tensor.shape.rank <= inner_rank:
        return tensor
    coordinates = like._coordinates()
    outer = like.ragged_rank + 1
    skip = rank - tensor.shape.rank
    dims = tensor.shape.as_list()
    if skip < 0:
        raise ValueError(f"Unable to broadcast a tensor of shape {dims} to a ragged tensor of rank {rank}")
    columns = []
    for place in range(skip, outer):
        size = dims[place - skip]
        column = coordinates[:, place]
        columns.append(column * 0 if size == 1 else column)
        if size != 1 and column.shape[0] and int(primitives.Max(column)) >= size:
            raise InvalidArgumentError(
                None, None, f"Unable to broadcast: dimension size mismatch in dimension {place}; got {size}"
            )
    return primitives.GatherNd(tensor, primitives.Pack(columns, 1), 0)


def _same_splits(a: Any, b: Any) -> bool:
    """Whether two tensors are equal; while tracing, they have to be when the graph runs."""
    if a is b:
        return True
    if _core.is_symbolic(a) or _core.is_symbolic(b):
        assert_equal(a, b, "ragged tensors must have the same rows for an elementwise operation")
        return True
    return np.array_equal(a.numpy(), b.numpy())


def _elementwise(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Runs an elementwise operation on the flat values."""
    found = [a for a in (*args, *kwargs.values()) if isinstance(a, RaggedTensor)]
    if not found:
        return NotImplemented
    first = max(found, key=lambda r: r.ragged_rank)
    spreads = False

    def inner(value: Any) -> Any:
        nonlocal spreads
        if isinstance(value, RaggedTensor):
            if not all(map(_same_splits, value.nested_row_splits, first.nested_row_splits)):
                raise InvalidArgumentError(
                    None, None, "ragged tensors must have the same rows for an elementwise operation"
                )
            return value.flat_values
        if _core.is_tensor(value) and value.shape.rank and value.shape.rank > first.flat_values.shape.rank - 1:
            spreads = True
            return _spread(value, first)
        return value

    values = [inner(a) for a in args]
    named = {key: inner(v) for key, v in kwargs.items()}
    if spreads:
        places = cast(np.arange(_row_count(first.flat_values)), int64)
        values = [
            primitives.GatherV2(v, places, 0, 0) if isinstance(a, RaggedTensor) else v for a, v in zip(args, values)
        ]
    return first.with_flat_values(function(*values, **named))


def _holds_ragged(argument: Any) -> bool:
    """Whether an argument is ragged, or a list with a ragged part."""
    if isinstance(argument, list | tuple):
        return any(isinstance(part, RaggedTensor) for part in argument)
    return isinstance(argument, RaggedTensor)


def _reduction(fold: Any, whole: Any, finish: Any = None) -> Any:
    """A reduction by name: over all elements, over the rows, or over positions in the rows."""

    def reduce(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
        x = input_tensor
        if axis is None:
            return whole(x.flat_values, None, keepdims)
        axes = sorted({a % x.shape.rank for a in dims_of(axis)}, reverse=True)
        if len(axes) == x.shape.rank:
            return whole(x.flat_values, None, False)
        for a in axes:
            x = one(x, a, keepdims) if isinstance(x, RaggedTensor) else whole(x, a, keepdims)
        return x

    def one(x: RaggedTensor, axis: int, keepdims: bool) -> Any:
        if axis > 1:
            inner = (
                one(x.values, axis - 1, keepdims)
                if isinstance(x.values, RaggedTensor)
                else whole(x.values, axis - 1, keepdims)
            )
            return x.with_values(inner)
        if axis == 1:
            if isinstance(x.values, RaggedTensor):
                ids = primitives.GatherV2(x.value_rowids(), x.values.value_rowids(), 0, 0)
                places, width = x.values._places_in_rows(), int(x.values.bounding_shape(1))
                flat_ids = ids * width + places
                count = int(x.nrows())
                lengths = primitives.UnsortedSegmentMax(x.values.row_lengths(), x.value_rowids(), count)
                lengths = primitives.Maximum(lengths, 0)
                table = fold(x.values.values, flat_ids, count * width)
                table = primitives.Reshape(table, [count, width, *table.shape.as_list()[1:]])
                result = RaggedTensor.from_tensor(table, lengths=lengths)
                return expand_dims(result, 1) if keepdims else result
            result = fold(x.values, x.value_rowids(), x.nrows() if _core.is_symbolic(x.row_splits) else int(x.nrows()))
            return primitives.ExpandDims(result, 1) if keepdims else result
        if isinstance(x.values, RaggedTensor):
            return _as_dense_rows(x, keepdims)
        result = fold(x.values, x._places_in_rows(), int(x.bounding_shape(1)))
        return primitives.ExpandDims(result, 0) if keepdims else result

    def _as_dense_rows(x: RaggedTensor, keepdims: bool) -> Any:
        width = int(x.bounding_shape(1))
        places = x._places_in_rows()
        order = np.argsort(places.numpy(), kind="stable")
        rows = gather_rows(x.values, order)
        grouped = RaggedTensor.from_value_rowids(rows, primitives.GatherV2(places, order, 0, 0), width)
        result = one(grouped, 1, False)
        return expand_dims(result, 0) if keepdims else result

    return reduce


def _segment_mean(values: Any, ids: Any, count: int) -> Any:
    total = primitives.UnsortedSegmentSum(values, ids, count)
    number = cast(primitives.UnsortedSegmentSum(ids - ids + 1, ids, count), total.dtype)
    for _ in range(total.shape.rank - 1):
        number = primitives.ExpandDims(number, -1)
    return total / number


def _deviations(values: Any, ids: Any, of_segments: Any) -> Any:
    return values - primitives.GatherV2(of_segments, ids, 0, 0)


def _segment_variance(values: Any, ids: Any, count: int) -> Any:
    values = values if values.dtype.is_floating else cast(values, float32)
    deviations = _deviations(values, ids, _segment_mean(values, ids, count))
    return _segment_mean(deviations * deviations, ids, count)


def _segment_std(values: Any, ids: Any, count: int) -> Any:
    return primitives.Sqrt(_segment_variance(values, ids, count))


def _segment_logsumexp(values: Any, ids: Any, count: int) -> Any:
    largest = primitives.StopGradient(primitives.UnsortedSegmentMax(values, ids, count))
    total = primitives.UnsortedSegmentSum(primitives.Exp(_deviations(values, ids, largest)), ids, count)
    return primitives.Log(total) + largest


def _segment_bool(fold: Any) -> Any:
    def run(values: Any, ids: Any, count: int) -> Any:
        return primitives.Greater(fold(cast(values, int32), ids, count), 0)

    return run


def _with_axis(primitive: Any) -> Any:
    return lambda x, axis, keepdims: primitive(x, axis, keepdims)


def _gather(params: Any, indices: Any, axis: int = 0, batch_dims: int = 0) -> Any:
    if axis != 0 or batch_dims != 0:
        raise ValueError(f"gather: a ragged tensor is gathered along axis 0; got axis={axis}, batch_dims={batch_dims}")
    return gather_rows(params, indices)


def _true_places(condition: RaggedTensor) -> Any:
    places = primitives.Squeeze(primitives.Where(condition.flat_values), [1])
    return cast(primitives.GatherV2(condition._coordinates(), places, 0, 0), int64)


def _reverse(tensor: RaggedTensor, axis: Any, name: str | None = None) -> Any:
    for a in dims_of(axis):
        key = [builtins.slice(None)] * (a % tensor.shape.rank) + [builtins.slice(None, None, -1)]
        tensor = tensor[tuple(key)]
    return tensor


def _tile(input: RaggedTensor, multiples: Any, name: str | None = None) -> Any:
    for axis, times in enumerate(dims_of(multiples)):
        input = (
            concat([input] * times, axis) if times else input[(builtins.slice(None),) * axis + (builtins.slice(0, 0),)]
        )
    return input


def _softmax(logits: RaggedTensor, axis: int | None = None, name: str | None = None) -> Any:
    if axis not in (None, -1, logits.shape.rank - 1) or logits.flat_values.shape.rank != 1:
        raise ValueError(f"softmax: a ragged tensor is normalized along its last dimension; got axis={axis}")
    if isinstance(logits.values, RaggedTensor):
        return logits.with_values(_softmax(logits.values))
    ids, count = logits.value_rowids(), logits.nrows()
    largest = primitives.StopGradient(primitives.UnsortedSegmentMax(logits.values, ids, count))
    powers = primitives.Exp(_deviations(logits.values, ids, largest))
    total = primitives.UnsortedSegmentSum(powers, ids, count)
    return logits.with_values(powers / primitives.GatherV2(total, ids, 0, 0))


def _squeeze(input: RaggedTensor, axis: Any = None, name: str | None = None) -> Any:
    if axis is None:
        raise ValueError("Ragged.squeeze must have an axis argument.")
    for a in sorted((a % input.shape.rank for a in dims_of(axis)), reverse=True):
        input = _squeezed(input, a)
    return input


def _squeezed(x: Any, axis: int) -> Any:
    if not isinstance(x, RaggedTensor):
        return primitives.Squeeze(x, [axis])
    if axis > 1:
        return x.with_values(_squeezed(x.values, axis - 1))
    lengths = [int(x.nrows())] if axis == 0 else x.row_lengths().numpy().tolist()
    if any(n != 1 for n in lengths):
        raise InvalidArgumentError(None, None, f"squeeze: Can not squeeze dim[{axis}], expected a dimension of 1")
    return x.values


def _split(
    value: RaggedTensor, num_or_size_splits: Any, axis: Any = 0, num: Any = None, name: str | None = None
) -> Any:
    if int(axis) != 0:
        raise ValueError(f"split: a ragged tensor is split along axis 0; got axis={axis}")
    sizes = num_or_size_splits
    rows = int(value.nrows())
    if not isinstance(sizes, list | tuple) and not getattr(sizes, "shape", None):
        if rows % int(sizes):
            raise InvalidArgumentError(
                None, None, f"split: {rows} rows cannot be divided into {int(sizes)} equal parts"
            )
        sizes = [rows // int(sizes)] * int(sizes)
    ends = np.cumsum(dims_of(sizes)).tolist()
    return [value[begin:end] for begin, end in zip([0, *ends[:-1]], ends)]


def _reduce_join(
    inputs: RaggedTensor, axis: Any = None, keepdims: bool = False, separator: str = "", name: str | None = None
) -> Any:
    if axis is not None and dims_of(axis)[0] not in (-1, inputs.shape.rank - 1):
        raise ValueError(f"reduce_join: a ragged tensor is joined along its last dimension; got axis={axis}")
    glue = separator.encode()
    if axis is None:
        return convert_to_tensor(glue.join(inputs.flat_values.numpy().reshape(-1).tolist()))
    if isinstance(inputs.values, RaggedTensor):
        return inputs.with_values(_reduce_join(inputs.values, -1, keepdims, separator))
    at, words = inputs.row_splits.numpy(), inputs.values.numpy().tolist()
    joined = [glue.join(words[begin:end]) for begin, end in itertools.pairwise(at)]
    return convert_to_tensor([[text] for text in joined] if keepdims else joined)


def _add_n(inputs: list[Any], name: str | None = None) -> Any:
    total = inputs[0]
    for x in inputs[1:]:
        total = total + x
    return total


def _reshape(tensor: RaggedTensor, shape: Any, name: str | None = None) -> Any:
    if dims_of(shape) != [-1]:
        raise ValueError(f"reshape: of a ragged tensor only all elements can be had, as shape [-1]; got {shape}")
    return primitives.Reshape(tensor.flat_values, [-1])


def _cumsum(
    x: RaggedTensor, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> RaggedTensor:
    rank = x.shape.rank
    axis = int(axis)
    if not -rank <= axis < rank:
        raise ValueError(f"cumsum: axis must be in [{-rank}, {rank}); got {axis}")
    axis %= rank
    if axis > 1 and isinstance(x.values, RaggedTensor):
        return x.with_values(_cumsum(x.values, axis - 1, exclusive, reverse))
    if axis > 1:
        return x.with_values(primitives.Cumsum(x.values, axis - 1, exclusive, reverse))
    if isinstance(x.values, RaggedTensor):
        raise ValueError(f"cumsum: along dimension {axis} of a ragged tensor the rows must be plain; got {x.shape}")
    sums = primitives.Cumsum(x.to_tensor(), axis, exclusive, reverse)
    return RaggedTensor.from_tensor(sums, lengths=x.row_lengths())


def _matmul(
    a: RaggedTensor, b: Any, transpose_a: bool = False, transpose_b: bool = False, *rest: Any, **named: Any
) -> RaggedTensor:
    if transpose_a or not isinstance(a, RaggedTensor) or a.ragged_rank != 1 or isinstance(b, RaggedTensor):
        raise ValueError(
            "matmul: of ragged tensors, the first may be one whose matrices differ in their number of rows; got "
            f"{a.shape} and {b.shape}"
        )
    product = primitives.MatMul(a.to_tensor(), convert_to_tensor(b, dtype_hint=a.dtype), False, transpose_b)
    return RaggedTensor.from_tensor(product, lengths=a.row_lengths())


def _by_segment(function: Any, filler: Any) -> Any:
    """Elements by the number that stands in their place, or rows by the number of the row."""

    def run(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
        if isinstance(segment_ids, RaggedTensor):
            if not all(map(_same_splits, data.nested_row_splits, segment_ids.nested_row_splits)):
                raise InvalidArgumentError(None, None, "segment_ids must have the rows of data")
            return function(data.flat_values, segment_ids.flat_values, num_segments)
        none = convert_to_tensor(filler(data.dtype), dtype=data.dtype)
        lengths = primitives.UnsortedSegmentMax(data.row_lengths(), segment_ids, num_segments)
        rows = function(data.to_tensor(default_value=none), segment_ids, num_segments)
        return RaggedTensor.from_tensor(rows, lengths=primitives.Maximum(lengths, cast(0, lengths.dtype)))

    return run


# Operations on whole rows that no ragged tensor can take, and compositions that work element by element.
_DENSE = {
    "transpose", "cumprod", "cumulative_logsumexp", "segment_sum", "segment_max", "segment_min",
    "segment_prod", "argmax", "argmin", "dynamic_partition", "unstack", "roll", "slice",
    "strided_slice", "space_to_batch", "batch_to_space", "band_part",
}  # fmt: skip
_COMPOSED = {
    "as_string", "clip_by_value", "divide", "divide_no_nan", "dropout", "elu", "erfcinv", "gelu", "leaky_relu",
    "length", "lower", "log_sigmoid", "multiply_no_nan", "ndtri", "one_hot", "ones_like", "reciprocal_no_nan",
    "regex_full_match", "regex_replace", "relu6", "round", "saturate_cast", "scalar_mul", "selu", "sigmoid",
    "silu", "softplus", "softsign", "squared_difference", "strip", "substr", "swish", "to_hash_bucket",
    "to_hash_bucket_fast", "to_hash_bucket_strong", "to_number", "truediv", "unicode_transcode", "upper",
    "zeros_like",
}  # fmt: skip

_OPERATIONS: dict[str, Any] = {
    "reduce_sum": _reduction(primitives.UnsortedSegmentSum, _with_axis(primitives.Sum)),
    "reduce_prod": _reduction(primitives.UnsortedSegmentProd, _with_axis(primitives.Prod)),
    "reduce_max": _reduction(primitives.UnsortedSegmentMax, _with_axis(primitives.Max)),
    "reduce_min": _reduction(primitives.UnsortedSegmentMin, _with_axis(primitives.Min)),
    "reduce_mean": _reduction(_segment_mean, _with_axis(primitives.Mean)),
    "reduce_any": _reduction(_segment_bool(primitives.UnsortedSegmentMax), _with_axis(primitives.Any)),
    "reduce_all": _reduction(_segment_bool(primitives.UnsortedSegmentMin), _with_axis(primitives.All)),
    "reduce_variance": _reduction(_segment_variance, reduce_variance),
    "reduce_std": _reduction(_segment_std, reduce_std),
    "reduce_logsumexp": _reduction(_segment_logsumexp, reduce_logsumexp),
    "concat": concat,
    "stack": stack,
    "expand_dims": expand_dims,
    "gather": _gather,
    "boolean_mask": boolean_mask,
    "where": _true_places,
    "reverse": _reverse,
    "tile": _tile,
    "softmax": _softmax,
    "squeeze": _squeeze,
    "split": _split,
    "reduce_join": _reduce_join,
    "add_n": _add_n,
    "reshape": _reshape,
    "cumsum": _cumsum,
    "matmul": _matmul,
    "unsorted_segment_sum": _by_segment(primitives.UnsortedSegmentSum, lambda dtype: 0),
    "unsorted_segment_prod": _by_segment(primitives.UnsortedSegmentProd, lambda dtype: 1),
    "unsorted_segment_max": _by_segment(primitives.UnsortedSegmentMax, lambda dtype: dtype.min),
    "unsorted_segment_min": _by_segment(primitives.UnsortedSegmentMin, lambda dtype: dtype.max),
}
_STAGED_OPERATIONS = {name: _core.Composition(function) for name, function in _OPERATIONS.items()}


def add_operation(name: str, function: Any) -> None:
    """Lets a ragged first argument be answered by this function where an operation is called."""
    _OPERATIONS[name] = function
    _STAGED_OPERATIONS[name] = _core.Composition(function)


_BINARY = {
    "add": primitives.AddV2,
    "sub": primitives.Sub,
    "mul": primitives.Mul,
    "floordiv": primitives.FloorDiv,
    "mod": primitives.FloorMod,
    "pow": primitives.Pow,
    "eq": primitives.Equal,
    "ne": primitives.NotEqual,
    "lt": primitives.Less,
    "le": primitives.LessEqual,
    "gt": primitives.Greater,
    "ge": primitives.GreaterEqual,
    "and": primitives.LogicalAnd,
    "or": primitives.LogicalOr,
}


def _true_division(x: Any, y: Any) -> Any:
    return x / y


def _add_operators() -> None:
    def binary(function: Any) -> tuple[Any, Any]:
        return (
            lambda self, other: _elementwise(function, (self, other), {}),
            lambda self, other: _elementwise(function, (other, self), {}),
        )

    for name, function in {**_BINARY, "truediv": _true_division}.items():
        forward, reflected = binary(function)
        setattr(RaggedTensor, f"__{name}__", forward)
        if name not in ("eq", "ne", "lt", "le", "gt", "ge"):
            setattr(RaggedTensor, f"__r{name}__", reflected)
    RaggedTensor.__neg__ = lambda self: self.with_flat_values(-self.flat_values)
    RaggedTensor.__abs__ = lambda self: self.with_flat_values(abs(self.flat_values))
    RaggedTensor.__invert__ = lambda self: self.with_flat_values(primitives.LogicalNot(self.flat_values))


_add_operators()
