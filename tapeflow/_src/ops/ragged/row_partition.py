"""`tf.experimental.RowPartition`: which values belong to which row, without the values."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import range as range_of
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.shaping import size
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.types.dtypes import int32, int64


@public("experimental.RowPartition")
class RowPartition:
    """Rows of values that lie one after the other; kept as the places of the values.

    >>> tf.experimental.RowPartition.from_value_rowids([0, 0, 2], nrows=3).row_splits()
    <tf.Tensor: shape=(4,), dtype=int64, numpy=array([0, 2, 2, 3])>
    """

    def __init__(self, places: RaggedTensor) -> None:
        self._places = places

    @classmethod
    def from_value_rowids(
        cls, value_rowids: Any, nrows: Any = None, validate: bool = True, dtype: Any = None, dtype_hint: Any = None
    ) -> RowPartition:
        """Rows by the row of each value, in order."""
        rows = _integers(value_rowids, dtype, dtype_hint)
        return cls(RaggedTensor.from_value_rowids(_places(size(rows)), rows, nrows, validate=validate))

    @classmethod
    def from_row_splits(
        cls, row_splits: Any, validate: bool = True, dtype: Any = None, dtype_hint: Any = None
    ) -> RowPartition:
        """Rows between neighbouring splits."""
        splits = _integers(row_splits, dtype, dtype_hint)
        if splits.shape.rank != 1:
            raise ValueError(f"Shape {splits.shape} must have rank 1")
        return cls(RaggedTensor.from_row_splits(_places(splits[-1]), splits, validate=validate))

    @classmethod
    def from_row_lengths(
        cls, row_lengths: Any, validate: bool = True, dtype: Any = None, dtype_hint: Any = None
    ) -> RowPartition:
        """Rows of these lengths."""
        lengths = _integers(row_lengths, dtype, dtype_hint)
        return cls(RaggedTensor.from_row_lengths(_places(primitives.Sum(lengths)), lengths, validate=validate))

    @classmethod
    def from_row_starts(
        cls, row_starts: Any, nvals: Any, validate: bool = True, dtype: Any = None, dtype_hint: Any = None
    ) -> RowPartition:
        """Rows that begin at these places, of `nvals` values."""
        starts = _integers(row_starts, dtype, dtype_hint)
        return cls(RaggedTensor.from_row_starts(_places(nvals), starts, validate=validate))

    @classmethod
    def from_row_limits(
        cls, row_limits: Any, validate: bool = True, dtype: Any = None, dtype_hint: Any = None
    ) -> RowPartition:
        """Rows that end at these places."""
        limits = _integers(row_limits, dtype, dtype_hint)
        count = limits[-1] if limits.shape[0] != 0 else 0
        return cls(RaggedTensor.from_row_limits(_places(count), limits, validate=validate))

    @classmethod
    def from_uniform_row_length(
        cls,
        uniform_row_length: Any,
        nvals: Any = None,
        nrows: Any = None,
        validate: bool = True,
        dtype: Any = None,
        dtype_hint: Any = None,
    ) -> RowPartition:
        """Rows of one length: as many as `nrows` says, or as `nvals` values need."""
        if nvals is None and nrows is None:
            raise ValueError("from_uniform_row_length: either nvals or nrows must be given")
        length = _integers(uniform_row_length, dtype, dtype_hint)
        count = length * cast(nrows, length.dtype) if nvals is None else nvals
        places = RaggedTensor.from_uniform_row_length(_places(count), length, nrows, validate=validate)
        return cls(places.with_row_splits_dtype(length.dtype))

    def row_splits(self) -> Any:
        """Where rows begin and end."""
        return self._places.row_splits

    def value_rowids(self) -> Any:
        """The row of each value."""
        return self._places.value_rowids()

    def row_lengths(self) -> Any:
        """The number of values in each row."""
        return self._places.row_lengths()

    def row_starts(self) -> Any:
        """Where each row begins."""
        return self._places.row_starts()

    def row_limits(self) -> Any:
        """Where each row ends."""
        return self._places.row_limits()

    def nrows(self) -> Any:
        """The number of rows."""
        return self._places.nrows()

    def nvals(self) -> Any:
        """The number of values."""
        return self._places.row_splits[-1]

    def uniform_row_length(self) -> Any:
        """The one length of all rows, if it is known."""
        return self._places.uniform_row_length

    def offsets_in_rows(self) -> Any:
        """The place of each value in its row."""
        return primitives.Sub(
            cast(self._places.values, self.dtype), primitives.GatherV2(self.row_starts(), self.value_rowids())
        )

    def is_uniform(self) -> bool:
        """Whether all rows are known to have one length."""
        return self._places.uniform_row_length is not None

    def with_dtype(self, dtype: Any) -> RowPartition:
        """The same rows, numbered with this dtype."""
        return RowPartition(self._places.with_row_splits_dtype(dtype))

    @property
    def dtype(self) -> Any:
        """The dtype of the numbers: int32 or int64."""
        return self._places.row_splits.dtype

    @property
    def static_nrows(self) -> int | None:
        """The number of rows as far as it is known while tracing."""
        count = self._places.row_splits.shape[0]
        return None if count is None else int(count) - 1

    @property
    def static_nvals(self) -> int | None:
        """The number of values as far as it is known while tracing."""
        count: int | None = self._places.values.shape[0]
        return count

    @property
    def static_uniform_row_length(self) -> int | None:
        """The one length of all rows, if it is known."""
        length = self._places.uniform_row_length
        return None if length is None or _core.is_symbolic(length) else int(length)

    def rows_of(self, values: Any) -> RaggedTensor:
        """The ragged tensor with these rows of values."""
        return self._places.with_values(values)

    def __repr__(self) -> str:
        length = self.uniform_row_length()
        if length is None:
            return f"tf.RowPartition(row_splits={_text(self.row_splits())})"
        return f"tf.RowPartition(nrows={_text(self.nrows())}, uniform_row_length={_text(length)})"


def _integers(values: Any, dtype: Any, hint: Any) -> Any:
    numbers = convert_to_tensor(values, dtype, hint or int64)
    if numbers.dtype not in (int32, int64):
        raise ValueError(f"RowPartition: rows are numbered with int32 or int64; got {numbers.dtype.name}")
    return numbers


def _places(count: Any) -> Any:
    return range_of(cast(count, int64))


def _text(tensor: Any) -> str:
    return str(tensor) if _core.is_symbolic(tensor) else str(tensor.numpy())
