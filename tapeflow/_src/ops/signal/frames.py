"""Signals in frames: framing, short-time transforms and their inverses, and the mel scale."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, gcd, log2, sqrt
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dynamic_dims, holds_symbolic
from tapeflow._src.ops.arrays.constants import range as number_range
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.signal.spectral import dct, irfft, rfft
from tapeflow._src.ops.signal.windows import hann_window, vorbis_window
from tapeflow._src.types.dtypes import as_dtype, float32
from tapeflow._src.types.errors import InvalidArgumentError

Window = Callable[..., Any]


def _scalar(value: Any, who: str) -> int:
    """An integer argument, which may be a tensor."""
    number = np.asarray(value)
    if number.ndim != 0:
        raise ValueError(f"{who}: Shape {number.shape} must have rank 0")
    if number.dtype.kind not in "iu":
        raise ValueError(f"{who} must be an integer. Got {number.dtype}")
    return int(number)


def _at_least_0(size: Any) -> Any:
    return primitives.Maximum(size, 0) if holds_symbolic(size) else max(0, size)


def _zero_padded(x: Any, paddings: list[Any], value: Any = 0) -> Tensor:
    padded = holds_symbolic(paddings) or any(paddings)
    return primitives.PadV2(x, paddings, convert_to_tensor(value, dtype=x.dtype)) if padded else x


@public("signal.frame", "compat.v1.signal.frame")
def frame(
    signal: Any,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: Any = -1,
    name: str | None = None,
) -> Tensor:
    """Overlapping pieces of a dimension: [..., samples, ...] becomes [..., frames, frame_length, ...].

    >>> tf.signal.frame([1, 2, 3, 4], 2, 1)
    <tf.Tensor: shape=(3, 2), dtype=int32, numpy=
    array([[1, 2],
           [2, 3],
           [3, 4]], dtype=int32)>
    """
    x = convert_to_tensor(signal)
    x.shape.with_rank_at_least(1)
    length, step = _scalar(frame_length, "frame_length"), _scalar(frame_step, "frame_step")
    if length < 0 or step < 1:
        message = f"frame: frame_length must not be negative and frame_step positive; got {length} and {step}"
        raise InvalidArgumentError.of(message)
    rank = x.shape.rank
    axis = range(rank)[_scalar(axis, "axis")]
    samples = dynamic_dims(x)[axis]
    if pad_end:
        convert_to_tensor(pad_value).shape.assert_has_rank(0)
        frames = -(-samples // step)
        paddings: list[Any] = [0] * (2 * rank)
        paddings[2 * axis + 1] = _at_least_0(length + step * (frames - 1) - samples)
        x = _zero_padded(x, paddings, pad_value)
    else:
        frames = _at_least_0(1 + (samples - length) // step)
    # Frames are made of pieces of the greatest common length, so that fewer and longer runs are moved.
    piece = gcd(length, step)
    sizes = dynamic_dims(x)
    before, after = sizes[:axis], sizes[axis + 1 :]
    pieces = sizes[axis] // piece
    x = x[(slice(None),) * axis + (slice(0, pieces * piece),)]
    x = primitives.Reshape(x, [*before, pieces, piece, *after])
    starts = primitives.ExpandDims(number_range(frames), 1) * (step // piece)
    x = primitives.GatherV2(x, starts + np.arange(length // piece, dtype=np.int32)[None, :], axis)
    return primitives.Reshape(x, [*before, frames, length, *after])


@public("signal.overlap_and_add", "compat.v1.signal.overlap_and_add")
def overlap_and_add(signal: Any, frame_step: Any, name: str | None = None) -> Tensor:
    """The signal whose frames, `frame_step` apart, add up: [..., frames, length] becomes [..., samples].

    >>> tf.signal.overlap_and_add([[1., 1.], [1., 1.]], 1)
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([1., 2., 1.], dtype=float32)>
    """
    x = convert_to_tensor(signal)
    x.shape.with_rank_at_least(2)
    step = _scalar(frame_step, "frame_step")
    if step < 1:
        raise InvalidArgumentError.of(f"overlap_and_add: frame_step must be positive; got {step}")
    *outer, frames, length = dynamic_dims(x)
    samples = length + step * (frames - 1)
    if not _core.is_symbolic(length) and step == length:
        return primitives.Reshape(x, [*outer, samples])
    # Each frame is cut into segments of one step; padding puts the k-th segments of all frames k rows further down.
    segments = -(-length // step)
    no_padding = [0, 0] * len(outer)
    x = _zero_padded(x, [*no_padding, 0, segments, 0, segments * step - length])
    x = primitives.Reshape(x, [*outer, frames + segments, segments, step])
    rank = len(outer)
    x = primitives.Transpose(x, [*range(rank), rank + 1, rank, rank + 2])
    x = primitives.Reshape(x, [*outer, (frames + segments) * segments, step])
    x = x[..., : (frames + segments - 1) * segments, :]
    x = primitives.Reshape(x, [*outer, segments, frames + segments - 1, step])
    x = primitives.Reshape(primitives.Sum(x, [rank], False), [*outer, (frames + segments - 1) * step])
    return x[..., :samples]


def _enclosing_power_of_two(length: int) -> int:
    return 2 ** ceil(log2(length)) if length > 0 else 0


@public("signal.stft", "compat.v1.signal.stft")
def stft(
    signals: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Window | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """The short-time Fourier transform: [..., samples] becomes [..., frames, fft_length / 2 + 1].

    >>> tf.signal.stft([1., 1., 1., 1.], 2, 2, window_fn=None)
    <tf.Tensor: shape=(2, 2), dtype=complex64, numpy=
    array([[2.+0.j, 0.+0.j],
           [2.+0.j, 0.+0.j]], dtype=complex64)>
    """
    length = _scalar(frame_length, "frame_length")
    points = _enclosing_power_of_two(length) if fft_length is None else _scalar(fft_length, "fft_length")
    framed = frame(signals, length, frame_step, pad_end=pad_end)
    if window_fn is not None:
        framed = framed * window_fn(length, dtype=framed.dtype)
    return rfft(framed, [points])


@public("signal.inverse_stft_window_fn", "compat.v1.signal.inverse_stft_window_fn")
def inverse_stft_window_fn(frame_step: Any, forward_window_fn: Window = hann_window, name: str | None = None) -> Window:
    """The window for `inverse_stft` that makes it the inverse of `stft` with `forward_window_fn`.

    >>> tf.signal.inverse_stft_window_fn(2)(4, dtype=tf.float32)
    <tf.Tensor: shape=(4,), dtype=float32, numpy=array([0., 1., 1., 1.], dtype=float32)>
    """

    def inverse_window(frame_length: Any, dtype: Any = float32) -> Tensor:
        step, length = _scalar(frame_step, "frame_step"), _scalar(frame_length, "frame_length")
        window = forward_window_fn(length, dtype=dtype)
        overlaps = -(-length // step)
        power = _zero_padded(window * window, [0, overlaps * step - length])
        power = primitives.Sum(primitives.Reshape(power, [overlaps, step]), [0], True)
        power = primitives.Reshape(primitives.Tile(power, [overlaps, 1]), [overlaps * step])[:length]
        empty = primitives.Equal(power, convert_to_tensor(0, dtype=power.dtype))
        safe = primitives.SelectV2(empty, convert_to_tensor(1, dtype=power.dtype), power)
        return primitives.SelectV2(empty, convert_to_tensor(0, dtype=power.dtype), window / safe)

    return inverse_window


@public("signal.inverse_stft", "compat.v1.signal.inverse_stft")
def inverse_stft(
    stfts: Any,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Window | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """The signal of a short-time Fourier transform: [..., frames, fft_length / 2 + 1] becomes [..., samples].

    >>> tf.signal.inverse_stft(tf.constant([[2, 0], [2, 0]], tf.complex64), 2, 2, window_fn=None)
    <tf.Tensor: shape=(4,), dtype=float32, numpy=array([1., 1., 1., 1.], dtype=float32)>
    """
    stfts = convert_to_tensor(stfts)
    stfts.shape.with_rank_at_least(2)
    length = _scalar(frame_length, "frame_length")
    points = _enclosing_power_of_two(length) if fft_length is None else _scalar(fft_length, "fft_length")
    for what, size in (("frame_length", length), ("fft_length", points)):
        if isinstance(size, int) and size <= 0:
            raise ValueError(f"inverse_stft: `{what}` must be a positive integer; got {size}")
    frames = irfft(stfts, [points])
    if points > length:
        frames = frames[..., :length]
    elif points < length:
        frames = _zero_padded(frames, [0] * (2 * frames.shape.rank - 1) + [length - points])
    if window_fn is not None:
        frames = frames * window_fn(length, dtype=stfts.dtype.real_dtype)
    return overlap_and_add(frames, frame_step)


@public("signal.mdct", "compat.v1.signal.mdct")
def mdct(
    signals: Any,
    frame_length: Any,
    window_fn: Window | None = vorbis_window,
    pad_end: bool = False,
    norm: str | None = None,
    name: str | None = None,
) -> Any:
    """The modified discrete cosine transform: [..., samples] becomes [..., frames, frame_length / 2].

    >>> tf.signal.mdct([0., 0., 0., 0.], 4)
    <tf.Tensor: shape=(1, 2), dtype=float32, numpy=array([[0., 0.]], dtype=float32)>
    """
    length = _scalar(frame_length, "frame_length")
    if length % 4:
        raise ValueError("The frame length must be a multiple of 4.")
    x = frame(signals, length, length // 2, pad_end=pad_end)
    x = x * (convert_to_tensor(sqrt(0.5), dtype=x.dtype) if window_fn is None else window_fn(length, dtype=x.dtype))
    a, b, c, d = primitives.SplitV(x, [length // 4] * 4, -1)
    folded = primitives.ConcatV2([-primitives.ReverseV2(c, [-1]) - d, a - primitives.ReverseV2(b, [-1])], -1)
    return dct(folded, type=4, norm=norm)


@public("signal.inverse_mdct", "compat.v1.signal.inverse_mdct")
def inverse_mdct(
    mdcts: Any, window_fn: Window | None = vorbis_window, norm: str | None = None, name: str | None = None
) -> Tensor:
    """The signal of a modified discrete cosine transform: [..., frames, half] becomes [..., samples].

    >>> tf.signal.inverse_mdct([[0., 0.]])
    <tf.Tensor: shape=(4,), dtype=float32, numpy=array([0., 0., 0., 0.], dtype=float32)>
    """
    mdcts = convert_to_tensor(mdcts)
    mdcts.shape.with_rank_at_least(2)
    half = mdcts.shape[-1]
    x = dct(mdcts, type=4, norm=norm)
    if norm is None:
        x = x * convert_to_tensor(0.5 / half, dtype=x.dtype)
    first, second = primitives.SplitV(x, [half // 2] * 2, -1)
    x = primitives.ConcatV2(
        [second, -primitives.ReverseV2(second, [-1]), -primitives.ReverseV2(first, [-1]), -first], -1
    )
    x = x * (convert_to_tensor(sqrt(0.5), dtype=x.dtype) if window_fn is None else window_fn(2 * half, dtype=x.dtype))
    return overlap_and_add(x, half)


@public("signal.linear_to_mel_weight_matrix", "compat.v1.signal.linear_to_mel_weight_matrix")
def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: int = 129,
    sample_rate: Any = 8000,
    lower_edge_hertz: Any = 125.0,
    upper_edge_hertz: Any = 3800.0,
    dtype: Any = float32,
    name: str | None = None,
) -> Any:
    """The matrix that takes linear spectra to the mel scale: shape [num_spectrogram_bins, num_mel_bins].

    >>> tf.signal.linear_to_mel_weight_matrix(4, 9).shape
    TensorShape([9, 4])
    """
    dtype = as_dtype(dtype)
    rate, lower, upper = (float(v) for v in (sample_rate, lower_edge_hertz, upper_edge_hertz))
    if num_mel_bins <= 0:
        raise ValueError(f"num_mel_bins must be positive. Got: {num_mel_bins}")
    if lower < 0.0:
        raise ValueError(f"lower_edge_hertz must be non-negative. Got: {lower_edge_hertz}")
    if lower >= upper:
        raise ValueError(f"lower_edge_hertz {lower:.1f} >= upper_edge_hertz {upper:.1f}")
    if rate <= 0.0:
        raise ValueError(f"sample_rate must be positive. Got: {sample_rate}")
    if upper > rate / 2:
        raise ValueError(
            "upper_edge_hertz must not be larger than the Nyquist frequency (sample_rate / 2). Got "
            f"{upper_edge_hertz} for sample_rate: {sample_rate}"
        )
    if not dtype.is_floating:
        raise ValueError(f"dtype must be a floating point type. Got: {dtype}")

    def mel(hertz: Any) -> Any:
        return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)

    bins = mel(np.linspace(0.0, rate / 2, int(num_spectrogram_bins)))[1:, None]
    edges = np.linspace(mel(lower), mel(upper), int(num_mel_bins) + 2)
    left, centre, right = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (bins - left) / (centre - left), (right - bins) / (right - centre)
    weights = np.maximum(0.0, np.minimum(rising, falling))
    return convert_to_tensor(np.pad(weights, [(1, 0), (0, 0)]).astype(dtype.as_numpy_dtype))


@public("signal.mfccs_from_log_mel_spectrograms", "compat.v1.signal.mfccs_from_log_mel_spectrograms")
def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: Any, name: str | None = None) -> Any:
    """The mel-frequency cepstral coefficients, over the last dimension.

    >>> tf.signal.mfccs_from_log_mel_spectrograms([1., 1.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 0.], dtype=float32)>
    """
    x = convert_to_tensor(log_mel_spectrograms)
    bins = dynamic_dims(x)[-1] if x.shape.rank else 0
    if not _core.is_symbolic(bins) and bins == 0:
        raise ValueError(f"num_mel_bins must be positive. Got: {x}")
    y = dct(x, type=2)
    return y * primitives.Rsqrt(cast(2 * bins, y.dtype))
