"""The TensorFlow 1 signatures of convolutions and pools."""

from __future__ import annotations

from tapeflow._src.compat.v1.signatures.declaration import Arguments, v1_signature

_FILTER, _VALUE = {"filter": "filters"}, {"value": "input"}
_RATE = {"rate": "dilations"}

v1_signature(
    "nn.conv1d(value=None, filters=None, stride=None, padding=None, use_cudnn_on_gpu=None, data_format=None, "
    "name=None, input=None, dilations=None)",
    "nn.conv1d",
    renamed=_VALUE,
    ignored=["use_cudnn_on_gpu"],
    example="tf.compat.v1.nn.conv1d(tf.ones([1, 4, 1]), tf.ones([2, 1, 1]), 1, 'VALID')[0, :, 0] => [2., 2., 2.]",
)
v1_signature(
    "nn.conv2d(input, filter=None, strides=None, padding=None, use_cudnn_on_gpu=True, data_format='NHWC', "
    "dilations=None, name=None, filters=None)",
    "nn.conv2d",
    renamed=_FILTER,
    ignored=["use_cudnn_on_gpu"],
    example="tf.compat.v1.nn.conv2d(tf.ones([1, 3, 3, 1]), tf.ones([2, 2, 1, 1]), 1, 'VALID').shape"
    " => TensorShape([1, 2, 2, 1])",
)
v1_signature(
    "nn.conv3d(input, filter=None, strides=None, padding=None, data_format='NDHWC', dilations=None, name=None, "
    "filters=None)",
    "nn.conv3d",
    renamed=_FILTER,
    example="tf.compat.v1.nn.conv3d(tf.ones([1, 3, 3, 3, 1]), tf.ones([2, 2, 2, 1, 1]), [1] * 5, 'VALID').shape"
    " => TensorShape([1, 2, 2, 2, 1])",
)
v1_signature(
    "nn.convolution(input, filter, padding, strides=None, dilation_rate=None, name=None, data_format=None, "
    "filters=None, dilations=None)",
    "nn.convolution",
    renamed=_FILTER | {"dilation_rate": "dilations"},
    example="tf.compat.v1.nn.convolution(tf.ones([1, 4, 1]), tf.ones([2, 1, 1]), 'VALID')[0, :, 0] => [2., 2., 2.]",
)
v1_signature(
    "nn.conv2d_transpose(value=None, filter=None, output_shape=None, strides=None, padding='SAME', "
    "data_format='NHWC', name=None, input=None, filters=None, dilations=None)",
    "nn.conv2d_transpose",
    renamed=_FILTER | _VALUE,
    example="tf.compat.v1.nn.conv2d_transpose(tf.ones([1, 2, 2, 1]), tf.ones([2, 2, 1, 1]), [1, 4, 4, 1], 2).shape"
    " => TensorShape([1, 4, 4, 1])",
)
v1_signature(
    "nn.conv3d_transpose(value, filter=None, output_shape=None, strides=None, padding='SAME', data_format='NDHWC', "
    "name=None, input=None, filters=None, dilations=None)",
    "nn.conv3d_transpose",
    renamed=_FILTER | _VALUE,
    example="x, filters = tf.ones([1, 1, 1, 1, 1]), tf.ones([2, 2, 2, 1, 1])\n"
    "tf.compat.v1.nn.conv3d_transpose(x, filters, [1, 2, 2, 2, 1], 2).shape => TensorShape([1, 2, 2, 2, 1])",
)
v1_signature(
    "nn.depthwise_conv2d(input, filter, strides, padding, rate=None, name=None, data_format=None, dilations=None)",
    "nn.depthwise_conv2d",
    renamed=_RATE,
    example="x, filters = tf.ones([1, 3, 3, 2]), tf.ones([2, 2, 2, 1])\n"
    "tf.compat.v1.nn.depthwise_conv2d(x, filters, [1, 1, 1, 1], 'VALID').shape => TensorShape([1, 2, 2, 2])",
)
v1_signature(
    "nn.depthwise_conv2d_native(input, filter, strides, padding, data_format='NHWC', dilations=None, name=None)",
    "nn.depthwise_conv2d",
    example="x, filters = tf.ones([1, 3, 3, 2]), tf.ones([2, 2, 2, 1])\n"
    "tf.compat.v1.nn.depthwise_conv2d_native(x, filters, [1, 1, 1, 1], 'VALID').shape => TensorShape([1, 2, 2, 2])",
)
v1_signature(
    "nn.separable_conv2d(input, depthwise_filter, pointwise_filter, strides, padding, rate=None, name=None, "
    "data_format=None, dilations=None)",
    "nn.separable_conv2d",
    renamed=_RATE,
    example="x, each, mix = tf.ones([1, 3, 3, 2]), tf.ones([2, 2, 2, 1]), tf.ones([1, 1, 2, 3])\n"
    "tf.compat.v1.nn.separable_conv2d(x, each, mix, [1, 1, 1, 1], 'VALID').shape => TensorShape([1, 2, 2, 3])",
)
v1_signature(
    "nn.dilation2d(input, filter=None, strides=None, rates=None, padding=None, name=None, filters=None, "
    "dilations=None)",
    "nn.dilation2d",
    renamed=_FILTER | {"rates": "dilations"},
    fixed={"data_format": "NHWC"},
    example="tf.compat.v1.nn.dilation2d([[[[1.], [3.]]]], [[[0.], [1.]]], [1, 1, 1, 1], [1, 1, 1, 1], 'VALID')"
    " => [[[[4.]]]]",
)
v1_signature(
    "nn.erosion2d(value, kernel, strides, rates, padding, name=None)",
    "nn.erosion2d",
    renamed={"kernel": "filters", "rates": "dilations"},
    fixed={"data_format": "NHWC"},
    example="tf.compat.v1.nn.erosion2d([[[[1.], [3.]]]], [[[0.], [2.]]], [1, 1, 1, 1], [1, 1, 1, 1], 'VALID')"
    " => [[[[-1.]]]]",
)
for _kind, _also in (("max", []), ("avg", ["nn.avg_pool2d"])):
    v1_signature(
        f"nn.{_kind}_pool(value, ksize, strides, padding, data_format='NHWC', name=None, input=None)",
        f"nn.{_kind}_pool2d",
        also=_also,
        renamed=_VALUE,
        example=f"tf.compat.v1.nn.{_kind}_pool(tf.ones([1, 4, 4, 1]), [1, 2, 2, 1], [1, 2, 2, 1], 'VALID').shape"
        " => TensorShape([1, 2, 2, 1])",
    )
v1_signature(
    "nn.pool(input, window_shape, pooling_type, padding, dilation_rate=None, strides=None, name=None, "
    "data_format=None, dilations=None)",
    "nn.pool",
    renamed={"dilation_rate": "dilations"},
    example="tf.compat.v1.nn.pool([[[1.], [3.], [2.], [4.]]], [2], 'MAX', 'VALID')[0, :, 0] => [3., 3., 4.]",
)
v1_signature(
    "nn.max_pool_with_argmax(input, ksize, strides, padding, data_format='NHWC', Targmax=None, name=None, "
    "output_dtype=None, include_batch_in_index=False)",
    "nn.max_pool_with_argmax",
    renamed={"Targmax": "output_dtype"},
    example="x = [[[[1.], [5.]], [[2.], [3.]]]]\n"
    "tf.compat.v1.nn.max_pool_with_argmax(x, [1, 2, 2, 1], [1, 2, 2, 1], 'VALID').argmax => [[[[1]]]]",
)


def _one_seed(arguments: Arguments) -> None:
    arguments["seed"] = arguments["seed"] or arguments.pop("seed2")
    arguments.pop("seed2", None)


for _kind in ("max", "avg"):
    v1_signature(
        f"nn.fractional_{_kind}_pool(value, pooling_ratio, pseudo_random=False, overlapping=False, "
        "deterministic=False, seed=0, seed2=0, name=None)",
        f"nn.fractional_{_kind}_pool",
        ignored=["deterministic"],
        adapt=_one_seed,
        example=f"tf.compat.v1.nn.fractional_{_kind}_pool(tf.ones([1, 6, 6, 1]), [1., 1.5, 1.5, 1.]).output.shape"
        " => TensorShape([1, 4, 4, 1])",
    )
