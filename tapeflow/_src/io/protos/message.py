"""Messages: classes whose fields are declared, with the methods that protocol buffers have in Python."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, NamedTuple, TypeVar

from tapeflow._src.io.protos import wire

Kind = TypeVar("Kind", bound="Message")


class DecodeError(ValueError):
    """Bytes that are not the message they should be."""


class Field(NamedTuple):
    """One field: its number on the wire, and what it holds: "int", "float", "double", "bytes", "string" or a class.

    `repeated` makes it a list; `mapped` a dictionary from strings. Of the fields with one `choice`, one is set.
    """

    number: int
    kind: Any
    repeated: bool = False
    mapped: bool = False
    choice: str | None = None


_EMPTY = {"int": 0, "float": 0.0, "double": 0.0, "bytes": b"", "string": ""}


class MessageList(list[Any]):
    """A list of messages; `add` makes one at its end."""

    def __init__(self, kind: type[Message], items: Iterable[Any] = ()) -> None:
        super().__init__(items)
        self.kind = kind

    def add(self, **fields: Any) -> Any:
        """A new message at the end of the list."""
        self.append(self.kind(**fields))
        return self[-1]


class MessageMap(dict[str, Any]):
    """Messages by name; one that is asked for comes into being."""

    def __init__(self, kind: type[Message], items: Any = ()) -> None:
        super().__init__(items)
        self.kind = kind

    def __missing__(self, key: Any) -> Any:
        if not isinstance(key, str):
            raise TypeError(f"the key of a map must be a str; got {key!r}")
        self[key] = found = self.kind()
        return found

    def get_or_create(self, key: str) -> Any:
        """The message of this name."""
        return self[key]


class Message:
    """Fields with defaults, kept in `_values`; what is absent there is unset."""

    FIELDS: ClassVar[dict[str, Field]] = {}

    def __init__(self, **fields: Any) -> None:
        self._values: dict[str, Any] = {}
        for name, value in fields.items():
            if name not in self.FIELDS:
                raise ValueError(f'Protocol message {type(self).__name__} has no "{name}" field.')
            if value is not None:
                self._set(name, value)

    def _set(self, name: str, value: Any) -> None:
        field = self.FIELDS[name]
        if field.mapped:
            held: Any = MessageMap(field.kind, {key: _message(field.kind, x) for key, x in dict(value).items()})
        elif field.repeated:
            if isinstance(field.kind, str):
                held = _Scalars(field.kind, value)
            else:
                held = MessageList(field.kind, (_message(field.kind, x) for x in value))
        else:
            held = _checked(field.kind, value) if isinstance(field.kind, str) else _message(field.kind, value)
        if field.choice is not None:
            for other, its in self.FIELDS.items():
                if its.choice == field.choice:
                    self._values.pop(other, None)
        self._values[name] = held

    def __getattr__(self, name: str) -> Any:
        field = type(self).FIELDS.get(name)
        if field is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name in self._values:
            return self._values[name]
        if field.mapped:
            made: Any = MessageMap(field.kind)
        elif field.repeated:
            made = _Scalars(field.kind) if isinstance(field.kind, str) else MessageList(field.kind)
        elif isinstance(field.kind, str):
            return _EMPTY[field.kind]
        else:
            made = field.kind()
            made._unset = True
        self._values[name] = made
        return made

    def __setattr__(self, name: str, value: Any) -> None:
        field = type(self).FIELDS.get(name)
        if field is None:
            object.__setattr__(self, name, value)
        elif field.repeated or field.mapped or not isinstance(field.kind, str):
            what = "message, map, or repeated"
            raise AttributeError(f'Assignment not allowed to {what} field "{name}" in protocol message object.')
        else:
            self._set(name, value)

    def _present(self, name: str) -> bool:
        if name not in self._values:
            return False
        value = self._values[name]
        if isinstance(value, Message):
            return not value.__dict__.get("_unset", False) or any(map(value._present, value._values))
        return bool(value) if isinstance(value, list | dict) else True

    def HasField(self, name: str) -> bool:  # noqa: N802
        """Whether a field that holds one value was set."""
        return self._present(name)

    def WhichOneof(self, choice: str) -> str | None:  # noqa: N802
        """The name of the field that is set, of those among which one can be."""
        return next((name for name, f in self.FIELDS.items() if f.choice == choice and self._present(name)), None)

    def ClearField(self, name: str) -> None:  # noqa: N802
        """Makes a field unset."""
        self._values.pop(name, None)

    def Clear(self) -> None:  # noqa: N802
        """Makes all fields unset."""
        self._values.clear()

    def ListFields(self) -> list[tuple[str, Any]]:  # noqa: N802
        """The names and values of the fields that are set."""
        return [(name, self._values[name]) for name in self.FIELDS if self._present(name)]

    def CopyFrom(self, other: Message) -> None:  # noqa: N802
        """Becomes equal to another message."""
        self.ParseFromString(other.SerializeToString())

    def MergeFrom(self, other: Message) -> None:  # noqa: N802
        """Takes over what is set in another message; lists are joined."""
        self.MergeFromString(other.SerializeToString())

    # ---- bytes

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:  # noqa: N802
        """The message as bytes."""
        found = []
        for name, value in self.ListFields():
            field = self.FIELDS[name]
            if field.mapped:
                for key, item in value.items():
                    entry = wire.encode_field(1, wire.LENGTH, key.encode())
                    entry += wire.encode_field(2, wire.LENGTH, item.SerializeToString())
                    found.append(wire.encode_field(field.number, wire.LENGTH, entry))
            elif field.repeated and field.kind in ("int", "float"):
                encode = wire.encode_integers if field.kind == "int" else wire.encode_floats
                found.append(wire.encode_field(field.number, wire.LENGTH, encode(value)))
            else:
                items = value if field.repeated else [value]
                found.extend(_encode_one(field, item) for item in items)
        return b"".join(found)

    def ByteSize(self) -> int:  # noqa: N802
        """The number of bytes that the message takes."""
        return len(self.SerializeToString())

    def ParseFromString(self, serialized: bytes) -> int:  # noqa: N802
        """Becomes the message that the bytes hold."""
        self.Clear()
        return self.MergeFromString(serialized)

    def MergeFromString(self, serialized: bytes) -> int:  # noqa: N802
        """Takes over what the bytes hold."""
        serialized = bytes(serialized)
        name_by_number = {field.number: name for name, field in self.FIELDS.items()}
        try:
            for number, kind, value in wire.fields(serialized):
                if number in name_by_number:
                    self._merge(name_by_number[number], kind, value)
        except wire.WireError as error:
            raise DecodeError(f"Error parsing message with type '{type(self).__name__}': {error}") from None
        self.__dict__.pop("_unset", None)
        return len(serialized)

    def _merge(self, name: str, kind: int, value: Any) -> None:
        field = self.FIELDS[name]
        if not isinstance(field.kind, str) and isinstance(value, int | float):
            raise wire.WireError(f"the field '{name}' holds a number where a message belongs")
        if field.mapped:
            entry = {number: part for number, _, part in wire.fields(value)}
            if any(isinstance(entry.get(number, b""), int | float) for number in (1, 2)):
                raise wire.WireError(f"an entry of '{name}' holds a number where a key or a message belongs")
            item = field.kind()
            item.MergeFromString(entry.get(2, b""))
            getattr(self, name)[entry.get(1, b"").decode()] = item
        elif not isinstance(field.kind, str):
            item = field.kind() if field.repeated or not self._present(name) else self._values[name]
            item.MergeFromString(value)
            if field.repeated:
                getattr(self, name).append(item)
            else:
                self._set(name, item)
        else:
            found = _decode(field.kind, kind, value)
            if field.repeated:
                getattr(self, name).extend(found)
            elif found:
                self._set(name, found[-1])

    @classmethod
    def FromString(cls: type[Kind], serialized: bytes) -> Kind:  # noqa: N802
        """The message that the bytes hold."""
        found = cls()
        found.MergeFromString(serialized)
        return found

    # ---- as a Python object

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.ListFields() == other.ListFields()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        for name, value in self.ListFields():
            field = self.FIELDS[name]
            if field.mapped:
                for key, item in value.items():
                    inner = ["value {", *(f"  {line}" for line in item._lines()), "}"]
                    yield from (f"{name} {{", f"  key: {_quoted(key.encode())}", *(f"  {i}" for i in inner), "}")
            else:
                for item in value if field.repeated else [value]:
                    if isinstance(item, Message):
                        yield from (f"{name} {{", *(f"  {line}" for line in item._lines()), "}")
                    else:
                        yield f"{name}: {_shown(item)}"

    def __reduce__(self) -> Any:
        return _revived, (type(self), self.SerializeToString())


def _revived(kind: type[Message], serialized: bytes) -> Message:
    return kind.FromString(serialized)


class _Scalars(list[Any]):
    """A list of numbers or strings, each of which is checked as it comes."""

    def __init__(self, kind: str, items: Iterable[Any] = ()) -> None:
        super().__init__(_checked(kind, x) for x in items)
        self.kind = kind

    def append(self, item: Any) -> None:
        super().append(_checked(self.kind, item))

    def extend(self, items: Iterable[Any]) -> None:
        super().extend(_checked(self.kind, x) for x in items)


def _message(kind: type[Message], value: Any) -> Message:
    if isinstance(value, dict):
        return kind(**value)
    if not isinstance(value, kind):
        raise TypeError(f"Parameter must be a {kind.__name__}; got {type(value).__name__}: {value!r}")
    return value


def _checked(kind: str, value: Any) -> Any:
    try:
        if kind == "int":
            number = value.__index__()
            if not -(1 << 63) <= number < 1 << 63:
                raise ValueError(f"Value out of range: {number}")
            return number
        if kind in ("float", "double"):
            return float(value)
        if kind == "string" and isinstance(value, str):
            return value
        if kind == "bytes" and isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
    except (AttributeError, TypeError):
        pass
    names = {"int": "int", "float": "int, float", "double": "int, float", "bytes": "bytes", "string": "bytes, str"}
    expected = names[kind]
    raise TypeError(f"{value!r} has type {type(value).__name__}, but expected one of: {expected}")


def _encode_one(field: Field, value: Any) -> bytes:
    if field.kind == "int":
        return wire.encode_field(field.number, wire.VARINT, wire.encode_varint(value))
    if field.kind == "float":
        return wire.encode_field(field.number, wire.FOUR_BYTES, wire.encode_floats([value]))
    if field.kind == "double":
        return wire.encode_field(field.number, wire.EIGHT_BYTES, struct.pack("<d", value))
    if isinstance(value, Message):
        value = value.SerializeToString()
    return wire.encode_field(field.number, wire.LENGTH, value.encode() if isinstance(value, str) else value)


def _decode(kind: str, wire_kind: int, value: Any) -> list[Any]:
    if kind == "int":
        return wire.decode_integers(wire_kind, value)
    if kind == "float":
        return wire.decode_floats(wire_kind, value)
    if kind == "double":
        return list(struct.unpack(f"<{len(value) // 8}d", value))
    if wire_kind != wire.LENGTH:
        raise wire.WireError("bytes are expected")
    return [value.decode() if kind == "string" else value]


def _quoted(value: bytes) -> str:
    plain = {0x22: '\\"', 0x5C: "\\\\", 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x27: "\\'"}
    return '"' + "".join(plain.get(b) or (chr(b) if 32 <= b < 127 else f"\\{b:03o}") for b in value) + '"'


def _shown(value: Any) -> str:
    if isinstance(value, str | bytes):
        return _quoted(value.encode() if isinstance(value, str) else value)
    return f"{value:.9g}" if isinstance(value, float) else str(value)
