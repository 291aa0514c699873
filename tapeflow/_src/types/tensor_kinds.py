"""Classes to ask about: which tensors have elements and which stand for a value of a graph; they make no objects."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.namespace import public


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


@public("__internal__.SymbolicTensor")
class SymbolicTensor(metaclass=_Kind):
    """The class of tensors that stand for a value of a graph.

    >>> isinstance(tf.constant(1.), tf.__internal__.SymbolicTensor)
    False
    """

    symbolic = True
