"""The features of serialised examples as tensors: the core reads the values, and this file gives them their shapes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
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
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.dtypes import as_dtype, int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_shape import as_shape

_LEGACY = {"float32": "float"}
_WORDS = {"float32": "float", "string": "bytes"}


def refuse(what: str) -> InvalidArgumentError:
    """The error for an example that is not as it should be."""
    return InvalidArgumentError.of(what)


class Column:
    """The values of one feature over all examples, in one vector; `counts` says how many each example has.

    Where `present` is false the example has no such feature.
    """

    __slots__ = ("counts", "present", "values")

    def __init__(self, values: Any, lengths: Any, lists: Any) -> None:
        self.values, self.counts, self.present = values, np.asarray(lengths), None
        if len(self.counts) != len(lists):
            self.present = np.asarray(lists) >= 0
            counts = np.zeros(len(lists), np.int64)
            counts[self.present] = self.counts
            self.counts = counts


def _names_of(key: str, feature: Any) -> Iterable[tuple[str, Any]]:
    """The names under which the parts of a feature stand, with their dtypes."""
    dtype = as_dtype(feature.dtype)
    if isinstance(feature, SparseFeature):
        keys = feature.index_key if isinstance(feature.index_key, list | tuple) else [feature.index_key]
        return [(feature.value_key, dtype), *((k, int64) for k in keys)]
    if isinstance(feature, RaggedFeature):
        partitions = [p for p in feature.partitions if not isinstance(p, UniformRowLength)]
        return [(feature.value_key or key, dtype), *((p.key, int64) for p in partitions)]
    return [(key, dtype)]


class Examples:
    """Serialised examples, from which the features are taken; a single one gives tensors without a first dimension."""

    def __init__(self, serialized: Any, features: dict[str, Any], example_names: Any = None) -> None:
        self.single, self._example_names = serialized.shape.rank == 0, _texts(example_names)
        names: dict[tuple[str, Any], None] = {}
        for key, feature in features.items():
            names.update(dict.fromkeys(_names_of(key, feature)))
        keys, dtypes = tuple(k for k, _ in names), tuple(d for _, d in names)
        parts = _core.parse_columns(serialized, keys, dtypes, False)
        self._columns = {name: Column(*part) for name, part in zip(names, parts)}
        self.count = 1 if self.single else int(serialized.shape[0])

    def _where(self, row: Any, key: str) -> str:
        return f"Key: {key}" if self.single else f"{_name(self._example_names, row)}, Key: {key}, Index: {int(row)}"

    def feature(self, key: str, feature: Any) -> list[Any]:
        """A feature as a list of tensors, in the order of `feature_specs`."""
        if isinstance(feature, FixedLenFeature):
            return [self._fixed(key, feature)]
        if isinstance(feature, VarLenFeature):
            return self._variable(self._columns[key, as_dtype(feature.dtype)])
        if isinstance(feature, FixedLenSequenceFeature):
            return [self._sequence(key, feature)]
        return self._sparse(key, feature) if isinstance(feature, SparseFeature) else self._ragged(key, feature)

    def _fixed(self, key: str, feature: FixedLenFeature) -> Any:
        dtype, shape = as_dtype(feature.dtype), as_shape(feature.shape).as_list()
        column, size = self._columns[key, dtype], int(np.prod(shape))
        counts, kind = column.counts, _LEGACY.get(dtype.name, dtype.name)
        if column.present is not None and feature.default_value is None:
            name = "" if self.single else f"{_name(self._example_names, int(np.argmin(column.present)))}, "
            raise refuse(f"{name}Feature: {key} (data type: {kind}) is required but could not be found.")
        wrong = counts != size if column.present is None else (counts != size) & column.present
        if wrong.any():
            row = int(np.argmax(wrong))
            raise refuse(
                f"{self._where(row, key)}.  Number of {kind} values != expected.  "
                f"Values size: {counts[row]} but output shape: [{','.join(map(str, shape))}]"
            )
        whole = shape if self.single else [self.count, *shape]
        if column.present is None:
            return primitives.Reshape(column.values, whole)
        default = np.asarray(convert_to_tensor(feature.default_value, dtype).numpy())
        if default.size not in (1, size):
            raise refuse(f"{self._where(0, key)}.  The default has {default.size} values; the feature has {size}")
        made = np.empty([self.count, size], _numpy_dtype(dtype))
        made[:] = default.reshape(-1)
        made[column.present] = np.asarray(column.values.numpy(), made.dtype).reshape(-1, size)
        return convert_to_tensor(made.reshape(whole), dtype)

    def _variable(self, column: Column) -> list[Any]:
        longest = int(column.counts.max()) if len(column.counts) else 0
        rows, places = _places(column.counts)
        indices, shape = (places[:, None], [longest]) if self.single else (np.stack([rows, places], 1), [self.count, longest])  # fmt: skip  # noqa: E501
        return [convert_to_tensor(indices), column.values, convert_to_tensor(np.asarray(shape, np.int64))]

    def _sequence(self, key: str, feature: FixedLenSequenceFeature) -> Any:
        dtype, shape = as_dtype(feature.dtype), as_shape(feature.shape).as_list()
        column, size = self._columns[key, dtype], int(np.prod(shape))
        wrong = column.counts % size if size else column.counts
        if wrong.any():
            row = int(np.argmax(wrong != 0))
            raise refuse(
                f"{self._where(row, key)}.  Number of {_WORDS.get(dtype.name, dtype.name)} values is not a multiple of "
                f"stride length. Values size: "
                f"{column.counts[row]} but output shape: [?,{','.join(map(str, shape))}]"
            )
        longest = int(column.counts.max(initial=0)) // size if size else 0
        found = padded(column.values, column.counts, longest * size, dtype, feature.default_value)
        return primitives.Reshape(found, [longest, *shape] if self.single else [self.count, longest, *shape])

    def _sparse(self, key: str, feature: SparseFeature) -> list[Any]:
        several = isinstance(feature.index_key, list | tuple)
        index_keys = list(feature.index_key) if several else [feature.index_key]
        sizes = list(feature.size) if isinstance(feature.size, list | tuple) else [feature.size]
        column = self._columns[feature.value_key, as_dtype(feature.dtype)]
        columns = [self._columns[k, int64] for k in index_keys]
        for other in columns:
            wrong = other.counts != column.counts
            if wrong.any():
                row = int(np.argmax(wrong))
                raise refuse(f"{self._where(row, key)}.  The numbers of indices and of values differ: {feature}")
        rows, _ = _places(column.counts)
        places = np.stack([rows, *(np.asarray(other.values.numpy()) for other in columns)], 1)
        values = column.values
        if not feature.already_sorted:
            order = np.lexsort(places.T[::-1])
            places, values = places[order], primitives.GatherV2(values, convert_to_tensor(order), 0, 0)
        first = 1 if self.single else 0
        shape = np.asarray([self.count, *sizes][first:], np.int64)
        return [convert_to_tensor(np.ascontiguousarray(places[:, first:])), values, convert_to_tensor(shape)]

    def _ragged(self, key: str, feature: RaggedFeature) -> list[Any]:
        """The values, then the row splits from the outermost: those of the examples first, unless there is one."""
        column = self._columns[feature.value_key or key, as_dtype(feature.dtype)]
        columns = {
            name: (column.values, column.counts) for (name, dtype), column in self._columns.items() if dtype == int64
        }
        splits, counts = _inner_splits(feature, column.counts, columns)
        if not self.single:
            splits.insert(0, _splits(counts))
        kind = as_dtype(feature.row_splits_dtype).as_numpy_dtype
        return [column.values, *(convert_to_tensor(s.astype(kind)) for s in splits)]


def _splits(lengths: Any) -> Any:
    return np.concatenate([[0], np.cumsum(lengths)])


def _inner_splits(feature: RaggedFeature, counts: Any, columns: dict[str, Any]) -> tuple[list[Any], Any]:
    """The row splits that the partitions of a feature make of `counts` values each, and the number of outermost rows.

    `columns` holds the values and counts of the features in which the partitions stand.
    """
    splits: list[Any] = []
    for partition in reversed(feature.partitions):
        lengths = _row_lengths(partition, counts, columns)
        splits.insert(0, _splits(np.concatenate(lengths)) if lengths else np.zeros(1))
        counts = np.asarray([len(each) for each in lengths], np.int64)
    return splits, counts


def _row_lengths(partition: Any, counts: Any, columns: dict[str, Any]) -> list[Any]:
    """The lengths of the rows into which a partition cuts each run of values."""
    if isinstance(partition, UniformRowLength):
        size = partition.length
        return [np.full(n // size if size else 0, size, np.int64) for n in counts]
    found, sizes = columns[partition.key]
    ends, values = np.cumsum(sizes), np.asarray(found.numpy())
    parts = [values[end - n : end] for n, end in zip(sizes, ends)]
    return [_lengths(partition, part, int(n)) for part, n in zip(parts, counts)]


def _texts(names: Any) -> list[bytes] | None:
    """The names of examples, if they have any."""
    found = None if names is None else np.ravel(names.numpy()).tolist()
    return found or None


def _name(names: list[bytes] | None, row: Any) -> str:
    known = names is not None and int(row) < len(names)
    return f"Name: {names[int(row)].decode(errors='replace') if names and known else '<unknown>'}"


def _numpy_dtype(dtype: Any) -> Any:
    return object if dtype.name == "string" else dtype.as_numpy_dtype


def _places(counts: Any) -> tuple[Any, Any]:
    """The row of each value, and its place in the row."""
    rows = np.repeat(np.arange(len(counts)), counts)
    starts = np.cumsum(counts) - counts
    return rows, np.arange(len(rows)) - np.repeat(starts, counts)


def padded(values: Any, counts: Any, width: int, dtype: Any, filler: Any) -> Any:
    """Rows of `counts` values, filled up to `width`: one after the other."""
    if (counts == width).all():
        return values
    empty: Any = b"" if dtype.name == "string" else 0
    made = np.full(len(counts) * width, empty, _numpy_dtype(dtype))
    if filler is not None:
        made[:] = np.ravel(convert_to_tensor(filler, dtype).numpy())[0]
    rows, places = _places(counts)
    made[rows * width + places] = values.numpy()
    return convert_to_tensor(made, dtype)


def _lengths(partition: Any, values: Any, count: int) -> Any:
    """The lengths of the rows that a partition makes of `count` values."""
    if isinstance(partition, RowLengths):
        return values
    if isinstance(partition, ValueRowIds):
        if (values < 0).any() or (len(values) and values.max() > max(count, len(values)) * 1024):
            raise refuse(f"Key: {partition.key}.  The rows of values must be at least 0; got {values[:8].tolist()}")
        return np.bincount(values) if len(values) else np.zeros(0, np.int64)
    if isinstance(partition, RowSplits):
        return np.diff(values)
    if isinstance(partition, RowStarts):
        return np.diff(np.append(values, count))
    assert isinstance(partition, RowLimits)
    return np.diff(values, prepend=0)


class Sequences:
    """Serialised sequences, from which the features of their steps are taken."""

    def __init__(self, serialized: Any, features: dict[str, Any], example_names: Any = None) -> None:
        self.single, self._example_names = serialized.shape.rank == 0, _texts(example_names)
        self.count = 1 if self.single else int(serialized.shape[0])
        names: dict[tuple[str, Any], None] = {}
        for key, feature in features.items():
            names.update(dict.fromkeys(_names_of(key, feature)))
        keys, dtypes = tuple(k for k, _ in names), tuple(d for _, d in names)
        self._columns = dict(zip(names, _core.parse_columns(serialized, keys, dtypes, True)))

    def feature(self, key: str, feature: Any) -> tuple[list[Any], Any]:
        """A feature of the steps as tensors, and the number of steps of each sequence."""
        dtype = as_dtype(feature.dtype)
        values, sizes, lists = self._columns[next(iter(_names_of(key, feature)))]
        sizes, steps = np.asarray(sizes), np.asarray(lists)
        if (steps < 0).any() and isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
            raise refuse(
                f"{_name(self._example_names, int(np.argmax(steps < 0)))}, Feature list '{key}' is required but could "
                "not be found.  Did you mean to include it in feature_list_dense_missing_assumed_empty or "
                "feature_list_dense_defaults?"
            )
        steps = np.maximum(steps, 0)
        longest = int(steps.max(initial=0))
        if isinstance(feature, FixedLenSequenceFeature):
            self._check_sizes(key, feature, sizes, steps)
            shape = as_shape(feature.shape).as_list()
            size = int(np.prod(shape))
            found = padded(values, steps * size, longest * size, dtype, None)
            return [primitives.Reshape(found, [longest, *shape] if self.single else [self.count, longest, *shape])], steps  # fmt: skip  # noqa: E501
        if isinstance(feature, RaggedFeature):
            return [values, *self._ragged(key, feature, sizes, steps)], steps
        sequence, step = _places(steps)
        step_of_value, place = _places(sizes)
        index = np.stack([sequence[step_of_value], step[step_of_value], place], 1)
        dense_shape = np.asarray([self.count, longest, int(sizes.max(initial=0))], np.int64)
        first = 1 if self.single else 0
        index = np.ascontiguousarray(index[:, first:])
        return [convert_to_tensor(index), values, convert_to_tensor(dense_shape[first:])], steps

    def _check_sizes(self, key: str, feature: FixedLenSequenceFeature, sizes: Any, steps: Any) -> None:
        shape = as_shape(feature.shape).as_list()
        wrong = sizes != int(np.prod(shape))
        if not wrong.any():
            return
        at, dtype = int(np.argmax(wrong)), as_dtype(feature.dtype)
        sequence, step = (int(part[at]) for part in _places(steps))
        raise refuse(
            f"{_name(self._example_names, sequence)}, Key: {key}, Index: {step}.  Number of "
            f"{_WORDS.get(dtype.name, dtype.name)} values != expected.  values size: {sizes[at]} but output shape: "
            f"[{','.join(map(str, shape))}]"
        )

    def _ragged(self, key: str, feature: RaggedFeature, sizes: Any, steps: Any) -> list[Any]:
        """The row splits from the outermost: those of the sequences, unless there is one, of the steps, and inside."""
        columns = {}
        for name, dtype in list(_names_of(key, feature))[1:]:
            found, lengths, lists = self._columns[name, dtype]
            if (np.maximum(np.asarray(lists), 0) != steps).any():
                raise refuse(f"Feature {key}: values and partitions are not aligned")
            columns[name] = found, np.asarray(lengths)
        inner, counts = _inner_splits(feature, sizes, columns)
        splits = [_splits(counts), *inner] if self.single else [_splits(steps), _splits(counts), *inner]
        kind = as_dtype(feature.row_splits_dtype).as_numpy_dtype
        return [convert_to_tensor(s.astype(kind)) for s in splits]


def feature_specs(feature: Any, batch: list[Any] | None) -> list[tuple[Any, Any]]:
    """The dtypes and shapes of what `Examples.feature` gives; `batch` is None where the rank is unknown."""
    dtype = as_dtype(feature.dtype)
    if batch is None and isinstance(feature, FixedLenFeature | FixedLenSequenceFeature):
        return [(dtype, None)]
    if batch is None and not isinstance(feature, RaggedFeature):
        return [("int64", [None, None]), (dtype, [None]), ("int64", [None])]
    batch = [None] if batch is None else batch  # one that is ragged has row splits: of several examples
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


def step_specs(feature: Any, batch: list[Any]) -> list[tuple[Any, Any]]:
    """The dtypes and shapes of the tensors that `Sequences.feature` gives."""
    dtype = as_dtype(feature.dtype)
    if isinstance(feature, FixedLenSequenceFeature):
        return [(dtype, [*batch, None, *as_shape(feature.shape).as_list()])]
    if isinstance(feature, RaggedFeature):
        splits = len(batch) + 1 + len(feature.partitions)
        return [(dtype, [None]), *[(feature.row_splits_dtype, [None])] * splits]
    return [("int64", [None, len(batch) + 2]), (dtype, [None]), ("int64", [len(batch) + 2])]
