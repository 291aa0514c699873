"""TensorFlow's messages as classes of Google's protobuf, made from the schemas beside this when one is first needed.

They live in a descriptor pool of their own: a TensorFlow in the same process has classes of the same names in the
default pool, and the two never meet. `from ...protos import messages`, then `messages.GraphDef()`.
"""

from __future__ import annotations

import copyreg
import functools
from typing import Any

from tapeflow._src.io.protos.schema import SCHEMA
from tapeflow._src.io.protos.session_schema import SESSION_SCHEMA

_PACKAGE = "tensorflow"
_SCALARS = {
    "double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "fixed32": 7, "bool": 8, "string": 9,
    "bytes": 12, "uint32": 13, "sint32": 17, "sint64": 18,
}  # fmt: skip
_MESSAGE, _ENUM, _OPTIONAL, _REPEATED = 11, 14, 1, 3


def __getattr__(name: str) -> Any:
    """The class of a message: `messages.GraphDef`."""
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        found = message_class(name)
    except KeyError:
        raise AttributeError(f"there is no message {name!r}") from None
    globals()[name] = found
    return found


def message_class(name: str) -> Any:
    """The class of the message with this name, "GraphDef" or "AttrValue.ListValue"."""
    from google.protobuf import message_factory  # an import that only programs with messages pay for

    found = message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))
    copyreg.pickle(found, _reduced)
    for inner in found.DESCRIPTOR.nested_types:
        if not hasattr(found, inner.name):  # protobuf without its compiled part
            setattr(found, inner.name, message_class(f"{name}.{inner.name}"))
    return found


def enum_values(name: str) -> dict[str, int]:
    """The numbers of an enumeration by their names."""
    return {value.name: value.number for value in _pool().FindEnumTypeByName(f"{_PACKAGE}.{name}").values}


def enum_type(name: str) -> Any:
    """An enumeration as generated modules have it: `enum_type("DataType").Name(1)`, `.values()`, `.DT_FLOAT`."""
    from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

    return EnumTypeWrapper(_pool().FindEnumTypeByName(f"{_PACKAGE}.{name}"))


def _reduced(message: Any) -> tuple[Any, ...]:
    """How a message is copied to another process: its name and its bytes."""
    return _revived, (message.DESCRIPTOR.full_name.removeprefix(f"{_PACKAGE}."), message.SerializeToString())


def _revived(name: str, data: bytes) -> Any:
    return message_class(name).FromString(data)


def decode_errors() -> tuple[type[Exception], type[Exception]]:
    """What parsing bytes raises that are no message; protobuf without its compiled part has an error for text."""
    from google.protobuf.message import DecodeError

    return DecodeError, UnicodeDecodeError


@functools.cache
def _pool() -> Any:
    from google.protobuf import any_pb2, descriptor_pb2, descriptor_pool, wrappers_pb2

    pool = descriptor_pool.DescriptorPool()
    file = descriptor_pb2.FileDescriptorProto(name="tapeflow/messages.proto", package=_PACKAGE, syntax="proto3")
    for known in (any_pb2, wrappers_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
        file.dependency.append(known.DESCRIPTOR.name)
    reader = _Reader(file)
    reader.read(SCHEMA)
    reader.read(SESSION_SCHEMA)
    pool.AddSerializedFile(file.SerializeToString())
    return pool


class _Reader:
    """Fills the description of a file with the messages of the schema."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._message_by_name: dict[str, Any] = {}

    def read(self, text: str) -> None:
        """Reads all lines."""
        kind, name, body = "", "", ""
        for line in [*text.strip().splitlines(), "end end"]:
            if line.startswith("  "):
                body += f" {line}"
                continue
            if kind == "message":
                self._add_message(name, body)
            elif kind == "enum":
                self._add_enum(name, body)
            (kind, name), body = line.split(), ""

    def _owner(self, name: str) -> tuple[Any, str]:
        outer, _, own = name.rpartition(".")
        return (self._message_by_name[outer] if outer else None), own

    def _add_enum(self, name: str, body: str) -> None:
        owner, own = self._owner(name)
        enum = (self._file if owner is None else owner).enum_type.add(name=own)
        for item in body.split():
            value, _, number = item.partition("=")
            enum.value.add(name=value, number=int(number))
            if own == "DataType" and int(number):  # references to variables of TensorFlow 1
                enum.value.add(name=f"{value}_REF", number=int(number) + 100)

    def _add_message(self, name: str, body: str) -> None:
        owner, own = self._owner(name)
        message = self._file.message_type.add(name=own) if owner is None else owner.nested_type.add(name=own)
        self._message_by_name[name] = message
        for line in filter(str.strip, body.split(";")):
            number, field_name, *kind = line.split()
            field = message.field.add(name=field_name, number=int(number), label=_OPTIONAL)
            if "of" in kind:
                at = kind.index("of")
                field.oneof_index = self._oneof(message, kind[at + 1])
                kind = kind[:at]
            if kind[-1].endswith("*"):
                field.label, kind[-1] = _REPEATED, kind[-1][:-1]
            if kind[0] == "map":
                entry = message.nested_type.add(name="".join(p.title() for p in field_name.split("_")) + "Entry")
                entry.options.map_entry = True
                _set_type(entry.field.add(name="key", number=1, label=_OPTIONAL), kind[1:2])
                _set_type(entry.field.add(name="value", number=2, label=_OPTIONAL), kind[2:])
                field.label, kind = _REPEATED, [f"{name}.{entry.name}"]
            _set_type(field, kind)

    @staticmethod
    def _oneof(message: Any, name: str) -> int:
        names = [oneof.name for oneof in message.oneof_decl]
        if name not in names:
            message.oneof_decl.add(name=name)
            names.append(name)
        return names.index(name)


def _set_type(field: Any, kind: list[str]) -> None:
    if kind[0] in _SCALARS:
        field.type = _SCALARS[kind[0]]
        return
    field.type = _ENUM if kind[0] == "enum" else _MESSAGE
    field.type_name = f".{kind[-1]}" if kind[-1].startswith("google.") else f".{_PACKAGE}.{kind[-1]}"
