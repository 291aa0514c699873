"""Grayscale dilation and erosion."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.arrays.indexing import gather
from tapeflow._src.ops.arrays.padding import pad
from tapeflow._src.ops.nn.window_arguments import (
    padding_of,
    per_dimension,
)
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_spec import TensorSpec

# ---- morphology


def window_positions(length: int, size: int, stride: int, rate: int, padding: str) -> tuple[np.ndarray, int, int]:
    """The cells (out, size) that windows along one axis cover, and the padding before and after that they need."""
    reach = (size - 1) * rate + 1
    if padding == "SAME":
        out = -(-length // stride)
        total = max(0, (out - 1) * stride + reach - length)
        before = total // 2
    else:
        out = max(0, (length - reach) // stride + 1)
        total = before = 0
    positions = np.arange(out)[:, None] * stride + np.arange(size)[None, :] * rate
    return positions, before, total - before


def _dilate(who: str, x: Any, filters: Any, strides: list[int], padding: str, rates: list[int]) -> Tensor:
    x = convert_to_tensor(x)
    filters = convert_to_tensor(filters, dtype_hint=x.dtype)
    if x.shape.rank != 4 or filters.shape.rank != 3 or x.shape[-1] != filters.shape[-1]:
        raise InvalidArgumentError.of(
            f"{who}: input must be [batch, height, width, depth] and filters [height, width, depth]; got "
            f"{x.shape.as_list()} and {filters.shape.as_list()}",
        )
    kind, _ = padding_of(padding, 2, False)
    steps, dilation = per_dimension(strides, 2, False, "strides"), per_dimension(rates, 2, False, "rates")
    if min(*steps, *dilation) < 1:
        raise InvalidArgumentError.of(f"{who}: strides and rates must be positive; got {steps} and {dilation}")
    height, width, depth = filters.shape.as_list()
    rows, top, bottom = window_positions(x.shape[1], height, steps[0], dilation[0], kind)
    columns, left, right = window_positions(x.shape[2], width, steps[1], dilation[1], kind)
    lowest = x.dtype.min
    if top or bottom or left or right:
        x = pad(x, [[0, 0], [top, bottom], [left, right], [0, 0]], constant_values=lowest)
    cells = gather(gather(x, rows.reshape(-1), axis=1), columns.reshape(-1), axis=2)
    shape = [x.shape[0], len(rows), height, len(columns), width, depth]
    cells = primitives.Transpose(primitives.Reshape(cells, shape), [0, 1, 3, 5, 2, 4])
    sums = cells + primitives.Transpose(filters, [2, 0, 1])
    flat = primitives.Reshape(sums, [*sums.shape.as_list()[:4], height * width])
    # The first maximum alone gets the gradient.
    best = primitives.ExpandDims(primitives.ArgMax(flat, -1), -1)
    return primitives.Squeeze(primitives.GatherV2(flat, best, 4, 4), [4])


def _check_nhwc(data_format: str) -> None:
    if data_format != "NHWC":
        raise ValueError(
            f"`data_format` values other  than 'NHWC' are not supported. Received: data_format={data_format}"
        )


@public("nn.dilation2d")
def dilation2d(
    input: Any, filters: Any, strides: Any, padding: str, data_format: str, dilations: Any, name: str | None = None
) -> Tensor:
    """Grayscale dilation: the largest of `input + filters` in each window.

    >>> tf.nn.dilation2d([[[[1.], [3.]]]], [[[0.], [1.]]], [1, 1, 1, 1], "VALID", "NHWC", [1, 1, 1, 1])
    <tf.Tensor: shape=(1, 1, 1, 1), dtype=float32, numpy=array([[[[4.]]]], dtype=float32)>
    """
    _check_nhwc(data_format)
    return _dilate("nn.dilation2d", input, filters, strides, padding, dilations)


@public("nn.erosion2d")
def erosion2d(
    value: Any, filters: Any, strides: Any, padding: str, data_format: str, dilations: Any, name: str | None = None
) -> Tensor:
    """Grayscale erosion: the smallest of `value` minus the reversed `filters` in each window.

    >>> tf.nn.erosion2d([[[[1.], [3.]]]], [[[0.], [2.]]], [1, 1, 1, 1], "VALID", "NHWC", [1, 1, 1, 1])
    <tf.Tensor: shape=(1, 1, 1, 1), dtype=float32, numpy=array([[[[-1.]]]], dtype=float32)>
    """
    _check_nhwc(data_format)
    value = convert_to_tensor(value)
    filters = convert_to_tensor(filters, dtype_hint=value.dtype)
    flipped = primitives.ReverseV2(filters, [0, 1])
    return -_dilate("nn.erosion2d", -value, flipped, strides, padding, dilations)


def _morphology_spec(x: Any, filters: Any, *_: Any, **__: Any) -> TensorSpec:
    """What is known of the result while the sizes of the images are not."""
    images, depth = convert_to_tensor(x), convert_to_tensor(filters).shape.with_rank(3)[2:]
    dims = images.shape.with_rank(4)
    return TensorSpec([dims[0], None, None, *dims[3:].merge_with(depth)], images.dtype)


dilation2d.result_specs = lambda input, filters, *_, **__: _morphology_spec(input, filters)  # type: ignore[attr-defined]
erosion2d.result_specs = lambda value, filters, *_, **__: _morphology_spec(value, filters)  # type: ignore[attr-defined]
