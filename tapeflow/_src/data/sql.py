"""`tf.data.experimental.SqlDataset`: the rows of a query to an SQLite file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from tapeflow._src.data.files import texts
from tapeflow._src.data.pipes.pipe import Iteration, Pipe
from tapeflow._src.data.pipes.structure import Leaves
from tapeflow._src.data.readers import FileDataset
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import DType, as_dtype, float64, string
from tapeflow._src.types.errors import InvalidArgumentError, UnknownError
from tapeflow._src.types.tensor_spec import TensorSpec

_ROWS_AT_ONCE = 1000
_TYPES = ("string", "int8", "int16", "int32", "int64", "uint8", "uint16", "bool", "float64")


class SqlRows(Pipe):
    """The rows of a query, a scalar for each column. The file is opened for reading alone."""

    name = "SqlDataset"

    def __init__(self, file: str, query: str, output_types: Any) -> None:
        self._file, self._query = file, query
        super().__init__(nest.map_structure(lambda dtype: TensorSpec([], dtype), output_types))

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        import sqlite3  # few programs need it

        path = f"{Path(self._file).absolute().as_uri()}?mode=ro"
        try:
            with closing(sqlite3.connect(path, uri=True, check_same_thread=False)) as connection:
                rows = connection.execute(self._query)
                columns = len(rows.description or ())
                if columns != len(self.specs):
                    raise InvalidArgumentError.of(
                        f"SqlDataset: The number of columns in query ({columns}) must match the number of elements in "
                        f"output_types ({len(self.specs)})."
                    )
                while part := rows.fetchmany(_ROWS_AT_ONCE):  # the last part ends the query, and with it the lock
                    for row in part:
                        yield tuple([_as_tensor(value, spec.dtype) for value, spec in zip(row, self.specs)])
        except sqlite3.Error as error:
            raise UnknownError.of(f"SqlDataset: {error}: {self._query} (in {self._file})") from None


def _as_tensor(value: Any, dtype: DType) -> Any:
    """A value of a column as SQLite converts it: text that is no number is 0, and what is missing is empty."""
    if dtype == string:
        return convert_to_tensor("" if value is None else value if isinstance(value, bytes) else str(value), string)
    number = value if isinstance(value, int | float) else _leading_number(value)
    if dtype == float64:
        return convert_to_tensor(float(number), float64)
    if dtype.name == "bool":
        return convert_to_tensor(bool(number))
    return convert_to_tensor(np.asarray(int(number), np.int64).astype(dtype.as_numpy_dtype))


def _leading_number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0


@public("data.experimental.SqlDataset", "compat.v1.data.experimental.SqlDataset")
class SqlDataset(FileDataset):
    """The rows that a query to an SQLite file gives, a scalar for each column.

    >>> import sqlite3
    >>> connection = sqlite3.connect("people.sqlite")
    >>> _ = connection.execute("create table people (name text, age integer)")
    >>> _ = connection.execute("insert into people values ('ann', 31), ('bob', 27)")
    >>> connection.commit(), connection.close()
    (None, None)
    >>> query = "select name, age from people order by age"
    >>> dataset = tf.data.experimental.SqlDataset("sqlite", "people.sqlite", query, (tf.string, tf.int32))
    >>> list(dataset.as_numpy_iterator())
    [(b'bob', np.int32(27)), (b'ann', np.int32(31))]
    """

    def __init__(self, driver_name: Any, data_source_name: Any, query: Any, output_types: Any) -> None:
        arguments = {"driver_name": driver_name, "data_source_name": data_source_name, "query": query}
        given = {name: convert_to_tensor(value, string) for name, value in arguments.items()}
        for name, tensor in given.items():
            if tensor.shape.rank != 0:
                raise InvalidArgumentError.of(f"SqlDataset: {name} must be a scalar; got shape {tensor.shape}")
        driver, file, statement = (texts(tensor)[0] for tensor in given.values())
        if driver != "sqlite":
            raise InvalidArgumentError.of(
                f"The database type, {driver}, is not supported by SqlDataset. The set of supported databases is: "
                "{'sqlite'}."
            )
        types = as_dtype(output_types) if isinstance(output_types, list) else nest.map_structure(as_dtype, output_types)
        for dtype in nest.flatten(types):
            if dtype.name not in _TYPES:
                raise InvalidArgumentError.of(
                    f"SqlDataset: Each element of `output_types_` must be one of: {', '.join(_TYPES)}; got {dtype.name}"
                )
        super().__init__(SqlRows(file, statement, types))
