"""`tf.io.decode_csv`: lines of comma separated values as one tensor per column."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.types.errors import InvalidArgumentError

_DTYPES = ("float32", "float64", "int32", "int64", "string")


def _refuse(what: str) -> InvalidArgumentError:
    return InvalidArgumentError.of(f"decode_csv: {what}")


def split_line(line: bytes, delimiter: bytes, quotes: bool) -> list[tuple[bytes, bool]]:
    """The fields of a line, each with whether it stood in quotes.

    >>> split_line(b'a,"b,c"', b",", True)
    [(b'a', False), (b'b,c', True)]
    """
    if not quotes or b'"' not in line:
        if quotes and (b"\n" in line or b"\r" in line):
            raise _refuse("Unquoted fields cannot have quotes/CRLFs inside")
        return [(field, False) for field in line.split(delimiter)]
    found, at = [], 0
    while True:
        if line[at : at + 1] == b'"':
            field, at = b"", at + 1
            while True:
                end = line.find(b'"', at)
                if end < 0:
                    raise _refuse("Quoted field has to end with quote followed by delim or end")
                field += line[at:end]
                at = end + 1
                if line[at : at + 1] != b'"':
                    break
                field, at = field + b'"', at + 1
            if at < len(line) and line[at : at + 1] != delimiter:
                raise _refuse("Quoted field has to end with quote followed by delim or end")
            found.append((field, True))
        else:
            end = line.find(delimiter, at)
            end = len(line) if end < 0 else end
            field = line[at:end]
            if any(mark in field for mark in (b'"', b"\n", b"\r")):
                raise _refuse("Unquoted fields cannot have quotes/CRLFs inside")
            found.append((field, False))
            at = end
        if at >= len(line):
            return found
        at += 1


def _column(fields: list[bytes | None], default: Any, place: int) -> np.ndarray:
    """One column: what is None takes the default, of which there may be none."""
    dtype = default.dtype
    if any(f is None for f in fields):
        if default.shape.num_elements() == 0:
            raise _refuse(f"Field {place} is required but missing in record {fields.index(None)}!")
        value = np.asarray(default.numpy()).reshape(-1)[0]
    if dtype.name == "string":
        found = np.empty(len(fields), dtype=object)
        found[:] = [value if f is None else f for f in fields]
        return found
    number: Any = int if dtype.is_integer else float
    result = np.zeros(len(fields), dtype.as_numpy_dtype)
    for record, field in enumerate(fields):
        try:
            result[record] = value if field is None else number(field.strip())
        except (ValueError, OverflowError):
            shown = (field or b"").decode(errors="replace")
            raise _refuse(f"Field {place} in record {record} is not a valid {_legacy(dtype)}: {shown}") from None
    return result


def _legacy(dtype: Any) -> str:
    return str({"float32": "float", "float64": "double"}.get(dtype.name, dtype.name))


@public("io.decode_csv")
def decode_csv(
    records: Any,
    record_defaults: Any,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Any = None,
    name: str | None = None,
) -> list[Any]:
    """The columns of lines of text, each a tensor like `records` with the dtype of its default.

    A field that is empty, or `na_value`, takes the default; where the default is an empty list there must be a value.

    >>> tf.io.decode_csv(["1,2.5", "3,"], [[0], [1.5]])
    [<tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 3], dtype=int32)>, <tf.Tensor: shape=(2,), dtype=float32,
     numpy=array([2.5, 1.5], dtype=float32)>]
    """
    if any(default is None for default in record_defaults):
        raise ValueError(
            "record_defaults: None is no default; use a list of one value, or an empty tensor of the dtype"
        )
    defaults = [convert_to_tensor(default) for default in record_defaults]
    for default in defaults:
        if (
            default.dtype.name not in _DTYPES
            or (default.shape.num_elements() or 0) > 1
            or (default.shape.rank or 0) > 1
        ):
            raise ValueError(
                f"decode_csv: a default must hold at most one value of {', '.join(_DTYPES)}; got {default.dtype.name} "
                f"of shape {default.shape}"
            )
    if len(field_delim) != 1 or field_delim in '"\n\r':
        raise ValueError(f"Argument field_delim must be a single character; got {field_delim!r}")
    columns = None if select_cols is None else [int(c) for c in select_cols]
    if columns is not None and len(columns) != len(defaults):
        raise ValueError(
            f"Length of select_cols and record_defaults do not match. Got {len(columns)} and {len(defaults)}"
        )
    if columns is not None and columns != sorted(set(columns)):
        raise ValueError(f"select_cols is not strictly increasing. Got {select_cols}")
    tensor = convert_to_tensor(records, None if _core.is_tensor(records) else "string")

    def run(tensor: Any) -> list[Any]:
        rows: list[list[bytes | None]] = []
        for number, line in enumerate(np.asarray(tensor.numpy(), dtype=object).reshape(-1)):
            fields = split_line(line, field_delim.encode(), use_quote_delim)
            if columns is not None:
                if columns and columns[-1] >= len(fields):
                    raise _refuse(f"Expect {columns[-1] + 1} fields but have {len(fields)} in record {number}")
                fields = [fields[c] for c in columns]
            if len(fields) != len(defaults):
                raise _refuse(f"Expect {len(defaults)} fields but have {len(fields)} in record {number}")
            rows.append([None if not f or f == na_value.encode() else f for f, _ in fields])
        values = [[row[place] for row in rows] for place in range(len(defaults))]
        shape = tensor.shape.as_list()
        return [
            convert_to_tensor(_column(values[place], default, place).reshape(shape), default.dtype)
            for place, default in enumerate(defaults)
        ]

    return host_call(run, [tensor], [(default.dtype, tensor.shape) for default in defaults])
