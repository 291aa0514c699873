"""Gradients of convolutions as functions of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dims_of, numbers_of
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.nn.window_arguments import Geometry, geometry, to_channels_first, to_channels_last


def input_gradient(primitive: Any, input_sizes: Any, filters: Any, dy: Any, windows: Geometry) -> Any:
    """The gradient by the input of a convolution whose gradient primitive and windows these are."""
    first, kind, pads, steps, dilation = windows
    filters = convert_to_tensor(filters)
    dy = convert_to_tensor(dy, dtype_hint=filters.dtype)
    dims = numbers_of(input_sizes)
    if len(dims) == len(steps):
        channels = filters.shape[-2]
        dims = [dy.shape[0], channels, *dims] if first else [dy.shape[0], *dims, channels]
    if not first:
        return primitive(filters, dy, steps, kind, pads, dilation, dims)
    dims = [dims[0], *dims[2:], dims[1]]
    return to_channels_first(primitive(filters, to_channels_last(dy), steps, kind, pads, dilation, dims))


def filter_gradient(primitive: Any, x: Any, filter_sizes: Any, dy: Any, windows: Geometry) -> Any:
    """The gradient by the filters of a convolution whose gradient primitive and windows these are."""
    first, kind, pads, steps, dilation = windows
    x = convert_to_tensor(x)
    dy = convert_to_tensor(dy, dtype_hint=x.dtype)
    if first:
        x, dy = to_channels_last(x), to_channels_last(dy)
    return primitive(x, dy, steps, kind, pads, dilation, [int(d) for d in dims_of(filter_sizes)])


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
    windows = geometry(strides, padding, data_format, dilations, 2)
    return input_gradient(primitives.DepthwiseConvBackpropInput, input_sizes, filter, out_backprop, windows)


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
    windows = geometry(strides, padding, data_format, dilations, 2)
    return filter_gradient(primitives.DepthwiseConvBackpropFilter, input, filter_sizes, out_backprop, windows)


def _conv2d_gradient(name: str, compute: Callable[[Any, Any, Any, Geometry], Any], doc: str) -> Callable[..., Any]:
    """A gradient that takes the tensor by which it is the gradient for the sake of its shape."""

    def function(
        input: Any,
        filter: Any,
        out_backprop: Any,
        strides: Any,
        padding: str,
        use_cudnn_on_gpu: bool = True,
        explicit_paddings: Any = (),
        data_format: str = "NHWC",
        dilations: Any = (1, 1, 1, 1),
        name: str | None = None,
    ) -> Any:
        pads = [explicit_paddings[i : i + 2] for i in range(0, 8, 2)] if padding == "EXPLICIT" else padding
        windows = geometry(strides, pads, data_format, dilations, 2)
        return compute(convert_to_tensor(input), convert_to_tensor(filter), out_backprop, windows)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return public(name)(function)


conv2d_backprop_filter_v2 = _conv2d_gradient(
    "conv2d_backprop_filter_v2",
    lambda x, filters, dy, windows: filter_gradient(
        primitives.ConvBackpropFilter, x, filters.shape.as_list(), dy, windows
    ),
    """The gradient of a 2-D convolution by its filters; of `filter` only the shape counts.

    >>> x = tf.ones([1, 2, 2, 1])
    >>> tf.conv2d_backprop_filter_v2(x, tf.ones([1, 1, 1, 1]), x, [1, 1, 1, 1], "SAME")
    <tf.Tensor: shape=(1, 1, 1, 1), dtype=float32, numpy=array([[[[4.]]]], dtype=float32)>
    """,
)
conv2d_backprop_input_v2 = _conv2d_gradient(
    "conv2d_backprop_input_v2",
    lambda x, filters, dy, windows: input_gradient(
        primitives.ConvBackpropInput, x.shape.as_list(), filters, dy, windows
    ),
    """The gradient of a 2-D convolution by its input; of `input` only the shape counts.

    >>> x = tf.ones([1, 1, 2, 1])
    >>> tf.conv2d_backprop_input_v2(x, 3 * tf.ones([1, 1, 1, 1]), x, [1, 1, 1, 1], "SAME")
    <tf.Tensor: shape=(1, 1, 2, 1), dtype=float32, numpy=
    array([[[[3.],
             [3.]]]], dtype=float32)>
    """,
)
