"""Functions of the standard that reduce, sort and search."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tapeflow as tf
from tapeflow._src.array_api.array import Array, in_common, index_array, tensor_of
from tapeflow._src.array_api.dtypes import DEFAULT_INT
from tapeflow._src.array_api.shaping import axes_of


def _summed_dtype(dtype: Any) -> Any:
    """The dtype of a sum: small integers are summed in the default one."""
    if not dtype.is_integer or dtype.size >= DEFAULT_INT.size:
        return dtype
    return tf.uint64 if dtype.is_unsigned else DEFAULT_INT


def _total(compute: Callable[..., Any], x: Any, axis: Any, dtype: Any, keepdims: builtins.bool, who: str) -> Array:
    tensor = tensor_of(x)
    tensor = tf.cast(tensor, dtype or _summed_dtype(tensor.dtype))
    return Array(compute(tensor, axes_of(axis, tensor.shape.rank, who), keepdims))


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: builtins.bool = False) -> Array:
    """The sum of elements along axes."""
    return _total(tf.reduce_sum, x, axis, dtype, keepdims, "sum")


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: builtins.bool = False) -> Array:
    """The product of elements along axes."""
    return _total(tf.reduce_prod, x, axis, dtype, keepdims, "prod")


def _extreme(compute: Callable[..., Any], x: Any, axis: Any, keepdims: builtins.bool, who: str) -> Array:
    tensor = tensor_of(x)
    axes = axes_of(axis, tensor.shape.rank, who)
    if builtins.any(tensor.shape[one] == 0 for one in axes):
        raise ValueError(f"{who}: there is no such element of none; got shape {tensor.shape.as_list()}")
    return Array(compute(tensor, axes, keepdims))


def max(x: Any, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    """The largest element along axes."""
    return _extreme(tf.reduce_max, x, axis, keepdims, "max")


def min(x: Any, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    """The smallest element along axes."""
    return _extreme(tf.reduce_min, x, axis, keepdims, "min")


def mean(x: Any, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    """The mean of elements along axes."""
    tensor = tensor_of(x)
    return Array(tf.reduce_mean(tensor, axes_of(axis, tensor.shape.rank, "mean"), keepdims))


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Array:
    """The variance of elements along axes; `correction` is taken off their number."""
    tensor = tensor_of(x)
    axes = axes_of(axis, tensor.shape.rank, "var")
    count = float(np.prod([tensor.shape[one] for one in axes], dtype=np.int64)) - correction
    centred = tensor - tf.reduce_mean(tensor, axes, keepdims=True)
    total = tf.reduce_sum(tf.square(centred), axes, keepdims)
    return Array(total / tf.cast(builtins.max(count, 0.0), tensor.dtype))


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: builtins.bool = False) -> Array:
    """The standard deviation of elements along axes."""
    return Array(tf.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims)._tensor))


def _cumulative(compute: Any, first: int, x: Any, axis: Any, dtype: Any, include_initial: builtins.bool) -> Array:
    tensor = tensor_of(x)
    if axis is None:
        if tensor.shape.rank != 1:
            raise ValueError("array_api: axis must be given for an array with more than one dimension")
        axis = 0
    axis = axes_of(axis, tensor.shape.rank, "array_api")[0]
    tensor = tf.cast(tensor, dtype or _summed_dtype(tensor.dtype))
    result = compute(tensor, axis)
    if include_initial:
        sizes = [1 if i == axis else n for i, n in enumerate(tensor.shape.as_list())]
        result = tf.concat([tf.fill(sizes, tf.cast(first, tensor.dtype)), result], axis)
    return Array(result)


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: builtins.bool = False
) -> Array:
    """The sums of the first elements along an axis."""
    return _cumulative(tf.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: builtins.bool = False
) -> Array:
    """The products of the first elements along an axis."""
    return _cumulative(tf.math.cumprod, 1, x, axis, dtype, include_initial)


def _as_bools(x: Any) -> Any:
    tensor = tensor_of(x)
    return tensor if tensor.dtype.is_bool else tensor != tf.cast(0, tensor.dtype)


def all(x: Any, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    """Whether all elements along axes hold."""
    tensor = _as_bools(x)
    return Array(tf.reduce_all(tensor, axes_of(axis, tensor.shape.rank, "all"), keepdims))


def any(x: Any, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    """Whether any element along axes holds."""
    tensor = _as_bools(x)
    return Array(tf.reduce_any(tensor, axes_of(axis, tensor.shape.rank, "any"), keepdims))


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: builtins.bool = False) -> Array:
    """The number of elements along axes that are not zero."""
    tensor = _as_bools(x)
    return Array(tf.reduce_sum(tf.cast(tensor, DEFAULT_INT), axes_of(axis, tensor.shape.rank, "any"), keepdims))


def _arg(compute: Callable[..., Any], x: Any, axis: int | None, keepdims: builtins.bool) -> Array:
    tensor = tensor_of(x)
    rank = tensor.shape.rank
    flat = tf.reshape(tensor, [-1]) if axis is None else tensor
    place = 0 if axis is None else axes_of(axis, rank, "argmax")[0]
    found = compute(flat, place, output_type=tf.int64)
    if keepdims:
        found = tf.reshape(found, [1] * rank) if axis is None else tf.expand_dims(found, place)
    return index_array(found)


def argmax(x: Any, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Array:
    """The number of the largest element along an axis."""
    return _arg(tf.argmax, x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: builtins.bool = False) -> Array:
    """The number of the smallest element along an axis."""
    return _arg(tf.argmin, x, axis, keepdims)


def nonzero(x: Any, /) -> tuple[Array, ...]:
    """The places of elements that are not zero, an array for each dimension."""
    tensor = _as_bools(x)
    if tensor.shape.rank == 0:
        raise ValueError("nonzero: an array without dimensions has no places")
    places = tf.where(tensor)
    return tuple(index_array(places[:, i]) for i in range(tensor.shape.rank))


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Array:
    """The places at which elements of x2 keep x1 sorted."""
    ordered, values = in_common(x1, x2)
    if sorter is not None:
        ordered = tf.gather(ordered, tensor_of(sorter))
    found = tf.searchsorted(ordered, tf.reshape(values, [-1]), side=side)
    return index_array(tf.reshape(found, values.shape))


# ---- sorting


def argsort(x: Any, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Array:
    """The order that sorts elements along an axis."""
    tensor = tensor_of(x)
    axis = axes_of(axis, tensor.shape.rank, "argsort")[0]
    if not descending:
        return index_array(tf.argsort(tensor, axis, "ASCENDING", stable=True))
    # Equal elements keep their order: the array is reversed before and after.
    last = tensor.shape[axis] - 1
    order = tf.argsort(tf.reverse(tensor, [axis]), axis, "ASCENDING", stable=True)
    return index_array(last - tf.reverse(order, [axis]))


def sort(x: Any, /, *, axis: int = -1, descending: builtins.bool = False, stable: builtins.bool = True) -> Array:
    """The elements in order along an axis."""
    tensor = tensor_of(x)
    axis = axes_of(axis, tensor.shape.rank, "sort")[0]
    return Array(tf.sort(tensor, axis, "DESCENDING" if descending else "ASCENDING"))


# ---- sets


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: Array
    inverse_indices: Array


def unique_all(x: Any, /) -> UniqueAll:
    """Each value once, with its first place, the number of the value of each element, and its count."""
    tensor = tensor_of(x)
    _, first, inverse, counts = np.unique(
        tensor.numpy(), return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    values = tf.gather(tf.reshape(tensor, [-1]), first)
    parts = [index_array(tf.constant(part)) for part in (first, inverse.reshape(tensor.shape), counts)]
    return UniqueAll(Array(values), *parts)


def unique_counts(x: Any, /) -> UniqueCounts:
    """Each value once, and its count."""
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """Each value once, and the number of the value of each element."""
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: Any, /) -> Array:
    """Each value once."""
    return unique_all(x).values


def isin(x1: Any, x2: Any, /, *, invert: builtins.bool = False) -> Array:
    """Whether each element of x1 is one of x2."""
    values, among = in_common(x1, x2)
    found = tf.reduce_any(tf.expand_dims(values, -1) == tf.reshape(among, [-1]), -1)
    return Array(tf.logical_not(found) if invert else found)
