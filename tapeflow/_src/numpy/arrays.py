"""`tf.experimental.numpy`: making, shaping, joining and taking elements of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.numpy.promotion import array, as_bool, dtype_or, promoted, tensor_of
from tapeflow._src.ops.arrays import constants
from tapeflow._src.ops.arrays import shaping as arrays
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.math import arithmetic as arithmetic
from tapeflow._src.types.dtypes import float64, int64

# ---- making and shaping


@public("experimental.numpy.zeros", "experimental.numpy.empty")
def zeros(shape: Any, dtype: Any = float) -> Tensor:
    """Zeros of a shape.

    >>> tf.experimental.numpy.zeros([2])
    <tf.Tensor: shape=(2,), dtype=float64, numpy=array([0., 0.])>
    """
    return constants.zeros(shape, dtype_or(dtype, float64))


@public("experimental.numpy.ones")
def ones(shape: Any, dtype: Any = float) -> Tensor:
    """Ones of a shape.

    >>> tf.experimental.numpy.ones([2])
    <tf.Tensor: shape=(2,), dtype=float64, numpy=array([1., 1.])>
    """
    return constants.ones(shape, dtype_or(dtype, float64))


@public("experimental.numpy.full")
def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """One value in every place of a shape.

    >>> tf.experimental.numpy.full([2], 3)
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([3, 3])>
    """
    return primitives.BroadcastTo(array(fill_value, dtype), shape)


@public("experimental.numpy.arange")
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    """Evenly spaced numbers from `start` up to, not including, `stop`.

    >>> tf.experimental.numpy.arange(3)
    <tf.Tensor: shape=(3,), dtype=int64, numpy=array([0, 1, 2])>
    """
    if not step:
        raise ValueError("arange: step must be non-zero.")
    first, end = (0, start) if stop is None else (start, stop)
    return cast(np.arange(first, end, step), dtype_or(dtype, None)) if dtype else tensor_of(np.arange(first, end, step))


@public("experimental.numpy.where")
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Elements of `x` where the condition holds, of `y` elsewhere.

    >>> tf.experimental.numpy.where([True, False], 1, 2.5)
    <tf.Tensor: shape=(2,), dtype=float64, numpy=array([1. , 2.5])>
    """
    condition = as_bool(tensor_of(condition))
    if (x is None) != (y is None):
        raise ValueError("where: both `x` and `y` must be given, or neither.")
    if x is None:
        return [cast(places, int64) for places in primitives.Unpack(primitives.Where(condition), axis=1)]
    return primitives.SelectV2(condition, *promoted(x, y))


@public("experimental.numpy.clip")
def clip(a: Any, a_min: Any, a_max: Any) -> Tensor:
    """Values brought into the range from `a_min` to `a_max`.

    >>> tf.experimental.numpy.clip([-1, 5], 0, 3)
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([0, 3])>
    """
    given = [v for v in (a, a_min, a_max) if v is not None]
    x, *bounds = promoted(*given)
    if a_min is not None:
        x = primitives.Maximum(x, bounds.pop(0))
    return x if a_max is None else primitives.Minimum(x, bounds.pop(0))


@public("experimental.numpy.reshape")
def reshape(a: Any, newshape: Any, order: str = "C") -> Tensor:
    """The elements in another shape.

    >>> tf.experimental.numpy.reshape([1, 2], [2, 1])
    <tf.Tensor: shape=(2, 1), dtype=int64, numpy=
    array([[1],
           [2]])>
    """
    if order not in ("C", "F"):
        raise ValueError(f"reshape: Unsupported order argument: only 'C' and 'F' exist; got {order!r}.")
    if order == "F":  # the first index changes fastest: that of the transposed arrays in order C
        sizes = [newshape] if np.ndim(newshape) == 0 else list(newshape)
        return transpose(reshape(transpose(a), sizes[::-1]))
    return primitives.Reshape(tensor_of(a), newshape)


@public("experimental.numpy.transpose")
def transpose(a: Any, axes: Any = None) -> Tensor:
    """The dimensions in another order; reversed if `axes` is None.

    >>> tf.experimental.numpy.transpose([[1, 2]])
    <tf.Tensor: shape=(2, 1), dtype=int64, numpy=
    array([[1],
           [2]])>
    """
    return primitives.Transpose(tensor_of(a), axes)


@public("experimental.numpy.expand_dims")
def expand_dims(a: Any, axis: int) -> Tensor:
    """A dimension of length 1 put in at `axis`.

    >>> tf.experimental.numpy.expand_dims([1, 2], 0)
    <tf.Tensor: shape=(1, 2), dtype=int64, numpy=array([[1, 2]])>
    """
    return primitives.ExpandDims(tensor_of(a), axis)


@public("experimental.numpy.squeeze")
def squeeze(a: Any, axis: Any = None) -> Tensor:
    """Dimensions of length 1 taken out.

    >>> tf.experimental.numpy.squeeze([[1, 2]])
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([1, 2])>
    """
    return primitives.Squeeze(tensor_of(a), axis)


@public("experimental.numpy.concatenate")
def concatenate(arys: Any, axis: int | None = 0) -> Tensor:
    """Arrays joined along an axis.

    >>> tf.experimental.numpy.concatenate([[1], [2.5]])
    <tf.Tensor: shape=(2,), dtype=float64, numpy=array([1. , 2.5])>
    """
    parts = promoted(*arys)
    if axis is None:
        parts, axis = [primitives.Reshape(part, [-1]) for part in parts], 0
    return primitives.ConcatV2(parts, axis)


@public("experimental.numpy.stack")
def stack(arrays: Any, axis: int = 0) -> Tensor:
    """Arrays joined along a new axis.

    >>> tf.experimental.numpy.stack([[1], [2.5]])
    <tf.Tensor: shape=(2, 1), dtype=float64, numpy=
    array([[1. ],
           [2.5]])>
    """
    return primitives.Pack(promoted(*arrays), axis)


@public("experimental.numpy.broadcast_to")
def broadcast_to(array: Any, shape: Any) -> Tensor:
    """The array repeated to a shape.

    >>> tf.experimental.numpy.broadcast_to([1], [2])
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([1, 1])>
    """
    return primitives.BroadcastTo(tensor_of(array), shape)


@public("experimental.numpy.take")
def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "clip") -> Any:
    """Elements at places along an axis; places outside are clipped, or wrapped with mode="wrap".

    >>> tf.experimental.numpy.take([1, 2], [5])
    <tf.Tensor: shape=(1,), dtype=int64, numpy=array([2])>
    """
    x, places = tensor_of(a), tensor_of(indices)
    if axis is None:
        x, axis = primitives.Reshape(x, [-1]), 0
    length = cast(constants.dynamic_dims(x)[axis], places.dtype)
    if mode == "wrap":
        places = primitives.FloorMod(places, length)
    elif mode == "clip":
        places = primitives.Minimum(primitives.Maximum(places, cast(0, places.dtype)), length - 1)
    else:
        raise ValueError(f"take: mode must be 'clip' or 'wrap'; got {mode!r}.")
    return arrays.gather(x, places, axis=axis)


@public("experimental.numpy.shape")
def shape(a: Any) -> Any:
    """The shape.

    >>> tf.experimental.numpy.shape([[1, 2]])
    TensorShape([1, 2])
    """
    return tensor_of(a).shape


@public("experimental.numpy.ndim")
def ndim(a: Any) -> int:
    """The number of dimensions.

    >>> tf.experimental.numpy.ndim([[1, 2]])
    2
    """
    return int(tensor_of(a).shape.rank)


@public("experimental.numpy.isscalar")
def isscalar(num: Any) -> bool:
    """Whether a value is a single number.

    >>> tf.experimental.numpy.isscalar(1.)
    True
    """
    return num.shape.rank == 0 if _core.is_tensor(num) else np.isscalar(num)
