"""Serialised examples as lists of values by name; it knows no tensors."""

from __future__ import annotations

from typing import Any

from tapeflow._src.io.protos import wire
from tapeflow._src.types.errors import InvalidArgumentError

Lists = dict[str, tuple[str, list[Any]]]  # by name: the dtype, and the values

_DTYPE_BY_FIELD = {1: "string", 2: "float32", 3: "int64"}


def refuse(what: str) -> InvalidArgumentError:
    """The error for an example that is not as it should be."""
    return InvalidArgumentError.of(what)


def _feature(data: bytes) -> tuple[str, list[Any]] | None:
    """The values of one feature; None if it holds none of the three lists."""
    found = None
    for number, _, body in wire.fields(data):
        if number not in _DTYPE_BY_FIELD:
            continue
        values: list[Any] = []
        for inner, kind, value in wire.fields(body):
            if inner == 1:
                if number == 1:
                    values.append(value)
                else:
                    values.extend((wire.decode_floats if number == 2 else wire.decode_integers)(kind, value))
        found = _DTYPE_BY_FIELD[number], values
    return found


def _entries(data: bytes) -> list[tuple[str, bytes]]:
    """The names and bodies of a map."""
    found = []
    for number, _, entry in wire.fields(data):
        if number == 1:
            parts = {inner: value for inner, _, value in wire.fields(entry)}
            found.append((parts.get(1, b"").decode(), parts.get(2, b"")))
    return found


def _features(data: bytes) -> Lists:
    found = ((name, _feature(body)) for name, body in _entries(data))
    return {name: feature for name, feature in found if feature is not None}


def read_example(data: bytes) -> Lists:
    """The features of an example."""
    try:
        return {k: v for number, _, body in wire.fields(data) if number == 1 for k, v in _features(body).items()}
    except (wire.WireError, UnicodeDecodeError, AttributeError, TypeError):
        shown = data[:100].decode("latin-1")
        raise refuse(f"Could not parse example input, value: '{shown}'") from None


def read_sequence_example(data: bytes) -> tuple[Lists, dict[str, list[tuple[str, list[Any]] | None]]]:
    """The features of a sequence, and of its steps."""
    context: Lists = {}
    lists: dict[str, Any] = {}
    try:
        for number, _, body in wire.fields(data):
            if number == 1:
                context.update(_features(body))
            elif number == 2:
                for name, entry in _entries(body):
                    lists[name] = [_feature(item) for inner, _, item in wire.fields(entry) if inner == 1]
    except (wire.WireError, UnicodeDecodeError, AttributeError, TypeError):
        raise refuse("Could not parse sequence example input: invalid protocol buffer") from None
    return context, lists
