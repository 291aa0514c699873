"""Classes to ask about: which tensors have elements and which stand for a value of a graph."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.namespace import public
from tapeflow._src.types.dtypes import as_dtype


class _Kind(type):
    """The class of classes whose objects are tensors of one kind."""

    symbolic: bool

    def __instancecheck__(cls, thing: Any) -> bool:
        return type(thing) is _core.Tensor and _core.is_symbolic(thing) is cls.symbolic


@public("__internal__.EagerTensor")
class EagerTensor(metaclass=_Kind):
    """The class of tensors with elements.

    >>> isinstance(tf.constant(1.), tf.__internal__.EagerTensor)
    True
    """

    symbolic = False

    def __new__(cls, value: Any, device: Any = None, dtype: Any = None) -> Any:
        """A tensor of a value; the dtype is given by its number."""
        if device is not None and not isinstance(device, str):
            raise TypeError(
                f"Error parsing device argument to EagerTensor: got {device!r} as argument 'device' (pos 2)"
            )
        if dtype is not None and not isinstance(dtype, int):
            raise TypeError(
                f"Expected a DataType value for dtype. Got: {type(dtype).__name__} as argument 'dtype' (pos 3)"
            )
        if _core.is_symbolic(value):
            raise TypeError(f"Cannot convert {value} to EagerTensor: it is a value of a graph")
        stage = _core.swap_stage(None)
        try:
            return _core.convert_to_tensor(value, None if dtype is None else as_dtype(dtype), None, "EagerTensor")
        finally:
            _core.swap_stage(stage)


@public("__internal__.SymbolicTensor")
class SymbolicTensor(metaclass=_Kind):
    """The class of tensors that stand for a value of a graph.

    >>> isinstance(tf.constant(1.), tf.__internal__.SymbolicTensor)
    False
    """

    symbolic = True
