"""Elements of a dataset in a folder, in TensorFlow's snapshot format, for `Dataset.save`, `load` and `cache(file)`.

`dataset_spec.pb` says what the elements are, `snapshot.metadata` which run is the last one, and
`<run>/00000000.shard/00000000.snapshot` holds a record with a TensorProto for each part of each element. A ragged or
sparse tensor is one part: variants with its tensors inside.
"""

from __future__ import annotations

import glob
import itertools
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
from tapeflow._src.io.protos.tensor_messages import tensor_message, tensor_of, variant_message, variants_of
from tapeflow._src.io.records import framed, records_in
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor, RaggedTensorSpec
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import variant
from tapeflow._src.types.errors import DataLossError, NotFoundError, OpError
from tapeflow._src.types.sparse_tensor import SparseTensor, SparseTensorSpec
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
            for leaf, leaf_spec in zip(element, nest.flatten(spec), strict=True):
                for message in _messages(leaf, leaf_spec):
                    data = framed(message.SerializeToString())
                    file.write(data if packer is None else packer.compress(data))
        if packer is not None:
            file.write(packer.flush())
    dtypes = [dtype.as_datatype_enum for leaf_spec in nest.flatten(spec) for dtype in _record_dtypes(leaf_spec)]
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


_RAGGED, _PLAIN = "RaggedTensorVariant", "tensorflow::Tensor"


def _messages(leaf: Any, spec: Any) -> list[Any]:
    """The records of a part of an element."""
    if isinstance(spec, RaggedTensorSpec):
        parts = [*leaf.nested_row_splits, leaf.flat_values] if isinstance(leaf, RaggedTensor) else [leaf]
        return [variant_message(_RAGGED, [parts], [])]
    if isinstance(spec, SparseTensorSpec):
        return [variant_message(_PLAIN, [[leaf.indices], [leaf.values], [leaf.dense_shape]], [3])]
    return [tensor_message(part) for part in nest.flatten([leaf], expand_composites=True)]


def _record_dtypes(spec: Any) -> list[Any]:
    """The dtypes of the records of a part."""
    if isinstance(spec, RaggedTensorSpec | SparseTensorSpec):
        return [variant]
    return [part.dtype for part in nest.flatten([spec], expand_composites=True)]


def _leaf_of(spec: Any, records: list[Any]) -> Any:
    """The part of an element that these messages hold; ValueError if they do not fit its specification."""
    if isinstance(spec, RaggedTensorSpec):
        ((*splits, values),) = variants_of(records[0], _RAGGED)
        if values.dtype != spec.dtype or len(splits) != spec.ragged_rank:
            raise ValueError(f"rows of {values.dtype.name}, {len(splits)} times nested, are not those of {spec}")
        return RaggedTensor.from_nested_row_splits(values, splits) if splits else values
    if isinstance(spec, SparseTensorSpec):
        (indices,), (values,), (shape,) = variants_of(records[0], _PLAIN)
        if values.dtype != spec.dtype:
            raise ValueError(f"elements of {values.dtype.name} are not those of {spec}")
        return SparseTensor(indices, values, shape)
    tensors = [tensor_of(record) for record in records]
    for tensor, dtype in zip(tensors, _record_dtypes(spec)):
        if tensor.dtype != dtype:
            raise ValueError(f"a record has dtype {tensor.dtype.name}, not {dtype.name}")
    (leaf,) = nest.pack_sequence_as([spec], tensors, expand_composites=True)
    return leaf


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
        elements += _elements(shard, compression, specs)
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


def _elements(path: str, compression: str | None, specs: list[Any]) -> Iterator[Leaves]:
    """The elements of one file."""
    counts = [len(_record_dtypes(spec)) for spec in specs]
    with opened_file(path, compression) as file:
        try:
            records = (messages.TensorProto.FromString(record) for record in records_in(file.read))
            while True:
                parts = list(itertools.islice(records, sum(counts)))
                if not parts:
                    return
                if len(parts) < sum(counts):
                    raise ValueError("the last element is not whole")
                rest = iter(parts)
                leaves = [_leaf_of(spec, [next(rest) for _ in range(n)]) for spec, n in zip(specs, counts)]
                yield tuple(leaves)
        except (messages.decode_error(), OpError, TypeError, ValueError, OSError, EOFError, zlib.error) as error:
            if isinstance(error, DataLossError):
                raise
            raise DataLossError.of(f"{path}: {error}") from None
