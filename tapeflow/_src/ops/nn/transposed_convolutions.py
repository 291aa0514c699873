"""Transposed convolutions: the gradient of a convolution by its input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public, public_as
from tapeflow._src.ops.arrays.constants import dynamic_dims, numbers_of
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.arrays.shaping import of_rank
from tapeflow._src.ops.nn.window_arguments import (
    geometry,
    to_channels_first,
    to_channels_last,
)
from tapeflow._src.types.errors import InvalidArgumentError


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
) -> Tensor:
    x = of_rank(convert_to_tensor(x), spatial + 2)
    filters = of_rank(convert_to_tensor(filters, dtype_hint=x.dtype), spatial + 2)
    first, kind, pads, steps, dilation = geometry(strides, padding, data_format, dilations, spatial)
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
    if first:
        x = to_channels_last(x)
        dims = [dims[0], *dims[2:], dims[1]]
    if None not in (filters.shape[-1], x.shape[-1]) and filters.shape[-1] != x.shape[-1]:
        raise InvalidArgumentError.of(
            f"{who}: the last dimension of the filters must be the input's depth; got filters "
            f"{filters.shape.as_list()} and input depth {x.shape[-1]}",
        )
    y = primitives.ConvBackpropInput(filters, x, steps, kind, pads, dilation, dims)
    return to_channels_first(y) if first else y


def _transpose_of_rank(spatial: int, doc: str, *paths: str) -> Callable[..., Any]:
    layout = ("NWC", "NHWC", "NDHWC")[spatial - 1]

    @public_as(doc, *paths)
    def function(
        input: Any,
        filters: Any,
        output_shape: Any,
        strides: Any,
        padding: Any = "SAME",
        data_format: str = layout,
        dilations: Any = None,
        name: str | None = None,
    ) -> Tensor:
        return _transposed(paths[0], input, filters, output_shape, strides, padding, data_format, dilations, spatial)

    return function


conv1d_transpose = _transpose_of_rank(
    1,
    """The transpose of a 1-D convolution, with filters (width, out, in).

    >>> tf.nn.conv1d_transpose(tf.ones([1, 2, 1]), tf.ones([2, 1, 1]), [1, 4, 1], 2)[0, :, 0]
    <tf.Tensor: shape=(4,), dtype=float32, numpy=array([1., 1., 1., 1.], dtype=float32)>
    """,
    "nn.conv1d_transpose",
    "compat.v1.nn.conv1d_transpose",
)
conv2d_transpose = _transpose_of_rank(
    2,
    """The transpose of a 2-D convolution, with filters (height, width, out, in).

    >>> tf.nn.conv2d_transpose(tf.ones([1, 2, 2, 1]), tf.ones([2, 2, 1, 1]), [1, 4, 4, 1], 2).shape
    TensorShape([1, 4, 4, 1])
    """,
    "nn.conv2d_transpose",
)
conv3d_transpose = _transpose_of_rank(
    3,
    """The transpose of a 3-D convolution, with filters (depth, height, width, out, in).

    >>> tf.nn.conv3d_transpose(tf.ones([1, 1, 1, 1, 1]), tf.ones([2, 2, 2, 1, 1]), [1, 2, 2, 2, 1], 2).shape
    TensorShape([1, 2, 2, 2, 1])
    """,
    "nn.conv3d_transpose",
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
) -> Tensor:
    """The transpose of a convolution with as many spatial dimensions as the output has: 1, 2 or 3.

    >>> tf.nn.conv_transpose(tf.ones([1, 2, 1]), tf.ones([2, 1, 1]), [1, 4, 1], 2)[0, :, 0]
    <tf.Tensor: shape=(4,), dtype=float32, numpy=array([1., 1., 1., 1.], dtype=float32)>
    """
    spatial = len(numbers_of(output_shape)) - 2
    if spatial not in (1, 2, 3):
        raise ValueError(
            f"`output_shape` must be of length 3, 4 or 5. Received: output_shape={output_shape} of length "
            f"{len(output_shape)}."
        )
    return _transposed(
        "nn.conv_transpose", input, filters, output_shape, strides, padding, data_format, dilations, spatial
    )


@public("nn.atrous_conv2d_transpose", "compat.v1.nn.atrous_conv2d_transpose")
def atrous_conv2d_transpose(
    value: Any, filters: Any, output_shape: Any, rate: int, padding: Any, name: str | None = None
) -> Tensor:
    """The transpose of a 2-D convolution with holes.

    >>> tf.nn.atrous_conv2d_transpose(tf.ones([1, 3, 3, 1]), tf.ones([2, 2, 1, 1]), [1, 5, 5, 1], 2, "VALID").shape
    TensorShape([1, 5, 5, 1])
    """
    return _transposed(
        "nn.atrous_conv2d_transpose", value, filters, output_shape, 1, padding, None, [int(rate), int(rate)], 2
    )
