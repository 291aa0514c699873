"""Tensors of a weak dtype: numbers whose dtype nobody gave, which gives way to the dtypes beside them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.extension.extension_type import BatchableExtensionType
from tapeflow._src.types.errors import OperatorNotAllowedInGraphError

_ALLOWED = ("int32", "int64", "float32", "float64", "complex128")


def _operator(path: str, reflected: bool = False) -> Any:
    """A method that calls a public function, which promotes dtypes."""

    def operate(self: Any, other: Any) -> Any:
        function = find_public(path)
        return function(other, self) if reflected else function(self, other)

    return operate


class _Gradient:
    """A derivative by a weak tensor is one by its tensor."""

    def get_gradient_components(self, value: Any) -> Any:
        """The tensor."""
        return value.tensor

    def replace_gradient_components(self, value: Any, component_grads: Any) -> Any:
        """A weak tensor of the derivative."""
        return WeakTensor.from_tensor(component_grads)


class WeakTensor(BatchableExtensionType):
    """A tensor whose dtype is weak."""

    tensor: Tensor

    __composite_gradient__ = _Gradient()

    def __validate__(self) -> None:
        if self.tensor.dtype.name not in _ALLOWED:
            raise TypeError(f"{self.tensor.dtype!r} not allowed as a weak type. The allowed types are {_ALLOWED}.")

    @property
    def is_weak(self) -> bool:
        """Whether the dtype is weak: it is."""
        return True

    @classmethod
    def from_tensor(cls, tensor: Any) -> WeakTensor:
        """A weak tensor of the elements of a tensor."""
        make: Any = cls
        made: WeakTensor = make(convert_to_tensor(tensor))
        return made

    def to_tensor(self) -> Any:
        """The tensor, whose dtype counts."""
        return self.tensor

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Any:
        return self.tensor if dtype is None else cast(self.tensor, dtype)

    def __getattr__(self, name: str) -> Any:
        if name == "tensor" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.tensor, name)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = np.asarray(self.tensor.numpy())
        return array if dtype is None else array.astype(dtype)

    def _shown(self, text: str) -> str:
        return f"{text[:-1]}, weak=True{text[-1]}"

    def __str__(self) -> str:
        return self._shown(str(self.tensor))

    def __repr__(self) -> str:
        return self._shown(repr(self.tensor))

    def __format__(self, specification: str) -> str:
        return f"{format(self.tensor, specification)} weakly typed"

    def __iter__(self) -> Any:
        if _core.is_symbolic(self.tensor):
            raise OperatorNotAllowedInGraphError(
                "Iterating over a symbolic `tf.WeakTensor` is not allowed. You can attempt the following resolutions "
                "to the problem: If you are running in Graph mode, use Eager execution mode or decorate this function "
                "with @tf.function."
            )
        return (WeakTensor.from_tensor(row) for row in self.tensor)

    def __len__(self) -> int:
        return len(self.tensor)

    def __bool__(self) -> bool:
        return bool(self.tensor)

    def __int__(self) -> int:
        return int(self.tensor)

    def __float__(self) -> float:
        return float(self.tensor)

    def __index__(self) -> int:
        return self.tensor.__index__()

    def __copy__(self) -> WeakTensor:
        return self

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)

    def __eq__(self, other: object) -> Any:
        return False if other is None else find_public("math.equal")(self, other)

    def __ne__(self, other: object) -> Any:
        return True if other is None else find_public("math.not_equal")(self, other)

    def __neg__(self) -> Any:
        return find_public("math.negative")(self)

    def __abs__(self) -> Any:
        return find_public("math.abs")(self)

    __add__, __radd__ = _operator("math.add"), _operator("math.add", reflected=True)
    __sub__, __rsub__ = _operator("math.subtract"), _operator("math.subtract", reflected=True)
    __mul__, __rmul__ = _operator("math.multiply"), _operator("math.multiply", reflected=True)
    __truediv__, __rtruediv__ = _operator("math.truediv"), _operator("math.truediv", reflected=True)
    __floordiv__, __rfloordiv__ = _operator("math.floordiv"), _operator("math.floordiv", reflected=True)
    __mod__, __rmod__ = _operator("math.floormod"), _operator("math.floormod", reflected=True)
    __pow__, __rpow__ = _operator("math.pow"), _operator("math.pow", reflected=True)
    __matmul__, __rmatmul__ = _operator("linalg.matmul"), _operator("linalg.matmul", reflected=True)
    __and__, __rand__ = _operator("bitwise.bitwise_and"), _operator("bitwise.bitwise_and", reflected=True)
    __or__, __ror__ = _operator("bitwise.bitwise_or"), _operator("bitwise.bitwise_or", reflected=True)
    __xor__, __rxor__ = _operator("bitwise.bitwise_xor"), _operator("bitwise.bitwise_xor", reflected=True)
    __lt__, __le__ = _operator("math.less"), _operator("math.less_equal")
    __gt__, __ge__ = _operator("math.greater"), _operator("math.greater_equal")

    def __getitem__(self, key: Any) -> WeakTensor:
        return WeakTensor.from_tensor(self.tensor[key])


class _OfStage(type):
    """Classes that say of weak tensors whether they have their elements or belong to a graph."""

    symbolic: bool

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, WeakTensor) and _core.is_symbolic(value.tensor) == cls.symbolic


class EagerWeakTensor(metaclass=_OfStage):
    """The weak tensors that have their elements."""

    symbolic = False


class GraphWeakTensor(metaclass=_OfStage):
    """The weak tensors of graphs."""

    symbolic = True


def with_dtype(value: Any, dtype: Any) -> Any:
    """A value as a tensor of a dtype, cast if it has another."""
    if isinstance(value, WeakTensor):
        value = value.tensor
    return cast(value, dtype) if _core.is_tensor(value) or hasattr(value, "dtype") else convert_to_tensor(value, dtype)


def maybe_weak(result: Any, weak: bool) -> Any:
    """A result as a weak tensor, if it shall be weak and its dtype can be."""
    if weak and isinstance(result, _core.Tensor) and result.dtype.name in _ALLOWED:
        return WeakTensor.from_tensor(result)
    return result
