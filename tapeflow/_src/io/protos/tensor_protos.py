"""`tf.make_tensor_proto`, `tf.make_ndarray`, and `tf.timestamp`."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.tensor_messages import array_of, listed_message, shape_message, tensor_message
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.tensor_shape import as_shape


class ShapeMessages:
    """The members of `tf.TensorShape` that are about messages."""

    def as_proto(self: Any) -> Any:
        """The shape as a message: -1 stands for an unknown size."""
        return shape_message(self)


@public("make_tensor_proto", "compat.v1.make_tensor_proto")
def make_tensor_proto(
    values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False, allow_broadcast: bool = False
) -> Any:
    """The elements of an array as a message.

    >>> tf.make_ndarray(tf.make_tensor_proto([1., 2.]))
    array([1., 2.], dtype=float32)
    """
    if isinstance(values, messages.TensorProto):
        return values
    tensor = (
        values
        if _core.is_tensor(values) and dtype is None
        else _core.convert_to_tensor(values, dtype, None, "make_tensor_proto")
    )
    array = np.asarray(convert_to_tensor(tensor).numpy())
    dims = list(array.shape) if shape is None else as_shape(shape).as_list()
    if shape is not None:
        if verify_shape and list(array.shape) != dims:
            raise TypeError(f"Expected Tensor's shape: {tuple(dims)}, but got {array.shape}.")
        if allow_broadcast:
            array = np.broadcast_to(array, dims)
        elif not 0 < array.size < math.prod(dims):
            array = array.reshape(dims)
    elements = _core.convert_to_tensor(array, tensor.dtype, None, "make_tensor_proto")
    if array.size == 1 or array.size != math.prod(dims) or not _has_bytes(tensor.dtype):
        return listed_message(elements, dims)
    return tensor_message(elements)


def _has_bytes(dtype: Any) -> bool:
    """Whether a message holds several elements of a dtype as bytes; readers of TensorFlow take lists as well."""
    return not (dtype.is_complex or dtype.name in ("bool", "string", "uint16"))


@public("make_ndarray", "compat.v1.make_ndarray")
def make_ndarray(tensor: Any) -> np.ndarray:
    """The array that a message holds.

    >>> tf.make_ndarray(tf.make_tensor_proto([[1, 2]])).shape
    (1, 2)
    """
    if not isinstance(tensor, messages.TensorProto):
        raise TypeError(f"make_ndarray: `tensor` must be a TensorProto; got {type(tensor).__name__}")
    dtype = as_dtype(tensor.dtype)
    if not dtype.is_numpy_compatible:
        raise TypeError(f"make_ndarray: Unsupported tensor type: {tensor.dtype}. There are no arrays of {dtype.name}.")
    found: np.ndarray = array_of(tensor)
    return found


@public("timestamp")
def timestamp(name: str | None = None) -> Any:
    """The seconds since 1970, as float64.

    >>> tf.timestamp().dtype
    tf.float64
    """

    def run() -> list[Any]:
        return [_core.convert_to_tensor(time.time(), "float64", None, "timestamp")]

    return host_call(run, [], [("float64", [])], reads=True)[0]
