"""Tensors as messages that hold a dtype, a shape and bytes: `tf.make_tensor_proto`, `tf.make_ndarray`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tapeflow import _core
from tapeflow.namespace import public
from tapeflow.ops.conversion import convert_to_tensor
from tapeflow.types.dtypes import as_dtype
from tapeflow.types.tensor_shape import as_shape


class TensorProto:
    """A dtype (TensorFlow's number of it), a shape and the elements: bytes, or strings in `string_val`."""

    def __init__(self, dtype: int, dims: list[int], tensor_content: bytes, string_val: list[bytes]) -> None:
        self.dtype, self.dims, self.tensor_content, self.string_val = dtype, dims, tensor_content, string_val

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorProto) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TensorProto(dtype={as_dtype(self.dtype).name}, shape={self.dims}, {len(self.tensor_content)} bytes)"


@public("make_tensor_proto", "compat.v1.make_tensor_proto")
def make_tensor_proto(
    values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False, allow_broadcast: bool = False
) -> TensorProto:
    """The elements of an array as a message.

    >>> tf.make_ndarray(tf.make_tensor_proto([1., 2.]))
    array([1., 2.], dtype=float32)
    """
    if isinstance(values, TensorProto):
        return values
    tensor = (
        values
        if _core.is_tensor(values) and dtype is None
        else _core.convert_to_tensor(values, dtype, None, "make_tensor_proto")
    )
    array = np.asarray(convert_to_tensor(tensor).numpy())
    if shape is not None:
        dims = as_shape(shape).as_list()
        if verify_shape and list(array.shape) != dims:
            raise TypeError(f"Expected Tensor's shape: {tuple(dims)}, but got {array.shape}.")
        array = np.broadcast_to(array, dims) if array.size == 1 or allow_broadcast else array.reshape(dims)
    if tensor.dtype.name == "string":
        return TensorProto(tensor.dtype.as_datatype_enum, list(array.shape), b"", array.reshape(-1).tolist())
    return TensorProto(tensor.dtype.as_datatype_enum, list(array.shape), array.tobytes(), [])


@public("make_ndarray", "compat.v1.make_ndarray")
def make_ndarray(tensor: TensorProto) -> np.ndarray:
    """The array that a message holds.

    >>> tf.make_ndarray(tf.make_tensor_proto([[1, 2]])).shape
    (1, 2)
    """
    if not isinstance(tensor, TensorProto):
        raise TypeError(f"make_ndarray: `tensor` must be a TensorProto; got {type(tensor).__name__}")
    dtype = as_dtype(tensor.dtype)
    if dtype.name == "string":
        return np.asarray(tensor.string_val, dtype=object).reshape(tensor.dims)
    return np.frombuffer(tensor.tensor_content, dtype.as_numpy_dtype).reshape(tensor.dims).copy()


@public("timestamp")
def timestamp(name: str | None = None) -> Any:
    """The seconds since 1970, as float64.

    >>> tf.timestamp().dtype
    tf.float64
    """
    return _core.convert_to_tensor(time.time(), "float64", None, "timestamp")
