"""The functions of `tensorflow.python.ops.distributions.special_math`: the normal and the Laplace distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor

LOGNDTR_FLOAT64_LOWER = np.array(-20, np.float64)
LOGNDTR_FLOAT32_LOWER = np.array(-10, np.float32)
LOGNDTR_FLOAT64_UPPER = np.array(8, np.float64)
LOGNDTR_FLOAT32_UPPER = np.array(5, np.float32)
_where = find_public("where")


def _floats(x: Any, who: str) -> Any:
    x = convert_to_tensor(x)
    if x.dtype.as_numpy_dtype not in (np.float32, np.float64):
        raise TypeError(f"{who}: x.dtype={x.dtype.name} is not handled, see docstring for supported types.")
    return x


def ndtr(x: Any, name: str = "ndtr") -> Any:
    """The distribution function of a standard normal number."""
    x = _floats(x, "ndtr")
    half = x * np.sqrt(0.5).astype(x.dtype.as_numpy_dtype)
    erf, erfc, bound = find_public("math.erf"), find_public("math.erfc"), np.sqrt(0.5)
    tail = erfc(find_public("abs")(half))
    outer = _where(half > 0, 2.0 - tail, tail)
    return 0.5 * _where(find_public("abs")(half) < bound, 1.0 + erf(half), outer)


def log_ndtr(x: Any, series_order: int = 3, name: str = "log_ndtr") -> Any:
    """The logarithm of `ndtr`: far to the left by the asymptotic series of `series_order` terms.

    There ndtr(x) = exp(-x^2 / 2) / (-x sqrt(2 pi)) (1 - 1 / x^2 + 3 / x^4 - 15 / x^6 + ...).
    """
    if not isinstance(series_order, int):
        raise TypeError("series_order must be a Python integer.")
    if not 0 <= series_order <= 30:
        raise ValueError(f"series_order must be in [0, 30]; got {series_order}.")
    x = _floats(x, "log_ndtr")
    is_double = x.dtype.as_numpy_dtype is np.float64
    lower = LOGNDTR_FLOAT64_LOWER if is_double else LOGNDTR_FLOAT32_LOWER
    upper = LOGNDTR_FLOAT64_UPPER if is_double else LOGNDTR_FLOAT32_UPPER
    log = find_public("math.log")
    middle = log(ndtr(find_public("maximum")(x, lower)))
    left = find_public("minimum")(x, lower)
    square, term, series = left * left, 1.0, 1.0
    for n in range(1, series_order + 1):
        term = term * (-(2 * n - 1)) / square
        series = series + term
    asymptotic = -0.5 * square - log(-left) - 0.5 * np.log(2.0 * np.pi) + log(series)
    return _where(x > upper, -ndtr(-x), _where(x > lower, middle, asymptotic))


def log_cdf_laplace(x: Any, name: str = "log_cdf_laplace") -> Any:
    """The logarithm of the distribution function of the Laplace distribution of location 0 and scale 1."""
    x = convert_to_tensor(x)
    left = x - np.log(2.0)
    tail = find_public("exp")(-find_public("abs")(x))  # of abs, so that the branch not taken is finite
    return _where(x < 0, left, find_public("math.log1p")(-0.5 * tail))


names = {
    "LOGNDTR_FLOAT32_LOWER": LOGNDTR_FLOAT32_LOWER,
    "LOGNDTR_FLOAT32_UPPER": LOGNDTR_FLOAT32_UPPER,
    "LOGNDTR_FLOAT64_LOWER": LOGNDTR_FLOAT64_LOWER,
    "LOGNDTR_FLOAT64_UPPER": LOGNDTR_FLOAT64_UPPER,
    "erfinv": find_public("math.erfinv"),
    "log_cdf_laplace": log_cdf_laplace,
    "log_ndtr": log_ndtr,
    "ndtr": ndtr,
    "ndtri": find_public("math.ndtri"),
}
