"""What libraries take from `tensorflow.python.ops.linalg.linear_operator_circulant`, beside the operators."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor


def to_complex(x: Any) -> Any:
    """Real numbers as complex ones of the same precision."""
    x = convert_to_tensor(x)
    return cast(x, "complex128" if x.dtype.real_dtype == find_public("float64") else "complex64")


def exponential_power_convolution_kernel(
    grid_shape: Any, length_scale: Any, power: Any = None, divisor: Any = None, zero_inflation: Any = None
) -> Any:
    """A symmetric kernel `exp(-sum((distance / length_scale) ** power) / divisor)` on a circular grid.

    Neighbours of one dimension have the distance `1 / (size - 1)`; the element of distance 0 comes first.
    `zero_inflation` is the share of a kernel that is 1 there and 0 elsewhere.
    """
    scale = convert_to_tensor(length_scale)
    power = convert_to_tensor(2.0 if power is None else power, scale.dtype)
    divisor = power if divisor is None else convert_to_tensor(divisor, scale.dtype)
    total: Any = 0.0
    for axis, size in enumerate(grid_shape):
        steps = np.abs(np.fft.ifftshift(np.arange(size) - size // 2))
        distances = convert_to_tensor(steps / max(size - 1, 1), scale.dtype)
        own_shape = [size if other == axis else 1 for other in range(len(grid_shape))]
        total = total + find_public("reshape")(distances / scale[axis], own_shape) ** power
    kernel = find_public("exp")(-total / divisor)
    if zero_inflation:
        share = convert_to_tensor(zero_inflation, scale.dtype)
        peak = np.zeros(list(grid_shape), scale.dtype.as_numpy_dtype)
        peak.flat[0] = 1
        kernel = (1.0 - share) * kernel + share * peak
    return kernel


NAMES = {
    "_FFT_OP": {1: find_public("signal.fft"), 2: find_public("signal.fft2d"), 3: find_public("signal.fft3d")},
    "_IFFT_OP": {1: find_public("signal.ifft"), 2: find_public("signal.ifft2d"), 3: find_public("signal.ifft3d")},
    "_to_complex": to_complex,
    "exponential_power_convolution_kernel": exponential_power_convolution_kernel,
}
