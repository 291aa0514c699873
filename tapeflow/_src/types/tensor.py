"""`tf.Tensor`: the methods of the core's tensor type that are not on the path of an operation."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.advice import TENSOR_HINTS
from tapeflow._src.namespace import lazy_members, public
from tapeflow._src.types.device_names import device_name
from tapeflow._src.types.dtypes import DType
from tapeflow._src.types.tensor_shape import TensorShape, as_shape, shape_text

Tensor = _core.Tensor


class Reference:
    """A hashable stand-in for a tensor or a variable, equal to itself by identity."""

    __slots__ = ("__weakref__", "_referent")

    def __init__(self, referent: Any) -> None:
        self._referent = referent

    def deref(self) -> Any:
        """The object that is referred to."""
        return self._referent

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and self._referent is other._referent

    def __lt__(self, other: Reference) -> bool:
        return id(self._referent) < id(other._referent)

    def __gt__(self, other: Reference) -> bool:
        return id(self._referent) > id(other._referent)

    def __hash__(self) -> int:
        return id(self._referent)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._referent!r}>"


def element_text(values: Any, form: Callable[[Any], str]) -> str:
    """NumPy's text for the elements; one of several lines starts on a line of its own."""
    text: str = form(values)
    return "\n" + text if "\n" in text else text


def element_repr(values: Any) -> str:
    """The elements as `repr` shows them: Python's number for a scalar, `array(...)` otherwise."""
    if isinstance(values, np.ndarray):
        return element_text(values, repr)
    return repr(values if isinstance(values, bytes) else values.item())


def traced_graph() -> Any:
    """The graph of the function that is being traced, or None."""
    graph = _core.current_graph()
    return None if graph is None or graph.graph_mode else graph


def _name(self: Any) -> str:
    """The name in its graph, as `add:0`."""
    place = _core.place_of(self)
    if place is None:
        if traced_graph() is not None:
            return "Const:0"
        raise AttributeError("Tensor.name is undefined when eager execution is enabled.")
    graph, value, node = place
    if graph is None:
        return f"value_{value}:0"
    if node < 0:
        return graph.input_name(value) if hasattr(graph, "input_name") else f"Placeholder_{value}:0"
    if hasattr(graph, "name_nodes_now"):
        graph.name_nodes_now()
    operation, name, _, outputs, _, _ = graph.node(node)
    index = next(i for i, output in enumerate(outputs) if output is self)
    return f"{name or f'{operation}_{node}'}:{index}"


def _device(self: Any) -> str:
    """The logical processor on which the value was made; of a symbolic tensor, the one that the program named."""
    if getattr(self, "_graph", None) is not None:  # a variable of a graph
        return str(self.op.device)
    number = _core.device_of(self)
    if _core.is_symbolic(self):
        graph, _, node = _core.place_of(self) or (None, 0, -1)
        of_node = getattr(graph, "_device_of_node", None)  # graphs that sessions run keep the names
        if node >= 0 and of_node is not None:
            return str(of_node(node))
        return f"/device:CPU:{number - 1}" if number else ""
    return device_name(max(number - 1, 0))


def _repr(tensor: Any) -> str:
    if _core.is_symbolic(tensor):
        return f"<tf.Tensor '{tensor.name}' shape={tensor.shape} dtype={tensor.dtype.name}>"
    return f"<tf.Tensor: shape={tensor.shape}, dtype={tensor.dtype.name}, numpy={element_repr(tensor.numpy())}>"


def _str(tensor: Any) -> str:
    if _core.is_symbolic(tensor):
        shape = f", shape={tensor.shape}" if tensor.shape.rank is not None else ""
        return f'Tensor("{tensor.name}"{shape}, dtype={tensor.dtype.name})'
    return f"tf.Tensor({element_text(tensor.numpy(), str)}, shape={tensor.shape}, dtype={tensor.dtype.name})"


def _ref(self: Any) -> Reference:
    """A hashable reference, for dictionaries and sets.

    >>> x = tf.constant(1.)
    >>> {x.ref(): "one"}[x.ref()]
    'one'
    """
    return Reference(self)


def _get_shape(self: Tensor) -> TensorShape:
    """The shape; the same as `.shape`."""
    return self.shape


def _shape_as_list(self: Any) -> list[int | None] | None:
    sizes: list[int | None] | None = None if self.shape.rank is None else self.shape.as_list()
    return sizes


def _rank(self: Any) -> int | None:
    rank: int | None = self.shape.rank
    return rank


def _shape_tuple(self: Tensor) -> tuple[int | None, ...] | None:
    """The shape as a tuple; None if the rank is unknown."""
    return None if self.shape.rank is None else tuple(self.shape.as_list())


def _set_shape(self: Any, shape: Any) -> None:
    """Checks that the shape is compatible with `shape`."""
    shape = as_shape(shape)
    if _core.is_symbolic(self):
        if not self.shape.is_compatible_with(shape):
            raise ValueError(_shape_conflict(self.shape.as_list(), shape.as_list()))
        _core.narrow_shape(self, self.shape.merge_with(shape))
    elif not self.shape.is_compatible_with(shape):
        raise ValueError(f"Tensor's shape {self.shape} is not compatible with supplied shape {shape}.")


def _shape_conflict(one: list[Any], two: list[Any]) -> str:
    if len(one) != len(two):
        return f"Shapes must be equal rank, but are {len(one)} and {len(two)}"
    place = next(i for i, (a, b) in enumerate(zip(one, two)) if None not in (a, b) and a != b)
    return (
        f"Dimension {place} in both shapes must be equal, but are {one[place]} and {two[place]}. "
        f"Shapes are {shape_text(TensorShape(one))} and {shape_text(TensorShape(two))}."
    )


def _format(self: Any, specification: str) -> str:
    if _core.is_symbolic(self):
        return format(str(self), specification)
    return format(self.numpy(), specification)


def _copy(self: Any, memo: Any = None) -> Any:
    return self


def _reduce(self: Any) -> tuple[Any, ...]:
    return _restore, (np.asarray(self), self.dtype)


def _restore(values: np.ndarray, dtype: DType) -> Any:
    return _core.convert_to_tensor(values, dtype, None, "constant")


def _dlpack(self: Any, **options: Any) -> Any:
    return self.numpy().__dlpack__(**options)


def _dlpack_device(self: Any) -> tuple[int, int]:
    return (1, 0)


def _array_namespace(self: Any, *, api_version: str | None = None) -> Any:
    return importlib.import_module("tapeflow.array_api").namespace(api_version)


def _complex(self: Any) -> complex:
    return complex(self.numpy().item() if self.shape.rank else self.numpy())


def _refuse_item_assignment(self: Any, key: Any, value: Any) -> None:
    raise TypeError(
        f"'{type(self).__name__}' object does not support item assignment. "
        "Use tf.tensor_scatter_nd_update for a tensor, or v[i].assign(value) for a variable."
    )


def add_members(cls: type, members: Mapping[str, Any]) -> None:
    """Gives a class members that are defined beside it."""
    for name, member in members.items():
        setattr(cls, name, member)


def add_array_behaviour(cls: type) -> None:
    """Gives a class with `.numpy()` the members that tensors and variables share."""
    add_members(cls, _ARRAY_MEMBERS)


_ARRAY_MEMBERS: dict[str, Any] = {
    "ref": _ref,
    "get_shape": _get_shape,
    "device": property(_device),
    "__array_priority__": 100,
    "__dlpack__": _dlpack,
    "__dlpack_device__": _dlpack_device,
    "__complex__": _complex,
    "__array_namespace__": _array_namespace,
}


_BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor"]
_OPERATORS = [
    *_BINARY,
    *(f"r{name}" for name in _BINARY),
    *["neg", "invert", "abs", "getitem", "eq", "ne", "lt", "le", "gt", "ge"],
]

_TENSOR_MEMBERS: dict[str, Any] = {
    "OVERLOADABLE_OPERATORS": {f"__{name}__" for name in _OPERATORS},
    "__nonzero__": Tensor.__bool__,
    "set_shape": _set_shape,
    "_shape_tuple": _shape_tuple,
    "_shape_as_list": _shape_as_list,
    "_rank": _rank,
    "name": property(_name),
    "backing_device": _ARRAY_MEMBERS["device"],
    "__format__": _format,
    "__copy__": _copy,
    "__deepcopy__": _copy,
    "__reduce__": _reduce,
    "__setitem__": _refuse_item_assignment,
    "cpu": _copy,
    "is_tensor_like": True,
}
add_array_behaviour(Tensor)
_core.register_objects({"tensor_hints": TENSOR_HINTS})
add_members(Tensor, _TENSOR_MEMBERS)
Tensor.__doc__ = """An array that operations take and give: it has a shape and a dtype, and never changes.

>>> tf.constant([[1.0, 2.0]]).shape
TensorShape([1, 2])
"""
lazy_members("tapeflow._src.compat.v1.graph.operation.GraphTensor", "op", "graph", "value_index", "consumers", "eval")(
    Tensor
)
lazy_members("tapeflow._src.diagnostics.html.values.TensorHtml", "_repr_html_")(Tensor)
public("Tensor")(Tensor)

_core.register_objects({"tensor_repr": _repr, "tensor_str": _str})
