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

    def decoded(value: bytes) -> bytes:
        try:
            return base64.b64decode(value.rstrip(b"=") + b"=" * (-len(value.rstrip(b"=")) % 4), b"-_", validate=True)
        except ValueError as error:
            raise InvalidArgumentError.of(f"decode_base64: Invalid character found in base64: {error}") from error

    return map_bytes(input, decoded)


_RAW_DTYPES = (
    *("float16", "float32", "float64", "int32", "uint16", "uint8", "int16", "int8", "int64"),
    *("complex64", "complex128", "bool", "bfloat16"),
)


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
    if dtype.name not in _RAW_DTYPES:
        raise InvalidArgumentError.of(
            f"decode_raw: Value for attr 'out_type' of {dtype.name} is not in the list of allowed values: "
            f"{', '.join(_RAW_DTYPES)}"
        )
    if fixed_length is not None and (fixed_length <= 0 or fixed_length % dtype.size):
        raise InvalidArgumentError.of(
            f"decode_raw: fixed_length must be a multiple of {dtype.size}, the size of {dtype.name}; got {fixed_length}"
        )
    order = np.dtype(dtype.as_numpy_dtype).newbyteorder("<" if little_endian else ">")

    def run(tensor: Any) -> list[Any]:
        values = elements_of(tensor)
        if fixed_length is not None:
            values = [v[:fixed_length].ljust(fixed_length, b"\0") for v in values]
        sizes = [len(v) for v in values]
        for number, size in enumerate(sizes):
            if size != sizes[0]:
                raise InvalidArgumentError.of(
                    f"decode_raw: DecodeRaw requires input strings to all be the same size, but element {number} has "
                    f"size {size} != {sizes[0]}"
                )
        if sizes and sizes[0] % dtype.size:
            raise InvalidArgumentError.of(
                f"decode_raw: Input to DecodeRaw has length {sizes[0]} that is not a multiple of {dtype.size}, the "
                f"size of {dtype.name}"
            )
        shape = [*tensor.shape.as_list(), (sizes[0] if sizes else 0) // dtype.size]
        numbers = np.frombuffer(b"".join(values), order).astype(dtype.as_numpy_dtype)
        return [convert_to_tensor(numbers.reshape(shape))]

    known = None if fixed_length is None else fixed_length // dtype.size
    return host_call(run, [tensor], [(dtype, tensor.shape.concatenate([known]))])[0]
