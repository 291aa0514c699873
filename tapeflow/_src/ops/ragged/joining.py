"""`tf.ragged`: joining ragged tensors, and choosing or mapping their values."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.effects.assertions import assert_equal
from tapeflow._src.ops.ragged.construction import constant
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.ops.ragged.row_splits import spans, splits_from_lengths
from tapeflow._src.ops.ragged.rows import dynamic_row_count, expand_dims, gather_rows
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import int32, int64
from tapeflow._src.types.errors import InvalidArgumentError


@public("ragged.map_flat_values")
def map_flat_values(op: Any, *args: Any, **kwargs: Any) -> Any:
    """`op` applied to the innermost values; all ragged arguments must have the same rows.

    >>> tf.ragged.map_flat_values(tf.square, tf.ragged.constant([[1, 2], [3]])).to_list()
    [[1, 4], [9]]
    """
    found = [a for a in nest.flatten([list(args), kwargs]) if isinstance(a, RaggedTensor)]
    if not found:
        return op(*args, **kwargs)
    for other in found[1:]:
        if len(other.nested_row_splits) != len(found[0].nested_row_splits):
            raise ValueError(
                "map_flat_values: All ragged inputs must have the same ragged_rank. Got "
                f"{found[0].ragged_rank} and {other.ragged_rank}"
            )
        same = len(other.nested_row_splits) == len(found[0].nested_row_splits) and all(
            np.array_equal(a.numpy(), b.numpy()) for a, b in zip(other.nested_row_splits, found[0].nested_row_splits)
        )
        if not same:
            sizes = {a.flat_values.shape[0] for a in (found[0], other)}
            if len(sizes - {None}) > 1:
                raise ValueError(
                    "map_flat_values: Input RaggedTensors' flat_values must all have the same outer-dimension size.  "
                    f"Got sizes: {sizes}"
                )
            raise InvalidArgumentError.of(
                "map_flat_values: Inputs' row partitions have incompatible rows; all must have the same row splits"
            )

    def inner(value: Any) -> Any:
        if isinstance(value, RaggedTensor):
            return value.flat_values
        if isinstance(value, list | tuple):
            return type(value)(inner(v) for v in value)
        return value

    result = op(*(inner(a) for a in args), **{key: inner(v) for key, v in kwargs.items()})
    expected, given = found[0].flat_values.shape[:1], convert_to_tensor(result).shape
    if given.rank == 0 or not expected.is_compatible_with(given[:1]):
        raise ValueError(
            "tf.ragged.map_flat_values requires that the output of `op` have the same outer-dimension size as "
            f"flat_values of any ragged inputs. (output shape: {given}; expected outer dimension size: {expected})"
        )
    return _rows_known_best(found).with_flat_values(result)


def _rows_known_best(found: list[RaggedTensor]) -> RaggedTensor:
    """One of some tensors with the same rows: the one of which most dimensions are known to be uniform."""

    def uniform(x: Any) -> int:
        return (x.uniform_row_length is not None) + uniform(x.values) if isinstance(x, RaggedTensor) else 0

    return max(found, key=uniform)


@public("ragged.boolean_mask")
def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """The elements whose place in `mask` is true, in their rows.

    >>> tf.ragged.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]]).to_list()
    [[1], [3, 4]]
    """
    if isinstance(mask, list) and any(isinstance(m, list) for m in mask):
        mask = constant(mask, dtype="bool")
    if isinstance(mask, RaggedTensor):
        if mask.dtype.name != "bool":
            raise ValueError(
                f"ragged.boolean_mask: Tensor conversion requested dtype bool for RaggedTensor with dtype "
                f"{mask.dtype.name}"
            )
    else:
        mask = convert_to_tensor(mask, "bool")
        if mask.shape.rank == 0:
            raise ValueError("ragged.boolean_mask: mask cannot be scalar.")
        if mask.shape.rank == 1:
            data = data if isinstance(data, RaggedTensor) else convert_to_tensor(data)
            data.shape[:1].assert_is_compatible_with(mask.shape)
            places = primitives.Squeeze(primitives.Where(mask), [1])
            return gather_rows(data, places)
        mask = RaggedTensor.from_tensor(mask, ragged_rank=mask.shape.rank - 1)
    if not isinstance(data, RaggedTensor):
        data = constant(data) if isinstance(data, list) else convert_to_tensor(data)
    if not isinstance(data, RaggedTensor):
        data = RaggedTensor.from_tensor(data, ragged_rank=mask.ragged_rank)
    if not data.shape[: mask.shape.rank].is_compatible_with(mask.shape):
        raise ValueError(f"ragged.boolean_mask: Shapes {data.shape} and {mask.shape} are incompatible")
    mask = _rows_down_to(mask, mask.shape.rank - 1)
    data = _rows_down_to(data, mask.ragged_rank)
    assert_equal(data.row_splits, mask.row_splits, "ragged.boolean_mask: Inputs must have identical ragged splits")
    inner = boolean_mask(data.values, mask.values)
    if isinstance(mask.values, RaggedTensor):
        return RaggedTensor(inner, data.row_splits)
    rows = data.nrows()
    kept = primitives.UnsortedSegmentSum(
        cast(mask.values, data.row_splits.dtype), data.value_rowids(), rows if _core.is_symbolic(rows) else int(rows)
    )
    return RaggedTensor(inner, splits_from_lengths(kept))


def _rows_down_to(x: RaggedTensor, ragged_rank: int) -> RaggedTensor:
    """The same tensor with so many ragged dimensions, the innermost of them of equal lengths."""
    missing = ragged_rank - x.ragged_rank
    return x.with_flat_values(RaggedTensor.from_tensor(x.flat_values, ragged_rank=missing)) if missing > 0 else x


# ---- joining


def _as_ragged(x: Any) -> RaggedTensor:
    if isinstance(x, RaggedTensor):
        return x
    tensor = convert_to_tensor(x)
    return RaggedTensor.from_tensor(tensor)


def concat(values: Any, axis: Any, name: str = "concat") -> Any:
    """Ragged tensors joined along `axis`; of one that stands in no list, itself."""
    if isinstance(values, RaggedTensor):
        return values
    parts = [x if isinstance(x, RaggedTensor) else convert_to_tensor(x) for x in values]
    if not parts:
        raise ValueError("concat: rt_inputs may not be empty.")
    rank = next((x.shape.rank for x in parts if x.shape.rank is not None), None)
    for part in parts[1:]:
        if None not in (rank, part.shape.rank) and part.shape.rank != rank:
            raise ValueError(f"concat: Shape {part.shape} must have rank {rank}")
    if isinstance(axis, str):
        raise TypeError(f"concat: axis must be an int; got {axis!r}")
    axis = int(axis)
    if rank is None and axis < 0:
        raise ValueError(f"concat: axis={axis} may only be negative if ndims is statically known.")
    if rank is None:
        raise ValueError("concat: at least one of the values must have a known rank")
    if not -rank <= axis < rank:
        raise ValueError(f"concat: axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
    axis %= rank
    if rank == 1:
        return primitives.ConcatV2(parts, 0)  # nothing to be ragged
    ragged = [_as_ragged(x) for x in parts]
    if axis == 0:
        rows = [x.values for x in ragged]
        inner = concat(rows, 0) if any(isinstance(r, RaggedTensor) for r in rows) else primitives.ConcatV2(rows, 0)
        return RaggedTensor(inner, splits_from_lengths(primitives.ConcatV2([x.row_lengths() for x in ragged], 0)))
    counts = {x.row_splits.shape[0] for x in ragged} - {None}
    if len(counts) > 1:
        raise InvalidArgumentError.of(
            f"concat: Input tensors have incompatible shapes: {[str(x.shape) for x in ragged]}"
        )
    _check_row_counts(ragged)
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
    order = spans(
        primitives.Reshape(primitives.Pack(starts, 1), [-1]),
        primitives.Reshape(primitives.Pack([cast(x.row_lengths(), int64) for x in ragged], 1), [-1]),
    )
    picked = [gather_rows(x.values, spans(x.row_splits[:1], x.row_splits[-1:])) for x in ragged]
    lengths = ragged[0].row_lengths()
    for x in ragged[1:]:
        lengths = lengths + cast(x.row_lengths(), lengths.dtype)
    if any(isinstance(p, RaggedTensor) for p in picked):
        return RaggedTensor(gather_rows(concat(picked, 0), order), splits_from_lengths(lengths))
    joined = primitives.ConcatV2(picked, 0)
    wide = primitives.GatherV2(primitives.ExpandDims(joined, 0), order, 1, 0)
    return RaggedTensor(primitives.Squeeze(wide, [0]), splits_from_lengths(lengths))


def _check_row_counts(parts: list[RaggedTensor]) -> None:
    """Raises unless all have as many rows as the first; while tracing, when the graph runs."""
    for i, x in enumerate(parts[1:], 1):
        message = f"concat: Input tensors at index 0 (=x) and {i} (=y) have incompatible shapes."
        assert_equal(parts[0].nrows(int64), x.nrows(int64), message)


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
        raise ValueError("ragged.stack: rt_inputs may not be empty.")
    if not isinstance(axis, int):
        raise TypeError(f"ragged.stack: axis must be an int; got {axis!r}")
    rank = parts[0].shape.rank
    axis = axis if axis >= 0 else axis + rank + 1
    dtype = next((x.row_splits.dtype for x in parts if isinstance(x, RaggedTensor)), int32 if rank == 1 else int64)
    if rank == 0:
        return primitives.Pack(parts, 0)
    if axis == 0:
        lengths = primitives.Pack([cast(dynamic_row_count(x), dtype) for x in parts], 0)
        if rank == 1:
            return RaggedTensor(primitives.ConcatV2(parts, 0), splits_from_lengths(lengths))
        return RaggedTensor(concat(parts, 0), splits_from_lengths(lengths))
    return concat([expand_dims(x, axis) for x in parts], axis)
