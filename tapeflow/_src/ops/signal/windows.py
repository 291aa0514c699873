"""Windows for frames of a signal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor, get_static_value
from tapeflow._src.ops.arrays.indexing import where
from tapeflow._src.types.dtypes import as_dtype, float32, int64

_BLOCK = 2**16  # elements


def _checked(window_length: Any, dtype: Any) -> tuple[Any, Any]:
    """The length, an integer, or a tensor that only the graph knows, and the dtype."""
    dtype = as_dtype(dtype)
    if not dtype.is_floating:
        raise ValueError(f"dtype must be a floating point type. Found {dtype}")
    if _core.is_symbolic(window_length):
        known = get_static_value(window_length)
        if known is None:
            if window_length.shape.rank not in (0, None):
                raise ValueError(f"Shape {window_length.shape} must have rank 0")
            return cast(window_length, int64), dtype
        window_length = known
    length = np.asarray(window_length)
    if length.ndim != 0:
        raise ValueError(f"Shape {length.shape} must have rank 0")
    return int(length), dtype


def _in_blocks(length: Any, dtype: Any, window: Callable[[Any, Any], Any]) -> Any:
    """`window(functions, i)` of 0, 1, ..., length - 1. Float64 is used for a block at a time: a long one fits."""
    if _core.is_symbolic(length):
        return cast(window(_InGraph, cast(primitives.Range(0, length, 1), "float64")), dtype)
    values = np.empty(max(length, 0), dtype.as_numpy_dtype)
    for start in range(0, length, _BLOCK):
        values[start : start + _BLOCK] = window(np, np.arange(start, min(start + _BLOCK, length)))
    return convert_to_tensor(values)


class _InGraph:
    """The functions of NumPy that windows use, in a graph."""

    cos, sin, sqrt = primitives.Cos, primitives.Sin, primitives.Sqrt

    @staticmethod
    def maximum(x: Any, y: Any) -> Any:
        """The larger of two."""
        return primitives.Maximum(x, cast(y, x.dtype))


def _wide(count: Any) -> Any:
    """A count as float64 where it is a tensor."""
    return cast(count, "float64") if _core.is_symbolic(count) else count


def _raised_cosine(window_length: Any, periodic: Any, dtype: Any, a: float, b: float) -> Any:
    length, dtype = _checked(window_length, dtype)
    if _core.is_symbolic(length):
        even = (1 - length % 2) * int(bool(periodic))
        period = _wide(primitives.Maximum(length - 1 + even, 1))
        found = _in_blocks(length, dtype, lambda f, i: a - b * f.cos(2 * np.pi * i / period))
        return where(primitives.Equal(length, 1), cast(1, dtype), found)
    if length == 1:
        return cast([1.0], dtype)
    points = length if bool(periodic) and length % 2 == 0 else length - 1
    return _in_blocks(length, dtype, lambda f, i: a - b * f.cos(2 * np.pi * i / points))


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
    count = _wide(length)
    return _in_blocks(length, dtype, lambda f, i: f.sin(np.pi / 2 * f.sin(np.pi / count * (i + 0.5)) ** 2))


@public("signal.kaiser_window", "compat.v1.signal.kaiser_window")
def kaiser_window(window_length: Any, beta: Any = 12.0, dtype: Any = float32, name: str | None = None) -> Any:
    """Kaiser's window: I0(beta sqrt(1 - t²)) / I0(beta) for t from -1 to 1.

    >>> tf.signal.kaiser_window(3, beta=0.)
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([1., 1., 1.], dtype=float32)>
    """
    length, dtype = _checked(window_length, dtype)
    symbolic = _core.is_symbolic(length)
    if not symbolic and length == 1:
        return cast([1.0], dtype)
    half = _wide(primitives.Maximum(length, 2) - 1) / 2 if symbolic else (length - 1) / 2
    circle = _in_blocks(length, dtype, lambda f, i: f.sqrt(f.maximum(1 - ((i - half) / half) ** 2, 0)))
    beta = cast(beta, dtype)
    inner = beta * circle
    found = primitives.Exp(inner - beta) * (primitives.BesselI0e(inner) / primitives.BesselI0e(beta))
    return where(primitives.Equal(length, 1), cast(1, dtype), found) if symbolic else found


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
