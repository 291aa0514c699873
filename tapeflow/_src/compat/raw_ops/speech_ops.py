"""Raw operations on speech: spectrograms, and the cepstral coefficients of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.effects.host_call import CompositionCall, Place, host_call
from tapeflow._src.types.errors import InvalidArgumentError

_FLOOR = 1e-12  # below it the logarithm of an energy is that of this number


def _spectrogram(samples: Any, window_size: int, stride: int, magnitude_squared: bool) -> Any:
    """The magnitudes (channels, frames, frequencies) of samples (time, channels) under a periodic Hann window."""
    x = convert_to_tensor(samples)
    if x.shape.rank != 2:
        raise InvalidArgumentError.of(f"AudioSpectrogram: input must be 2-dimensional; got {x.shape}")
    if window_size < 2 or stride < 1:
        raise InvalidArgumentError.of(
            f"AudioSpectrogram: window_size must be at least 2 and stride at least 1; got {window_size} and {stride}"
        )
    frames = find_public("signal.frame")(find_public("transpose")(x), window_size, stride)
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window_size) / window_size)
    length = 1 << max(window_size - 1, 1).bit_length()
    spectrum = find_public("signal.rfft")(frames * convert_to_tensor(window, "float32"), [length])
    real, imaginary = find_public("math.real")(spectrum), find_public("math.imag")(spectrum)
    energy = real * real + imaginary * imaginary
    return energy if magnitude_squared else find_public("math.sqrt")(energy)


def _mel(frequency: Any) -> Any:
    return 1127.0 * np.log1p(np.asarray(frequency, float) / 700.0)


def _filters(size: int, rate: float, low: float, high: float, count: int) -> np.ndarray:
    """How much of each of `size` frequencies each of `count` triangular filters takes."""
    lowest, highest = float(_mel(max(low, 0.0))), float(_mel(max(high, 0.0)))
    step = 0.5 * rate / max(size - 1, 1)
    width = (highest - lowest) / (max(count, 0) + 1)
    if size < 2 or count < 1 or low < 0 or not 0 < step < math.inf or not lowest < lowest + width < math.inf:
        raise InvalidArgumentError.of(
            f"Mfcc: initialization failed for channel count {size}, sample rate {rate}, filterbank_channel_count "
            f"{count} and frequencies from {low} to {high}"
        )
    centers = lowest + width * np.arange(1, count + 2)
    weights = np.zeros((size, count))
    for place in range(int(1.5 + low / step), min(int(high / step), size - 1) + 1):
        mel = float(_mel(place * step))
        above = int(np.searchsorted(centers[:count], mel))  # the filters below it have their center before it
        start = lowest if above == 0 else centers[above - 1]
        share = (centers[above] - mel) / (centers[above] - start)
        if above > 0:
            weights[place, above - 1] += share
        if above < count:
            weights[place, above] += 1 - share
    return weights


class _Cepstrum:
    """Computes the coefficients; files know it as the raw operation."""

    def __init__(self, high: float, low: float, filters: int, coefficients: int) -> None:
        self._high, self._low, self._filters, self._coefficients = high, low, filters, coefficients
        options = (high, low, filters, coefficients)
        self.raw_call = CompositionCall(_coefficients, (Place(0), Place(1), *options), {}, whole=True)

    def __call__(self, spectrogram: Any, rate: Any) -> list[Any]:
        x = spectrogram.numpy().astype(float)
        weights = _filters(x.shape[-1], float(rate), self._low, self._high, self._filters)
        logs = np.log(np.maximum(np.sqrt(x) @ weights, _FLOOR))
        angles = math.pi / self._filters * np.outer(np.arange(self._filters) + 0.5, np.arange(self._coefficients))
        found = logs @ np.cos(angles) * math.sqrt(2.0 / self._filters)
        return [convert_to_tensor(found.astype(np.float32))]


def _coefficients(
    spectrogram: Any, sample_rate: Any, high: float = 4000.0, low: float = 20.0, filters: int = 40, count: int = 13
) -> Any:
    """The first cosine coefficients of the logarithms of mel-scaled spectra (channels, frames, frequencies)."""
    x = cast(spectrogram, "float32")
    if x.shape.rank != 3:
        raise InvalidArgumentError.of(f"Mfcc: spectrogram must be 3-dimensional; got {x.shape}")
    if not 1 <= count <= filters:
        raise InvalidArgumentError.of(
            f"Mfcc: dct_coefficient_count must be in [1, filterbank_channel_count]; got {count} of {filters}"
        )
    given = [x, convert_to_tensor(sample_rate)]
    return host_call(_Cepstrum(high, low, filters, count), given, [("float32", [*x.shape.as_list()[:2], count])])[0]


ROWS: list[tuple[str, str, Any]] = [
    ("AudioSpectrogram", "input, window_size, stride, magnitude_squared=False", _spectrogram),
    (
        "Mfcc",
        "spectrogram, sample_rate, upper_frequency_limit=4000.0, lower_frequency_limit=20.0, "
        "filterbank_channel_count=40, dct_coefficient_count=13",
        _coefficients,
    ),
]
