"""`tf.compat.v1.layers`: the simple ones, as functions that make their variables in a scope of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.compat.v1.graph.collections import GraphKeys
from tapeflow._src.compat.v1.graph.graph import get_default_graph
from tapeflow._src.compat.v1.signatures.families import family
from tapeflow._src.compat.v1.variables.variable_scope import get_variable, variable_scope
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.nn.constant_initializers import ZerosInitializer


def make_bias(size: int, dtype: Any, initializer: Any, regularizer: Any, trainable: bool, constraint: Any) -> Any:
    """The variable `bias` of a layer."""
    initializer = initializer or ZerosInitializer()
    return get_variable("bias", [size], dtype, initializer, regularizer, trainable, constraint=constraint)


def activated(y: Any, activation: Callable[[Any], Any] | None, regularizer: Callable[[Any], Any] | None) -> Any:
    """The output of a layer; what its regularizer makes of it is among the regularization losses."""
    if activation is not None:
        y = activation(y)
    if regularizer is not None:
        get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, regularizer(y))
    return y


def _run_layer(
    label: str,
    formula: Callable[..., Any],
    activation: Callable[[Any], Any] | None,
    use_bias: bool,
    kernel_initializer: Any,
    bias_initializer: Any,
    kernel_regularizer: Any,
    bias_regularizer: Any,
    activity_regularizer: Any,
    kernel_constraint: Any,
    bias_constraint: Any,
    trainable: bool,
    name: Any,
    reuse: Any,
) -> Any:
    def kernel(shape: list[Any], dtype: Any) -> Any:
        return get_variable(
            "kernel", shape, dtype, kernel_initializer, kernel_regularizer, trainable, constraint=kernel_constraint
        )

    with variable_scope(name, default_name=label, reuse=reuse):
        y = formula(_kernel=kernel)
        if use_bias:
            size = y.shape.as_list()[-1]
            bias = make_bias(size, y.dtype, bias_initializer, bias_regularizer, trainable, bias_constraint)
            y = find_public("nn.bias_add")(y, bias)
        return activated(y, activation, activity_regularizer)


# Defines a layer by the formula of its inputs and `_kernel`, the function that makes its variable.
define_layer = family(
    "layers",
    "activation=None, use_bias=True, kernel_initializer=None, bias_initializer=None, kernel_regularizer=None, "
    "bias_regularizer=None, activity_regularizer=None, kernel_constraint=None, bias_constraint=None, trainable=True, "
    "name=None, reuse=None",
    _run_layer,
)


@define_layer("dense")
def dense(inputs: Any, units: int, _kernel: Any) -> Tensor:
    """activation(inputs @ kernel + bias), with variables `kernel` and `bias`.

    >>> with tf.Graph().as_default():
    ...     x = tf.compat.v1.placeholder(tf.float32, [None, 3])
    ...     tf.compat.v1.layers.dense(x, 2).shape
    TensorShape([None, 2])
    """
    x = convert_to_tensor(inputs)
    if x.shape.rank is None or x.shape[-1] is None:
        raise ValueError("The last dimension of the inputs to a Dense layer should be defined. Found None.")
    kernel = _kernel([x.shape[-1], units], x.dtype)
    return primitives.MatMul(x, kernel) if x.shape.rank == 2 else find_public("tensordot")(x, kernel, 1)


@public("compat.v1.layers.flatten")
def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Tensor:
    """All dimensions but the first in one.

    >>> tf.compat.v1.layers.flatten(tf.ones([2, 3, 4])).shape
    TensorShape([2, 12])
    """
    x = convert_to_tensor(inputs)
    size = 1
    for d in x.shape.as_list()[1:]:
        if d is None:
            raise ValueError(f"flatten: the dimensions behind the first must be known; got {x.shape}")
        size *= d
    return primitives.Reshape(x, [-1, size])


@public("compat.v1.layers.dropout")
def dropout(
    inputs: Any,
    rate: float = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
    name: str | None = None,
) -> Tensor:
    """Zeros in random places while training; otherwise the inputs.

    >>> tf.compat.v1.layers.dropout([1., 2.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
    """
    x = convert_to_tensor(inputs)
    if isinstance(training, bool | int):
        return find_public("nn.dropout")(x, rate, noise_shape, seed) if training else primitives.Identity(x)
    dropped = find_public("nn.dropout")(x, rate, noise_shape, seed)
    chosen = primitives.SelectV2(training, dropped, x)
    chosen.set_shape(x.shape)
    return chosen
