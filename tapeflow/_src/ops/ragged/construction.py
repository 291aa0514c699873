"""`tf.ragged`: ragged tensors from lists, ranges, partitions and crossed features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dims_of
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.ops.sparse.coordinates import is_sparse
from tapeflow._src.ops.sparse.crosses import check_crossed, crossed_rows, hash_features, join_features
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import as_dtype, float32, float64, int32, int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor, SparseTensorValue


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

    def make(values: Any, shape: Any) -> Any:
        if shape is not None and not isinstance(values, np.ndarray) and not len(values if shape else [values]):
            kind = as_dtype(dtype or float32)
            return convert_to_tensor(np.zeros(shape, object if kind.name == "string" else kind.as_numpy_dtype), kind)
        tensor = convert_to_tensor(values, dtype=dtype)
        return tensor if shape is None else primitives.Reshape(tensor, list(shape))

    if isinstance(pylist, RaggedTensor):
        raise TypeError("pylist may not be a RaggedTensor or RaggedTensorValue.")
    values, splits = nested_values(pylist, ragged_rank, inner_shape, make)
    for at in reversed(splits):
        values = RaggedTensor(values, cast(at, row_splits_dtype))
    return values


def nested_values(
    pylist: Any, ragged_rank: int | None, inner_shape: Any, make: Callable[[Any, Any], Any]
) -> tuple[Any, list[np.ndarray]]:
    """The innermost values of nested lists, which `make(values, shape)` makes, and the row splits, outermost first."""
    inner = None if inner_shape is None else tuple(dims_of(inner_shape))
    if _is_scalar(pylist):
        if ragged_rank:
            raise ValueError(f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank}")
        if inner:
            raise ValueError(f"Invalid pylist={pylist!r}: incompatible with dim(inner_shape)={len(inner)}")
        return make(pylist, None if inner is None else ()), []
    if ragged_rank is not None and ragged_rank < 0:
        raise ValueError(f"Invalid ragged_rank={ragged_rank}: must be nonnegative")
    scalar_depth, depth = _depths(pylist)
    if scalar_depth is not None:
        if depth > scalar_depth:
            raise ValueError(f"Invalid pylist={pylist}: empty list nesting is greater than scalar value nesting")
        if ragged_rank is not None and depth < ragged_rank:
            raise ValueError(f"Invalid pylist={pylist}, max depth smaller than ragged_rank={ragged_rank}")
    if inner is not None and ragged_rank is not None:
        expected = ragged_rank + len(inner) + 1
        if expected != scalar_depth if scalar_depth is not None else expected < depth:
            raise ValueError(
                f"Invalid pylist={pylist}: incompatible with ragged_rank={ragged_rank} and "
                f"dim(inner_shape)={len(inner)}"
            )
    if (ragged_rank is None and depth - len(inner or ()) < 2) or ragged_rank == 0:
        return make(pylist, inner), []
    if ragged_rank is None:
        ragged_rank = (scalar_depth or depth) - 1 - len(inner or ())
        inner = inner or ()
    if scalar_depth is not None and scalar_depth <= ragged_rank:
        raise ValueError(
            f"Invalid pylist={pylist}: pylist has scalar values depth {scalar_depth}, but ragged_rank={ragged_rank} "
            f"requires scalar value depth greater than {ragged_rank}"
        )
    if inner is None:
        inner = _inner_shape(pylist, ragged_rank)
    splits, values = [], pylist
    for _ in range(ragged_rank):
        splits.append(np.cumsum([0, *(len(row) for row in values)]))
        values = [item for row in values for item in row]
    return make(np.asarray(values) if _are_arrays(values) else values, (len(values), *inner)), splits


def _are_arrays(values: Any) -> bool:
    return bool(len(values)) and all(isinstance(value, np.ndarray) for value in values)


def _is_scalar(part: Any) -> bool:
    return not isinstance(part, list | tuple) and np.ndim(part) == 0


def _depths(part: Any) -> tuple[int | None, int]:
    """How deep the scalars are nested, None without one, and how deep the lists are."""
    if _is_scalar(part):
        return 0, 0
    scalars, depth = None, 1
    for child in part:
        below, deepest = _depths(child)
        if below is not None:
            if scalars is not None and scalars != below + 1:
                raise ValueError("all scalar values must have the same nesting depth")
            scalars = below + 1
        depth = max(depth, deepest + 1)
    return scalars, depth


def _inner_shape(pylist: Any, ragged_rank: int) -> tuple[int, ...]:
    """The shape of the values below `ragged_rank` ragged dimensions."""

    def shape_of(item: Any) -> tuple[int, ...]:
        if _is_scalar(item):
            return ()
        return (len(item), *shape_of(item[0])) if len(item) else (0,)

    def check(item: Any, shape: tuple[int, ...]) -> None:
        scalar = _is_scalar(item)
        if scalar != (shape == ()):
            raise ValueError("inner values have inconsistent shape")
        if not scalar:
            if len(item) != shape[0]:
                raise ValueError("inner values have inconsistent shape")
            for child in item:
                check(child, shape[1:])

    values = pylist
    for _ in range(ragged_rank):
        values = [item for row in values for item in row]
    shape = (len(values), *shape_of(values[0])) if len(values) else (0,)
    check(values, shape)
    return shape[1:]


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
    sizes = {tuple(p.shape.as_list()) for p in parts if p.shape.rank}
    if len(sizes) > 1:
        raise InvalidArgumentError.of(
            f"ragged.range: starts, limits, and deltas must have the same shape; got {sorted(sizes)}"
        )
    first, last, step = np.broadcast_arrays(*(np.atleast_1d(p.numpy()) for p in parts))
    if (step == 0).any():
        raise InvalidArgumentError.of("ragged.range: Requires delta != 0")
    rows = [np.arange(a, b, s) for a, b, s in zip(first.tolist(), last.tolist(), step.tolist())]
    values = _core.convert_to_tensor(np.concatenate(rows) if rows else [], common, None, "range")
    return RaggedTensor(values, cast(np.cumsum([0, *(len(r) for r in rows)]), row_splits_dtype))


@public("ragged.cross")
def cross(inputs: Any, name: str | None = None) -> RaggedTensor:
    """All combinations of one feature of each input, row by row, as text.

    >>> tf.ragged.cross([tf.constant([["a"]]), tf.constant([["b"]])]).to_list()
    [[b'a_X_b']]
    """
    return _crossed(inputs, lambda features: join_features(features, "_X_"), "string")


@public("ragged.cross_hashed")
def cross_hashed(
    inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> RaggedTensor:
    """All combinations of one feature of each input, row by row, hashed into `num_buckets` numbers.

    >>> tf.ragged.cross_hashed([tf.constant([["a"]]), tf.constant([["b"]])], num_buckets=1).to_list()
    [[0]]
    """
    return _crossed(inputs, lambda features: hash_features(features, num_buckets, hash_key), "int64")


def _crossed(inputs: Any, join: Callable[[list[Any]], Any], dtype: str) -> RaggedTensor:
    """`join` of all combinations of features, while tracing as one node."""
    if not isinstance(inputs, list | tuple):
        raise TypeError(f"cross: Inputs must be a list; got {type(inputs).__name__}")
    given = [_as_features(x) for x in inputs]
    counts = {count for x in given if (count := x.shape[0] if x.shape.rank else None) is not None}
    if len(counts) > 1:
        raise ValueError(f"cross: inputs must all have the same batch dimension size; got {sorted(counts)}")

    def run(*tensors: Any) -> list[Any]:
        rows = crossed_rows(nest.pack_sequence_as(given, list(tensors), expand_composites=True), join)
        flat = np.asarray([value for row in rows for value in row], object if dtype == "string" else np.int64)
        return [convert_to_tensor(flat, dtype), convert_to_tensor(np.cumsum([0, *map(len, rows)], dtype=np.int64))]

    values, splits = host_call(run, nest.flatten(given, expand_composites=True), [(dtype, [None]), ("int64", [None])])
    return RaggedTensor.from_row_splits(values, splits, validate=False)


def _as_features(x: Any) -> Any:
    """An input of `cross` as a tensor of its kind."""
    if isinstance(x, SparseTensorValue):
        x = SparseTensor.from_value(x)
    elif hasattr(x, "nested_row_splits") and not isinstance(x, RaggedTensor):  # the arrays that a session gives
        x = RaggedTensor.from_nested_row_splits(x.flat_values, x.nested_row_splits, validate=False)
    elif not is_sparse(x) and not isinstance(x, RaggedTensor):
        x = convert_to_tensor(x)
    check_crossed(x)
    return x
