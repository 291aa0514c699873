"""Tensors and shapes as `TensorProto` and `TensorShapeProto` messages, and back."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.wire import decode_varint, encode_varint
from tapeflow._src.types.dtypes import as_dtype, variant
from tapeflow._src.types.errors import ResourceExhaustedError
from tapeflow._src.types.tensor_shape import TensorShape

_LIST_BY_DTYPE = {
    "float32": "float_val",
    "float64": "double_val",
    "int64": "int64_val",
    "uint32": "uint32_val",
    "uint64": "uint64_val",
    "bool": "bool_val",
    "string": "string_val",
}
_LARGEST_FILL = 1 << 28  # bytes of a tensor that one element fills


def shape_message(shape: Any) -> Any:
    """A shape; unknown sizes are -1."""
    if shape.rank is None:
        return messages.TensorShapeProto(unknown_rank=True)
    dim = messages.TensorShapeProto.Dim
    return messages.TensorShapeProto(dim=[dim(size=-1 if size is None else size) for size in shape.as_list()])


def shape_of(message: Any) -> TensorShape:
    """The shape that a message holds."""
    if message.unknown_rank:
        return TensorShape(None)
    return TensorShape([None if dim.size < 0 else dim.size for dim in message.dim])


def tensor_message(tensor: Any) -> Any:
    """A tensor with its elements as bytes; strings stand in a list."""
    array = np.asarray(tensor)
    dim = messages.TensorShapeProto.Dim
    shape = messages.TensorShapeProto(dim=[dim(size=size) for size in array.shape])
    number = tensor.dtype.as_datatype_enum
    if tensor.dtype.name == "string":
        return messages.TensorProto(dtype=number, tensor_shape=shape, string_val=array.reshape(-1).tolist())
    if sys.byteorder == "big":
        array = array.byteswap()
    return messages.TensorProto(dtype=number, tensor_shape=shape, tensor_content=array.tobytes())


def listed_message(tensor: Any, dims: list[int]) -> Any:
    """A tensor of a shape with its elements in the list of their dtype; the last one stands for those that follow."""
    dtype, name = tensor.dtype, tensor.dtype.name
    array = np.asarray(tensor).reshape(-1)
    dim = messages.TensorShapeProto.Dim
    shape = messages.TensorShapeProto(dim=[dim(size=size) for size in dims])
    field = _LIST_BY_DTYPE.get(name, "int_val")
    if name in ("float16", "bfloat16"):
        field, array = "half_val", array.view(np.uint16)
    elif name in ("complex64", "complex128"):
        real, field = (np.float32, "scomplex_val") if name == "complex64" else (np.float64, "dcomplex_val")
        array = array.view(real)
    elif name.startswith("float8"):
        return messages.TensorProto(dtype=dtype.as_datatype_enum, tensor_shape=shape, float8_val=array.tobytes())
    return messages.TensorProto(dtype=dtype.as_datatype_enum, tensor_shape=shape, **{field: array.tolist()})


def array_of(message: Any) -> Any:
    """The array that a message holds; ValueError if its elements do not fit its shape."""
    dtype = as_dtype(message.dtype)
    if not dtype.is_numpy_compatible:
        raise ValueError(f"a TensorProto of dtype {dtype.name} holds no elements")
    dims = [dim.size for dim in message.tensor_shape.dim]
    if message.tensor_shape.unknown_rank or any(size < 0 for size in dims):
        raise ValueError("the shape of a TensorProto must be known")
    size = math.prod(dims)
    if message.tensor_content and dtype.name != "string":
        item = np.dtype(dtype.as_numpy_dtype).itemsize
        if len(message.tensor_content) != size * item:
            raise ValueError(f"a TensorProto of shape {dims} holds {len(message.tensor_content)} bytes")
        content = np.frombuffer(message.tensor_content, dtype.as_numpy_dtype)
        return (content.byteswap() if sys.byteorder == "big" else content).reshape(dims).copy()
    values = _texts(message.tensor_content, size) if message.tensor_content else _listed(message, dtype)
    if len(values) > size:
        raise ValueError(f"a TensorProto of shape {dims} holds {len(values)} elements")
    if len(values) < size:  # the last element stands for those that follow
        last = values[-1:] if len(values) else np.asarray([b"" if dtype.name == "string" else 0], values.dtype)
        if size * values.itemsize > _LARGEST_FILL:
            raise ResourceExhaustedError.of(
                f"OOM when allocating tensor with shape {dims} and type {dtype.name}: a TensorProto of {len(values)} "
                "elements fills it"
            )
        values = np.concatenate([values, np.repeat(last, size - len(values))])
    return values.reshape(dims)


def _listed(message: Any, dtype: Any) -> Any:
    """The elements that stand in the list of their dtype."""
    name = dtype.name
    if name in ("float16", "bfloat16"):
        return np.asarray(message.half_val, np.int32).astype(np.uint16).view(dtype.as_numpy_dtype)
    if name in ("complex64", "complex128"):
        pairs = message.scomplex_val if name == "complex64" else message.dcomplex_val
        if len(pairs) % 2:
            raise ValueError("a TensorProto of complex numbers holds half a number")
        return np.asarray(pairs, np.float32 if name == "complex64" else np.float64).view(dtype.as_numpy_dtype)
    if name.startswith("float8"):
        return np.frombuffer(message.float8_val, dtype.as_numpy_dtype)
    found = list(getattr(message, _LIST_BY_DTYPE.get(name, "int_val")))
    if name == "string":
        values = np.empty(len(found), object)
        values[:] = found
        return values
    return np.asarray(found).astype(dtype.as_numpy_dtype)


def _texts(content: bytes, count: int) -> Any:
    """Strings that stand in bytes: their lengths, then themselves, as snapshots of datasets have them."""
    lengths, place = [], 0
    if count > len(content):
        raise ValueError(f"a TensorProto of {count} strings holds {len(content)} bytes")
    for _ in range(count):
        length, place = decode_varint(content, place)
        lengths.append(length)
    if place + sum(lengths) != len(content):
        raise ValueError("the strings of a TensorProto do not fit their lengths")
    values = np.empty(count, object)
    for number, length in enumerate(lengths):
        values[number] = content[place : place + length]
        place += length
    return values


def tensor_of(message: Any) -> Any:
    """The tensor that a message holds."""
    return _core.convert_to_tensor(array_of(message), as_dtype(message.dtype), None, "TensorProto")


# ---- variants: values of other kinds, whose tensors stand inside


def variant_message(kind: str, values: list[list[Any]], shape: list[int]) -> Any:
    """A tensor of variants of one kind; each of `values` is the list of the tensors in one of them."""
    inner = [
        messages.VariantTensorDataProto(type_name=kind, tensors=[tensor_message(t) for t in tensors])
        for tensors in values
    ]
    parts = [message.SerializeToString() for message in inner]
    content = b"".join([*(encode_varint(len(part)) for part in parts), *parts])
    dim = messages.TensorShapeProto.Dim
    return messages.TensorProto(
        dtype=variant.as_datatype_enum,
        tensor_shape=messages.TensorShapeProto(dim=[dim(size=size) for size in shape]),
        tensor_content=content,
    )


def variants_of(message: Any, kind: str) -> list[list[Any]]:
    """The tensors inside of each variant that a message holds; ValueError if they are of another kind."""
    count = math.prod(dim.size for dim in message.tensor_shape.dim)
    if message.variant_val:
        found = list(message.variant_val)
    else:
        texts = _texts(message.tensor_content, count)
        found = [messages.VariantTensorDataProto.FromString(text) for text in texts]
    if len(found) != count or any(item.type_name != kind for item in found):
        raise ValueError(f"there must be {count} variants of the kind {kind}")
    return [[tensor_of(t) for t in item.tensors] for item in found]
