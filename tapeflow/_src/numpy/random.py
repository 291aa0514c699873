"""`tf.experimental.numpy.random`: random numbers under NumPy's names, from TensorFlow's streams."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src.namespace import public
from tapeflow._src.numpy.promotion import default_float, promoted
from tapeflow._src.ops.arrays.constants import dims_of
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.random import streams
from tapeflow._src.ops.random.seeds import set_seed
from tapeflow._src.types.dtypes import as_dtype, float64


@public("experimental.numpy.random.seed")
def seed(s: int) -> None:
    """Starts the streams anew, as `tf.random.set_seed` does.

    >>> tf.experimental.numpy.random.seed(1)
    """
    set_seed(s)


@public("experimental.numpy.random.standard_normal")
def standard_normal(size: Any = None) -> Any:
    """Normal numbers of mean 0 and deviation 1.

    >>> tf.experimental.numpy.random.standard_normal([2, 3]).shape
    TensorShape([2, 3])
    """
    return streams.normal([] if size is None else dims_of(size), dtype=default_float())


@public("experimental.numpy.random.randn")
def randn(*args: int) -> Any:
    """Normal numbers of mean 0 and deviation 1, in a shape given as arguments.

    >>> tf.experimental.numpy.random.randn(2, 3).shape
    TensorShape([2, 3])
    """
    return standard_normal(args)


@public("experimental.numpy.random.uniform")
def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
    """Uniform numbers from `low` up to `high`.

    >>> tf.experimental.numpy.random.uniform(-1., 1., [2]).dtype
    tf.float64
    """
    dtype = default_float()
    low, high = (cast(bound, dtype) for bound in promoted(low, high, floats=True))
    if size is None:
        size = np.broadcast_shapes(tuple(low.shape.as_list()), tuple(high.shape.as_list()))
    return streams.uniform(dims_of(size), dtype=dtype) * (high - low) + low


@public("experimental.numpy.random.random")
def random_(size: Any = None) -> Any:
    """Uniform numbers from 0 up to 1.

    >>> tf.experimental.numpy.random.random([2]).shape
    TensorShape([2])
    """
    return uniform(0.0, 1.0, [] if size is None else size)


@public("experimental.numpy.random.rand")
def rand(*size: int) -> Any:
    """Uniform numbers from 0 up to 1, in a shape given as arguments.

    >>> tf.experimental.numpy.random.rand(2, 3).shape
    TensorShape([2, 3])
    """
    return uniform(0.0, 1.0, size)


@public("experimental.numpy.random.randint")
def randint(low: int, high: int | None = None, size: Any = None, dtype: Any = np.int64) -> Any:
    """Integers from `low` up to, not including, `high`; from 0 up to `low` if `high` is None.

    >>> tf.experimental.numpy.random.randint(1, 2, [3])
    <tf.Tensor: shape=(3,), dtype=int64, numpy=array([1, 1, 1])>
    """
    if high is None:
        low, high = 0, low
    result = as_dtype(dtype)
    if result.name not in ("int32", "int64"):
        raise ValueError(f"randint: dtype must be int32 or int64; got {result.name}")
    return streams.uniform([] if size is None else dims_of(size), low, high, result)


@public("experimental.numpy.random.poisson")
def poisson(lam: Any = 1.0, size: Any = None) -> Any:
    """Numbers of the Poisson distribution with the mean `lam`.

    >>> tf.experimental.numpy.random.poisson(2.0, [3]).dtype
    tf.int64
    """
    if size is None:
        size = [] if np.ndim(lam) == 0 else np.shape(lam)
    return cast(streams.poisson([*dims_of(size)], cast(lam, float64), dtype=float64), "int64")
