"""Elements of a dataset in a folder, in TensorFlow's snapshot format, for `Dataset.save`, `load` and `cache(file)`.

`dataset_spec.pb` says what the elements are, `snapshot.metadata` which run is the last one, and
`<run>/00000000.shard/00000000.snapshot` holds a record with a TensorProto for each part of each element. The parts of
ragged and sparse tensors are tensors of their own; TensorFlow, which packs them as variants, does not read those.
"""

from __future__ import annotations

import glob
import os
import shutil
import time
import uuid
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from tapeflow._src.data.files import opened_file
from tapeflow._src.data.pipes.structure import Leaves
from tapeflow._src.function.spec_messages import decode, encode
from tapeflow._src.io.atomic_files import atomic_file, write_atomically
from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.tensor_messages import tensor_message, tensor_of
from tapeflow._src.io.records import framed, records_in
from tapeflow._src.types import nest
from tapeflow._src.types.errors import DataLossError, NotFoundError
from tapeflow._src.types.tensor_spec import TensorSpec

_SPEC, _METADATA, _OLD = "dataset_spec.pb", "snapshot.metadata", "elements.npz"
_SHARD = os.path.join("00000000.shard", "00000000.snapshot")
_VERSION = 2


def has_elements(path: str) -> bool:
    """Whether elements were written into this folder."""
    return os.path.exists(os.path.join(path, _METADATA))


def write_elements(path: str, spec: Any, elements: Iterable[Leaves], compression: str | None = None) -> None:
    """Writes elements, and their specification, into a folder. Until all are there, the old ones stay."""
    folder = os.fspath(path)
    run = str(uuid.uuid4().int % (1 << 64))
    file_path = os.path.join(folder, run, _SHARD)
    os.makedirs(os.path.dirname(file_path))
    before = _old_run(folder)
    bits = zlib.MAX_WBITS | (16 if compression == "GZIP" else 0)
    packer = zlib.compressobj(wbits=bits) if compression in ("GZIP", "ZLIB") else None
    count = 0
    with atomic_file(file_path) as file:
        for element in elements:
            count += 1
            for part in nest.flatten(list(element), expand_composites=True):
                data = framed(tensor_message(part).SerializeToString())
                file.write(data if packer is None else packer.compress(data))
        if packer is not None:
            file.write(packer.flush())
    dtypes = [s.dtype.as_datatype_enum for s in nest.flatten(spec, expand_composites=True) if isinstance(s, TensorSpec)]
    metadata = messages.SnapshotMetadataRecord(
        run_id=run,
        creation_timestamp=int(time.time() * 1e6),
        version=_VERSION,
        dtype=dtypes,
        num_elements=count,
        finalized=True,
    )
    write_atomically(os.path.join(folder, _SPEC), encode(spec).SerializeToString(deterministic=True))
    write_atomically(os.path.join(folder, _METADATA), metadata.SerializeToString())
    if before is not None:
        shutil.rmtree(os.path.join(folder, before), ignore_errors=True)


def _old_run(folder: str) -> str | None:
    """The run whose elements are replaced."""
    try:
        return _metadata(folder).run_id if has_elements(folder) else None
    except DataLossError:
        return None


def _parsed(kind: Any, path: str) -> Any:
    with open(path, "rb") as file:
        data = file.read()
    try:
        return kind.FromString(data)
    except messages.decode_error() as error:
        raise DataLossError.of(f"{path}: {error}") from None


def _metadata(folder: str) -> Any:
    path = os.path.join(folder, _METADATA)
    found = _parsed(messages.SnapshotMetadataRecord, path)
    if not found.run_id.isascii() or not found.run_id.isdigit():  # it is the name of a folder
        raise DataLossError.of(f"{path}: {found.run_id!r} is no number of a run")
    return found


def saved_elements(path: str, compression: str | None = None) -> tuple[Any, list[Leaves]]:
    """The specification and the elements that were written into a folder."""
    folder = os.fspath(path)
    if not has_elements(folder):
        _refuse(folder)
    metadata = _metadata(folder)
    spec_path = os.path.join(folder, _SPEC)
    try:
        spec = decode(_parsed(messages.StructuredValue, spec_path))
        specs = nest.flatten(spec)
        parts = nest.flatten(specs, expand_composites=True)
    except (TypeError, ValueError) as error:
        raise DataLossError.of(f"{spec_path}: {error}") from None
    if not parts or not all(isinstance(part, TensorSpec) for part in parts):
        raise DataLossError.of(f"{spec_path}: it describes no elements of a dataset")
    elements: list[Leaves] = []
    shards = sorted(glob.glob(os.path.join(glob.escape(folder), metadata.run_id, "*.shard", "*.snapshot")))
    for shard in shards:
        tensors = list(_tensors(shard, compression, parts))
        if len(tensors) % len(parts):
            raise DataLossError.of(f"{shard}: the last element is not whole")
        for start in range(0, len(tensors), len(parts)):
            packed = nest.pack_sequence_as(specs, tensors[start : start + len(parts)], expand_composites=True)
            elements.append(tuple(packed))
    if metadata.num_elements >= 0 and len(elements) != metadata.num_elements:
        raise DataLossError.of(f"{folder}: {metadata.num_elements} elements were saved, {len(elements)} are there")
    return spec, elements


def _refuse(folder: str) -> NoReturn:
    if os.path.exists(os.path.join(folder, _OLD)):
        raise ValueError(
            f"{folder} holds a dataset of Tapeflow 0.1, whose specification is a pickle that may run any code; it is "
            "not read. Load it with Tapeflow 0.1 and write its elements as TFRecords, or save the dataset anew"
        )
    raise NotFoundError.of(f"{folder}: no dataset was saved here")


def _tensors(path: str, compression: str | None, parts: list[Any]) -> Iterator[Any]:
    with opened_file(path, compression) as file:
        try:
            for number, record in enumerate(records_in(file.read)):
                tensor = tensor_of(messages.TensorProto.FromString(record))
                spec = parts[number % len(parts)]
                if tensor.dtype != spec.dtype:
                    raise DataLossError.of(
                        f"{path}: record {number} has dtype {tensor.dtype.name}, not {spec.dtype.name}"
                    )
                yield tensor
        except (messages.decode_error(), TypeError, ValueError, OSError, EOFError, zlib.error) as error:
            raise DataLossError.of(f"{path}: {error}") from None
