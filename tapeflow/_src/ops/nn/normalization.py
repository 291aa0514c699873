"""Normalization: moments, batch normalization in its forms, local response normalization, bias and dropout."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dynamic_dims, is_open, ones_like, shape_argument
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor, is_tensor
from tapeflow._src.ops.arrays.shaping import ensure_shape, of_rank
from tapeflow._src.ops.random.stateless import stateless_uniform
from tapeflow._src.ops.random.streams import uniform
from tapeflow._src.types.dtypes import bfloat16, float16, float32, float64, int32
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_shape import TensorShape


def _wide(x: Any) -> Any:
    """Statistics of small floats are kept in float32."""
    return cast(x, float32) if x.dtype is float16 or x.dtype is bfloat16 else x


def _axes(axes: Any) -> Any:
    if type(axes) is list and all(type(a) is int for a in axes):
        return axes
    return [int(a) for a in np.atleast_1d(np.asarray(axes))] if axes is not None else None


def _count(x: Any, axes: list[int]) -> int:
    """The number of elements that are put together along `axes`."""
    dims = dynamic_dims(x)
    return math.prod(dims[a] for a in axes)


@public("nn.moments")
def moments(x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None) -> tuple[Any, Any]:
    """The mean and the variance of `x` over `axes`.

    Args:
        x: The tensor.
        axes: The dimensions to reduce.
        shift: Not used; as in TensorFlow.
        keepdims: Whether reduced dimensions stay, with size 1.
        name: A name for the operation in graphs.

    Returns:
        A tuple `(mean, variance)` of tensors.

    Gradient:
        That of the mean and of the variance.

    >>> tf.nn.moments([1., 3.], [0])
    (<tf.Tensor: shape=(), dtype=float32, numpy=2.0>, <tf.Tensor: shape=(), dtype=float32, numpy=1.0>)
    """
    x = convert_to_tensor(x)
    y, axes = _wide(x), _axes(axes)
    if axes is not None and (y.dtype is float32 or y.dtype is float64):
        mean, variance = primitives.Moments(y, axes, True)
    else:
        mean = primitives.Mean(y, axes, True)
        variance = primitives.Mean(primitives.SquaredDifference(y, mean), axes, True)
    if not keepdims:
        mean, variance = primitives.Squeeze(mean, axes), primitives.Squeeze(variance, axes)
    return (mean, variance) if y is x else (cast(mean, x.dtype), cast(variance, x.dtype))


@public("nn.weighted_moments")
def weighted_moments(
    x: Any, axes: Any, frequency_weights: Any, keepdims: bool = False, name: str | None = None
) -> tuple[Any, Any]:
    """The mean and the variance of `x` over `axes`, each element counted by its weight.

    >>> tf.nn.weighted_moments([1., 4.], [0], [2., 1.])
    (<tf.Tensor: shape=(), dtype=float32, numpy=2.0>, <tf.Tensor: shape=(), dtype=float32, numpy=2.0>)
    """
    x = convert_to_tensor(x)
    y, axes = _wide(x), _axes(axes)
    weights = cast(convert_to_tensor(frequency_weights, dtype_hint=y.dtype), y.dtype)
    if is_open(weights) or is_open(y):
        wide = weights * ones_like(y)
    else:
        wide = primitives.BroadcastTo(weights, np.broadcast_shapes(tuple(weights.shape), tuple(y.shape)))
    total = primitives.Sum(wide, axes, True)
    mean = primitives.DivNoNan(primitives.Sum(weights * y, axes, True), total)
    variance = primitives.DivNoNan(primitives.Sum(weights * primitives.SquaredDifference(y, mean), axes, True), total)
    if not keepdims:
        mean, variance = primitives.Squeeze(mean, axes), primitives.Squeeze(variance, axes)
    return (mean, variance) if y is x else (cast(mean, x.dtype), cast(variance, x.dtype))


@public("nn.sufficient_statistics")
def sufficient_statistics(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Any, Any, Any, Any]:
    """The count, the sum and the sum of squares of `x - shift` over `axes`, and the shift.

    >>> tf.nn.sufficient_statistics([1., 3.], [0])[:3]
    (<tf.Tensor: shape=(), dtype=float32, numpy=2.0>, <tf.Tensor: shape=(), dtype=float32, numpy=4.0>,
     <tf.Tensor: shape=(), dtype=float32, numpy=10.0>)
    """
    x = convert_to_tensor(x)
    rank = x.shape.rank
    axes = sorted({a + rank if a < 0 else a for a in _axes(axes)})
    if any(not 0 <= a < rank for a in axes):
        raise ValueError(f"nn.sufficient_statistics: axes must be in [{-rank}, {rank}); got {axes}")
    count = cast(_count(x, axes), x.dtype)
    if shift is None:
        return count, primitives.Sum(x, axes, keepdims), primitives.Sum(primitives.Square(x), axes, keepdims), None
    shift = convert_to_tensor(shift, dtype_hint=x.dtype)
    total = primitives.Sum(x - shift, axes, keepdims)
    return count, total, primitives.Sum(primitives.SquaredDifference(x, shift), axes, keepdims), shift


@public("nn.normalize_moments", "compat.v1.nn.normalize_moments")
def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Any, Any]:
    """The mean and the variance from sufficient statistics.

    >>> tf.nn.normalize_moments(2., 4., 10., None)
    (<tf.Tensor: shape=(), dtype=float32, numpy=2.0>, <tf.Tensor: shape=(), dtype=float32, numpy=1.0>)
    """
    counts = convert_to_tensor(counts)
    mean_ss = convert_to_tensor(mean_ss, dtype_hint=counts.dtype)
    one_over = primitives.Reciprocal(counts)
    mean = shifted = mean_ss * one_over
    if shift is not None:
        mean = shifted + shift
    return mean, variance_ss * one_over - primitives.Square(shifted)


def _one_normalization(x: Any, mean: Any, variance: Any, offset: Any, scale: Any, epsilon: Any) -> bool:
    """Whether one operation does it: all is of one dtype, and statistics belong to x."""
    dtype = x.dtype
    if type(epsilon) is not float or not (dtype is float32 or dtype is float64):
        return False
    for given in (mean, variance, offset, scale):
        if given is not None and (not _core.is_tensor(given) or given.dtype is not dtype):
            return False
    return mean is not None and variance is not None


@public("nn.batch_normalization", "compat.v1.nn.batch_normalization", node="batchnorm")
def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any, name: str | None = None
) -> Any:
    """`(x - mean) / sqrt(variance + variance_epsilon) * scale + offset`; offset and scale may be None.

    Args:
        x: The tensor.
        mean: The mean, which broadcasts to `x`.
        variance: The variance, which broadcasts to `x`.
        offset: What to add, or None.
        scale: What to multiply by, or None.
        variance_epsilon: A small number added to the variance.
        name: A name for the operation in graphs.

    Returns:
        A tensor of the shape of `x`.

    Gradient:
        By every tensor argument.

    >>> tf.nn.batch_normalization([3.], 1., 4., None, None, 0.)
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([1.], dtype=float32)>
    """
    x = convert_to_tensor(x)
    if _one_normalization(x, mean, variance, offset, scale, variance_epsilon):
        return primitives.Normalize(
            x, mean, variance, 1.0 if scale is None else scale, 0.0 if offset is None else offset, variance_epsilon
        )
    mean = cast(convert_to_tensor(mean, dtype_hint=x.dtype), x.dtype)
    variance = convert_to_tensor(variance, dtype_hint=x.dtype)
    inverse = primitives.Rsqrt(variance + variance_epsilon)
    if scale is not None:
        inverse = inverse * convert_to_tensor(scale, dtype_hint=inverse.dtype)
    # The distance first: x * inverse - mean * inverse cancels, and with it the gradient by scale.
    normalized = (x - mean) * cast(inverse, x.dtype)
    return normalized if offset is None else normalized + cast(convert_to_tensor(offset, dtype_hint=x.dtype), x.dtype)


@public("nn.batch_norm_with_global_normalization")
def batch_norm_with_global_normalization(
    input: Any,
    mean: Any,
    variance: Any,
    beta: Any,
    gamma: Any,
    variance_epsilon: Any,
    scale_after_normalization: bool,
    name: str | None = None,
) -> Any:
    """Batch normalization with `beta` as offset and, if wanted, `gamma` as scale.

    >>> tf.nn.batch_norm_with_global_normalization([[[[3.]]]], [1.], [4.], [0.], [2.], 0., True)
    <tf.Tensor: shape=(1, 1, 1, 1), dtype=float32, numpy=array([[[[2.]]]], dtype=float32)>
    """
    scale = gamma if scale_after_normalization else None
    return batch_normalization(input, mean, variance, beta, scale, variance_epsilon)


@public("compat.v1.nn.fused_batch_norm")
def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
    exponential_avg_factor: float | None = 1.0,
) -> tuple[Any, Any, Any]:
    """Batch normalization over all but the channels: the result, and the mean and (unbiased) variance to keep.

    >>> tf.compat.v1.nn.fused_batch_norm([[[[1.]], [[3.]]]], [1.], [0.])[1]
    <tf.Tensor: shape=(1,), dtype=float32, numpy=array([2.], dtype=float32)>
    """
    if exponential_avg_factor is None:
        exponential_avg_factor = 1.0
    if (not is_training or exponential_avg_factor != 1.0) and (mean is None or variance is None):
        raise ValueError(
            "Both `mean` and `variance` must be a 1D tensor when `is_training` is False or "
            f"`exponential_avg_factor` != 1.0. Received: `mean` {mean!r} and `variance` {variance!r}"
        )
    x = of_rank(convert_to_tensor(x), len(data_format))
    rank = x.shape.rank
    if rank not in (4, 5):
        raise InvalidArgumentError.of(f"fused_batch_norm: input must be 4 or 5-dimensional; got {x.shape}")
    channel = 1 if data_format.startswith("NC") else rank - 1
    axes = [a for a in range(rank) if a != channel]
    y = _wide(x)
    scale = convert_to_tensor(scale, dtype_hint=y.dtype)
    offset = convert_to_tensor(offset, dtype_hint=y.dtype)
    channels = x.shape[channel]
    for what, given in (("scale", scale), ("offset", offset)):
        if not given.shape.is_compatible_with([channels]):
            raise InvalidArgumentError.of(
                f"fused_batch_norm: {what} must have the same number of elements as the channels of x, {channels}; "
                f"got {given.shape}"
            )
    one = [(-1 if channels is None else channels) if a == channel else 1 for a in range(rank)]
    if channels is None:
        wanted = primitives.Shape(x, int32)[channel : channel + 1]
        fits = [primitives.All(primitives.Equal(primitives.Shape(t, int32), wanted)) for t in (scale, offset)]
        same = primitives.LogicalAnd(*fits)
        text = "fused_batch_norm: scale and offset must have the same number of elements as the channels of x"
        scale = _core.required(scale, same, text)

    def broadcast(t: Any) -> Tensor:
        return primitives.Reshape(cast(t, y.dtype), one)

    if not is_training:
        kept_mean, kept_variance = cast(mean, y.dtype), cast(variance, y.dtype)
        centered, used_variance = y - broadcast(kept_mean), broadcast(kept_variance)
    else:
        used_mean = primitives.Mean(y, axes, True)
        centered = y - used_mean
        used_variance = primitives.Mean(primitives.Square(centered), axes, True)
        count = _count(x, axes)
        if _core.is_tensor(count):
            count = cast(count, y.dtype)
            correction = count / primitives.Maximum(count - 1, 1)
        else:
            correction = count / max(count - 1, 1)
        kept_mean = primitives.Reshape(used_mean, [-1])
        kept_variance = primitives.Reshape(used_variance, [-1]) * correction
        if exponential_avg_factor != 1.0:
            factor = exponential_avg_factor
            kept_mean = cast(mean, y.dtype) * (1 - factor) + kept_mean * factor
            kept_variance = cast(variance, y.dtype) * (1 - factor) + kept_variance * factor
    result = centered * (primitives.Rsqrt(used_variance + epsilon) * broadcast(scale)) + broadcast(offset)
    return cast(result, x.dtype), kept_mean, kept_variance


@public(
    "nn.local_response_normalization",
    "nn.lrn",
    "compat.v1.nn.local_response_normalization",
    "compat.v1.nn.lrn",
)
def local_response_normalization(
    input: Any,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Any:
    """`input / (bias + alpha * s) ** beta`, where `s` sums the squares of the channels within `depth_radius`.

    >>> tf.nn.lrn([[[[3.]]]], alpha=0.)
    <tf.Tensor: shape=(1, 1, 1, 1), dtype=float32, numpy=array([[[[3.]]]], dtype=float32)>
    """
    x = convert_to_tensor(input)
    if x.shape.rank != 4:
        raise InvalidArgumentError.of(f"nn.lrn: in must be 4-dimensional; got {x.shape.as_list()}")
    y = _wide(x)
    dims = dynamic_dims(x)
    positions = np.arange(dims[-1])
    near = np.abs(positions[:, None] - positions[None, :]) <= int(depth_radius)
    squares = primitives.Reshape(primitives.Square(y), [math.prod(dims[:-1]), dims[-1]])
    sums = primitives.Reshape(
        primitives.MatMul(squares, convert_to_tensor(near.astype(np.float64), dtype=y.dtype)), dims
    )
    return cast(y * primitives.Pow(bias + alpha * sums, cast(-beta, y.dtype)), x.dtype)


@public("nn.bias_add", "compat.v1.nn.bias_add", node="BiasAdd")
def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Any:
    """`value + bias` along the channels.

    Args:
        value: The tensor.
        bias: One number for each channel.
        data_format: 'NHWC' or 'N...C' for channels last (as None), 'NCHW' or 'NC...' for channels second.
        name: A name for the operation in graphs.

    Returns:
        A tensor of the shape of `value`.

    Gradient:
        `dy` for `value`, summed over all but the channels for `bias`.

    >>> tf.nn.bias_add([[1., 2.]], [10., 20.])
    <tf.Tensor: shape=(1, 2), dtype=float32, numpy=array([[11., 22.]], dtype=float32)>
    """
    value = convert_to_tensor(value)
    bias = convert_to_tensor(bias, dtype_hint=value.dtype)
    dims, channels = value.shape, bias.shape
    first = isinstance(data_format, str) and data_format.startswith("NC")
    last = isinstance(data_format, str) and data_format.startswith("N") and data_format.endswith("C")
    if data_format is not None and not first and not last:
        raise ValueError(f"`data_format` must be of the form `N...C` or `NC...`. Received: data_format={data_format}")
    if dims.rank < 2:
        raise InvalidArgumentError.of(f"nn.bias_add: Input tensor must be at least 2D: {value.shape.as_list()}")
    if channels.rank != 1:
        raise InvalidArgumentError.of(f"nn.bias_add: Biases must be 1D: {bias.shape.as_list()}")
    axis = 1 if first else dims.rank - 1
    if channels[0] != dims[axis]:
        if channels[0] is not None and dims[axis] is not None:
            raise InvalidArgumentError.of(
                f"nn.bias_add: Must provide as many biases as the last dimension of the input tensor: "
                f"{bias.shape.as_list()} vs. {value.shape.as_list()}",
            )
        if dims[axis] is None:
            value = ensure_shape(value, [channels[0] if i == axis else n for i, n in enumerate(dims)])
        else:
            bias = ensure_shape(bias, [dims[axis]])
    if first and dims.rank > 2:
        bias = primitives.Reshape(bias, [-1] + [1] * (dims.rank - 2))
    return value + bias


# ---- dropout


@public("nn.dropout")
def dropout(x: Any, rate: Any, noise_shape: Any = None, seed: Any = None, name: str | None = None) -> Any:
    """`x` with a random part `rate` of its elements set to 0 and the others scaled by `1 / (1 - rate)`.

    Args:
        x: The tensor, floating.
        rate: The share of elements that become 0; the others are scaled by `1 / (1 - rate)`.
        noise_shape: The shape of the random choice, which broadcasts to `x`; that of `x` if None.
        seed: A number that, with `tf.random.set_seed`, fixes the choice.
        name: A name for the operation in graphs.

    Returns:
        A tensor of the shape of `x`.

    Gradient:
        `dy`, scaled, where an element was kept.

    >>> tf.nn.dropout([1., 2.], rate=0.)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
    """

    def sample(shape: Any, dtype: Any) -> Any:
        return uniform(shape=shape, seed=seed, dtype=dtype)

    return general_dropout(x, rate, sample, noise_shape)


@public("nn.experimental.stateless_dropout", "compat.v1.nn.experimental.stateless_dropout")
def stateless_dropout(
    x: Any, rate: Any, seed: Any, rng_alg: Any = None, noise_shape: Any = None, name: str | None = None
) -> Any:
    """Dropout whose choice depends on `seed` alone.

    >>> tf.nn.experimental.stateless_dropout([1., 2.], rate=0., seed=[1, 2])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
    """
    extra = {} if rng_alg is None else {"alg": rng_alg}

    def sample(shape: Any, dtype: Any) -> Any:
        return stateless_uniform(shape=shape, seed=seed, dtype=dtype, **extra)

    return general_dropout(x, rate, sample, noise_shape)


@public("nn.experimental.general_dropout", "compat.v1.nn.experimental.general_dropout")
def general_dropout(
    x: Any,
    rate: Any,
    uniform_sampler: Callable[..., Any],
    noise_shape: Any = None,
    name: str | None = None,
) -> Any:
    """Dropout with uniform numbers from `uniform_sampler(shape=..., dtype=...)`.

    >>> tf.nn.experimental.general_dropout([1., 2.], 0.5, lambda shape, dtype: tf.ones(shape, dtype))
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 4.], dtype=float32)>
    """
    x = convert_to_tensor(x)
    if not x.dtype.is_floating:
        raise ValueError(
            f"`x.dtype` must be a floating point tensor as `x` will be scaled. Received: x_dtype={x.dtype!r}"
        )
    if is_tensor(rate):
        rate = convert_to_tensor(rate)
        if rate.shape.rank not in (0, None):
            raise ValueError(f"`rate` must be a scalar tensor. Received: rate={rate}")
        if rate.dtype != x.dtype:
            if not rate.dtype.is_compatible_with(x.dtype):
                raise ValueError(f"`x.dtype` must be equal to `rate.dtype`. Received: {x.dtype!r} and {rate.dtype!r}")
            rate = cast(rate, x.dtype)
    elif isinstance(rate, str | list | tuple):
        raise ValueError(f"`rate` must be a scalar or scalar tensor. Received: rate={rate}")
    elif not 0 <= rate < 1:
        raise ValueError(f"`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}")
    elif rate == 0:
        return x
    shape = _noise_shape(x, noise_shape)
    uniform = uniform_sampler(shape=shape, dtype=x.dtype)
    kept = uniform >= rate
    scaled = x / (1 - rate) if _core.is_tensor(rate) else x * (1 / (1 - rate))
    dropped = primitives.SelectV2(kept, scaled, 0.0)
    if _core.is_symbolic(dropped):  # a rate or noise of unknown shape hides what is known of x
        dropped.set_shape(x.shape)
    return dropped


def _noise_shape(x: Any, noise_shape: Any) -> Any:
    if noise_shape is None:
        return x.shape.as_list() if x.shape.is_fully_defined() else shape_argument(primitives.Shape(x, int32))
    if isinstance(noise_shape, list | tuple | TensorShape) and len(noise_shape) == x.shape.rank:
        noise_shape = [d if n is None else n for d, n in zip(dynamic_dims(x), noise_shape)]
    return shape_argument(noise_shape)
