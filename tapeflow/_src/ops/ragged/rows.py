"""The representation of ragged tensors, values and row splits, with its constructors; no operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.ops.arrays.constants import range as numbers_up_to
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.sorting import searchsorted
from tapeflow._src.ops.effects.host_call import WithCall, host_effect
from tapeflow._src.ops.ragged.row_splits import (
    row_splits_to_segment_ids,
    segment_ids_to_row_splits,
    spans,
    splits_from_lengths,
    splits_tensor,
)
from tapeflow._src.types.dispatch_fallback import dispatched
from tapeflow._src.types.dtypes import DType, int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.tensor_spec import CompositeTensor


def values_tensor(values: Any) -> Any:
    """The values of rows: ragged themselves, or a tensor."""
    return values if isinstance(values, RaggedRows) else convert_to_tensor(values)


def _list_of(tensors: Any, name: str) -> list[Any]:
    """The tensors of a list, which no tensor may stand for."""
    if _core.is_tensor(tensors):
        raise TypeError(f"Argument `{name}` must be a list of Tensors. Received {tensors}.")
    return list(tensors)


def row_count(values: Any) -> int:
    """The size of the first dimension of a dense or ragged tensor."""
    return int(values.nrows()) if isinstance(values, RaggedRows) else values.shape[0]


def _row_number(nrows: Any) -> Any:
    """A number of rows, which is a tensor or an integer that is not negative."""
    if _core.is_symbolic(nrows):
        return nrows
    count = int(convert_to_tensor(nrows, dtype=None if _core.is_tensor(nrows) else int64))
    if count < 0:
        raise ValueError(f"from_value_rowids: Expected nrows >= 0; got {count}")
    return nrows


def axis_in(axis: Any, rank: int | None, name: str = "axis") -> int:
    """The axis counted from the front."""
    if not isinstance(axis, int):
        raise TypeError(f"{name} must be an int; got {type(axis).__name__}")
    if rank is None:
        if axis < 0:
            raise ValueError(f"{name}={axis} may only be negative if the rank is known")
        return axis
    if not -rank <= axis < rank:
        raise ValueError(f"{name}={axis} out of bounds: expected {-rank}<={name}<{rank}")
    return axis % rank


def _invalid(who: str, what: str) -> InvalidArgumentError:
    return InvalidArgumentError.of(f"Arguments to {who} do not form a valid RaggedTensor: {what}")


def dynamic_row_count(values: Any) -> Any:
    """The size of the first dimension: a number, or a tensor while tracing."""
    if isinstance(values, RaggedRows):
        count = values.nrows()
        return count if _core.is_symbolic(count) else int(count)
    size = None if values.shape.rank is None else values.shape[0]
    return primitives.Shape(values, int64)[0] if size is None else size


def _checked(check: Callable[..., None], splits: Any, *more: Any) -> Any:
    """The splits, after `check(splits, *more)`: now, or before anything in the graph reads them."""
    if not any(_core.is_symbolic(value) for value in (splits, *more)):
        check(splits, *more)
        return splits
    inputs = [splits, *map(convert_to_tensor, more)]
    operation = host_effect(WithCall(check, check, len(inputs)), inputs)
    if operation is None:  # in a function, effects happen in the order of the program
        return splits
    with _core.current_graph().control_dependencies([operation]):
        return primitives.Identity(splits)


def check_splits(splits: Any, count: Any) -> None:
    """Raises unless splits begin with 0, do not decrease and end with the number of values."""
    at, count = np.asarray(splits), int(count)
    if at[0] != 0:
        raise _invalid("from_row_splits", f"zero\nCondition x == y did not hold.\nFirst 1 elements of x:\n[{at[0]}]")
    if (np.diff(at) < 0).any():
        raise _invalid("from_row_splits", f"row_splits must not decrease; got {at.tolist()}")
    if at[-1] != count:
        raise _invalid("from_row_splits", f"the last row split must be the number of values, {count}; got {at[-1]}")


def check_lengths(lengths: Any) -> None:
    """Raises unless no length is negative."""
    sizes = np.asarray(lengths)
    if sizes.size and sizes.min() < 0:
        raise InvalidArgumentError.of(
            "Arguments to from_row_lengths do not form a valid RowPartition.  \nCondition x >= 0 did not hold "
            f"element-wise: {sizes.tolist()}",
        )


def check_rowids(rowids: Any, nrows: Any, count: Any) -> None:
    """Raises unless the rows of the values are in order and in the range."""
    at, rows = np.asarray(rowids), int(nrows)
    if at.size and at[-1] >= rows >= 0 and not _core.is_tensor(nrows):
        raise ValueError(
            f"from_value_rowids: Expected nrows >= value_rowids[-1] + 1; got nrows={rows}, value_rowids[-1]={at[-1]}"
        )
    if at.size and ((np.diff(at) < 0).any() or at[0] < 0 or at[-1] >= rows):
        raise _invalid("from_value_rowids", f"value_rowids must be sorted and in [0, {rows}); got {at.tolist()}")
    if at.size != int(count):
        raise _invalid("from_value_rowids", f"{int(count)} values need as many value_rowids; got {at.size}")


class RaggedRows(CompositeTensor):
    """Rows `values[row_splits[i]:row_splits[i + 1]]`: the representation of a `tf.RaggedTensor`, and its constructors.

    The values are a tensor, or rows of the same class.
    """

    def __init__(self, values: Any, row_splits: Any, uniform_row_length: int | None = None) -> None:
        self._values, self._row_splits, self._uniform_row_length = values, row_splits, uniform_row_length
        self._given: dict[str, Any] = {}  # what the rows were made from, and need not be computed again

    def _made_from(self, given: dict[str, Any]) -> Self:
        """The same rows, which know the tensors that they were made from."""
        dtype = self._row_splits.dtype
        self._given = {name: x for name, x in given.items() if _core.is_tensor(x) and x.dtype == dtype}
        return self

    # ---- making one

    @classmethod
    @dispatched
    def from_row_splits(cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True) -> Self:
        """Rows between neighbouring splits."""
        values, splits = values_tensor(values), splits_tensor(row_splits, "row_splits")
        if values.shape.rank == 0:
            raise InvalidArgumentError.of("from_row_splits: values must have at least one dimension")
        if splits.shape.rank != 1:
            raise ValueError(f"Shape {splits.shape} must have rank 1")
        if splits.shape[0] == 0:
            raise ValueError("row_splits tensor may not be empty.")
        if validate:
            splits = _checked(check_splits, splits, dynamic_row_count(values))
        return cls(values, splits)

    @classmethod
    @dispatched
    def from_row_lengths(cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True) -> Self:
        """Rows of these lengths."""
        lengths = splits_tensor(row_lengths, "row_lengths")
        if validate:
            lengths = _checked(check_lengths, lengths)
        rows = cls.from_row_splits(values, splits_from_lengths(lengths), validate=validate)
        return rows._made_from({"row_lengths": lengths})

    @classmethod
    @dispatched
    def from_value_rowids(
        cls, values: Any, value_rowids: Any, nrows: Any = None, name: str | None = None, validate: bool = True
    ) -> Self:
        """The row of each value, in order."""
        rows, values = splits_tensor(value_rowids, "value_rowids"), values_tensor(values)
        if rows.shape.rank not in (None, 1):
            raise ValueError(f"Shape {rows.shape} must have rank 1")
        if np.ndim(nrows) if not _core.is_tensor(nrows) else nrows.shape.rank:
            raise ValueError(f"from_value_rowids: Shape {np.shape(nrows)} of nrows must have rank 0")
        if nrows is not None:
            nrows = _row_number(nrows)
        given = {"nrows": nrows, "value_rowids": rows}
        if _core.is_tracing():
            if nrows is None:  # one more than the last row, 0 without values
                padded = primitives.ConcatV2([_core.convert_to_tensor([-1], rows.dtype, None, "ragged"), rows], 0)
                nrows = padded[-1] + 1
            count: Any = cast(nrows, rows.dtype)
            if validate:
                rows = _checked(check_rowids, rows, count, dynamic_row_count(values))
            splits = searchsorted(rows, cast(numbers_up_to(count + 1), rows.dtype), "left", rows.dtype)
            return cls(values, splits)._made_from(given)
        at = rows.numpy()
        count = int(nrows) if nrows is not None else int(at[-1]) + 1 if at.size else 0
        if validate:
            rows = _checked(check_rowids, rows, count, dynamic_row_count(values))
        return cls(values, segment_ids_to_row_splits(rows, count, rows.dtype))._made_from(given)

    @classmethod
    @dispatched
    def from_row_starts(cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True) -> Self:
        """The place where each row begins."""
        values, starts = values_tensor(values), splits_tensor(row_starts, "row_starts")
        end = primitives.Reshape(cast(dynamic_row_count(values), starts.dtype), [1])
        return cls.from_row_splits(values, primitives.ConcatV2([starts, end], 0), validate=validate)

    @classmethod
    @dispatched
    def from_row_limits(cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True) -> Self:
        """The place where each row ends."""
        limits = splits_tensor(row_limits, "row_limits")
        zero = _core.convert_to_tensor([0], limits.dtype, None, "ragged")
        return cls.from_row_splits(values, primitives.ConcatV2([zero, limits], 0), validate=validate)

    @classmethod
    @dispatched
    def from_uniform_row_length(
        cls, values: Any, uniform_row_length: Any, nrows: Any = None, validate: bool = True, name: str | None = None
    ) -> Self:
        """Rows of one length."""
        values = values_tensor(values)
        if any(_core.is_symbolic(x) for x in (uniform_row_length, nrows, dynamic_row_count(values))):
            return cls._from_dynamic_row_length(values, uniform_row_length, nrows, validate)
        length = int(splits_tensor(uniform_row_length, "UniformRowLength"))
        count = int(nrows) if nrows is not None else (row_count(values) // length if length else 0)
        if validate and count * length != row_count(values):
            raise ValueError(
                f"from_uniform_row_length: uniform_row_length={length} times nrows={count} must equal "
                f"nvals={row_count(values)}"
            )
        splits = _core.convert_to_tensor(np.arange(count + 1, dtype=np.int64) * length, int64, None, "ragged")
        return cls(values, splits, length)

    @classmethod
    def _from_dynamic_row_length(cls, values: Any, length: Any, nrows: Any, validate: bool) -> Self:
        """Rows of one length, where a number is known only when the graph runs."""
        size, total = cast(length, int64), cast(dynamic_row_count(values), int64)
        count = total // primitives.Maximum(size, 1) if nrows is None else cast(nrows, int64)
        splits = numbers_up_to(count + 1) * size
        if validate:
            splits = _checked(check_splits, splits, total)
        return cls(values, splits, None if _core.is_symbolic(length) else int(length))

    @classmethod
    @dispatched
    def from_nested_row_splits(
        cls, flat_values: Any, nested_row_splits: Any, name: str | None = None, validate: bool = True
    ) -> Self:
        """Splits for each ragged dimension, the outermost first."""
        result: Self = flat_values
        for splits in reversed(_list_of(nested_row_splits, "nested_row_splits")):
            result = cls.from_row_splits(result, splits, validate=validate)
        return result

    @classmethod
    @dispatched
    def from_nested_row_lengths(
        cls, flat_values: Any, nested_row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> Self:
        """Lengths for each ragged dimension, the outermost first."""
        result: Self = flat_values
        for lengths in reversed(_list_of(nested_row_lengths, "nested_row_lengths")):
            result = cls.from_row_lengths(result, lengths, validate=validate)
        return result

    @classmethod
    @dispatched
    def from_nested_value_rowids(
        cls,
        flat_values: Any,
        nested_value_rowids: Any,
        nested_nrows: Any = None,
        name: str | None = None,
        validate: bool = True,
    ) -> Self:
        """Rows of the values for each ragged dimension, the outermost first."""
        rows = _list_of(nested_value_rowids, "nested_value_rowids")
        counts = [None] * len(rows) if nested_nrows is None else _list_of(nested_nrows, "nested_nrows")
        if len(counts) != len(rows):
            raise ValueError(
                "from_nested_value_rowids: Argument `nested_nrows` must have the same length as argument "
                f"`nested_value_rowids`; got {len(counts)} and {len(rows)}"
            )
        result: Self = flat_values
        for ids, count in zip(reversed(rows), reversed(counts)):
            result = cls.from_value_rowids(result, ids, count, validate=validate)
        return result

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
    def flat_values(self) -> Tensor:
        """The innermost values."""
        return self._values.flat_values if isinstance(self._values, RaggedRows) else self._values

    @property
    def nested_row_splits(self) -> tuple[Any, ...]:
        """The splits of all ragged dimensions, the outermost first."""
        inner = self._values.nested_row_splits if isinstance(self._values, RaggedRows) else ()
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
        dtype: DType = self._values.dtype
        return dtype

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
        if "nrows" in self._given:
            return self._given["nrows"] if out_type is None else cast(self._given["nrows"], dtype)
        if self._row_splits.shape[0] is None:
            return cast(primitives.Shape(self._row_splits, int64)[0] - 1, dtype)
        return convert_to_tensor(self._row_splits.shape[0] - 1, dtype=dtype)

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """The lengths of the rows along `axis`."""
        axis = axis_in(axis, self.shape.rank)
        if axis == 0:
            return self.nrows()
        if axis == 1:
            known = self._given.get("row_lengths")
            return self._row_splits[1:] - self._row_splits[:-1] if known is None else known
        if isinstance(self._values, RaggedRows):
            return self.with_values(self._values.row_lengths(axis - 1))
        size = self._values.shape[axis - 1]
        return self.with_values(primitives.BroadcastTo(cast(size, self._row_splits.dtype), [row_count(self._values)]))

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
        known = self._given.get("value_rowids")
        return row_splits_to_segment_ids(self._row_splits) if known is None else known

    def nested_value_rowids(self, name: str | None = None) -> tuple[Any, ...]:
        """The rows of the values of all ragged dimensions."""
        return tuple(row_splits_to_segment_ids(s) for s in self.nested_row_splits)

    def bounding_shape(self, axis: Any = None, name: str | None = None, out_type: Any = None) -> Any:
        """The smallest dense shape that holds all rows."""
        if self._is_staged:
            whole = cast(self._staged_bounds(), out_type or self._row_splits.dtype)
            return whole if axis is None else primitives.GatherV2(whole, axis, 0, 0)
        dims: list[int] = [self._row_splits.shape[0] - 1]
        for lengths in self.nested_row_lengths():
            numbers = lengths.numpy()
            dims.append(int(numbers.max()) if numbers.size else 0)
        dims += self.flat_values.shape.as_list()[1:]
        whole = convert_to_tensor(dims, dtype=out_type or self._row_splits.dtype)
        return whole if axis is None else primitives.GatherV2(whole, axis, 0, 0)

    @property
    def _is_staged(self) -> bool:
        """Whether what is computed from the rows is part of a graph: they are, or a graph of TensorFlow 1 is built."""
        graph = _core.current_graph()
        if graph is not None and graph.graph_mode:
            return True
        return any(_core.is_symbolic(splits) for splits in self.nested_row_splits)

    def _staged_bounds(self) -> Any:
        """`bounding_shape` of rows of dynamic lengths."""
        inner = self._values
        rest = inner._staged_bounds() if isinstance(inner, RaggedRows) else primitives.Shape(inner, int64)
        lengths = primitives.ConcatV2([cast(self.row_lengths(), int64), cast([0], int64)], 0)
        own = primitives.Pack([self.nrows(int64), primitives.Max(lengths, None, False)], 0)
        return primitives.ConcatV2([own, rest[1:]], 0)

    def with_values(self, new_values: Any) -> Self:
        """The same rows with other values."""
        new_values = values_tensor(new_values)
        new_values.shape.with_rank_at_least(1)
        self._values.shape[:1].assert_is_compatible_with(new_values.shape[:1])
        return type(self)(new_values, self._row_splits, self._uniform_row_length)._made_from(self._given)

    def with_flat_values(self, new_values: Any) -> Self:
        """The same rows with other innermost values."""
        inner = self._values.with_flat_values(new_values) if isinstance(self._values, RaggedRows) else new_values
        return self.with_values(inner)

    def with_row_splits_dtype(self, dtype: Any) -> Self:
        """The same rows with splits of another dtype."""
        values = self._values.with_row_splits_dtype(dtype) if isinstance(self._values, RaggedRows) else self._values
        return type(self)(values, cast(self._row_splits, dtype), self._uniform_row_length)

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """The dimensions from `outer_axis` to `inner_axis` as one."""
        rank = self.shape.rank
        outer, inner = axis_in(outer_axis, rank, "outer_axis"), axis_in(inner_axis, rank, "inner_axis")
        if outer > inner:
            raise ValueError(
                f"Expected outer_axis ({outer_axis}) to be less than or equal to inner_axis ({inner_axis})"
            )
        return self if outer == inner else self._merged(outer, inner)

    def _merged(self, outer: int, inner: int) -> Any:
        values = self._values
        if outer == 0:
            return values if inner == 1 else _merge(values, 0, inner - 1)
        if outer > 1:
            return self.with_values(_merge(values, outer - 1, inner - 1))
        if isinstance(values, RaggedRows):
            splits = primitives.GatherV2(values.row_splits, self._row_splits, 0, 0)
            result = type(self)(values.values, splits)
            return result if inner == 2 else result._merged(1, inner - 1)
        size = primitives.Prod(primitives.Shape(values, self._row_splits.dtype)[1:inner], None, False)
        length = self._uniform_row_length
        count = values.shape[1:inner].num_elements() if values.shape.rank is not None else None
        length = None if length is None or count is None else length * count
        return type(self)(_merge(values, 0, inner - 1), self._row_splits * size, length)

    def _places_in_rows(self) -> Any:
        rows = self.value_rowids()
        known = rows.shape[0]
        places = numbers_up_to(primitives.Shape(rows, int64)[0]) if known is None else np.arange(known)
        return cast(places, rows.dtype) - primitives.GatherV2(self._row_splits, rows, 0, 0)

    def _coordinates(self) -> Tensor:
        """The position in the dense tensor of each of the flat values, without their inner dimensions."""
        columns = primitives.Pack([self.value_rowids(), self._places_in_rows()], 1)
        if not isinstance(self._values, RaggedRows):
            return columns
        inner = cast(self._values._coordinates(), columns.dtype)
        outer = primitives.GatherV2(columns, inner[:, 0], 0, 0)
        return primitives.ConcatV2([outer, inner[:, 1:]], 1)


def _merge(x: Any, outer: int, inner: int) -> Any:
    """The dimensions from `outer` to `inner` of a dense or ragged tensor as one."""
    if outer == inner:
        return x
    if isinstance(x, RaggedRows):
        return x._merged(outer, inner)
    dims = [None] * (inner + 1) if x.shape.rank is None else x.shape.as_list()
    if x.shape.rank is not None and None not in dims[:outer] + dims[inner + 1 :]:
        return primitives.Reshape(x, [*dims[:outer], -1, *dims[inner + 1 :]])
    sizes = primitives.Shape(x, int64)
    result = primitives.Reshape(x, primitives.ConcatV2([sizes[:outer], cast([-1], int64), sizes[inner + 1 :]], 0))
    if x.shape.rank is not None:
        result.set_shape([*dims[:outer], None, *dims[inner + 1 :]])
    return result


def gather_rows(x: Any, rows: Any) -> Any:
    """The rows of a dense or ragged tensor at the given positions."""
    positions = cast(convert_to_tensor(rows, dtype_hint=int64), int64)
    if not isinstance(x, RaggedRows):
        return primitives.GatherV2(x, positions, 0, 0)
    if not _core.is_symbolic(positions) and not _core.is_symbolic(x.row_splits):
        chosen, count = positions.numpy().reshape(-1), x.row_splits.shape[0] - 1
        if (outside := np.flatnonzero((chosen < 0) | (chosen >= count))).size:
            place = outside[0]
            raise InvalidArgumentError.of(f"gather: indices[{place}] = {chosen[place]} is not in [0, {count})")
    flat = positions if positions.shape.rank == 1 else primitives.Reshape(positions, [-1])
    starts = primitives.GatherV2(x.row_splits, flat, 0, 0)
    lengths = primitives.GatherV2(x.row_splits, flat + 1, 0, 0) - starts
    values = gather_rows(x.values, spans(starts, lengths))
    result = type(x)(values, splits_from_lengths(lengths))
    if positions.shape.rank == 0:
        return values
    return result


def expand_dims(input: Any, axis: Any, name: str | None = None) -> Any:
    """A dimension of 1 put in at `axis`."""
    if not isinstance(input, RaggedRows):
        return primitives.ExpandDims(input, axis)
    rank = input.shape.rank
    if not -rank - 1 <= int(axis) <= rank:
        raise ValueError(f"expand_dims: axis={int(axis)} out of bounds: expected {-rank - 1}<=axis<{rank + 1}")
    axis = int(axis) if int(axis) >= 0 else int(axis) + rank + 1
    if axis == 0:
        return type(input)(input, cast([0, int(input.nrows())], input.row_splits.dtype), input.shape[0])
    if axis == 1:
        return type(input).from_uniform_row_length(input, 1).with_row_splits_dtype(input.row_splits.dtype)
    return input.with_values(expand_dims(input.values, axis - 1))
