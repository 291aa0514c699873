"""TensorFlow 1's shapes: their elements are `tf.Dimension`s to the program, and plain sizes to Tapeflow itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from tapeflow._src import _core
from tapeflow._src._core import TensorShapeBase
from tapeflow._src.namespace import PACKAGE_FOLDER, public
from tapeflow._src.types.tensor import Tensor
from tapeflow._src.types.tensor_shape import Dimension, TensorShape


def _asked_by_program() -> bool:
    return not sys._getframe(2).f_code.co_filename.startswith(PACKAGE_FOLDER)


def _element(self: TensorShape, key: Any) -> Any:
    found = TensorShapeBase.__getitem__(self, key)
    if isinstance(key, slice) or not _asked_by_program():
        return found
    return Dimension(found)


def _elements(self: TensorShape) -> Iterator[Any]:
    sizes = TensorShapeBase.__iter__(self)
    return (Dimension(size) for size in sizes) if _asked_by_program() else sizes


def _shape_repr(self: TensorShape) -> str:
    return f"TensorShape({self.dims})"


def _shape_text(self: TensorShape) -> str:
    if self.rank is None:
        return "<unknown>"
    sizes = ["?" if size is None else str(size) for size in self.as_list()]
    return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"


def _shape_part(tensor: Any) -> str:
    return "" if tensor.shape.rank is None else f", shape={_shape_text(tensor.shape)}"


def _tensor_text(self: Any) -> str:
    if not _core.is_symbolic(self):
        return _tensor_text_of_two(self)
    return f'Tensor("{self.name}"{_shape_part(self)}, dtype={self.dtype.name})'


_ways = {"__getitem__": _element, "__iter__": _elements, "__repr__": _shape_repr, "__str__": _shape_text}
_ways_of_two = {name: vars(TensorShape).get(name) for name in _ways}
_tensor_text_of_two = Tensor.__str__
_own_text = vars(Tensor).get("__str__")


def _put(cls: type, name: str, way: Any) -> None:
    if way is not None:
        setattr(cls, name, way)
    elif name in vars(cls):
        delattr(cls, name)


@public("compat.v1.disable_v2_tensorshape")
def disable_v2_tensorshape() -> None:
    """From now on elements of a TensorShape are `Dimension`s, with a `value`.

    >>> tf.compat.v1.disable_v2_tensorshape()
    >>> tf.TensorShape([None, 3])[1].value
    3
    >>> tf.compat.v1.enable_v2_tensorshape()
    """
    for name, way in _ways.items():
        _put(TensorShape, name, way)
    _put(Tensor, "__str__", _tensor_text)


@public("compat.v1.enable_v2_tensorshape")
def enable_v2_tensorshape() -> None:
    """From now on elements of a TensorShape are numbers or None.

    >>> tf.compat.v1.enable_v2_tensorshape()
    >>> tf.TensorShape([None, 3])[1]
    3
    """
    for name, way in _ways_of_two.items():
        _put(TensorShape, name, way)
    _put(Tensor, "__str__", _own_text)
