"""What TensorFlow's operations take and give. The table `op_defs.txt` is written by `tools/op_defs.py`."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.tensor_shape import TensorShape

_TABLE = Path(__file__).with_name("op_defs.txt")


class Argument(NamedTuple):
    """An input or output: its name, what `tf.raw_ops` calls it, and its type.

    The type is a dtype or the attribute that holds it. `length` is the attribute with the number of tensors of a list
    of one type; `types` says that the type is an attribute with a list of dtypes, one for each tensor.
    """

    name: str
    python_name: str
    kind: str
    length: str | None
    types: bool

    def size(self, attributes: dict[str, Any]) -> int:
        """How many tensors it is, by the attributes of a node."""
        if self.types:
            return len(attributes[self.kind])
        return 1 if self.length is None else int(attributes[self.length])

    @property
    def is_list(self) -> bool:
        """Whether it is a list of tensors."""
        return self.types or self.length is not None


class Attribute(NamedTuple):
    """An attribute: its name, what `tf.raw_ops` calls it, its kind ("int", "type", "list(int)"), and its default."""

    name: str
    python_name: str
    kind: str
    default: Any
    has_default: bool


class OpDef(NamedTuple):
    """One operation."""

    name: str
    stateful: bool
    inputs: list[Argument]
    outputs: list[Argument]
    attributes: dict[str, Attribute]

    def inferred(self) -> set[str]:
        """The attributes that follow from the inputs: dtypes, and the lengths of lists."""
        kinds = {arg.kind for arg in self.inputs}
        return kinds | {arg.length for arg in self.inputs if arg.length is not None}

    def complete(self, attributes: dict[str, Any]) -> dict[str, Any]:
        """The attributes of a node with the defaults of those that the file leaves out."""
        for name, attribute in self.attributes.items():
            if attribute.has_default and name not in attributes:
                attributes[name] = _VALUES.get(attribute.kind, _as_it_is)(attribute.default)
        return attributes


def _as_it_is(value: Any) -> Any:
    return value


# What attributes of some kinds are, of the plain values in the table.
_VALUES: dict[str, Callable[[Any], Any]] = {
    "shape": TensorShape,
    "type": as_dtype,
    "list(shape)": lambda shapes: [TensorShape(shape) for shape in shapes],
    "list(type)": lambda dtypes: [as_dtype(dtype) for dtype in dtypes],
}


@functools.cache
def _line_by_name() -> dict[str, str]:
    lines = _TABLE.read_text().splitlines()
    return {line.partition("|")[0].rstrip("*"): line for line in lines}


@functools.cache
def find_op_def(name: str) -> OpDef | None:
    """The definition of an operation, or None if TensorFlow's is not in the table."""
    line = _line_by_name().get(name)
    if line is None:
        return None
    head, inputs, outputs, attributes = line.split("|", 3)
    found = [_attribute(text) for text in attributes.split()]
    return OpDef(
        name,
        head.endswith("*"),
        [_argument(text) for text in inputs.split()],
        [_argument(text) for text in outputs.split()],
        {attribute.name: attribute for attribute in found},
    )


def _names(text: str) -> tuple[str, str]:
    name, _, other = text.partition(">")
    return name, other or name


def _argument(text: str) -> Argument:
    names, _, kind = text.partition(":")
    count, star, inner = kind.rstrip("&").partition("*")
    return Argument(
        *_names(names), inner if star else count, count if star and count else None, bool(star) and not count
    )


def _attribute(text: str) -> Attribute:
    names, _, rest = text.partition(":")
    kind, equals, default = rest.partition("=")
    return Attribute(*_names(names), kind, _default(default) if equals else None, bool(equals))


def _default(text: str) -> Any:
    return {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan")}.get(text) or ast.literal_eval(
        text.replace("\\x20", " ")
    )
