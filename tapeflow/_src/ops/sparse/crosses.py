"""Crossed features: all combinations of one feature of each input, row by row."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.sparse.coordinates import dims_of_sparse, is_sparse
from tapeflow._src.ops.strings.hashing import combined_fingerprint, fingerprint64, fingerprint_of_key
from tapeflow._src.types.dtypes import DType, int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor

# ---- crossing features


def _features(x: Any) -> list[list[Any]]:
    """The elements of each row, as bytes or ints."""
    if is_sparse(x):
        rows: list[list[Any]] = [[] for _ in range(dims_of_sparse(x)[0])]
        for (row, *_), value in zip(x.indices.numpy().tolist(), x.values.numpy().tolist()):
            rows[row].append(value)
        return rows
    if hasattr(x, "to_list"):
        return list(x.to_list())
    return list(convert_to_tensor(x).numpy().tolist())


_PARTS = (
    ("indices should be a matrix", "indices", 2),
    ("values should be a vector", "values", 1),
    ("shapes should be a vector", "dense_shape", 1),
)


def check_crossed(x: Any) -> None:
    """Checks what is known of an input: two dimensions, and integers or texts."""
    for what, part, wanted in _PARTS if is_sparse(x) else ():
        if getattr(x, part).shape.rank not in (None, wanted):
            raise InvalidArgumentError.of(f"cross: Input {what}; got shape {getattr(x, part).shape}")
    if is_sparse(x) and x.indices.shape[1] not in (None, 2):
        raise InvalidArgumentError.of(f"cross: Expected D2 of index to be 2 got {x.indices.shape[1]}")
    rank, dtype = getattr(getattr(x, "shape", None), "rank", None), getattr(x, "dtype", None)
    if rank not in (None, 2):
        raise ValueError(
            "cross: Dense inputs should be a matrix: tf.ragged.cross only supports inputs with rank=2; got shape "
            f"{x.shape}"
        )
    if isinstance(dtype, DType) and not dtype.is_integer and dtype.name != "string":
        raise ValueError(f"cross: Unexpected dtype for inputs: they must be integers or texts; got {dtype.name}")


def crossed_rows(inputs: Any, join: Any) -> list[list[Any]]:
    """For each row, `join` of each combination of one element of every input; the first input varies slowest."""
    if not isinstance(inputs, list | tuple):
        raise TypeError(f"cross: Inputs must be a list; got {type(inputs).__name__}")
    for x in inputs:
        check_crossed(x)
    columns = [_features(x) for x in inputs]
    if len({len(column) for column in columns}) > 1:
        raise InvalidArgumentError.of(
            f"cross: inputs must all have the same batch dimension size: Expected batch size {len(columns[0])} of all "
            f"inputs; got {[len(c) for c in columns]}"
        )
    result = []
    for row in zip(*columns):
        combinations: list[list[Any]] = [[]]
        for features in row:
            combinations = [[*c, f] for c in combinations for f in features]
        result.append([join(c) for c in combinations])
    return result


def _sparse_rows(rows: list[list[Any]], dtype: Any) -> SparseTensor:
    indices = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    values = [v for row in rows for v in row]
    return SparseTensor(
        np.asarray(indices, np.int64).reshape(-1, 2),
        _core.convert_to_tensor(values, dtype, None, "cross"),
        [len(rows), builtins.max((len(row) for row in rows), default=0)],
    )


def join_features(features: list[Any], separator: str) -> bytes:
    """Features as text, with a separator."""
    return separator.encode().join(f if isinstance(f, bytes) else str(_signed(f)).encode() for f in features)


def _signed(number: int) -> int:
    """The int64 with the bits of a number."""
    return number - 2**64 if number >= 2**63 else number


def hash_features(features: list[Any], num_buckets: int, hash_key: int | None) -> int:
    """The bucket of a combination of features."""
    value = fingerprint_of_key(hash_key)
    for feature in features:
        number = fingerprint64(feature) if isinstance(feature, bytes) else feature % 2**64
        value = combined_fingerprint(value, number)
    return value % num_buckets if num_buckets else value % (2**63 - 1)


def _sparse_first(inputs: Any) -> Any:
    """The order in which features of both kinds are joined: sparse inputs come before dense ones."""
    return sorted(inputs, key=lambda x: not is_sparse(x)) if isinstance(inputs, list | tuple) else inputs


@public("sparse.cross")
def cross(inputs: Any, name: str | None = None, separator: str | None = None) -> SparseTensor:
    """All combinations of one feature of each input, row by row, as text.

    >>> tf.sparse.cross([tf.constant([["a"]]), tf.constant([["b"]])]).values
    <tf.Tensor: shape=(1,), dtype=string, numpy=array([b'a_X_b'], dtype=object)>
    """
    if isinstance(inputs, list | tuple) and not all(is_sparse(x) or _core.is_tensor(x) for x in inputs):
        raise TypeError("sparse.cross: All inputs must be Tensor or SparseTensor.")
    between = "_X_" if separator is None else separator
    if not isinstance(between, str):
        raise TypeError(f"sparse.cross: `separator` must be a text; got {separator!r}")
    return _sparse_rows(
        crossed_rows(_sparse_first(inputs), lambda features: join_features(features, between)), "string"
    )


@public("sparse.cross_hashed")
def cross_hashed(
    inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> SparseTensor:
    """All combinations of one feature of each input, row by row, hashed into `num_buckets` numbers.

    >>> tf.sparse.cross_hashed([tf.constant([["a"]]), tf.constant([["b"]])], num_buckets=1).values
    <tf.Tensor: shape=(1,), dtype=int64, numpy=array([0])>
    """
    if isinstance(inputs, list | tuple) and not all(is_sparse(x) or _core.is_tensor(x) for x in inputs):
        raise TypeError("sparse.cross_hashed: All inputs must be SparseTensors or Tensors.")
    rows = crossed_rows(_sparse_first(inputs), lambda features: hash_features(features, num_buckets, hash_key))
    return _sparse_rows(rows, int64)
