"""`tf.compat.v1.layers` for images: convolutions, pools and the normalization of batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.control_flow import cond
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.layers.layers import activated, define_layer, make_bias
from tapeflow._src.compat.v1.variables.variable_scope import get_variable, variable_scope
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.nn.constant_initializers import OnesInitializer, ZerosInitializer


def _sizes(value: Any, count: int) -> list[int]:
    return [value] * count if isinstance(value, int) else [int(v) for v in value]


def _check_format(data_format: str) -> None:
    if data_format != "channels_last":
        raise ValueError(f"data_format must be 'channels_last'; got {data_format!r}. Transpose the inputs.")


def _convolution(rank: int) -> Callable[..., Any]:
    """The layer that moves a window along `rank` dimensions."""

    def convolution(
        inputs: Any,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        *,
        _kernel: Any,
    ) -> Any:
        _check_format(data_format)
        x = convert_to_tensor(inputs)
        kernel = _kernel([*_sizes(kernel_size, rank), x.shape.as_list()[-1], filters], x.dtype)
        steps, dilations = _sizes(strides, rank), _sizes(dilation_rate, rank)
        return find_public("nn.convolution")(
            x, kernel, steps, padding.upper(), dilations=dilations, name=f"Conv{rank}D"
        )

    convolution.__doc__ = f"""activation(convolution along {rank} dimensions + bias), with `kernel` and `bias`.

    >>> with tf.Graph().as_default():
    ...     x = tf.compat.v1.placeholder(tf.float32, [None{", 8" * rank}, 3])
    ...     tf.compat.v1.layers.conv{rank}d(x, 4, 3, padding="same", strides=2).shape
    TensorShape([None{", 4" * rank}, 4])
    """
    return define_layer(f"conv{rank}d")(convolution)


conv1d, conv2d, conv3d = (_convolution(rank) for rank in (1, 2, 3))


@public("compat.v1.layers.separable_conv2d")
def separable_conv2d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = (1, 1),
    depth_multiplier: int = 1,
    activation: Callable[[Any], Any] | None = None,
    use_bias: bool = True,
    depthwise_initializer: Any = None,
    pointwise_initializer: Any = None,
    bias_initializer: Any = None,
    depthwise_regularizer: Any = None,
    pointwise_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    depthwise_constraint: Any = None,
    pointwise_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: Any = None,
    reuse: Any = None,
) -> Any:
    """A convolution of each channel, then one of single points, with `depthwise_kernel` and `pointwise_kernel`.

    >>> with tf.Graph().as_default():
    ...     x = tf.compat.v1.placeholder(tf.float32, [None, 8, 8, 3])
    ...     tf.compat.v1.layers.separable_conv2d(x, 4, 3, padding="same").shape
    TensorShape([None, 8, 8, 4])
    """
    _check_format(data_format)
    x = convert_to_tensor(inputs)
    channels = x.shape.as_list()[-1]
    with variable_scope(name, default_name="separable_conv2d", reuse=reuse):
        depthwise = get_variable(
            "depthwise_kernel", [*_sizes(kernel_size, 2), channels, depth_multiplier], x.dtype, depthwise_initializer,
            depthwise_regularizer, trainable, constraint=depthwise_constraint,
        )  # fmt: skip
        pointwise = get_variable(
            "pointwise_kernel", [1, 1, channels * depth_multiplier, filters], x.dtype, pointwise_initializer,
            pointwise_regularizer, trainable, constraint=pointwise_constraint,
        )  # fmt: skip
        steps = [1, *_sizes(strides, 2), 1]
        y = find_public("nn.separable_conv2d")(
            x, depthwise, pointwise, steps, padding.upper(), dilations=_sizes(dilation_rate, 2)
        )
        if use_bias:
            bias = make_bias(filters, y.dtype, bias_initializer, bias_regularizer, trainable, bias_constraint)
            y = find_public("nn.bias_add")(y, bias)
        return activated(y, activation, activity_regularizer)


def _transposed(inputs: Any, filters: int, kernel_size: Any, strides: Any, padding: str, rank: int, kernel: Any) -> Any:
    """The transpose of a convolution along `rank` dimensions; `kernel` makes the variable."""
    x = convert_to_tensor(inputs)
    window, steps, valid = _sizes(kernel_size, rank), _sizes(strides, rank), padding.upper() == "VALID"
    weights = kernel([*window, filters, x.shape.as_list()[-1]], x.dtype)
    known, present = x.shape.as_list(), find_public("shape")(x)
    sides = [present[i + 1] if known[i + 1] is None else known[i + 1] for i in range(rank)]
    sides = [side * step + (max(size - step, 0) if valid else 0) for side, step, size in zip(sides, steps, window)]
    shape = [present[0] if known[0] is None else known[0], *sides, filters]
    if any(_core.is_tensor(size) for size in shape):
        shape = find_public("stack")(shape)
    return find_public(f"nn.conv{rank}d_transpose")(x, weights, shape, steps, padding.upper())


@define_layer("conv2d_transpose")
def conv2d_transpose(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    *,
    _kernel: Any,
) -> Any:
    """The transpose of a convolution, which makes images larger, with variables `kernel` and `bias`.

    >>> with tf.Graph().as_default():
    ...     x = tf.compat.v1.placeholder(tf.float32, [2, 4, 4, 3])
    ...     tf.compat.v1.layers.conv2d_transpose(x, 5, 3, strides=2, padding="same").shape
    TensorShape([2, 8, 8, 5])
    """
    _check_format(data_format)
    return _transposed(inputs, filters, kernel_size, strides, padding, 2, _kernel)


@define_layer("conv3d_transpose")
def conv3d_transpose(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    *,
    _kernel: Any,
) -> Any:
    """The transpose of a convolution, which makes volumes larger, with variables `kernel` and `bias`.

    >>> with tf.Graph().as_default():
    ...     x = tf.compat.v1.placeholder(tf.float32, [2, 4, 4, 4, 3])
    ...     tf.compat.v1.layers.conv3d_transpose(x, 5, 3, strides=2, padding="same").shape
    TensorShape([2, 8, 8, 8, 5])
    """
    _check_format(data_format)
    return _transposed(inputs, filters, kernel_size, strides, padding, 3, _kernel)


def _pooling(name: str, kind: str, rank: int, what: str) -> Callable[..., Any]:
    def pooling(
        inputs: Any, pool_size: Any, strides: Any, padding: str = "valid", data_format: str = "channels_last",
        name: str | None = None,
    ) -> Any:  # fmt: skip
        _check_format(data_format)
        sizes, steps = _sizes(pool_size, rank), _sizes(strides, rank)
        return find_public(f"nn.{kind}_pool{rank}d")(inputs, sizes, steps, padding.upper(), name=name)

    pooling.__name__ = pooling.__qualname__ = name
    pooling.__doc__ = f"""The {what} of each window along {rank} dimensions.

    >>> tf.compat.v1.layers.{name}(tf.ones([1{", 4" * rank}, 1]), 2, 2).shape
    TensorShape([1{", 2" * rank}, 1])
    """
    return public(f"compat.v1.layers.{name}")(pooling)


POOLINGS = {
    f"{name}{rank}d": _pooling(f"{name}{rank}d", kind, rank, what)
    for name, kind, what in (("max_pooling", "max", "greatest element"), ("average_pooling", "avg", "mean"))
    for rank in (1, 2, 3)
}


@public("compat.v1.layers.batch_normalization")
def batch_normalization(
    inputs: Any,
    axis: int = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = None,
    gamma_initializer: Any = None,
    moving_mean_initializer: Any = None,
    moving_variance_initializer: Any = None,
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_momentum: float = 0.99,
    fused: bool | None = None,
    virtual_batch_size: int | None = None,
    adjustment: Any = None,
) -> Any:
    """The inputs with mean `beta` and deviation `gamma` along `axis`: by the batch in training, else by averages.

    The updates of the averages are in the collection `UPDATE_OPS`.

    >>> with tf.Graph().as_default():
    ...     y = tf.compat.v1.layers.batch_normalization(tf.ones([2, 3]), training=True)
    ...     len(tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.UPDATE_OPS))
    2
    """
    if renorm or virtual_batch_size is not None or adjustment is not None:
        raise NotImplementedError("batch_normalization: renorm, virtual_batch_size and adjustment are not there")
    x = convert_to_tensor(inputs)
    axis %= x.shape.rank
    others = [i for i in range(x.shape.rank) if i != axis]
    size = [x.shape.as_list()[axis]]
    with variable_scope(name, default_name="batch_normalization", reuse=reuse):

        def variable(name: str, initializer: Any, regularizer: Any, learned: bool, constraint: Any = None) -> Any:
            learned = learned and trainable
            return get_variable(name, size, x.dtype, initializer, regularizer, learned, constraint=constraint)

        zeros, ones = ZerosInitializer(), OnesInitializer()
        gamma = (
            variable("gamma", gamma_initializer or ones, gamma_regularizer, True, gamma_constraint) if scale else None
        )
        beta = variable("beta", beta_initializer or zeros, beta_regularizer, True, beta_constraint) if center else None
        mean = variable("moving_mean", moving_mean_initializer or zeros, None, False)
        variance = variable("moving_variance", moving_variance_initializer or ones, None, False)
        chosen = mean, variance
        if training is not False:
            found = find_public("nn.moments")(x, others)
            averages = [convert_to_tensor(mean), convert_to_tensor(variance)]
            now = training if _core.is_tensor(training) else bool(training)
            chosen = cond(now, lambda: tuple(found), lambda: tuple(averages)) if _core.is_tensor(now) else found
            rate = cond(now, lambda: 1.0 - momentum, lambda: 0.0) if _core.is_tensor(now) else 1.0 - momentum
            for average, value in zip((mean, variance), found):
                update = average.assign_sub((average - value) * rate)
                get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, update)
        shape = [size[0] if i == axis else 1 for i in range(x.shape.rank)]
        parts = [None if p is None else find_public("reshape")(p, shape) for p in (*chosen, beta, gamma)]
        return find_public("nn.batch_normalization")(x, *parts, epsilon)
