"""Datasets of files: text lines, TFRecords and records of fixed length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src.data.dataset import Dataset
from tapeflow._src.data.files import fixed_records, records, text_lines
from tapeflow._src.data.pipes.pipe import Pipe
from tapeflow._src.namespace import public


class FileDataset(Dataset):
    """A dataset that is read from files; what is made of it is a plain dataset."""

    def _then(self, pipe: Any, *others: Any) -> Any:
        made = Dataset(pipe, self._options)
        made._made_of = [self, *others]
        return made


class _VariableLengthDataset(FileDataset):
    """A dataset of records that may differ in length; a subclass says how they are read."""

    _read: Callable[[Any, Any], Pipe]

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(self._read(filenames, compression_type))


@public("data.TextLineDataset", "compat.v1.data.TextLineDataset")
class TextLineDataset(_VariableLengthDataset):
    """The lines of text files, as strings without their ends.

    >>> with open("poem.txt", "w") as file:
    ...     _ = file.write("one\\ntwo\\n")
    >>> list(tf.data.TextLineDataset("poem.txt").as_numpy_iterator())
    [b'one', b'two']
    """

    _read = staticmethod(text_lines)


@public("data.TFRecordDataset", "compat.v1.data.TFRecordDataset")
class TFRecordDataset(_VariableLengthDataset):
    """The records of TFRecord files, as strings.

    >>> with tf.data.experimental.TFRecordWriter("two.tfrecord") as writer:
    ...     writer.write(tf.data.Dataset.from_tensor_slices(["a", "b"]))
    >>> list(tf.data.TFRecordDataset("two.tfrecord").as_numpy_iterator())
    [b'a', b'b']
    """

    _read = staticmethod(records)


@public("data.FixedLengthRecordDataset", "compat.v1.data.FixedLengthRecordDataset")
class FixedLengthRecordDataset(FileDataset):
    """The records of files in which all records have one length, as strings.

    >>> with open("six.bin", "wb") as file:
    ...     _ = file.write(b"abcdef")
    >>> list(tf.data.FixedLengthRecordDataset("six.bin", 3).as_numpy_iterator())
    [b'abc', b'def']
    """

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
        compression_type: Any = None,
        num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(fixed_records(filenames, record_bytes, header_bytes, footer_bytes, compression_type))
