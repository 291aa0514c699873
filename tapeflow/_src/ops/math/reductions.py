"""Reductions over axes that are made of other operations, and the argument names of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import bfloat16, float16, float32, float64, int64, string


@public("math.reduce_logsumexp", "reduce_logsumexp")
def reduce_logsumexp(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """`log(sum(exp(x)))` over the axes, without overflow.

    >>> tf.reduce_logsumexp([0., 0.])
    0.6931472
    """
    x = convert_to_tensor(input_tensor)
    largest = primitives.Max(x, axis, True)
    shift = primitives.StopGradient(primitives.SelectV2(primitives.IsFinite(largest), largest, 0.0))
    total = primitives.Log(primitives.Sum(primitives.Exp(x - shift), axis, True)) + shift
    if keepdims:
        return total
    return primitives.Squeeze(total, axis) if axis is None or type(axis) is int else primitives.Sum(total, axis)


@public("math.reduce_variance")
def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """The variance over the axes; of complex numbers, the mean squared distance from the mean.

    >>> tf.math.reduce_variance([1., 3.])
    1.0
    """
    x = convert_to_tensor(input_tensor)
    y = _variance(x, axis, keepdims)
    return y if x.dtype is float32 else cast(y, x.dtype.real_dtype)


@public("math.reduce_std")
def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Any:
    """The standard deviation over the axes.

    >>> tf.math.reduce_std([1., 3.])
    1.0
    """
    x = convert_to_tensor(input_tensor)
    y = primitives.Sqrt(_variance(x, axis, keepdims))
    return y if x.dtype is float32 else cast(y, x.dtype.real_dtype)


def _variance(x: Any, axis: Any, keepdims: bool) -> Any:
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
    [1, 2]
    """
    x = convert_to_tensor(input)
    zero = convert_to_tensor("") if x.dtype == string else cast(0, x.dtype)
    counts = primitives.Sum(cast(primitives.NotEqual(x, zero), int64), axis, bool(keepdims))
    return cast(counts, dtype)


@public("math.zero_fraction", "nn.zero_fraction", "compat.v1.math.zero_fraction", "compat.v1.nn.zero_fraction")
def zero_fraction(value: Any, name: str | None = None) -> Any:
    """The share of elements that are zero, as float32; NaN if there are none.

    >>> tf.math.zero_fraction([0., 1., 0., 0.])
    0.75
    """
    x = convert_to_tensor(value)
    return primitives.Mean(cast(primitives.Equal(x, cast(0, x.dtype)), float32))


def _one_of(name: str, new: str, value: Any, old: str, deprecated: Any) -> Any:
    """The value of an argument that TensorFlow 1 knows under two names."""
    if deprecated is not None and value is not None:
        raise ValueError(f"Cannot specify both '{old}' and '{new}' in {name}.")
    return value if deprecated is None else deprecated


def _reduction_v1(name: str, reduce: Callable[..., Any], sentence: str, example: str) -> None:
    """Gives a reduction its TensorFlow 1 face: the older names of its arguments are taken too."""

    @public(f"compat.v1.{name}", f"compat.v1.math.{name}")
    def reduction(
        input_tensor: Any,
        axis: Any = None,
        keepdims: bool | None = None,
        name: str | None = None,
        reduction_indices: Any = None,
        keep_dims: bool | None = None,
    ) -> Any:
        axis = _one_of(reduction.__name__, "axis", axis, "reduction_indices", reduction_indices)
        keepdims = _one_of(reduction.__name__, "keepdims", keepdims, "keep_dims", keep_dims)
        return reduce(input_tensor, axis, bool(keepdims))

    reduction.__name__ = reduction.__qualname__ = name
    reduction.__doc__ = f"{sentence}\n\n    >>> tf.compat.v1.{name}({example}\n    "


_reduction_v1("reduce_sum", primitives.Sum, "Sum over axes.", "[1., 2.])\n    3.0")
_reduction_v1("reduce_mean", primitives.Mean, "Mean over axes.", "[1., 3.])\n    2.0")
_reduction_v1("reduce_prod", primitives.Prod, "Product over axes.", "[2., 3.])\n    6.0")
_reduction_v1("reduce_max", primitives.Max, "Largest element over axes.", "[1., 3.])\n    3.0")
_reduction_v1("reduce_min", primitives.Min, "Smallest element over axes.", "[1., 3.])\n    1.0")
_reduction_v1("reduce_any", primitives.Any, "Whether any element is true over axes.", "[True, False])\n    True")
_reduction_v1("reduce_all", primitives.All, "Whether all elements are true over axes.", "[True, False])\n    False")
_reduction_v1("reduce_logsumexp", reduce_logsumexp, "`log(sum(exp(x)))` over axes.", "[0., 0.])\n    0.6931472")


@public("compat.v1.count_nonzero", "compat.v1.math.count_nonzero")
def count_nonzero_v1(
    input_tensor: Any = None,
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: Any = int64,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
    input: Any = None,
) -> Any:
    """The number of elements that are not zero over axes.

    >>> tf.compat.v1.count_nonzero([0, 1, 2])
    2
    """
    value = _one_of("count_nonzero", "input", input, "input_tensor", input_tensor)
    axis = _one_of("count_nonzero", "axis", axis, "reduction_indices", reduction_indices)
    return count_nonzero(value, axis, _one_of("count_nonzero", "keepdims", keepdims, "keep_dims", keep_dims), dtype)


@public("compat.v1.argmax", "compat.v1.math.argmax")
def argmax_v1(
    input: Any,
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: Any = int64,
) -> Any:
    """Position of the largest element along an axis.

    >>> tf.compat.v1.argmax([1., 3., 2.])
    1
    """
    axis = _one_of("argmax", "axis", axis, "dimension", dimension)
    return primitives.ArgMax(input, axis, output_type)


@public("compat.v1.argmin", "compat.v1.math.argmin")
def argmin_v1(
    input: Any,
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: Any = int64,
) -> Any:
    """Position of the smallest element along an axis.

    >>> tf.compat.v1.argmin([2., 1., 3.])
    1
    """
    axis = _one_of("argmin", "axis", axis, "dimension", dimension)
    return primitives.ArgMin(input, axis, output_type)


@public("compat.v1.arg_max")
def arg_max(input: Any, dimension: Any, output_type: Any = int64, name: str | None = None) -> Any:
    """Position of the largest element along `dimension`.

    >>> tf.compat.v1.arg_max([1., 3., 2.], 0)
    1
    """
    return primitives.ArgMax(input, dimension, output_type)


@public("compat.v1.arg_min")
def arg_min(input: Any, dimension: Any, output_type: Any = int64, name: str | None = None) -> Any:
    """Position of the smallest element along `dimension`.

    >>> tf.compat.v1.arg_min([2., 1., 3.], 0)
    1
    """
    return primitives.ArgMin(input, dimension, output_type)
