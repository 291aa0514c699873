"""`tf.nn.with_space_to_batch`: operations on the dilated grid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dims_of
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.arrays.padding import pad

# ---- operations on the dilated grid


@public("nn.with_space_to_batch", "compat.v1.nn.with_space_to_batch")
def with_space_to_batch(
    input: Any,
    dilation_rate: Any,
    padding: Any,
    op: Callable[[Any, int, str], Any],
    filter_shape: Any = None,
    spatial_dims: Any = None,
    data_format: str | None = None,
) -> Any:
    """`op` applied to each of the interleaved grids of the spatial dimensions, as if its window had holes.

    >>> tf.nn.with_space_to_batch(tf.ones([1, 4, 1]), [2], "VALID", lambda x, dims, padding: x, [1]).shape
    TensorShape([1, 4, 1])
    """
    x = convert_to_tensor(input)
    rates = [int(r) for r in dims_of(dilation_rate)]
    if any(r < 1 for r in rates):
        raise ValueError(f"`dilation_rate` must be positive. Received: dilation_rate={dilation_rate}")
    first = isinstance(data_format, str) and data_format.startswith("NC")
    start = 2 if first else 1
    axes = list(range(start, start + len(rates))) if spatial_dims is None else [int(d) for d in spatial_dims]
    if sorted(set(axes)) != axes or any(axis < 1 for axis in axes):
        raise ValueError(
            "`spatial_dims` must be a monotonically increasing sequence of positive integers. "
            f"Received: spatial_dims={spatial_dims}"
        )
    if len(axes) != len(rates):
        raise ValueError(f"`spatial_dims` must have one number per dilation rate; got {axes} and {rates}")
    if all(r == 1 for r in rates):
        return op(x, len(rates), padding)
    if padding not in ("SAME", "VALID"):
        raise ValueError(f"`padding` must be one of 'SAME' or 'VALID'. Received: padding={padding}")
    base = [(0, 0)] * len(rates)
    if padding == "SAME":
        if filter_shape is None:
            raise ValueError("`filter_shape` must be specified for `padding='SAME'`.")
        reach = [(int(f) - 1) * r for f, r in zip(dims_of(filter_shape), rates)]
        base = [(extra // 2, extra - extra // 2) for extra in reach]
    dims = x.shape.as_list()
    pads, crops = [(0, 0)] * len(dims), []
    for axis, rate, (before, after) in zip(axes, rates, base):
        extra = -(dims[axis] + before + after) % rate
        pads[axis] = (before, after + extra)
        crops.append(extra)
    y = op(_space_to_batch(pad(x, pads), axes, rates), len(rates), "VALID")
    y = _batch_to_space(y, axes, rates)
    kept = list(y.shape.as_list())
    for axis, extra in zip(axes, crops):
        kept[axis] -= extra
    return primitives.StridedSlice(y, [0] * len(kept), [1] * len(kept), kept)


def _space_to_batch(x: Any, axes: list[int], rates: list[int]) -> Tensor:
    """Moves the position inside blocks of `rates` cells into the batch, block positions outermost."""
    dims = x.shape.as_list()
    split: list[int] = []
    blocks: list[int] = []
    rest: list[int] = []
    for axis, size in enumerate(dims):
        rest.append(len(split))
        if axis in axes:
            rate = rates[axes.index(axis)]
            split += [size // rate, rate]
            blocks.append(len(split) - 1)
        else:
            split.append(size)
    moved = primitives.Transpose(primitives.Reshape(x, split), blocks + rest)
    batch = dims[0]
    for rate in rates:
        batch *= rate
    shape = [size // rates[axes.index(axis)] if axis in axes else size for axis, size in enumerate(dims)]
    return primitives.Reshape(moved, [batch, *shape[1:]])


def _batch_to_space(x: Any, axes: list[int], rates: list[int]) -> Tensor:
    """The inverse of `_space_to_batch`."""
    dims = x.shape.as_list()
    blocks = 1
    for rate in rates:
        blocks *= rate
    opened = primitives.Reshape(x, [*rates, dims[0] // blocks, *dims[1:]])
    order: list[int] = []
    shape: list[int] = []
    for axis, size in enumerate(dims):
        order.append(len(rates) + axis)
        if axis in axes:
            order.append(axes.index(axis))
            size *= rates[axes.index(axis)]
        shape.append(size)
    return primitives.Reshape(primitives.Transpose(opened, order), [dims[0] // blocks, *shape[1:]])
