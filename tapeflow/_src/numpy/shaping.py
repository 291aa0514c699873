"""`tf.experimental.numpy`: turning, joining, splitting and repeating."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.numpy.arrays import concatenate
from tapeflow._src.numpy.promotion import axis_in_rank, document, tensor_of
from tapeflow._src.ops.arrays import padding, shaping, splitting
from tapeflow._src.ops.arrays.constants import dims_of, dynamic_dims, is_open

# ---- turning


@public("experimental.numpy.moveaxis")
def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    """Axes moved to other places; the others keep their order.

    >>> tf.experimental.numpy.moveaxis([[[1, 2]]], 2, 0).shape
    TensorShape([2, 1, 1])
    """
    x = tensor_of(a)
    rank = x.shape.rank
    start = [axis_in_rank(s, rank, "moveaxis") for s in dims_of(source)]
    end = [axis_in_rank(d, rank, "moveaxis") for d in dims_of(destination)]
    if len(start) != len(end) or len({*start}) != len(start) or len({*end}) != len(end):
        raise ValueError(
            f"moveaxis: source and destination must be as many different axes; got {source}, {destination}"
        )
    order = [axis for axis in range(rank) if axis not in start]
    for place, axis in sorted(zip(end, start)):
        order.insert(place, axis)
    return primitives.Transpose(x, order)


@public("experimental.numpy.swapaxes")
def swapaxes(a: Any, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged.

    >>> tf.experimental.numpy.swapaxes([[1, 2]], 0, 1)
    <tf.Tensor: shape=(2, 1), dtype=int64, numpy=
    array([[1],
           [2]])>
    """
    x = tensor_of(a)
    first, second = axis_in_rank(axis1, x.shape.rank, "swapaxes"), axis_in_rank(axis2, x.shape.rank, "swapaxes")
    order = [*range(x.shape.rank)]
    order[first], order[second] = second, first
    return primitives.Transpose(x, order)


@public("experimental.numpy.flip")
def flip(m: Any, axis: Any = None) -> Tensor:
    """The elements in reverse along `axis`, or along all.

    >>> tf.experimental.numpy.flip([1, 2, 3])
    <tf.Tensor: shape=(3,), dtype=int64, numpy=array([3, 2, 1])>
    """
    x = tensor_of(m)
    axes = range(x.shape.rank) if axis is None else [axis_in_rank(a, x.shape.rank, "flip") for a in dims_of(axis)]
    return primitives.ReverseV2(x, [*axes])


@public("experimental.numpy.flipud")
def flipud(m: Any) -> Tensor:
    """The rows in reverse.

    >>> tf.experimental.numpy.flipud([[1], [2]])
    <tf.Tensor: shape=(2, 1), dtype=int64, numpy=
    array([[2],
           [1]])>
    """
    return flip(m, 0)


@public("experimental.numpy.fliplr")
def fliplr(m: Any) -> Tensor:
    """The columns in reverse.

    >>> tf.experimental.numpy.fliplr([[1, 2]])
    <tf.Tensor: shape=(1, 2), dtype=int64, numpy=array([[2, 1]])>
    """
    return flip(m, 1)


@public("experimental.numpy.rot90")
def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    """The plane of two axes turned by 90 degrees, `k` times.

    >>> tf.experimental.numpy.rot90([[1, 2], [3, 4]])
    <tf.Tensor: shape=(2, 2), dtype=int64, numpy=
    array([[2, 4],
           [1, 3]])>
    """
    x = tensor_of(m)
    first, second = (axis_in_rank(a, x.shape.rank, "rot90") for a in axes)
    if first == second:
        raise ValueError("rot90: the axes must differ.")
    turns = k % 4
    if turns == 2:
        return flip(x, [first, second])
    if turns == 1:
        return swapaxes(flip(x, second), first, second)
    return flip(swapaxes(x, first, second), second) if turns else x


@public("experimental.numpy.roll")
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """The elements moved on along `axis`, the last to the front; of all in a row if `axis` is None.

    >>> tf.experimental.numpy.roll([1, 2, 3], 1)
    <tf.Tensor: shape=(3,), dtype=int64, numpy=array([3, 1, 2])>
    """
    x = tensor_of(a)
    if axis is not None:
        return shaping.roll(x, shift, axis)
    return primitives.Reshape(shaping.roll(primitives.Reshape(x, [-1]), shift, 0), dynamic_dims(x))


# ---- joining and splitting


def _at_least(rank: int) -> Callable[..., Any]:
    def raised(value: Any) -> Any:
        x = tensor_of(value)
        while x.shape.rank < rank:  # NumPy's third dimension goes behind two that exist
            x = primitives.ExpandDims(x, -1 if x.shape.rank == 2 else 0)
        return x

    def function(*arys: Any) -> Any:
        results = [raised(a) for a in arys]
        return results[0] if len(results) == 1 else results

    return function


atleast_1d, atleast_2d, atleast_3d = (_at_least(rank) for rank in (1, 2, 3))
for _rank, _function, _example in (
    (1, atleast_1d, "atleast_1d(1) = [1]"),
    (2, atleast_2d, "atleast_2d([1, 2]) = [[1, 2]]"),
    (3, atleast_3d, "atleast_3d([[1, 2]]) = [[[1], [2]]]"),
):
    document(_function, f"Each argument with {_rank} dimension(s) or more.", _example)
    public(f"experimental.numpy.atleast_{_rank}d")(_function)


@public("experimental.numpy.hstack")
def hstack(tup: Any) -> Tensor:
    """Arrays joined along the second axis; vectors along their only one.

    >>> tf.experimental.numpy.hstack([[1], [2]])
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([1, 2])>
    """
    parts = [atleast_1d(x) for x in tup]
    return concatenate(parts, 0 if parts and parts[0].shape.rank == 1 else 1)


@public("experimental.numpy.vstack")
def vstack(tup: Any) -> Tensor:
    """Arrays joined along the first axis; vectors as rows.

    >>> tf.experimental.numpy.vstack([[1, 2], [3, 4]])
    <tf.Tensor: shape=(2, 2), dtype=int64, numpy=
    array([[1, 2],
           [3, 4]])>
    """
    return concatenate([atleast_2d(x) for x in tup], 0)


@public("experimental.numpy.dstack")
def dstack(tup: Any) -> Tensor:
    """Arrays joined along the third axis.

    >>> tf.experimental.numpy.dstack([[1, 2], [3, 4]])
    <tf.Tensor: shape=(1, 2, 2), dtype=int64, numpy=
    array([[[1, 3],
            [2, 4]]])>
    """
    return concatenate([atleast_3d(x) for x in tup], 2)


@public("experimental.numpy.append")
def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    """Two arrays joined; in a row if `axis` is None.

    >>> tf.experimental.numpy.append([1], [2, 3])
    <tf.Tensor: shape=(3,), dtype=int64, numpy=array([1, 2, 3])>
    """
    return concatenate([arr, values], axis)


@public("experimental.numpy.split")
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """As many equal parts along `axis`, or the parts between the given places.

    >>> tf.experimental.numpy.split([1, 2, 3], [1])
    [<tf.Tensor: shape=(1,), dtype=int64, numpy=array([1])>, <tf.Tensor: shape=(2,), dtype=int64, numpy=array([2,
     3])>]
    """
    x = tensor_of(ary)
    axis = axis_in_rank(axis, x.shape.rank, "split")
    size = x.shape[axis]
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or (size is not None and size % indices_or_sections):
            raise ValueError(f"split: {size} elements do not divide into {indices_or_sections} equal parts")
        return splitting.split(x, indices_or_sections, axis)
    if size is None:
        bounds = [0, *(max(place, 0) for place in dims_of(indices_or_sections)), None]
        outer = (slice(None),) * axis
        return [x[(*outer, slice(first, last))] for first, last in itertools.pairwise(bounds)]
    places = np.clip([0, *dims_of(indices_or_sections), size], 0, size)
    return splitting.split(x, np.maximum(np.diff(places), 0).tolist(), axis)


def _split_along(name: str, axis: int, example: str) -> None:
    def function(ary: Any, indices_or_sections: Any) -> list[Any]:
        x = tensor_of(ary)
        if name != "hsplit" and x.shape.rank <= axis:
            raise ValueError(f"{name} only works on arrays of {axis + 1} or more dimensions")
        return split(x, indices_or_sections, 0 if x.shape.rank == 1 else axis)

    document(
        function, f"Parts along the axis {axis}{' (of a vector, along its only one)' if axis == 1 else ''}.", example
    )
    public(f"experimental.numpy.{name}")(function)


_split_along("hsplit", 1, "hsplit([1, 2], 2) = [[1], [2]]")
_split_along("vsplit", 0, "vsplit([[1], [2]], 2) = [[[1]], [[2]]]")
_split_along("dsplit", 2, "dsplit([[[1, 2]]], 2) = [[[[1]]], [[[2]]]]")


@public("experimental.numpy.tile")
def tile(a: Any, reps: Any) -> Tensor:
    """The array repeated as a whole, along its last axes as often as `reps` says.

    >>> tf.experimental.numpy.tile([1, 2], 2)
    <tf.Tensor: shape=(4,), dtype=int64, numpy=array([1, 2, 1, 2])>
    """
    x, times = tensor_of(a), dims_of(reps)
    rank = max(x.shape.rank, len(times))
    x = primitives.Reshape(x, [1] * (rank - x.shape.rank) + dynamic_dims(x))
    return primitives.Tile(x, [1] * (rank - len(times)) + [*times])


@public("experimental.numpy.repeat")
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Tensor:
    """Each element repeated, along `axis` or of all in a row.

    >>> tf.experimental.numpy.repeat([1, 2], 2)
    <tf.Tensor: shape=(4,), dtype=int64, numpy=array([1, 1, 2, 2])>
    """
    return shaping.repeat(tensor_of(a), repeats, axis)


@public("experimental.numpy.broadcast_arrays")
def broadcast_arrays(*args: Any, **kwargs: Any) -> list[Any]:
    """The arrays repeated to their common shape.

    >>> tf.experimental.numpy.broadcast_arrays([1, 2], 3)
    [<tf.Tensor: shape=(2,), dtype=int64, numpy=array([1, 2])>, <tf.Tensor: shape=(2,), dtype=int64,
     numpy=array([3, 3])>]
    """
    if kwargs.pop("subok", False) or kwargs:
        raise ValueError("broadcast_arrays: subok=True does not exist.")
    parts = [tensor_of(a) for a in args]
    shape = common_dims(parts)
    return [primitives.BroadcastTo(part, shape) for part in parts]


def common_dims(parts: list[Any]) -> Any:
    """The shape to which tensors broadcast: numbers, or a tensor where it is known only when the graph runs."""
    if any(is_open(part) for part in parts):
        shapes = [primitives.Shape(part) for part in parts]
        return functools.reduce(shaping.broadcast_dynamic_shape, shapes)
    return list(np.broadcast_shapes(*(tuple(part.shape.as_list()) for part in parts)))


@public("experimental.numpy.pad")
def pad(array: Any, pad_width: Any, mode: str, **kwargs: Any) -> Any:
    """The array with a border: "constant" (with `constant_values`), "reflect" or "symmetric".

    >>> tf.experimental.numpy.pad([1, 2], [(1, 1)], "constant")
    <tf.Tensor: shape=(4,), dtype=int64, numpy=array([0, 1, 2, 0])>
    """
    if mode not in ("constant", "reflect", "symmetric"):
        raise ValueError(f"pad: mode must be 'constant', 'reflect' or 'symmetric'; got {mode!r}")
    x = tensor_of(array)
    widths = np.broadcast_to(np.asarray(pad_width), (x.shape.rank, 2)).tolist()
    return padding.pad(x, widths, mode.upper(), kwargs.get("constant_values", 0))
