"""Shapes, joining and splitting, choosing and indexing: the parts that are made of other operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow import _core, primitives
from tapeflow.namespace import public
from tapeflow.ops.constants import dims_of
from tapeflow.ops.conversion import convert_to_tensor
from tapeflow.types.dtypes import as_dtype, int32
from tapeflow.types.errors import InvalidArgumentError
from tapeflow.types.tensor_shape import TensorShape, as_shape

newaxis = None


@public("shape")
def shape(input: Any, out_type: Any = None, name: str | None = None) -> Any:  # noqa: A002
    """The shape as an int32 tensor.

    >>> tf.shape([[1, 2, 3]])
    [1, 3]
    """
    dims = (input if _core.is_tensor(input) else convert_to_tensor(input)).shape.as_list()
    return _core.convert_to_tensor(dims, as_dtype(out_type or int32), None, "shape")


@public("shape_n")
def shape_n(input: Any, out_type: Any = int32, name: str | None = None) -> list[Any]:  # noqa: A002
    """The shapes of a list of tensors.

    >>> tf.shape_n([[1], [2, 3]])
    [[1], [2]]
    """
    return [shape(x, out_type) for x in input]


@public("size")
def size(input: Any, out_type: Any = None, name: str | None = None) -> Any:  # noqa: A002
    """The number of elements.

    >>> tf.size([[1, 2, 3]])
    3
    """
    dims = convert_to_tensor(input).shape.as_list()
    return _core.convert_to_tensor(int(np.prod(dims, dtype=np.int64)), as_dtype(out_type or int32), None, "size")


@public("rank")
def rank(input: Any, name: str | None = None) -> Any:  # noqa: A002
    """The number of dimensions.

    >>> tf.rank([[1, 2, 3]])
    2
    """
    return _core.convert_to_tensor(convert_to_tensor(input).shape.rank, int32, None, "rank")


@public("split")
def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split") -> list[Any]:
    """Parts along `axis`: so many equal ones, or parts of the given sizes (one may be -1).

    >>> tf.split([1, 2, 3, 4], 2)
    [[1, 2], [3, 4]]
    """
    if not _core.is_tensor(value):
        value = convert_to_tensor(value)
    axis = int(axis)
    length = value.shape[axis]
    if isinstance(num_or_size_splits, int):
        count = num_or_size_splits
        if count < 1 or length % count:
            raise InvalidArgumentError(
                None, None, f"split: Number of ways to split should evenly divide the split dimension, but got "
                f"split_dim {axis} (size = {length}) and num_split {count}",
            )
        return primitives.SplitV(value, [length // count] * count, axis)
    sizes_or_count = np.asarray(num_or_size_splits)
    if sizes_or_count.ndim == 0:
        return split(value, int(sizes_or_count), axis)
    sizes = [int(s) for s in sizes_or_count]
    if num is not None and num != len(sizes):
        raise ValueError(f"split: num must be the number of sizes, {len(sizes)}; got {num}")
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = length - sum(sizes) - 1
    return primitives.SplitV(value, sizes, axis)


@public("unstack")
def unstack(value: Any, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Any]:
    """The slices along `axis`, as a list.

    >>> tf.unstack([[1, 2], [3, 4]])
    [[1, 2], [3, 4]]
    """
    value = convert_to_tensor(value)
    if value.shape.rank and num is not None and value.shape[axis] != num:
        raise InvalidArgumentError(None, None, f"unstack: num must be {value.shape[axis]}; got {num} for shape {value.shape.as_list()}")
    return primitives.Unpack(value, -1, axis)


@public("gather")
def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    axis: Any = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> Any:
    """The slices of `params` along `axis` at the positions `indices`. The gradient of a variable is an IndexedSlices.

    >>> tf.gather([10, 20, 30], [2, 0])
    [30, 10]
    """
    if axis is None:
        axis = batch_dims
    return primitives.GatherV2(params, indices, axis, batch_dims)


@public("where")
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """`x` where the condition is true and `y` where not; with the condition alone, the positions of true elements.

    >>> tf.where([True, False], [1, 2], [10, 20])
    [1, 20]
    """
    if x is None and y is None:
        return primitives.Where(condition)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return primitives.SelectV2(condition, x, y)


@public("boolean_mask")
def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: str = "boolean_mask") -> Any:
    """The slices of `tensor` whose place in `mask` is true.

    >>> tf.boolean_mask([1, 2, 3], [True, False, True])
    [1, 3]
    """
    tensor, mask = convert_to_tensor(tensor), convert_to_tensor(mask)
    axis = 0 if axis is None else int(axis)
    axis = axis if axis >= 0 else axis + tensor.shape.rank
    masked = mask.shape.rank
    if masked == 0:
        raise ValueError("mask cannot be scalar.")
    if tensor.shape[axis : axis + masked] != mask.shape:
        raise ValueError(f"Shapes {tensor.shape[axis : axis + masked]} and {mask.shape} are incompatible")
    dims = tensor.shape.as_list()
    flat = primitives.Reshape(tensor, [*dims[:axis], -1 if 0 not in dims else int(np.prod(dims[axis : axis + masked])), *dims[axis + masked :]])
    positions = primitives.Squeeze(primitives.Where(primitives.Reshape(mask, [-1])), 1)
    return gather(flat, positions, axis=axis)


@public("slice")
def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Any:  # noqa: A001
    """A block of `size` elements (-1: all that are left) from the position `begin`.

    >>> tf.slice([1, 2, 3, 4], [1], [2])
    [2, 3]
    """
    x = convert_to_tensor(input_)
    begin, size = dims_of(begin), dims_of(size)
    dims = x.shape.as_list()
    if len(begin) != len(dims) or len(size) != len(dims):
        raise InvalidArgumentError(None, None, f"slice: Expected begin and size arguments to be 1-D tensors of size {len(dims)}, but got shapes [{len(begin)}] and [{len(size)}] instead.")
    size = [d - b if s == -1 else s for d, b, s in zip(dims, begin, size)]
    for i, (d, b, s) in enumerate(zip(dims, begin, size)):
        if b < 0 or b > d:
            raise InvalidArgumentError(None, None, f"slice: Expected begin[{i}] in [0, {d}], but got {b}")
        if s < 0 or b + s > d:
            raise InvalidArgumentError(None, None, f"slice: Expected size[{i}] in [0, {d - b}], but got {s}")
    return primitives.StridedSlice(x, begin, [1] * len(dims), size)


@public("pad")
def pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None) -> Any:
    """More elements before and after each dimension: a constant, or a reflection of the tensor at its edge.

    >>> tf.pad([1, 2], [[1, 2]])
    [0, 1, 2, 0, 0]
    """
    x = convert_to_tensor(tensor)
    pairs = np.asarray(paddings)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.shape[0] != x.shape.rank:
        raise InvalidArgumentError(None, None, f"pad: The first dimension of paddings must be the rank of inputs {x.shape.as_list()}; paddings must be of shape [{x.shape.rank}, 2], got {list(pairs.shape)}")
    mode = mode.upper()
    if mode == "CONSTANT":
        value = convert_to_tensor(constant_values, dtype=None if _core.is_tensor(constant_values) else x.dtype)
        return primitives.PadV2(x, [int(p) for p in pairs.reshape(-1)], value)
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise ValueError(f"Value of argument `mode` expected to be one of 'CONSTANT', 'REFLECT', or 'SYMMETRIC'. Received `mode` = {mode}")
    for axis, (before, after) in enumerate(pairs):
        length = x.shape[axis]
        most = length if mode == "SYMMETRIC" else length - 1
        if before > most or after > most or before < 0 or after < 0:
            raise InvalidArgumentError(None, None, f"pad: paddings must be no greater than the dimension size: {before}, {after} greater than {most}")
        edge = 0 if mode == "SYMMETRIC" else 1
        front = np.arange(before - 1 + edge, edge - 1, -1)
        back = np.arange(length - 1 - edge, length - 1 - edge - after, -1)
        positions = np.concatenate([front, np.arange(length), back]).astype(np.int64)
        if before or after:
            x = gather(x, positions, axis=axis)
    return x


@public("ensure_shape")
def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Any:
    """`x`, if its shape is compatible with `shape`; an error otherwise.

    >>> tf.ensure_shape([1, 2], [None])
    [1, 2]
    """
    x = convert_to_tensor(x)
    wanted = as_shape(shape)
    if not x.shape.is_compatible_with(wanted):
        text = "[" + ",".join("?" if d is None else str(d) for d in wanted) + "]" if wanted.rank is not None else "<unknown>"
        raise InvalidArgumentError(None, None, f"ensure_shape: Shape of tensor x {x.shape.as_list()} is not compatible with expected shape {text}.")
    return primitives.Identity(x)


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
def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Any:
    """The shape, as a tensor, that two shapes broadcast to.

    >>> tf.broadcast_dynamic_shape([1, 3], [2, 1])
    [2, 3]
    """
    x, y = convert_to_tensor(shape_x), convert_to_tensor(shape_y)
    try:
        dims = np.broadcast_shapes(tuple(np.asarray(x)), tuple(np.asarray(y)))
    except ValueError as error:
        raise InvalidArgumentError(None, None, f"broadcast_dynamic_shape: Incompatible shapes: {dims_of(x)} vs. {dims_of(y)}") from error
    return _core.convert_to_tensor([int(d) for d in dims], x.dtype, None, "broadcast_dynamic_shape")


public("newaxis")(newaxis)
_core.register_objects({"boolean_mask": boolean_mask})
