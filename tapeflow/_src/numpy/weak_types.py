"""Which dtype results of mixed dtypes have where dtypes may be weak: that of a number whose dtype nobody gave.

The rules are those of a lattice: integers, then floats, then complex numbers; a weak dtype gives way to others of its
kind. A promotion is safe if it keeps every value and its width; the others need the mode "all".
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import DType, as_dtype
from tapeflow._src.types.tensor_shape import TensorShape

Kind = tuple[DType, bool]  # a dtype, and whether it is weak

_ORDER = {"bool": 0, "int": 1, "float": 2, "complex": 3}


class PromoMode(Enum):
    """Which promotions happen by themselves."""

    NONE = 0
    SAFE = 1
    ALL = 2


class _State:
    """The mode of the process; None for TensorFlow's older rules."""

    mode: PromoMode | None = None
    prefer_float32 = False
    allow_float64 = True


state = _State()


def _family(dtype: DType) -> str:
    if dtype.is_bool:
        return "bool"
    return "complex" if dtype.is_complex else "float" if dtype.is_floating else "int"


def _named(name: str, weak: bool = False) -> Kind:
    return as_dtype(name), weak


def _bits(dtype: DType) -> int:
    return dtype.size * 8


def _of_integers(a: DType, b: DType) -> tuple[Kind, bool]:
    if a.is_unsigned == b.is_unsigned:
        return (max(a, b, key=_bits), False), True
    unsigned, signed = (a, b) if a.is_unsigned else (b, a)
    if _bits(signed) > _bits(unsigned):
        return (signed, False), True
    if _bits(unsigned) == 64:
        return _named("float64", True), False
    return _named(f"int{2 * _bits(unsigned)}"), False


def _integer_fits(integer: DType, inexact: DType) -> bool:
    """Whether an inexact dtype has all values of an integer dtype."""
    width = _bits(inexact.real_dtype)
    return _bits(integer) <= {16: 8, 32: 16, 64: 32}[width]


def _of_floats(a: DType, b: DType) -> tuple[Kind, bool]:
    if {a.name, b.name} == {"bfloat16", "float16"}:
        return _named("float32"), False
    return (max(a, b, key=_bits), False), True


def _of_strong(a: DType, b: DType) -> tuple[Kind, bool]:
    low, high = sorted((a, b), key=lambda dtype: _ORDER[_family(dtype)])
    families = _family(low), _family(high)
    if families[0] == "bool":
        return (high, False), True
    if families == ("int", "int"):
        return _of_integers(low, high)
    if families[0] == "int":
        return (high, False), _integer_fits(low, high)
    if families == ("float", "float"):
        return _of_floats(low, high)
    if families == ("float", "complex") and low.name == "float64" and high.name == "complex64":
        return _named("complex128"), False
    return (max(low, high, key=_bits) if families[0] == "complex" else high, False), True


def _of_weak_and_strong(weak: DType, strong: DType) -> tuple[Kind, bool]:
    if _family(strong) == "bool":
        return (weak, True), True
    if _ORDER[_family(weak)] <= _ORDER[_family(strong)]:
        return (strong, False), True
    if _family(strong) == "int":
        kept = weak.name != "float32" and _bits(strong) <= 32
        return (weak if weak.is_complex else as_dtype("float64"), True), kept
    wide = strong.name == "float64"
    return _named("complex128" if wide else "complex64"), wide


def promote(a: Kind, b: Kind) -> tuple[Kind, PromoMode]:
    """The dtype of a result of two dtypes, and the least mode in which it is had."""
    if a[1] and b[1]:
        first, second = a[0], b[0]
        same = _family(first) == _family(second)
        found: DType = max(first, second, key=_bits if same else lambda dtype: _ORDER[_family(dtype)])
        return (found, True), PromoMode.SAFE
    if a[1] or b[1]:
        result, safe = _of_weak_and_strong(a[0], b[0]) if a[1] else _of_weak_and_strong(b[0], a[0])
    else:
        result, safe = _of_strong(a[0], b[0])
    return result, PromoMode.SAFE if safe else PromoMode.ALL


_NUMBERS = {bool: _named("bool"), int: _named("int32", True), float: _named("float32", True)}
_NUMBERS[complex] = _named("complex128", True)


def kind_of(value: Any) -> Kind:
    """The dtype of a value or dtype, and whether it is weak; NotImplementedError for what has none."""
    if isinstance(value, DType):
        return value, False
    if getattr(value, "is_weak", False):
        return value.dtype, True
    dtype = getattr(value, "dtype", None)
    if isinstance(dtype, DType):
        return dtype.base_dtype, False
    if isinstance(value, np.ndarray | np.generic | np.dtype) or isinstance(dtype, np.dtype):
        return as_dtype(value if isinstance(value, np.dtype) else dtype), False
    if isinstance(value, bytes | str):
        return _named("string")
    if isinstance(value, TensorShape):
        return _named("int32")
    if value in (bool, int, float, complex):
        return _NUMBERS[value]
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**31) <= value < 2**31:
        raise OverflowError(f"Python int {value} too large to convert to np.int32")
    for number in (bool, int, float, complex):
        if isinstance(value, number):
            return _NUMBERS[number]
    if isinstance(value, type) and issubclass(value, np.generic):
        return as_dtype(value), False
    raise NotImplementedError(f"Auto dtype conversion semantics does not support {type(value)} type.")


def result_type(*arrays_and_dtypes: Any) -> Kind:
    """The dtype of an operation on values, and whether it is weak; a TypeError if the mode does not allow it."""
    values = [value for value in nest.flatten(list(arrays_and_dtypes)) if value is not None]
    kinds = [kind_of(value) for value in values] or [_named("float32", True)]
    result = kinds[0]
    for other in kinds[1:]:
        result = _promoted(result, other)
    return result


def _promoted(a: Kind, b: Kind) -> Kind:
    if a == b:
        return a
    for dtype in (a[0], b[0]):
        if not (dtype.is_bool or (dtype.is_numeric and not dtype.is_quantized)) or dtype.size == 0:
            raise NotImplementedError(
                f"Implicit Conversion between {a[0]} and {b[0]} is not allowed. Please convert the input manually "
                "if you need to."
            )
    result, needed = promote(a, b)
    mode = state.mode or PromoMode.ALL
    if needed.value > mode.value:
        raise TypeError(
            f"In promotion mode {mode}, implicit dtype promotion between ({a[0]}, weak={a[1]}) and ({b[0]}, "
            f"weak={b[1]}) is disallowed. You need to explicitly specify the dtype in your op, or relax your dtype "
            "promotion rules (such as from SAFE mode to ALL mode)."
        )
    return result


def holds_only_numbers(value: Any) -> bool:
    """Whether a value consists of Python's own numbers, or weak tensors."""
    leaves = nest.flatten(value)
    return all(getattr(x, "is_weak", False) or (isinstance(x, int | float | complex) and not _typed(x)) for x in leaves)


def _typed(x: Any) -> bool:
    return isinstance(x, bool | np.generic) or _core.is_tensor(x)


_NAMES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "bfloat16", "float16"]
_NAMES += ["float32", "float64", "complex64", "complex128"]
_WEAK_NAMES = ["int32", "int64", "float32", "float64", "complex128"]


def promotion_table() -> dict[Kind, dict[Kind, tuple[Kind, PromoMode]]]:
    """The result of each pair of dtypes, and the least mode in which it is had."""
    kinds = [*map(_named, _NAMES), *(_named(name, True) for name in _WEAK_NAMES)]
    return {a: {b: (a, PromoMode.SAFE) if a == b else promote(a, b) for b in kinds} for a in kinds}
