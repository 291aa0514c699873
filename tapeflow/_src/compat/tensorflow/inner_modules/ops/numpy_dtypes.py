"""The switches of `tensorflow.python.ops.numpy_ops.np_dtypes`: which floats `tf.experimental.numpy` makes."""

from __future__ import annotations

from typing import Any

from tapeflow._src.namespace import find_public
from tapeflow._src.numpy.promotion import canonical, default_float
from tapeflow._src.numpy.weak_types import state


def is_allow_float64() -> bool:
    """Whether float64 and complex128 stay what they are."""
    return state.allow_float64


def set_allow_float64(b: bool) -> None:
    """Keeps float64 and complex128, or makes float32 and complex64 of them."""
    state.allow_float64 = b


def is_prefer_float32() -> bool:
    """Whether Python's floats count as float32."""
    return state.prefer_float32


def set_prefer_float32(b: bool) -> None:
    """Lets Python's floats count as float32, or as float64."""
    state.prefer_float32 = b


names: dict[str, Any] = {
    "_result_type": find_public("experimental.numpy.result_type"),
    "canonicalize_dtype": canonical,
    "default_float_type": default_float,
    "is_allow_float64": is_allow_float64,
    "is_prefer_float32": is_prefer_float32,
    "set_allow_float64": set_allow_float64,
    "set_prefer_float32": set_prefer_float32,
}
