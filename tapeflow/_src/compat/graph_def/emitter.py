"""Nodes as they are written: operations of TensorFlow with their inputs and all attributes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapeflow._src import _core
from tapeflow._src.compat.graph_def.attributes import attribute_message
from tapeflow._src.compat.graph_def.op_defs import OpDef, find_op_def
from tapeflow._src.io.protos import messages
from tapeflow._src.io.protos.tensor_messages import tensor_message
from tapeflow._src.types.dtypes import DType, as_dtype
from tapeflow._src.types.errors import UnimplementedError
from tapeflow._src.types.tensor_shape import TensorShape


class Ref(NamedTuple):
    """One output of a node that is written: the node, the output's name and number, its dtype, and its shape."""

    node: str
    argument: str
    place: int
    flat_place: int
    dtype: DType
    shape: TensorShape

    def text(self, in_function: bool) -> str:
        """How a node names it as an input."""
        if not self.node:
            raise UnimplementedError.of(
                "a derivative of higher order of a branch or a loop inside of a function cannot be written. Take it of "
                "the loaded function instead"
            )
        if not self.argument:
            return self.node
        if in_function:
            return f"{self.node}:{self.argument}:{self.place}"
        return f"{self.node}:{self.flat_place}" if self.flat_place else self.node


class Emitter:
    """Collects the nodes of one graph or function, and gives them names that are unique."""

    def __init__(self, in_function: bool) -> None:
        self.in_function = in_function
        self.nodes: list[Any] = []
        self._taken: dict[str, int] = {}
        self._constant_by_value: dict[Any, Ref] = {}
        self.next_name: str | None = None
        self.prefix = ""

    def unique(self, name: str) -> str:
        """A name that no other node has."""
        count = self._taken.get(name.lower(), 0)
        self._taken[name.lower()] = count + 1
        return name if count == 0 else self.unique(f"{name}_{count}")

    def rename(self, node: Any, name: str, start: int) -> None:
        """Gives a node another name, also where nodes from `start` on take what it gives."""
        old, node.name = node.name, name
        self._taken.setdefault(name.lower(), 1)
        for other in self.nodes[start:]:
            for place, text in enumerate(other.input):
                head, colon, rest = text.partition(":")
                if head.removeprefix("^") == old:
                    other.input[place] = f"{'^' if head.startswith('^') else ''}{name}{colon}{rest}"

    def reserve(self, name: str) -> str:
        """Takes a name for an input of the function."""
        return self.unique(name)

    def node(self, op: str, *inputs: Any, controls: Any = (), shapes: Any = None, **attributes: Any) -> list[Ref]:
        """Adds a node; a list of references stands for an input that is a list. Gives its outputs."""
        definition = find_op_def(op)
        if definition is None:
            raise ValueError(f"there is no operation {op} in the table of TensorFlow's operations")
        given = dict(attributes)
        flat: list[Ref] = []
        if len(inputs) != len(definition.inputs):
            raise ValueError(f"{op} takes {len(definition.inputs)} inputs; got {len(inputs)}")
        for argument, value in zip(definition.inputs, inputs):
            refs = list(value) if argument.is_list else [value]
            if not argument.types:
                wanted = given.get(argument.kind) if argument.kind in definition.attributes else argument.kind
                if wanted is None and len(refs) > 1:
                    wanted = refs[0].dtype
                refs = [self._as_integer(ref, wanted) for ref in refs]
            flat += refs
            if argument.types:
                given.setdefault(argument.kind, [ref.dtype for ref in refs])
                continue
            if argument.length is not None:
                given.setdefault(argument.length, len(refs))
            if argument.kind in definition.attributes and refs:
                given.setdefault(argument.kind, refs[0].dtype)
        complete = {name: given.get(name, a.default) for name, a in definition.attributes.items()}
        missing = [n for n, a in definition.attributes.items() if complete[n] is None and not a.has_default]
        if missing:
            raise ValueError(f"{op} needs the attribute {missing[0]}")
        name = self.unique(self.next_name or f"{self.prefix}{op}")
        self.next_name = None
        message = messages.NodeDef(name=name, op=op)
        message.input.extend(ref.text(self.in_function) for ref in flat)
        message.input.extend(f"^{control}" for control in controls)
        for key, value in complete.items():
            message.attr[key].CopyFrom(attribute_message(definition.attributes[key].kind, value))
        for key, value in attributes.items():
            if key.startswith("_"):
                message.attr[key].CopyFrom(value)
        self.nodes.append(message)
        return _outputs(definition, name, complete, shapes)

    def _as_integer(self, ref: Ref, wanted: Any) -> Ref:
        """An index in the integer dtype that other inputs of the node have."""
        dtype = ref.dtype if wanted is None else as_dtype(wanted)
        if ref.dtype == dtype or not (ref.dtype.is_integer and dtype.is_integer):
            return ref
        saved, self.next_name = self.next_name, None
        found = self.one("Cast", ref, DstT=dtype)
        self.next_name = saved
        return found._replace(shape=ref.shape)

    def one(self, op: str, *inputs: Any, **attributes: Any) -> Ref:
        """Adds a node with one output."""
        return self.node(op, *inputs, **attributes)[0]

    def constant(self, value: Any, dtype: Any = None) -> Ref:
        """A constant; equal small ones are one node."""
        tensor = value if isinstance(value, _core.Tensor) else _core.convert_to_tensor(value, dtype, None, "Const")
        key = None
        if (tensor.shape.num_elements() or 0) <= 16 and tensor.dtype.name != "string":
            array = np.asarray(tensor.numpy())
            key = (tensor.dtype.name, array.shape, array.tobytes())
            if key in self._constant_by_value:
                return self._constant_by_value[key]
        saved, self.next_name = self.next_name, None
        ref = self.one("Const", value=tensor_message(tensor), dtype=tensor.dtype, shapes=[tensor.shape])
        self.next_name = saved
        if key is not None:
            self._constant_by_value[key] = ref
        return ref

    def ints(self, values: Any, dtype: str = "int32") -> Ref:
        """A constant vector or number of integers."""
        return self.constant(np.asarray(values, dtype), dtype)


def _outputs(definition: OpDef, name: str, attributes: dict[str, Any], shapes: Any) -> list[Ref]:
    found: list[Ref] = []
    for argument in definition.outputs:
        if argument.types:
            dtypes = list(attributes[argument.kind])
        else:
            dtype = attributes.get(argument.kind, argument.kind)
            dtypes = [dtype] * (1 if argument.length is None else int(attributes[argument.length]))
        for place, dtype in enumerate(dtypes):
            shape = shapes[len(found)] if shapes is not None and len(found) < len(shapes) else TensorShape(None)
            found.append(Ref(name, argument.name, place, len(found), as_dtype(dtype), shape))
    return found
