"""`tf.TensorShape`, a shape that may be partly unknown, and TensorFlow 1's `Dimension`; real sizes are the core's."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from operator import index
from typing import Any, NoReturn

from tapeflow._src._core import TensorShapeBase
from tapeflow._src.namespace import PACKAGE_FOLDER, lazy_members, public

Dims = tuple[int | None, ...]


@public("TensorShape", "compat.v1.TensorShape")
@lazy_members("tapeflow._src.io.protos.tensor_protos.ShapeMessages", "as_proto")
class TensorShape(TensorShapeBase):
    """The shape of a tensor, in which single sizes (None), or even their number (`TensorShape(None)`), may be unknown.

    `len`, iteration, integer indices, `rank`, `ndims` and `as_list` are in the core.

    >>> tf.TensorShape([None, 3]).merge_with([2, None])
    TensorShape([2, 3])
    """

    __slots__ = ()

    _dims: Dims | None

    def __new__(cls, dims: Any) -> TensorShape:
        return super().__new__(cls, _as_dims(dims))

    @property
    def dims(self) -> list[Dimension] | None:
        """The sizes as `tf.compat.v1.Dimension`, or None if their number is unknown."""
        if self._dims is None:
            return None
        return [Dimension(size) for size in self._dims]

    def _getslice(self, key: slice) -> TensorShape:
        """Answers `shape[1:]` for the core."""
        if self._dims is not None:
            return _shape_of(self._dims[key])
        start = 0 if key.start is None else index(key.start)
        if key.step is not None:
            raise ValueError("Steps are not yet handled")
        if key.stop is None or start < 0 or index(key.stop) < 0:
            return unknown_shape()
        return unknown_shape(max(index(key.stop) - start, 0))

    def num_elements(self) -> int | None:
        """The number of elements, or None if a size is unknown.

        >>> tf.TensorShape([2, 3]).num_elements()
        6
        """
        if self._dims is None:
            return None
        count = 1
        for size in self._dims:
            if size is None:
                return None
            count *= size
        return count

    def is_fully_defined(self) -> bool:
        """Whether every size is known."""
        return self._dims is not None and None not in self._dims

    def is_compatible_with(self, other: Any) -> bool:
        """Whether one tensor can have both shapes.

        >>> tf.TensorShape([None, 3]).is_compatible_with([2, 3])
        True
        """
        theirs = as_shape(other)._dims
        if self._dims is None or theirs is None:
            return True
        return len(self._dims) == len(theirs) and all(map(_sizes_agree, self._dims, theirs))

    def merge_with(self, other: Any) -> TensorShape:
        """The shape that knows what either of the two knows."""
        if self._dims is None:
            return as_shape(other)
        other = as_shape(other)
        if other._dims is None:
            return self
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are not compatible")
        return _shape_of(tuple(b if a is None else a for a, b in zip(self._dims, other._dims)))

    def concatenate(self, other: Any) -> TensorShape:
        """The sizes of this shape followed by those of `other`.

        >>> tf.TensorShape([2]).concatenate([3, None])
        TensorShape([2, 3, None])
        """
        theirs = as_shape(other)._dims
        if self._dims is None or theirs is None:
            return unknown_shape()
        return _shape_of(self._dims + theirs)

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """The narrowest shape that both shapes fit: sizes that differ become unknown.

        >>> tf.TensorShape([2, 3]).most_specific_compatible_shape([2, 4])
        TensorShape([2, None])
        """
        theirs = as_shape(other)._dims
        if self._dims is None or theirs is None or len(self._dims) != len(theirs):
            return unknown_shape()
        return _shape_of(tuple(a if a == b else None for a, b in zip(self._dims, theirs)))

    def is_subtype_of(self, other: Any) -> bool:
        """Whether each tensor of this shape has the shape `other` too."""
        if not isinstance(other, TensorShape):
            return False
        if other._dims is None:
            return True
        if self._dims is None or len(self._dims) != len(other._dims):
            return False
        return all(b is None or a == b for a, b in zip(self._dims, other._dims))

    def most_specific_common_supertype(self, others: Sequence[Any]) -> TensorShape | None:
        """The narrowest shape that this and all other shapes fit."""
        shape = self
        for other in others:
            if not isinstance(other, TensorShape):
                return None
            shape = shape.most_specific_compatible_shape(other)
        return shape

    def placeholder_value(self, placeholder_context: Any) -> None:
        """None: no value stands for a shape while a function is traced."""
        return

    def assert_has_rank(self, rank: int) -> None:
        """Raises ValueError if this shape cannot have `rank` dimensions."""
        if self.rank not in (None, rank):
            raise ValueError(f"Shape {self} must have rank {rank}")

    def assert_same_rank(self, other: Any) -> None:
        """Raises ValueError if the two shapes have known and different numbers of dimensions."""
        other = as_shape(other)
        if self.rank is not None and other.rank is not None and self.rank != other.rank:
            raise ValueError(f"Shapes {self} and {other} must have the same rank")

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError if no tensor can have both shapes."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Shapes {self} and {other} are incompatible")

    def assert_is_fully_defined(self) -> None:
        """Raises ValueError if a size is unknown."""
        if not self.is_fully_defined():
            raise ValueError(f"Shape {self} is not fully defined")

    def with_rank(self, rank: int) -> TensorShape:
        """This shape with `rank` dimensions.

        >>> tf.TensorShape(None).with_rank(2)
        TensorShape([None, None])
        """
        try:
            return self.merge_with(unknown_shape(rank))
        except ValueError:
            raise ValueError(f"Shape {self} must have rank {rank}") from None

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """This shape, which must not be known to have fewer than `rank` dimensions."""
        if self.rank is not None and self.rank < rank:
            raise ValueError(f"Shape {self} must have rank at least {rank}")
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """This shape, which must not be known to have more than `rank` dimensions."""
        if self.rank is not None and self.rank > rank:
            raise ValueError(f"Shape {self} must have rank at most {rank}")
        return self

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return as_shape(other).concatenate(self)

    def __bool__(self) -> bool:
        return self._dims is not None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, TensorShape):
            return self._dims == other._dims
        try:
            return self._dims == _as_dims(other)
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __repr__(self) -> str:
        return f"TensorShape({None if self._dims is None else list(self._dims)})"

    def __str__(self) -> str:
        return "<unknown>" if self._dims is None else str(self._dims)

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorShape, (self._dims,)


def as_shape(shape: Any) -> TensorShape:
    """`shape` itself if it is a `TensorShape`, else one made from it."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def shape_text(shape: TensorShape) -> str:
    """A shape as TensorFlow's messages write it: [?,2]."""
    if shape.rank is None:
        return "<unknown>"
    return f"[{','.join('?' if size is None else str(size) for size in shape.as_list())}]"


def unknown_shape(rank: int | None = None) -> TensorShape:
    """A shape of which at most the number of dimensions is known.

    >>> unknown_shape(2)
    TensorShape([None, None])
    """
    return _shape_of(None if rank is None else (None,) * rank)


def _shape_of(dims: Dims | None) -> TensorShape:
    """The shape of sizes that are known to be right."""
    return TensorShapeBase.__new__(TensorShape, dims)


def _as_dims(dims: Any) -> Dims | None:
    if dims is None:
        return None
    if isinstance(dims, TensorShape):
        return dims._dims
    if isinstance(dims, (tuple, list)):
        return tuple([_as_size(size) for size in dims])
    try:
        sizes = iter(dims)
    except TypeError:
        return (_as_size(dims),)
    known: list[int | None] = []
    for size in sizes:
        try:
            known.append(_as_size(size))
        except TypeError as error:
            raise TypeError(
                f"Failed to convert '{dims!r}' to a shape: '{size!r}'could not be converted to a dimension. A shape "
                f"should either be single dimension (e.g. 10), or an iterable of dimensions (e.g. [1, 10, None])."
            ) from error
    return tuple(known)


def _as_size(value: Any) -> int | None:
    if value is None or (type(value) is int and value >= 0):
        return value
    if isinstance(value, Dimension):
        return value.value
    try:
        size = index(value)
    except (AttributeError, TypeError):
        raise TypeError(
            f"Dimension value must be integer or None or have an __index__ method, "
            f"got value '{value!r}' with type '{type(value)!r}'"
        ) from None
    if size < 0:
        raise ValueError(f"Dimension {size} must be >= 0")
    return size


def _sizes_agree(a: int | None, b: int | None) -> bool:
    return a is None or b is None or a == b


@public("compat.v1.Dimension")
class Dimension:
    """One size of a TensorFlow 1 shape, perhaps unknown; arithmetic and comparison with an unknown size give unknown.

    >>> tf.compat.v1.Dimension(3) + 2
    Dimension(5)
    """

    __slots__ = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = _as_size(value)

    @property
    def value(self) -> int | None:
        """The size, or None if it is unknown."""
        return self._value

    def is_compatible_with(self, other: Any) -> bool:
        """Whether the two sizes are equal or one of them is unknown."""
        return _sizes_agree(self._value, _as_size(other))

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raises ValueError if the two sizes are known and differ."""
        if not self.is_compatible_with(other):
            raise ValueError(f"Dimensions {self} and {other} are not compatible")

    def merge_with(self, other: Any) -> Dimension:
        """The size that is known by either of the two."""
        other = Dimension(other)
        self.assert_is_compatible_with(other)
        return Dimension(other._value if self._value is None else self._value)

    def _calculate(self, other: Any, operation: Any) -> Any:
        try:
            size = _as_size(other)
        except (TypeError, ValueError):
            return NotImplemented
        known = self._value is not None and size is not None
        return Dimension(operation(self._value, size) if known else None)

    def _compare(self, other: Any, operation: Any) -> Any:
        try:
            size = _as_size(other)
        except (TypeError, ValueError):
            return NotImplemented
        return operation(self._value, size) if self._value is not None and size is not None else None

    def __add__(self, other: Any) -> Any:
        return self._calculate(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Any:
        return self._calculate(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return self._calculate(other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> Any:
        return self._calculate(other, lambda a, b: a * b)

    def __floordiv__(self, other: Any) -> Any:
        return self._calculate(other, lambda a, b: a // b)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._calculate(other, lambda a, b: b // a)

    def __mod__(self, other: Any) -> Any:
        return self._calculate(other, lambda a, b: a % b)

    def __rmod__(self, other: Any) -> Any:
        return self._calculate(other, lambda a, b: b % a)

    __radd__ = __add__
    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> NoReturn:
        raise TypeError(
            f"unsupported operand type(s) for /: 'Dimension' and {type(other).__name__!r}, please use // instead"
        )

    def __rtruediv__(self, other: Any) -> NoReturn:
        raise TypeError(
            f"unsupported operand type(s) for /: {type(other).__name__!r} and 'Dimension', please use // instead"
        )

    def __eq__(self, other: object) -> Any:
        return self._compare(other, lambda a, b: a == b)

    def __ne__(self, other: object) -> Any:
        return self._compare(other, lambda a, b: a != b)

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, lambda a, b: a < b)

    def __le__(self, other: Any) -> Any:
        return self._compare(other, lambda a, b: a <= b)

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, lambda a, b: a > b)

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, lambda a, b: a >= b)

    __hash__ = None  # type: ignore[assignment]  # equality can be unknown

    def __bool__(self) -> bool:
        return bool(self._value)

    def __int__(self) -> int:
        if self._value is None:
            raise TypeError("__int__ returned non-int (type NoneType)")
        return self._value

    __index__ = __int__

    def __repr__(self) -> str:
        return f"Dimension({self._value!r})"

    def __str__(self) -> str:
        return "?" if self._value is None else str(self._value)

    def __reduce__(self) -> tuple[Any, ...]:
        return Dimension, (self._value,)


class _DimensionShape:
    """The members of `TensorShape` in TensorFlow 1's mode: programs see `Dimension`s, Tapeflow itself plain sizes."""

    def __getitem__(self: Any, key: Any) -> Any:
        found = TensorShapeBase.__getitem__(self, key)
        return Dimension(found) if _asked_by_program() and not isinstance(key, slice) else found

    def __iter__(self: Any) -> Iterator[Any]:
        sizes = TensorShapeBase.__iter__(self)
        return (Dimension(size) for size in sizes) if _asked_by_program() else sizes

    def __repr__(self: Any) -> str:
        return f"TensorShape({self.dims})"

    def __str__(self: Any) -> str:
        if self.rank is None:
            return "<unknown>"
        sizes = ["?" if size is None else str(size) for size in self.as_list()]
        return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"


def _asked_by_program() -> bool:
    return not sys._getframe(2).f_code.co_filename.startswith(PACKAGE_FOLDER)


_DIMENSION_MEMBERS = ("__getitem__", "__iter__", "__repr__", "__str__")
_own_members = {name: vars(TensorShape).get(name) for name in _DIMENSION_MEMBERS}


def set_dimension_shapes(enabled: bool) -> None:
    """Whether the elements of shapes are `Dimension`s, as in TensorFlow 1, or sizes and None."""
    for name in _DIMENSION_MEMBERS:
        member = vars(_DimensionShape)[name] if enabled else _own_members[name]
        if member is not None:
            setattr(TensorShape, name, member)
        elif name in vars(TensorShape):
            delattr(TensorShape, name)


@public("compat.dimension_value", "compat.v1.dimension_value")
def dimension_value(dimension: Any) -> int | None:
    """The size as a number or None, of a TensorFlow 1 `Dimension` as of a plain size.

    >>> tf.compat.dimension_value(tf.compat.v1.Dimension(3))
    3
    """
    return dimension.value if isinstance(dimension, Dimension) else dimension


@public("compat.dimension_at_index", "compat.v1.dimension_at_index")
def dimension_at_index(shape: TensorShape, index: int) -> Dimension:
    """The size at `index` as a TensorFlow 1 `Dimension`, unknown if the number of dimensions is.

    >>> tf.compat.dimension_at_index(tf.TensorShape([2, 3]), -1)
    Dimension(3)
    """
    dims = as_shape(shape).dims
    return Dimension(None) if dims is None else dims[index]
