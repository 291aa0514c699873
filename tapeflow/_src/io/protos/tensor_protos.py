"""Tensors as messages that hold a dtype, a shape and bytes: `tf.make_tensor_proto`, `tf.make_ndarray`."""

from __future__ import annotations

import sys
import time
from typing import Any, ClassVar

import numpy as np

from tapeflow._src import _core
from tapeflow._src.io.protos.message import Field, Message
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.tensor_shape import as_shape


class ShapeProto(Message):
    """The dimensions of a tensor."""

    class Dim(Message):
        """One dimension."""

        FIELDS: ClassVar[dict[str, Field]] = {"size": Field(1, "int")}

    FIELDS: ClassVar[dict[str, Field]] = {"dim": Field(2, Dim, repeated=True), "unknown_rank": Field(3, "int")}


class ShapeMessages:
    """The members of `tf.TensorShape` that are about messages."""

    def as_proto(self: Any) -> ShapeProto:
        """The shape as a message: -1 stands for an unknown size."""
        if self.rank is None:
            return ShapeProto(unknown_rank=True)
        return ShapeProto(dim=[ShapeProto.Dim(size=-1 if size is None else size) for size in self.as_list()])


class TensorProto(Message):
    """A dtype (TensorFlow's number of it), a shape and the elements: bytes, or lists by kind of dtype."""

    FIELDS: ClassVar[dict[str, Field]] = {
        "dtype": Field(1, "int"),
        "tensor_shape": Field(2, ShapeProto),
        "tensor_content": Field(4, "bytes"),
        "half_val": Field(13, "int", repeated=True),
        "float_val": Field(5, "float", repeated=True),
        "int_val": Field(7, "int", repeated=True),
        "string_val": Field(8, "bytes", repeated=True),
        "int64_val": Field(10, "int", repeated=True),
        "bool_val": Field(11, "int", repeated=True),
    }

    @property
    def dims(self) -> list[int]:
        """The sizes."""
        return [dim.size for dim in self.tensor_shape.dim]


def proto_of(tensor: Any) -> TensorProto:
    """A tensor with its elements as bytes; strings stand in a list."""
    array = np.asarray(tensor.numpy())
    shape = ShapeProto(dim=[ShapeProto.Dim(size=size) for size in array.shape])
    number = tensor.dtype.as_datatype_enum
    if tensor.dtype.name == "string":
        return TensorProto(dtype=number, tensor_shape=shape, string_val=array.reshape(-1).tolist())
    if sys.byteorder == "big":
        array = array.byteswap()
    return TensorProto(dtype=number, tensor_shape=shape, tensor_content=array.tobytes())


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
    return proto_of(_core.convert_to_tensor(array, tensor.dtype, None, "make_tensor_proto"))


@public("make_ndarray", "compat.v1.make_ndarray")
def make_ndarray(tensor: TensorProto) -> np.ndarray:
    """The array that a message holds.

    >>> tf.make_ndarray(tf.make_tensor_proto([[1, 2]])).shape
    (1, 2)
    """
    if not isinstance(tensor, TensorProto):
        raise TypeError(f"make_ndarray: `tensor` must be a TensorProto; got {type(tensor).__name__}")
    dtype = as_dtype(tensor.dtype)
    if not dtype.is_numpy_compatible:
        raise TypeError(f"make_ndarray: Unsupported tensor type: {tensor.dtype}. There are no arrays of {dtype.name}.")
    if tensor.tensor_content:
        return np.frombuffer(tensor.tensor_content, dtype.as_numpy_dtype).reshape(tensor.dims).copy()
    if dtype.name == "string":
        values: Any = np.asarray([*tensor.string_val], dtype=object)
    elif dtype.name in ("float16", "bfloat16"):
        values = np.asarray(tensor.half_val, np.uint16).view(dtype.as_numpy_dtype)
    else:
        lists = (tensor.float_val, tensor.int_val, tensor.int64_val, tensor.bool_val)
        values = np.asarray(next((x for x in lists if x), []), dtype.as_numpy_dtype)
    size = int(np.prod(tensor.dims))
    if len(values) < size:  # the last element stands for those that follow
        last = values[-1:] if len(values) else np.asarray([b""] if dtype.name == "string" else [0], values.dtype)
        values = np.concatenate([values, np.repeat(last, size - len(values))])
    result: np.ndarray = values.reshape(tensor.dims)
    return result


@public("timestamp")
def timestamp(name: str | None = None) -> Any:
    """The seconds since 1970, as float64.

    >>> tf.timestamp().dtype
    tf.float64
    """

    def run() -> list[Any]:
        return [_core.convert_to_tensor(time.time(), "float64", None, "timestamp")]

    return host_call(run, [], [("float64", [])], reads=True)[0]
