"""Convolutions and their transposes, in every form of arguments, over the convolution primitives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dims_of, dynamic_dims, numbers_of
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.padding import pad
from tapeflow._src.ops.nn.window_arguments import (
    geometry,
    is_channels_first,
    padding_of,
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
    first, kind, pads, steps, spread = geometry(strides, padding, data_format, dilations, spatial)
    if min(steps) < 1:
        raise InvalidArgumentError.of(f"{who}: Stride must be > 0, but got {min(steps)}")
    if min(spread) < 1:
        raise InvalidArgumentError.of(f"{who}: Dilated rates should be larger than 0; got {spread}")
    whole = x.dtype if x.dtype.is_integer and x.dtype == filters.dtype else None
    if whole is not None:
        x, filters = cast(x, float64), cast(filters, float64)
    if first:
        x = to_channels_last(x)
    y = primitive(x, filters, steps, kind, pads, spread)
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
    [2., 2., 2.]
    """
    if data_format in ("NHWC", "NCHW"):
        data_format = data_format.replace("H", "")
    return convolve("nn.conv1d", input, filters, stride, padding, data_format, dilations, 1)


@public("compat.v1.nn.conv1d")
def conv1d_v1(
    value: Any = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: Any = None,
    data_format: str | None = None,
    name: str | None = None,
    input: Any = None,
    dilations: Any = None,
) -> Any:
    """A 1-D convolution of sequences (N, W, C) with filters (width, in, out).

    >>> tf.compat.v1.nn.conv1d(tf.ones([1, 4, 1]), tf.ones([2, 1, 1]), 1, "VALID")[0, :, 0]
    [2., 2., 2.]
    """
    return conv1d(value if input is None else input, filters, stride, padding, data_format or "NWC", dilations)


@public("nn.conv2d")
def conv2d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """A 2-D convolution of images (N, H, W, C) with filters (height, width, in, out).

    >>> tf.nn.conv2d(tf.ones([1, 3, 3, 1]), tf.ones([2, 2, 1, 1]), 1, "VALID").shape
    TensorShape([1, 2, 2, 1])
    """
    return convolve("nn.conv2d", input, filters, strides, padding, data_format, dilations, 2)


@public("compat.v1.nn.conv2d")
def conv2d_v1(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
    filters: Any = None,
) -> Any:
    """A 2-D convolution of images (N, H, W, C) with filters (height, width, in, out).

    >>> tf.compat.v1.nn.conv2d(tf.ones([1, 3, 3, 1]), tf.ones([2, 2, 1, 1]), 1, "VALID").shape
    TensorShape([1, 2, 2, 1])
    """
    return conv2d(input, filter if filters is None else filters, strides, padding, data_format, dilations)


@public("nn.conv3d")
def conv3d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """A 3-D convolution of volumes (N, D, H, W, C) with filters (depth, height, width, in, out).

    >>> tf.nn.conv3d(tf.ones([1, 3, 3, 3, 1]), tf.ones([2, 2, 2, 1, 1]), [1, 1, 1, 1, 1], "VALID").shape
    TensorShape([1, 2, 2, 2, 1])
    """
    return convolve("nn.conv3d", input, filters, strides, padding, data_format, dilations, 3)


@public("compat.v1.nn.conv3d")
def conv3d_v1(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
    filters: Any = None,
) -> Any:
    """A 3-D convolution of volumes (N, D, H, W, C) with filters (depth, height, width, in, out).

    >>> tf.compat.v1.nn.conv3d(tf.ones([1, 3, 3, 3, 1]), tf.ones([2, 2, 2, 1, 1]), [1, 1, 1, 1, 1], "VALID").shape
    TensorShape([1, 2, 2, 2, 1])
    """
    return conv3d(input, filter if filters is None else filters, strides, padding, data_format, dilations)


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
    [2., 2., 2.]
    """
    filters = convert_to_tensor(filters)
    spatial = filters.shape.rank - 2
    if spatial not in (1, 2, 3):
        raise ValueError(
            "`num_spatial_dims` must be 1, 2, or 3: the filters must have rank 3, 4 or 5. Received: "
            f"filters.shape={filters.shape}"
        )
    first = isinstance(data_format, str) and data_format.startswith("NC")
    steps, spread = (
        per_dimension(strides, spatial, first, "strides"),
        per_dimension(dilations, spatial, first, "dilations"),
    )
    if max(steps) > 1 and max(spread) > 1:
        raise ValueError(
            "`strides > 1` not supported in conjunction with `dilation_rate > 1`. "
            f"Received: strides={strides} and dilation_rate={dilations}"
        )
    return convolve("nn.convolution", input, filters, strides, padding, data_format, dilations, spatial)


@public("compat.v1.nn.convolution")
def convolution_v1(
    input: Any,
    filter: Any,
    padding: Any,
    strides: Any = None,
    dilation_rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: Any = None,
    dilations: Any = None,
) -> Any:
    """A convolution with as many spatial dimensions as the filters have: 1, 2 or 3.

    >>> tf.compat.v1.nn.convolution(tf.ones([1, 4, 1]), tf.ones([2, 1, 1]), "VALID")[0, :, 0]
    [2., 2., 2.]
    """
    spread = dilation_rate if dilations is None else dilations
    return convolution(input, filter if filters is None else filters, strides, padding, data_format, spread)


@public("nn.atrous_conv2d", "compat.v1.nn.atrous_conv2d")
def atrous_conv2d(value: Any, filters: Any, rate: int, padding: Any, name: str | None = None) -> Any:
    """A 2-D convolution with holes of `rate - 1` cells between the filter's cells.

    >>> tf.nn.atrous_conv2d(tf.ones([1, 5, 5, 1]), tf.ones([2, 2, 1, 1]), 2, "VALID").shape
    TensorShape([1, 3, 3, 1])
    """
    return convolution(value, filters, None, padding, None, [rate, rate])


# ---- transposed convolutions: the gradient of a convolution by its input


def _transposed(
    who: str,
    x: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any,
    data_format: str | None,
    dilations: Any,
    spatial: int,
) -> Any:
    x = convert_to_tensor(x)
    filters = convert_to_tensor(filters, dtype_hint=x.dtype)
    first = is_channels_first(data_format, spatial)
    if x.shape.rank != spatial + 2 or filters.shape.rank != spatial + 2:
        raise InvalidArgumentError.of(
            f"{who}: input and filters must have rank {spatial + 2}; got {x.shape.as_list()} and "
            f"{filters.shape.as_list()}",
        )
    dims = numbers_of(output_shape)
    if len(dims) == spatial:
        channels, batch = filters.shape[-2], dynamic_dims(x)[0]
        dims = [batch, channels, *dims] if first else [batch, *dims, channels]
    elif isinstance(dims[0], int) and dims[0] == -1:
        dims = [dynamic_dims(x)[0], *dims[1:]]
    if len(dims) != spatial + 2:
        raise ValueError(f"{who}: output_shape must have {spatial} or {spatial + 2} dimensions; got {dims}")
    kind, pads = padding_of(padding, spatial, first)
    steps = per_dimension(strides, spatial, first, "strides")
    spread = per_dimension(dilations, spatial, first, "dilations")
    if first:
        x = to_channels_last(x)
        dims = [dims[0], *dims[2:], dims[1]]
    if None not in (filters.shape[-1], x.shape[-1]) and filters.shape[-1] != x.shape[-1]:
        raise InvalidArgumentError.of(
            f"{who}: the last dimension of the filters must be the input's depth; got filters "
            f"{filters.shape.as_list()} and input depth {x.shape[-1]}",
        )
    y = primitives.ConvBackpropInput(filters, x, steps, kind, pads, spread, dims)
    return to_channels_first(y) if first else y


@public("nn.conv1d_transpose", "compat.v1.nn.conv1d_transpose")
def conv1d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The transpose of a 1-D convolution, with filters (width, out, in).

    >>> tf.nn.conv1d_transpose(tf.ones([1, 2, 1]), tf.ones([2, 1, 1]), [1, 4, 1], 2)[0, :, 0]
    [1., 1., 1., 1.]
    """
    return _transposed("nn.conv1d_transpose", input, filters, output_shape, strides, padding, data_format, dilations, 1)


@public("nn.conv2d_transpose")
def conv2d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The transpose of a 2-D convolution, with filters (height, width, out, in).

    >>> tf.nn.conv2d_transpose(tf.ones([1, 2, 2, 1]), tf.ones([2, 2, 1, 1]), [1, 4, 4, 1], 2).shape
    TensorShape([1, 4, 4, 1])
    """
    return _transposed("nn.conv2d_transpose", input, filters, output_shape, strides, padding, data_format, dilations, 2)


@public("compat.v1.nn.conv2d_transpose")
def conv2d_transpose_v1(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Any:
    """The transpose of a 2-D convolution, with filters (height, width, out, in).

    >>> tf.compat.v1.nn.conv2d_transpose(tf.ones([1, 2, 2, 1]), tf.ones([2, 2, 1, 1]), [1, 4, 4, 1], 2).shape
    TensorShape([1, 4, 4, 1])
    """
    return conv2d_transpose(
        value if input is None else input,
        filter if filters is None else filters,
        output_shape,
        strides,
        padding,
        data_format,
        dilations,
    )


@public("nn.conv3d_transpose")
def conv3d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The transpose of a 3-D convolution, with filters (depth, height, width, out, in).

    >>> tf.nn.conv3d_transpose(tf.ones([1, 1, 1, 1, 1]), tf.ones([2, 2, 2, 1, 1]), [1, 2, 2, 2, 1], 2).shape
    TensorShape([1, 2, 2, 2, 1])
    """
    return _transposed("nn.conv3d_transpose", input, filters, output_shape, strides, padding, data_format, dilations, 3)


@public("compat.v1.nn.conv3d_transpose")
def conv3d_transpose_v1(
    value: Any,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str = "NDHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Any:
    """The transpose of a 3-D convolution, with filters (depth, height, width, out, in).

    >>> x, filters = tf.ones([1, 1, 1, 1, 1]), tf.ones([2, 2, 2, 1, 1])
    >>> tf.compat.v1.nn.conv3d_transpose(x, filters, [1, 2, 2, 2, 1], 2).shape
    TensorShape([1, 2, 2, 2, 1])
    """
    return conv3d_transpose(
        value if input is None else input,
        filter if filters is None else filters,
        output_shape,
        strides,
        padding,
        data_format,
        dilations,
    )


@public("nn.conv_transpose", "compat.v1.nn.conv_transpose")
def conv_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The transpose of a convolution with as many spatial dimensions as the output has: 1, 2 or 3.

    >>> tf.nn.conv_transpose(tf.ones([1, 2, 1]), tf.ones([2, 1, 1]), [1, 4, 1], 2)[0, :, 0]
    [1., 1., 1., 1.]
    """
    spatial = len(numbers_of(output_shape)) - 2
    if spatial not in (1, 2, 3):
        raise ValueError(f"`output_shape` must be of length 3, 4 or 5. Received: output_shape={output_shape}")
    return _transposed(
        "nn.conv_transpose", input, filters, output_shape, strides, padding, data_format, dilations, spatial
    )


@public("nn.atrous_conv2d_transpose", "compat.v1.nn.atrous_conv2d_transpose")
def atrous_conv2d_transpose(
    value: Any, filters: Any, output_shape: Any, rate: int, padding: Any, name: str | None = None
) -> Any:
    """The transpose of a 2-D convolution with holes.

    >>> tf.nn.atrous_conv2d_transpose(tf.ones([1, 3, 3, 1]), tf.ones([2, 2, 1, 1]), [1, 5, 5, 1], 2, "VALID").shape
    TensorShape([1, 5, 5, 1])
    """
    return _transposed(
        "nn.atrous_conv2d_transpose", value, filters, output_shape, 1, padding, None, [int(rate), int(rate)], 2
    )


# ---- depthwise and separable


@public("nn.depthwise_conv2d")
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

    >>> tf.nn.depthwise_conv2d(tf.ones([1, 3, 3, 2]), tf.ones([2, 2, 2, 1]), [1, 1, 1, 1], "VALID").shape
    TensorShape([1, 2, 2, 2])
    """
    first = is_channels_first(data_format, 2)
    if len(list(strides)) != 4:
        raise InvalidArgumentError.of(
            f"nn.depthwise_conv2d: Sliding window strides field must specify 4 dimensions; got {strides}"
        )
    steps, spread = per_dimension(strides, 2, first, "strides"), per_dimension(dilations, 2, first, "dilations")
    return convolve(
        "nn.depthwise_conv2d", input, filter, steps, padding, data_format, spread, 2, primitives.DepthwiseConv
    )


@public("compat.v1.nn.depthwise_conv2d")
def depthwise_conv2d_v1(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Any:
    """Each channel convolved with filters of its own, (height, width, in, multiplier).

    >>> tf.compat.v1.nn.depthwise_conv2d(tf.ones([1, 3, 3, 2]), tf.ones([2, 2, 2, 1]), [1, 1, 1, 1], "VALID").shape
    TensorShape([1, 2, 2, 2])
    """
    return depthwise_conv2d(input, filter, strides, padding, data_format, rate if dilations is None else dilations)


@public("compat.v1.nn.depthwise_conv2d_native")
def depthwise_conv2d_native(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """Each channel convolved with filters of its own, (height, width, in, multiplier).

    >>> x, filters = tf.ones([1, 3, 3, 2]), tf.ones([2, 2, 2, 1])
    >>> tf.compat.v1.nn.depthwise_conv2d_native(x, filters, [1, 1, 1, 1], "VALID").shape
    TensorShape([1, 2, 2, 2])
    """
    return depthwise_conv2d(input, filter, strides, padding, data_format, dilations)


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


@public("compat.v1.nn.separable_conv2d")
def separable_conv2d_v1(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Any:
    """A depthwise convolution followed by a 1x1 convolution that mixes the channels.

    >>> x, each, mix = tf.ones([1, 3, 3, 2]), tf.ones([2, 2, 2, 1]), tf.ones([1, 1, 2, 3])
    >>> tf.compat.v1.nn.separable_conv2d(x, each, mix, [1, 1, 1, 1], "VALID").shape
    TensorShape([1, 2, 2, 3])
    """
    spread = rate if dilations is None else dilations
    return separable_conv2d(input, depthwise_filter, pointwise_filter, strides, padding, data_format, spread)


# ---- the gradients of convolutions as functions of their own


def _to_input(
    primitive: Any,
    input_sizes: Any,
    filters: Any,
    dy: Any,
    strides: Any,
    padding: Any,
    data_format: str,
    dilations: Any,
    spatial: int,
) -> Any:
    filters = convert_to_tensor(filters)
    dy = convert_to_tensor(dy, dtype_hint=filters.dtype)
    first = is_channels_first(data_format, spatial)
    dims = numbers_of(input_sizes)
    if len(dims) == spatial:
        channels = filters.shape[-2]
        dims = [dy.shape[0], channels, *dims] if first else [dy.shape[0], *dims, channels]
    kind, pads = padding_of(padding, spatial, first)
    steps = per_dimension(strides, spatial, first, "strides")
    spread = per_dimension(dilations, spatial, first, "dilations")
    if not first:
        return primitive(filters, dy, steps, kind, pads, spread, dims)
    dims = [dims[0], *dims[2:], dims[1]]
    return to_channels_first(primitive(filters, to_channels_last(dy), steps, kind, pads, spread, dims))


def _to_filter(
    primitive: Any,
    x: Any,
    filter_sizes: Any,
    dy: Any,
    strides: Any,
    padding: Any,
    data_format: str,
    dilations: Any,
    spatial: int,
) -> Any:
    x = convert_to_tensor(x)
    dy = convert_to_tensor(dy, dtype_hint=x.dtype)
    first = is_channels_first(data_format, spatial)
    kind, pads = padding_of(padding, spatial, first)
    steps = per_dimension(strides, spatial, first, "strides")
    spread = per_dimension(dilations, spatial, first, "dilations")
    if first:
        x, dy = to_channels_last(x), to_channels_last(dy)
    return primitive(x, dy, steps, kind, pads, spread, [int(d) for d in dims_of(filter_sizes)])


@public("compat.v1.nn.conv2d_backprop_input")
def conv2d_backprop_input(
    input_sizes: Any,
    filter: Any = None,
    out_backprop: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
    filters: Any = None,
) -> Any:
    """The gradient of a 2-D convolution by its input.

    >>> dy, filters = tf.ones([1, 2, 2, 1]), tf.ones([1, 1, 1, 1])
    >>> tf.compat.v1.nn.conv2d_backprop_input([1, 2, 2, 1], filters, dy, 1, "SAME").shape
    TensorShape([1, 2, 2, 1])
    """
    filters = filter if filters is None else filters
    return _to_input(
        primitives.ConvBackpropInput, input_sizes, filters, out_backprop, strides, padding, data_format, dilations, 2
    )


@public("compat.v1.nn.conv2d_backprop_filter")
def conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The gradient of a 2-D convolution by its filters.

    >>> x, dy = tf.ones([1, 2, 2, 1]), tf.ones([1, 2, 2, 1])
    >>> tf.compat.v1.nn.conv2d_backprop_filter(x, [1, 1, 1, 1], dy, 1, "SAME").shape
    TensorShape([1, 1, 1, 1])
    """
    return _to_filter(
        primitives.ConvBackpropFilter, input, filter_sizes, out_backprop, strides, padding, data_format, dilations, 2
    )


@public("compat.v1.nn.conv3d_backprop_filter", "compat.v1.nn.conv3d_backprop_filter_v2")
def conv3d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The gradient of a 3-D convolution by its filters.

    >>> x = tf.ones([1, 2, 2, 2, 1])
    >>> tf.compat.v1.nn.conv3d_backprop_filter(x, [1, 1, 1, 1, 1], x, [1, 1, 1, 1, 1], "SAME").shape
    TensorShape([1, 1, 1, 1, 1])
    """
    return _to_filter(
        primitives.ConvBackpropFilter, input, filter_sizes, out_backprop, strides, padding, data_format, dilations, 3
    )


@public(
    "nn.depthwise_conv2d_backprop_input",
    "compat.v1.nn.depthwise_conv2d_backprop_input",
    "compat.v1.nn.depthwise_conv2d_native_backprop_input",
)
def depthwise_conv2d_backprop_input(
    input_sizes: Any,
    filter: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The gradient of a depthwise convolution by its input.

    >>> dy, filters = tf.ones([1, 2, 2, 1]), tf.ones([1, 1, 1, 1])
    >>> tf.nn.depthwise_conv2d_backprop_input([1, 2, 2, 1], filters, dy, [1, 1, 1, 1], "SAME").shape
    TensorShape([1, 2, 2, 1])
    """
    return _to_input(
        primitives.DepthwiseConvBackpropInput,
        input_sizes,
        filter,
        out_backprop,
        strides,
        padding,
        data_format,
        dilations,
        2,
    )


@public(
    "nn.depthwise_conv2d_backprop_filter",
    "compat.v1.nn.depthwise_conv2d_backprop_filter",
    "compat.v1.nn.depthwise_conv2d_native_backprop_filter",
)
def depthwise_conv2d_backprop_filter(
    input: Any,
    filter_sizes: Any,
    out_backprop: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Any:
    """The gradient of a depthwise convolution by its filters.

    >>> x, dy = tf.ones([1, 2, 2, 1]), tf.ones([1, 2, 2, 1])
    >>> tf.nn.depthwise_conv2d_backprop_filter(x, [1, 1, 1, 1], dy, [1, 1, 1, 1], "SAME").shape
    TensorShape([1, 1, 1, 1])
    """
    return _to_filter(
        primitives.DepthwiseConvBackpropFilter,
        input,
        filter_sizes,
        out_backprop,
        strides,
        padding,
        data_format,
        dilations,
        2,
    )


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


def _space_to_batch(x: Any, axes: list[int], rates: list[int]) -> Any:
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


def _batch_to_space(x: Any, axes: list[int], rates: list[int]) -> Any:
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
