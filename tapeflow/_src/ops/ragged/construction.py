"""`tf.ragged`: ragged tensors from lists, ranges, partitions and crossed features."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dims_of
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.ops.sparse.crosses import crossed_rows, hash_features, join_features
from tapeflow._src.types.dtypes import as_dtype, float32, float64, int32, int64
from tapeflow._src.types.errors import InvalidArgumentError


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
    <tf.Tensor: shape=(3,), dtype=int64, numpy=array([0, 2, 3])>
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
        values: Any = _core.convert_to_tensor(np.zeros((0, *dims_of(inner_shape)), np.float32), None, None, "ragged")
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
        raise InvalidArgumentError.of("ragged.range: Requires delta != 0")
    rows = [np.arange(a, b, s) for a, b, s in zip(first.tolist(), last.tolist(), step.tolist())]
    values = _core.convert_to_tensor(np.concatenate(rows) if rows else [], common, None, "range")
    return RaggedTensor(values, cast(np.cumsum([0, *(len(r) for r in rows)]), row_splits_dtype))


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
    ragged: RaggedTensor = constant(
        crossed_rows(inputs, lambda features: join_features(features, "_X_")), dtype="string", ragged_rank=1
    )
    return ragged


@public("ragged.cross_hashed")
def cross_hashed(
    inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> RaggedTensor:
    """All combinations of one feature of each input, row by row, hashed into `num_buckets` numbers.

    >>> tf.ragged.cross_hashed([tf.constant([["a"]]), tf.constant([["b"]])], num_buckets=1).to_list()
    [[0]]
    """
    rows = crossed_rows(inputs, lambda features: hash_features(features, num_buckets, hash_key))
    ragged: RaggedTensor = constant(rows, dtype=int64, ragged_rank=1)
    return ragged
