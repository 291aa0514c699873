"""Activation functions and the softmax family: the parts that are made of other operations."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import float32
from tapeflow._src.types.errors import InvalidArgumentError


@public("nn.gelu")
def gelu(features: Any, approximate: bool = False, name: str | None = None) -> Tensor:
    """`features` times the probability that a normal number lies below it; with `approximate`, by a tanh.

    >>> tf.nn.gelu([-1., 1.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([-0.15865526,  0.8413447 ], dtype=float32)>
    """
    features = convert_to_tensor(features)
    if not features.dtype.is_floating:
        raise ValueError(f"`features.dtype` must be a floating point tensor.Received:features.dtype={features.dtype}")
    return primitives.GeluTanh(features) if approximate else primitives.GeluErf(features)


@public("nn.leaky_relu", "compat.v1.nn.leaky_relu")
def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """`features` where positive, `alpha * features` elsewhere.

    >>> tf.nn.leaky_relu([-1., 2.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([-0.2,  2. ], dtype=float32)>
    """
    features = convert_to_tensor(features)
    if features.dtype.is_integer:
        features = cast(features, float32)
    if _core.is_tensor(alpha):
        alpha = convert_to_tensor(alpha, dtype_hint=features.dtype)
        return primitives.SelectV2(features > 0, features, features * alpha)
    return primitives.LeakyRelu(features, float(alpha))


@public("nn.silu", "nn.swish", "compat.v1.nn.silu", "compat.v1.nn.swish")
def silu(features: Any, beta: Any = 1.0) -> Any:
    """`features * sigmoid(beta * features)`; a `beta` that is a tensor has a gradient too.

    >>> tf.nn.silu([0., 1.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 0.7310586], dtype=float32)>
    """
    features = convert_to_tensor(features)
    if _core.is_tensor(beta):
        beta = convert_to_tensor(beta)
        beta = beta if beta.dtype == features.dtype else cast(beta, features.dtype)
    elif beta == 1:
        return features * primitives.Sigmoid(features)
    return features * primitives.Sigmoid(beta * features)


@public("nn.crelu")
def crelu(features: Any, axis: int = -1, name: str | None = None) -> Tensor:
    """relu of `features` and of `-features`, side by side along `axis`.

    >>> tf.nn.crelu([-1., 2.])
    <tf.Tensor: shape=(4,), dtype=float32, numpy=array([0., 2., 1., 0.], dtype=float32)>
    """
    features = convert_to_tensor(features)
    return primitives.Relu(primitives.ConcatV2([features, -features], axis))


@public("compat.v1.nn.relu_layer")
def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """`relu(x @ weights + biases)`.

    >>> tf.compat.v1.nn.relu_layer([[1., 2.]], [[1.], [1.]], [-1.])
    <tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[2.]], dtype=float32)>
    """
    return primitives.Relu(primitives.MatMul(x, weights) + biases)


# Elements from which on it is faster to reduce along another axis than to bring it to the end and back.
_WORTH_REDUCING = 1 << 14


def _softmax_along(logits: Any, axis: int) -> Any:
    powers = primitives.Exp(logits - primitives.StopGradient(primitives.Max(logits, [axis], True)))
    return powers / primitives.Sum(powers, [axis], True)


def _log_softmax_along(logits: Any, axis: int) -> Any:
    shifted = logits - primitives.StopGradient(primitives.Max(logits, [axis], True))
    return shifted - primitives.Log(primitives.Sum(primitives.Exp(shifted), [axis], True))


def _along(axis: int, logits: Any, function: Any, along_inner_axis: Any) -> Any:
    """Applies a function of the last dimension along another one; large tensors have a method of their own."""
    logits = convert_to_tensor(logits)
    rank = logits.shape.rank
    if rank == 0:
        return function(logits)
    if not -rank <= axis < rank:
        raise InvalidArgumentError.of(
            f"softmax: `dim` must be in the range [{-rank}, {rank}) where {rank} is the number of dimensions in the "
            f"input. Received: dim={axis}",
        )
    axis = axis % rank
    if axis == rank - 1:
        return function(logits)
    if logits.dtype.size > 2 and (logits.shape.num_elements() or 0) >= _WORTH_REDUCING:
        return along_inner_axis(logits, axis)
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    return primitives.Transpose(function(primitives.Transpose(logits, order)), order)


@public("nn.softmax", "math.softmax", node=primitives.Softmax)
def softmax(logits: Any, axis: int | None = None, name: str | None = None) -> Any:
    """`exp(logits)` scaled so that the sum along `axis` is 1.

    Args:
        logits: The tensor, floating.
        axis: The dimension that adds up to 1.
        name: A name for the operation in graphs.

    Returns:
        A tensor of the shape of `logits`.

    Gradient:
        `y * (dy - sum(dy * y))` along `axis`.

    >>> tf.nn.softmax([0., 0.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.5, 0.5], dtype=float32)>
    """
    return _along(-1 if axis is None else int(axis), logits, primitives.Softmax, _softmax_along)


@public("nn.log_softmax", "math.log_softmax", node=primitives.LogSoftmax)
def log_softmax(logits: Any, axis: int | None = None, name: str | None = None) -> Any:
    """The logarithm of softmax, without loss of accuracy.

    Args:
        logits: The tensor, floating.
        axis: The dimension.
        name: A name for the operation in graphs.

    Returns:
        A tensor of the shape of `logits`.

    Gradient:
        `dy - softmax(logits) * sum(dy)` along `axis`.

    >>> tf.nn.log_softmax([0., 0.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([-0.6931472, -0.6931472], dtype=float32)>
    """
    return _along(-1 if axis is None else int(axis), logits, primitives.LogSoftmax, _log_softmax_along)


for _path, _function in {
    "relu": primitives.Relu,
    "relu6": primitives.Relu6,
    "elu": primitives.Elu,
    "selu": primitives.Selu,
    "softplus": primitives.Softplus,
    "softsign": primitives.Softsign,
    "sigmoid": primitives.Sigmoid,
    "tanh": primitives.Tanh,
}.items():
    public(f"compat.v1.nn.{_path}")(_function)
