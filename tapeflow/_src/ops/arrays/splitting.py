"""`tf.split` and `tf.unstack`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dims_of, holds_symbolic, is_open, shape_argument, whole
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.indexing import boolean_mask as boolean_mask
from tapeflow._src.ops.arrays.indexing import gather as gather
from tapeflow._src.ops.arrays.indexing import where as where
from tapeflow._src.types.errors import InvalidArgumentError


@public("split")
def split(value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split") -> list[Any]:
    """Parts along `axis`: so many equal ones, or parts of the given sizes (one may be -1).

    Args:
        value: The tensor.
        num_or_size_splits: The number of equal parts, or the list of their sizes, in which one may be -1.
        axis: The dimension to cut.
        num: The number of parts, if it is not known from `num_or_size_splits`.
        name: A name for the operation in graphs.

    Returns:
        A list of tensors.

    Gradient:
        The gradients of the parts, joined.

    >>> tf.split([1, 2, 3, 4], 2)
    [<tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>, <tf.Tensor: shape=(2,), dtype=int32,
     numpy=array([3, 4], dtype=int32)>]
    """
    if not _core.is_tensor(value):
        value = convert_to_tensor(value)
    if is_open(value) or holds_symbolic(axis) or holds_symbolic(num_or_size_splits):
        return _split_open(value, num_or_size_splits, axis, num)
    axis, dims = whole(axis), value.shape.as_list()
    if not -len(dims) <= axis < len(dims):
        raise InvalidArgumentError.of(
            f"split: -input rank(-{len(dims)}) <= split_dim < input rank ({len(dims)}), but got {axis}",
        )
    length = dims[axis]
    if isinstance(num_or_size_splits, int):
        count = num_or_size_splits
        if count < 1 or length % count:
            raise InvalidArgumentError.of(
                f"split: Number of ways to split should evenly divide the split dimension, but got "
                f"split_dim {axis} (size = {length}) and num_split {count}",
            )
        return list(primitives.SplitV(value, [length // count] * count, axis))
    sizes_or_count = np.asarray(num_or_size_splits)
    if sizes_or_count.ndim == 0:
        if _core.is_tensor(num_or_size_splits) or sizes_or_count.dtype.kind not in "iu":
            raise ValueError(
                "split: Rank-0 tensors are not supported as the num_or_size_splits argument to split. Argument "
                f"provided: {num_or_size_splits}"
            )
        return split(value, int(sizes_or_count), axis)
    sizes = dims_of(sizes_or_count)
    if num is not None and num != len(sizes):
        raise InvalidArgumentError.of(
            f"split: size of the split_tensor must be 1-D and have the same elements as outputs: {num}; got {sizes}"
        )
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = length - sum(sizes) - 1
    return list(primitives.SplitV(value, sizes, axis))


def _split_open(value: Any, sizes: Any, axis: Any, num: int | None) -> list[Any]:
    """Parts of a tensor whose length along `axis`, or whose parts, are dynamic."""
    if value.shape.rank is not None and not _core.is_symbolic(axis) and value.shape[int(axis)] is not None:
        length = value.shape[int(axis)]
    else:
        length = primitives.Shape(value)[axis]
    if isinstance(sizes, int):
        if _core.is_tensor(length):
            return list(primitives.SplitV(value, [length // sizes] * sizes, axis))
        if sizes < 1 or length % sizes:
            raise InvalidArgumentError.of(
                f"split: Number of ways to split should evenly divide the split dimension, but got "
                f"split_dim {axis} (size = {length}) and num_split {sizes}",
            )
        return list(primitives.SplitV(value, [length // sizes] * sizes, axis))
    parts = shape_argument(sizes)
    if _core.is_tensor(parts):
        if num is None and (parts.shape.rank != 1 or parts.shape[0] is None):
            raise ValueError(f"split: Cannot infer argument `num` from shape {parts}")
        if num is not None:
            parts = primitives.Reshape(parts, [num])
        rest = cast(length, parts.dtype) - primitives.Sum(parts) - 1
        return list(primitives.SplitV(value, primitives.SelectV2(primitives.Equal(parts, -1), rest, parts), axis))
    if parts.count(-1) == 1:
        parts[parts.index(-1)] = length - sum(parts) - 1
    return list(primitives.SplitV(value, parts, axis))


@public("unstack")
def unstack(value: Any, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Any]:
    """The slices along `axis`, as a list.

    Args:
        value: The tensor.
        num: The number of slices; it follows from the shape if None.
        axis: The dimension that disappears.
        name: A name for the operation in graphs.

    Returns:
        A list of tensors.

    Gradient:
        The gradients of the slices, stacked.

    >>> tf.unstack([[1, 2], [3, 4]])
    [<tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)>, <tf.Tensor: shape=(2,), dtype=int32,
     numpy=array([3, 4], dtype=int32)>]
    """
    value = convert_to_tensor(value)
    rank = value.shape.rank
    if num is None and rank is not None and not -rank <= axis < rank:
        raise ValueError(f"unstack: Argument `axis` = {axis} not in range [{-rank}, {rank})")
    if is_open(value):
        return list(primitives.Unpack(value, -1 if num is None else num, axis))
    if rank and num is not None:
        if not -rank <= axis < rank:
            raise InvalidArgumentError.of(f"unstack: axis = {axis} not in [{-rank}, {rank})")
        if value.shape[axis] != num:
            raise InvalidArgumentError.of(
                f"unstack: Input shape axis {axis} must equal {num}, got shape {value.shape.as_list()}"
            )
    if _core.is_symbolic(value) and value.shape.rank and -value.shape.rank <= axis < value.shape.rank:
        num = value.shape[axis]  # set_shape may know it where the operations before do not
    return list(primitives.Unpack(value, -1 if num is None else num, axis))
