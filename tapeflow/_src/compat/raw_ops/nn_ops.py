"""Raw operations of neural networks: convolutions, pools, normalisation, losses, cells."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.ops.arrays import constants
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.padding import pad
from tapeflow._src.ops.nn import convolutions, fractional_pools, losses, morphology, normalization, pools
from tapeflow._src.ops.nn.convolution_gradients import filter_gradient, input_gradient
from tapeflow._src.ops.nn.window_arguments import geometry

MaxPoolWithArgmax = namedtuple("MaxPoolWithArgmax", ["output", "argmax"])
FractionalPool = namedtuple("FractionalPool", ["output", "row_pooling_sequence", "col_pooling_sequence"])
SparseSoftmaxCrossEntropyWithLogits = namedtuple("SparseSoftmaxCrossEntropyWithLogits", ["loss", "backprop"])
FusedBatchNorm = namedtuple(
    "FusedBatchNorm", ["y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2"]
)
FusedBatchNormV3 = namedtuple(
    "FusedBatchNormV3",
    ["y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"],
)
LSTMBlockCell = namedtuple("LSTMBlockCell", ["i", "cs", "f", "o", "ci", "co", "h"])


def explicit_or(padding: str, explicit_paddings: Any) -> Any:
    """The padding of the public functions: pairs where it is explicit."""
    if padding != "EXPLICIT":
        return padding
    return [explicit_paddings[i : i + 2] for i in range(0, len(explicit_paddings), 2)]


def _conv2d(x: Any, filters: Any, strides: Any, padding: str, _: bool, explicit: Any, layout: str, rates: Any) -> Any:
    return convolutions.conv2d(x, filters, strides, explicit_or(padding, explicit), layout, rates)


def _to_filter_2d(
    x: Any, sizes: Any, dy: Any, strides: Any, padding: str, _: bool, explicit: Any, layout: str, rates: Any
) -> Any:
    windows = geometry(strides, explicit_or(padding, explicit), layout, rates, 2)
    return filter_gradient(primitives.ConvBackpropFilter, x, sizes, dy, windows)


def _to_filter_3d(x: Any, sizes: Any, dy: Any, strides: Any, padding: str, layout: str, rates: Any) -> Any:
    return filter_gradient(primitives.ConvBackpropFilter, x, sizes, dy, geometry(strides, padding, layout, rates, 3))


def _to_input_2d(
    sizes: Any, filters: Any, dy: Any, strides: Any, padding: str, _: bool, explicit: Any, layout: str, rates: Any
) -> Any:
    windows = geometry(strides, explicit_or(padding, explicit), layout, rates, 2)
    return input_gradient(primitives.ConvBackpropInput, sizes, filters, dy, windows)


def _depthwise(x: Any, filters: Any, strides: Any, padding: str, explicit: Any, layout: str, rates: Any) -> Any:
    steps, dilation = (v[2:] if layout == "NCHW" else v[1:3] for v in (strides, rates))
    ones = [1, 1, *steps] if layout == "NCHW" else [1, *steps, 1]
    return convolutions.depthwise_conv2d(x, filters, ones, explicit_or(padding, explicit), layout, list(dilation))


def _padded_conv(x: Any, paddings: Any, filters: Any, mode: str, strides: Any, padding: str) -> Any:
    return convolutions.conv2d(pad(x, paddings, mode), filters, strides, padding)


def _max_pool_with_argmax(x: Any, ksize: Any, strides: Any, padding: str, dtype: Any, batched: bool) -> Any:
    found = pools.max_pool_with_argmax(x, ksize, strides, padding, "NHWC", dtype, batched)
    return MaxPoolWithArgmax(*found)


def _fractional(function: Any) -> Any:
    def run(x: Any, ratio: Any, pseudo: bool, overlapping: bool, deterministic: bool, seed: int, seed2: int) -> Any:
        return FractionalPool(*function(x, ratio, pseudo, overlapping, seed or seed2))

    return run


def _normalized(x: Any, scale: Any, offset: Any, mean: Any, variance: Any, *options: Any) -> tuple[Any, ...]:
    epsilon, factor, layout, training = options
    x, scale = convert_to_tensor(x), convert_to_tensor(scale)
    given = convert_to_tensor(mean).shape.num_elements() != 0
    y, batch_mean, batch_variance = normalization.fused_batch_norm(
        x,
        scale,
        offset,
        mean if given else None,
        variance if given else None,
        epsilon,
        layout,
        training,
        exponential_avg_factor=factor,
    )
    if not training:
        return y, batch_mean, batch_variance, convert_to_tensor(mean), convert_to_tensor(variance)
    first = layout.startswith("NC")
    axes = [i for i in range(x.shape.rank) if i != (1 if first else x.shape.rank - 1)]
    wide = cast(x, "float32")
    center = primitives.Mean(wide, axes, True)
    variance = primitives.Mean(primitives.Square(wide - center), axes, False)
    return y, batch_mean, batch_variance, primitives.Reshape(center, [-1]), variance


def _fused(*arguments: Any) -> FusedBatchNorm:
    return FusedBatchNorm(*_normalized(*arguments))


def _fused_3(*arguments: Any) -> FusedBatchNormV3:
    return FusedBatchNormV3(*[*_normalized(*arguments), convert_to_tensor([0.0])[:0]])


def _sparse_entropy(features: Any, labels: Any) -> SparseSoftmaxCrossEntropyWithLogits:
    features, labels = convert_to_tensor(features), convert_to_tensor(labels)
    classes = primitives.Reshape(constants.range(features.shape[1], dtype=labels.dtype), [1, -1])
    chosen = primitives.Equal(primitives.ExpandDims(labels, 1), classes)
    loss = losses.sparse_softmax_cross_entropy_with_logits(labels, features)
    return SparseSoftmaxCrossEntropyWithLogits(loss, primitives.Softmax(features) - cast(chosen, features.dtype))


def _lstm_cell(x: Any, cs: Any, h: Any, w: Any, wci: Any, wcf: Any, wco: Any, b: Any, *options: Any) -> LSTMBlockCell:
    """One step; the gates stand in the order input, cell, forget, output."""
    forget_bias, cell_clip, peepholes = options
    cs = convert_to_tensor(cs)
    gates = primitives.MatMul(primitives.ConcatV2([x, h], 1), w) + b
    i, ci, f, o = primitives.SplitV(gates, [cs.shape[1]] * 4, 1)
    f = f + forget_bias
    if peepholes:
        i, f = i + cs * wci, f + cs * wcf
    i, f, ci = primitives.Sigmoid(i), primitives.Sigmoid(f), primitives.Tanh(ci)
    new = ci * i + cs * f
    if cell_clip > 0:
        new = primitives.Minimum(primitives.Maximum(new, -cell_clip), cell_clip)
    o = primitives.Sigmoid(o + new * wco if peepholes else o)
    co = primitives.Tanh(new)
    return LSTMBlockCell(i, new, f, o, ci, co, co * o)


def _max_pool_gradient_at(
    x: Any, dy: Any, argmax: Any, ksize: Any, strides: Any, padding: str, include_batch_in_index: bool
) -> Any:
    """The cotangents added up at the places of the largest elements."""
    x, dy = convert_to_tensor(x), convert_to_tensor(dy)
    sizes = primitives.Shape(x, "int64")
    places = cast(argmax, "int64")
    if not include_batch_in_index:
        image = primitives.Prod(sizes[1:])
        batches = constants.range(sizes[0]) * image
        places = places + primitives.Reshape(batches, [-1, 1, 1, 1])
    flat = primitives.Reshape(places, [-1])
    found = primitives.UnsortedSegmentSum(primitives.Reshape(dy, [-1]), flat, primitives.Prod(sizes))
    return primitives.Reshape(found, sizes)


ROWS: list[tuple[str, str, Any]] = [
    ("AvgPool3D", "input, ksize, strides, padding, data_format='NDHWC'", "nn.avg_pool3d"),
    (
        "BatchNormWithGlobalNormalization",
        "t, m, v, beta, gamma, variance_epsilon, scale_after_normalization",
        "nn.batch_norm_with_global_normalization",
    ),
    (
        "Conv",
        "input, filter, strides, padding, explicit_paddings=[], data_format='CHANNELS_LAST', dilations=[], "
        "batch_dims=1, groups=1",
        "conv",
    ),
    (
        "Conv2D",
        "input, filter, strides, padding, use_cudnn_on_gpu=True, explicit_paddings=[], data_format='NHWC', "
        "dilations=[1, 1, 1, 1]",
        _conv2d,
    ),
    (
        "Conv2DBackpropFilter",
        "input, filter_sizes, out_backprop, strides, padding, use_cudnn_on_gpu=True, explicit_paddings=[], "
        "data_format='NHWC', dilations=[1, 1, 1, 1]",
        _to_filter_2d,
    ),
    (
        "Conv2DBackpropFilterV2",
        "input, filter, out_backprop, strides, padding, use_cudnn_on_gpu=True, explicit_paddings=[], "
        "data_format='NHWC', dilations=[1, 1, 1, 1]",
        "conv2d_backprop_filter_v2",
    ),
    (
        "Conv2DBackpropInput",
        "input_sizes, filter, out_backprop, strides, padding, use_cudnn_on_gpu=True, explicit_paddings=[], "
        "data_format='NHWC', dilations=[1, 1, 1, 1]",
        _to_input_2d,
    ),
    (
        "Conv2DBackpropInputV2",
        "input, filter, out_backprop, strides, padding, use_cudnn_on_gpu=True, explicit_paddings=[], "
        "data_format='NHWC', dilations=[1, 1, 1, 1]",
        "conv2d_backprop_input_v2",
    ),
    ("Conv3D", "input, filter, strides, padding, data_format='NDHWC', dilations=[1, 1, 1, 1, 1]", "nn.conv3d"),
    (
        "Conv3DBackpropFilterV2",
        "input, filter_sizes, out_backprop, strides, padding, data_format='NDHWC', dilations=[1, 1, 1, 1, 1]",
        _to_filter_3d,
    ),
    (
        "DepthwiseConv2dNative",
        "input, filter, strides, padding, explicit_paddings=[], data_format='NHWC', dilations=[1, 1, 1, 1]",
        _depthwise,
    ),
    (
        "Dilation2D",
        "input, filter, strides, rates, padding",
        lambda x, filters, strides, rates, padding: morphology.dilation2d(x, filters, strides, padding, "NHWC", rates),
    ),
    (
        "FractionalAvgPool",
        "value, pooling_ratio, pseudo_random=False, overlapping=False, deterministic=False, seed=0, seed2=0",
        _fractional(fractional_pools.fractional_avg_pool),
    ),
    (
        "FractionalMaxPool",
        "value, pooling_ratio, pseudo_random=False, overlapping=False, deterministic=False, seed=0, seed2=0",
        _fractional(fractional_pools.fractional_max_pool),
    ),
    (
        "FusedBatchNorm",
        "x, scale, offset, mean, variance, epsilon=0.0001, exponential_avg_factor=1, data_format='NHWC', "
        "is_training=True",
        _fused,
    ),
    (
        "FusedBatchNormV2",
        "x, scale, offset, mean, variance, epsilon=0.0001, exponential_avg_factor=1, data_format='NHWC', "
        "is_training=True",
        _fused,
    ),
    (
        "FusedBatchNormV3",
        "x, scale, offset, mean, variance, epsilon=0.0001, exponential_avg_factor=1, data_format='NHWC', "
        "is_training=True",
        _fused_3,
    ),
    ("FusedPadConv2D", "input, paddings, filter, mode, strides, padding", _padded_conv),
    ("LRN", "input, depth_radius=5, bias=1, alpha=1, beta=0.5", "nn.local_response_normalization"),
    (
        "LSTMBlockCell",
        "x, cs_prev, h_prev, w, wci, wcf, wco, b, forget_bias=1, cell_clip=3, use_peephole=False",
        _lstm_cell,
    ),
    ("MaxPool3D", "input, ksize, strides, padding, data_format='NDHWC'", "nn.max_pool3d"),
    (
        "MaxPoolGradWithArgmax",
        "input, grad, argmax, ksize, strides, padding, include_batch_in_index=False",
        _max_pool_gradient_at,
    ),
    (
        "MaxPoolWithArgmax",
        "input, ksize, strides, padding, Targmax='int64', include_batch_in_index=False",
        _max_pool_with_argmax,
    ),
    ("SparseSoftmaxCrossEntropyWithLogits", "features, labels", _sparse_entropy),
]
