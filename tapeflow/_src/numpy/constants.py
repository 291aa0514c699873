"""`tf.experimental.numpy`: constants, dtypes and their limits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.namespace import public
from tapeflow._src.ops.math import arithmetic as arithmetic
from tapeflow._src.types.dtypes import as_dtype


@public("experimental.numpy.finfo")
def finfo(dtype: Any) -> np.finfo:
    """The limits of a type of floating-point numbers.

    >>> tf.experimental.numpy.finfo(tf.float32).bits
    32
    """
    return np.finfo(as_dtype(dtype).as_numpy_dtype)


@public("experimental.numpy.iinfo")
def iinfo(int_type: Any) -> np.iinfo:
    """The limits of a type of integers.

    >>> tf.experimental.numpy.iinfo(tf.int8).max
    127
    """
    return np.iinfo(as_dtype(int_type).as_numpy_dtype)


_CONSTANTS = {"pi": math.pi, "e": math.e, "inf": math.inf, "newaxis": None, "ndarray": _core.Tensor}
_DTYPES = ["bool_", "complex64", "complex128", "float16", "float32", "float64", "int8", "int16", "int32", "int64"]
_DTYPES += ["object_", "uint8", "uint16", "uint32", "uint64", "inexact", "issubdtype"]
_DTYPES_BY_OLD_NAME = {
    "int_": "int64",
    "float_": "float64",
    "complex_": "complex128",
    "string_": "bytes_",
    "unicode_": "str_",
}
for _name, _value in [
    *_CONSTANTS.items(),
    *((old, getattr(np, new)) for old, new in _DTYPES_BY_OLD_NAME.items()),
    *((name, getattr(np, name)) for name in _DTYPES),
]:
    public(f"experimental.numpy.{_name}")(_value)
