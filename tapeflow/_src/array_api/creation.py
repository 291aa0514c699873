"""Functions of the standard that make arrays, and those that ask about dtypes and devices."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

import tapeflow as tf
from tapeflow._src.array_api.array import DEVICE, Array, check_device, in_common, tensor_of
from tapeflow._src.array_api.dtypes import (
    DEFAULT_COMPLEX,
    DEFAULT_FLOAT,
    DEFAULT_INT,
    DTYPES,
    KINDS,
    default_dtype,
    is_scalar,
    isdtype,
)  # fmt: skip


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: builtins.bool | None = None) -> Array:
    """An array of an array, a tensor, a number, nested lists, or what knows the buffer protocol or DLPack."""
    check_device(device)
    if isinstance(obj, Array | tf.Tensor | tf.Variable):
        tensor = tensor_of(obj)
        if dtype is not None and tensor.dtype != dtype:
            if copy is False:
                raise ValueError(f"asarray: another dtype needs a copy; got {tensor.dtype.name}, not {dtype}")
            return Array(tf.cast(tensor, dtype))
        if isinstance(obj, Array) and not copy:
            return obj  # a later `obj[key] = value` is seen in both
        return Array(tf.identity(tensor)) if copy or isinstance(obj, tf.Variable) else Array(tensor)
    if copy is False:
        raise ValueError(f"asarray: a {type(obj).__name__} must be copied")
    if isinstance(obj, list | tuple) and _holds_arrays(obj):
        parts = [asarray(part, dtype=dtype) for part in obj]
        return Array(tf.stack(in_common(*parts)))
    value = np.asarray(obj)
    if value.dtype == object:
        raise TypeError(f"asarray: numbers, or sequences of them in one shape, are needed; got {type(obj).__name__}")
    if dtype is None and not isinstance(obj, np.ndarray | np.generic):
        dtype = {"f": DEFAULT_FLOAT, "c": DEFAULT_COMPLEX, "i": DEFAULT_INT}.get(value.dtype.kind)
    return Array(tf.constant(value if dtype is None else value.astype(tf.as_dtype(dtype).as_numpy_dtype)))


def _holds_arrays(obj: Any) -> builtins.bool:
    if isinstance(obj, list | tuple):
        return builtins.any(_holds_arrays(part) for part in obj)
    return isinstance(obj, Array | tf.Tensor | tf.Variable)


def from_dlpack(x: Any, /, *, device: Any = None, copy: builtins.bool | None = None) -> Array:
    """An array of another library's array, by DLPack."""
    check_device(device)
    if isinstance(x, Array | tf.Tensor | tf.Variable):
        return asarray(x, copy=copy)
    if copy is False:
        raise BufferError(f"from_dlpack: elements of a {type(x).__name__} must be copied; copy=False does not allow it")
    return Array(tf.constant(np.from_dlpack(x)))


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Array:
    """Numbers from `start` to before `stop` in steps."""
    check_device(device)
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        numbers = [default_dtype(number) for number in (start, stop, step)]
        dtype = DEFAULT_FLOAT if DEFAULT_FLOAT in numbers else DEFAULT_INT
    count = builtins.max(0, builtins.int(np.ceil((stop - start) / step))) if step else 0
    if isinstance(start, builtins.int) and isinstance(step, builtins.int) and isinstance(stop, builtins.int):
        count = len(range(start, stop, step))
    return Array(tf.constant((start + np.arange(count) * step).astype(tf.as_dtype(dtype).as_numpy_dtype)))


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: builtins.bool = True
) -> Array:
    """`num` numbers at equal distances from `start` to `stop`."""
    check_device(device)
    if dtype is None:
        is_complex = isinstance(start, builtins.complex) or isinstance(stop, builtins.complex)
        dtype = DEFAULT_COMPLEX if is_complex else DEFAULT_FLOAT
    values = np.linspace(start, stop, num, endpoint=endpoint, dtype=tf.as_dtype(dtype).as_numpy_dtype)
    return Array(tf.constant(values))


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """An array with the same value everywhere."""
    check_device(device)
    if dtype is None:
        dtype = default_dtype(fill_value) if is_scalar(fill_value) else tensor_of(fill_value).dtype
    return Array(tf.fill(_as_shape(shape), tensor_of(fill_value, tf.as_dtype(dtype))))


def _as_shape(shape: Any) -> list[builtins.int]:
    return [shape] if isinstance(shape, builtins.int) else [builtins.int(size) for size in shape]


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """An array of zeros."""
    check_device(device)
    return Array(tf.zeros(_as_shape(shape), dtype or DEFAULT_FLOAT))


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """An array of ones."""
    check_device(device)
    return Array(tf.ones(_as_shape(shape), dtype or DEFAULT_FLOAT))


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """An array whose elements are to be set; they are zeros."""
    return zeros(shape, dtype=dtype, device=device)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Zeros in the shape of another array."""
    return zeros(tensor_of(x).shape, dtype=dtype or tensor_of(x).dtype, device=device)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Ones in the shape of another array."""
    return ones(tensor_of(x).shape, dtype=dtype or tensor_of(x).dtype, device=device)


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Array:
    """An array in the shape of another one whose elements are to be set; they are zeros."""
    return zeros_like(x, dtype=dtype, device=device)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """One value in the shape of another array."""
    return full(tensor_of(x).shape, fill_value, dtype=dtype or tensor_of(x).dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Array:
    """A matrix with ones on a diagonal and zeros elsewhere."""
    check_device(device)
    value = np.eye(n_rows, n_cols, k, dtype=tf.as_dtype(dtype or DEFAULT_FLOAT).as_numpy_dtype)
    return Array(tf.constant(value))


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Array, ...]:
    """The coordinates of a grid, one array for each dimension."""
    if not arrays:
        return ()
    return tuple(Array(tensor) for tensor in tf.meshgrid(*[tensor_of(array) for array in arrays], indexing=indexing))


def _banded(x: Any, keep: Any) -> Array:
    tensor = tensor_of(x)
    if tensor.shape.rank < 2:
        raise ValueError(f"array_api: a matrix is needed; got {tensor.shape.rank} dimensions")
    rows, columns = tensor.shape[-2], tensor.shape[-1]
    mask = keep(np.arange(columns)[None, :] - np.arange(rows)[:, None])
    return Array(tf.where(tf.constant(mask), tensor, tf.zeros_like(tensor)))


def tril(x: Any, /, *, k: int = 0) -> Array:
    """The lower triangles of matrices."""
    return _banded(x, lambda offset: offset <= k)


def triu(x: Any, /, *, k: int = 0) -> Array:
    """The upper triangles of matrices."""
    return _banded(x, lambda offset: offset >= k)


def astype(x: Any, dtype: Any, /, *, copy: builtins.bool = True, device: Any = None) -> Array:
    """The array in another dtype."""
    check_device(device)
    tensor = tensor_of(x)
    if tensor.dtype.is_complex and not tf.as_dtype(dtype).is_complex:
        raise TypeError("astype: complex numbers have no real dtype; use `real` or `abs`")
    if tensor.dtype == dtype:
        return Array(tf.identity(tensor)) if copy else asarray(x)
    return Array(tf.cast(tensor, dtype))


class Info:
    """What the namespace has: `__array_namespace_info__()`."""

    def capabilities(self) -> dict[str, Any]:
        """What depends on the library."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self) -> str:
        """The device of new arrays."""
        return DEVICE

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The dtypes of new arrays."""
        check_device(device)
        return {
            "real floating": DEFAULT_FLOAT,
            "complex floating": DEFAULT_COMPLEX,
            "integral": DEFAULT_INT,
            "indexing": DEFAULT_INT,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes of a kind, or all, by name."""
        check_device(device)
        if kind is not None and not isinstance(kind, tuple) and kind not in KINDS:
            raise ValueError(f"dtypes: kind must be one of {sorted(KINDS)}; got {kind!r}")
        return {dtype.name: dtype for dtype in DTYPES if kind is None or isdtype(dtype, kind)}

    def devices(self) -> tuple[str, ...]:
        """The devices."""
        return (DEVICE,)


def namespace_info() -> Info:
    """What the namespace has."""
    return Info()
