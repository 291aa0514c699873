"""What can become a tensor, a dtype, a shape or an axis: the types that annotations of operations are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, Self, TypeAlias, TypeVar, overload

import numpy as np

if TYPE_CHECKING:
    from tapeflow._src._core import Tensor, Variable
    from tapeflow._src.types.dtypes import DType
    from tapeflow._src.types.tensor_shape import TensorShape

Item = TypeVar("Item", covariant=True)


class NestedSequence(Protocol[Item]):
    """Lists and tuples of any depth. A str is none, because its `__contains__` takes only a str."""

    def __len__(self) -> int: ...

    def __contains__(self, item: object, /) -> bool: ...

    def __getitem__(self, index: int, /) -> Item | NestedSequence[Item]: ...

    def __iter__(self) -> Iterator[Item | NestedSequence[Item]]: ...


Parameters = ParamSpec("Parameters")
Rest = ParamSpec("Rest")
Result = TypeVar("Result", covariant=True)


class DecoratedFunction(Protocol[Parameters, Result]):
    """What `tf.function` and `tf.custom_gradient` make of a function: called as before; a method when in a class."""

    def __call__(self, *args: Parameters.args, **kwargs: Parameters.kwargs) -> Result: ...

    @overload
    def __get__(self, instance: None, owner: Any = None, /) -> Self: ...

    @overload
    def __get__(
        self: DecoratedFunction[Concatenate[Any, Rest], Result], instance: object, owner: Any = None, /
    ) -> DecoratedFunction[Rest, Result]: ...

    def __getattr__(self, name: str) -> Any: ...


class SupportsArray(Protocol):
    """An object that makes a NumPy array of itself, as the arrays, tensors and variables of other libraries do."""

    def __array__(self, dtype: Any = None, /) -> np.ndarray[Any, Any]: ...


class SupportsTensor(Protocol):
    """An object that makes a tensor of itself."""

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None, /) -> Any: ...


class CompositeLike(Protocol):
    """A value of several tensors: ragged and sparse tensors, `tf.IndexedSlices`, extension types."""

    @property
    def _type_spec(self) -> Any: ...


Number: TypeAlias = "bool | int | float | complex | np.generic"
Text: TypeAlias = "str | bytes"
_Array: TypeAlias = "Tensor | Variable | np.ndarray[Any, Any] | SupportsArray | SupportsTensor | CompositeLike"

NumericTensorLike: TypeAlias = "_Array | Number | NestedSequence[_Array | Number]"
StringTensorLike: TypeAlias = "_Array | Text | NestedSequence[_Array | Text]"
TensorLike: TypeAlias = "_Array | Number | Text | NestedSequence[_Array | Number | Text]"
IntLike: TypeAlias = "int | np.integer[Any] | Tensor | Variable | np.ndarray[Any, Any]"
FloatLike: TypeAlias = "float | np.number[Any] | Tensor | Variable | np.ndarray[Any, Any]"
BoolLike: TypeAlias = "bool | np.bool_ | Tensor | Variable | np.ndarray[Any, Any]"
AxisLike: TypeAlias = "IntLike | Sequence[IntLike]"
DTypeLike: TypeAlias = "DType | str | type[Any] | np.dtype[Any] | int"
ShapeLike: TypeAlias = "TensorShape | IntLike | Sequence[IntLike | None]"
