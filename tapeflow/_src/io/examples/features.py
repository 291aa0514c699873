"""What `tf.io.parse_example` is to make of each feature: `tf.io.FixedLenFeature`, `VarLenFeature` and others."""

from __future__ import annotations

from typing import Any, NamedTuple

from tapeflow._src.namespace import public
from tapeflow._src.types.dtypes import int32


@public("io.FixedLenFeature", "compat.v1.io.FixedLenFeature", "compat.v1.FixedLenFeature")
class FixedLenFeature(NamedTuple):
    """A tensor of a known shape; without a default it must be there.

    >>> tf.io.FixedLenFeature([2], tf.int64).shape
    [2]
    """

    shape: Any
    dtype: Any
    default_value: Any = None


@public("io.VarLenFeature", "compat.v1.io.VarLenFeature", "compat.v1.VarLenFeature")
class VarLenFeature(NamedTuple):
    """Any number of values, as a sparse tensor.

    >>> tf.io.VarLenFeature(tf.string).dtype
    tf.string
    """

    dtype: Any


@public("io.FixedLenSequenceFeature", "compat.v1.io.FixedLenSequenceFeature", "compat.v1.FixedLenSequenceFeature")
class FixedLenSequenceFeature(NamedTuple):
    """Any number of tensors of a known shape, padded to the longest.

    >>> tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True).allow_missing
    True
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


@public("io.SparseFeature", "compat.v1.io.SparseFeature", "compat.v1.SparseFeature")
class SparseFeature(NamedTuple):
    """A sparse tensor whose places and values stand in features of their own.

    >>> tf.io.SparseFeature("at", "value", tf.float32, size=10).size
    10
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class RowSplits(NamedTuple):
    """Where the rows begin and end."""

    key: str


class RowLengths(NamedTuple):
    """How long the rows are."""

    key: str


class RowStarts(NamedTuple):
    """Where the rows begin."""

    key: str


class RowLimits(NamedTuple):
    """Where the rows end."""

    key: str


class ValueRowIds(NamedTuple):
    """The row of each value."""

    key: str


class UniformRowLength(NamedTuple):
    """Rows of one length."""

    length: int


class _RaggedFields(NamedTuple):
    dtype: Any
    value_key: str | None = None
    partitions: tuple[Any, ...] = ()
    row_splits_dtype: Any = int32
    validate: bool = False


@public("io.RaggedFeature", "compat.v1.io.RaggedFeature")
class RaggedFeature(_RaggedFields):
    """A ragged tensor; further partitions may stand in features of their own.

    >>> tf.io.RaggedFeature(tf.int64).row_splits_dtype
    tf.int32
    """

    RowSplits, RowLengths, RowStarts = RowSplits, RowLengths, RowStarts
    RowLimits, ValueRowIds, UniformRowLength = RowLimits, ValueRowIds, UniformRowLength

    def __new__(
        cls,
        dtype: Any,
        value_key: str | None = None,
        partitions: Any = (),
        row_splits_dtype: Any = int32,
        validate: bool = False,
    ) -> RaggedFeature:
        kinds = (RowSplits, RowLengths, RowStarts, RowLimits, ValueRowIds, UniformRowLength)
        partitions = tuple(UniformRowLength(p) if isinstance(p, int) else p for p in partitions)
        for partition in partitions:
            if not isinstance(partition, kinds):
                raise TypeError(
                    f"RaggedFeature: a partition must be one of {[k.__name__ for k in kinds]}; got {partition}"
                )
        return super().__new__(cls, dtype, value_key, partitions, row_splits_dtype, validate)
