"""`tf.io.parse_example` and `parse_single_example`: serialised examples as tensors, by descriptions of features."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.io.examples.example_lists import Lists, read_example, refuse
from tapeflow._src.io.examples.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    RowLengths,
    RowLimits,
    RowSplits,
    RowStarts,
    SparseFeature,
    UniformRowLength,
    ValueRowIds,
    VarLenFeature,
)
from tapeflow._src.io.protos import messages
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.tensor_shape import as_shape

_LEGACY = {"float32": "float"}


# ------------------------------------------------------------------------------------------------ what is to be made


def _checked_dtype(dtype: Any) -> Any:
    found = as_dtype(dtype)
    if found.name not in ("float32", "int64", "string"):
        raise refuse(
            f"parse_example: Value for attr 'Tdense' of {found.name} is not in the list of allowed values: "
            "float, int64, string"
        )
    return found


def _check_features(features: Any) -> dict[str, Any]:
    if not features:
        raise ValueError("Invalid argument: features cannot be empty.")
    kinds = (FixedLenFeature, VarLenFeature, FixedLenSequenceFeature, SparseFeature, RaggedFeature)
    for key, feature in features.items():
        if not isinstance(feature, kinds):
            raise ValueError(f"Invalid feature {key}:{feature}.")
        _checked_dtype(feature.dtype)
        if isinstance(feature, FixedLenFeature) and feature.shape is None:
            raise ValueError(f"Missing shape for feature {key}.")
        if isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
            raise ValueError(
                f"Unsupported: FixedLenSequenceFeature requires allow_missing to be True. Got: {feature} for key {key}."
            )
    return {key: features[key] for key in sorted(features)}


class Rows:
    """Examples, one after the other, from which columns are taken; a single one gives columns without the row."""

    def __init__(self, rows: list[Lists], single: bool) -> None:
        self.rows, self.single = rows, single

    def where(self, row: int, key: str) -> str:
        return f"Key: {key}" if self.single else f"Name: <unknown>, Key: {key}, Index: {row}"

    def values(self, key: str, dtype: Any) -> list[list[Any] | None]:
        """What each example holds under a name; None where it holds nothing."""
        found: list[list[Any] | None] = []
        for row, lists in enumerate(self.rows):
            kind, values = lists.get(key, (dtype.name, None))
            if kind != dtype.name:
                raise refuse(
                    f"{self.where(row, key)}.  Data types don't match. Data type: {_LEGACY.get(kind, kind)} "
                    f"but expected type: {_LEGACY.get(dtype.name, dtype.name)}"
                )
            found.append(values)
        return found

    # ---- one kind of feature each; a list of tensors, in the order of `column_specs`

    def fixed(self, key: str, feature: FixedLenFeature) -> list[Any]:
        dtype, shape = as_dtype(feature.dtype), as_shape(feature.shape).as_list()
        size, default = int(np.prod(shape)), None
        if feature.default_value is not None:
            given = convert_to_tensor(feature.default_value, dtype).numpy()
            default = (
                np.broadcast_to(given, shape).reshape(-1).tolist() if np.size(given) == 1 else np.ravel(given).tolist()
            )
        found: list[Any] = []
        for row, values in enumerate(self.values(key, dtype)):
            if values is None:
                if default is None:
                    name = "" if self.single else "Name: <unknown>, "
                    kind = _LEGACY.get(dtype.name, dtype.name)
                    raise refuse(f"{name}Feature: {key} (data type: {kind}) is required but could not be found.")
                values = default
            if len(values) != size:
                raise refuse(
                    f"{self.where(row, key)}.  Number of {_LEGACY.get(dtype.name, dtype.name)} values != expected.  "
                    f"Values size: {len(values)} but output shape: [{','.join(map(str, shape))}]"
                )
            found.extend(values)
        return [tensor_of(found, dtype, shape if self.single else [len(self.rows), *shape])]

    def variable(self, key: str, feature: VarLenFeature) -> list[Any]:
        dtype = as_dtype(feature.dtype)
        rows = [values or [] for values in self.values(key, dtype)]
        return _sparse_parts(rows, dtype, self.single)

    def sequence(self, key: str, feature: FixedLenSequenceFeature) -> list[Any]:
        dtype, shape = as_dtype(feature.dtype), as_shape(feature.shape).as_list()
        size = int(np.prod(shape))
        rows = [values or [] for values in self.values(key, dtype)]
        for row, values in enumerate(rows):
            if len(values) % size:
                raise refuse(
                    f"{self.where(row, key)}.  Number of values is not a multiple of stride length. Values size: "
                    f"{len(values)} but output shape: [?,{','.join(map(str, shape))}]"
                )
        longest = max([len(values) // size for values in rows], default=0)
        empty = b"" if dtype.name == "string" else 0
        filler = (
            empty if feature.default_value is None else np.ravel(convert_to_tensor(feature.default_value).numpy())[0]
        )
        padded = [value for values in rows for value in values + [filler] * (longest * size - len(values))]
        return [tensor_of(padded, dtype, [longest, *shape] if self.single else [len(rows), longest, *shape])]

    def sparse(self, key: str, feature: SparseFeature) -> list[Any]:
        dtype = as_dtype(feature.dtype)
        several = isinstance(feature.index_key, list | tuple)
        index_keys = list(feature.index_key) if several else [feature.index_key]
        sizes = list(feature.size) if isinstance(feature.size, list | tuple) else [feature.size]
        rows = [values or [] for values in self.values(feature.value_key, dtype)]
        columns = [[values or [] for values in self.values(k, as_dtype("int64"))] for k in index_keys]
        places, values = [], []
        for row, found in enumerate(rows):
            places_here = [column[row] for column in columns]
            if any(len(p) != len(found) for p in places_here):
                raise refuse(f"{self.where(row, key)}.  The numbers of indices and of values differ: {feature}")
            for *place, value in zip(*places_here, found):
                if any(not 0 <= p < size for p, size in zip(place, sizes)):
                    raise refuse(f"{self.where(row, key)}.  The index {place} is outside of the size {sizes}")
                places.append([row, *place])
                values.append(value)
        order = range(len(places)) if feature.already_sorted else sorted(range(len(places)), key=places.__getitem__)
        first = 1 if self.single else 0
        indices = np.asarray([places[i][first:] for i in order], np.int64).reshape(-1, len(sizes) + 1 - first)
        shape = np.asarray([len(rows), *sizes][first:], np.int64)
        return [
            convert_to_tensor(indices),
            tensor_of([values[i] for i in order], dtype, [-1]),
            convert_to_tensor(shape),
        ]

    def ragged(self, key: str, feature: RaggedFeature) -> list[Any]:
        dtype = as_dtype(feature.dtype)
        rows = [values or [] for values in self.values(feature.value_key or key, dtype)]
        partitions = [
            [v or [] for v in self.values(p.key, as_dtype("int64"))]
            if not isinstance(p, UniformRowLength)
            else p.length
            for p in feature.partitions
        ]
        return _ragged_parts(rows, partitions, feature, dtype, self.single)

    def column(self, key: str, feature: Any) -> list[Any]:
        if isinstance(feature, FixedLenFeature):
            return self.fixed(key, feature)
        if isinstance(feature, VarLenFeature):
            return self.variable(key, feature)
        if isinstance(feature, FixedLenSequenceFeature):
            return self.sequence(key, feature)
        return self.sparse(key, feature) if isinstance(feature, SparseFeature) else self.ragged(key, feature)


def tensor_of(values: list[Any], dtype: Any, shape: Any) -> Any:
    """Values as a tensor; strings stay objects."""
    array = np.asarray(values, dtype=object if dtype.name == "string" else dtype.as_numpy_dtype)
    return convert_to_tensor(array.reshape(shape), dtype)


def _sparse_parts(rows: list[list[Any]], dtype: Any, single: bool) -> list[Any]:
    values = [value for row in rows for value in row]
    longest = max(map(len, rows), default=0)
    if single:
        indices, shape = [[i] for i in range(len(values))], [longest]
    else:
        indices, shape = [[r, i] for r, row in enumerate(rows) for i in range(len(row))], [len(rows), longest]
    index = np.asarray(indices, np.int64).reshape(-1, len(shape))
    return [convert_to_tensor(index), tensor_of(values, dtype, [-1]), convert_to_tensor(np.asarray(shape, np.int64))]


def _lengths(partition: Any, values: Any, count: int) -> list[int]:
    """The lengths of the rows that a partition makes of `count` values."""
    if isinstance(partition, UniformRowLength):
        return [partition.length] * (count // partition.length if partition.length else 0)
    if isinstance(partition, RowLengths):
        return list(values)
    if isinstance(partition, ValueRowIds):
        return np.bincount(np.asarray(values, np.int64)).tolist() if values else []
    if isinstance(partition, RowSplits):
        found: list[int] = np.diff(values).tolist()
        return found
    ends = [*values[1:], count] if isinstance(partition, RowStarts) else values
    starts = values if isinstance(partition, RowStarts) else [0, *values[:-1]]
    assert isinstance(partition, RowStarts | RowLimits)
    return [end - start for start, end in zip(starts, ends)]


def _ragged_parts(rows: Any, partitions: Any, feature: RaggedFeature, dtype: Any, single: bool) -> list[Any]:
    """The values, then the row splits from the outermost: those of the examples first, unless there is a single one."""
    nested: list[list[list[int]]] = []  # for each example, the lengths by partition
    for number, row in enumerate(rows):
        levels, count = [], len(row)
        for partition, values in reversed(list(zip(feature.partitions, partitions))):
            lengths = _lengths(partition, values if isinstance(values, int) else values[number], count)
            levels.append(lengths)
            count = len(lengths)
        nested.append(levels[::-1])
    flat = tensor_of([value for row in rows for value in row], dtype, [-1])
    splits = []
    if not single:
        outer = [len(levels[0]) if levels else len(row) for levels, row in zip(nested, rows)]
        splits.append(np.cumsum([0, *outer]))
    for level in range(len(feature.partitions)):
        lengths = [length for levels in nested for length in levels[level]]
        splits.append(np.cumsum([0, *lengths]))
    kind = as_dtype(feature.row_splits_dtype)
    return [flat, *(convert_to_tensor(s.astype(kind.as_numpy_dtype)) for s in splits)]


# ------------------------------------------------------------------------------------------- tensors in and tensors out


def column_specs(feature: Any, batch: list[Any]) -> list[tuple[Any, Any]]:
    """The dtypes and shapes of what `Rows.column` gives."""
    dtype = as_dtype(feature.dtype)
    if isinstance(feature, FixedLenFeature):
        return [(dtype, [*batch, *as_shape(feature.shape).as_list()])]
    if isinstance(feature, FixedLenSequenceFeature):
        return [(dtype, [*batch, None, *as_shape(feature.shape).as_list()])]
    if isinstance(feature, RaggedFeature):
        splits = (1 if batch else 0) + len(feature.partitions)
        return [(dtype, [None]), *[(feature.row_splits_dtype, [None])] * splits]
    size = feature.size if isinstance(feature, SparseFeature) else [0]
    rank = len(batch) + (len(size) if isinstance(size, list | tuple) else 1)
    return [("int64", [None, rank]), (dtype, [None]), ("int64", [rank])]


def assemble(feature: Any, parts: list[Any]) -> Any:
    """A feature from the tensors it consists of."""
    if isinstance(feature, VarLenFeature | SparseFeature):
        return SparseTensor(*parts)
    if isinstance(feature, RaggedFeature) and len(parts) > 1:
        found = parts[0]
        for splits in reversed(parts[1:]):
            found = RaggedTensor(found, splits)
        return found
    return parts[0]


def serialized_tensor(value: Any) -> Any:
    """Examples as a tensor of strings."""
    return convert_to_tensor(value, None if _core.is_tensor(value) else "string")


@public("io.parse_example")
def parse_example(serialized: Any, features: Any, example_names: Any = None, name: str | None = None) -> dict[str, Any]:
    """Examples as tensors by name, with a first dimension for the examples; one string gives tensors without it.

    >>> ages = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    >>> example = tf.train.Example(features=tf.train.Features(feature={"age": ages})).SerializeToString()
    >>> tf.io.parse_example([example, example], {"age": tf.io.FixedLenFeature([1], tf.int64)})
    {'age': <tf.Tensor: shape=(2, 1), dtype=int64, numpy=
    array([[7],
           [7]])>}
    """
    features = _check_features(features)
    tensor = serialized_tensor(serialized)
    if tensor.shape.rank not in (0, 1):
        raise ValueError(f"Input serialized must be a scalar or a vector; got shape {tensor.shape}")
    single = tensor.shape.rank == 0

    def run(tensor: Any) -> list[Any]:
        rows = Rows([read_example(x) for x in np.atleast_1d(np.asarray(tensor.numpy(), dtype=object))], single)
        return [part for key, feature in features.items() for part in rows.column(key, feature)]

    specs = {key: column_specs(feature, tensor.shape.as_list()) for key, feature in features.items()}
    parts = iter(host_call(run, [tensor], [spec for each in specs.values() for spec in each]))
    return {key: assemble(feature, [next(parts) for _ in specs[key]]) for key, feature in features.items()}


@public("io.parse_single_example")
def parse_single_example(
    serialized: Any, features: Any, example_names: Any = None, name: str | None = None
) -> dict[str, Any]:
    """One example as tensors by name.

    >>> ages = tf.train.Feature(int64_list=tf.train.Int64List(value=[7]))
    >>> example = tf.train.Example(features=tf.train.Features(feature={"age": ages})).SerializeToString()
    >>> tf.io.parse_single_example(example, {"age": tf.io.FixedLenFeature([], tf.int64)})
    {'age': <tf.Tensor: shape=(), dtype=int64, numpy=7>}
    """
    tensor = serialized_tensor(serialized)
    if tensor.shape.rank not in (0, None):
        raise ValueError(f"Input serialized must be a scalar; got shape {tensor.shape}")
    return parse_example(tensor, features, example_names, name)


# --------------------------------------------------------------------------------------------------------------- JSON

_LISTS = {"bytesList": "bytes_list", "floatList": "float_list", "int64List": "int64_list"}


def _from_json(text: bytes) -> bytes:
    import base64

    example = messages.Example()
    try:
        features = json.loads(text).get("features", {}).get("feature", {})
        for name, feature in features.items():
            for kind, body in feature.items():
                field = _LISTS.get(kind, kind)
                convert: Any = {"bytes_list": base64.b64decode, "float_list": float, "int64_list": int}[field]
                made = example.features.feature[name]
                getattr(made, field).value.extend(convert(value) for value in body.get("value", []))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise refuse(f"decode_json_example: Error while parsing JSON: {error}") from None
    serialized: bytes = example.SerializeToString()
    return serialized


@public("io.decode_json_example", "compat.v1.io.decode_json_example", "compat.v1.decode_json_example")
def decode_json_example(json_examples: Any, name: str | None = None) -> Any:
    """Examples in JSON as serialised ones.

    >>> text = '{"features": {"feature": {"a": {"int64List": {"value": [1]}}}}}'
    >>> tf.io.parse_example(tf.io.decode_json_example(text), {"a": tf.io.FixedLenFeature([], tf.int64)})
    {'a': <tf.Tensor: shape=(), dtype=int64, numpy=1>}
    """
    tensor = serialized_tensor(json_examples)

    def run(tensor: Any) -> list[Any]:
        values = np.asarray(tensor.numpy(), dtype=object)
        found = np.asarray([_from_json(x) for x in values.reshape(-1)], dtype=object).reshape(values.shape)
        return [convert_to_tensor(found, "string")]

    return host_call(run, [tensor], [("string", tensor.shape)])[0]
