"""Readers: operations that take names of files out of a queue and give the records of the files, one in each run."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

from tapeflow._src._core import Tensor
from tapeflow._src.compat.v1.queues.queues import PerSession, QueueBase, named_call
from tapeflow._src.io.records import tf_record_iterator
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_effect
from tapeflow._src.types.dtypes import int64
from tapeflow._src.types.file_errors import file_errors, file_name

Record = tuple[bytes, bytes]


class _Position:
    """Where a reader stands in one session."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        self.records: Iterator[Record] = iter(())
        self.produced = self.finished = 0


@public("compat.v1.ReaderBase")
class ReaderBase:
    """What all readers have.

    >>> issubclass(tf.compat.v1.TextLineReader, tf.compat.v1.ReaderBase)
    True
    """

    supports_serialize = False

    def __init__(self, name: str | None = None) -> None:
        self._name = name
        self._position = PerSession(_Position)

    def _records(self, name: str) -> Iterator[Record]:
        """The records of a file, with their keys."""
        raise NotImplementedError

    def _next(self, queue: QueueBase, wait: bool = True) -> Record | None:
        position = self._position.now()
        with position.lock:  # several threads may read
            while True:
                record: Record | None = next(position.records, None)
                if record is not None:
                    position.produced += 1
                    return record
                if not wait:
                    return None
                contents = queue._now()
                (name,) = contents.take(1)[0]
                position.records = self._records(file_name(name))
                position.finished += 1

    def read(self, queue: QueueBase, name: str | None = None) -> tuple[Tensor, Tensor]:
        """The next record: its key and its value. A file is taken out of the queue when one is needed."""

        def run() -> list[Any]:
            record = self._next(queue)
            key, value = record if record is not None else (b"", b"")
            return [convert_to_tensor(key), convert_to_tensor(value)]

        key, value = named_call(name or "ReaderReadV2", run, [], [("string", [])] * 2)
        return key, value

    def read_up_to(self, queue: QueueBase, num_records: Any, name: str | None = None) -> Any:
        """Up to `num_records` records, as vectors of keys and values."""

        def run(count: Any) -> list[Any]:
            found = [self._next(queue)]
            while len(found) < int(count) and (record := self._next(queue, wait=False)) is not None:
                found.append(record)
            keys, values = zip(*found)
            return [convert_to_tensor(list(keys)), convert_to_tensor(list(values))]

        count = convert_to_tensor(num_records, int64)
        keys, values = named_call(name or "ReaderReadUpToV2", run, [count], [("string", [None])] * 2)
        return keys, values

    def num_records_produced(self, name: str | None = None) -> Any:
        """How many records it has given."""
        return self._told(name or "ReaderNumRecordsProducedV2", lambda p: p.produced)

    def num_work_units_completed(self, name: str | None = None) -> Any:
        """How many files it has come to the end of."""
        return self._told(name or "ReaderNumWorkUnitsCompletedV2", lambda p: max(p.finished - 1, 0))

    def _told(self, name: str, ask: Any) -> Any:
        return named_call(name, lambda: [convert_to_tensor(ask(self._position.now()), int64)], [], [(int64, [])])[0]

    def reset(self, name: str | None = None) -> Any:
        """Forgets the file it is in."""
        return host_effect(lambda: self._position.now().reset(), [])


@public("compat.v1.TextLineReader")
class TextLineReader(ReaderBase):
    """The lines of text files; the key is "file:line".

    >>> with tf.Graph().as_default():
    ...     queue = tf.compat.v1.train.string_input_producer(["a.csv"])
    ...     key, line = tf.compat.v1.TextLineReader().read(queue)
    ...     line.dtype
    tf.string
    """

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        super().__init__(name)
        self._skip = skip_header_lines or 0

    def _records(self, name: str) -> Iterator[Record]:
        with file_errors(name), open(name, "rb") as file:
            for number, line in enumerate(itertools.islice(file, self._skip, None), self._skip + 1):
                yield f"{name}:{number}".encode(), line.removesuffix(b"\n").removesuffix(b"\r")


@public("compat.v1.WholeFileReader")
class WholeFileReader(ReaderBase):
    """Whole files; the key is the name.

    >>> with tf.Graph().as_default():
    ...     queue = tf.compat.v1.train.string_input_producer(["a.png"])
    ...     name, contents = tf.compat.v1.WholeFileReader().read(queue)
    ...     contents.dtype
    tf.string
    """

    def _records(self, name: str) -> Iterator[Record]:
        with file_errors(name), open(name, "rb") as file:
            yield name.encode(), file.read()


@public("compat.v1.IdentityReader")
class IdentityReader(ReaderBase):
    """The names in the queue themselves, as key and value.

    >>> with tf.Graph().as_default():
    ...     queue = tf.compat.v1.train.string_input_producer(["a.png"])
    ...     name, same = tf.compat.v1.IdentityReader().read(queue)
    ...     same.dtype
    tf.string
    """

    def _records(self, name: str) -> Iterator[Record]:
        yield name.encode(), name.encode()


@public("compat.v1.TFRecordReader")
class TFRecordReader(ReaderBase):
    """The records of TensorFlow's files; the key is "file:place", the place in bytes.

    >>> with tf.Graph().as_default():
    ...     queue = tf.compat.v1.train.string_input_producer(["a.tfrecord"])
    ...     key, record = tf.compat.v1.TFRecordReader().read(queue)
    ...     record.dtype
    tf.string
    """

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        super().__init__(name)
        self._options = options

    def _records(self, name: str) -> Iterator[Record]:
        place = 0
        for record in tf_record_iterator(name, self._options):
            yield f"{name}:{place}".encode(), record
            place += len(record) + 16  # a length, a record, and a checksum of each


@public("compat.v1.FixedLengthRecordReader")
class FixedLengthRecordReader(ReaderBase):
    """Records of one length; the key is "file:number".

    >>> with tf.Graph().as_default():
    ...     queue = tf.compat.v1.train.string_input_producer(["a.bin"])
    ...     key, record = tf.compat.v1.FixedLengthRecordReader(record_bytes=4).read(queue)
    ...     record.dtype
    tf.string
    """

    def __init__(
        self, record_bytes: int, header_bytes: int | None = None, footer_bytes: int | None = None,
        hop_bytes: int | None = None, name: str | None = None, encoding: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name)
        self._size, self._header, self._footer = record_bytes, header_bytes or 0, footer_bytes or 0
        self._hop = hop_bytes or record_bytes

    def _records(self, name: str) -> Iterator[Record]:
        with file_errors(name), open(name, "rb") as file:
            contents = file.read()
        end = len(contents) - self._footer
        for number, start in enumerate(range(self._header, end - self._size + 1, self._hop)):
            yield f"{name}:{number}".encode(), contents[start : start + self._size]
