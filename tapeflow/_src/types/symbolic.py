"""Symbolic tensors: what they say when a program asks for elements that only running the graph gives."""

from __future__ import annotations

from typing import Any, NoReturn

from tapeflow._src import _core
from tapeflow._src.types.errors import OperatorNotAllowedInGraphError


class Refusals:
    """How often a symbolic tensor was asked for elements; a change shows that a value was needed."""

    count = 0


class SymbolicValueError(TypeError):
    """The core needed an element of a symbolic tensor."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        Refusals.count += 1


_WAY_OUT = (
    "You can attempt the following resolutions to the problem: If you are running in Graph mode, use Eager execution "
    "mode or decorate this function with @tf.function. If you are using AutoGraph, you can try decorating this "
    "function with @tf.function. If that does not work, then you may be using an unsupported feature or your source "
    "code may not be visible to AutoGraph."
)


def _refuse(tensor: Any, what: str) -> NoReturn:
    Refusals.count += 1
    name = tensor.name
    if what == "numpy":
        raise AttributeError("'SymbolicTensor' object has no attribute 'numpy'", name="numpy", obj=tensor)
    if what == "bool":
        message = "Using a symbolic `tf.Tensor` as a Python `bool` is not allowed."
        raise OperatorNotAllowedInGraphError(f"{message} {_WAY_OUT}")
    if what == "iterate":
        raise OperatorNotAllowedInGraphError(f"Iterating over a symbolic `tf.Tensor` is not allowed. {_WAY_OUT}")
    if what == "__array__":
        raise NotImplementedError(
            f"Cannot convert a symbolic tf.Tensor ({name}) to a numpy array. This error may indicate that you're "
            "trying to pass a Tensor to a NumPy call, which is not supported."
        )
    if what == "len":
        raise TypeError(
            f"len is not well defined for a symbolic Tensor ({name}). Please call `x.shape` rather than `len(x)` for "
            "shape information."
        )
    if what == "index":
        raise TypeError("'SymbolicTensor' object cannot be interpreted as an integer")
    raise TypeError(f"{what}() argument must be a string, a bytes-like object or a real number, not 'SymbolicTensor'")


_core.register_objects({"refuse_symbolic": _refuse, "SymbolicValueError": SymbolicValueError})
