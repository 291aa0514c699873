"""Attributes of nodes: messages as Python values, and back."""

from __future__ import annotations

from typing import Any

from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.tensor_messages import array_of, shape_message, shape_of
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.tensor_shape import as_shape

_KIND_BY_FIELD = {
    "string": "s", "int": "i", "float": "f", "bool": "b", "type": "type", "shape": "shape", "tensor": "tensor",
    "func": "func",
}  # fmt: skip


def python_value(attribute: Any) -> Any:
    """An attribute as the operations of `tf.raw_ops` take it; a function as its name."""
    kind = attribute.WhichOneof("value")
    if kind is None:
        return None
    if kind == "list":
        fields = attribute.list.ListFields()
        return [_plain(field.name, x) for field, values in fields for x in values]
    return _plain(kind, getattr(attribute, kind))


def _plain(kind: str, value: Any) -> Any:
    if kind == "s":
        return value.decode(errors="surrogateescape")
    if kind == "type":
        try:
            return as_dtype(value)
        except TypeError:
            raise ValueError(f"{value} is no dtype") from None
    if kind == "shape":
        return shape_of(value)
    if kind == "tensor":
        return array_of(value)
    return value.name if kind == "func" else value


def attribute_message(kind: str, value: Any) -> Any:
    """An attribute of this kind, "int" or "list(type)", as a message."""
    if kind.startswith("list("):
        field = _KIND_BY_FIELD[kind[5:-1]]
        result = messages.AttrValue(list=messages.AttrValue.ListValue())
        getattr(result.list, field).extend(_wired(field, x) for x in value)
        return result
    field = _KIND_BY_FIELD[kind]
    return messages.AttrValue(**{field: _wired(field, value)})


def _wired(field: str, value: Any) -> Any:
    if field == "s":
        return value.encode(errors="surrogateescape") if isinstance(value, str) else bytes(value)
    if field == "type":
        return as_dtype(value).as_datatype_enum
    if field == "shape":
        return shape_message(as_shape(value))
    if field == "func":
        return value if isinstance(value, messages.NameAttrList) else messages.NameAttrList(name=value)
    return {"i": int, "f": float, "b": bool}.get(field, lambda x: x)(value)
