"""Functions of the standard for Fourier transforms."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

import tapeflow as tf
from tapeflow._src.array_api.array import Array, check_device, tensor_of
from tapeflow._src.array_api.dtypes import DEFAULT_FLOAT
from tapeflow._src.array_api.shaping import axes_of, roll

_NORMS = ("backward", "ortho", "forward")


def _scale(norm: str, count: int, inverse: builtins.bool) -> float:
    """What a transform of `count` elements without a factor is multiplied by."""
    if norm not in _NORMS:
        raise ValueError(f"fft: norm must be one of {_NORMS}; got {norm!r}")
    if norm == "ortho":
        return 1.0 / float(np.sqrt(count))
    return 1.0 / count if (norm == "backward") == inverse else 1.0


def _resized(tensor: Any, size: int, axis: int) -> Any:
    """The tensor cut or padded with zeros to a size along an axis."""
    have = tensor.shape[axis]
    if have > size:
        return tensor[tuple(slice(0, size) if i == axis else slice(None) for i in range(tensor.shape.rank))]
    return tf.pad(tensor, [[0, size - have if i == axis else 0] for i in range(tensor.shape.rank)])


def _as_complex(tensor: Any) -> Any:
    if tensor.dtype.is_complex:
        return tensor
    return tf.cast(tensor, tf.complex128 if tensor.dtype == tf.float64 else tf.complex64)


def _along(compute: Callable[[Any], Any], tensor: Any, axis: int) -> Any:
    """A function of the last axis, along another one."""
    moved = tf.experimental.numpy.moveaxis(tensor, axis, -1)
    return tf.experimental.numpy.moveaxis(compute(moved), -1, axis)


def _transform(tensor: Any, n: int | None, axis: int, norm: str, inverse: builtins.bool) -> Any:
    axis = axes_of(axis, tensor.shape.rank, "fft")[0]
    count = tensor.shape[axis] if n is None else n
    tensor = _resized(_as_complex(tensor), count, axis)
    scale = _scale(norm, count, inverse) * (count if inverse else 1)  # tf.signal.ifft divides by the count
    return _along(tf.signal.ifft if inverse else tf.signal.fft, tensor, axis) * tf.cast(scale, tensor.dtype)


def fft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The discrete Fourier transform along an axis."""
    return Array(_transform(tensor_of(x), n, axis, norm, False))


def ifft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The inverse of `fft`."""
    return Array(_transform(tensor_of(x), n, axis, norm, True))


def _sizes(tensor: Any, s: Any, axes: Any) -> list[tuple[Any, int]]:
    rank = tensor.shape.rank
    if axes is None:
        axes = list(range(rank)) if s is None else list(range(rank - len(s), rank))
    axes = [one % rank for one in axes]
    return list(zip([None] * len(axes) if s is None else s, axes))


def fftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
    """The discrete Fourier transform along several axes."""
    tensor = tensor_of(x)
    for n, axis in _sizes(tensor, s, axes):
        tensor = _transform(tensor, n, axis, norm, False)
    return Array(tensor)


def ifftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
    """The inverse of `fftn`."""
    tensor = tensor_of(x)
    for n, axis in _sizes(tensor, s, axes):
        tensor = _transform(tensor, n, axis, norm, True)
    return Array(tensor)


def _real_transform(tensor: Any, n: int | None, axis: int, norm: str) -> Any:
    axis = axes_of(axis, tensor.shape.rank, "rfft")[0]
    count = tensor.shape[axis] if n is None else n
    tensor = _resized(tensor, count, axis)
    result = _along(lambda t: tf.signal.rfft(t, [count]), tensor, axis)
    return result * tf.cast(_scale(norm, count, False), result.dtype)


def _inverse_real_transform(tensor: Any, n: int | None, axis: int, norm: str) -> Any:
    axis = axes_of(axis, tensor.shape.rank, "irfft")[0]
    count = 2 * (tensor.shape[axis] - 1) if n is None else n
    tensor = _resized(_as_complex(tensor), count // 2 + 1, axis)
    result = _along(lambda t: tf.signal.irfft(t, [count]), tensor, axis)
    return result * tf.cast(_scale(norm, count, True) * count, result.dtype)


def rfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The first half of the transform of real numbers; the other one is its mirror image."""
    return Array(_real_transform(tensor_of(x), n, axis, norm))


def irfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The inverse of `rfft`."""
    return Array(_inverse_real_transform(tensor_of(x), n, axis, norm))


def rfftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
    """The transform of real numbers along several axes."""
    tensor = tensor_of(x)
    *others, (n, last) = _sizes(tensor, s, axes)
    tensor = _real_transform(tensor, n, last, norm)
    for n, axis in others:
        tensor = _transform(tensor, n, axis, norm, False)
    return Array(tensor)


def irfftn(x: Any, /, *, s: Any = None, axes: Any = None, norm: str = "backward") -> Array:
    """The inverse of `rfftn`."""
    tensor = tensor_of(x)
    *others, (n, last) = _sizes(tensor, s, axes)
    for size, axis in others:
        tensor = _transform(tensor, size, axis, norm, True)
    return Array(_inverse_real_transform(tensor, n, last, norm))


def _opposite(norm: str) -> str:
    return {"backward": "forward", "forward": "backward"}.get(norm, norm)


def hfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The transform of a Hermitian signal, given by its first half; it is real."""
    return Array(_inverse_real_transform(tf.math.conj(_as_complex(tensor_of(x))), n, axis, _opposite(norm)))


def ihfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """The inverse of `hfft`."""
    return Array(tf.math.conj(_real_transform(tensor_of(x), n, axis, _opposite(norm))))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of `fft`."""
    check_device(device)
    return Array(tf.cast(tf.constant(np.fft.fftfreq(n, d)), dtype or DEFAULT_FLOAT))


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Array:
    """The frequencies of `rfft`."""
    check_device(device)
    return Array(tf.cast(tf.constant(np.fft.rfftfreq(n, d)), dtype or DEFAULT_FLOAT))


def _shifted(x: Any, axes: Any, backwards: builtins.bool) -> Array:
    tensor = tensor_of(x)
    places = axes_of(axes, tensor.shape.rank, "fftshift")
    shifts = tuple(-(tensor.shape[one] // 2) if backwards else tensor.shape[one] // 2 for one in places)
    return roll(tensor, shifts, axis=tuple(places)) if places else Array(tensor)


def fftshift(x: Any, /, *, axes: Any = None) -> Array:
    """The frequencies with zero in the middle."""
    return _shifted(x, axes, False)


def ifftshift(x: Any, /, *, axes: Any = None) -> Array:
    """The inverse of `fftshift`."""
    return _shifted(x, axes, True)
