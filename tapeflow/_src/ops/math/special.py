"""Special functions that are made of other operations."""

from __future__ import annotations

from math import sqrt
from typing import Any

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor


@public("math.lbeta")
def lbeta(x: Any, name: str | None = None) -> Tensor:
    """The logarithm of the absolute value of the beta function, along the last dimension.

    Shape `[..., n]` gives `[...]`.

    >>> tf.math.lbeta([1., 2., 3.])
    <tf.Tensor: shape=(), dtype=float32, numpy=-4.094344615936279>
    """
    x = convert_to_tensor(x)
    total = primitives.Lgamma(primitives.Sum(x, -1))
    if x.shape.rank is not None and x.shape[-1] == 0:
        return -total  # the gamma function of the empty sum is infinite
    return primitives.Sum(primitives.Lgamma(x), -1) - total


@public("math.erfcinv")
def erfcinv(x: Any, name: str | None = None) -> Tensor:
    """The inverse of `erfc`.

    >>> tf.math.erfcinv([0.5, 1.5])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([ 0.47693625, -0.47693625], dtype=float32)>
    """
    x = convert_to_tensor(x)
    if x.dtype.is_integer or x.dtype.is_bool:
        raise TypeError(f"erfcinv: x must be a floating point tensor; got {x.dtype!r}.")
    return -sqrt(0.5) * primitives.Ndtri(0.5 * x)
