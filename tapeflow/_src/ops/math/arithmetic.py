"""Arithmetic that is made of other operations."""

from __future__ import annotations

from collections.abc import Iterable
from math import pi
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import zeros_like
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import as_dtype, float32, float64, string
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.types.tensor_shape import TensorShape


def as_pair(x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands as tensors; a number or list takes the dtype of the tensor beside it."""
    if _core.is_tensor(x):
        x = convert_to_tensor(x)
        return x, convert_to_tensor(y, dtype_hint=x.dtype)
    if _core.is_tensor(y):
        y = convert_to_tensor(y)
        return convert_to_tensor(x, dtype_hint=y.dtype), y
    x = convert_to_tensor(x)
    return x, convert_to_tensor(y, dtype_hint=x.dtype)


@public("math.divide", "divide")
def divide(x: Any, y: Any, name: str | None = None) -> Any:
    """`x / y`, as Python divides: integers give floats.

    Args:
        x: The dividend.
        y: The divisor.
        name: A name for the operation in graphs.

    Returns:
        A tensor of the shape to which `x` and `y` broadcast.

    Gradient:
        `dy / y` for `x` and `-dy * x / y**2` for `y`.

    >>> tf.divide([1, 2], 2)
    <tf.Tensor: shape=(2,), dtype=float64, numpy=array([0.5, 1. ])>
    """
    return truediv(x, y)


@public("math.truediv", "truediv")
def truediv(x: Any, y: Any, name: str | None = None) -> Any:
    """`x / y`, as Python divides: integers give floats (float64 for 32 and 64 bits, float32 for fewer).

    >>> tf.truediv([3, 4], 2)
    <tf.Tensor: shape=(2,), dtype=float64, numpy=array([1.5, 2. ])>
    """
    x, y = as_pair(x, y)
    _check_quotient("truediv", x, y)
    return x / y


@public("math.divide_no_nan")
def divide_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """`x / y`, and 0 where `y` is 0; integers give floats.

    >>> tf.math.divide_no_nan([1., 2.], [0., 4.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0. , 0.5], dtype=float32)>
    """
    x, y = as_pair(x, y)
    _check_quotient("divide_no_nan", x, y)
    if x.dtype.is_integer:
        dtype = float32 if x.dtype.size < 4 else float64
        x, y = cast(x, dtype), cast(y, dtype)
    return primitives.DivNoNan(x, y)


def _check_quotient(name: str, x: Any, y: Any) -> None:
    if x.dtype != y.dtype:
        raise TypeError(f"{name}: `x` and `y` must have the same dtype, got {x.dtype!r} != {y.dtype!r}.")
    if x.dtype.is_bool or x.dtype == string:
        raise TypeError(f"{name}: Invalid dtype {x.dtype!r}. Expected a number.")


@public("math.abs", "abs")
def abs(x: Any, name: str | None = None) -> Tensor:
    """The absolute value; of a complex number, its length.

    Args:
        x: A tensor of numbers.
        name: A name for the operation in graphs.

    Returns:
        A tensor of the shape of `x`; real for complex `x`.

    Gradient:
        `dx = dy * sign(x)`, 0 at 0.

    >>> tf.abs([-1., 2.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
    """
    x = convert_to_tensor(x)
    return primitives.ComplexAbs(x) if x.dtype.is_complex else primitives.Abs(x)


@public("math.real")
def real(input: Any, name: str | None = None) -> Tensor:
    """The real part.

    Args:
        input: The tensor.
        name: A name for the operation in graphs.

    Returns:
        A tensor of the parts; `input` itself if it is real.

    Gradient:
        `dy` as the real part.

    >>> tf.math.real(tf.constant([1+2j]))
    <tf.Tensor: shape=(1,), dtype=float64, numpy=array([1.])>
    """
    x = convert_to_tensor(input)
    _check_numeric("real", x)
    return primitives.Real(x) if x.dtype.is_complex else x


def _check_numeric(name: str, x: Any) -> None:
    if x.dtype.is_bool or x.dtype == string:
        raise TypeError(f"{name}: Expected numeric or variant tensor, got dtype {x.dtype!r}")


@public("math.imag")
def imag(input: Any, name: str | None = None) -> Tensor:
    """The imaginary part.

    Args:
        input: The tensor.
        name: A name for the operation in graphs.

    Returns:
        A tensor of the parts.

    Gradient:
        `dy` as the imaginary part.

    >>> tf.math.imag(tf.constant([1+2j]))
    <tf.Tensor: shape=(1,), dtype=float64, numpy=array([2.])>
    """
    x = convert_to_tensor(input)
    return primitives.Imag(x) if x.dtype.is_complex else zeros_like(x)


@public("math.conj")
def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate; real numbers stay as they are.

    Args:
        x: The tensor.
        name: A name for the operation in graphs.

    Returns:
        A tensor of the shape and dtype of `x`.

    Gradient:
        `dx = conj(dy)`.

    >>> tf.math.conj(tf.constant([1+2j]))
    <tf.Tensor: shape=(1,), dtype=complex128, numpy=array([1.-2.j])>
    """
    x = convert_to_tensor(x)
    _check_numeric("conj", x)
    return primitives.Conj(x) if x.dtype.is_complex else x


@public("math.add_n", "add_n", node=primitives.AddN)
def add_n(inputs: Any, name: str | None = None) -> Tensor:
    """The sum of a list of equally shaped tensors.

    Args:
        inputs: A list of tensors or `tf.IndexedSlices` of equal shape and dtype.
        name: A name for the operation in graphs.

    Returns:
        A tensor of the shape of the inputs.

    Gradient:
        `dy` for each input.

    >>> tf.add_n([[1., 2.], [3., 4.]])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([4., 6.], dtype=float32)>
    """
    inputs = list(inputs) if isinstance(inputs, Iterable) else []
    if not inputs:
        raise ValueError(
            "add_n: Inputs must be an iterable of at least one Tensor/IndexedSlices with the same dtype and shape."
        )
    return primitives.AddN([convert_to_tensor(x) for x in inputs])


@public("math.accumulate_n")
def accumulate_n(inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: str | None = None) -> Tensor:
    """The sum of a list of equally shaped tensors.

    >>> tf.math.accumulate_n([[1., 2.], [3., 4.]])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([4., 6.], dtype=float32)>
    """
    inputs = [convert_to_tensor(x) for x in inputs] if isinstance(inputs, list | tuple) else []
    if not inputs or any(x.dtype != inputs[0].dtype for x in inputs):
        raise ValueError("accumulate_n: inputs must be a list of at least one Tensor with the same dtype and shape")
    expected = inputs[0].shape if shape is None else TensorShape(shape)
    for x in inputs:
        if not expected.is_compatible_with(x.shape):
            raise ValueError(f"accumulate_n: Shapes {expected} and {x.shape} are not compatible")
    if tensor_dtype is not None and as_dtype(tensor_dtype) != inputs[0].dtype:
        raise TypeError(
            f"accumulate_n: The `tensor_dtype` argument is {tensor_dtype!r}, but `input` is of type "
            f"{inputs[0].dtype!r}. These must be equal. Try casting the input to the desired type."
        )
    return primitives.AddN(inputs)


@public("math.scalar_mul", "scalar_mul")
def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """A scalar times a tensor or an IndexedSlices, which stays sparse.

    >>> tf.math.scalar_mul(2., [1., 2.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 4.], dtype=float32)>
    """
    if isinstance(x, IndexedSlices):
        return IndexedSlices(scalar_mul(scalar, x.values), x.indices, x.dense_shape)
    x = convert_to_tensor(x)
    scalar = convert_to_tensor(scalar, x.dtype)
    if scalar.shape.rank != 0:
        raise ValueError(f"scalar_mul: The input scalar must be a 0-D value. Received shape {scalar.shape}.")
    return primitives.Mul(scalar, x)


@public("math.polyval")
def polyval(coeffs: Any, x: Any, name: str | None = None) -> Any:
    """The polynomial with the given coefficients (highest first) at `x`.

    >>> tf.math.polyval([1., 2., 3.], 2.)
    <tf.Tensor: shape=(), dtype=float32, numpy=11.0>
    """
    if not isinstance(coeffs, list):
        raise ValueError(f"Argument coeffs must be list type. Received type {type(coeffs)}.")
    x = convert_to_tensor(x)
    if not coeffs:
        return zeros_like(x)
    value = convert_to_tensor(coeffs[0], dtype_hint=x.dtype)
    for coefficient in coeffs[1:]:
        value = convert_to_tensor(coefficient, dtype_hint=x.dtype) + value * x
    return value


@public("math.logical_xor")
def logical_xor(x: Any, y: Any, name: str = "LogicalXor") -> Tensor:
    """Whether exactly one of the two is true.

    >>> tf.math.logical_xor([True, True], [True, False])
    <tf.Tensor: shape=(2,), dtype=bool, numpy=array([False,  True])>
    """
    return primitives.LogicalAnd(primitives.LogicalOr(x, y), primitives.LogicalNot(primitives.LogicalAnd(x, y)))


@public("math.angle")
def angle(input: Any, name: str | None = None) -> Tensor:
    """The angle of complex numbers in the plane, in radians; of real numbers 0, or pi below 0.

    >>> tf.math.angle(tf.constant([1+0j, 0+2j]))
    <tf.Tensor: shape=(2,), dtype=float64, numpy=array([0.        , 1.57079633])>
    """
    x = convert_to_tensor(input)
    if x.dtype.is_complex:
        return primitives.Atan2(primitives.Imag(x), primitives.Real(x))
    if not x.dtype.is_floating:
        raise TypeError(f"angle: input must be complex or floating point; got {x.dtype!r}.")
    return primitives.SelectV2(x < 0, convert_to_tensor(pi, x.dtype), cast(0, x.dtype))


@public("math.reciprocal_no_nan")
def reciprocal_no_nan(x: Any, name: str | None = None) -> Tensor:
    """`1 / x`, and 0 where `x` is 0.

    >>> tf.math.reciprocal_no_nan([2., 0.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.5, 0. ], dtype=float32)>
    """
    x = convert_to_tensor(x)
    return primitives.DivNoNan(cast(1, x.dtype), x)


@public("math.log_sigmoid")
def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """`log(1 / (1 + exp(-x)))`, exact for large and small `x`.

    >>> tf.math.log_sigmoid([0., -100.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([  -0.6931472, -100.       ], dtype=float32)>
    """
    return -primitives.Softplus(-convert_to_tensor(x))


public("math.softsign")(primitives.Softsign)


@public("math.is_non_decreasing", "compat.v1.math.is_non_decreasing", "compat.v1.is_non_decreasing")
def is_non_decreasing(x: Any, name: str | None = None) -> Tensor:
    """Whether no element, in row-major order, is smaller than the one before it.

    >>> tf.math.is_non_decreasing([1, 1, 2])
    <tf.Tensor: shape=(), dtype=bool, numpy=True>
    """
    steps = primitives.Reshape(x, [-1])
    return primitives.All(steps[1:] >= steps[:-1])


@public("math.is_strictly_increasing", "compat.v1.math.is_strictly_increasing", "compat.v1.is_strictly_increasing")
def is_strictly_increasing(x: Any, name: str | None = None) -> Tensor:
    """Whether every element, in row-major order, is larger than the one before it.

    >>> tf.math.is_strictly_increasing([1, 1, 2])
    <tf.Tensor: shape=(), dtype=bool, numpy=False>
    """
    steps = primitives.Reshape(x, [-1])
    return primitives.All(steps[1:] > steps[:-1])


@public("clip_by_value")
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """Values below the minimum or above the maximum replaced by it. An IndexedSlices stays sparse.

    Args:
        t: The tensor, or `tf.IndexedSlices`.
        clip_value_min: The lowest value, or a tensor that broadcasts to `t`.
        clip_value_max: The highest value, or a tensor that broadcasts to `t`.
        name: A name for the operation in graphs.

    Returns:
        A tensor of the shape of `t`.

    Gradient:
        `dy` where `t` lies within the bounds, 0 elsewhere.

    >>> tf.clip_by_value([-3., 0.5, 7.], -1., 1.)
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([-1. ,  0.5,  1. ], dtype=float32)>
    """
    if isinstance(t, IndexedSlices):
        return IndexedSlices(clip_by_value(t.values, clip_value_min, clip_value_max), t.indices, t.dense_shape)
    values = convert_to_tensor(t)
    if type(clip_value_min) is float and type(clip_value_max) is float and values.dtype.is_floating:
        return primitives.Maximum(primitives.Minimum(values, clip_value_max), clip_value_min)
    low = convert_to_tensor(clip_value_min, dtype=None if _core.is_tensor(clip_value_min) else values.dtype)
    high = convert_to_tensor(clip_value_max, dtype=None if _core.is_tensor(clip_value_max) else values.dtype)
    clipped = primitives.Maximum(primitives.Minimum(values, high), low)
    if not clipped.shape.is_compatible_with(values.shape):
        raise ValueError(
            f"clip_by_value: the bounds must not change the shape; got {low.shape} and {high.shape} for {values.shape}."
        )
    return clipped
