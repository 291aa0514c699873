"""TensorFlow's `TensorList...` operations. A list never changes: an operation gives a new one."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.control_flow.list_values import TensorList
from tapeflow._src.control_flow.tensor_array import TensorArray
from tapeflow._src.control_flow.uneven_list import UnevenRows
from tapeflow._src.ops.arrays.constants import zeros, zeros_like
from tapeflow._src.ops.arrays.conversion import convert_to_tensor, get_static_value
from tapeflow._src.ops.arrays.shaping import ensure_shape
from tapeflow._src.types.dtypes import as_dtype, int32, int64, variant
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_shape import TensorShape, shape_text

# ---- what is given


def _refused(text: str) -> InvalidArgumentError:
    return InvalidArgumentError.of(text)


def _integers(value: Any) -> Any:
    """A tensor of integers; an empty list has no dtype of its own."""
    return convert_to_tensor(value, dtype=int32 if isinstance(value, list | tuple) and not value else None)


def element_shape_of(value: Any, who: str) -> TensorShape:
    """The element shape that an argument gives, as far as it is known: -1 is an unknown rank or dimension."""
    if value is None or isinstance(value, TensorShape):
        return TensorShape(value)
    tensor = _integers(value)
    rank = tensor.shape.rank
    if rank is not None and rank > 1:
        raise _refused(f"{who}: element_shape: Shape must be at most rank 1 but is rank {rank}")
    numbers = get_static_value(tensor, partial=True)
    if numbers is None:
        return TensorShape([None] * tensor.shape[0] if rank == 1 and tensor.shape[0] is not None else None)
    if np.ndim(numbers) == 0:
        if numbers != -1:
            text = "The only valid scalar shape tensor is the fully unknown shape specified as -1."
            raise _refused(f"{who}: element_shape: {text}")
        return TensorShape(None)
    wrong = [n for n in numbers.tolist() if n is not None and n < -1]
    if wrong:
        raise _refused(f"{who}: element_shape: Dimension {wrong[0]} must be >= -1")
    return TensorShape([None if n is None or n < 0 else int(n) for n in numbers.tolist()])


def _merged(one: TensorShape, two: TensorShape, who: str) -> TensorShape:
    if one.is_compatible_with(two):
        return one.merge_with(two)
    if one.rank != two.rank:
        raise _refused(f"{who}: Incompatible ranks during merge: {one.rank} vs. {two.rank}")
    raise _refused(f"{who}: Incompatible shapes during merge: {shape_text(one)} vs. {shape_text(two)}")


def _list(value: Any, who: str, element_dtype: Any = None) -> TensorList:
    """The list that is given, whose elements must have this dtype."""
    if not isinstance(value, TensorList):
        kind = value.dtype.name if isinstance(value, _core.Tensor) else type(value).__name__
        raise _refused(
            f"cannot compute {who} as input #0(zero-based) was expected to be a variant tensor but is a {kind} tensor"
        )
    if element_dtype is not None and as_dtype(element_dtype) != value._dtype:
        kinds = f"op elements {as_dtype(element_dtype).name} but list elements {value._dtype.name}"
        raise _refused(f"{who}: Invalid data types; {kinds}")
    return value


def _new(element_dtype: Any, size: Any, shape: TensorShape, who: str, grows: bool = True, most: int = -1) -> TensorList:
    kind = as_dtype(element_dtype)
    if kind == variant:
        raise NotImplementedError(f"{who}: lists whose elements are lists (element_dtype variant) are not supported")
    return TensorList(kind, size, shape, grows, most)


def _item(value: Any, array: TensorList, who: str, text: str) -> Any:
    """A tensor that becomes an element."""
    tensor = convert_to_tensor(value, dtype_hint=array._dtype)
    _list(array, who, tensor.dtype)
    if not array._element_shape.is_compatible_with(tensor.shape):
        raise _refused(f"{who}: {text}: {shape_text(tensor.shape)} list shape: {shape_text(array._element_shape)}")
    shape = array._element_shape.merge_with(tensor.shape)
    if isinstance(array._buffer, _core.Tensor) or shape_text(shape) == shape_text(tensor.shape):
        return tensor
    return ensure_shape(tensor, shape)


def _number(value: Any, who: str, name: str) -> Any:
    """A scalar as an int, or as a tensor if it is computed when the graph runs."""
    tensor = _integers(value)
    if tensor.shape.rank not in (None, 0):
        raise _refused(f"{who}: {name} must be a scalar, but got shape: {shape_text(tensor.shape)}")
    known = get_static_value(tensor)
    return tensor if known is None else int(known)


def _numbers(value: Any, who: str, name: str) -> Any:
    """A vector as a list of ints, or as a tensor if it is computed when the graph runs."""
    tensor = _integers(value)
    if tensor.shape.rank not in (None, 1):
        raise _refused(f"{who}: Expected {name} to be a vector, received shape: {shape_text(tensor.shape)}")
    known = get_static_value(tensor)
    return tensor if known is None else known.tolist()


def _vector(value: Any, who: str) -> Any:
    tensor = convert_to_tensor(value)
    if tensor.shape.rank == 0:
        raise _refused(f"{who}: Tensor must be at least a vector, but saw shape: []")
    return tensor


# ---- new lists


def empty_list(element_shape: Any, max_num_elements: Any, element_dtype: Any) -> TensorList:
    """A list without elements."""
    who = "EmptyTensorList"
    most = _number(max_num_elements, who, "max_num_elements")
    if not isinstance(most, int):
        raise NotImplementedError(f"{who}: max_num_elements must be known when the graph is built")
    return _new(element_dtype, 0, element_shape_of(element_shape, who), who, most=max(most, -1))


def reserved_list(element_shape: Any, num_elements: Any, element_dtype: Any, grows: bool = True) -> TensorList:
    """A list of elements that are not set."""
    who = "TensorListReserve"
    count = _number(num_elements, who, "num_elements")
    if isinstance(count, int) and count < 0:
        raise _refused(f"{who}: The num_elements to reserve must be a non negative number, but got {count}")
    return _new(element_dtype, count, element_shape_of(element_shape, who), who, grows)


def list_from_tensor(tensor: Any, element_shape: Any) -> TensorList:
    """The slices of a tensor as a list."""
    who = "TensorListFromTensor"
    tensor = _vector(tensor, who)
    array = _new(tensor.dtype, 0, _slice_shape(tensor, element_shape, who), who)
    if _core.is_symbolic(tensor):
        filled = array.unstack(tensor)
        assert isinstance(filled, TensorList)
        return filled
    return array._holding(primitives.Unpack(tensor, -1, 0))


def _slice_shape(tensor: Any, element_shape: Any, who: str) -> TensorShape:
    shape = element_shape_of(element_shape, who)
    if tensor.shape.rank is not None and not shape.is_compatible_with(tensor.shape[1:]):
        given = f"a list with shape {shape_text(shape)} from a tensor with shape {shape_text(tensor.shape[1:])}"
        raise _refused(f"{who}: Specified {given}")
    return shape


def scattered_list(tensor: Any, indices: Any, element_shape: Any, num_elements: Any = -1) -> TensorList:
    """The slices of a tensor at these positions of a new list."""
    who = "TensorListScatter"
    tensor = _vector(tensor, who)
    count, places = _number(num_elements, who, "num_elements"), _numbers(indices, who, "indices")
    shape = _slice_shape(tensor, element_shape, who)
    if isinstance(count, int) and count < -1:
        raise _refused(f"{who} expects num_elements >= -1, found: {count}")
    if not isinstance(places, list) or not isinstance(count, int):
        places = _integers(places)
        size = least = _least_size(places)
        if not isinstance(count, int) or count >= 0:
            text = f"{who}: Trying to scatter behind the end of a list with size num_elements"
            size = convert_to_tensor(count)
            places = _core.required(places, primitives.LessEqual(least, size), text)
        return _scattered(_new(tensor.dtype, size, shape, who), tensor, places, who)
    if count >= 0 and any(i >= count for i in places):
        wrong = next(i for i in places if i >= count)
        raise _refused(f"{who}: Trying to scatter at index {wrong} in list with size {count}")
    size = count if count >= 0 else max(0, 1 + max(places, default=-1))
    return _scattered(_new(tensor.dtype, size, shape, who), tensor, places, who)


def scatter_into_list(input_handle: Any, tensor: Any, indices: Any) -> TensorList:
    """The list with the slices of a tensor at these positions; it grows if they lie behind its end."""
    who = "TensorListScatterIntoExistingList"
    tensor = _vector(tensor, who)
    array = _list(input_handle, who, tensor.dtype)
    return _scattered(array, tensor, _numbers(indices, who, "indices"), who)


def _scattered(array: TensorList, tensor: Any, places: Any, who: str) -> TensorList:
    if isinstance(places, list):
        if any(i < 0 for i in places):
            raise _refused(f"Indices in {who} must all be non-negative.")
        rows = tensor.shape[0] if tensor.shape.rank else None
        if rows is not None and rows != len(places):
            raise _refused(f"{who}: Invalid number of rows in input tensor. Expected: {len(places)} Actual: {rows}")
        if rows is not None and array._buffer is None:
            tensors = [*array._tensors, *[None] * (1 + max(places, default=-1) - len(array._tensors))]
            for i, part in zip(places, primitives.Unpack(tensor, -1, 0)):
                tensors[i] = part
            return array._holding(tensors)
        places = convert_to_tensor(places, dtype=int32)
    text = f"Indices in {who} must all be non-negative."
    places = _core.required(places, primitives.All(primitives.GreaterEqual(places, 0)), text)
    buffer = array._as_buffer()
    if isinstance(buffer, UnevenRows):
        written: Any = buffer.scattered(places, tensor, True)
    else:
        size = primitives.Maximum(array.size(), _least_size(places))
        written = primitives.TensorScatterUpdate(
            resized(array, size)._as_buffer(), primitives.ExpandDims(places, -1), tensor
        )
    filled = array._with_buffer(written)
    assert isinstance(filled, TensorList)
    return filled


def _least_size(places: Any) -> Any:
    """The size of a list that has these positions."""
    return primitives.Max(primitives.ConcatV2([primitives.Cast(places, int32), [-1]], 0)) + 1


def list_from_parts(tensor: Any, element_shape: Any, lengths: Any) -> TensorList:
    """The parts of a tensor, of these lengths along its first dimension, as a list."""
    who = "TensorListSplit"
    tensor, shape = _vector(tensor, who), element_shape_of(element_shape, who)
    sizes = _numbers(lengths, who, "lengths")
    if shape.rank == 0:
        raise _refused(f"{who} requires element_shape to be at least of rank 1, but saw: []")
    whole = tensor.shape
    if whole.rank is not None and not TensorShape([None]).concatenate(whole[1:]).is_compatible_with(shape):
        raise _refused(
            f"{who}: tensor shape {shape_text(whole)} is not compatible with element_shape {shape_text(shape)}"
        )
    if not isinstance(sizes, list):
        array = _new(tensor.dtype, 0, TensorShape(None), who).split(tensor, sizes)
        assert isinstance(array, TensorList)
        return array
    used = 0
    for size in sizes:
        if size < 0:
            raise _refused(f"{who}: Invalid value in lengths: {size}")
        if whole.rank and whole[0] is not None and used + size > whole[0]:
            raise _refused(f"{who}: Attempting to slice [{used}, {used + size}] from tensor with length {whole[0]}")
        used += size
    if whole.rank and whole[0] not in (None, used):
        raise _refused(f"{who}: Unused values in tensor. Length of tensor: {whole[0]} Values used: {used}")
    if not whole.rank or whole[0] is None:
        text = f"{who}: Unused values in tensor. Values used: {used}"
        tensor = _core.required(tensor, primitives.LessEqual(primitives.Shape(tensor, int32)[0], used), text)
    return _new(tensor.dtype, 0, shape, who)._holding(primitives.SplitV(tensor, sizes, 0) if sizes else [])


# ---- one element


def _length(array: TensorList) -> Any:
    return len(array._tensors) if array._buffer is None else array.size()


def _narrowed(tensor: Any, shape: TensorShape) -> Any:
    if shape.rank is not None and _core.is_symbolic(tensor) and tensor.shape.rank in (None, shape.rank):
        tensor.set_shape(shape)
    return tensor


def _element(array: TensorList, index: int, shape: TensorShape, who: str) -> Any:
    """The element at a known position; zeros if it is not set."""
    tensor = array._tensors[index]
    if tensor is not None:
        return tensor
    shape = _merged(shape, array._element_shape, who)
    written = [t for t in array._tensors if t is not None]
    if not shape.is_fully_defined() and written:
        return zeros_like(written[0])
    if not shape.is_fully_defined():
        text = "Trying to read an uninitialized tensor but element_shape is not fully defined"
        raise _refused(f"{who}: {text}: {shape_text(shape)} and no list element is set.")
    return zeros(shape, array._dtype)


def _with_blanks_of(array: TensorList, shape: TensorShape, who: str) -> TensorArray:
    """The list, whose elements that are not set have this shape too."""
    shape = _merged(shape, array._element_shape, who)
    if array._is_even() or not shape.is_fully_defined():
        return array
    rows = array._as_buffer()
    if not isinstance(rows, UnevenRows):
        return array
    filled = array._with_buffer(rows.with_blanks(shape.as_list()))
    filled._element_shape = shape
    return filled


def get_item(input_handle: Any, index: Any, element_shape: Any, element_dtype: Any) -> Any:
    """The element at a position."""
    who = "TensorListGetItem"
    array, place = _list(input_handle, who, element_dtype), _number(index, who, "index")
    shape = element_shape_of(element_shape, who)
    if not isinstance(place, int) or array._buffer is not None:
        return _narrowed(_with_blanks_of(array, shape, who).read(place), shape)
    if not 0 <= place < _length(array):
        raise _refused(f"{who}: Trying to access element {place} in a list with {_length(array)} elements.")
    return _element(array, place, shape, who)


def set_item(input_handle: Any, index: Any, item: Any, resize_if_index_out_of_bounds: bool = False) -> TensorList:
    """The list with a tensor at a position."""
    who = "TensorListSetItem"
    array, place = _list(input_handle, who), _number(index, who, "index")
    text = "Tried to set a tensor with incompatible shape at a list index. Item element shape"
    tensor, most = _item(item, array, who, text), array._max_num_elements
    if not isinstance(place, int) or array._buffer is not None:
        place = convert_to_tensor(place)
        if resize_if_index_out_of_bounds and most >= 0:
            text = f"{who}: Trying to modify an element behind the {most} that the list may hold."
            tensor = _core.required(tensor, primitives.Less(place, most), text)
        return _written(array, place, tensor, resize_if_index_out_of_bounds)
    length = _length(array)
    grows = resize_if_index_out_of_bounds and (most < 0 or place < most)
    if place < 0 or (place >= length and not grows):
        raise _refused(f"{who}: Trying to modify element {place} in a list with {length} elements.")
    tensors = [*array._tensors, *[None] * (place + 1 - length)]
    tensors[place] = tensor
    return array._holding(tensors)


def _written(array: TensorList, place: Any, tensor: Any, growing: bool) -> TensorList:
    written = array._with_buffer(array._buffer_written(place, tensor, growing))
    assert isinstance(written, TensorList)
    return written


def push_back(input_handle: Any, tensor: Any) -> TensorList:
    """The list with one more element at its end."""
    who = "TensorListPushBack"
    array = _list(input_handle, who)
    text = "Tried to append a tensor with incompatible shape to a list. Op element shape"
    item, length, most = _item(tensor, array, who, text), _length(array), array._max_num_elements
    full = f"{who}: Tried to push item into a full list"
    if not isinstance(length, int):
        if most >= 0:
            item = _core.required(item, primitives.Less(length, most), f"{full} max_num_elements: {most}")
        return _written(array, length, item, True)
    if 0 <= most <= length:
        raise _refused(f"{full} list size: {length} max_num_elements: {most}")
    return array._holding([*array._tensors, item])


def pop_back(input_handle: Any, element_shape: Any, element_dtype: Any) -> tuple[TensorList, Any]:
    """The list without its last element, and that element."""
    who = "TensorListPopBack"
    array, shape = _list(input_handle, who, element_dtype), element_shape_of(element_shape, who)
    length = _length(array)
    if isinstance(length, int):
        if length == 0:
            raise _refused(f"{who}: Trying to pop from an empty list.")
        return array._holding(array._tensors[:-1]), _element(array, length - 1, shape, who)
    text = f"{who}: Trying to pop from an empty list."
    last = _core.required(length, primitives.Greater(length, 0), text) - 1
    element = _narrowed(_with_blanks_of(array, shape, who).read(last), shape)
    rows = array._buffer
    shorter = array._with_buffer(rows.resized(last) if isinstance(rows, UnevenRows) else rows[:-1])
    assert isinstance(shorter, TensorList)
    return shorter, element


# ---- all elements


def _joint_shape(tensors: list[Any], shape: TensorShape, who: str) -> TensorShape:
    """The shape that all elements must have."""
    for tensor in tensors:
        if tensor is not None:
            shape = _merged(shape, tensor.shape, who)
    return shape


def _stacked(array: TensorList, tensors: list[Any], shape: TensorShape, who: str, texts: tuple[str, str]) -> Any:
    """Elements at known positions as one tensor; `texts` say that there are none, or that none is set."""
    shape = _joint_shape(tensors, _merged(shape, array._element_shape, who), who)
    written = [t for t in (*tensors, *array._tensors) if t is not None]
    if not shape.is_fully_defined() and (not tensors or not written):
        raise _refused(f"{who}: {texts[bool(tensors)]}: {shape_text(shape)}")
    if not tensors:
        return zeros([0, *shape.as_list()], array._dtype)
    blank = None
    if any(t is None for t in tensors):
        blank = zeros(shape, array._dtype) if shape.is_fully_defined() else zeros_like(written[0])
    return primitives.Pack([blank if t is None else t for t in tensors], 0)


def stacked(input_handle: Any, element_shape: Any, element_dtype: Any, num_elements: Any = -1) -> Any:
    """All elements along a new first dimension."""
    who = "TensorListStack"
    array, shape = _list(input_handle, who, element_dtype), element_shape_of(element_shape, who)
    count = -1 if num_elements is None else num_elements
    text = f"{who}: Operation expected a list with {count} elements but got a list with"
    if array._buffer is not None:
        tensor = _with_blanks_of(array, shape, who).stack()
        known = tensor.shape[0] if tensor.shape.rank else None
        if count >= 0 and known != count:
            tensor = _core.required(tensor, primitives.Equal(array.size(), count), f"{text} another number of them.")
        return _narrowed(tensor, TensorShape([None if count < 0 else count]).concatenate(shape))
    length = len(array._tensors)
    if count not in (-1, length):
        raise _refused(f"{text} {length} elements.")
    texts = (
        "Tried to stack elements of an empty list with non-fully-defined element_shape",
        "Tried to stack list which only contains uninitialized tensors and has a non-fully-defined element_shape",
    )
    return _stacked(array, array._tensors, shape, who, texts)


def gathered(input_handle: Any, indices: Any, element_shape: Any, element_dtype: Any) -> Any:
    """The elements at these positions along a new first dimension."""
    who = "TensorListGather"
    array, shape = _list(input_handle, who, element_dtype), element_shape_of(element_shape, who)
    places = _numbers(indices, who, "indices")
    if not isinstance(places, list) or array._buffer is not None:
        tensor = _with_blanks_of(array, shape, who).gather(_integers(places))
        return _narrowed(tensor, TensorShape([None]).concatenate(shape))
    length = len(array._tensors)
    for i in places:
        if not 0 <= i < length:
            raise _refused(f"{who}: Trying to gather element {i} in a list with {length} elements.")
    texts = (
        "Tried to gather 0-elements from a list with non-fully-defined shape",
        "Tried to gather uninitialized tensors from a list with non-fully-defined element_shape",
    )
    return _stacked(array, [array._tensors[i] for i in places], shape, who, texts)


def concatenated(input_handle: Any, element_shape: Any, leading_dims: Any, element_dtype: Any) -> tuple[Any, Any]:
    """All elements joined along their first dimension, and how long each is there."""
    who = "TensorListConcat"
    array, shape = _list(input_handle, who, element_dtype), element_shape_of(element_shape, who)
    if array._buffer is not None:
        rows = array._buffer
        if isinstance(rows, UnevenRows):
            rows = rows.with_equal_blanks(
                f"{who}: List contains uninitialized tensors, and others of different shapes."
            )
            even = array._with_buffer(rows)
            even._element_shape = _merged(shape, array._element_shape, who)
            return even.concat(), primitives.Cast(rows.shapes[:, 1], int64)
        joined = array.concat()
        sizes = primitives.Shape(array.stack(), int64)
        return joined, primitives.BroadcastTo(sizes[1], sizes[:1])
    shape = _merged(shape, array._element_shape, who)
    if shape.rank == 0:
        raise _refused(f"{who}: Concat requires elements to be at least vectors, found scalars instead.")
    tensors, rest = array._tensors, TensorShape(None) if shape.rank is None else shape[1:]
    for i, tensor in enumerate(tensors):
        if tensor is not None and tensor.shape.rank == 0:
            raise _refused(f"{who}: Concat saw a scalar shape at index {i} but requires at least vectors.")
        if tensor is not None and tensor.shape.rank is not None:
            rest = _merged(rest, tensor.shape[1:], who)
    if not tensors:
        if not rest.is_fully_defined():
            text = "All except the first dimension must be fully defined when concating an empty tensor list."
            raise _refused(f"{who}: {text} element_shape: {shape_text(rest)}")
        return zeros([0, *rest.as_list()], array._dtype), zeros([0], int64)
    parts = _with_blanks(array, shape, rest, _numbers(leading_dims, who, "leading_dims"), who)
    known = [t.shape[0] if t.shape.rank else None for t in parts]
    lengths = (
        primitives.Pack([primitives.Shape(t, int64)[0] for t in parts], 0)
        if None in known
        else convert_to_tensor(known, dtype=int64)
    )
    return primitives.ConcatV2(parts, 0), lengths


def _with_blanks(array: TensorList, shape: TensorShape, rest: TensorShape, leading: Any, who: str) -> list[Any]:
    """The elements, and zeros for those that are not set: `leading` says how long these are."""
    tensors = array._tensors
    written = [t for t in tensors if t is not None]
    if len(written) == len(tensors):
        return list(tensors)
    if not rest.is_fully_defined() and not written:
        text = "Trying to concat list with only uninitialized tensors but element_shape_except_first_dim is not fully"
        raise _refused(f"{who}: {text} defined: {shape_text(rest)}")
    first = shape[0] if shape.rank else None
    if first is None and written and len({t.shape[0] for t in written}) == 1:
        first = written[0].shape[0]
    tail = rest.as_list() if rest.is_fully_defined() else [*primitives.Unpack(primitives.Shape(written[0], int32)[1:])]
    parts = []
    for i, tensor in enumerate(tensors):
        if tensor is None and isinstance(leading, list) and i >= len(leading) and first is None:
            text = f"List contains uninitialized tensor at index {i} but leading_dims has only {len(leading)} elements."
            raise _refused(f"{who}: {text}")
        if tensor is None:
            has_own = shape.rank is None or shape[0] is None
            size = leading[i] if has_own and (not isinstance(leading, list) or i < len(leading)) else first
            tensor = zeros([size, *tail], array._dtype)
        parts.append(tensor)
    return parts


# ---- the list


def list_length(input_handle: Any) -> Any:
    """How many elements there are."""
    return _list(input_handle, "TensorListLength").size()


def list_element_shape(input_handle: Any, shape_type: Any) -> Any:
    """The shape of elements as a tensor, -1 for what is not known."""
    shape = _list(input_handle, "TensorListElementShape")._element_shape
    numbers: Any = -1 if shape.rank is None else [-1 if n is None else n for n in shape.as_list()]
    return convert_to_tensor(np.asarray(numbers, as_dtype(shape_type).as_numpy_dtype))


def resized(input_handle: Any, size: Any) -> TensorList:
    """The first elements, and behind them, if more are wanted, elements that are not set."""
    who = "TensorListResize"
    array, count = _list(input_handle, who), _number(size, who, "size")
    if isinstance(count, int) and count < 0:
        raise _refused(f"{who}: TensorListSlice expects size to be non-negative. Got: {count}")
    if array._buffer is None and isinstance(count, int):
        return array._holding([*array._tensors[:count], *[None] * (count - len(array._tensors))])
    text = f"{who}: TensorListSlice expects size to be non-negative."
    count = convert_to_tensor(count)
    count = _core.required(count, primitives.GreaterEqual(count, 0), text)
    buffer = array._as_buffer()
    if isinstance(buffer, UnevenRows):
        changed = array._with_buffer(buffer.resized(count))
    else:
        if buffer.shape.rank is None:
            raise NotImplementedError(f"{who}: a list whose elements have an unknown rank cannot be resized")
        more = primitives.Maximum(count - primitives.Shape(buffer, int32)[0], 0)
        paddings = primitives.Pack([0, more, *[0] * (2 * (buffer.shape.rank - 1))], 0)
        changed = array._with_buffer(primitives.PadV2(buffer, paddings, 0)[:count])
    assert isinstance(changed, TensorList)
    return changed


def lists_joined(input_a: Any, input_b: Any, element_dtype: Any) -> TensorList:
    """The elements of both lists as one list."""
    who = "TensorListConcatLists"
    first, second = _list(input_a, who), _list(input_b, who)
    for name, array in (("input_a", first), ("input_b", second)):
        if array._dtype != as_dtype(element_dtype):
            kinds = f"Saw: {array._dtype.name} vs. {as_dtype(element_dtype).name}"
            raise _refused(f"{who}: {name}[0].dtype != element_dtype. {kinds}")
    shapes = [shape_text(array._element_shape) for array in (first, second)]
    if shapes[0] != shapes[1]:
        text = "input_a and input_b TensorList element shapes are not identical at index 0."
        raise _refused(f"{who}: {text} Saw {shapes[0]} vs. {shapes[1]}")
    if first._buffer is None and second._buffer is None:
        return first._holding([*first._tensors, *second._tensors])
    rows, more = first._as_buffer(), second._as_buffer()
    even = not isinstance(rows, UnevenRows)
    joined = first._with_buffer(primitives.ConcatV2([rows, more], 0) if even else rows.followed_by(more))
    assert isinstance(joined, TensorList)
    return joined
