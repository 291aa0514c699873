"""Checkpoint files of the first version, one sorted table each, as `raw_ops.Save` and TensorFlow before 0.12 write."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from typing import Any

import numpy as np

from tapeflow._src.io.atomic_files import write_atomically
from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.tensor_messages import shape_message, shape_of
from tapeflow._src.train.checkpoint.sorted_table import read_table
from tapeflow._src.train.checkpoint.tensor_bundle import slice_key, table_bytes
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import DataLossError, InvalidArgumentError, NotFoundError
from tapeflow._src.types.file_errors import file_errors
from tapeflow._src.types.tensor_shape import TensorShape

_FULL = (0, -1)  # the extent of a whole axis
_FIELDS = {
    "float32": "float_val", "float64": "double_val", "int64": "int64_val", "bool": "bool_val", "string": "string_val",
    "int32": "int_val", "int16": "int_val", "int8": "int_val", "uint8": "int_val", "uint16": "int_val",
}  # fmt: skip
_FIELD_BY_NUMBER = {as_dtype(name).as_datatype_enum: field for name, field in _FIELDS.items()}


def write_slices(path: str, array_by_name: Mapping[str, Any]) -> None:
    """Writes arrays by name into one file."""
    head = messages.SavedTensorSlices()
    head.meta.versions.producer = 1
    entries: dict[bytes, bytes] = {}
    for name, value in array_by_name.items():
        array = np.asarray(value)
        dtype = as_dtype("string" if array.dtype == object else array.dtype)
        field = _FIELDS.get(dtype.name)
        if field is None:
            raise InvalidArgumentError.of(f"Save: tensors of {dtype.name} cannot be written; got {name}")
        tensor = head.meta.tensor.add(name=name, type=dtype.as_datatype_enum)
        tensor.shape.CopyFrom(shape_message(TensorShape(array.shape)))
        part = tensor.slice.add(extent=[messages.TensorSliceProto.Extent() for _ in array.shape])
        entry = messages.SavedTensorSlices()
        entry.data.name = name
        entry.data.slice.CopyFrom(part)
        getattr(entry.data.data, field).extend(array.reshape(-1).tolist())
        entries[slice_key(name, [_FULL] * array.ndim)] = entry.SerializeToString()
    entries[b""] = head.SerializeToString()
    write_atomically(path, table_bytes(entries))


def read_slices(pattern: str) -> dict[str, np.ndarray]:
    """The arrays by name of the files with such names; NotFoundError if there are none, DataLossError for others."""
    paths = sorted(glob.glob(pattern))
    if not paths:
        raise NotFoundError.of(
            f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files for {pattern}"
        )
    found: dict[str, np.ndarray] = {}
    for path in paths:
        with file_errors(path), open(path, "rb") as file:
            data = file.read()
        try:
            _read_file(read_table(data, path), path, found)
        except messages.decode_errors() as error:
            raise DataLossError.of(f"{path}: an entry is no tensor: {error}") from None
    return found


def _read_file(entries: dict[bytes, bytes], path: str, found: dict[str, np.ndarray]) -> None:
    meta = messages.SavedTensorSlices.FromString(entries.pop(b"", b"")).meta
    described = {tensor.name: tensor for tensor in meta.tensor}
    parts_by_name: dict[str, list[tuple[tuple[slice, ...], np.ndarray]]] = {}
    for data in entries.values():
        saved = messages.SavedTensorSlices.FromString(data).data
        tensor = described.get(saved.name)
        field = None if tensor is None else _FIELD_BY_NUMBER.get(tensor.type)
        if tensor is None or field is None:
            raise DataLossError.of(f"{path}: the tensor '{saved.name}' is not described, or has an unknown dtype")
        values, shape = getattr(saved.data, field), shape_of(tensor.shape)
        place = _place(saved.slice, shape, path)
        sizes = [part.stop - part.start for part in place]
        if int(np.prod(sizes, dtype=object)) != len(values):
            raise DataLossError.of(
                f"{path}: the tensor '{saved.name}' has {len(values)} elements and the sizes {sizes}"
            )
        kind = np.dtype(object) if field == "string_val" else as_dtype(tensor.type).as_numpy_dtype
        try:
            part = np.asarray(list(values), kind).reshape(sizes)
        except (ValueError, OverflowError) as error:
            raise DataLossError.of(f"{path}: the tensor '{saved.name}' cannot be made: {error}") from None
        parts_by_name.setdefault(saved.name, []).append((place, part))
    for name, parts in parts_by_name.items():
        found[name] = _joined(parts, shape_of(described[name].shape).as_list(), f"{path}: the tensor '{name}'")


def _joined(parts: list[tuple[tuple[slice, ...], np.ndarray]], shape: list[Any], what: str) -> np.ndarray:
    if len(parts) == 1 and list(parts[0][1].shape) == shape:
        return parts[0][1]
    if sum(part.size for _, part in parts) != int(np.prod(shape, dtype=object)):  # before anything is allocated
        raise DataLossError.of(f"{what} has other parts than its shape {shape} needs")
    whole = np.zeros(shape, parts[0][1].dtype)
    for place, part in parts:
        whole[place] = part
    return whole


def _place(part: Any, shape: TensorShape, path: str) -> tuple[slice, ...]:
    """Where a part lies in the whole."""
    if shape.rank is None or not shape.is_fully_defined() or len(part.extent) != shape.rank:
        raise DataLossError.of(f"{path}: the shape {shape} is not that of a part with {len(part.extent)} axes")
    found = []
    for extent, size in zip(part.extent, shape.as_list()):
        length = extent.length if extent.HasField("length") and extent.length >= 0 else size - extent.start
        if not 0 <= extent.start <= extent.start + length <= size:
            raise DataLossError.of(f"{path}: a part lies outside of the shape {shape}")
        found.append(slice(extent.start, extent.start + length))
    return tuple(found)
