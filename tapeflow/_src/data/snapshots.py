"""Elements of a dataset in a folder, in TensorFlow's snapshot format, for `Dataset.save`, `load` and `cache(file)`.

`dataset_spec.pb` says what the elements are, `snapshot.metadata` which run is the last one, and
`<run>/<number>.shard/00000000.snapshot` holds a record with a TensorProto for each part of each element. A ragged or
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
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any, NoReturn

from tapeflow._src.data.files import opened_file
from tapeflow._src.data.pipes.pipe import UNKNOWN, Iteration, Pipe
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
_VERSION = 2


def has_elements(path: str) -> bool:
    """Whether elements were written into this folder."""
    return os.path.exists(os.path.join(path, _METADATA))


class _Shard:
    """One file of elements, open for writing."""

    def __init__(self, file: Any, compression: str | None) -> None:
        bits = zlib.MAX_WBITS | (16 if compression == "GZIP" else 0)
        self._packer = zlib.compressobj(wbits=bits) if compression in ("GZIP", "ZLIB") else None
        self._file = file

    def write(self, element: Leaves, specs: list[Any]) -> None:
        for leaf, spec in zip(element, specs, strict=True):
            for message in _messages(leaf, spec):
                data = framed(message.SerializeToString())
                self._file.write(data if self._packer is None else self._packer.compress(data))

    def finish(self) -> None:
        if self._packer is not None:
            self._file.write(self._packer.flush())


def write_elements(
    path: str,
    spec: Any,
    elements: Iterable[Leaves],
    compression: str | None = None,
    shard_of: Callable[[Leaves], int] | None = None,
) -> None:
    """Writes elements, and their specification, into a folder. Until all are there, the old ones stay.

    `shard_of` says into which file an element goes.
    """
    folder = os.fspath(path)
    run = str(uuid.uuid4().int % (1 << 64))
    before = _old_run(folder)
    count, specs = 0, nest.flatten(spec)
    shards: dict[int, _Shard] = {}
    with ExitStack() as files:

        def opened(number: int) -> _Shard:
            if number not in shards:
                name = os.path.join(folder, run, f"{number:08d}.shard", "00000000.snapshot")
                os.makedirs(os.path.dirname(name))
                shards[number] = _Shard(files.enter_context(atomic_file(name)), compression)
            return shards[number]

        opened(0)
        for element in elements:
            count += 1
            opened(0 if shard_of is None else shard_of(element)).write(element, specs)
        for shard in shards.values():
            shard.finish()
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
    except messages.decode_errors() as error:
        raise DataLossError.of(f"{path}: {error}") from None


def _metadata(folder: str) -> Any:
    path = os.path.join(folder, _METADATA)
    found = _parsed(messages.SnapshotMetadataRecord, path)
    if not found.run_id.isascii() or not found.run_id.isdigit():  # it is the name of a folder
        raise DataLossError.of(f"{path}: {found.run_id!r} is no number of a run")
    return found


def saved_elements(path: str, compression: str | None = None) -> tuple[Any, list[Leaves]]:
    """The specification and the elements that were written into a folder, one of each file in turn."""
    spec, shards = saved_shards(path, compression)
    return spec, in_turn(shards)


def in_turn(shards: list[list[Leaves]]) -> list[Leaves]:
    """The elements of all files: the first of each, the second of each, and so on."""
    return [element for row in itertools.zip_longest(*shards) for element in row if element is not None]


def saved_shards(path: str, compression: str | None = None) -> tuple[Any, list[list[Leaves]]]:
    """The specification and the elements of each file in a folder."""
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
    files = sorted(glob.glob(os.path.join(glob.escape(folder), metadata.run_id, "*.shard", "*.snapshot")))
    by_shard = itertools.groupby(files, os.path.dirname)
    shards = [[element for file in group for element in _elements(file, compression, specs)] for _, group in by_shard]
    count = sum(map(len, shards))
    if metadata.num_elements >= 0 and count != metadata.num_elements:
        raise DataLossError.of(f"{folder}: {metadata.num_elements} elements were saved, {count} are there")
    return spec, shards


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
            records = (messages.TensorProto.FromString(record) for record in records_in(file.read, f" in {path}"))
            while True:
                parts = list(itertools.islice(records, sum(counts)))
                if not parts:
                    return
                if len(parts) < sum(counts):
                    raise ValueError("the last element is not whole")
                rest = iter(parts)
                leaves = [_leaf_of(spec, [next(rest) for _ in range(n)]) for spec, n in zip(specs, counts)]
                yield tuple(leaves)
        except (*messages.decode_errors(), OpError, TypeError, ValueError, OSError, EOFError, zlib.error) as error:
            if isinstance(error, DataLossError):
                raise
            raise DataLossError.of(f"{path}: {error}") from None


class Kept(Pipe):
    """The elements of a pipe, from files that the first iteration writes."""

    name = "_SnapshotDataset"

    def __init__(self, before: Pipe, path: str, save: Callable[[], None], load: Callable[[], Pipe]) -> None:
        super().__init__(before.spec, before)
        self._path, self._save, self._load = path, save, load

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        if not has_elements(self._path):
            self._save()
        return self._load().begin(iteration)

    def count(self) -> int:
        return UNKNOWN  # a function reads the files
