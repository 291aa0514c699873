"""`tf.io`: base64 and raw bytes."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.ops.strings.elements import elements_of, map_bytes, string_tensor
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import InvalidArgumentError


@public("io.encode_base64")
def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> Any:
    """Bytes as web-safe base64 text.

    >>> tf.io.encode_base64("hello")
    <tf.Tensor: shape=(), dtype=string, numpy=b'aGVsbG8'>
    """
    return map_bytes(input, lambda v: base64.urlsafe_b64encode(v) if pad else base64.urlsafe_b64encode(v).rstrip(b"="))


@public("io.decode_base64")
def decode_base64(input: Any, name: str | None = None) -> Any:
    """The bytes that web-safe base64 text stands for.

    >>> tf.io.decode_base64("aGVsbG8")
    <tf.Tensor: shape=(), dtype=string, numpy=b'hello'>
    """
    return map_bytes(input, lambda v: base64.urlsafe_b64decode(v + b"=" * (-len(v) % 4)))


@public("io.decode_raw")
def decode_raw(
    input_bytes: Any,
    out_type: Any,
    little_endian: bool = True,
    fixed_length: int | None = None,
    name: str | None = None,
) -> Any:
    """Bytes as numbers of a type, in a new last dimension.

    >>> tf.io.decode_raw(["ab"], tf.uint8)
    <tf.Tensor: shape=(1, 2), dtype=uint8, numpy=array([[97, 98]], dtype=uint8)>
    """
    tensor, dtype = string_tensor(input_bytes), as_dtype(out_type)
    order = np.dtype(dtype.as_numpy_dtype).newbyteorder("<" if little_endian else ">")

    def run(tensor: Any) -> list[Any]:
        values = elements_of(tensor)
        if fixed_length is not None:
            values = [v[:fixed_length].ljust(fixed_length, b"\0") for v in values]
        sizes = {len(v) for v in values}
        if len(sizes) > 1 or any(size % dtype.size for size in sizes):
            raise InvalidArgumentError.of(
f"decode_raw: all strings must have one length that {dtype.size} divides; got {sorted(sizes)}",
            )  # fmt: skip
        shape = [*tensor.shape.as_list(), (sizes.pop() if sizes else 0) // dtype.size]
        numbers = np.frombuffer(b"".join(values), order).astype(dtype.as_numpy_dtype)
        return [convert_to_tensor(numbers.reshape(shape))]

    known = None if fixed_length is None else fixed_length // dtype.size
    return host_call(run, [tensor], [(dtype, tensor.shape.concatenate([known]))])[0]
