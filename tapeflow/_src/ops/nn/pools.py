"""Pools: the largest, mean or eroded value of windows, over the pooling primitives."""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.indexing import gather
from tapeflow._src.ops.arrays.padding import pad
from tapeflow._src.ops.nn.window_arguments import (
    geometry,
    padding_of,
    per_dimension,
    to_channels_first,
    to_channels_last,
)
from tapeflow._src.types.dtypes import as_dtype, int64
from tapeflow._src.types.errors import InvalidArgumentError, UnimplementedError

MaxPoolWithArgmax = namedtuple("MaxPoolWithArgmax", ["output", "argmax"])
FractionalMaxPool = namedtuple("FractionalMaxPool", ["output", "row_pooling_sequence", "col_pooling_sequence"])
FractionalAvgPool = namedtuple("FractionalAvgPool", ["output", "row_pooling_sequence", "col_pooling_sequence"])


def _pool(
    who: str,
    primitive: Any,
    x: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None,
    spatial: int,
    dilations: Any = None,
) -> Any:
    """A pool over windows of `spatial` spatial dimensions."""
    x = convert_to_tensor(x)
    if spatial == 1 and data_format in ("NHWC", "NCHW"):
        data_format = "NWC" if data_format == "NHWC" else "NCW"
    first, kind, pads, steps, spread = geometry(strides, padding, data_format, dilations, spatial)
    if x.shape.rank != spatial + 2:
        raise InvalidArgumentError.of(f"{who}: Input must be {spatial + 2}-dimensional; got {x.shape.as_list()}")
    whole = isinstance(ksize, list | tuple) and len(ksize) == spatial + 2
    if primitive is primitives.MaxPool and whole and ksize[1 if first else -1] != 1:
        return _depth_pool(who, x, list(ksize), list(strides), first)
    window = [ksize] * spatial if type(ksize) is int else per_dimension(ksize, spatial, first, "ksize")
    if min(window) < 1:
        raise InvalidArgumentError.of(
            f"{who}: Sliding window ksize must be positive. The specified or inferred ksize is: {window}"
        )
    if pads and any(p >= window[i // 2] for i, p in enumerate(pads)):
        raise InvalidArgumentError.of(
            f"{who}: paddings need to be smaller than the window size; got {pads} and {window}"
        )
    y = primitive(to_channels_last(x) if first else x, window, steps, kind, pads, spread)
    return to_channels_first(y) if first else y


def _depth_pool(who: str, x: Any, ksize: list[int], strides: list[int], first: bool) -> Any:
    """The largest of each group of neighbouring channels."""
    depth = ksize[1 if first else -1]
    if ksize.count(1) != len(ksize) - 1 or strides != ksize or first:
        raise UnimplementedError.of(
            f"{who}: Depthwise max pooling requires the depth window to equal the depth stride; got {ksize}"
        )
    if x.shape[-1] % depth:
        raise UnimplementedError.of(
            f"{who}: Depthwise max pooling requires the depth window to evenly divide the input depth"
        )
    dims = x.shape.as_list()
    return primitives.Max(primitives.Reshape(x, [*dims[:-1], dims[-1] // depth, depth]), [-1], False)


@public("nn.max_pool1d", "compat.v1.nn.max_pool1d")
def max_pool1d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NWC",
    name: str | None = None,
) -> Any:
    """The largest value in each window of a sequence (N, W, C).

    >>> tf.nn.max_pool1d([[[1.], [3.], [2.], [4.]]], 2, 2, "VALID")[0, :, 0]
    [3., 4.]
    """
    return _pool("nn.max_pool1d", primitives.MaxPool, input, ksize, strides, padding, data_format, 1)


@public("nn.max_pool2d", "compat.v1.nn.max_pool2d")
def max_pool2d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Any:
    """The largest value in each window of an image (N, H, W, C).

    >>> tf.nn.max_pool2d(tf.ones([1, 4, 4, 1]), 2, 2, "VALID").shape
    TensorShape([1, 2, 2, 1])
    """
    return _pool("nn.max_pool2d", primitives.MaxPool, input, ksize, strides, padding, data_format, 2)


@public("nn.max_pool3d", "compat.v1.nn.max_pool3d")
def max_pool3d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> Any:
    """The largest value in each window of a volume (N, D, H, W, C).

    >>> tf.nn.max_pool3d(tf.ones([1, 4, 4, 4, 1]), 2, 2, "VALID").shape
    TensorShape([1, 2, 2, 2, 1])
    """
    return _pool("nn.max_pool3d", primitives.MaxPool, input, ksize, strides, padding, data_format, 3)


@public("nn.avg_pool1d", "compat.v1.nn.avg_pool1d")
def avg_pool1d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NWC",
    name: str | None = None,
) -> Any:
    """The mean of each window of a sequence (N, W, C); cells outside do not count.

    >>> tf.nn.avg_pool1d([[[1.], [3.], [2.], [4.]]], 2, 2, "VALID")[0, :, 0]
    [2., 3.]
    """
    return _pool("nn.avg_pool1d", primitives.AvgPool, input, ksize, strides, padding, data_format, 1)


@public("nn.avg_pool2d")
def avg_pool2d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
) -> Any:
    """The mean of each window of an image (N, H, W, C); cells outside do not count.

    >>> tf.nn.avg_pool2d(tf.ones([1, 4, 4, 1]), 2, 2, "VALID").shape
    TensorShape([1, 2, 2, 1])
    """
    return _pool("nn.avg_pool2d", primitives.AvgPool, input, ksize, strides, padding, data_format, 2)


@public("nn.avg_pool3d", "compat.v1.nn.avg_pool3d")
def avg_pool3d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> Any:
    """The mean of each window of a volume (N, D, H, W, C); cells outside do not count.

    >>> tf.nn.avg_pool3d(tf.ones([1, 4, 4, 4, 1]), 2, 2, "VALID").shape
    TensorShape([1, 2, 2, 2, 1])
    """
    return _pool("nn.avg_pool3d", primitives.AvgPool, input, ksize, strides, padding, data_format, 3)


def _spatial_rank(x: Any) -> int:
    if x.shape.rank not in (3, 4, 5):
        raise ValueError(
            f"`input.shape.rank` must be 3, 4 or 5. Received: input.shape={x.shape} of rank {x.shape.rank}."
        )
    return int(x.shape.rank - 2)


@public("nn.max_pool", "compat.v1.nn.max_pool_v2")
def max_pool(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Any:
    """The largest value in each window, over 1, 2 or 3 spatial dimensions by the rank of the input.

    >>> tf.nn.max_pool([[[1.], [3.], [2.], [4.]]], 2, 2, "VALID")[0, :, 0]
    [3., 4.]
    """
    x = convert_to_tensor(input)
    return _pool("nn.max_pool", primitives.MaxPool, x, ksize, strides, padding, data_format, _spatial_rank(x))


@public("nn.avg_pool", "compat.v1.nn.avg_pool_v2")
def avg_pool(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> Any:
    """The mean of each window, over 1, 2 or 3 spatial dimensions by the rank of the input.

    >>> tf.nn.avg_pool([[[1.], [3.], [2.], [4.]]], 2, 2, "VALID")[0, :, 0]
    [2., 3.]
    """
    x = convert_to_tensor(input)
    return _pool("nn.avg_pool", primitives.AvgPool, x, ksize, strides, padding, data_format, _spatial_rank(x))


@public("compat.v1.nn.max_pool")
def max_pool_v1(
    value: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Any:
    """The largest value in each window of an image (N, H, W, C).

    >>> tf.compat.v1.nn.max_pool(tf.ones([1, 4, 4, 1]), [1, 2, 2, 1], [1, 2, 2, 1], "VALID").shape
    TensorShape([1, 2, 2, 1])
    """
    return max_pool2d(value if input is None else input, ksize, strides, padding, data_format)


@public("compat.v1.nn.avg_pool", "compat.v1.nn.avg_pool2d")
def avg_pool_v1(
    value: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Any:
    """The mean of each window of an image (N, H, W, C).

    >>> tf.compat.v1.nn.avg_pool(tf.ones([1, 4, 4, 1]), [1, 2, 2, 1], [1, 2, 2, 1], "VALID").shape
    TensorShape([1, 2, 2, 1])
    """
    return avg_pool2d(value if input is None else input, ksize, strides, padding, data_format)


@public("nn.pool")
def pool(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """A pool of the type "MAX" or "AVG", with as many spatial dimensions as the window.

    >>> tf.nn.pool([[[1.], [3.], [2.], [4.]]], [2], "MAX")[0, :, 0]
    [3., 3., 4.]
    """
    spatial = len(list(window_shape))
    if spatial not in (1, 2, 3):
        raise ValueError(f"`len(window_shape)` must be 1, 2, or 3. Received: window_shape={window_shape}")
    kinds = {"MAX": primitives.MaxPool, "AVG": primitives.AvgPool}
    if pooling_type not in kinds:
        raise ValueError(f"{spatial}-D {pooling_type} pooling is not supported.")
    first = data_format is not None and data_format.startswith("NC")
    steps, spread = (
        per_dimension(strides, spatial, first, "strides"),
        per_dimension(dilations, spatial, first, "dilations"),
    )
    if max(spread) > 1 and padding == "SAME":
        raise ValueError(
            "pooling with 'SAME' padding is not implemented for `dilation_rate` > 1. "
            f"Received: padding={padding} and dilation_rate={spread}"
        )
    if max(spread) > 1 and max(steps) > 1:
        raise ValueError(
            "`strides > 1` not supported in conjunction with `dilation_rate > 1`. "
            f"Received: strides={steps} and dilation_rate={spread}"
        )
    return _pool("nn.pool", kinds[pooling_type], input, window_shape, steps, padding, data_format, spatial, spread)


@public("compat.v1.nn.pool")
def pool_v1(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    padding: Any,
    dilation_rate: Any = None,
    strides: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Any:
    """A pool of the type "MAX" or "AVG", with as many spatial dimensions as the window.

    >>> tf.compat.v1.nn.pool([[[1.], [3.], [2.], [4.]]], [2], "MAX", "VALID")[0, :, 0]
    [3., 3., 4.]
    """
    spread = dilation_rate if dilations is None else dilations
    return pool(input, window_shape, pooling_type, strides, padding, data_format, spread)


@public("nn.max_pool_with_argmax")
def max_pool_with_argmax(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    output_dtype: Any = int64,
    include_batch_in_index: bool = False,
    name: str | None = None,
) -> MaxPoolWithArgmax:
    """The largest value in each window of an image, and its position in the flattened image.

    >>> tf.nn.max_pool_with_argmax([[[[1.], [5.]], [[2.], [3.]]]], 2, 2, "VALID").argmax
    [[[[1]]]]
    """
    if data_format != "NHWC":
        raise ValueError(
            f"`data_format` values other  than 'NHWC' are not supported. Received: data_format={data_format}"
        )
    x = convert_to_tensor(input)
    if x.shape.rank != 4:
        raise InvalidArgumentError.of(f"nn.max_pool_with_argmax: Input must be 4-dimensional; got {x.shape}")
    kind, pads = padding_of(padding, 2, False)
    window, steps = per_dimension(ksize, 2, False, "ksize"), per_dimension(strides, 2, False, "strides")
    output, argmax = primitives.MaxPoolWithArgmax(x, window, steps, kind, pads, [1, 1], bool(include_batch_in_index))
    return MaxPoolWithArgmax(output, cast(argmax, as_dtype(output_dtype)))


@public("compat.v1.nn.max_pool_with_argmax")
def max_pool_with_argmax_v1(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    Targmax: Any = None,
    name: str | None = None,
    output_dtype: Any = None,
    include_batch_in_index: bool = False,
) -> MaxPoolWithArgmax:
    """The largest value in each window of an image, and its position in the flattened image.

    >>> x = [[[[1.], [5.]], [[2.], [3.]]]]
    >>> tf.compat.v1.nn.max_pool_with_argmax(x, [1, 2, 2, 1], [1, 2, 2, 1], "VALID").argmax
    [[[[1]]]]
    """
    dtype = Targmax or output_dtype or int64
    return max_pool_with_argmax(input, ksize, strides, padding, data_format, dtype, include_batch_in_index)


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


def _dilate(who: str, x: Any, filters: Any, strides: list[int], padding: str, rates: list[int]) -> Any:
    x = convert_to_tensor(x)
    filters = convert_to_tensor(filters, dtype_hint=x.dtype)
    if x.shape.rank != 4 or filters.shape.rank != 3 or x.shape[-1] != filters.shape[-1]:
        raise InvalidArgumentError.of(
            f"{who}: input must be [batch, height, width, depth] and filters [height, width, depth]; got "
            f"{x.shape.as_list()} and {filters.shape.as_list()}",
        )
    kind, _ = padding_of(padding, 2, False)
    steps, spread = per_dimension(strides, 2, False, "strides"), per_dimension(rates, 2, False, "rates")
    height, width, depth = filters.shape.as_list()
    rows, top, bottom = window_positions(x.shape[1], height, steps[0], spread[0], kind)
    columns, left, right = window_positions(x.shape[2], width, steps[1], spread[1], kind)
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
    input: Any,
    filters: Any,
    strides: Any,
    padding: str,
    data_format: str,
    dilations: Any,
    name: str | None = None,
) -> Any:
    """Grayscale dilation: the largest of `input + filters` in each window.

    >>> tf.nn.dilation2d([[[[1.], [3.]]]], [[[0.], [1.]]], [1, 1, 1, 1], "VALID", "NHWC", [1, 1, 1, 1])
    [[[[4.]]]]
    """
    _check_nhwc(data_format)
    return _dilate("nn.dilation2d", input, filters, strides, padding, dilations)


@public("compat.v1.nn.dilation2d")
def dilation2d_v1(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: Any = None,
    name: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Any:
    """Grayscale dilation: the largest of `input + filter` in each window.

    >>> tf.compat.v1.nn.dilation2d([[[[1.], [3.]]]], [[[0.], [1.]]], [1, 1, 1, 1], [1, 1, 1, 1], "VALID")
    [[[[4.]]]]
    """
    spread = rates if dilations is None else dilations
    return _dilate("nn.dilation2d", input, filter if filters is None else filters, strides, padding, spread)


@public("nn.erosion2d")
def erosion2d(
    value: Any,
    filters: Any,
    strides: Any,
    padding: str,
    data_format: str,
    dilations: Any,
    name: str | None = None,
) -> Any:
    """Grayscale erosion: the smallest of `value` minus the reversed `filters` in each window.

    >>> tf.nn.erosion2d([[[[1.], [3.]]]], [[[0.], [2.]]], [1, 1, 1, 1], "VALID", "NHWC", [1, 1, 1, 1])
    [[[[-1.]]]]
    """
    _check_nhwc(data_format)
    return erosion2d_v1(value, filters, strides, dilations, padding)


@public("compat.v1.nn.erosion2d")
def erosion2d_v1(value: Any, kernel: Any, strides: Any, rates: Any, padding: str, name: str | None = None) -> Any:
    """Grayscale erosion: the smallest of `value` minus the reversed `kernel` in each window.

    >>> tf.compat.v1.nn.erosion2d([[[[1.], [3.]]]], [[[0.], [2.]]], [1, 1, 1, 1], [1, 1, 1, 1], "VALID")
    [[[[-1.]]]]
    """
    value = convert_to_tensor(value)
    kernel = convert_to_tensor(kernel, dtype_hint=value.dtype)
    flipped = primitives.ReverseV2(kernel, [0, 1])
    return -_dilate("nn.erosion2d", -value, flipped, strides, padding, rates)


# ---- fractional pools: windows of two neighbouring sizes in random order


def _pooling_sequence(length: int, ratio: float, pseudo_random: bool, random: np.random.Generator) -> np.ndarray:
    """The borders of about `length / ratio` windows of two neighbouring sizes, in random order."""
    count = math.floor(length / ratio)
    small = length // count
    if pseudo_random:
        alpha = length / count
        most = (small + 1) / alpha if alpha != small else 1.0
        start = random.uniform() * min(most, 1.0 / max(alpha - small, 1e-12), 1.0)
        borders: np.ndarray = np.floor(alpha * (np.arange(count + 1) + start)).astype(np.int64)
        borders -= borders[0]
        borders[-1] = length
        return borders
    sizes = np.full(count, small)
    sizes[: length - small * count] += 1
    random.shuffle(sizes)
    return np.concatenate([[0], np.cumsum(sizes)])


def _fractional(who: str, x: Any, ratio: Any, pseudo_random: bool, seed: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    x = convert_to_tensor(x)
    if x.shape.rank != 4:
        raise InvalidArgumentError.of(f"{who}: tensor_in must be 4-dimensional; got {x.shape.as_list()}")
    numbers = [float(r) for r in np.atleast_1d(np.asarray(ratio))]
    if len(numbers) == 1:
        numbers = [1.0, numbers[0], numbers[0], 1.0]
    elif len(numbers) == 2:
        numbers = [1.0, *numbers, 1.0]
    if len(numbers) != 4 or numbers[0] != 1 or numbers[3] != 1:
        raise ValueError(f"pooling_ratio should be of length 1, 2 or 4 with 1 for batch and depth; got {ratio}")
    if min(numbers) < 1:
        raise ValueError(f"pooling_ratio should be >= 1.0; got {ratio}")
    for axis in (1, 2):
        if x.shape[axis] < numbers[axis]:
            raise InvalidArgumentError.of(
                f"{who}: Pooling ratio is higher than input dimension size for dimension {axis}. Input dim size: "
                f"{x.shape[axis]} pooling ratio: {numbers[axis]}",
            )
    random = np.random.default_rng(abs(int(seed)) if seed else None)
    rows = _pooling_sequence(x.shape[1], numbers[1], pseudo_random, random)
    columns = _pooling_sequence(x.shape[2], numbers[2], pseudo_random, random)
    return x, rows, columns


def _window_cells(borders: np.ndarray, overlapping: bool) -> tuple[np.ndarray, np.ndarray]:
    """The cells that each window covers, the last one repeated up to the widest, and which are not repeats."""
    ends = borders[1:] + (1 if overlapping else 0)
    ends[-1] = borders[-1]
    widest = int((ends - borders[:-1]).max())
    cells = borders[:-1, None] + np.arange(widest)[None, :]
    real = cells < ends[:, None]
    return np.minimum(cells, ends[:, None] - 1), real


def _fractional_cells(x: Any, rows: np.ndarray, columns: np.ndarray, overlapping: bool) -> tuple[Any, np.ndarray]:
    """The cells (N, out height, out width, C, cells of a window), and which are not repeats."""
    row_cells, row_real = _window_cells(rows, overlapping)
    column_cells, column_real = _window_cells(columns, overlapping)
    cells = gather(gather(x, row_cells.reshape(-1), axis=1), column_cells.reshape(-1), axis=2)
    (height, tall), (width, wide) = row_cells.shape, column_cells.shape
    batch, depth = x.shape[0], x.shape[3]
    cells = primitives.Transpose(
        primitives.Reshape(cells, [batch, height, tall, width, wide, depth]), [0, 1, 3, 5, 2, 4]
    )
    real = row_real[:, None, :, None] & column_real[None, :, None, :]
    return primitives.Reshape(cells, [batch, height, width, depth, tall * wide]), real.reshape(
        height, width, 1, tall * wide
    )


@public("nn.fractional_max_pool")
def fractional_max_pool(
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> FractionalMaxPool:
    """The largest value in windows whose sizes are random, so that the size falls by about `pooling_ratio`.

    >>> tf.nn.fractional_max_pool(tf.ones([1, 6, 6, 1]), 1.5, seed=1).output.shape
    TensorShape([1, 4, 4, 1])
    """
    x, rows, columns = _fractional("nn.fractional_max_pool", value, pooling_ratio, pseudo_random, seed)
    cells, _ = _fractional_cells(x, rows, columns, overlapping)
    best = primitives.ExpandDims(primitives.ArgMax(cells, -1), -1)
    output = primitives.Squeeze(primitives.GatherV2(cells, best, 4, 4), [4])
    return FractionalMaxPool(output, convert_to_tensor(rows), convert_to_tensor(columns))


@public("nn.fractional_avg_pool")
def fractional_avg_pool(
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    seed: int = 0,
    name: str | None = None,
) -> FractionalAvgPool:
    """The mean of windows whose sizes are random, so that the size falls by about `pooling_ratio`.

    >>> tf.nn.fractional_avg_pool(tf.ones([1, 6, 6, 1]), 1.5, seed=1).output.shape
    TensorShape([1, 4, 4, 1])
    """
    x, rows, columns = _fractional("nn.fractional_avg_pool", value, pooling_ratio, pseudo_random, seed)
    cells, real = _fractional_cells(x, rows, columns, overlapping)
    weights = real / real.sum(axis=-1, keepdims=True)
    output = primitives.Sum(cells * cast(weights, cells.dtype), [-1], False)
    return FractionalAvgPool(output, convert_to_tensor(rows), convert_to_tensor(columns))


@public("compat.v1.nn.fractional_max_pool")
def fractional_max_pool_v1(
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> FractionalMaxPool:
    """The largest value in windows whose sizes are random.

    >>> tf.compat.v1.nn.fractional_max_pool(tf.ones([1, 6, 6, 1]), [1., 1.5, 1.5, 1.], seed=1).output.shape
    TensorShape([1, 4, 4, 1])
    """
    return fractional_max_pool(value, pooling_ratio, pseudo_random, overlapping, seed or seed2)


@public("compat.v1.nn.fractional_avg_pool")
def fractional_avg_pool_v1(
    value: Any,
    pooling_ratio: Any,
    pseudo_random: bool = False,
    overlapping: bool = False,
    deterministic: bool = False,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> FractionalAvgPool:
    """The mean of windows whose sizes are random.

    >>> tf.compat.v1.nn.fractional_avg_pool(tf.ones([1, 6, 6, 1]), [1., 1.5, 1.5, 1.], seed=1).output.shape
    TensorShape([1, 4, 4, 1])
    """
    return fractional_avg_pool(value, pooling_ratio, pseudo_random, overlapping, seed or seed2)
