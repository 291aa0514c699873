"""Windows for frames of a signal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import as_dtype, float32

_BLOCK = 2**16  # elements


def _checked(window_length: Any, dtype: Any) -> tuple[int, Any]:
    dtype = as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(f"dtype must be a floating point type. Found {dtype}")
    length = np.asarray(window_length)
    if length.ndim != 0:
        raise ValueError(f"Shape {length.shape} must have rank 0")
    return int(length), dtype


def _in_blocks(length: int, dtype: Any, window: Callable[[np.ndarray], np.ndarray]) -> Any:
    """`window` of 0, 1, ..., length - 1. Float64 is used for a block at a time, so that a long window fits."""
    values = np.empty(max(length, 0), dtype.as_numpy_dtype)
    for start in range(0, length, _BLOCK):
        values[start : start + _BLOCK] = window(np.arange(start, min(start + _BLOCK, length)))
    return convert_to_tensor(values)


def _raised_cosine(window_length: Any, periodic: Any, dtype: Any, a: float, b: float) -> Any:
    length, dtype = _checked(window_length, dtype)
    if length == 1:
        return cast([1.0], dtype)
    period = length if bool(periodic) and length % 2 == 0 else length - 1
    return _in_blocks(length, dtype, lambda i: a - b * np.cos(2 * np.pi * i / period))


@public("signal.hann_window", "compat.v1.signal.hann_window")
def hann_window(window_length: Any, periodic: bool = True, dtype: Any = float32, name: str | None = None) -> Any:
    """Half a raised cosine, 0 at the edge; `periodic` leaves the last point of an even length out.

    >>> tf.signal.hann_window(4)
    <tf.Tensor: shape=(4,), dtype=float32, numpy=array([0. , 0.5, 1. , 0.5], dtype=float32)>
    """
    return _raised_cosine(window_length, periodic, dtype, 0.5, 0.5)


@public("signal.hamming_window", "compat.v1.signal.hamming_window")
def hamming_window(window_length: Any, periodic: bool = True, dtype: Any = float32, name: str | None = None) -> Any:
    """A raised cosine that is 0.08 at the edge.

    >>> tf.signal.hamming_window(3, periodic=False)
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([0.08, 1.  , 0.08], dtype=float32)>
    """
    return _raised_cosine(window_length, periodic, dtype, 0.54, 0.46)


@public("signal.vorbis_window", "compat.v1.signal.vorbis_window")
def vorbis_window(window_length: Any, dtype: Any = float32, name: str | None = None) -> Any:
    """The window of the Vorbis codec, whose squares add up to 1 at half a length.

    >>> tf.signal.vorbis_window(2)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.70710677, 0.70710677], dtype=float32)>
    """
    length, dtype = _checked(window_length, dtype)
    return _in_blocks(length, dtype, lambda i: np.sin(np.pi / 2 * np.sin(np.pi / length * (i + 0.5)) ** 2))


@public("signal.kaiser_window", "compat.v1.signal.kaiser_window")
def kaiser_window(window_length: Any, beta: Any = 12.0, dtype: Any = float32, name: str | None = None) -> Any:
    """Kaiser's window: I0(beta sqrt(1 - t²)) / I0(beta) for t from -1 to 1.

    >>> tf.signal.kaiser_window(3, beta=0.)
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([1., 1., 1.], dtype=float32)>
    """
    length, dtype = _checked(window_length, dtype)
    if length == 1:
        return cast([1.0], dtype)
    half = (length - 1) / 2
    circle = _in_blocks(length, dtype, lambda i: np.sqrt(np.maximum(1 - ((i - half) / half) ** 2, 0)))
    beta = cast(beta, dtype)
    inner = beta * circle
    return primitives.Exp(inner - beta) * (primitives.BesselI0e(inner) / primitives.BesselI0e(beta))


@public("signal.kaiser_bessel_derived_window", "compat.v1.signal.kaiser_bessel_derived_window")
def kaiser_bessel_derived_window(
    window_length: Any, beta: Any = 12.0, dtype: Any = float32, name: str | None = None
) -> Tensor:
    """The window, made of sums of Kaiser's, whose squares add up to 1 at half a length.

    >>> tf.signal.kaiser_bessel_derived_window(2)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.70710677, 0.70710677], dtype=float32)>
    """
    length, dtype = _checked(window_length, dtype)
    sums = primitives.Cumsum(kaiser_window(length // 2 + 1, beta, dtype), 0)
    half = primitives.Sqrt(sums[:-1] / sums[-1])
    return primitives.ConcatV2([half, primitives.ReverseV2(half, [0])], 0)
