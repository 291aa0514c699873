"""NumPy's dtype promotion, and arrays made with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.numpy.weak_types import state
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.math import arithmetic as arithmetic
from tapeflow._src.types.dtypes import as_dtype, float32, float64

_WEAK = (bool, int, float, complex)
boolean = as_dtype("bool")


# ---- arrays and their dtypes


def _kind(value: Any) -> Any:
    """What `np.result_type` is asked about: a dtype, or a Python number, which gives way to the dtypes beside it."""
    if _core.is_tensor(value):
        return value.dtype.as_numpy_dtype
    if getattr(value, "is_weak", False):
        return value.dtype.as_numpy_dtype
    if isinstance(value, _WEAK):
        if state.prefer_float32 and isinstance(value, float | complex) and not isinstance(value, np.generic):
            return np.dtype(np.float32 if isinstance(value, float) else np.complex64)
        return type(value)(0)
    if isinstance(value, list | tuple):
        kinds = [_kind(v) for v in value]
        if not kinds:
            return np.dtype(float)
        return np.result_type(*kinds).type(0).item() if all(isinstance(k, _WEAK) for k in kinds) else _joined(kinds)
    return np.asarray(value).dtype


def _joined(kinds: Sequence[Any]) -> Any:
    """The dtype that NumPy gives to a mix of dtypes and Python numbers."""
    return canonical(np.result_type(*kinds) if kinds else np.dtype(float))


def canonical(dtype: Any) -> Any:
    """The dtype, or the one of half its size where float64 is not allowed."""
    if state.allow_float64:
        return dtype
    narrow = {"float64": np.dtype(np.float32), "complex128": np.dtype(np.complex64)}
    return narrow.get(np.dtype(dtype).name, dtype)


def default_float() -> Any:
    """The dtype of floats that nothing else decides."""
    return float64 if state.allow_float64 and not state.prefer_float32 else float32


def promoted(*values: Any, floats: bool = False) -> list[Any]:
    """The values as tensors of their common dtype; with `floats`, integers become float64."""
    dtype = as_dtype(_joined([_kind(v) for v in values]))
    if floats and (dtype.is_integer or dtype.is_bool):
        dtype = default_float()
    return [cast(tensor_of(v), dtype) for v in values]


def tensor_of(value: Any) -> Any:
    if _core.is_tensor(value):
        return convert_to_tensor(value)
    if isinstance(value, list | tuple) and any(_core.is_tensor(v) for v in value):
        return primitives.Pack(promoted(*value))
    if state.prefer_float32 and isinstance(value, float | complex | list | tuple):
        return convert_to_tensor(np.asarray(value, dtype=_joined([_kind(value)])))
    return convert_to_tensor(np.asarray(value))


def document(function: Any, sentence: str, example: str) -> None:
    call, _, result = example.partition(" = ")
    function.__doc__ = f"{sentence}\n\n    >>> tf.experimental.numpy.{call}\n    {result}\n    "


@public("experimental.numpy.array")
def array(val: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0) -> Tensor:
    """A tensor from any value, with NumPy's dtypes: float64 and int64 for Python numbers.

    >>> tf.experimental.numpy.array([1, 2], ndmin=2)
    <tf.Tensor: shape=(1, 2), dtype=int64, numpy=array([[1, 2]])>
    """
    x = tensor_of(val)
    if dtype is not None:
        x = cast(x, dtype_or(dtype, None))
    return primitives.Reshape(x, [1] * (ndmin - x.shape.rank) + x.shape.as_list()) if x.shape.rank < ndmin else x


@public("experimental.numpy.asarray", "experimental.numpy.asanyarray", "experimental.numpy.ascontiguousarray")
def asarray(a: Any, dtype: Any = None) -> Tensor:
    """A tensor from any value.

    >>> tf.experimental.numpy.asarray([1., 2.])
    <tf.Tensor: shape=(2,), dtype=float64, numpy=array([1., 2.])>
    """
    return array(a, dtype)


@public("experimental.numpy.result_type")
def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype of an operation on the given arrays, dtypes and Python numbers.

    >>> tf.experimental.numpy.result_type(tf.float32, 1.5) == tf.float32
    True
    """

    def kind(value: Any) -> Any:
        is_dtype = isinstance(value, type | np.dtype) or hasattr(value, "as_numpy_dtype")
        return as_dtype(value).as_numpy_dtype if is_dtype else _kind(value)

    return as_dtype(_joined([kind(v) for v in arrays_and_dtypes]))


@public("experimental.numpy.promote_types")
def promote_types(type1: Any, type2: Any) -> Any:
    """The smallest dtype that holds both, as NumPy's.

    >>> tf.experimental.numpy.promote_types(tf.int32, tf.float32)
    dtype('float64')
    """
    return np.dtype(result_type(as_dtype(type1), as_dtype(type2)).as_numpy_dtype)


def as_bool(x: Any) -> Tensor:
    return x if x.dtype == boolean else primitives.NotEqual(x, cast(0, x.dtype))


def axis_in_rank(axis: Any, rank: int, who: str) -> int:
    """An axis counted from the front; an error if there is none."""
    if not -rank <= axis < rank:
        raise ValueError(f"{who}: axis must be in [{-rank}, {rank}); got {axis}")
    return int(axis % rank)


def dtype_or(dtype: Any, default: Any) -> Any:
    """The dtype that was given, or this one."""
    if dtype is None:
        return default if state.allow_float64 or default is None else as_dtype(canonical(default.as_numpy_dtype))
    if isinstance(dtype, type | np.dtype) or (isinstance(dtype, str) and dtype[:1] in "SU<>|=" and len(dtype) > 1):
        dtype = np.dtype(dtype)
        return as_dtype("string") if dtype.kind in "SU" else as_dtype(canonical(dtype))
    return as_dtype(dtype)
