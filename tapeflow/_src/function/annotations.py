"""`tf.types.experimental`: what programs write in annotations and ask `isinstance` about."""

from __future__ import annotations

import abc
import contextlib
import inspect
from typing import Any, Protocol, Union, runtime_checkable

import numpy as np

from tapeflow._src import _core
from tapeflow._src.function.concrete import ConcreteFunction
from tapeflow._src.function.function import Function
from tapeflow._src.namespace import public


@runtime_checkable
class TensorProtocol(Protocol):
    """An object that makes a tensor of itself."""

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any: ...


TensorLike: Any = Union[  # noqa: UP007
    _core.Tensor,
    TensorProtocol,
    int,
    float,
    bool,
    str,
    bytes,
    complex,
    tuple,
    list,
    np.ndarray,
    np.generic,
    _core.Variable,
]
with contextlib.suppress(AttributeError):  # unions are immutable from Python 3.14 on
    TensorLike.__doc__ = """What can become a tensor: a tensor, a number, a string, a list, an array.

    >>> tf.Tensor in tf.types.experimental.TensorLike.__args__
    True
    """
public("types.experimental.TensorLike")(TensorLike)


@public("types.experimental.Callable")
class Callable(abc.ABC):  # noqa: B024
    """What `tf.function` makes, and each of its traces.

    >>> isinstance(tf.function(lambda x: x), tf.types.experimental.Callable)
    True
    """


@public("types.experimental.PolymorphicFunction", "types.experimental.GenericFunction")
class PolymorphicFunction(Callable):
    """What `tf.function` makes.

    >>> isinstance(tf.function(lambda x: x), tf.types.experimental.PolymorphicFunction)
    True
    """


@public("types.experimental.ConcreteFunction")
class ConcreteFunctionType(Callable):
    """One trace of a function.

    >>> double = tf.function(lambda x: 2. * x).get_concrete_function(tf.TensorSpec([]))
    >>> isinstance(double, tf.types.experimental.ConcreteFunction)
    True
    """


@public("types.experimental.AtomicFunction")
class AtomicFunction(Callable):
    """A function of the runtime, of which there are none here.

    >>> isinstance(tf.function(lambda x: x), tf.types.experimental.AtomicFunction)
    False
    """


PolymorphicFunction.register(Function)
ConcreteFunctionType.register(ConcreteFunction)


@public("types.experimental.FunctionType")
class FunctionType(inspect.Signature):
    """The parameters of a function.

    >>> tf.types.experimental.FunctionType.from_callable(lambda x, y=1: x).parameters["y"].default
    1
    """


@public("types.experimental.TraceType")
class TraceType(abc.ABC):
    """What decides whether two arguments share a trace; a `tf.TypeSpec` is one.

    >>> isinstance(tf.TensorSpec([2]), tf.types.experimental.TraceType)
    True
    """

    @abc.abstractmethod
    def is_subtype_of(self, other: Any) -> bool:
        """Whether a trace for `other` serves this too."""

    @abc.abstractmethod
    def most_specific_common_supertype(self, others: Any) -> Any:
        """The narrowest type that serves this and all others, or None."""

    @abc.abstractmethod
    def placeholder_value(self, placeholder_context: Any) -> Any:
        """What stands for the argument while tracing."""

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        if cls is not TraceType:
            return NotImplemented
        return all(hasattr(other, name) for name in ("is_subtype_of", "most_specific_common_supertype"))


@public("types.experimental.SupportsTracingProtocol")
@runtime_checkable
class SupportsTracingProtocol(Protocol):
    """An object that says by `__tf_tracing_type__` which arguments share a trace with it.

    >>> isinstance(3, tf.types.experimental.SupportsTracingProtocol)
    False
    """

    def __tf_tracing_type__(self, context: Any) -> Any: ...
