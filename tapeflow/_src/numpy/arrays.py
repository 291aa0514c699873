"""`tf.experimental.numpy`: making, joining, splitting, turning and picking of arrays, and sums of products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src.namespace import public
from tapeflow._src.numpy.api import (
    array,
    as_number_or_float,
    as_truth,
    boolean,
    broadcast_to,
    concatenate,
    document,
    promoted,
    stack,
    sum_of,
    tensor_of,
)
from tapeflow._src.ops.arrays import constants, indexing, padding, shaping, sorting, splitting
from tapeflow._src.ops.arrays.constants import dims_of
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.linalg import einsum, products
from tapeflow._src.types.dtypes import as_dtype, complex64, float32, float64, int32, int64


def _axis(axis: Any, rank: int, who: str) -> int:
    if not -rank <= axis < rank:
        raise ValueError(f"{who}: axis must be in [{-rank}, {rank}); got {axis}")
    return axis % rank


def _dtype_or(dtype: Any, default: Any) -> Any:
    return default if dtype is None else as_dtype(np.dtype(dtype) if isinstance(dtype, type) else dtype)


# ---- like another, and along diagonals


def _like(name: str, value: int, sentence: str, example: str) -> None:
    def function(a: Any, dtype: Any = None) -> Any:
        x = tensor_of(a)
        return primitives.BroadcastTo(cast(value, _dtype_or(dtype, x.dtype)), x.shape.as_list())

    document(function, sentence, example)
    public(*(f"experimental.numpy.{n}" for n in name.split()))(function)


_like("zeros_like empty_like", 0, "Zeros of the shape and dtype of `a`.", "zeros_like([1, 2]) = [0, 0]")
_like("ones_like", 1, "Ones of the shape and dtype of `a`.", "ones_like([1, 2]) = [1, 1]")


@public("experimental.numpy.full_like")
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: str = "K", subok: bool = True, shape: Any = None
) -> Any:
    """One value in every place of the shape of `a`, in its dtype.

    >>> tf.experimental.numpy.full_like([1, 2], 7)
    [7, 7]
    """
    if order != "K" or not subok or shape is not None:
        raise ValueError("full_like: only order='K', subok=True and shape=None exist.")
    x = tensor_of(a)
    return broadcast_to(array(fill_value, _dtype_or(dtype, x.dtype)), x.shape.as_list())


@public("experimental.numpy.tri")
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Any:
    """Ones up to the `k`-th diagonal, zeros above it.

    >>> tf.experimental.numpy.tri(2)
    [[1., 0.], [1., 1.]]
    """
    return convert_to_tensor(np.tri(N, M, k), _dtype_or(dtype, float64))


@public("experimental.numpy.eye")
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Any:
    """Ones on the `k`-th diagonal, zeros elsewhere.

    >>> tf.experimental.numpy.eye(2)
    [[1., 0.], [0., 1.]]
    """
    return convert_to_tensor(np.eye(N, M, k), _dtype_or(dtype, float64))


@public("experimental.numpy.identity")
def identity(n: int, dtype: Any = float) -> Any:
    """The square matrix with ones on its diagonal.

    >>> tf.experimental.numpy.identity(2)
    [[1., 0.], [0., 1.]]
    """
    return eye(n, dtype=dtype)


def _triangle(name: str, lower: bool, sentence: str, example: str) -> None:
    def function(m: Any, k: int = 0) -> Any:
        x = tensor_of(m)
        if x.shape.rank < 2:
            raise ValueError(f"{name}: the argument must have at least 2 dimensions; got shape {x.shape}")
        rows, columns = x.shape[-2:]
        kept = np.tri(rows, columns, k if lower else k - 1, dtype=bool)
        return primitives.SelectV2(kept if lower else ~kept, x, cast(0, x.dtype))

    document(function, sentence, example)
    public(f"experimental.numpy.{name}")(function)


_triangle("tril", True, "What is above the `k`-th diagonal set to 0.", "tril([[1, 2], [3, 4]]) = [[1, 0], [3, 4]]")
_triangle("triu", False, "What is below the `k`-th diagonal set to 0.", "triu([[1, 2], [3, 4]]) = [[1, 2], [0, 4]]")


@public("experimental.numpy.diag")
def diag(v: Any, k: int = 0) -> Any:
    """A matrix with a vector on its `k`-th diagonal, or the `k`-th diagonal of a matrix.

    >>> tf.experimental.numpy.diag([1, 2])
    [[1, 0], [0, 2]]
    """
    x = tensor_of(v)
    if x.shape.rank == 2:
        return diagonal(x, k)
    if x.shape.rank != 1:
        raise ValueError(f"diag: the argument must have 1 or 2 dimensions; got shape {x.shape}")
    size = x.shape[0] + abs(k)
    column = padding.pad(x, [[max(k, 0), max(-k, 0)]])
    return primitives.SelectV2(np.eye(size, k=k, dtype=bool), primitives.Reshape(column, [1, size]), cast(0, x.dtype))


@public("experimental.numpy.diagflat")
def diagflat(v: Any, k: int = 0) -> Any:
    """A matrix with all elements on its `k`-th diagonal.

    >>> tf.experimental.numpy.diagflat([[1, 2]])
    [[1, 0], [0, 2]]
    """
    return diag(primitives.Reshape(tensor_of(v), [-1]), k)


@public("experimental.numpy.diagonal")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The `offset`-th diagonal of two axes, as the last axis.

    >>> tf.experimental.numpy.diagonal([[1, 2], [3, 4]])
    [1, 4]
    """
    x = tensor_of(a)
    first, second = _axis(axis1, x.shape.rank, "diagonal"), _axis(axis2, x.shape.rank, "diagonal")
    if first == second:
        raise ValueError("diagonal: axis1 and axis2 must differ.")
    x = moveaxis(x, (first, second), (-2, -1))
    rows, columns = x.shape[-2:]
    count = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    places = (np.arange(count) - min(offset, 0)) * columns + np.arange(count) + max(offset, 0)
    flat = primitives.Reshape(x, [*x.shape.as_list()[:-2], rows * columns])
    return indexing.gather(flat, places.astype(np.int32), axis=-1)


@public("experimental.numpy.trace")
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """The sum of the `offset`-th diagonal of two axes.

    >>> tf.experimental.numpy.trace([[1, 2], [3, 4]])
    5
    """
    return sum_of(diagonal(a, offset, axis1, axis2), -1, dtype)


@public("experimental.numpy.diag_indices")
def diag_indices(n: int, ndim: int = 2) -> tuple[Any, ...]:
    """The places of the diagonal of an array with `ndim` dimensions of length `n`.

    >>> tf.experimental.numpy.diag_indices(2)
    ([0, 1], [0, 1])
    """
    if n < 0 or ndim < 0:
        raise ValueError(f"diag_indices: n and ndim must not be negative; got {n} and {ndim}")
    return (constants.range(n),) * ndim


@public("experimental.numpy.vander")
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The powers of each element, the highest first unless `increasing`.

    >>> tf.experimental.numpy.vander([2, 3])
    [[2, 1], [3, 1]]
    """
    values = tensor_of(x)
    if values.shape.rank != 1:
        raise ValueError(f"vander: x must be a vector; got shape {values.shape}")
    count = values.shape[0] if N is None else N
    if count < 0:
        raise ValueError(f"vander: N must not be negative; got {N}")
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    exponents = convert_to_tensor(powers.copy(), dtype=values.dtype)
    return primitives.Pow(primitives.ExpandDims(values, 1), primitives.ExpandDims(exponents, 0))


# ---- evenly spaced


@public("experimental.numpy.linspace")
def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = float,
    axis: int = 0,
) -> Any:
    """`num` evenly spaced numbers from `start` to `stop`.

    >>> tf.experimental.numpy.linspace(0, 1, 3)
    [0., 0.5, 1.]
    """
    if num < 0:
        raise ValueError(f"linspace: num must not be negative; got {num}")
    low, high = promoted(start, stop, floats=True)
    gaps = num - 1 if endpoint else num
    step = (high - low) / cast(gaps, low.dtype) if gaps > 0 else cast(math.nan, low.dtype)
    low, width = broadcast_arrays(low, high - low)
    rank = low.shape.rank
    place = axis if axis >= 0 else axis + rank + 1
    along = primitives.Reshape(
        cast(np.arange(num) / max(gaps, 1), low.dtype), [num if i == place else 1 for i in range(rank + 1)]
    )
    points = primitives.ExpandDims(low, place) + primitives.ExpandDims(width, place) * along
    points = cast(points, _dtype_or(None if dtype is float else dtype, points.dtype))
    return (points, step) if retstep else points


@public("experimental.numpy.logspace")
def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """`base` to the power of evenly spaced numbers.

    >>> tf.experimental.numpy.logspace(0, 2, 3)
    [1., 10., 100.]
    """
    powers = linspace(start, stop, num, endpoint, axis=axis)
    return cast(primitives.Pow(cast(base, powers.dtype), powers), _dtype_or(dtype, powers.dtype))


@public("experimental.numpy.geomspace")
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """`num` numbers from `start` to `stop`, each the same multiple of the one before.

    >>> tf.experimental.numpy.geomspace(1, 4, 3)
    [1., 2., 4.]
    """
    low, high = promoted(start, stop, floats=True)
    sign = primitives.Sign(low)
    points = primitives.Exp(linspace(primitives.Log(low * sign), primitives.Log(high * sign), num, endpoint, axis=axis))
    points = points * (sign if sign.shape.rank == 0 else primitives.ExpandDims(sign, axis))
    return cast(points, _dtype_or(dtype, points.dtype))


@public("experimental.numpy.meshgrid")
def meshgrid(*xi: Any, **kwargs: Any) -> list[Any]:
    """The coordinates of a grid; `indexing` is "xy" or "ij".

    >>> tf.experimental.numpy.meshgrid([1, 2], [3])
    [[[1, 2]], [[3, 3]]]
    """
    if kwargs.pop("sparse", False) or not kwargs.pop("copy", True):
        raise ValueError("meshgrid: only sparse=False and copy=True exist.")
    return shaping.meshgrid(*map(tensor_of, xi), **kwargs)


# ---- turning


@public("experimental.numpy.moveaxis")
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Axes moved to other places; the others keep their order.

    >>> tf.experimental.numpy.moveaxis([[[1, 2]]], 2, 0).shape
    TensorShape([2, 1, 1])
    """
    x = tensor_of(a)
    rank = x.shape.rank
    start = [_axis(s, rank, "moveaxis") for s in dims_of(source)]
    end = [_axis(d, rank, "moveaxis") for d in dims_of(destination)]
    if len(start) != len(end) or len({*start}) != len(start) or len({*end}) != len(end):
        raise ValueError(
            f"moveaxis: source and destination must be as many different axes; got {source}, {destination}"
        )
    order = [axis for axis in range(rank) if axis not in start]
    for place, axis in sorted(zip(end, start)):
        order.insert(place, axis)
    return primitives.Transpose(x, order)


@public("experimental.numpy.swapaxes")
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Two axes exchanged.

    >>> tf.experimental.numpy.swapaxes([[1, 2]], 0, 1)
    [[1], [2]]
    """
    x = tensor_of(a)
    first, second = _axis(axis1, x.shape.rank, "swapaxes"), _axis(axis2, x.shape.rank, "swapaxes")
    order = [*range(x.shape.rank)]
    order[first], order[second] = second, first
    return primitives.Transpose(x, order)


@public("experimental.numpy.flip")
def flip(m: Any, axis: Any = None) -> Any:
    """The elements in reverse along `axis`, or along all.

    >>> tf.experimental.numpy.flip([1, 2, 3])
    [3, 2, 1]
    """
    x = tensor_of(m)
    axes = range(x.shape.rank) if axis is None else [_axis(a, x.shape.rank, "flip") for a in dims_of(axis)]
    return primitives.ReverseV2(x, [*axes])


@public("experimental.numpy.flipud")
def flipud(m: Any) -> Any:
    """The rows in reverse.

    >>> tf.experimental.numpy.flipud([[1], [2]])
    [[2], [1]]
    """
    return flip(m, 0)


@public("experimental.numpy.fliplr")
def fliplr(m: Any) -> Any:
    """The columns in reverse.

    >>> tf.experimental.numpy.fliplr([[1, 2]])
    [[2, 1]]
    """
    return flip(m, 1)


@public("experimental.numpy.rot90")
def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """The plane of two axes turned by 90 degrees, `k` times.

    >>> tf.experimental.numpy.rot90([[1, 2], [3, 4]])
    [[2, 4], [1, 3]]
    """
    x = tensor_of(m)
    first, second = (_axis(a, x.shape.rank, "rot90") for a in axes)
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
    [3, 1, 2]
    """
    x = tensor_of(a)
    if axis is not None:
        return shaping.roll(x, shift, axis)
    return primitives.Reshape(shaping.roll(primitives.Reshape(x, [-1]), shift, 0), x.shape.as_list())


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
def hstack(tup: Any) -> Any:
    """Arrays joined along the second axis; vectors along their only one.

    >>> tf.experimental.numpy.hstack([[1], [2]])
    [1, 2]
    """
    parts = [atleast_1d(x) for x in tup]
    return concatenate(parts, 0 if parts and parts[0].shape.rank == 1 else 1)


@public("experimental.numpy.vstack")
def vstack(tup: Any) -> Any:
    """Arrays joined along the first axis; vectors as rows.

    >>> tf.experimental.numpy.vstack([[1, 2], [3, 4]])
    [[1, 2], [3, 4]]
    """
    return concatenate([atleast_2d(x) for x in tup], 0)


@public("experimental.numpy.dstack")
def dstack(tup: Any) -> Any:
    """Arrays joined along the third axis.

    >>> tf.experimental.numpy.dstack([[1, 2], [3, 4]])
    [[[1, 3], [2, 4]]]
    """
    return concatenate([atleast_3d(x) for x in tup], 2)


@public("experimental.numpy.append")
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """Two arrays joined; in a row if `axis` is None.

    >>> tf.experimental.numpy.append([1], [2, 3])
    [1, 2, 3]
    """
    return concatenate([arr, values], axis)


@public("experimental.numpy.split")
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """As many equal parts along `axis`, or the parts between the given places.

    >>> tf.experimental.numpy.split([1, 2, 3], [1])
    [[1], [2, 3]]
    """
    x = tensor_of(ary)
    axis = _axis(axis, x.shape.rank, "split")
    size = x.shape[axis]
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1 or size % indices_or_sections:
            raise ValueError(f"split: {size} elements do not divide into {indices_or_sections} equal parts")
        return splitting.split(x, indices_or_sections, axis)
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
def tile(a: Any, reps: Any) -> Any:
    """The array repeated as a whole, along its last axes as often as `reps` says.

    >>> tf.experimental.numpy.tile([1, 2], 2)
    [1, 2, 1, 2]
    """
    x, times = tensor_of(a), dims_of(reps)
    rank = max(x.shape.rank, len(times))
    x = primitives.Reshape(x, [1] * (rank - x.shape.rank) + x.shape.as_list())
    return primitives.Tile(x, [1] * (rank - len(times)) + [*times])


@public("experimental.numpy.repeat")
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """Each element repeated, along `axis` or of all in a row.

    >>> tf.experimental.numpy.repeat([1, 2], 2)
    [1, 1, 2, 2]
    """
    return shaping.repeat(tensor_of(a), repeats, axis)


@public("experimental.numpy.broadcast_arrays")
def broadcast_arrays(*args: Any, **kwargs: Any) -> list[Any]:
    """The arrays repeated to their common shape.

    >>> tf.experimental.numpy.broadcast_arrays([1, 2], 3)
    [[1, 2], [3, 3]]
    """
    if kwargs.pop("subok", False) or kwargs:
        raise ValueError("broadcast_arrays: subok=True does not exist.")
    parts = [tensor_of(a) for a in args]
    shape = list(np.broadcast_shapes(*(tuple(part.shape.as_list()) for part in parts)))
    return [primitives.BroadcastTo(part, shape) for part in parts]


@public("experimental.numpy.pad")
def pad(array: Any, pad_width: Any, mode: str, **kwargs: Any) -> Any:
    """The array with a border: "constant" (with `constant_values`), "reflect" or "symmetric".

    >>> tf.experimental.numpy.pad([1, 2], [(1, 1)], "constant")
    [0, 1, 2, 0]
    """
    if mode not in ("constant", "reflect", "symmetric"):
        raise ValueError(f"pad: mode must be 'constant', 'reflect' or 'symmetric'; got {mode!r}")
    x = tensor_of(array)
    widths = np.broadcast_to(np.asarray(pad_width), (x.shape.rank, 2)).tolist()
    return padding.pad(x, widths, mode.upper(), kwargs.get("constant_values", 0))


# ---- picking and ordering


@public("experimental.numpy.nonzero")
def nonzero(a: Any) -> list[Any]:
    """The places of the elements that are not zero, one vector per axis.

    >>> tf.experimental.numpy.nonzero([0, 5, 6])
    [[1, 2]]
    """
    x = atleast_1d(a)
    return splitting.unstack(primitives.Where(as_truth(x)), x.shape.rank, 1)


@public("experimental.numpy.compress")
def compress(condition: Any, a: Any, axis: int | None = None) -> Any:
    """The slices along `axis` where the condition holds; of all elements in a row if `axis` is None.

    >>> tf.experimental.numpy.compress([True, False], [1, 2])
    [1]
    """
    kept, x = as_truth(tensor_of(condition)), tensor_of(a)
    if kept.shape.rank != 1:
        raise ValueError(f"compress: the condition must be a vector; got shape {kept.shape}")
    if axis is None:
        x, axis = primitives.Reshape(x, [-1]), 0
    places = primitives.Reshape(primitives.Where(kept), [-1])
    return indexing.gather(x, places, axis=_axis(axis, x.shape.rank, "compress"))


@public("experimental.numpy.take_along_axis")
def take_along_axis(arr: Any, indices: Any, axis: int | None) -> Any:
    """For each line along `axis`, its elements at the places of the same line of `indices`.

    >>> tf.experimental.numpy.take_along_axis([[3, 1, 2]], [[1, 2, 0]], 1)
    [[1, 2, 3]]
    """
    x, places = tensor_of(arr), tensor_of(indices)
    if axis is None:
        return take_along_axis(primitives.Reshape(x, [-1]), primitives.Reshape(places, [-1]), 0)
    rank = x.shape.rank
    if places.shape.rank != rank:
        raise ValueError(f"take_along_axis: arr and indices must have one rank; got {rank} and {places.shape.rank}")
    axis = _axis(axis, rank, "take_along_axis")
    x, places = moveaxis(x, axis, -1), moveaxis(places, axis, -1)
    places = primitives.SelectV2(places < 0, places + cast(x.shape[-1], places.dtype), places)
    lead = list(np.broadcast_shapes(tuple(x.shape.as_list()[:-1]), tuple(places.shape.as_list()[:-1])))
    x = primitives.BroadcastTo(x, [*lead, x.shape[-1]])
    places = primitives.BroadcastTo(places, [*lead, places.shape[-1]])
    return moveaxis(indexing.gather(x, places, axis=rank - 1, batch_dims=rank - 1), -1, axis)


@public("experimental.numpy.select")
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """For each place, the element of the first choice whose condition holds.

    >>> tf.experimental.numpy.select([[True, False]], [[1, 2]], default=9)
    [1, 9]
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
    [[[0], [1]], [[2]]]
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
    return tensor_of(x).shape.num_elements()


# ---- sums of products


@public("experimental.numpy.dot")
def dot(a: Any, b: Any) -> Any:
    """The sum of products over the last axis of `a` and the last but one of `b`.

    >>> tf.experimental.numpy.dot([1, 2], [3, 4])
    11
    """
    x, y = promoted(a, b)
    if x.shape.rank == 0 or y.shape.rank == 0:
        return x * y
    return products.tensordot(x, y, [[x.shape.rank - 1], [max(y.shape.rank - 2, 0)]])


@public("experimental.numpy.inner")
def inner(a: Any, b: Any) -> Any:
    """The sum of products over the last axes.

    >>> tf.experimental.numpy.inner([1, 2], [3, 4])
    11
    """
    x, y = promoted(a, b)
    if x.shape.rank == 0 or y.shape.rank == 0:
        return x * y
    return products.tensordot(x, y, [[x.shape.rank - 1], [y.shape.rank - 1]])


@public("experimental.numpy.vdot")
def vdot(a: Any, b: Any) -> Any:
    """The sum of products of all elements, those of `a` conjugated.

    >>> tf.experimental.numpy.vdot([[1, 2]], [[3, 4]])
    11
    """
    x, y = (primitives.Reshape(v, [-1]) for v in promoted(a, b))
    return dot(primitives.Conj(x) if x.dtype.is_complex else x, y)


@public("experimental.numpy.tensordot")
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """The sum of products over the given axes of both.

    >>> tf.experimental.numpy.tensordot([[1, 2]], [[3], [4]], 1)
    [[11]]
    """
    return products.tensordot(*promoted(a, b), axes)


@public("experimental.numpy.einsum")
def einsum_(subscripts: str, *operands: Any, **kwargs: Any) -> Any:
    """Sums of products by index letters.

    >>> tf.experimental.numpy.einsum("ij->i", [[1, 2]])
    [3]
    """
    order = kwargs.pop("casting", "safe"), kwargs.pop("order", "K"), kwargs.pop("optimize", False)
    if order[0] != "safe" or order[1] != "K" or kwargs:
        raise ValueError("einsum: only casting='safe' and order='K' exist, and neither `out` nor `dtype`.")
    return einsum.einsum(subscripts, *promoted(*operands))


@public("experimental.numpy.kron")
def kron(a: Any, b: Any) -> Any:
    """The Kronecker product.

    >>> tf.experimental.numpy.kron([1, 2], [1, 1])
    [1, 1, 2, 2]
    """
    x, y = promoted(a, b)
    rank = max(x.shape.rank, y.shape.rank)
    left = [1] * (rank - x.shape.rank) + x.shape.as_list()
    right = [1] * (rank - y.shape.rank) + y.shape.as_list()
    spread = [d for n in left for d in (n, 1)], [d for n in right for d in (1, n)]
    left_part, right_part = primitives.Reshape(x, spread[0]), primitives.Reshape(y, spread[1])
    product = primitives.LogicalAnd(left_part, right_part) if x.dtype.is_bool else left_part * right_part
    return primitives.Reshape(product, [m * n for m, n in zip(left, right)])


@public("experimental.numpy.cross")
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    """The cross product of vectors with two or three elements.

    >>> tf.experimental.numpy.cross([1, 0, 0], [0, 1, 0])
    [0, 0, 1]
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = promoted(a, b)
    x, y = moveaxis(x, axisa, -1), moveaxis(y, axisb, -1)
    if not {x.shape[-1], y.shape[-1]} <= {2, 3}:
        raise ValueError(f"cross: the vectors must have 2 or 3 elements; got {x.shape[-1]} and {y.shape[-1]}")
    plane = x.shape[-1] == y.shape[-1] == 2
    x, y = (v if v.shape[-1] == 3 else padding.pad(v, [[0, 0]] * (v.shape.rank - 1) + [[0, 1]]) for v in (x, y))
    (x1, x2, x3), (y1, y2, y3) = (primitives.Unpack(v, -1, -1) for v in (x, y))
    if plane:
        return x1 * y2 - x2 * y1
    return moveaxis(stack(broadcast_arrays(x2 * y3 - x3 * y2, x3 * y1 - x1 * y3, x1 * y2 - x2 * y1), -1), -1, axisc)


# ---- numbers


@public("experimental.numpy.angle")
def angle(z: Any, deg: bool = False) -> Any:
    """The angle of complex numbers, in radians or degrees.

    >>> tf.experimental.numpy.angle([-1.])
    [3.1415927]
    """
    x = as_number_or_float(tensor_of(z))
    if not x.dtype.is_complex:
        x = cast(x, complex64 if x.dtype == float32 else "complex128")
    y = primitives.Atan2(primitives.Imag(x), primitives.Real(x))
    return y * (180 / math.pi) if deg else y


@public("experimental.numpy.around", "experimental.numpy.round")
def around(a: Any, decimals: int = 0) -> Any:
    """Rounded to a number of decimals, halves to the even neighbour.

    >>> tf.experimental.numpy.around([1.256, 2.5], 0)
    [1., 2.]
    """
    x = tensor_of(a)
    if x.dtype == boolean:
        raise TypeError("around: truth values cannot be rounded.")
    scaled = cast(x, float64) if x.dtype.is_integer else x
    factor = cast(10.0 ** abs(decimals), scaled.dtype)
    scaled = primitives.Rint(scaled * factor) / factor if decimals >= 0 else primitives.Rint(scaled / factor) * factor
    return cast(scaled, x.dtype)


@public("experimental.numpy.array_equal")
def array_equal(a1: Any, a2: Any) -> Any:
    """Whether shapes and all elements are equal.

    >>> tf.experimental.numpy.array_equal([1, 2], [1, 2])
    True
    """
    x, y = promoted(a1, a2)
    same = x.shape.as_list() == y.shape.as_list()
    return primitives.All(primitives.Equal(x, y), None, False) if same else convert_to_tensor(False)


@public("experimental.numpy.average")
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False) -> Any:
    """The weighted mean and, if asked for, the sum of the weights.

    >>> tf.experimental.numpy.average([1, 2], weights=[1., 3.])
    1.75
    """
    if weights is None:
        x = as_number_or_float(tensor_of(a))
        mean = primitives.Mean(x, axis, False)
        count = x.shape.num_elements() / max(1, mean.shape.num_elements())
        total = primitives.BroadcastTo(cast(count, x.dtype), mean.shape.as_list())
        return (mean, total) if returned else mean
    x, w = promoted(a, weights, floats=True)
    if w.shape.rank != x.shape.rank:
        if axis is None or w.shape.rank != 1:
            raise ValueError("average: the weights must have the shape of `a`, or be a vector for one axis.")
        place = _axis(axis, x.shape.rank, "average")
        w = primitives.Reshape(w, [-1 if i == place else 1 for i in range(x.shape.rank)])
    w = primitives.BroadcastTo(w, x.shape.as_list())
    total = primitives.Sum(w, axis, False)
    mean = primitives.Sum(x * w, axis, False) / total
    return (mean, total) if returned else mean


@public("experimental.numpy.diff")
def diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    """The differences of neighbours along `axis`, taken `n` times.

    >>> tf.experimental.numpy.diff([1, 3, 6])
    [2, 3]
    """
    if n < 0:
        raise ValueError(f"diff: n must not be negative; got {n}")
    x = moveaxis(a, axis, -1)
    for _ in range(min(n, x.shape[-1])):
        ends = x[..., 1:], x[..., :-1]
        x = primitives.NotEqual(*ends) if x.dtype == boolean else ends[0] - ends[1]
    return moveaxis(x, -1, axis)


@public("experimental.numpy.polyval")
def polyval(p: Any, x: Any) -> Any:
    """The polynomial with coefficients `p`, the highest first, at `x`.

    >>> tf.experimental.numpy.polyval([1, 2], 3)
    5
    """
    coefficients, points = promoted(p, x)
    result = cast(0, points.dtype)
    for coefficient in primitives.Unpack(coefficients, -1, 0):
        result = result * points + coefficient
    return result


@public("experimental.numpy.divmod")
def divmod_(x1: Any, x2: Any) -> tuple[Any, Any]:
    """The quotient, rounded down, and the remainder.

    >>> tf.experimental.numpy.divmod(7, 2)
    (3, 1)
    """
    x, y = promoted(x1, x2)
    return primitives.FloorDiv(x, y), primitives.FloorMod(x, y)


def _integers(name: str, compute: Any, sentence: str, example: str) -> None:
    def function(x1: Any, x2: Any) -> Any:
        x, y = promoted(x1, x2)
        if not x.dtype.is_integer:
            raise ValueError(f"{name}: the arguments must be whole numbers; got {x.dtype.name}")
        return convert_to_tensor(compute(x.numpy(), y.numpy()), dtype=x.dtype)

    document(function, sentence, example)
    public(f"experimental.numpy.{name}")(function)


_integers("gcd", np.gcd, "The greatest common divisor.", "gcd(12, 8) = 4")
_integers("lcm", np.lcm, "The least common multiple.", "lcm(4, 6) = 12")


def _one(name: str, compute: Any, sentence: str, example: str) -> None:
    def function(x: Any) -> Any:
        return compute(tensor_of(x))

    document(function, sentence, example)
    public(f"experimental.numpy.{name}")(function)


def _signbit(x: Any) -> Any:
    if x.dtype == boolean:
        return primitives.BroadcastTo(convert_to_tensor(False), x.shape.as_list())
    if not x.dtype.is_floating:
        return x < 0
    return primitives.LogicalOr(x < 0, primitives.Equal(primitives.Reciprocal(x), cast(-math.inf, x.dtype)))


def _sinc(x: Any) -> Any:
    x = as_number_or_float(x) * math.pi
    at_zero = primitives.Equal(x, cast(0, x.dtype))
    safe = primitives.SelectV2(at_zero, cast(1, x.dtype), x)
    # x times itself keeps the derivative at 0, which is 0.
    return primitives.SelectV2(at_zero, 1 - x * x / 6, primitives.Sin(safe) / safe)


def _has_imaginary(x: Any) -> Any:
    part = primitives.Imag(x) if x.dtype.is_complex else primitives.BroadcastTo(cast(0, int32), x.shape.as_list())
    return primitives.NotEqual(part, cast(0, part.dtype))


_one("signbit", _signbit, "Whether the sign is negative; that of -0 is.", "signbit([-1., 2.]) = [True, False]")
_one("sinc", _sinc, "sin(pi x) / (pi x).", "sinc([0.]) = [1.]")
_one("iscomplex", _has_imaginary, "Whether the imaginary part is not 0.", "iscomplex([1j, 1]) = [True, False]")
_one(
    "isreal",
    lambda x: primitives.LogicalNot(_has_imaginary(x)),
    "Whether the imaginary part is 0.",
    "isreal([1j, 1]) = [False, True]",
)
_one("iscomplexobj", lambda x: x.dtype.is_complex, "Whether the dtype is complex.", "iscomplexobj([1j]) = True")
_one("isrealobj", lambda x: not x.dtype.is_complex, "Whether the dtype is not complex.", "isrealobj([1j]) = False")


def _without_nan(name: str, compute: Any, neutral: int, sentence: str, example: str) -> None:
    def function(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        x = tensor_of(a)
        if x.dtype.is_floating or x.dtype.is_complex:
            x = primitives.SelectV2(primitives.NotEqual(x, x), cast(neutral, x.dtype), x)
        return compute(x, axis, dtype, keepdims)

    document(function, sentence, example)
    public(f"experimental.numpy.{name}")(function)


def _product(x: Any, axis: Any, dtype: Any, keepdims: bool) -> Any:
    if dtype is not None or x.dtype.is_integer or x.dtype == boolean:
        x = cast(x, _dtype_or(dtype, int64))
    return primitives.Prod(x, axis, bool(keepdims))


_without_nan("nansum", sum_of, 0, "The sum without NaN.", "nansum([1., np.nan]) = 1.0")
_without_nan("nanprod", _product, 1, "The product without NaN.", "nanprod([2., np.nan]) = 2.0")


@public("experimental.numpy.nanmean")
def nanmean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool | None = None) -> Any:
    """The mean of what is not NaN.

    >>> tf.experimental.numpy.nanmean([1., np.nan])
    1.0
    """
    x = as_number_or_float(tensor_of(a) if dtype is None else cast(tensor_of(a), dtype))
    absent = primitives.NotEqual(x, x)
    kept = primitives.SelectV2(absent, cast(0, x.dtype), x)
    count = primitives.Sum(cast(primitives.LogicalNot(absent), x.dtype), axis, bool(keepdims))
    return primitives.Sum(kept, axis, bool(keepdims)) / count
