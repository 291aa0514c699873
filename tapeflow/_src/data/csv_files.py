"""Files of comma-separated values: `tf.data.experimental.CsvDataset` and `make_csv_dataset`."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.data.csv_records import CsvRecords, Dialect
from tapeflow._src.data.dataset import Dataset
from tapeflow._src.data.files import matching_files, texts
from tapeflow._src.data.pipes.pipe import Iteration, Pipe
from tapeflow._src.data.pipes.structure import Leaves
from tapeflow._src.function.trace import running_at_once
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor, get_static_value
from tapeflow._src.types.dtypes import DType, as_dtype, float32, float64, int32, int64, string
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_spec import TensorSpec

_TYPES = (int32, int64, float32, float64, string)  # the narrowest first, as inference tries them


class CsvRows(Pipe):
    """The rows of files, a scalar for each column that is chosen."""

    name = "CsvDatasetV2"

    def __init__(
        self,
        filenames: list[str],
        defaults: Sequence[Any],
        columns: Sequence[int] | None,
        header: bool,
        compression: str | None,
        dialect: Dialect,
        na_value: str,
    ) -> None:
        self._files, self._columns, self._header = filenames, columns, header
        self._compression, self._dialect, self._na = compression, dialect, na_value
        self._types, self._defaults = zip(*[_type_and_default(default) for default in defaults])
        super().__init__(tuple([TensorSpec([], dtype) for dtype in self._types]))

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        return map(self._element, CsvRecords(self._files, self._compression, self._dialect, self._header))

    def _element(self, row: list[str]) -> Leaves:
        fields = row if self._columns is None else [row[i] for i in self._columns if i < len(row)]
        if len(fields) != len(self._types):
            count = "more" if len(fields) > len(self._types) else len(fields)
            raise InvalidArgumentError.of(f"Expect {len(self._types)} fields but have {count} in record")
        return tuple([self._parsed(i, text) for i, text in enumerate(fields)])

    def _parsed(self, number: int, text: str) -> Any:
        dtype = self._types[number]
        if text == "" or text == self._na:
            default = self._defaults[number]
            if default is None:
                raise InvalidArgumentError.of(f"Field {number} is required but missing in record!")
            return default
        if dtype is string:
            return convert_to_tensor(text.encode(errors="surrogateescape"), string)
        try:
            return convert_to_tensor(np.asarray(text.strip()).astype(dtype.as_numpy_dtype))
        except (ValueError, OverflowError):
            raise InvalidArgumentError.of(f"Field {number} in record is not a valid {dtype.name}: {text}") from None


def _type_and_default(default: Any) -> tuple[DType, Any]:
    """A dtype alone makes a column required; a value says what stands where there is none."""
    if isinstance(default, DType | str | type) and not (isinstance(default, str) and default not in _names()):
        return as_dtype(default), None
    with running_at_once():  # a constant of a graph has its value
        known = get_static_value(default) if isinstance(default, _core.Tensor) else default
        if known is None:
            raise ValueError(f"CsvDataset: record_defaults must be known when the dataset is made; got {default}")
        tensor = convert_to_tensor(known, default.dtype if isinstance(default, _core.Tensor) else None)
    if tensor.shape.rank:
        if tensor.shape[0] == 0:
            return tensor.dtype, None
        with running_at_once():
            tensor = tensor[0]
    return tensor.dtype, tensor


def _names() -> set[str]:
    return {dtype.name for dtype in _TYPES}


@public("data.experimental.CsvDataset", "compat.v1.data.experimental.CsvDataset")
class CsvDataset(Dataset):
    """The rows of files of comma-separated values, a scalar for each column.

    >>> with open("pairs.csv", "w") as file:
    ...     _ = file.write("1,a\\n2,b\\n")
    >>> list(tf.data.experimental.CsvDataset("pairs.csv", [tf.int32, tf.string]).as_numpy_iterator())
    [(np.int32(1), b'a'), (np.int32(2), b'b')]
    """

    def __init__(
        self,
        filenames: Any,
        record_defaults: Sequence[Any],
        compression_type: str | None = None,
        buffer_size: Any = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
        exclude_cols: Sequence[int] | None = None,
    ) -> None:
        if select_cols is not None and exclude_cols is not None:
            raise InvalidArgumentError.of("CsvDataset: Either select_cols or exclude_cols should be empty")
        if buffer_size is not None and int(buffer_size) <= 0:
            raise InvalidArgumentError.of(f"CsvDataset: buffer_size should be positive; got {int(buffer_size)}")
        names = texts(filenames)
        dialect = Dialect(field_delim, use_quote_delim)
        columns = None if select_cols is None else list(select_cols)
        if exclude_cols is not None:
            first = next(CsvRecords(names[:1], compression_type, dialect, False), [])
            columns = [i for i in range(len(first)) if i not in set(exclude_cols)]
        super().__init__(CsvRows(names, record_defaults, columns, header, compression_type, dialect, na_value))

    def _then(self, pipe: Any, *others: Any) -> Any:
        made = Dataset(pipe, self._options)
        made._made_of = [self, *others]
        return made


def _inferred(fields: list[str], na_value: str) -> DType:
    """The narrowest type that all fields have; what is missing has any."""
    place = 0
    for text in fields:
        while text not in ("", na_value) and not _fits(text.strip(), _TYPES[place]):
            place += 1
    return _TYPES[place]


def _fits(text: str, dtype: DType) -> bool:
    if dtype is string:
        return True
    try:
        if dtype.is_integer:
            return bool(dtype.min <= int(text) <= dtype.max)
        number = float(text)
    except ValueError:
        return False
    return dtype is float64 or abs(number) <= float(float32.max) or number != number or number in (np.inf, -np.inf)


@public("data.experimental.make_csv_dataset", "compat.v1.data.experimental.make_csv_dataset")
def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[Any] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
    encoding: str = "utf-8",
) -> Dataset:
    """Batches of rows, as dictionaries of columns; with `label_name`, pairs of dictionary and label.

    >>> with open("people.csv", "w") as file:
    ...     _ = file.write("name,age\\nann,31\\nbob,27\\n")
    >>> dataset = tf.data.experimental.make_csv_dataset(
    ...     "people.csv", batch_size=2, label_name="age", num_epochs=1, shuffle=False)
    >>> [(features["name"].numpy().tolist(), age.numpy().tolist()) for features, age in dataset]
    [([b'ann', b'bob'], [31, 27])]
    """
    names = matching_files(file_pattern)
    dialect = Dialect(field_delim, use_quote_delim)
    if column_names is None:
        if not header:
            raise ValueError("Expected `column_names` or `header` arguments. Neither is provided.")
        column_names = next(CsvRecords(names[:1], compression_type, dialect, False), [])
    column_names = list(column_names)
    if len(set(column_names)) != len(column_names):
        raise ValueError("Cannot have duplicate column names.")
    chosen = _chosen(column_names, select_columns)
    if column_defaults is None:
        rows = CsvRecords(names, compression_type, dialect, header)
        seen = list(itertools.islice(rows, num_rows_for_inference))
        types = [_inferred([row[i] for row in seen if i < len(row)], na_value) for i in chosen]
        column_defaults = [convert_to_tensor("" if dtype is string else 0, dtype) for dtype in types]
    columns = [column_names[i] for i in chosen]
    if label_name is not None and label_name not in columns:
        raise ValueError(f"`label_name` provided must be one of the columns: {columns}. Received: {label_name}.")
    if shuffle:
        order = [*Dataset.from_tensor_slices(names).shuffle(len(names), shuffle_seed).as_numpy_iterator()]
        names = [name.decode() for name in order]
    pipe = CsvRows(names, column_defaults, chosen, header, compression_type, dialect, na_value)
    dataset = Dataset(pipe)
    if ignore_errors:
        dataset = dataset.ignore_errors()
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        dataset = dataset.repeat(num_epochs)
    dataset = dataset.batch(batch_size, drop_remainder=num_epochs is None)
    result: Dataset = dataset.map(_by_name(columns, label_name)).prefetch(prefetch_buffer_size or 1)
    return result


def _by_name(columns: list[str], label_name: str | None) -> Callable[..., Any]:
    def named(*values: Any) -> Any:
        features = OrderedDict(zip(columns, values))
        return features if label_name is None else (features, features.pop(label_name))

    return named


def _chosen(names: list[str], selected: Sequence[Any] | None) -> list[int]:
    if selected is None:
        return list(range(len(names)))
    for column in selected:
        if isinstance(column, str) and column not in names:
            raise ValueError(
                f"`select_columns` has the column {column!r}, which is not there; the columns are {names}."
            )
    return sorted(names.index(column) if isinstance(column, str) else int(column) for column in selected)
