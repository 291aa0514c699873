"""`tf.sets`: the last dimension of a tensor as a set of elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.sparse.coordinates import is_sparse
from tapeflow._src.types.dtypes import int8, int16, int32, int64, string, uint8, uint16
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor

_KINDS = (int8, int16, int32, int64, uint8, uint16, string)


def _groups(x: Any, who: str, validate: bool) -> tuple[list[int], dict[tuple[int, ...], set[Any]], Any]:
    """The outer shape, the set at each outer position, and the dtype."""
    rank = x.dense_shape.shape[0] if is_sparse(x) else convert_to_tensor(x).shape.rank
    if rank is not None and rank < 2:
        raise InvalidArgumentError.of(f"{who}: sets are the rows of a tensor; got a shape that has rank {rank} < 2")
    if is_sparse(x):
        sizes = x.dense_shape.numpy().tolist()
        dims = sizes[:-1]
        groups: dict[tuple[int, ...], set[Any]] = {}
        places = x.indices.numpy().tolist()
        for place in places:
            if not all(0 <= at < size for at, size in zip(place, sizes)):
                raise InvalidArgumentError.of(f"{who}: Index out of range: {place} in a set of shape {sizes}")
        if validate and places != sorted(places):
            raise InvalidArgumentError.of(f"{who}: the indices are out of order; tf.sparse.reorder puts them in order")
        for place, value in zip(places, x.values.numpy().tolist()):
            groups.setdefault(tuple(place[:-1]), set()).add(value)
        return dims, groups, x.values.dtype
    tensor = convert_to_tensor(x)
    values = np.asarray(tensor.numpy())
    dims = list(values.shape[:-1])
    return dims, {place: set(values[place].tolist()) for place in np.ndindex(*dims)}, tensor.dtype


def _combine(
    a: Any, b: Any, operation: Callable[[set[Any], set[Any]], set[Any]], who: str, validate: bool
) -> SparseTensor:
    dims, first, dtype = _groups(a, who, validate)
    if dtype not in _KINDS:
        raise TypeError(f"{who}: 'a' has invalid dtype `{dtype!r}` not in supported dtypes: `{list(_KINDS)}`.")
    other_dims, second, other_dtype = _groups(b, who, validate)
    if dims != other_dims:
        raise InvalidArgumentError.of(f"{who}: all dimensions but the last must be equal; got {dims} and {other_dims}")
    if dtype != other_dtype:
        raise TypeError(f"{who}: Set operations require the same dtype; got {dtype.name} and {other_dtype.name}")
    indices, values, longest = [], [], 0
    for place in np.ndindex(*dims):
        members = sorted(operation(first.get(place, set()), second.get(place, set())))
        longest = max(longest, len(members))
        for i, member in enumerate(members):
            indices.append([*place, i])
            values.append(member)
    return SparseTensor(
        np.asarray(indices, np.int64).reshape(-1, len(dims) + 1),
        _core.convert_to_tensor(values, dtype, None, who),
        [*dims, longest],
    )


@public("sets.intersection")
def intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements that are in both sets.

    >>> tf.sets.intersection([[1, 2]], [[2, 3]]).values
    <tf.Tensor: shape=(1,), dtype=int32, numpy=array([2], dtype=int32)>
    """
    return _combine(a, b, lambda x, y: x & y, "sets.intersection", validate_indices)


@public("sets.union")
def union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements that are in either set.

    >>> tf.sets.union([[1, 2]], [[2, 3]]).values
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([1, 2, 3], dtype=int32)>
    """
    return _combine(a, b, lambda x, y: x | y, "sets.union", validate_indices)


@public("sets.difference")
def difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """The elements of `a` that are not in `b`; the other way round if `aminusb` is False.

    >>> tf.sets.difference([[1, 2]], [[2, 3]]).values
    <tf.Tensor: shape=(1,), dtype=int32, numpy=array([1], dtype=int32)>
    """
    first, second = (a, b) if aminusb else (b, a)
    return _combine(first, second, lambda x, y: x - y, "sets.difference", validate_indices)


@public("sets.size")
def size(a: Any, validate_indices: bool = True) -> Tensor:
    """The number of different elements of each set of a SparseTensor.

    >>> tf.sets.size(tf.sparse.from_dense([[1, 1, 2]]))
    <tf.Tensor: shape=(1,), dtype=int32, numpy=array([2], dtype=int32)>
    """
    if not is_sparse(a):
        raise TypeError(f"Expected `SparseTensor`, got {a!r}.")
    dims, groups, _ = _groups(a, "sets.size", validate_indices)
    counts = np.zeros(dims, np.int32)
    for place, members in groups.items():
        counts[place] = len(members)
    return _core.convert_to_tensor(counts, int32, None, "sets.size")
