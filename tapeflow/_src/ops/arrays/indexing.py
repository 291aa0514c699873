"""Taking and putting elements by position: the parts that are made of other operations."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import installed, public
from tapeflow._src.ops.arrays.constants import (
    dims_of,
    dynamic_dims,
    holds_symbolic,
    is_open,
    numbers_of,
    plain_sizes,
    shape_argument,
)
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import int16, int64
from tapeflow._src.types.errors import InvalidArgumentError


def take(x: Any, positions: Any, axis: int) -> Tensor:
    """The slices of `x` along `axis` at a vector of positions, with a gradient that is dense for every axis."""
    if axis > 0:
        return primitives.GatherV2(x, positions, axis, 0)
    return primitives.Squeeze(primitives.GatherV2(primitives.ExpandDims(x, 0), positions, 1, 0), [0])


@public("gather", node=primitives.GatherV2)
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> Any:
    """The slices of `params` along `axis` at the positions `indices`. The gradient of a variable is an IndexedSlices.

    Args:
        params: The tensor or variable to read from.
        indices: Integers: which slices to take.
        validate_indices: Deprecated; indices are always checked.
        axis: The dimension to take slices along; `batch_dims` if None.
        batch_dims: How many leading dimensions `params` and `indices` share.
        name: A name for the operation in graphs.

    Returns:
        A tensor of shape `params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:]`.

    Gradient:
        `dy` added up at `indices`; `tf.IndexedSlices` for a variable gathered along its first axis.

    >>> tf.gather([10, 20, 30], [2, 0])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([30, 10], dtype=int32)>
    """
    if axis is None:
        axis = batch_dims
    if not _core.is_tensor(params) and hasattr(params, "with_flat_values"):
        return params.__tf_operation__(gather, (params, indices), {"axis": axis, "batch_dims": batch_dims})
    if not _core.is_tensor(indices) and hasattr(indices, "with_flat_values"):
        return indices.__tf_operation__(gather, (params, indices), {"axis": axis, "batch_dims": batch_dims})
    if _core.is_tensor(indices) and indices.dtype == int16:
        indices = cast(indices, "int32")
    return primitives.GatherV2(params, indices, axis, batch_dims)


@public("where")
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """`x` where the condition is true and `y` where not; with the condition alone, the positions of true elements.

    Args:
        condition: A bool tensor.
        x: Where the condition is true; with `y`, or not given.
        y: Where the condition is false.
        name: A name for the operation in graphs.

    Returns:
        A tensor: of the shape to which the three broadcast, or an int64 matrix of positions.

    Gradient:
        `dy` where `condition` is true for `x`, where it is false for `y`.

    >>> tf.where([True, False], [1, 2], [10, 20])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([ 1, 20], dtype=int32)>
    """
    if x is None and y is None:
        if not _core.is_tensor(condition) and hasattr(condition, "with_flat_values"):
            return condition.__tf_operation__(where, (condition,), {})
        return primitives.Where(condition)
    if x is None or y is None:
        raise ValueError(
            "x and y must be either both None or both non-None: x and y must both be non-None or both be None."
        )
    if isinstance(condition, list | tuple) and any(hasattr(value, "with_flat_values") for value in (x, y)):
        condition = convert_to_tensor(condition)  # else a list takes the dtype of the ragged argument
    return primitives.SelectV2(condition, x, y)


@public("boolean_mask")
def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: str = "boolean_mask") -> Any:
    """The slices of `tensor` whose place in `mask` is true.

    Args:
        tensor: The tensor.
        mask: A bool tensor whose shape is the first dimensions of `tensor` from `axis` on.
        axis: The first dimension that the mask covers; 0 if None.
        name: A name for the operation in graphs.

    Returns:
        A tensor.

    Gradient:
        `dy` at the places that were taken, 0 elsewhere.

    >>> tf.boolean_mask([1, 2, 3], [True, False, True])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 3], dtype=int32)>
    """
    if not _core.is_tensor(tensor) and hasattr(tensor, "with_flat_values"):
        return tensor.__tf_operation__(boolean_mask, (tensor, mask), {})
    tensor, mask = convert_to_tensor(tensor), convert_to_tensor(mask)
    if mask.shape.rank is None:
        raise ValueError(
            "Number of mask dimensions must be specified, even if some dimensions are None.  E.g. shape=[None] is ok, "
            "but shape=None is not."
        )
    if axis is None and not _core.is_tracing() and mask.ndim == 1 and tensor.ndim > 0 and len(mask) == len(tensor):
        return take(tensor, primitives.Squeeze(primitives.Where(mask), 1), 0)
    axis = 0 if axis is None else int(axis)
    axis = axis if axis >= 0 else axis + tensor.shape.rank
    masked = mask.shape.rank
    if masked == 0:
        raise ValueError("mask cannot be scalar.")
    if not tensor.shape[axis : axis + masked].is_compatible_with(mask.shape):
        raise ValueError(f"Shapes {tensor.shape[axis : axis + masked]} and {mask.shape} are incompatible")
    dims = dynamic_dims(tensor)
    length = math.prod(dims[axis : axis + masked], start=1)
    flat = primitives.Reshape(tensor, [*dims[:axis], length, *dims[axis + masked :]])
    positions = primitives.Squeeze(primitives.Where(primitives.Reshape(mask, [-1])), 1)
    return take(flat, positions, axis)


@public("slice", node="Slice")
def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Any:
    """A block of `size` elements (-1: all that are left) from the position `begin`.

    Args:
        input_: The tensor.
        begin: The first position in each dimension.
        size: The size in each dimension; -1 for all that is left.
        name: A name for the operation in graphs.

    Returns:
        A tensor of shape `size`.

    Gradient:
        `dy` with zeros around it.

    >>> tf.slice([1, 2, 3, 4], [1], [2])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([2, 3], dtype=int32)>
    """
    # A variable goes to the operation as such: the gradients of its slices are added up in place.
    x = input_ if isinstance(input_, _core.Variable) else convert_to_tensor(input_)
    if is_open(x) or holds_symbolic(begin) or holds_symbolic(size):
        return _slice_open(convert_to_tensor(x), begin, size)
    begin = begin if plain_sizes(begin) else dims_of(begin)
    size = size if plain_sizes(size) else dims_of(size)
    dims = x.shape.as_list()
    if len(begin) != len(dims) or len(size) != len(dims):
        raise InvalidArgumentError.of(
            f"slice: Expected begin and size arguments to be 1-D tensors of size {len(dims)}, but got shapes "
            f"[{len(begin)}] and [{len(size)}] instead.",
        )
    size = [d - b if s == -1 else s for d, b, s in zip(dims, begin, size)]
    for i, (d, b, s) in enumerate(zip(dims, begin, size)):
        if b < 0 or b > d:
            raise InvalidArgumentError.of(f"slice: Expected begin[{i}] in [0, {d}], but got {b}")
        if s < 0 or b + s > d:
            raise InvalidArgumentError.of(f"slice: Expected size[{i}] in [0, {d - b}], but got {s}")
    return primitives.StridedSlice(x, begin, [1] * len(dims), size)


def _slice_open(x: Any, begin: Any, size: Any) -> Any:
    """A block whose place or size, or the tensor around it, is dynamic."""
    begin, size = shape_argument(begin), numbers_of(size)
    shape = primitives.Shape(x, int64)
    count = []
    for i, number in enumerate(size):
        if _core.is_tensor(number):
            left = shape[i] - cast(begin[i], int64)
            count.append(primitives.SelectV2(primitives.Equal(number, -1), left, cast(number, int64)))
        else:
            count.append(shape[i] - cast(begin[i], int64) if number == -1 else number)
    return primitives.StridedSlice(x, begin, [1] * len(size), count)


@public("strided_slice")
def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Any:
    """The elements that `input_[begin:end:strides]` would give; bit i of a mask speaks of entry i.

    >>> tf.strided_slice([1, 2, 3, 4], [0], [4], [2])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 3], dtype=int32)>
    """
    key = slice_key(begin, end, strides, begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    return convert_to_tensor(input_)[key]


def slice_key(
    begin: Any,
    end: Any,
    strides: Any,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> tuple[Any, ...]:
    """The Python index expression that TensorFlow's begin, end, strides and masks describe."""
    first, last = numbers_of(begin), numbers_of(end)
    steps = [1] * len(first) if strides is None else numbers_of(strides)
    if not len(first) == len(last) == len(steps):
        raise InvalidArgumentError.of(
            "strided_slice: Expected begin, end, and strides to be 1D equal size tensors, but got shapes "
            f"[{len(first)}], [{len(last)}], and [{len(steps)}] instead.",
        )
    key: list[Any] = []
    for i, (start, stop, step) in enumerate(zip(first, last, steps)):
        bit = 1 << i
        if ellipsis_mask & bit:
            key.append(Ellipsis)
        elif new_axis_mask & bit:
            key.append(None)
        elif not _core.is_tensor(step) and step == 0:
            raise InvalidArgumentError.of(f"strided_slice: strides[{i}] must be non-zero")
        elif shrink_axis_mask & bit:
            if not _core.is_tensor(step) and step < 0:
                raise InvalidArgumentError.of("strided_slice: only stride 1 allowed on non-range indexing.")
            key.append(start)
        else:
            key.append(builtins.slice(None if begin_mask & bit else start, None if end_mask & bit else stop, step))
    return tuple(key)


def update_slice(x: Any, key: tuple[Any, ...], value: Any) -> Any:
    """`x` with the elements `x[key]` replaced by `value`, which is broadcast to them."""
    x, value = convert_to_tensor(x), convert_to_tensor(value)
    dims = x.shape.as_list()
    places = convert_to_tensor(np.arange(int(np.prod(dims, dtype=np.int64))).reshape(dims))[key]
    updated = primitives.TensorScatterUpdate(
        primitives.Reshape(x, [-1]),
        primitives.ExpandDims(places, -1),
        primitives.BroadcastTo(value, places.shape.as_list()),
    )
    return primitives.Reshape(updated, dims)


def _rows_for(index: Any, values: Any, rest: list[int | None]) -> Tensor:
    """One row of shape `rest` for each element of `index`; while tracing, their number may be unknown."""
    count, rank = index.shape.num_elements(), index.shape.rank
    if count is not None or rank is None or 0 in rest:
        return primitives.Reshape(values, [int(np.prod(index.shape.as_list(), dtype=np.int64)), *rest])
    start = primitives.Shape(values)[:rank]
    equal = primitives.All(primitives.Equal(start, primitives.Shape(index)))
    text = "dynamic_stitch: the shape of each tensor in `data` must start with the shape of its `indices`"
    return primitives.Reshape(_core.required(values, equal, text), [-1, *rest])


@public("dynamic_stitch")
def dynamic_stitch(indices: Any, data: Any, name: str | None = None) -> Tensor:
    """The slices of the tensors in `data` put at the places in `indices`; of several for one place the last counts.

    >>> tf.dynamic_stitch([[0, 2], [1]], [[1, 3], [2]])
    <tf.Tensor: shape=(3,), dtype=int32, numpy=array([1, 2, 3], dtype=int32)>
    """
    if len(indices) != len(data) or not len(indices):
        raise InvalidArgumentError.of(
            f"dynamic_stitch: List argument 'indices' of length {len(indices)} must match list argument 'data' of "
            f"length {len(data)}",
        )
    places, rows, inner = [], [], None
    hint = next((d.dtype for d in data if _core.is_tensor(d)), None)
    for index, values in zip(indices, data):
        index, values = convert_to_tensor(index, dtype_hint="int32"), convert_to_tensor(values, dtype_hint=hint)
        rank = index.shape.rank
        if not values.shape[:rank].is_compatible_with(index.shape):
            raise InvalidArgumentError.of(
                f"dynamic_stitch: data.shape = {values.shape.as_list()} does not start with indices.shape = "
                f"{index.shape.as_list()}",
            )
        rest = values.shape.as_list()[rank:]
        if inner is not None and rest != inner:
            raise InvalidArgumentError.of(
                f"dynamic_stitch: Need data[0].shape[{rank}:] = data[i].shape[{rank}:], got {inner} and {rest}",
            )
        inner = rest
        places.append(primitives.Reshape(index, [-1]))
        rows.append(_rows_for(index, values, rest))
    where = primitives.ConcatV2(places, 0)
    y = primitives.StitchRows(where, primitives.ConcatV2(rows, 0))
    if _core.is_symbolic(y) and (known := _core.known_elements(where)) and None not in known:
        y.set_shape([max(known) + 1, *y.shape.as_list()[1:]])
    return y


_core.register_objects({"boolean_mask": installed(boolean_mask)})
