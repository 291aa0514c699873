"""The dtypes of the array API standard: kinds, promotion, limits."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any

import numpy as np

import tapeflow as tf

DEFAULT_FLOAT, DEFAULT_INT, DEFAULT_COMPLEX = tf.float32, tf.int64, tf.complex64

_SIGNED = [tf.int8, tf.int16, tf.int32, tf.int64]
_UNSIGNED = [tf.uint8, tf.uint16, tf.uint32, tf.uint64]
_FLOATING = [tf.float32, tf.float64]
_COMPLEX = [tf.complex64, tf.complex128]
DTYPES = [tf.bool, *_SIGNED, *_UNSIGNED, *_FLOATING, *_COMPLEX]

KINDS: dict[str, list[Any]] = {
    "bool": [tf.bool],
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _FLOATING,
    "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _FLOATING + _COMPLEX,
}
_SCALARS = (builtins.bool, builtins.int, builtins.float, builtins.complex)


def is_scalar(value: Any) -> builtins.bool:
    """Whether a value is a Python number, which takes the dtype of the arrays beside it."""
    return isinstance(value, _SCALARS) and not isinstance(value, np.generic)


def default_dtype(scalar: Any) -> Any:
    """The dtype that a Python number has by itself."""
    if isinstance(scalar, builtins.bool):
        return tf.bool
    if isinstance(scalar, builtins.int):
        return DEFAULT_INT
    return DEFAULT_FLOAT if isinstance(scalar, builtins.float) else DEFAULT_COMPLEX


def promoted(one: Any, two: Any) -> Any:
    """The dtype of an operation on arrays of two dtypes."""
    if one == two:
        return one
    if tf.bool in (one, two):
        raise TypeError(f"array_api: {one.name} and {two.name} have no common dtype")
    try:
        result = tf.as_dtype(np.result_type(one.as_numpy_dtype, two.as_numpy_dtype))
    except TypeError:
        raise TypeError(f"array_api: {one.name} and {two.name} have no common dtype") from None
    if result.is_floating and one.is_integer and two.is_integer:  # uint64 and a signed dtype
        raise TypeError(f"array_api: {one.name} and {two.name} have no common dtype")
    if one.is_integer != two.is_integer:  # an integer takes the precision of the other
        return two if one.is_integer else one
    return result


def dtype_beside(dtype: Any, scalar: Any) -> Any:
    """The dtype of an operation on an array and a Python number."""
    if isinstance(scalar, builtins.bool):
        fits = dtype == tf.bool
    else:
        fits = dtype != tf.bool
    if not fits:
        raise TypeError(f"array_api: a Python {type(scalar).__name__} does not fit an array of {dtype.name}")
    if isinstance(scalar, builtins.float) and dtype.is_integer:
        return DEFAULT_FLOAT
    if isinstance(scalar, builtins.complex) and not dtype.is_complex:
        return tf.complex128 if dtype == tf.float64 else tf.complex64
    return dtype


def _dtype_of(value: Any) -> Any:
    return tf.as_dtype(value.dtype if hasattr(value, "__array_namespace__") else value)


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that arrays, dtypes and Python numbers have in common."""
    dtypes = [_dtype_of(value) for value in arrays_and_dtypes if not is_scalar(value)]
    scalars = [value for value in arrays_and_dtypes if is_scalar(value)]
    if not dtypes:
        raise ValueError("result_type: at least one array or dtype is needed")
    result = dtypes[0]
    for dtype in dtypes[1:]:
        result = promoted(result, dtype)
    for scalar in scalars:
        result = dtype_beside(result, scalar)
    return result


def can_cast(from_: Any, to: Any, /) -> builtins.bool:
    """Whether promotion leads from one dtype to another."""
    one, two = _dtype_of(from_), tf.as_dtype(to)
    if one == two:
        return True
    if one.is_integer != two.is_integer and tf.bool not in (one, two):
        return one.is_integer and builtins.bool(np.can_cast(one.as_numpy_dtype, two.as_numpy_dtype))
    try:
        return builtins.bool(promoted(one, two) == two)
    except TypeError:
        return False


def isdtype(dtype: Any, kind: Any) -> builtins.bool:
    """Whether a dtype is of a kind: a name of one, a dtype, or a tuple of these."""
    if isinstance(kind, tuple):
        return builtins.any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype: kind must be one of {sorted(KINDS)}; got {kind!r}")
        return dtype in KINDS[kind]
    return builtins.bool(dtype == kind)


@dataclass(frozen=True)
class FloatInfo:
    """The limits of a floating dtype."""

    bits: builtins.int
    eps: builtins.float
    max: builtins.float
    min: builtins.float
    smallest_normal: builtins.float
    dtype: Any


@dataclass(frozen=True)
class IntegerInfo:
    """The limits of an integer dtype."""

    bits: builtins.int
    max: builtins.int
    min: builtins.int
    dtype: Any


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a floating dtype; of the parts of a complex one."""
    dtype = _dtype_of(type)
    info = np.finfo(dtype.as_numpy_dtype)
    real = dtype.real_dtype
    return FloatInfo(info.bits, float(info.eps), float(info.max), float(info.min), float(info.smallest_normal), real)


def iinfo(type: Any, /) -> IntegerInfo:
    """The limits of an integer dtype."""
    dtype = _dtype_of(type)
    info = np.iinfo(dtype.as_numpy_dtype)
    return IntegerInfo(info.bits, info.max, info.min, dtype)
