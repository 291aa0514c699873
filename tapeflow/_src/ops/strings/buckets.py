"""`tf.strings`: hashes of strings as numbers of buckets, and fingerprints."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.strings.elements import map_bytes
from tapeflow._src.ops.strings.hashing import fingerprint64, murmur64, siphash
from tapeflow._src.types.dtypes import int64
from tapeflow._src.types.errors import InvalidArgumentError


def _bucket_of(function: Callable[[bytes], int], buckets: int, value: bytes) -> int:
    return function(value) % buckets


# ---- hashes


def _buckets(input: Any, num_buckets: int, function: Callable[[bytes], int]) -> Any:
    if int(num_buckets) < 1:
        raise InvalidArgumentError.of(f"to_hash_bucket: num_buckets must be at least 1; got {num_buckets}")
    return map_bytes(input, functools.partial(_bucket_of, function, int(num_buckets)), int64)


@public("strings.to_hash_bucket_fast")
def to_hash_bucket_fast(input: Any, num_buckets: int, name: str | None = None) -> Any:
    """A number below `num_buckets` for each string, by FarmHash's fingerprint.

    >>> tf.strings.to_hash_bucket_fast(["hello"], 10)
    <tf.Tensor: shape=(1,), dtype=int64, numpy=array([6])>
    """
    return _buckets(input, num_buckets, fingerprint64)


@public("strings.to_hash_bucket")
def to_hash_bucket(input: Any, num_buckets: int, name: str | None = None) -> Any:
    """A number below `num_buckets` for each string, by Murmur's hash.

    >>> tf.strings.to_hash_bucket(["a"], 1000)
    <tf.Tensor: shape=(1,), dtype=int64, numpy=array([868])>
    """
    return _buckets(input, num_buckets, murmur64)


@public("strings.to_hash_bucket_strong")
def to_hash_bucket_strong(input: Any, num_buckets: int, key: Any, name: str | None = None) -> Any:
    """A number below `num_buckets` for each string, by SipHash with a key of two numbers.

    >>> tf.strings.to_hash_bucket_strong(["a"], 1000, [1, 2])
    <tf.Tensor: shape=(1,), dtype=int64, numpy=array([646])>
    """
    numbers = [int(k) for k in key]
    if len(numbers) != 2:
        raise InvalidArgumentError.of(f"to_hash_bucket_strong: Key must have 2 elements; got {len(numbers)}")
    return _buckets(input, num_buckets, lambda v: siphash(v, (numbers[0], numbers[1])))


@public("fingerprint")
def fingerprint(data: Any, method: str = "farmhash64", name: str | None = None) -> Any:
    """The eight bytes of FarmHash's fingerprint of each row.

    >>> tf.fingerprint(["a"])
    <tf.Tensor: shape=(1, 8), dtype=uint8, numpy=array([[227, 117, 223, 182, 101,  66,  69, 179]], dtype=uint8)>
    """
    if method != "farmhash64":
        raise InvalidArgumentError.of(f"fingerprint: Unsupported fingerprint method {method!r}")
    tensor = convert_to_tensor(data)
    if tensor.shape.rank == 0:
        raise InvalidArgumentError.of("fingerprint: data must have at least one dimension")
    rows = tensor.shape[0]
    width = int(np.prod(tensor.shape.as_list()[1:], dtype=np.int64))
    if tensor.dtype.name == "string":
        parts = [
            b"".join(v.to_bytes(8, "little") for v in map(fingerprint64, row)) if tensor.shape.rank > 1 else row[0]
            for row in np.asarray(tensor.numpy(), dtype=object).reshape(rows, width).tolist()
        ]
    else:
        parts = [row.tobytes() for row in np.ascontiguousarray(tensor.numpy()).reshape(rows, width)]
    numbers = [list(fingerprint64(part).to_bytes(8, "little")) for part in parts]
    return convert_to_tensor(np.asarray(numbers, np.uint8).reshape(rows, 8))
