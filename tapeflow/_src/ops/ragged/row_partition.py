"""`tf.experimental.RowPartition`: which values belong to which row, without the values."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import range as range_of
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.types.dtypes import int64


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
        cls, value_rowids: Any, nrows: Any = None, validate: bool = True, dtype: Any = None
    ) -> RowPartition:
        """Rows by the row of each value, in order."""
        rows = convert_to_tensor(value_rowids, dtype, int64)
        return cls(RaggedTensor.from_value_rowids(range_of(rows.shape[0]), rows, nrows, validate=validate))

    @classmethod
    def from_row_splits(cls, row_splits: Any, validate: bool = True, dtype: Any = None) -> RowPartition:
        """Rows between neighbouring splits."""
        splits = convert_to_tensor(row_splits, dtype, int64)
        return cls(RaggedTensor.from_row_splits(range_of(splits[-1]), splits, validate=validate))

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

    def rows_of(self, values: Any) -> RaggedTensor:
        """The ragged tensor with these rows of values."""
        return self._places.with_values(values)

    def __repr__(self) -> str:
        length = self.uniform_row_length()
        if length is None:
            return f"tf.RowPartition(row_splits={_text(self.row_splits())})"
        return f"tf.RowPartition(nrows={_text(self.nrows())}, uniform_row_length={_text(length)})"


def _text(tensor: Any) -> str:
    return str(tensor) if _core.is_symbolic(tensor) else str(tensor.numpy())
