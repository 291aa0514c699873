"""`tf.experimental.numpy`: picking and ordering elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.numpy.promotion import as_bool, axis_in_rank, boolean, document, promoted, tensor_of
from tapeflow._src.numpy.shaping import atleast_1d, moveaxis
from tapeflow._src.ops.arrays import indexing, shaping, sorting, splitting
from tapeflow._src.ops.arrays.constants import dynamic_dims
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.types.dtypes import int64

# ---- picking and ordering


@public("experimental.numpy.nonzero")
def nonzero(a: Any) -> list[Any]:
    """The places of the elements that are not zero, one vector per axis.

    >>> tf.experimental.numpy.nonzero([0, 5, 6])
    [<tf.Tensor: shape=(2,), dtype=int64, numpy=array([1, 2])>]
    """
    x = atleast_1d(a)
    return splitting.unstack(primitives.Where(as_bool(x)), x.shape.rank, 1)


@public("experimental.numpy.compress")
def compress(condition: Any, a: Any, axis: int | None = None) -> Any:
    """The slices along `axis` where the condition holds; of all elements in a row if `axis` is None.

    >>> tf.experimental.numpy.compress([True, False], [1, 2])
    <tf.Tensor: shape=(1,), dtype=int64, numpy=array([1])>
    """
    kept, x = as_bool(tensor_of(condition)), tensor_of(a)
    if kept.shape.rank != 1:
        raise ValueError(f"compress: the condition must be a vector; got shape {kept.shape}")
    if axis is None:
        x, axis = primitives.Reshape(x, [-1]), 0
    places = primitives.Reshape(primitives.Where(kept), [-1])
    return indexing.gather(x, places, axis=axis_in_rank(axis, x.shape.rank, "compress"))


@public("experimental.numpy.take_along_axis")
def take_along_axis(arr: Any, indices: Any, axis: int | None) -> Tensor:
    """For each line along `axis`, its elements at the places of the same line of `indices`.

    >>> tf.experimental.numpy.take_along_axis([[3, 1, 2]], [[1, 2, 0]], 1)
    <tf.Tensor: shape=(1, 3), dtype=int64, numpy=array([[1, 2, 3]])>
    """
    x, places = tensor_of(arr), tensor_of(indices)
    if axis is None:
        return take_along_axis(primitives.Reshape(x, [-1]), primitives.Reshape(places, [-1]), 0)
    rank = x.shape.rank
    if places.shape.rank != rank:
        raise ValueError(f"take_along_axis: arr and indices must have one rank; got {rank} and {places.shape.rank}")
    axis = axis_in_rank(axis, rank, "take_along_axis")
    x, places = moveaxis(x, axis, -1), moveaxis(places, axis, -1)
    places = primitives.SelectV2(places < 0, places + cast(dynamic_dims(x)[-1], places.dtype), places)
    if x.shape.is_fully_defined() and places.shape.is_fully_defined():
        lead: Any = np.broadcast_shapes(tuple(x.shape.as_list()[:-1]), tuple(places.shape.as_list()[:-1]))
    else:
        common = shaping.broadcast_dynamic_shape(primitives.Shape(x)[:-1], primitives.Shape(places)[:-1])
        lead = [common[i] for i in range(rank - 1)]
    x = primitives.BroadcastTo(x, [*lead, dynamic_dims(x)[-1]])
    places = primitives.BroadcastTo(places, [*lead, dynamic_dims(places)[-1]])
    return moveaxis(indexing.gather(x, places, axis=rank - 1, batch_dims=rank - 1), -1, axis)


@public("experimental.numpy.select")
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """For each place, the element of the first choice whose condition holds.

    >>> tf.experimental.numpy.select([[True, False]], [[1, 2]], default=9)
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([1, 9])>
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(f"select: as many choices as conditions are needed; got {len(choicelist)}, {len(condlist)}")
    *choices, result = promoted(*choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices)):
        result = primitives.SelectV2(tensor_of(condition), choice, result)
    return result


@public("experimental.numpy.ix_")
def ix_(*args: Any) -> list[Any]:
    """Vectors shaped so that together they span a grid.

    >>> tf.experimental.numpy.ix_([0, 1], [2])
    [<tf.Tensor: shape=(2, 1), dtype=int64, numpy=
    array([[0],
           [1]])>, <tf.Tensor: shape=(1, 1), dtype=int64, numpy=array([[2]])>]
    """
    result = []
    for place, given in enumerate(args):
        x = tensor_of(given)
        if x.shape.rank != 1:
            raise ValueError(f"ix_: the arguments must be vectors; got shape {x.shape}")
        if x.dtype == boolean:
            x = primitives.Reshape(primitives.Where(x), [-1])
        result.append(primitives.Reshape(x, [-1 if i == place else 1 for i in range(len(args))]))
    return result


def _order(name: str, compute: Any, sentence: str, example: str) -> None:
    def function(a: Any, axis: int | None = -1, kind: str = "quicksort", order: Any = None) -> Any:
        if kind not in ("quicksort", "stable"):
            raise ValueError(f"{name}: kind must be 'quicksort' or 'stable'; got {kind!r}")
        if order is not None:
            raise ValueError(f"{name}: arrays have no fields to order by; got {order!r}")
        x = tensor_of(a)
        if axis is None:
            x, axis = primitives.Reshape(x, [-1]), 0
        return compute(x, axis)

    document(function, sentence, example)
    public(f"experimental.numpy.{name}")(function)


_order("sort", sorting.sort, "The elements in order along `axis`.", "sort([3, 1, 2]) = [1, 2, 3]")
_order(
    "argsort",
    lambda x, axis: cast(sorting.argsort(x, axis, stable=True), int64),
    "The places of the elements in their order along `axis`.",
    "argsort([30, 10, 20]) = [1, 2, 0]",
)


@public("experimental.numpy.size")
def size(x: Any, axis: int | None = None) -> Any:
    """The number of elements.

    >>> tf.experimental.numpy.size([[1, 2]])
    2
    """
    if axis is not None:
        raise NotImplementedError("size: the argument `axis` does not exist here.")
    x = tensor_of(x)
    known = x.shape.num_elements()
    return shaping.size(x) if known is None else known
