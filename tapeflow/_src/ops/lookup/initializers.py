"""What a table begins with: keys and values given as tensors, or by the lines of a file."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor, get_static_value
from tapeflow._src.types.dtypes import as_dtype, int64, string
from tapeflow._src.types.errors import InvalidArgumentError, UnimplementedError
from tapeflow._src.types.file_errors import file_errors, file_name


def elements(tensor: Any) -> list[Any]:
    """The elements of a tensor as Python values, in order; those of a graph must be constants."""
    value = get_static_value(tensor) if _core.is_symbolic(tensor) else tensor.numpy()
    if value is None:
        raise UnimplementedError.of("a table begins with keys and values that are constants; got tensors of a graph")
    return np.asarray(value).reshape(-1).tolist()


class KeyedDtypes:
    """The dtypes of the keys and values of a table or of what fills it."""

    _key_dtype: Any
    _value_dtype: Any

    @property
    def key_dtype(self) -> Any:
        """The `tf.DType` of the keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> Any:
        """The `tf.DType` of the values."""
        return self._value_dtype


@public("lookup.KeyValueTensorInitializer", "compat.v1.lookup.KeyValueTensorInitializer")
class KeyValueTensorInitializer:
    """The keys and values that a table begins with.

    >>> tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]).key_dtype
    tf.string
    """

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: str | None = None
    ) -> None:
        self._keys = convert_to_tensor(keys, key_dtype)
        self._values = convert_to_tensor(values, value_dtype)
        if self._keys.shape != self._values.shape:
            raise InvalidArgumentError.of(
                f"KeyValueTensorInitializer: keys and values must have one shape; got {self._keys.shape} and "
                f"{self._values.shape}"
            )

    @property
    def key_dtype(self) -> Any:
        """The `tf.DType` of the keys."""
        return self._keys.dtype

    @property
    def value_dtype(self) -> Any:
        """The `tf.DType` of the values."""
        return self._values.dtype

    def initialize(self, table: Any) -> None:
        """Puts the keys and values into a table."""
        table.begin_with(self.pairs())

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        """Keys with their values."""
        return zip(elements(self._keys), elements(self._values))


@public("lookup.TextFileIndex", "compat.v1.lookup.TextFileIndex")
class TextFileIndex:
    """Which part of a line is meant: the whole of it, its number, or (a number from 0 on) a column.

    >>> tf.lookup.TextFileIndex.LINE_NUMBER
    -1
    """

    WHOLE_LINE = -2
    LINE_NUMBER = -1


def _known_name(filename: Any) -> Any:
    """The name that a tensor of a graph holds: a table is filled when it is made."""
    known = get_static_value(filename)
    if known is None:
        raise UnimplementedError.of("lookup.TextFileInitializer: `filename` must be constant in a graph; got a tensor")
    name = known.item() if isinstance(known, np.ndarray) else known
    return name.decode()


@public("lookup.TextFileInitializer", "compat.v1.lookup.TextFileInitializer")
class TextFileInitializer(KeyedDtypes):
    """The keys and values that the lines of a file hold.

    >>> tf.io.write_file("words.txt", "a\\nb\\n")
    >>> line, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
    >>> words = tf.lookup.TextFileInitializer("words.txt", tf.string, line, tf.int64, number)
    >>> tf.lookup.StaticHashTable(words, -1).lookup(tf.constant(["b", "c"]))
    <tf.Tensor: shape=(2,), dtype=int64, numpy=array([ 1, -1])>
    """

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:
        if hasattr(filename, "__tf_tensor__"):
            filename = convert_to_tensor(filename)
        if _core.is_tensor(filename):
            if filename.dtype != string:
                raise ValueError(f"`filename` argument required for tables must be a string; got {filename!r}")
            if filename.shape.rank not in (0, None):
                raise InvalidArgumentError.of(f"TextFileInitializer: filename must be a scalar; got {filename.shape}")
            if _core.is_symbolic(filename):
                filename = _known_name(filename)
        elif not filename:
            raise ValueError(f"`filename` argument required for tables; got {filename!r}")
        self._key_dtype, self._value_dtype = as_dtype(key_dtype), as_dtype(value_dtype)
        for what, index, dtype in (("key", key_index, self._key_dtype), ("value", value_index, self._value_dtype)):
            if index < TextFileIndex.WHOLE_LINE:
                raise ValueError(f"Invalid {what}_index {index}.")
            if index == TextFileIndex.LINE_NUMBER and dtype != int64:
                raise ValueError(
                    f"`{what}_dtype` must be `tf.int64` if `{what}_index` is TextFileIndex.LINE_NUMBER; got {dtype}"
                )
            if index == TextFileIndex.WHOLE_LINE and dtype != string and not dtype.is_integer:
                raise ValueError(
                    f"`{what}_dtype` must be string or integer if `{what}_index` is WHOLE_LINE; got {dtype}"
                )
        self._filename, self._delimiter, self._vocab_size = filename, delimiter, vocab_size
        self._key_index, self._value_index, self._offset = key_index, value_index, value_index_offset

    @property
    def _shared_name(self) -> str:
        """The name by which tables of one file and the same columns are known."""
        size = "" if self._vocab_size is None else f"{self._vocab_size}_"
        offset = f"_{self._offset}" if self._offset else ""
        return f"hash_table_{file_name(self._filename)}_{size}{self._key_index}_{self._value_index}{offset}"

    def _part(self, line: bytes, number: int, index: int, dtype: Any) -> Any:
        if index == TextFileIndex.LINE_NUMBER:
            return number + self._offset
        part = line
        if index >= 0:
            columns = line.split(self._delimiter.encode())
            if index >= len(columns):
                raise InvalidArgumentError.of(
                    f"TextFileInitializer: Invalid number of columns in {file_name(self._filename)} line {number} "
                    f"({line.decode(errors='replace')}): expected at least {index + 1}, got {len(columns)}",
                )
            part = columns[index]
        try:
            return part if dtype == string else int(part) if dtype.is_integer else float(part)
        except ValueError:
            shown = part.decode(errors="replace")
            raise InvalidArgumentError.of(
                f"TextFileInitializer: Field {shown} in line {number} is not a valid {dtype.name}."
            ) from None

    def initialize(self, table: Any) -> None:
        """Puts the keys and values into a table."""
        table.begin_with(self.pairs())

    def pairs(self) -> Iterable[tuple[Any, Any]]:
        """Keys with their values."""
        name = file_name(self._filename)
        with file_errors(name), open(name, "rb") as file:
            lines = file.read().split(b"\n")
        if lines and not lines[-1]:
            lines.pop()
        lines = [line.removesuffix(b"\r") for line in lines]
        if self._vocab_size is not None:
            if len(lines) < self._vocab_size:
                raise InvalidArgumentError.of(
                    f"Invalid vocab_size in {name}: expected {self._vocab_size} but got {len(lines)}"
                )
            lines = lines[: self._vocab_size]
        for number, line in enumerate(lines):
            key = self._part(line, number, self._key_index, self._key_dtype)
            yield key, self._part(line, number, self._value_index, self._value_dtype)
