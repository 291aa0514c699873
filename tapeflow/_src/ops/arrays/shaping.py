"""Shapes, joining and splitting, choosing and indexing: the parts that are made of other operations."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dims_of, dynamic_dims, holds_symbolic, is_open, whole
from tapeflow._src.ops.arrays.constants import range as number_range
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.indexing import boolean_mask as boolean_mask
from tapeflow._src.ops.arrays.indexing import gather as gather
from tapeflow._src.ops.arrays.indexing import take
from tapeflow._src.ops.arrays.indexing import where as where
from tapeflow._src.types.dtypes import as_dtype, int32, int64
from tapeflow._src.types.errors import InvalidArgumentError, refused_dtype
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.tensor_shape import TensorShape, as_shape, shape_text
from tapeflow._src.types.tensor_spec import CompositeTensor

newaxis = None


@public("shape", node=primitives.Shape)
def shape(input: Any, out_type: Any = None, name: str | None = None) -> Any:
    """The shape as an int32 tensor.

    Args:
        input: The tensor.
        out_type: The dtype of the result, `tf.int32` or `tf.int64`.
        name: A name for the operation in graphs.

    Returns:
        A tensor of one dimension.

    Gradient:
        None: the result is an integer tensor.

    >>> tf.shape([[1, 2, 3]])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 3], dtype=int32)>
    """
    if isinstance(input, SparseTensor):
        return cast(input.dense_shape, out_type or int32)
    x = input if _core.is_tensor(input) else convert_to_tensor(input)
    dtype = as_dtype(out_type or int32)
    if is_open(x):
        return primitives.Shape(x, dtype)
    if not x.shape.is_fully_defined():  # a variable whose declared shape is open: it has a value
        x = convert_to_tensor(x)
    return _core.convert_to_tensor(x.shape.as_list(), dtype, None, "shape")


@public("shape_n")
def shape_n(input: Any, out_type: Any = int32, name: str | None = None) -> list[Any]:
    """The shapes of a list of tensors.

    >>> tf.shape_n([[1], [2, 3]])
    [<tf.Tensor: shape=(1,), dtype=int32, numpy=array([1], dtype=int32)>, <tf.Tensor: shape=(1,), dtype=int32,
     numpy=array([2], dtype=int32)>]
    """
    return [shape(x, out_type) for x in input]


@public("size", node="Size")
def size(input: Any, out_type: Any = None, name: str | None = None) -> Tensor:
    """The number of elements.

    Args:
        input: The tensor.
        out_type: The dtype of the result.
        name: A name for the operation in graphs.

    Returns:
        A tensor: an integer scalar.

    Gradient:
        None.

    >>> tf.size([[1, 2, 3]])
    <tf.Tensor: shape=(), dtype=int32, numpy=3>
    """
    dtype = as_dtype(out_type or int32)
    if isinstance(input, SparseTensor):  # all elements, not only those that are stored
        return primitives.Prod(cast(input.dense_shape, dtype), [0], False)
    if isinstance(input, CompositeTensor):  # the stored elements of a ragged tensor
        input = getattr(input, "flat_values", input)
    x = convert_to_tensor(input)
    if is_open(x):
        return primitives.Prod(primitives.Shape(x, dtype))
    return _core.convert_to_tensor(math.prod(x.shape.as_list()), dtype, None, "size")


@public("rank", node="Rank")
def rank(input: Any, name: str | None = None) -> Tensor:
    """The number of dimensions.

    Args:
        input: The tensor.
        name: A name for the operation in graphs.

    Returns:
        A tensor: an int32 scalar.

    Gradient:
        None.

    >>> tf.rank([[1, 2, 3]])
    <tf.Tensor: shape=(), dtype=int32, numpy=2>
    """
    x: Any = input if isinstance(input, CompositeTensor) else convert_to_tensor(input)
    shape = x.shape
    if shape.rank is None:
        return primitives.Shape(primitives.Shape(input))[0]
    return _core.convert_to_tensor(shape.rank, int32, None, "rank")


@public("ensure_shape")
def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """`x`, if its shape is compatible with `shape`; an error otherwise.

    >>> tf.ensure_shape([1, 2], [None])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>
    """
    x = convert_to_tensor(x)
    wanted = as_shape(shape)
    if not x.shape.is_compatible_with(wanted):
        raise InvalidArgumentError.of(
            f"ensure_shape: Shape of tensor x {x.shape.as_list()} is not compatible with expected shape "
            f"{shape_text(wanted)}."
        )
    if wanted.rank is None or not is_open(x):
        return primitives.Identity(x)
    return primitives.EnsureShape(x, [-1 if d is None else d for d in wanted])


def of_rank(x: Any, rank: int) -> Any:
    """`x`; if its rank is unknown while tracing, as a tensor of this rank, which is checked when the graph runs."""
    return x if x.shape.rank is not None else primitives.EnsureShape(x, [-1] * rank)


@public("broadcast_static_shape")
def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """The shape that two shapes broadcast to.

    >>> tf.broadcast_static_shape(tf.TensorShape([1, 3]), tf.TensorShape([2, 1]))
    TensorShape([2, 3])
    """
    x, y = as_shape(shape_x), as_shape(shape_y)
    if x.rank is None or y.rank is None:
        return TensorShape(None)
    size = max(x.rank, y.rank)
    dims: list[int | None] = []
    for a, b in zip([1] * (size - x.rank) + x.as_list(), [1] * (size - y.rank) + y.as_list()):
        if a == 1 or a == b:
            dims.append(b)
        elif b == 1:
            dims.append(a)
        elif a is None or b is None:
            dims.append(a or b)
        else:
            raise ValueError(f"Incompatible shapes for broadcasting: {x} and {y}")
    return TensorShape(dims)


@public("broadcast_dynamic_shape")
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The shape, as a tensor, that two shapes broadcast to.

    >>> tf.broadcast_dynamic_shape([1, 3], [2, 1])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([2, 3], dtype=int32)>
    """
    x, y = convert_to_tensor(shape_x, dtype_hint=int32), convert_to_tensor(shape_y, dtype_hint=int32)
    if (_core.is_symbolic(x) or _core.is_symbolic(y)) and None not in (x.shape.num_elements(), y.shape.num_elements()):
        size = max(x.shape[0], y.shape[0])
        x, y = (primitives.PadV2(v, [size - v.shape[0], 0], cast(1, v.dtype)) for v in (x, y))
        return primitives.SelectV2(primitives.Equal(x, 1), y, x)
    try:
        dims = np.broadcast_shapes(dims_of(x), dims_of(y))
    except ValueError as error:
        raise InvalidArgumentError.of(
            f"broadcast_dynamic_shape: Incompatible shapes: {dims_of(x)} vs. {dims_of(y)}"
        ) from error
    return _core.convert_to_tensor([int(d) for d in dims], x.dtype, None, "broadcast_dynamic_shape")


def _repeat_each(x: Any, repeats: Any, axis: int) -> Tensor:
    """The slices as often as a vector says that is known when the graph runs. A slice has so many ends before it as
    there are slices in front of it."""
    if not repeats.dtype.is_integer:
        raise TypeError(f"repeat: Argument `repeats` must be of type integer; got dtype {repeats.dtype.name}")
    counts = primitives.Maximum(primitives.BroadcastTo(cast(repeats, int32), [dynamic_dims(x)[axis]]), 0)
    ends, total = primitives.Cumsum(counts, 0, False, False), primitives.Sum(counts)
    ends_by_place = primitives.UnsortedSegmentSum(counts * 0 + 1, ends, total + 1)
    return take(x, primitives.Cumsum(ends_by_place, 0, False, False)[:-1], axis)


@public("repeat")
def repeat(input: Any, repeats: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Each element (slice along `axis`) `repeats` times; the tensor is flattened if `axis` is None.

    Args:
        input: The tensor.
        repeats: How often to repeat: a number, or one for each slice along `axis`.
        axis: The dimension; the tensor is flattened if None.
        name: A name for the operation in graphs.

    Returns:
        A tensor.

    Gradient:
        `dy` summed over the copies.

    >>> tf.repeat([1, 2], [1, 2])
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([1, 2, 2], dtype=int32)>
    """
    x = convert_to_tensor(input)
    if axis is None:
        x, axis = primitives.Reshape(x, [-1]), 0
    if type(repeats) is int and repeats >= 0 and type(axis) is int and not _core.is_tracing() and 0 <= axis < x.ndim:
        dims = x.shape.as_list()
        wide = [*dims[: axis + 1], repeats, *dims[axis + 1 :]]
        dims[axis] *= repeats
        return primitives.Reshape(primitives.BroadcastTo(primitives.ExpandDims(x, axis + 1), wide), dims)
    if _core.is_symbolic(repeats) and repeats.shape.rank == 1 and x.shape.rank is not None:
        return _repeat_each(x, repeats, whole(axis) % x.shape.rank)
    open_count = _core.is_symbolic(repeats) and repeats.shape.rank == 0
    counts = np.zeros([1], np.int64) if open_count else np.asarray(repeats)
    if counts.size and counts.dtype.kind not in "iub":
        raise TypeError(f"repeat: Argument `repeats` must be of type integer; got dtype {counts.dtype}")
    axis = whole(axis)
    if not -x.shape.rank <= axis < x.shape.rank:
        raise ValueError(f"repeat: axis must be in [{-x.shape.rank}, {x.shape.rank}); got {axis}")
    axis = axis % x.shape.rank
    dims = dynamic_dims(x)
    if counts.ndim > 1:
        raise ValueError(f"repeat: repeats must be a scalar or a vector; got shape {list(counts.shape)}")
    if counts.size == 1:
        count = cast(repeats, int32) if open_count else int(counts.reshape(-1)[0])
        if not open_count and count < 0:
            raise InvalidArgumentError.of(f"repeat: repeats must not be negative; got {count}")
        rows = primitives.BroadcastTo(primitives.ExpandDims(x, axis + 1), [*dims[: axis + 1], count, *dims[axis + 1 :]])
        return primitives.Reshape(rows, [*dims[:axis], dims[axis] * count, *dims[axis + 1 :]])
    if _core.is_tensor(dims[axis]):
        return take(x, np.repeat(np.arange(len(counts)), counts), axis)
    if counts.shape[0] != dims[axis]:
        raise ValueError(
            f"repeat: Dimensions {dims[axis]} and {counts.shape[0]} are not compatible: repeats must have {dims[axis]} "
            f"elements, as the dimension {axis}"
        )
    return take(x, np.repeat(np.arange(dims[axis]), counts), axis)


@public("roll")
def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Any:
    """Elements moved on by `shift` places along `axis`, round the end.

    Args:
        input: The tensor.
        shift: How far to shift; what leaves at the end comes in at the beginning.
        axis: The dimension, or a list of dimensions with as many shifts.
        name: A name for the operation in graphs.

    Returns:
        A tensor of the shape of `input`.

    Gradient:
        `dy` shifted back.

    >>> tf.roll([1, 2, 3], 1, 0)
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([3, 1, 2], dtype=int32)>
    """
    x = convert_to_tensor(input)
    if x.shape.rank == 0:
        raise InvalidArgumentError.of("roll: input must be 1-D or higher: Shape must be at least rank 1 but is rank 0")
    for what, given in (("shift", shift), ("axis", axis)):
        if type(given) is not int and not holds_symbolic(given) and np.ndim(given) > 1:
            raise InvalidArgumentError.of(
                f"roll: {what} must be a scalar or a 1-D vector. Shape must be at most rank 1 but is rank "
                f"{np.ndim(given)}. Found: {list(np.shape(given))}"
            )
    axes = [axis] if type(axis) is int else dims_of(axis)
    dims = [] if x.shape.rank is None else x.shape.as_list()
    if x.shape.rank is None or holds_symbolic(shift) or None in [dims[a] for a in axes if -len(dims) <= a < len(dims)]:
        return _roll_open(x, shift, axes)
    shifts = [shift] if type(shift) is int else dims_of(shift)
    if len(shifts) != len(axes):
        raise InvalidArgumentError.of(
            f"roll: shift and axis must have the same size: both shapes must be equal; got {shifts} and {axes}"
        )
    for places, along in zip(shifts, axes):
        if not -len(dims) <= along < len(dims):
            raise InvalidArgumentError.of(f"roll: axis {along} is out of range for shape {dims}")
        length = dims[along]
        if length and places % length:
            x = primitives.RollAxis(x, places % length, along)
    return x


def _roll_open(x: Any, shift: Any, axes: list[int]) -> Any:
    shifts = primitives.Reshape(convert_to_tensor(shift), [-1])
    for i, along in enumerate(axes):
        length = cast(primitives.Shape(x)[along], shifts.dtype)
        places = primitives.FloorMod(shifts[i], primitives.Maximum(length, 1))
        head, tail = primitives.SplitV(x, [length - places, places], along)
        x = primitives.ConcatV2([tail, head], along)
    return x


@public("meshgrid")
def meshgrid(*args: Any, **kwargs: Any) -> list[Any]:
    """Coordinates of a grid: for vectors x and y, two matrices; `indexing="ij"` does not swap the first two dimensions.

    Args:
        args: Tensors of one dimension.
        kwargs: `indexing`, 'xy' (the default) or 'ij', and `name`.

    Returns:
        A list of tensors.

    Gradient:
        `dy` summed over the repeated dimensions.

    >>> tf.meshgrid([1, 2], [3, 4])
    [<tf.Tensor: shape=(2, 2), dtype=int32, numpy=
    array([[1, 2],
           [1, 2]], dtype=int32)>, <tf.Tensor: shape=(2, 2), dtype=int32, numpy=
    array([[3, 3],
           [4, 4]], dtype=int32)>]
    """
    indexing = kwargs.pop("indexing", "xy")
    kwargs.pop("name", None)
    if kwargs:
        raise TypeError(f"'{next(iter(kwargs))}' is an invalid keyword argument for this function.")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Argument `indexing` parameter must be either 'xy' or 'ij', got '{indexing}'")
    vectors = [convert_to_tensor(v) for v in args]
    if not _core.is_tracing() and len(vectors) == 2 and vectors[0].ndim == vectors[1].ndim == 1:
        a, b = vectors
        first, second = (a, b) if indexing == "ij" else (b, a)
        full = [len(first), len(second)]
        rows = primitives.BroadcastTo(primitives.ExpandDims(first, 1), full)
        columns = primitives.BroadcastTo(second, full)
        return [rows, columns] if indexing == "ij" else [columns, rows]
    vectors = [primitives.Reshape(v, [-1]) for v in vectors]
    places = list(builtins.range(len(vectors)))
    if indexing == "xy" and len(vectors) > 1:
        places[0], places[1] = 1, 0
    full = [0] * len(vectors)
    for place, vector in zip(places, vectors):
        full[place] = dynamic_dims(vector)[0]
    result = []
    for place, vector in zip(places, vectors):
        narrow = [1] * len(vectors)
        narrow[place] = -1 if vector.shape[0] is None else vector.shape[0]
        result.append(primitives.BroadcastTo(primitives.Reshape(vector, narrow), full))
    return result


@public("reverse_sequence")
def reverse_sequence(
    input: Any,
    seq_lengths: Any,
    seq_axis: Any = None,
    batch_axis: Any = None,
    name: str | None = None,
) -> Tensor:
    """The first `seq_lengths[i]` elements along `seq_axis` of slice i along `batch_axis` in reverse order.

    >>> tf.reverse_sequence([[1, 2, 3], [4, 5, 6]], [2, 3], seq_axis=1, batch_axis=0)
    <tf.Tensor: shape=(2, 3), dtype=int32, numpy=
    array([[2, 1, 3],
           [6, 5, 4]], dtype=int32)>
    """
    x = convert_to_tensor(input)
    lengths = convert_to_tensor(seq_lengths, dtype_hint="int64")
    rank = x.shape.rank
    if seq_axis is None:
        raise ValueError("reverse_sequence: seq_axis must be given")
    batch_axis = 0 if batch_axis is None else int(batch_axis)
    for what, axis in (("batch_axis", batch_axis), ("seq_axis", int(seq_axis))):
        if not -rank <= axis < rank:
            raise InvalidArgumentError.of(f"reverse_sequence: {what} must be < input rank, got {axis} for {rank}")
    batch_axis, seq_axis = batch_axis % rank, int(seq_axis) % rank
    if batch_axis == seq_axis:
        raise InvalidArgumentError.of(f"reverse_sequence: batch_dim == seq_dim == {seq_axis}")
    count = x.shape[batch_axis]
    if not lengths.shape.is_compatible_with([count]):
        raise InvalidArgumentError.of(
            f"reverse_sequence: Length of seq_lens != input.dims({batch_axis}), ({lengths.shape} vs. {count})",
        )
    lengths = cast(lengths, "int64")
    size = x.shape[seq_axis]
    length = cast(primitives.Shape(x)[seq_axis] if size is None else size, "int64")
    if count and not (_core.is_symbolic(lengths) or _core.is_symbolic(length)):
        highest, lowest = (reduce(lengths) for reduce in (primitives.Max, primitives.Min))
        if highest > length or lowest < 0:
            raise InvalidArgumentError.of(
                f"reverse_sequence: seq_lens(i) > input.dims({seq_axis}) or negative; got {np.asarray(lengths)}"
            )
    places = primitives.Range(cast(0, "int64"), length, cast(1, "int64"))
    lengths = primitives.ExpandDims(lengths, 1)
    kept = places + primitives.Minimum(lengths, cast(0, "int64")) * length  # no place at all of a negative length
    positions = primitives.SelectV2(primitives.Less(places, lengths), lengths - 1 - places, kept)
    order = [batch_axis, seq_axis, *(i for i in builtins.range(rank) if i not in (batch_axis, seq_axis))]
    y = primitives.GatherV2(primitives.Transpose(x, order), positions, 1, 1)
    y = primitives.Transpose(y, [order.index(i) for i in builtins.range(rank)])
    if _core.is_symbolic(y):
        y.set_shape(x.shape)
    return y


@public("sequence_mask")
def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = "bool", name: str | None = None) -> Any:
    """True in the first `lengths[i]` of `maxlen` places; shape [..., maxlen].

    Args:
        lengths: Integers.
        maxlen: The size of the new dimension; the largest length if None.
        dtype: The dtype of the result.
        name: A name for the operation in graphs.

    Returns:
        A tensor of one more dimension, of size `maxlen`.

    Gradient:
        None.

    >>> tf.sequence_mask([1, 2], 3)
    <tf.Tensor: shape=(2, 3), dtype=bool, numpy=
    array([[ True, False, False],
           [ True,  True, False]])>
    """
    lengths = convert_to_tensor(lengths)
    if maxlen is None:
        empty = lengths.shape.rank is not None and 0 in lengths.shape.as_list()
        maxlen = 0 if empty else primitives.Maximum(primitives.Max(lengths), 0)
    if (maxlen.shape.rank if _core.is_tensor(maxlen) else np.ndim(maxlen)) != 0:
        raise ValueError(f"Argument `maxlen` must be scalar for sequence_mask, received `maxlen` = {maxlen}.")
    if _core.is_symbolic(maxlen):
        places = cast(number_range(maxlen), lengths.dtype)
    else:
        places = cast(number_range(convert_to_tensor(max(int(maxlen), 0), int64)), lengths.dtype)
    return cast(primitives.Less(places, primitives.ExpandDims(lengths, -1)), dtype)


@public("unravel_index")
def unravel_index(indices: Any, dims: Any, name: str | None = None) -> Tensor:
    """Positions in a flat tensor as coordinates in the shape `dims`; one row for each dimension.

    >>> tf.unravel_index([5], [3, 4])
    <tf.Tensor: shape=(2, 1), dtype=int32, numpy=
    array([[1],
           [1]], dtype=int32)>
    """
    indices = convert_to_tensor(indices, dtype_hint=int32)
    sizes = dims_of(dims)
    total = int(np.prod(sizes, dtype=np.int64))
    values = np.asarray(indices)
    if values.size and (values.max() >= total or values.min() < 0):
        raise InvalidArgumentError.of(f"unravel_index: index is out of bound as with dims {sizes}")
    rows: list[Any] = []
    unit = 1
    for size_here in reversed(sizes):
        rows.insert(0, primitives.FloorMod(primitives.FloorDiv(indices, unit), size_here))
        unit *= size_here
    return primitives.Pack(rows, 0)


@public("math.invert_permutation")
def invert_permutation(x: Any, name: str | None = None) -> Tensor:
    """The permutation y with y[x[i]] = i.

    >>> tf.math.invert_permutation([2, 0, 1])
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([1, 2, 0], dtype=int32)>
    """
    x = convert_to_tensor(x)
    if x.dtype not in (int32, int64):
        raise refused_dtype("invert_permutation", "x", "T", x.dtype, "int32, int64")
    if x.shape.rank != 1:
        raise InvalidArgumentError.of(f"invert_permutation: invert_permutation expects a 1D vector; got {x.shape}")
    order, length = np.asarray(x), x.shape[0]
    if not np.array_equal(np.sort(order), np.arange(length)):
        wrong = [int(i) for i in order if i < 0 or i >= length]
        reason = f"{wrong[0]} is not between 0 and {length}" if wrong else f"{order.tolist()} has an element twice"
        raise InvalidArgumentError.of(f"invert_permutation: {reason}")
    return primitives.ScatterNd(primitives.ExpandDims(x, 1), np.arange(length).astype(order.dtype), [length])


public("newaxis", "compat.v1.newaxis")(newaxis)
