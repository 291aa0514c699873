"""Functions of the standard that move elements: shapes, axes, repetitions, indices."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

import tapeflow as tf
from tapeflow._src.array_api.array import Array, in_common, tensor_of


def axes_of(axis: Any, rank: int, who: str) -> list[builtins.int]:
    """Axes as numbers from 0 on; all of them for None."""
    if axis is None:
        return list(range(rank))
    axes = [axis] if isinstance(axis, builtins.int) else list(axis)
    for one in axes:
        if not -rank <= one < rank:
            raise IndexError(f"{who}: axis {one} is out of bounds for {rank} dimensions")
    found = [one % rank for one in axes]
    if len(set(found)) != len(found):
        raise ValueError(f"{who}: an axis is named twice; got {axis}")
    return found


def broadcast_to(x: Any, /, shape: Any) -> Array:
    """The array repeated to a shape."""
    return Array(tf.broadcast_to(tensor_of(x), list(shape)))


def broadcast_shapes(*shapes: Any) -> tuple[Any, ...]:
    """The shape to which shapes broadcast."""
    return tuple(np.broadcast_shapes(*shapes))


def broadcast_arrays(*arrays: Any) -> tuple[Array, ...]:
    """Arrays repeated to the shape that they have in common."""
    tensors = [tensor_of(array) for array in arrays]
    shape = list(np.broadcast_shapes(*[tuple(tensor.shape.as_list()) for tensor in tensors]))
    return tuple(Array(tf.broadcast_to(tensor, shape)) for tensor in tensors)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Array:
    """Arrays one after the other along an axis; flat ones for None."""
    tensors = in_common(*arrays)
    if axis is None:
        return Array(tf.concat([tf.reshape(tensor, [-1]) for tensor in tensors], 0))
    return Array(tf.concat(tensors, axes_of(axis, tensors[0].shape.rank, "concat")[0]))


def stack(arrays: Any, /, *, axis: int = 0) -> Array:
    """Arrays side by side along a new axis."""
    return Array(tf.stack(in_common(*arrays), axis))


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices along an axis."""
    return tuple(Array(tensor) for tensor in tf.unstack(tensor_of(x), axis=axis))


def expand_dims(x: Any, /, axis: Any = 0) -> Array:
    """The array with axes of size 1 added."""
    tensor = tensor_of(x)
    axes = [axis] if isinstance(axis, builtins.int) else list(axis)
    rank = tensor.shape.rank + len(axes)
    sizes = iter(tensor.shape.as_list())
    places = axes_of(axes, rank, "expand_dims")
    return Array(tf.reshape(tensor, [1 if i in places else next(sizes) for i in range(rank)]))


def squeeze(x: Any, /, axis: Any) -> Array:
    """The array without axes of size 1."""
    tensor = tensor_of(x)
    axes = axes_of(axis, tensor.shape.rank, "squeeze")
    wrong = [one for one in axes if tensor.shape[one] != 1]
    if wrong:
        raise ValueError(f"squeeze: axes must have size 1; got shape {tensor.shape.as_list()} and axis {axis}")
    return Array(tf.reshape(tensor, [n for i, n in enumerate(tensor.shape.as_list()) if i not in axes]))


def flip(x: Any, /, *, axis: Any = None) -> Array:
    """The array with axes reversed."""
    tensor = tensor_of(x)
    return Array(tf.reverse(tensor, axes_of(axis, tensor.shape.rank, "flip")))


def permute_dims(x: Any, /, axes: Any) -> Array:
    """The array with its axes in another order."""
    tensor = tensor_of(x)
    return Array(tf.transpose(tensor, axes_of(tuple(axes), tensor.shape.rank, "permute_dims")))


def moveaxis(x: Any, source: Any, destination: Any, /) -> Array:
    """The array with axes at other places."""
    tensor = tensor_of(x)
    rank = tensor.shape.rank
    sources, places = axes_of(source, rank, "moveaxis"), axes_of(destination, rank, "moveaxis")
    if len(sources) != len(places):
        raise ValueError(f"moveaxis: as many places as axes are needed; got {source} and {destination}")
    order = [one for one in range(rank) if one not in sources]
    for place, one in sorted(zip(places, sources)):
        order.insert(place, one)
    return Array(tf.transpose(tensor, order))


def reshape(x: Any, /, shape: Any, *, copy: builtins.bool | None = None) -> Array:
    """The elements in another shape."""
    return Array(tf.reshape(tensor_of(x), list(shape)))


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Array:
    """The elements moved along axes; those that leave come in at the other end."""
    tensor = tensor_of(x)
    if axis is None:
        shifts = shift if isinstance(shift, builtins.int) else sum(shift)
        return Array(tf.reshape(tf.roll(tf.reshape(tensor, [-1]), shifts, 0), tensor.shape))
    axes = [axis] if isinstance(axis, builtins.int) else list(axis)
    shifts = [shift] * len(axes) if isinstance(shift, builtins.int) else list(shift)
    return Array(tf.roll(tensor, shifts, [one % tensor.shape.rank for one in axes]))


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Array:
    """Each element, or slice along an axis, several times."""
    tensor = tensor_of(x)
    counts = repeats if isinstance(repeats, builtins.int) else tensor_of(repeats)
    return Array(tf.repeat(tensor, counts, axis))


def tile(x: Any, repetitions: Any, /) -> Array:
    """The array several times along each axis."""
    tensor = tensor_of(x)
    counts = list(repetitions)
    rank = builtins.max(len(counts), tensor.shape.rank)
    counts = [1] * (rank - len(counts)) + counts
    return Array(tf.tile(tf.reshape(tensor, [1] * (rank - tensor.shape.rank) + tensor.shape.as_list()), counts))


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Array:
    """The slices with given numbers along an axis."""
    tensor, places = tensor_of(x), tensor_of(indices)
    if axis is None and tensor.shape.rank != 1:
        raise ValueError("take: axis must be given for an array with more than one dimension")
    axis = 0 if axis is None else axis
    size = tensor.shape[axis]
    places = tf.cast(places, tf.int64)
    return Array(tf.gather(tensor, tf.where(places < 0, places + size, places), axis=axis))


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Array:
    """The elements with given numbers along an axis, for each place of the others."""
    return Array(tf.experimental.numpy.take_along_axis(tensor_of(x), tf.cast(tensor_of(indices), tf.int64), axis))


def where(condition: Any, x1: Any, x2: Any, /) -> Array:
    """Elements of x1 where the condition holds, of x2 elsewhere."""
    return Array(tf.where(tensor_of(condition), *in_common(x1, x2)))


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Array:
    """The differences of neighbours along an axis, `n` times."""
    given: Sequence[Any] = [part for part in (prepend, x, append) if part is not None]
    tensor = concat(given, axis=axis)._tensor if len(given) > 1 else tensor_of(x)
    axis = axes_of(axis, tensor.shape.rank, "diff")[0]
    for _ in range(n):
        later = tuple(slice(1, None) if i == axis else slice(None) for i in range(tensor.shape.rank))
        earlier = tuple(slice(None, -1) if i == axis else slice(None) for i in range(tensor.shape.rank))
        tensor = tensor[later] - tensor[earlier]
    return Array(tensor)
