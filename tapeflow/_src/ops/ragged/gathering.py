"""Elements of ragged tensors by position, row by row or by coordinates, and rows divided into parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays import constants
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.sorting import argsort
from tapeflow._src.ops.effects.assertions import assert_equal, assert_less, assert_non_negative
from tapeflow._src.ops.ragged.joining import stack
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.ops.ragged.rows import expand_dims, gather_rows
from tapeflow._src.types.dtypes import int64
from tapeflow._src.types.errors import InvalidArgumentError


def _index_tensor(indices: Any) -> Any:
    return indices if isinstance(indices, RaggedTensor) else convert_to_tensor(indices, dtype_hint=int64)


def gather(
    params: Any, indices: Any, validate_indices: Any = None, axis: Any = None, batch_dims: int = 0, name: Any = None
) -> Any:
    """Slices of `params` along `axis` at `indices`, one of which is ragged; `batch_dims` dimensions are shared."""
    indices = _index_tensor(indices)
    params = params if isinstance(params, RaggedTensor) else convert_to_tensor(params)
    batch = batch_dims + indices.shape.rank if batch_dims < 0 else batch_dims
    axis = batch if axis is None else int(axis)
    axis = axis + params.shape.rank if axis < 0 else axis
    if not batch <= axis < params.shape.rank:
        raise ValueError(f"gather: axis must be in [{batch}, {params.shape.rank}); got {axis}")
    if not isinstance(params, RaggedTensor) and not isinstance(indices, RaggedTensor):
        return primitives.GatherV2(params, indices, axis, batch)
    if batch == 0:
        return _gather_along(params, indices, axis)
    if indices.shape.rank == batch:  # one position for each row
        found = gather(params, expand_dims(indices, indices.shape.rank), axis=axis, batch_dims=batch)
        return _without_single(found, axis)
    params, indices = _with_rows(params, batch), _with_rows(indices, batch)
    if batch > 1:
        return indices.with_values(gather(params.values, indices.values, axis=axis - 1, batch_dims=batch - 1))
    if axis > 1:  # each inner row selects by the indices of its batch
        copies = gather_rows(indices, params.value_rowids())
        return params.with_values(gather(params.values, copies, axis=axis - 1, batch_dims=1))
    return _gather_in_rows(params, indices)


def _with_rows(x: Any, ragged_rank: int) -> RaggedTensor:
    return x if isinstance(x, RaggedTensor) else RaggedTensor.from_tensor(x, ragged_rank=ragged_rank)


def _without_single(x: Any, axis: int) -> Any:
    """Without a dimension in which every row has one element."""
    if not isinstance(x, RaggedTensor):
        return primitives.Squeeze(x, [axis])
    return x.values if axis == 1 else x.with_values(_without_single(x.values, axis - 1))


def _gather_along(params: Any, indices: Any, axis: int) -> Any:
    if axis == 0:
        if isinstance(indices, RaggedTensor):
            return indices.with_flat_values(_gather_along(params, indices.flat_values, 0))
        if indices.shape.rank > 1 and isinstance(params, RaggedTensor):
            indices = RaggedTensor.from_tensor(indices, ragged_rank=indices.shape.rank - 1)
            return indices.with_flat_values(gather_rows(params, indices.flat_values))
        return gather_rows(params, indices)
    params = _with_rows(params, axis)
    if axis > 1:
        return params.with_values(gather(params.values, indices, axis=axis - 1))
    count = primitives.Reshape(cast(params.nrows(), int64), [1])
    if isinstance(indices, RaggedTensor):
        copies = gather_rows(expand_dims(indices, 0), primitives.BroadcastTo(np.int64(0), count))
    else:
        sizes = primitives.ConcatV2([count, primitives.Shape(indices, int64)], 0)
        copies = primitives.BroadcastTo(indices, sizes)
    return gather(params, copies, axis=1, batch_dims=1)


def _gather_in_rows(params: RaggedTensor, indices: RaggedTensor) -> Any:
    """Elements of each row of `params` at the positions in the same row of `indices`."""
    rows: Any = indices.value_rowids()
    inner = indices.values
    while isinstance(inner, RaggedTensor):
        rows, inner = primitives.GatherV2(rows, inner.value_rowids(), 0, 0), inner.values
    positions = cast(inner, int64)
    starts = cast(primitives.GatherV2(params.row_splits, rows, 0, 0), int64)
    ends = cast(primitives.GatherV2(params.row_splits, rows + 1, 0, 0), int64)
    for _ in range(positions.shape.rank - 1):
        starts, ends = primitives.ExpandDims(starts, -1), primitives.ExpandDims(ends, -1)
    if not any(map(_core.is_symbolic, (positions, starts))):
        at = positions.numpy()
        if (at < 0).any() or (at >= (ends - starts).numpy()).any():
            raise InvalidArgumentError.of(f"gather: indices must lie in the rows of params; got {at.tolist()}")
    found = gather(params.values, starts + positions, axis=0)
    return indices.with_flat_values(found)


def gather_nd(
    params: Any, indices: Any, batch_dims: int = 0, name: str | None = None, bad_indices_policy: str = ""
) -> Any:
    """Elements or slices of `params` at the coordinates in the last dimension of `indices`."""
    if bad_indices_policy not in ("", "DEFAULT"):
        raise ValueError(
            f"gather_nd: non-default bad_indices_policy not supported for ragged gather; got {bad_indices_policy!r}"
        )
    if batch_dims:
        raise ValueError(f"gather_nd: batch_dims must be 0 for ragged tensors; got {batch_dims}")
    indices = _index_tensor(indices)
    if isinstance(indices, RaggedTensor):
        if indices.flat_values.shape.rank < 2:
            raise ValueError("gather_nd: The innermost dimension of indices may not be ragged")
        return indices.with_flat_values(gather_nd(params, indices.flat_values))
    if indices.shape.rank is None:
        raise ValueError("gather_nd: indices.rank be statically known.")
    if indices.shape.rank == 0:
        raise ValueError("gather_nd: indices.rank must be at least 1.")
    depth = indices.shape[-1]
    if depth is None:
        raise ValueError("gather_nd: indices.shape[-1] must be statically known.")
    if depth == 0:
        raise ValueError(f"gather_nd: the last dimension of indices must not be 0; got {indices.shape}")
    columns = [cast(indices[..., i], int64) for i in range(depth)]
    at, rest = columns[0], columns[1:]
    while isinstance(params, RaggedTensor) and rest:
        start = primitives.GatherV2(params.row_splits, at, 0, 0)
        end = primitives.GatherV2(params.row_splits, at + 1, 0, 0)
        if not _core.is_symbolic(rest[0]) and not _core.is_symbolic(start):
            place = rest[0].numpy()
            if (place < 0).any() or (place >= (end - start).numpy()).any():
                raise InvalidArgumentError.of(
                    f"gather_nd: indices must lie in the rows of params; got {place.tolist()}"
                )
        params, at, rest = params.values, cast(start, int64) + rest[0], rest[1:]
    if not rest:
        return gather_rows(params, at)
    return primitives.GatherNd(params, primitives.Pack([at, *rest], -1))


def dynamic_partition(data: Any, partitions: Any, num_partitions: Any, name: str | None = None) -> list[Any]:
    """The elements or rows of `data` as `num_partitions` tensors, by the numbers in `partitions`."""
    count = int(num_partitions)
    if isinstance(partitions, RaggedTensor):
        if not isinstance(data, RaggedTensor):
            data = RaggedTensor.from_tensor(convert_to_tensor(data), ragged_rank=partitions.ragged_rank)
        return list(dynamic_partition(data.values, partitions.values, count))
    partitions = convert_to_tensor(partitions)
    if not isinstance(data, RaggedTensor):
        return list(primitives.DynamicPartition(data, partitions, count))
    if partitions.shape.rank != 1:
        rows = RaggedTensor.from_tensor(partitions, ragged_rank=partitions.shape.rank - 1)
        return dynamic_partition(data, rows, count)
    places = primitives.DynamicPartition(
        np.arange(data.shape[0]) if data.shape[0] is not None else _row_numbers(data), partitions, count
    )
    return [gather_rows(data, place) for place in places]


def _row_numbers(data: RaggedTensor) -> Any:
    return constants.range(data.nrows(int64))


@public("ragged.stack_dynamic_partitions")
def stack_dynamic_partitions(data: Any, partitions: Any, num_partitions: Any, name: str | None = None) -> RaggedTensor:
    """The slices of `data` as rows, by the numbers in `partitions`.

    >>> tf.ragged.stack_dynamic_partitions([1, 2, 3], [0, 1, 0], 2).to_list()
    [[1, 3], [2]]
    """
    if not isinstance(data, RaggedTensor):
        data = convert_to_tensor(data)
    if not isinstance(partitions, RaggedTensor):
        hint = data.row_splits.dtype if isinstance(data, RaggedTensor) else None
        partitions = convert_to_tensor(partitions, dtype_hint=hint)
    rank = partitions.shape.rank
    if rank is None:
        raise ValueError("stack_dynamic_partitions: partitions must have known rank.")
    partitions.shape.assert_is_compatible_with(data.shape[:rank])
    if isinstance(data, RaggedTensor) and data.row_splits.dtype != partitions.dtype:  # int64 goes before int32
        data = data.with_row_splits_dtype(int64)
        partitions = cast(partitions, int64) if partitions.dtype.is_integer else partitions
    if rank == 0:
        data, partitions, rank = stack([data]), primitives.Pack([partitions], 0), 1
    if rank == 1:
        return _stack_partitions(data, partitions, num_partitions)
    if not isinstance(data, RaggedTensor):
        data = RaggedTensor.from_tensor(data, ragged_rank=1, row_splits_dtype=partitions.dtype)
    if not isinstance(partitions, RaggedTensor):
        partitions = RaggedTensor.from_tensor(
            partitions, ragged_rank=max(data.ragged_rank, rank - 1), row_splits_dtype=partitions.dtype
        )
    assert_equal(data.row_splits, partitions.row_splits, "data and partitions have incompatible ragged shapes")
    return stack_dynamic_partitions(data.values, partitions.values, num_partitions)


def _stack_partitions(data: Any, partitions: Any, num_partitions: Any) -> RaggedTensor:
    """The slices of `data` in the order of a vector of numbers: one sort serves any count of partitions."""
    count = cast(num_partitions, partitions.dtype)
    order = argsort(partitions, stable=True)
    rows = primitives.GatherV2(partitions, order, 0, 0)
    assert_less(rows[-1:], count, "partitions must be less than num_partitions")
    assert_non_negative(partitions, "partitions must be non-negative.")
    return RaggedTensor.from_value_rowids(gather_rows(data, order), rows, count, validate=False)
