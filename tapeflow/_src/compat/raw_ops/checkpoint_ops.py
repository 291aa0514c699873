"""Raw operations on checkpoint files: they save and restore tensors by name, whole or in part."""

from __future__ import annotations

import os
from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call, host_effect
from tapeflow._src.train.checkpoint.tensor_bundle import Bundle, PartsOfWhole, write_bundle
from tapeflow._src.train.checkpoint.tensor_slices import read_slices, write_slices
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import InvalidArgumentError, NotFoundError, UnimplementedError
from tapeflow._src.types.tensor_shape import TensorShape

GenerateVocabRemapping = namedtuple("GenerateVocabRemapping", ["remapping", "num_present"])


# ---- parts of tensors: "4 3 2,2:-" is the rows 2 and 3 of a matrix of shape [4, 3]


def _part(spec: str) -> tuple[list[int], list[tuple[int, int]]] | None:
    """The shape of a whole, and for each axis where its part begins and how long it is; None for the whole."""
    if not spec:
        return None
    *sizes, extents = spec.split(" ")
    try:
        shape = [int(size) for size in sizes]
        pairs = [
            (0, size) if extent == "-" else (int(extent.split(",")[0]), int(extent.split(",")[1]))
            for extent, size in zip(extents.split(":"), shape, strict=True)
        ]
    except (ValueError, IndexError):
        raise InvalidArgumentError.of(f"shape_and_slice: {spec!r} does not name a part of a tensor") from None
    if any(not 0 <= start <= start + size <= whole for (start, size), whole in zip(pairs, shape)):
        raise InvalidArgumentError.of(f"shape_and_slice: {spec!r} lies outside of the shape {shape}")
    return shape, pairs


def _texts(values: Any) -> list[str]:
    return [text.decode() for text in np.atleast_1d(convert_to_tensor(values, "string").numpy()).tolist()]


def _path(tensor: Any) -> str:
    path: str = tensor.numpy().decode()
    return path


def _save(prefix: Any, names: Any, parts: Any, tensors: Sequence[Any]) -> Any:
    count = len(tensors)

    def write(prefix: Any, names: Any, parts: Any, *values: Any) -> None:
        texts, specs = _texts(names), _texts(parts)
        if not len(texts) == len(specs) == count:
            raise InvalidArgumentError.of(
                f"SaveV2: {len(texts)} tensor_names and {len(specs)} shape_and_slices for {count} tensors"
            )
        found: dict[str, Any] = {}
        for name, spec, value in zip(texts, specs, values):
            place = _part(spec)
            if place is None:
                found[name] = value.numpy()
                continue
            shape, pairs = place
            if value.shape.as_list() != [size for _, size in pairs]:
                raise InvalidArgumentError.of(f"SaveV2: {name} has shape {value.shape.as_list()}, not that of {spec!r}")
            found.setdefault(name, PartsOfWhole(shape)).add([start for start, _ in pairs], value.numpy())
        write_bundle(_path(prefix), found)

    given = [convert_to_tensor(x, "string") for x in (prefix, names, parts)]
    return host_effect(write, [*given, *(convert_to_tensor(x) for x in tensors)])


def _restored_shapes(parts: Any, count: int) -> list[TensorShape]:
    if _core.is_symbolic(parts):
        return [TensorShape(None)] * count
    places = [_part(spec) for spec in _texts(parts)]
    return [TensorShape(None if place is None else [size for _, size in place[1]]) for place in places]


def _restore(prefix: Any, names: Any, parts: Any, dtypes: Sequence[Any]) -> list[Any]:
    prefix, names, parts = (convert_to_tensor(x, "string") for x in (prefix, names, parts))
    counts = {x.shape[0] for x in (names, parts) if x.shape.rank == 1} - {None}
    if counts - {len(dtypes)}:
        raise InvalidArgumentError.of(
            f"RestoreV2: {names.shape} tensor_names and {parts.shape} shape_and_slices for {len(dtypes)} dtypes"
        )

    def read(prefix: Any, names: Any, parts: Any) -> list[Any]:
        bundle, found = Bundle(_path(prefix)), []
        for name, spec, dtype in zip(_texts(names), _texts(parts), dtypes):
            if bundle.dtype(name) != as_dtype(dtype) if name in bundle else False:
                raise InvalidArgumentError.of(
                    f"RestoreV2: tensor_name = {name}; expected dtype {as_dtype(dtype).name} does not equal original "
                    f"dtype {bundle.dtype(name).name}"
                )
            value, place = np.asarray(bundle.value(name)), _part(spec)
            if place is not None:
                shape, pairs = place
                if list(value.shape) != shape:
                    raise InvalidArgumentError.of(
                        f"RestoreV2: tensor_name = {name}; shape in shape_and_slice spec {shape} does not match the "
                        f"shape stored in checkpoint: {list(value.shape)}"
                    )
                value = value[tuple(slice(start, start + size) for start, size in pairs)]
            found.append(convert_to_tensor(value, dtype))
        return found

    outputs = list(zip(dtypes, _restored_shapes(parts, len(dtypes))))
    return list(host_call(read, [prefix, names, parts], outputs, reads=True))


def _save_slices(filename: Any, names: Any, tensors: Sequence[Any]) -> Any:
    def write(filename: Any, names: Any, *values: Any) -> None:
        texts = _texts(names)
        if len(texts) != len(values):
            raise InvalidArgumentError.of(f"Save: {len(texts)} tensor_names for {len(values)} tensors")
        write_slices(_path(filename), {name: value.numpy() for name, value in zip(texts, values)})

    given = [convert_to_tensor(x, "string") for x in (filename, names)]
    return host_effect(write, [*given, *(convert_to_tensor(x) for x in tensors)])


def _restore_slices(file_pattern: Any, tensor_name: Any, dt: Any, preferred_shard: int) -> Any:
    def read(file_pattern: Any, tensor_name: Any) -> list[Any]:
        name, found = _path(tensor_name), read_slices(_path(file_pattern))
        if name not in found:
            raise NotFoundError.of(f'Tensor name "{name}" not found in checkpoint files {_path(file_pattern)}')
        value = convert_to_tensor(found[name])
        if value.dtype != as_dtype(dt):
            raise InvalidArgumentError.of(
                f"Restore: tensor_name = {name}; expected dtype {as_dtype(dt).name} does not equal original dtype "
                f"{value.dtype.name}"
            )
        return [value]

    given = [convert_to_tensor(x, "string") for x in (file_pattern, tensor_name)]
    return host_call(read, given, [(dt, None)], reads=True)[0]


def _sharded(basename: Any, shard: Any, count: Any) -> Any:
    def name(basename: Any, shard: Any, count: Any) -> list[Any]:
        return [convert_to_tensor(f"{_path(basename)}-{int(shard):05d}-of-{int(count):05d}")]

    given = [
        convert_to_tensor(basename, "string"),
        convert_to_tensor(shard, "int32"),
        convert_to_tensor(count, "int32"),
    ]
    return host_call(name, given, [("string", [])])[0]


def _pattern(basename: Any, count: Any) -> Any:
    def name(basename: Any, count: Any) -> list[Any]:
        return [convert_to_tensor(f"{_path(basename)}-?????-of-{int(count):05d}")]

    return host_call(
        name, [convert_to_tensor(basename, "string"), convert_to_tensor(count, "int32")], [("string", [])]
    )[0]


# ---- other vocabularies


def _mapped(what: str, mapping: np.ndarray, old: int, new: int) -> np.ndarray:
    """Where rows or columns come from, -1 for new ones."""
    if mapping.size != new:
        raise InvalidArgumentError.of(f"LoadAndRemapMatrix: {what} has {mapping.size} elements; {new} are wanted")
    kept = mapping[mapping >= 0]
    if kept.size and kept.max() >= old:
        raise InvalidArgumentError.of(f"LoadAndRemapMatrix: {what} holds {kept.max()}; the old matrix has {old}")
    if np.unique(kept).size != kept.size:
        raise UnimplementedError.of(f"LoadAndRemapMatrix: {what} takes one old row or column more than once")
    return mapping


def _load_and_remap(
    path: Any, name: Any, rows: Any, columns: Any, new_values: Any, row_count: int, column_count: int, _: int
) -> Any:
    """A matrix of a checkpoint with its rows and columns in another order, and new values where there are none."""
    path, name = convert_to_tensor(path, "string"), convert_to_tensor(name, "string")
    rows, columns = convert_to_tensor(rows, "int64"), convert_to_tensor(columns, "int64")
    new_values = convert_to_tensor(new_values, "float32")
    for what, mapping in (("row_remapping", rows), ("col_remapping", columns)):
        if mapping.shape.rank not in (None, 1):
            raise InvalidArgumentError.of(f"LoadAndRemapMatrix: The {what} tensor must be 1-D; got {mapping.shape}")

    def read(path: Any, name: Any, rows: Any, columns: Any, new_values: Any) -> list[Any]:
        old = np.asarray(Bundle(_texts(path)[0]).value(_texts(name)[0]))
        if old.ndim != 2:
            raise InvalidArgumentError.of(f"LoadAndRemapMatrix: the old tensor must be a matrix; got {list(old.shape)}")
        at = _mapped("row_remapping", rows.numpy(), old.shape[0], row_count)
        given = columns.numpy()
        across = _mapped("col_remapping", given if given.size else np.arange(old.shape[1]), old.shape[1], column_count)
        known = (at >= 0)[:, None] & (across >= 0)[None, :]
        fresh = new_values.numpy().reshape(-1)
        if fresh.size != known.size - np.count_nonzero(known):
            raise InvalidArgumentError.of(
                f"LoadAndRemapMatrix: {known.size - np.count_nonzero(known)} values are missing; got {fresh.size}"
            )
        result = np.zeros([row_count, column_count], np.float32)
        result[known] = old[np.ix_(at[at >= 0], across[across >= 0])].reshape(-1)
        result[~known] = fresh
        return [convert_to_tensor(result)]

    given = [path, name, rows, columns, new_values]
    return host_call(read, given, [("float32", [row_count, column_count])], reads=True)[0]


def _lines(path: Any, count: int = -1) -> list[bytes]:
    with open(os.fspath(_path(path)), "rb") as file:
        lines = file.read().splitlines()
    return lines if count < 0 else lines[:count]


def _vocabulary_remapping(new: Any, old: Any, offset: int, count: int, old_size: int) -> GenerateVocabRemapping:
    """For each of some words of a new vocabulary its number in the old one, or -1."""

    def read(new: Any, old: Any) -> list[Any]:
        number_by_word = {word: number for number, word in enumerate(_lines(old, old_size))}
        words = _lines(new)
        if offset + count > len(words):
            raise InvalidArgumentError.of(
                f"GenerateVocabRemapping: {count} words from {offset} on are wanted; the vocabulary has {len(words)}"
            )
        numbers = [number_by_word.get(word, -1) for word in words[offset : offset + count]]
        present = sum(number >= 0 for number in numbers)
        return [convert_to_tensor(np.asarray(numbers, np.int64)), convert_to_tensor(present, "int32")]

    given = [convert_to_tensor(new, "string"), convert_to_tensor(old, "string")]
    return GenerateVocabRemapping(*host_call(read, given, [("int64", [count]), ("int32", [])], reads=True))


ROWS: list[tuple[str, str, Any]] = [
    (
        "GenerateVocabRemapping",
        "new_vocab_file, old_vocab_file, new_vocab_offset, num_new_vocab, old_vocab_size=-1",
        _vocabulary_remapping,
    ),
    (
        "LoadAndRemapMatrix",
        "ckpt_path, old_tensor_name, row_remapping, col_remapping, initializing_values, num_rows, num_cols, "
        "max_rows_in_memory=-1",
        _load_and_remap,
    ),
    ("Restore", "file_pattern, tensor_name, dt, preferred_shard=-1", _restore_slices),
    ("Save", "filename, tensor_names, data", _save_slices),
    ("RestoreV2", "prefix, tensor_names, shape_and_slices, dtypes", _restore),
    ("SaveV2", "prefix, tensor_names, shape_and_slices, tensors", _save),
    ("ShardedFilename", "basename, shard, num_shards", _sharded),
    ("ShardedFilespec", "basename, num_shards", _pattern),
]
