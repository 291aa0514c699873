"""Row splits, the places where rows begin and end, and what follows from them: lengths, row ids, spans."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import range as numbers_up_to
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import DType, int32, int64
from tapeflow._src.types.errors import InvalidArgumentError, ResourceExhaustedError


def splits_tensor(splits: Any, name: str) -> Any:
    """The argument `name`, which are splits, lengths or row ids, as a tensor of int32 or int64."""
    hint = int32 if getattr(splits, "dtype", None) == int32 else int64  # an array of int32 keeps its dtype
    found = convert_to_tensor(splits, dtype_hint=hint)
    if found.dtype not in (int32, int64):
        raise ValueError(f"{name} must have dtype int32 or int64; got {found.dtype.name}")
    if found.shape.rank is None:  # it can only be a vector
        found.set_shape([None])
    return found


def splits_from_lengths(lengths: Any) -> Tensor:
    """The row splits of rows of these lengths."""
    zero = _core.convert_to_tensor([0], lengths.dtype, None, "ragged")
    return primitives.ConcatV2([zero, primitives.Cumsum(lengths, 0, False, False)], 0)


def spans(starts: Any, lengths: Any, step: int = 1) -> Any:
    """The numbers from each start on, as many as the lengths say, one span behind the other."""
    splits = splits_from_lengths(lengths)
    rows = row_splits_to_segment_ids(splits)
    places = primitives.Cumsum(rows - rows + 1, 0, True, False) - primitives.GatherV2(splits, rows, 0, 0)
    return primitives.GatherV2(starts, rows, 0, 0) + step * places


def span_of(key: builtins.slice, lengths: Any) -> tuple[Any, Any, int]:
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


def numbers_below(count: Any) -> Any:
    """The numbers below `count`: an array if it is known."""
    return np.arange(count) if isinstance(count, int) else numbers_up_to(count)


def even_splits(dims: list[Any], dtype: DType) -> Any:
    """Where rows begin and end that all have the same number of elements."""
    return cast(numbers_below(dims[0] + 1) * dims[1], dtype)


def row_positions(splits: Any) -> Any:
    """The numbers of the rows: an array if their count is known, else a tensor."""
    count = splits.shape[0]
    if count is not None:
        return np.arange(count - 1)
    return numbers_up_to(primitives.Shape(splits, int64)[0] - 1)


@public("ragged.row_splits_to_segment_ids")
def row_splits_to_segment_ids(splits: Any, name: str | None = None, out_type: Any = None) -> Any:
    """The row of each value.

    >>> tf.ragged.row_splits_to_segment_ids([0, 2, 3])
    <tf.Tensor: shape=(3,), dtype=int64, numpy=array([0, 0, 1])>
    """
    splits = splits_tensor(splits, "row_splits_to_segment_ids: splits")
    if splits.shape.rank == 1 and splits.shape[0] == 0:
        raise ValueError("row_splits_to_segment_ids: Invalid row_splits: []")
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
    <tf.Tensor: shape=(4,), dtype=int64, numpy=array([0, 2, 2, 3])>
    """
    given = convert_to_tensor(segment_ids, dtype_hint=int64)
    if not given.dtype.is_integer:
        raise TypeError(
            "segment_ids_to_row_splits: Argument `tensor` (name: segment_ids) must be of type integer. Received dtype: "
            f"{given.dtype}"
        )
    ids = given if given.dtype == int32 else cast(given, int64)
    if ids.shape.rank != 1:
        raise ValueError(f"segment_ids_to_row_splits: Shape {ids.shape} must have rank 1")
    numbers = ids.numpy()
    count = int(num_segments) if num_segments is not None else int(numbers[-1]) + 1 if numbers.size else 0
    if numbers.size and numbers.min() < 0:
        raise InvalidArgumentError.of(
            f"segment_ids_to_row_splits: segment ids must be non-negative; got {numbers.min()}"
        )
    # np.bincount writes outside of its memory if the largest number is that of int64.
    size = max(count, int(numbers.max()) + 1 if numbers.size else 0)
    if size >= 1 << 60:
        raise InvalidArgumentError.of(f"segment_ids_to_row_splits: too many elements in shape [{size}]")
    try:
        lengths = np.bincount(numbers, minlength=count)
    except MemoryError:
        raise ResourceExhaustedError.of(f"segment_ids_to_row_splits: no memory for {size} rows") from None
    return cast(np.concatenate([[0], np.cumsum(lengths)]), out_type or ids.dtype)
