"""Lists of tensors of different shapes in a graph, as two tensors.

One holds each element flattened, and filled up with zeros to the length of the longest; the other, what shape it has: a
row of it is zero if nothing was written there, else one more than the rank, and the dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from tapeflow._src import _core, primitives
from tapeflow._src.ops.arrays.constants import zeros
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.dtypes import int32
from tapeflow._src.types.tensor_shape import TensorShape

_MOST_DIMENSIONS = 8
_NEVER_WRITTEN = "elements that were never written, and whose shape is not known; give element_shape."


class UnevenRows(NamedTuple):
    """The elements, and their shapes."""

    rows: Any
    shapes: Any

    def length(self) -> Any:
        """The number of elements."""
        return primitives.Shape(self.rows, int32)[0]

    def written(self, index: Any, value: Any, growing: bool) -> UnevenRows:
        """The list with `value` at `index`."""
        flat = primitives.Reshape(value, [-1])
        width = primitives.Maximum(_width(self.rows), primitives.Shape(flat, int32)[0])
        rows = _core.list_set(_widened(self.rows, width), index, _filled(flat, width), growing)
        return UnevenRows(rows, _core.list_set(self.shapes, index, _shape_row(value), growing))

    def element(self, index: Any) -> Any:
        """The element at `index`."""
        shape_row = _core.list_get(self.shapes, index, TensorShape([1 + _MOST_DIMENSIONS]))
        row = _core.list_get(self.rows, index, TensorShape([0]))
        row = _core.required(row, shape_row[0] > 0, f"TensorArray.read: Trying to read {_NEVER_WRITTEN}")
        shape = shape_row[1 : shape_row[0]]
        return primitives.Reshape(row[: primitives.Prod(shape)], shape)

    def at(self, indices: Any) -> UnevenRows:
        """The elements at these positions as a list."""
        return UnevenRows(*(primitives.GatherV2(part, indices, 0, 0) for part in self))

    def stacked(self, element: TensorShape | None = None) -> Any:
        """All elements, which must have one shape, along a new first dimension; none need be there if it is known."""
        if element is not None and element.is_fully_defined():
            common, rows = _filled_shape(convert_to_tensor(element.as_list(), dtype=int32)), self.rows
        else:
            common = _largest(self.shapes)
            rows = _core.required(self.rows, common[0] > 0, f"TensorArray.stack: Tried to stack {_NEVER_WRITTEN}")
        same = primitives.LogicalOr(primitives.Equal(self.shapes, common), _unwritten(self.shapes))
        text = "TensorArray.stack: TensorArray has inconsistent shapes; all elements must have one."
        rows = _core.required(rows, primitives.All(same), text)
        return primitives.Reshape(rows, primitives.ConcatV2([self.length()[None], common[1 : common[0]]], 0))

    def joined(self, element: TensorShape | None = None) -> Any:
        """All elements joined along their first dimension; none need be there if the others are known."""
        if element is not None and element.rank and element[1:].is_fully_defined():
            common, rows = _filled_shape(convert_to_tensor([0, *element[1:].as_list()], dtype=int32)), self.rows
        else:
            common = _largest(self.shapes)
            rows = _core.required(self.rows, common[0] > 0, f"TensorArray.concat: Tried to concat {_NEVER_WRITTEN}")
        text = "TensorArray.concat: Concat saw a scalar shape but requires at least vectors."
        rows = _core.required(rows, common[0] > 1, text)
        free = primitives.LogicalOr(primitives.Equal(range(1 + _MOST_DIMENSIONS), 1), _unwritten(self.shapes))
        same = primitives.LogicalOr(primitives.Equal(self.shapes, common), free)
        text = "TensorArray.concat: TensorArray has inconsistent shapes; all dimensions but the first must be equal."
        rows = _core.required(rows, primitives.All(same), text)
        places = primitives.Range(0, _width(self.rows), 1)
        used = primitives.Less(places, primitives.ExpandDims(_sizes(self.shapes), -1))
        flat = primitives.GatherNd(rows, primitives.Where(used))
        total = primitives.Sum(self.shapes[:, 1])
        return primitives.Reshape(flat, primitives.ConcatV2([total[None], common[2 : common[0]]], 0))

    def with_blanks(self, shape: Any) -> UnevenRows:
        """The list with zeros of this shape where nothing was written."""
        row = _filled_shape(convert_to_tensor(shape, dtype=int32))
        width = primitives.Maximum(_width(self.rows), primitives.Prod(row[1 : row[0]]))
        shapes = primitives.SelectV2(_unwritten(self.shapes), row, self.shapes)
        return UnevenRows(_widened(self.rows, width), shapes)

    def with_equal_blanks(self, text: str) -> UnevenRows:
        """The list with zeros of the shape of the others where nothing was written; these must be equally long."""
        blank, common = _unwritten(self.shapes), _largest(self.shapes)
        equal = primitives.All(primitives.LogicalOr(blank, primitives.Equal(self.shapes, common)))
        complete = primitives.LogicalNot(primitives.Any(blank))
        rows = _core.required(self.rows, primitives.LogicalOr(equal, complete), text)
        return UnevenRows(rows, primitives.SelectV2(blank, common, self.shapes))

    def resized(self, length: Any) -> UnevenRows:
        """The first elements, as many as `length` says; nothing is written behind the last one."""
        longest = primitives.Maximum(length, self.length())
        wide = _resized(self.rows, longest, _width(self.rows)), _resized(self.shapes, longest, 1 + _MOST_DIMENSIONS)
        return UnevenRows(*(part[:length] for part in wide))

    def followed_by(self, other: UnevenRows) -> UnevenRows:
        """The elements of both lists."""
        width = primitives.Maximum(_width(self.rows), _width(other.rows))
        rows = primitives.ConcatV2([_widened(self.rows, width), _widened(other.rows, width)], 0)
        return UnevenRows(rows, primitives.ConcatV2([self.shapes, other.shapes], 0))

    def scattered(self, indices: Any, values: Any, growing: bool) -> UnevenRows:
        """The list with the slices of `values` at these positions."""
        given = from_slices(values)
        length, last = self.length(), primitives.Max(indices) + 1
        if growing:
            length = primitives.Maximum(length, last)
        else:
            text = "TensorArray.scatter: Trying to modify an element behind the end of a list."
            indices = _core.required(indices, primitives.LessEqual(last, length), text)
        width = primitives.Maximum(_width(self.rows), _width(given.rows))
        places = primitives.ExpandDims(indices, -1)
        new = _widened(given.rows, width)
        rows = primitives.TensorScatterUpdate(_resized(self.rows, length, width), places, new)
        shapes = _resized(self.shapes, length, 1 + _MOST_DIMENSIONS)
        return UnevenRows(rows, primitives.TensorScatterUpdate(shapes, places, given.shapes))


def from_tensors(tensors: Sequence[Any], dtype: Any) -> UnevenRows:
    """The list of these tensors; nothing is written where one is None."""
    if all(t is None for t in tensors):
        return blank(len(tensors), dtype)
    flat = [zeros([0], dtype) if t is None else primitives.Reshape(t, [-1]) for t in tensors]
    width = primitives.Max(primitives.Pack([primitives.Shape(t, int32)[0] for t in flat], 0))
    shapes = [zeros([1 + _MOST_DIMENSIONS], int32) if t is None else _shape_row(t) for t in tensors]
    return UnevenRows(primitives.Pack([_filled(t, width) for t in flat], 0), primitives.Pack(shapes, 0))


def blank(length: Any, dtype: Any) -> UnevenRows:
    """A list into which nothing was written."""
    return UnevenRows(zeros([length, 0], dtype), zeros([length, 1 + _MOST_DIMENSIONS], int32))


def shapes_shape(length: int | None) -> TensorShape:
    """The shape of the tensor of shapes."""
    return TensorShape([length, 1 + _MOST_DIMENSIONS])


def from_slices(tensor: Any) -> UnevenRows:
    """The list of the slices of a tensor."""
    sizes = primitives.Shape(tensor, int32)
    rows = primitives.Reshape(tensor, primitives.Pack([sizes[0], primitives.Prod(sizes[1:])], 0))
    return UnevenRows(rows, primitives.Tile(_filled_shape(sizes[1:])[None], primitives.Pack([sizes[0], 1], 0)))


def from_parts(tensor: Any, lengths: Any) -> UnevenRows:
    """The list of parts of a tensor, of these lengths along its first dimension."""
    lengths = primitives.Cast(lengths, int32)
    sizes = primitives.Shape(tensor, int32)
    text = "TensorArray.split: Expected sum of lengths to be equal to values.shape[0]"
    lengths = _core.required(lengths, primitives.Equal(primitives.Sum(lengths), sizes[0]), text)
    counts = lengths * primitives.Prod(sizes[1:])
    places = primitives.Range(0, primitives.Max(primitives.ConcatV2([counts, [0]], 0)), 1)
    used = primitives.Less(places, counts[:, None])
    starts = primitives.Cumsum(counts, 0, True)[:, None]
    behind = primitives.Prod(sizes)  # a zero is put there
    flat = primitives.ConcatV2([primitives.Reshape(tensor, [-1]), zeros([1], tensor.dtype)], 0)
    rows = primitives.GatherV2(flat, primitives.SelectV2(used, starts + places, behind), 0, 0)
    count = primitives.Shape(lengths, int32)[0]
    shapes = primitives.Tile(_filled_shape(sizes)[None], primitives.Pack([count, 1], 0))
    return UnevenRows(rows, primitives.ConcatV2([shapes[:, :1], lengths[:, None], shapes[:, 2:]], 1))


def _width(rows: Any) -> Any:
    return primitives.Shape(rows, int32)[1]


def _filled(flat: Any, width: Any) -> Any:
    return primitives.ConcatV2([flat, zeros([width - primitives.Shape(flat, int32)[0]], flat.dtype)], 0)


def _widened(rows: Any, width: Any) -> Any:
    """Filled up with zeros to this width."""
    sizes = primitives.Shape(rows, int32)
    return primitives.ConcatV2([rows, zeros([sizes[0], width - sizes[1]], rows.dtype)], 1)


def _resized(rows: Any, length: Any, width: Any) -> Any:
    """Filled up with zeros to this length and width."""
    more = zeros([length - primitives.Shape(rows, int32)[0], width], rows.dtype)
    return primitives.ConcatV2([_widened(rows, width), more], 0)


def _shape_row(value: Any) -> Any:
    return _filled_shape(primitives.Shape(value, int32))


def _filled_shape(shape: Any) -> Any:
    rank = primitives.Shape(shape, int32)[0]
    return primitives.ConcatV2([(rank + 1)[None], shape, zeros([_MOST_DIMENSIONS - rank], int32)], 0)


def _largest(shapes: Any) -> Any:
    return primitives.Max(primitives.ConcatV2([shapes, zeros([1, 1 + _MOST_DIMENSIONS], int32)], 0), 0)


def _unwritten(shapes: Any) -> Any:
    return primitives.Equal(shapes[:, :1], 0)


def _sizes(shapes: Any) -> Any:
    """The number of numbers in each element."""
    inside = primitives.Less(convert_to_tensor(range(_MOST_DIMENSIONS)), shapes[:, :1] - 1)
    sizes = primitives.Prod(primitives.SelectV2(inside, shapes[:, 1:], 1), 1)
    return primitives.SelectV2(_unwritten(shapes)[:, 0], 0, sizes)
