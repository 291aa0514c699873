"""`tf.__operators__`: Python's operators of tensors as functions that dispatchers see."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.types.tensor import Tensor

_slot_by_name = {name: getattr(Tensor, name) for name in Tensor.OVERLOADABLE_OPERATORS}


@public("__operators__.add")
@_core.Composition
def add(x: Any, y: Any, name: str | None = None) -> Any:
    """`x + y`.

    >>> tf.__operators__.add([1., 2.], 3.)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([4., 5.], dtype=float32)>
    """
    return primitives.AddV2(x, y)


@public("__operators__.eq")
@_core.Composition
def eq(self: Any, other: Any) -> Any:
    """`self == other`, element by element.

    >>> tf.__operators__.eq(tf.constant([1, 2]), 2)
    <tf.Tensor: shape=(2,), dtype=bool, numpy=array([False,  True])>
    """
    return primitives.Equal(self, other)


@public("__operators__.ne")
@_core.Composition
def ne(self: Any, other: Any) -> Any:
    """`self != other`, element by element.

    >>> tf.__operators__.ne(tf.constant([1, 2]), 2)
    <tf.Tensor: shape=(2,), dtype=bool, numpy=array([ True, False])>
    """
    return primitives.NotEqual(self, other)


@public("__operators__.getitem")
@_core.Composition
def getitem(tensor: Any, slice_spec: Any, var: Any = None) -> Any:
    """`tensor[slice_spec]`.

    >>> tf.__operators__.getitem(tf.constant([1, 2, 3]), slice(1, None))
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([2, 3], dtype=int32)>
    """
    return convert_to_tensor(tensor)[slice_spec] if var is None else var[slice_spec]


@public("__operators__.ragged_getitem")
@_core.Composition
def ragged_getitem(rt_input: Any, key: Any) -> Any:
    """`rt_input[key]` of a ragged tensor.

    >>> tf.__operators__.ragged_getitem(tf.ragged.constant([[1, 2], [3]]), 1)
    <tf.Tensor: shape=(1,), dtype=int32, numpy=array([3], dtype=int32)>
    """
    if not isinstance(rt_input, RaggedTensor):
        raise TypeError(f"__operators__.ragged_getitem: Ragged tensor expected; got a {type(rt_input).__name__}.")
    return rt_input[key]


_PATH_BY_OPERATOR = {
    "add": "__operators__.add", "sub": "math.subtract", "mul": "math.multiply", "truediv": "math.truediv",
    "floordiv": "math.floordiv", "mod": "math.floormod", "pow": "math.pow", "matmul": "linalg.matmul",
    "and": "math.logical_and", "or": "math.logical_or", "xor": "math.logical_xor", "neg": "math.negative",
    "invert": "math.logical_not", "abs": "math.abs", "getitem": "__operators__.getitem", "eq": "__operators__.eq",
    "ne": "__operators__.ne", "lt": "math.less", "le": "math.less_equal", "gt": "math.greater",
    "ge": "math.greater_equal",
}  # fmt: skip


def _operator(name: str) -> Any:
    """What `tf.Tensor.__add__` is: the operator of tensors, which a class of others may have as its own, too."""
    slot, bare = _slot_by_name[name], name.strip("_")
    reflected = bare not in _PATH_BY_OPERATOR
    path = _PATH_BY_OPERATOR[bare[1:] if reflected else bare]

    def unary(self: Any) -> Any:
        return slot(self) if isinstance(self, Tensor) else find_public(path)(self)

    def binary(self: Any, value: Any, /) -> Any:
        if isinstance(self, Tensor):
            return slot(self, value)
        if not reflected:
            return find_public(path)(self, value)
        if hasattr(self, "dtype") and isinstance(value, np.ndarray | np.generic | float | int | list | tuple):
            value = convert_to_tensor(value, self.dtype)
        return find_public(path)(value, self)

    function = unary if bare in ("neg", "invert", "abs") else binary
    function.__name__, function.__qualname__, function.__doc__ = name, f"Tensor.{name}", slot.__doc__
    function.__module__ = "tapeflow"
    return function


_core.set_class_attributes(Tensor, {name: _operator(name) for name in Tensor.OVERLOADABLE_OPERATORS})
