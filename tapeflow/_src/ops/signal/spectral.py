"""Fourier and cosine transforms. Those of the core go over the last dimensions; lengths and axes are made here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod, sqrt
from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public, public_as
from tapeflow._src.ops.arrays.constants import dims_of, dynamic_dims, ones_like
from tapeflow._src.ops.arrays.constants import range as number_range
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.dtypes import complex64, complex128, float32, float64
from tapeflow._src.types.errors import InvalidArgumentError, refused_dtype


def _paths(name: str, v1: bool = True) -> list[str]:
    """The places where a transform is reached, those of TensorFlow 1 included."""
    first = [f"signal.{name}", f"compat.v1.signal.{name}"]
    return [*first, f"compat.v1.spectral.{name}"] if v1 else first


def _with_lengths(x: Any, axes: Sequence[int], lengths: Sequence[int]) -> Any:
    """`x` cut, or padded with zeros, to the given lengths along the given dimensions."""
    shape = x.shape.as_list()
    if all(shape[axis] == length for axis, length in zip(axes, lengths)):
        return x
    size, paddings = list(shape), [0] * (2 * len(shape))
    for axis, length in zip(axes, lengths):
        if length < 0:
            raise ValueError(f"fft_length: Dimension {length} must be >= 0")
        have = shape[axis]
        size[axis] = length if have is None else min(have, length)
        paddings[2 * axis + 1] = length if have is None else max(length - have, 0)
    cut = tuple(slice(0, n) for n in size)
    if None in (shape[axis] for axis in axes):  # padded first: there may be less than what is kept
        x = primitives.PadV2(x, paddings, convert_to_tensor(0, dtype=x.dtype))[cut]
        x.set_shape(size)
        return x
    if size != shape:
        x = x[cut]
    return primitives.PadV2(x, paddings, convert_to_tensor(0, dtype=x.dtype)) if any(paddings) else x


def _trailing(x: Any, rank: int) -> list[int]:
    x.shape.with_rank_at_least(rank)
    return list(range(x.shape.rank - rank, x.shape.rank))


def _lengths_of(fft_length: Any, rank: int) -> list[int]:
    lengths = dims_of(fft_length)
    if len(lengths) != rank:
        raise InvalidArgumentError.of(f"fft_length must have shape [{rank}]; got shape [{len(lengths)}]")
    return lengths


def _complex_input(x: Any, who: str) -> Any:
    given = convert_to_tensor(x)
    x = given if given.dtype.is_complex or given is x else convert_to_tensor(x, dtype_hint=complex64)
    if x.dtype not in (complex64, complex128):
        raise refused_dtype(who, "input", "Tcomplex", x.dtype, "complex64, complex128")
    return x


def _real_input(x: Any) -> Any:
    x = convert_to_tensor(x, dtype_hint=float32)
    if x.dtype not in (float32, float64):
        raise ValueError(f"RFFT requires tf.float32 or tf.float64 inputs, got: {x}")
    return x


def _half_spectrum_input(x: Any) -> Any:
    x = convert_to_tensor(x, dtype_hint=complex64)
    if x.dtype not in (complex64, complex128):
        raise ValueError(f"IRFFT requires tf.complex64 or tf.complex128 inputs, got: {x}")
    return x


def _real_transform(x: Any, fft_length: Any, rank: int) -> Tensor:
    x = _real_input(x)
    axes = _trailing(x, rank)
    if fft_length is not None:
        x = _with_lengths(x, axes, _lengths_of(fft_length, rank))
    return primitives.RealFourier(x, rank)


def _transform_to_real(x: Any, fft_length: Any, rank: int) -> Tensor:
    x = _half_spectrum_input(x)
    axes = _trailing(x, rank)
    if fft_length is None:
        length = max(0, 2 * (x.shape[-1] - 1))
        if length == 0:
            x = x[..., :0]
    else:
        lengths = _lengths_of(fft_length, rank)
        length = lengths[-1]
        x = _with_lengths(x, axes, [*lengths[:-1], length // 2 + 1 if length else 0])
    return primitives.FourierToReal(x, rank, length)


@public(*_paths("fft"), "compat.v1.fft")
def fft(input: Any, name: str | None = None) -> Tensor:
    """The discrete Fourier transform over the last dimension.

    >>> tf.signal.fft(tf.constant([1, 0], tf.complex64))
    <tf.Tensor: shape=(2,), dtype=complex64, numpy=array([1.+0.j, 1.+0.j], dtype=complex64)>
    """
    return primitives.Fourier(_complex_input(input, "fft"), 1, False)


@public(*_paths("ifft"), "compat.v1.ifft")
def ifft(input: Any, name: str | None = None) -> Tensor:
    """The inverse discrete Fourier transform over the last dimension.

    >>> tf.signal.ifft(tf.constant([2, 0], tf.complex64))
    <tf.Tensor: shape=(2,), dtype=complex64, numpy=array([1.+0.j, 1.+0.j], dtype=complex64)>
    """
    return primitives.Fourier(_complex_input(input, "ifft"), 1, True)


@public(*_paths("fft2d"), "compat.v1.fft2d")
def fft2d(input: Any, name: str | None = None) -> Tensor:
    """The discrete Fourier transform over the last two dimensions.

    >>> tf.signal.fft2d(tf.constant([[1, 0]], tf.complex64))
    <tf.Tensor: shape=(1, 2), dtype=complex64, numpy=array([[1.+0.j, 1.+0.j]], dtype=complex64)>
    """
    return primitives.Fourier(_complex_input(input, "fft2d"), 2, False)


@public(*_paths("ifft2d"), "compat.v1.ifft2d")
def ifft2d(input: Any, name: str | None = None) -> Tensor:
    """The inverse discrete Fourier transform over the last two dimensions.

    >>> tf.signal.ifft2d(tf.constant([[2, 0]], tf.complex64))
    <tf.Tensor: shape=(1, 2), dtype=complex64, numpy=array([[1.+0.j, 1.+0.j]], dtype=complex64)>
    """
    return primitives.Fourier(_complex_input(input, "ifft2d"), 2, True)


@public(*_paths("fft3d"), "compat.v1.fft3d")
def fft3d(input: Any, name: str | None = None) -> Tensor:
    """The discrete Fourier transform over the last three dimensions.

    >>> tf.signal.fft3d(tf.constant([[[1, 0]]], tf.complex64))
    <tf.Tensor: shape=(1, 1, 2), dtype=complex64, numpy=array([[[1.+0.j, 1.+0.j]]], dtype=complex64)>
    """
    return primitives.Fourier(_complex_input(input, "fft3d"), 3, False)


@public(*_paths("ifft3d"), "compat.v1.ifft3d")
def ifft3d(input: Any, name: str | None = None) -> Tensor:
    """The inverse discrete Fourier transform over the last three dimensions.

    >>> tf.signal.ifft3d(tf.constant([[[2, 0]]], tf.complex64))
    <tf.Tensor: shape=(1, 1, 2), dtype=complex64, numpy=array([[[1.+0.j, 1.+0.j]]], dtype=complex64)>
    """
    return primitives.Fourier(_complex_input(input, "ifft3d"), 3, True)


@public(*_paths("rfft"))
def rfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The first `n / 2 + 1` values of the Fourier transform of real rows; `fft_length` cuts or pads the rows first.

    >>> tf.signal.rfft([1., 0.])
    <tf.Tensor: shape=(2,), dtype=complex64, numpy=array([1.+0.j, 1.+0.j], dtype=complex64)>
    """
    return _real_transform(input_tensor, fft_length, 1)


@public(*_paths("irfft"))
def irfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Real rows from the first `n / 2 + 1` values of their transforms; `n` is even unless `fft_length` says otherwise.

    >>> tf.signal.irfft(tf.constant([1, 1], tf.complex64))
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 0.], dtype=float32)>
    """
    return _transform_to_real(input_tensor, fft_length, 1)


@public(*_paths("rfft2d"))
def rfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The Fourier transform of real matrices, of whose last dimension the first `n / 2 + 1` values.

    >>> tf.signal.rfft2d([[1., 0.]])
    <tf.Tensor: shape=(1, 2), dtype=complex64, numpy=array([[1.+0.j, 1.+0.j]], dtype=complex64)>
    """
    return _real_transform(input_tensor, fft_length, 2)


@public(*_paths("irfft2d"))
def irfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Real matrices from the transforms that `rfft2d` gives.

    >>> tf.signal.irfft2d(tf.constant([[1, 1]], tf.complex64))
    <tf.Tensor: shape=(1, 2), dtype=float32, numpy=array([[1., 0.]], dtype=float32)>
    """
    return _transform_to_real(input_tensor, fft_length, 2)


@public(*_paths("rfft3d"))
def rfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The Fourier transform over three dimensions of real numbers, of the last of which the first `n / 2 + 1` values.

    >>> tf.signal.rfft3d([[[1., 0.]]])
    <tf.Tensor: shape=(1, 1, 2), dtype=complex64, numpy=array([[[1.+0.j, 1.+0.j]]], dtype=complex64)>
    """
    return _real_transform(input_tensor, fft_length, 3)


@public(*_paths("irfft3d"))
def irfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Real numbers from the transforms that `rfft3d` gives.

    >>> tf.signal.irfft3d(tf.constant([[[1, 1]]], tf.complex64))
    <tf.Tensor: shape=(1, 1, 2), dtype=float32, numpy=array([[[1., 0.]]], dtype=float32)>
    """
    return _transform_to_real(input_tensor, fft_length, 3)


# ---- any dimensions


def _axes_of(x: Any, axes: Any) -> list[int]:
    rank = x.shape.rank
    given = list(range(rank)) if axes is None else dims_of(axes)
    if not given:
        raise InvalidArgumentError.of(f"there must be at least one axis; got axes {given} for rank {rank}")
    for axis in given:
        if not -rank <= axis < rank:
            raise InvalidArgumentError.of(f"axes must be in the range [{-rank}, {rank}); got {axis}")
    axes = [axis % rank for axis in given]
    if len(set(axes)) != len(axes):
        raise InvalidArgumentError.of(f"axes must be different from each other; got {given}")
    found: list[int] = axes
    return found


def _over_axes(x: Any, axes: list[int], transform: Callable[[Any], Any]) -> Any:
    """Applies a transform of the last dimensions to other ones."""
    rank = x.shape.rank
    order = [i for i in range(rank) if i not in axes] + axes
    if order == list(range(rank)):
        return transform(x)
    y = transform(primitives.Transpose(x, order))
    return primitives.Transpose(y, [order.index(i) for i in range(rank)])


def _scaled(x: Any, norm: str | None, lengths: list[int], inverse: bool) -> Any:
    if norm not in (None, "backward", "forward", "ortho"):
        raise ValueError(f"norm must be None, 'backward', 'forward' or 'ortho'; got {norm!r}")
    if norm in (None, "backward"):
        return x
    n = prod(lengths)
    factor = n if norm == "forward" else sqrt(n)
    return x * convert_to_tensor(factor if inverse else 1 / factor, dtype=x.dtype)


@public(*_paths("fftnd", v1=False), "fftnd", "compat.v1.fftnd")
def fftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: str | None = None, name: str | None = None
) -> Any:
    """The Fourier transform over the dimensions `axes`, or all; `fft_length` cuts or pads them first.

    >>> tf.signal.fftnd(tf.constant([[1, 0]], tf.complex64))
    <tf.Tensor: shape=(1, 2), dtype=complex64, numpy=array([[1.+0.j, 1.+0.j]], dtype=complex64)>
    """
    return _complex_nd(_complex_input(input_tensor, "fftnd"), fft_length, axes, norm, False)


@public(*_paths("ifftnd", v1=False), "ifftnd", "compat.v1.ifftnd")
def ifftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: str | None = None, name: str | None = None
) -> Any:
    """The inverse Fourier transform over the dimensions `axes`, or all.

    >>> tf.signal.ifftnd(tf.constant([[2, 0]], tf.complex64))
    <tf.Tensor: shape=(1, 2), dtype=complex64, numpy=array([[1.+0.j, 1.+0.j]], dtype=complex64)>
    """
    return _complex_nd(_complex_input(input_tensor, "ifftnd"), fft_length, axes, norm, True)


def _complex_nd(x: Any, fft_length: Any, axes: Any, norm: str | None, inverse: bool) -> Any:
    axes = _axes_of(x, axes)
    lengths = [x.shape[axis] for axis in axes] if fft_length is None else _lengths_of(fft_length, len(axes))
    x = _scaled(_with_lengths(x, axes, lengths), norm, lengths, inverse)
    return _over_axes(x, axes, lambda t: primitives.Fourier(t, len(axes), inverse))


@public(*_paths("rfftnd", v1=False), "rfftnd", "compat.v1.rfftnd")
def rfftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: str | None = None, name: str | None = None
) -> Any:
    """The Fourier transform of real numbers over `axes`, or all; of the last of them the first `n / 2 + 1` values.

    >>> tf.signal.rfftnd([[1., 0.]])
    <tf.Tensor: shape=(1, 2), dtype=complex64, numpy=array([[1.+0.j, 1.+0.j]], dtype=complex64)>
    """
    x = _real_input(input_tensor)
    axes = _axes_of(x, axes)
    lengths = [x.shape[axis] for axis in axes] if fft_length is None else _lengths_of(fft_length, len(axes))
    x = _scaled(_with_lengths(x, axes, lengths), norm, lengths, False)
    return _over_axes(x, axes, lambda t: primitives.RealFourier(t, len(axes)))


@public(*_paths("irfftnd", v1=False), "irfftnd", "compat.v1.irfftnd")
def irfftnd(
    input_tensor: Any, fft_length: Any = None, axes: Any = None, norm: str | None = None, name: str | None = None
) -> Any:
    """Real numbers from the transforms that `rfftnd` gives.

    >>> tf.signal.irfftnd(tf.constant([[1, 1]], tf.complex64))
    <tf.Tensor: shape=(1, 2), dtype=float32, numpy=array([[1., 0.]], dtype=float32)>
    """
    x = _half_spectrum_input(input_tensor)
    axes = _axes_of(x, axes)
    if fft_length is None:
        lengths = [x.shape[axis] for axis in axes]
        lengths[-1] = max(0, 2 * (lengths[-1] - 1))
    else:
        lengths = _lengths_of(fft_length, len(axes))
    last = lengths[-1]
    x = _with_lengths(x, axes, [*lengths[:-1], last // 2 + 1 if last else 0])
    x = _scaled(x, norm, lengths, True)
    return _over_axes(x, axes, lambda t: primitives.FourierToReal(t, len(axes), last))


def _rotated(x: Any, axes: Any, forward: bool) -> Any:
    x = convert_to_tensor(x)
    rank = x.shape.rank
    for axis in range(rank) if axes is None else dims_of(axes):
        if not -rank <= axis < rank:
            raise InvalidArgumentError.of(f"axis {axis} is out of range [{-rank}, {rank})")
        n = dynamic_dims(x)[axis]
        first = n - n // 2 if forward else n // 2
        front, back = primitives.SplitV(x, [first, n - first], axis)
        x = primitives.ConcatV2([back, front], axis)
    return x


@public(*_paths("fftshift", v1=False))
def fftshift(x: Any, axes: Any = None, name: str | None = None) -> Any:
    """The zero frequency moved to the middle of the dimensions `axes`, or all.

    >>> tf.signal.fftshift([0, 1, 2, -2, -1])
    <tf.Tensor: shape=(5,), dtype=int32, numpy=array([-2, -1,  0,  1,  2], dtype=int32)>
    """
    return _rotated(x, axes, True)


@public(*_paths("ifftshift", v1=False))
def ifftshift(x: Any, axes: Any = None, name: str | None = None) -> Any:
    """What `fftshift` did, undone.

    >>> tf.signal.ifftshift([-2, -1, 0, 1, 2])
    <tf.Tensor: shape=(5,), dtype=int32, numpy=array([ 0,  1,  2, -2, -1], dtype=int32)>
    """
    return _rotated(x, axes, False)


# ---- cosines


def _constant(values: np.ndarray, dtype: Any) -> Any:
    return convert_to_tensor(values.astype(dtype.as_numpy_dtype))


def _complex_dtype(dtype: Any) -> Any:
    return complex64 if dtype == float32 else complex128


def _check_dct(x: Any, kind: int, n: int | None, axis: int, norm: str | None) -> None:
    if x.dtype not in (float32, float64):
        raise TypeError(f"dct: input must be one of [tf.float32, tf.float64]; got {x.dtype!r}")
    if axis != -1:
        raise NotImplementedError(f"axis must be -1. Got: {axis}")
    if n is not None and n < 1:
        raise ValueError("n should be a positive integer or None")
    if kind not in (1, 2, 3, 4):
        raise ValueError("Types I, II, III and IV (I)DCT are supported.")
    if kind == 1:
        if norm == "ortho":
            raise ValueError("Normalization is not supported for the Type-I DCT.")
        if x.shape[-1] is not None and x.shape[-1] < 2:
            raise ValueError("Type-I DCT requires the dimension to be greater than one.")
    if norm not in (None, "ortho"):
        raise ValueError(f"Unknown normalization. Expected None or 'ortho', got: {norm}")


def _cosine_transform(x: Any, kind: int, n: int | None, norm: str | None) -> Tensor:
    """All four kinds by a real Fourier transform of twice the length."""
    if n is not None:
        x = _with_lengths(x, [x.shape.rank - 1], [n])
    n = x.shape[-1] if x.shape.rank else 0
    if n == 0:
        raise ValueError(f"dct: the last dimension must have at least one element; got shape {x.shape}")
    if n is None:
        return _open_cosine_transform(x, kind, norm)
    angle = np.arange(n) * (np.pi / (2 * n))
    if kind == 1:
        return primitives.Real(rfft(primitives.ConcatV2([x, x[..., -2:0:-1]], -1)))
    if kind == 2:
        spectrum = rfft(x, [2 * n])[..., :n]
        y = primitives.Real(spectrum * _constant(2 * np.exp(-1j * angle), spectrum.dtype))
        if norm == "ortho":
            y = y * _constant(np.sqrt(np.where(np.arange(n) == 0, 0.25, 0.5) / n), x.dtype)
        return y
    if kind == 3:
        weight = np.where(np.arange(n) == 0, 1.0, sqrt(0.5)) * sqrt(n) if norm == "ortho" else np.full(n, float(n))
        scaled = x * _constant(weight, x.dtype)
        turn = _constant(2 * np.exp(1j * angle), _complex_dtype(x.dtype))
        return irfft(primitives.Cast(scaled, turn.dtype) * turn, [2 * n])[..., :n]
    y = _cosine_transform(x, 2, 2 * n, None)[..., 1::2]
    return y * convert_to_tensor(sqrt(0.5 / n), dtype=y.dtype) if norm == "ortho" else y


def _open_cosine_transform(x: Any, kind: int, norm: str | None) -> Tensor:
    """The same for a length that only the graph knows: the products with cosines are a matrix product."""
    n = dynamic_dims(x)[-1]
    place, count = number_range(n), primitives.Cast(n, x.dtype)
    row, column = primitives.ExpandDims(place, 1), primitives.ExpandDims(place, 0)
    first, ones = primitives.Equal(place, 0), primitives.Cast(ones_like(place), x.dtype)
    if kind == 1:
        steps, half = row * column, n - 1
        weights = primitives.SelectV2(primitives.LogicalOr(first, primitives.Equal(place, n - 1)), ones, 2 * ones)
    elif kind == 2:
        steps, half, weights = (2 * row + 1) * column, 2 * n, 2 * ones
    elif kind == 3:
        steps, half, weights = (2 * column + 1) * row, 2 * n, primitives.SelectV2(first, ones, 2 * ones)
    else:
        steps, half, weights = (2 * row + 1) * (2 * column + 1), 4 * n, 2 * ones
    # Whole turns are taken away as integers: large angles would lose digits.
    angles = primitives.Cast(steps % (2 * half), x.dtype) / primitives.Cast(half, x.dtype)
    if norm == "ortho" and kind == 3:
        weights = primitives.SelectV2(first, primitives.Sqrt(ones / count), primitives.Sqrt(2 * ones / count))
    y = primitives.MatMul((x * weights)[..., None, :], primitives.Cos(np.pi * angles))[..., 0, :]
    if norm == "ortho" and kind == 2:
        y = y * primitives.Sqrt(primitives.SelectV2(first, ones / 4, ones / 2) / count)
    return y * primitives.Sqrt(0.5 / count) if norm == "ortho" and kind == 4 else y


def _cosine_function(kind_by_type: dict[int, int], doc: str, *paths: str) -> Callable[..., Any]:
    """A cosine transform, by the kind that runs for each `type`."""

    @public_as(doc, *paths)
    def function(
        input: Any,
        type: int = 2,
        n: int | None = None,
        axis: int = -1,
        norm: str | None = None,
        name: str | None = None,
    ) -> Tensor:
        x = convert_to_tensor(input)
        n = None if n is None else int(n)
        _check_dct(x, type, n, axis, norm)
        return _cosine_transform(x, kind_by_type[type], n, norm)

    return function


dct = _cosine_function(
    {1: 1, 2: 2, 3: 3, 4: 4},
    """The discrete cosine transform of kind `type` (1 to 4) over the last dimension, cut or padded to `n`.

    >>> tf.signal.dct([1., 1.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([4., 0.], dtype=float32)>
    """,
    *_paths("dct"),
)
idct = _cosine_function(
    {1: 1, 2: 3, 3: 2, 4: 4},
    """The inverse of `dct`, without its scale unless `norm` is "ortho".

    >>> tf.signal.idct([1., 0.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 1.], dtype=float32)>
    """,
    *_paths("idct"),
)
