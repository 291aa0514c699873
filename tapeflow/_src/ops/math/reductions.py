"""Reductions over axes that are made of other operations."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import bfloat16, float16, float32, float64, int64, string


@public("math.reduce_logsumexp", "reduce_logsumexp")
def reduce_logsumexp(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """`log(sum(exp(x)))` over the axes, without overflow.

    Args:
        input_tensor: The tensor to reduce, floating.
        axis: The axes to sum over; all of them if None. Negative axes count from the end.
        keepdims: Whether to keep these axes, with size 1.
        name: A name for the operation in graphs.

    Returns:
        A tensor without the axes `axis`, or with size 1 there if `keepdims`.

    Gradient:
        `dy * softmax(x)` over the axes.

    >>> tf.reduce_logsumexp([0., 0.])
    <tf.Tensor: shape=(), dtype=float32, numpy=0.6931471824645996>
    """
    x = convert_to_tensor(input_tensor)
    largest = primitives.Max(x, axis, True)
    shift = primitives.StopGradient(primitives.SelectV2(primitives.IsFinite(largest), largest, 0.0))
    total = primitives.Log(primitives.Sum(primitives.Exp(x - shift), axis, True)) + shift
    if keepdims:
        return total
    return primitives.Squeeze(total, axis) if axis is None or type(axis) is int else primitives.Sum(total, axis)


@public("math.reduce_variance")
def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The variance over the axes; of complex numbers, the mean squared distance from the mean.

    Args:
        input_tensor: The tensor to reduce, floating or complex.
        axis: The axes to reduce; all of them if None.
        keepdims: Whether reduced axes stay in the shape, with size 1.
        name: A name for the operation in graphs.

    Returns:
        A tensor without the axes `axis`, or with size 1 there if `keepdims`.

    Gradient:
        `dy * 2 * (x - mean) / n`.

    >>> tf.math.reduce_variance([1., 3.])
    <tf.Tensor: shape=(), dtype=float32, numpy=1.0>
    """
    x = convert_to_tensor(input_tensor)
    y = _variance(x, axis, keepdims)
    return y if x.dtype is float32 else cast(y, x.dtype.real_dtype)


@public("math.reduce_std")
def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The standard deviation over the axes.

    Args:
        input_tensor: What to reduce: a floating or complex tensor.
        axis: An axis or a list of axes; None for all. Negative axes count from the end.
        keepdims: Whether to keep the reduced axes, with size 1.
        name: A name for the operation in graphs.

    Returns:
        A tensor of deviations, of the shape of `input_tensor` without the axes `axis` (of size 1 with `keepdims`).

    Gradient:
        `dy * (x - mean) / (n * y)`; NaN where the deviation is 0.

    >>> tf.math.reduce_std([1., 3.])
    <tf.Tensor: shape=(), dtype=float32, numpy=1.0>
    """
    x = convert_to_tensor(input_tensor)
    y = primitives.Sqrt(_variance(x, axis, keepdims))
    return y if x.dtype is float32 else cast(y, x.dtype.real_dtype)


def _variance(x: Any, axis: Any, keepdims: bool) -> Tensor:
    """The variance as a real number; small floats are computed in float32."""
    if (x.dtype is float32 or x.dtype is float64) and not _core.is_tracing() and (axis is None or type(axis) is int):
        axes = list(range(x.ndim)) if axis is None else [axis]
        if all(-x.ndim <= a < x.ndim for a in axes):
            variance = primitives.Moments(x, axes)[1]
            return variance if keepdims or not axes else primitives.Squeeze(variance, axes)
    if x.dtype.is_integer:
        raise TypeError(f"Input must be either real or complex. Received integer type {x.dtype}.")
    if x.dtype in (float16, bfloat16):
        x = cast(x, float32)
    distance = x - primitives.Mean(x, axis, True)
    if x.dtype.is_complex:
        return primitives.Mean(primitives.Real(distance * primitives.Conj(distance)), axis, keepdims)
    return primitives.Mean(primitives.Square(distance), axis, keepdims)


@public("math.count_nonzero")
def count_nonzero(
    input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: Any = int64,
    name: str | None = None,
) -> Any:
    """The number of elements that are not zero (not False, not the empty string) over the axes.

    >>> tf.math.count_nonzero([[0, 1], [2, 3]], axis=0)
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([1, 2])>
    """
    x = convert_to_tensor(input)
    zero = convert_to_tensor("") if x.dtype == string else cast(0, x.dtype)
    counts = primitives.Sum(cast(primitives.NotEqual(x, zero), int64), axis, bool(keepdims))
    return cast(counts, dtype)


@public("math.zero_fraction", "nn.zero_fraction", "compat.v1.math.zero_fraction", "compat.v1.nn.zero_fraction")
def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """The share of elements that are zero, as float32; NaN if there are none.

    >>> tf.math.zero_fraction([0., 1., 0., 0.])
    <tf.Tensor: shape=(), dtype=float32, numpy=0.75>
    """
    x = convert_to_tensor(value)
    return primitives.Mean(cast(primitives.Equal(x, cast(0, x.dtype)), float32))
