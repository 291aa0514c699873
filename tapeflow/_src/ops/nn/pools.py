"""Pools: the largest or mean value of windows, over the pooling primitives."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public, public_as
from tapeflow._src.ops.arrays.constants import dims_of
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.nn.window_arguments import (
    geometry,
    padding_of,
    per_dimension,
    refuse_narrow,
    to_channels_first,
    to_channels_last,
)
from tapeflow._src.types.dtypes import as_dtype, int64
from tapeflow._src.types.errors import InvalidArgumentError, UnimplementedError

MaxPoolWithArgmax = namedtuple("MaxPoolWithArgmax", ["output", "argmax"])


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
    ksize, strides = (n if isinstance(n, int | list | tuple) else dims_of(n) for n in (ksize, strides))
    whole = isinstance(ksize, list | tuple) and len(ksize) == spatial + 2 == x.shape.rank
    channels = 1 if data_format is not None and data_format.startswith("NC") else -1
    if primitive is primitives.MaxPool and whole and ksize[channels] != 1:
        steps = list(strides) if isinstance(strides, list | tuple) else [1, strides, strides, 1]
        return _depth_pool(who, x, list(ksize), steps, channels == 1)
    first, kind, pads, steps, dilation = geometry(strides, padding, data_format, dilations, spatial)
    if x.shape.rank != spatial + 2:
        raise InvalidArgumentError.of(f"{who}: Input must be {spatial + 2}-dimensional; got {x.shape.as_list()}")
    window = [ksize] * spatial if type(ksize) is int else per_dimension(ksize, spatial, first, "ksize")
    if min(window) < 1:
        raise InvalidArgumentError.of(
            f"{who}: Sliding window ksize must be positive. The specified or inferred ksize is: {window}"
        )
    if pads and any(p >= window[i // 2] for i, p in enumerate(pads)):
        raise InvalidArgumentError.of(
            f"{who}: paddings need to be smaller than the window size; got {pads} and {window}"
        )
    if padding == "VALID" and _core.is_tracing():
        refuse_narrow(who, x.shape[2:] if first else x.shape[1:-1], window, dilation)
    y = primitive(to_channels_last(x) if first else x, window, steps, kind, pads, dilation)
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


def _spatial_rank(x: Any) -> int:
    if x.shape.rank not in (3, 4, 5):
        raise ValueError(
            f"`input.shape.rank` must be 3, 4 or 5. Received: input.shape={x.shape} of rank {x.shape.rank}."
        )
    return int(x.shape.rank - 2)


def _pool_of_rank(primitive: Any, spatial: int | None, doc: str, *paths: str) -> Callable[..., Any]:
    """A pool over windows of 1, 2 or 3 spatial dimensions; None takes their number from the rank of the input."""
    layout = None if spatial is None else ("NWC", "NHWC", "NDHWC")[spatial - 1]

    @public_as(doc, *paths, node=primitive if spatial is None else None)
    def function(
        input: Any,
        ksize: Any,
        strides: Any,
        padding: Any,
        data_format: str | None = layout,
        name: str | None = None,
    ) -> Any:
        rank = _spatial_rank(convert_to_tensor(input)) if spatial is None else spatial
        return _pool(paths[0], primitive, input, ksize, strides, padding, data_format, rank)

    return function


max_pool1d = _pool_of_rank(
    primitives.MaxPool,
    1,
    """The largest value in each window of a sequence (N, W, C).

    >>> tf.nn.max_pool1d([[[1.], [3.], [2.], [4.]]], 2, 2, "VALID")[0, :, 0]
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 4.], dtype=float32)>
    """,
    "nn.max_pool1d",
    "compat.v1.nn.max_pool1d",
)
max_pool2d = _pool_of_rank(
    primitives.MaxPool,
    2,
    """The largest value in each window of an image (N, H, W, C).

    >>> tf.nn.max_pool2d(tf.ones([1, 4, 4, 1]), 2, 2, "VALID").shape
    TensorShape([1, 2, 2, 1])
    """,
    "nn.max_pool2d",
    "compat.v1.nn.max_pool2d",
)
max_pool3d = _pool_of_rank(
    primitives.MaxPool,
    3,
    """The largest value in each window of a volume (N, D, H, W, C).

    >>> tf.nn.max_pool3d(tf.ones([1, 4, 4, 4, 1]), 2, 2, "VALID").shape
    TensorShape([1, 2, 2, 2, 1])
    """,
    "nn.max_pool3d",
    "compat.v1.nn.max_pool3d",
)
avg_pool1d = _pool_of_rank(
    primitives.AvgPool,
    1,
    """The mean of each window of a sequence (N, W, C); cells outside do not count.

    >>> tf.nn.avg_pool1d([[[1.], [3.], [2.], [4.]]], 2, 2, "VALID")[0, :, 0]
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 3.], dtype=float32)>
    """,
    "nn.avg_pool1d",
    "compat.v1.nn.avg_pool1d",
)
avg_pool2d = _pool_of_rank(
    primitives.AvgPool,
    2,
    """The mean of each window of an image (N, H, W, C); cells outside do not count.

    >>> tf.nn.avg_pool2d(tf.ones([1, 4, 4, 1]), 2, 2, "VALID").shape
    TensorShape([1, 2, 2, 1])
    """,
    "nn.avg_pool2d",
)
avg_pool3d = _pool_of_rank(
    primitives.AvgPool,
    3,
    """The mean of each window of a volume (N, D, H, W, C); cells outside do not count.

    >>> tf.nn.avg_pool3d(tf.ones([1, 4, 4, 4, 1]), 2, 2, "VALID").shape
    TensorShape([1, 2, 2, 2, 1])
    """,
    "nn.avg_pool3d",
    "compat.v1.nn.avg_pool3d",
)
max_pool = _pool_of_rank(
    primitives.MaxPool,
    None,
    """The largest value in each window, over 1, 2 or 3 spatial dimensions by the rank of the input.

    >>> tf.nn.max_pool([[[1.], [3.], [2.], [4.]]], 2, 2, "VALID")[0, :, 0]
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 4.], dtype=float32)>
    """,
    "nn.max_pool",
    "compat.v1.nn.max_pool_v2",
)
avg_pool = _pool_of_rank(
    primitives.AvgPool,
    None,
    """The mean of each window, over 1, 2 or 3 spatial dimensions by the rank of the input.

    >>> tf.nn.avg_pool([[[1.], [3.], [2.], [4.]]], 2, 2, "VALID")[0, :, 0]
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 3.], dtype=float32)>
    """,
    "nn.avg_pool",
    "compat.v1.nn.avg_pool_v2",
)


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

    Args:
        input: The tensor, `[batch, ..., channels]`.
        window_shape: The size of the window in each spatial dimension.
        pooling_type: 'MAX' or 'AVG'.
        strides: The step of the window; 1 if None.
        padding: 'VALID' or 'SAME'.
        data_format: Channels last, or second with 'NC...'.
        dilations: The distance between the elements of a window; 1 if None.
        name: A name for the operation in graphs.

    Returns:
        A tensor.

    Gradient:
        `dy` for the largest element of a window, or its share for the mean.

    >>> tf.nn.pool([[[1.], [3.], [2.], [4.]]], [2], "MAX")[0, :, 0]
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([3., 3., 4.], dtype=float32)>
    """
    spatial = len(list(window_shape))
    if spatial not in (1, 2, 3):
        raise ValueError(f"`len(window_shape)` must be 1, 2, or 3. Received: window_shape={window_shape}")
    kinds = {"MAX": primitives.MaxPool, "AVG": primitives.AvgPool}
    if pooling_type not in kinds:
        raise ValueError(f"{spatial}-D {pooling_type} pooling is not supported.")
    first = data_format is not None and data_format.startswith("NC")
    steps, dilation = (
        per_dimension(strides, spatial, first, "strides"),
        per_dimension(dilations, spatial, first, "dilations"),
    )
    if max(dilation) > 1 and padding == "SAME":
        raise ValueError(
            "pooling with 'SAME' padding is not implemented for `dilation_rate` > 1. "
            f"Received: padding={padding} and dilation_rate={dilation}"
        )
    if max(dilation) > 1 and max(steps) > 1:
        raise ValueError(
            "`strides > 1` not supported in conjunction with `dilation_rate > 1`. "
            f"Received: strides={steps} and dilation_rate={dilation}"
        )
    return _pool("nn.pool", kinds[pooling_type], input, window_shape, steps, padding, data_format, spatial, dilation)


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
    <tf.Tensor: shape=(1, 1, 1, 1), dtype=int64, numpy=array([[[[1]]]])>
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
