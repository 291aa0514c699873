"""Convolutions and their transposes, in every form of arguments, over the convolution primitives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public, public_as
from tapeflow._src.ops.arrays.constants import dynamic_dims
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.nn.window_arguments import (
    geometry,
    is_channels_first,
    per_dimension,
    to_channels_first,
    to_channels_last,
)
from tapeflow._src.types.dtypes import float64
from tapeflow._src.types.errors import InvalidArgumentError


def _rank(x: Any, expected: int) -> int:
    """The rank of a tensor; what is expected if it is not known while tracing."""
    if not _core.is_tracing():
        return int(x.ndim)
    return expected if x.shape.rank is None else x.shape.rank


def convolve(
    who: str,
    x: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str | None,
    dilations: Any,
    spatial: int,
    primitive: Any = primitives.Conv,
) -> Any:
    """A convolution with `spatial` spatial dimensions; further leading dimensions are batches."""
    x = convert_to_tensor(x)
    filters = convert_to_tensor(filters, dtype_hint=x.dtype)
    x_rank, filters_rank = _rank(x, spatial + 2), _rank(filters, spatial + 2)
    if x_rank < spatial + 2 or filters_rank != spatial + 2:
        raise InvalidArgumentError.of(
            f"{who}: input must have rank {spatial + 2} and filters rank {spatial + 2}; got "
            f"{x.shape.as_list()} and {filters.shape.as_list()}",
        )
    dims = dynamic_dims(x) if x_rank > spatial + 2 else []
    batch = dims[: len(dims) - spatial - 1]
    if len(batch) > 1:
        size = 1
        for n in batch:
            size *= n
        x = primitives.Reshape(x, [size, *dims[len(batch) :]])
    first, kind, pads, steps, dilation = geometry(strides, padding, data_format, dilations, spatial)
    if min(steps) < 1:
        raise InvalidArgumentError.of(f"{who}: Stride must be > 0, but got {min(steps)}")
    if min(dilation) < 1:
        if who == "nn.convolution":
            raise ValueError(f"{who}: all values of `dilation_rate` must be positive; got dilation_rate={dilation}")
        raise InvalidArgumentError.of(f"{who}: Dilated rates should be larger than 0; got {dilation}")
    whole = x.dtype if x.dtype.is_integer and x.dtype == filters.dtype else None
    if whole is not None:
        x, filters = cast(x, float64), cast(filters, float64)
    if first:
        x = to_channels_last(x)
    y = primitive(x, filters, steps, kind, pads, dilation)
    if first:
        y = to_channels_first(y)
    if len(batch) > 1:
        y = primitives.Reshape(y, [*batch, *dynamic_dims(y)[1:]])
    return y if whole is None else cast(y, whole)


@public("nn.conv1d")
def conv1d(
    input: Any,
    filters: Any,
    stride: Any,
    padding: Any,
    data_format: str = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """A 1-D convolution of sequences (N, W, C) with filters (width, in, out).

    >>> tf.nn.conv1d(tf.ones([1, 4, 1]), tf.ones([2, 1, 1]), 1, "VALID")[0, :, 0]
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([2., 2., 2.], dtype=float32)>
    """
    if data_format in ("NHWC", "NCHW"):
        data_format = data_format.replace("H", "")
    return convolve("nn.conv1d", input, filters, stride, padding, data_format, dilations, 1)


def _convolution_of_rank(spatial: int, doc: str, path: str) -> Callable[..., Any]:
    layout = ("NWC", "NHWC", "NDHWC")[spatial - 1]

    @public_as(doc, path, node=f"Conv{spatial}D")
    def function(
        input: Any,
        filters: Any,
        strides: Any,
        padding: Any,
        data_format: str = layout,
        dilations: Any = None,
        name: str | None = None,
    ) -> Any:
        return convolve(path, input, filters, strides, padding, data_format, dilations, spatial)

    return function


conv2d = _convolution_of_rank(
    2,
    """A 2-D convolution of images (N, H, W, C) with filters (height, width, in, out).

    Args:
        input: Images, `[batch, height, width, in]`, or `[batch, in, height, width]` with 'NCHW'.
        filters: The filters, `[height, width, in / groups, out]`.
        strides: The step of the window: a number, one for height and width each, or four numbers.
        padding: 'VALID', 'SAME', or a list of pairs for each dimension.
        data_format: 'NHWC' or 'NCHW'.
        dilations: The distance between the elements of a window; 1 if None.
        name: A name for the operation in graphs.

    Returns:
        A tensor of shape `[batch, height, width, out]`, or `[batch, out, height, width]`.

    Gradient:
        A transposed convolution of `dy` for `input`, a convolution of `input` and `dy` for `filters`.

    >>> tf.nn.conv2d(tf.ones([1, 3, 3, 1]), tf.ones([2, 2, 1, 1]), 1, "VALID").shape
    TensorShape([1, 2, 2, 1])
    """,
    "nn.conv2d",
)
conv3d = _convolution_of_rank(
    3,
    """A 3-D convolution of volumes (N, D, H, W, C) with filters (depth, height, width, in, out).

    >>> tf.nn.conv3d(tf.ones([1, 3, 3, 3, 1]), tf.ones([2, 2, 2, 1, 1]), [1, 1, 1, 1, 1], "VALID").shape
    TensorShape([1, 2, 2, 2, 1])
    """,
    "nn.conv3d",
)


@public("nn.convolution")
def convolution(
    input: Any,
    filters: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """A convolution with as many spatial dimensions as the filters have: 1, 2 or 3.

    >>> tf.nn.convolution(tf.ones([1, 4, 1]), tf.ones([2, 1, 1]))[0, :, 0]
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([2., 2., 2.], dtype=float32)>
    """
    filters = convert_to_tensor(filters)
    spatial = filters.shape.rank - 2
    if spatial not in (1, 2, 3):
        raise ValueError(
            "`num_spatial_dims` must be 1, 2, or 3: the filters must have rank 3, 4 or 5. Received: "
            f"filters.shape={filters.shape}"
        )
    first = isinstance(data_format, str) and data_format.startswith("NC")
    steps, dilation = (
        per_dimension(strides, spatial, first, "strides"),
        per_dimension(dilations, spatial, first, "dilations"),
    )
    if max(steps) > 1 and max(dilation) > 1:
        raise ValueError(
            "`strides > 1` not supported in conjunction with `dilation_rate > 1`. "
            f"Received: strides={strides} and dilation_rate={dilations}"
        )
    return convolve("nn.convolution", input, filters, strides, padding, data_format, dilations, spatial)


@public("nn.atrous_conv2d", "compat.v1.nn.atrous_conv2d")
def atrous_conv2d(value: Any, filters: Any, rate: int, padding: Any, name: str | None = None) -> Any:
    """A 2-D convolution with holes of `rate - 1` cells between the filter's cells.

    >>> tf.nn.atrous_conv2d(tf.ones([1, 5, 5, 1]), tf.ones([2, 2, 1, 1]), 2, "VALID").shape
    TensorShape([1, 3, 3, 1])
    """
    return convolution(value, filters, None, padding, None, [rate, rate])


# ---- depthwise and separable


@public("nn.depthwise_conv2d", node="depthwise")
def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """Each channel convolved with filters of its own, (height, width, in, multiplier).

    Args:
        input: Images, `[batch, height, width, in]`.
        filter: The filters, `[height, width, in, multiplier]`.
        strides: Four numbers: the step of the window in each dimension.
        padding: 'VALID', 'SAME', or a list of pairs for each dimension.
        data_format: 'NHWC' or 'NCHW'.
        dilations: The distance between the elements of a window; 1 if None.
        name: A name for the operation in graphs.

    Returns:
        A tensor with `in * multiplier` channels.

    Gradient:
        By `input` and `filter`.

    >>> tf.nn.depthwise_conv2d(tf.ones([1, 3, 3, 2]), tf.ones([2, 2, 2, 1]), [1, 1, 1, 1], "VALID").shape
    TensorShape([1, 2, 2, 2])
    """
    first = is_channels_first(data_format, 2)
    if len(list(strides)) != 4:
        raise InvalidArgumentError.of(
            f"nn.depthwise_conv2d: Sliding window strides field must specify 4 dimensions; got {strides}"
        )
    steps, dilation = per_dimension(strides, 2, first, "strides"), per_dimension(dilations, 2, first, "dilations")
    return convolve(
        "nn.depthwise_conv2d", input, filter, steps, padding, data_format, dilation, 2, primitives.DepthwiseConv
    )


@public("nn.separable_conv2d")
def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """A depthwise convolution followed by a 1x1 convolution that mixes the channels.

    >>> x, each, mix = tf.ones([1, 3, 3, 2]), tf.ones([2, 2, 2, 1]), tf.ones([1, 1, 2, 3])
    >>> tf.nn.separable_conv2d(x, each, mix, [1, 1, 1, 1], "VALID").shape
    TensorShape([1, 2, 2, 3])
    """
    pointwise_filter = convert_to_tensor(pointwise_filter)
    depthwise_filter = convert_to_tensor(depthwise_filter, dtype_hint=pointwise_filter.dtype)
    if pointwise_filter.shape.rank != 4 or pointwise_filter.shape.as_list()[:2] != [1, 1]:
        raise ValueError(f"the pointwise filter must have shape [1, 1, in, out]; got {pointwise_filter.shape}")
    if depthwise_filter.shape.rank != 4:
        raise InvalidArgumentError.of(
            f"nn.separable_conv2d: filter must be 4-dimensional: {depthwise_filter.shape.as_list()}"
        )
    expected = depthwise_filter.shape[2] * depthwise_filter.shape[3]
    if pointwise_filter.shape[2] != expected:
        raise ValueError(
            f"Dimensions must be equal: the pointwise filter must take {expected} channels, in times multiplier; "
            f"got {pointwise_filter.shape}"
        )
    y = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return conv2d(y, pointwise_filter, 1, "VALID", data_format or "NHWC")


@public("conv")
def conv(
    input: Any,
    filter: Any,
    strides: Any,
    padding: str,
    explicit_paddings: Any = (),
    data_format: str = "CHANNELS_LAST",
    dilations: Any = (),
    batch_dims: int = 1,
    groups: int = 1,
    name: str | None = None,
) -> Any:
    """A convolution in 2 or 3 dimensions behind any number of batch dimensions.

    >>> tf.conv(tf.ones([2, 1, 4, 4, 1]), tf.ones([2, 2, 1, 1]), [1, 1, 1, 1], "VALID", batch_dims=2).shape
    TensorShape([2, 1, 3, 3, 1])
    """
    x, filters = convert_to_tensor(input), convert_to_tensor(filter)
    spatial = filters.shape.rank - 2
    if spatial not in (2, 3):
        raise InvalidArgumentError.of(f"conv: The input must have 2 or 3 spatial dimensions but got {spatial}")
    if len(strides) != spatial + 2:
        raise InvalidArgumentError.of(
            f"conv: Sliding window strides field must specify {spatial + 2} dimensions; got {list(strides)}"
        )
    first = data_format == "CHANNELS_FIRST"
    layout = ("NCHW" if spatial == 2 else "NCDHW") if first else ("NHWC" if spatial == 2 else "NDHWC")
    if x.shape.rank != batch_dims + spatial + 1:
        raise InvalidArgumentError.of(f"conv: the input must have rank {batch_dims + spatial + 1}; got shape {x.shape}")
    pads = [explicit_paddings[i : i + 2] for i in range(0, len(explicit_paddings), 2)]
    return convolution(x, filters, strides, pads if padding == "EXPLICIT" else padding, layout, list(dilations) or None)
