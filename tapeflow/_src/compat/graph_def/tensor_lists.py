"""Nodes that use lists of tensors: a list is a `tf.TensorArray`, which travels through loops and branches."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.compat.graph_def.program import Context, Step, handles
from tapeflow._src.compat.graph_def.variants import VariantList, is_variant_list
from tapeflow._src.control_flow.tensor_array import TensorArray
from tapeflow._src.control_flow.uneven_list import UnevenRows
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.tensor_shape import TensorShape


def _shape(value: Any) -> TensorShape:
    """The element shape that a tensor gives, as far as it is known."""
    if not isinstance(value, _core.Tensor) or _core.is_symbolic(value):
        size = None if value.shape.rank is None or value.shape.rank == 0 else value.shape[0]
        return TensorShape(None if size is None else [None] * size)
    numbers = np.asarray(value.numpy())
    if numbers.ndim == 0:
        return TensorShape(None)
    return TensorShape([None if n < 0 else int(n) for n in numbers.tolist()])


def _known(value: Any) -> int | None:
    """The number that a tensor holds, unless it is computed when the graph runs."""
    return None if _core.is_symbolic(value) else int(value)


def _list(dtype: Any, size: Any, shape: TensorShape, grows: bool) -> TensorArray:
    return TensorArray(dtype, size, dynamic_size=grows, clear_after_read=False, infer_shape=False, element_shape=shape)


@handles("EmptyTensorList")
def _empty(step: Step, values: list[Any], context: Context) -> Any:
    if step.attributes["element_dtype"].name == "variant":
        return [VariantList(convert_to_tensor(0), [])]
    return [_list(step.attributes["element_dtype"], 0, _shape(values[0]), True)]


@handles("TensorListReserve")
def _reserve(step: Step, values: list[Any], context: Context) -> Any:
    if step.attributes["element_dtype"].name == "variant":
        return [VariantList(values[1], [])]
    count = _known(values[1])
    size, grows = values[1] if count is None else count, context.library.lists_grow
    return [_list(step.attributes["element_dtype"], size, _shape(values[0]), grows)]


@handles("TensorListFromTensor")
def _from_tensor(step: Step, values: list[Any], context: Context) -> Any:
    tensor, shape = values
    if is_variant_list(tensor):
        return [tensor]
    return [_list(tensor.dtype, 0, _shape(shape), True).unstack(tensor)]


@handles("TensorListStack")
def _stack(step: Step, values: list[Any], context: Context) -> Any:
    if is_variant_list(values[0]):
        return [values[0]]
    tensor = values[0].stack()
    shape, count = _shape(values[1]), step.attributes.get("num_elements", -1)
    if shape.rank is not None and tensor.shape.rank in (None, shape.rank + 1):
        tensor.set_shape(TensorShape([None if count is None or count < 0 else count]).concatenate(shape))
    return [tensor]


@handles("TensorListGetItem")
def _get(step: Step, values: list[Any], context: Context) -> Any:
    array, index, shape = values
    if is_variant_list(array):
        return [array.element(index)]
    tensor = array.read(index)
    known = _shape(shape)
    if known.rank is not None and _core.is_symbolic(tensor) and tensor.shape.rank in (None, known.rank):
        tensor.set_shape(known)
    return [tensor]


@handles("TensorListSetItem")
def _set(step: Step, values: list[Any], context: Context) -> Any:
    array, index, item = values
    return [array.with_element(index, item) if isinstance(array, VariantList) else array.write(index, item)]


@handles("TensorListLength")
def _length(step: Step, values: list[Any], context: Context) -> Any:
    return [values[0].row_count() if is_variant_list(values[0]) else values[0].size()]


@handles("TensorListElementShape")
def _element_shape(step: Step, values: list[Any], context: Context) -> Any:
    shape = TensorShape([]) if is_variant_list(values[0]) else values[0].element_shape
    numbers: Any = -1 if shape.rank is None else [-1 if n is None else n for n in shape.as_list()]
    return [convert_to_tensor(np.asarray(numbers, step.attributes["shape_type"].as_numpy_dtype))]


@handles("TensorListPushBack")
def _push(step: Step, values: list[Any], context: Context) -> Any:
    array, item = values
    return [array.write(array.size(), item)]


@handles("TensorListPopBack")
def _pop(step: Step, values: list[Any], context: Context) -> Any:
    array, shape = values
    last = array.size() - 1
    tensor = array.read(last)
    known = _shape(shape)
    if known.rank is not None and _core.is_symbolic(tensor) and tensor.shape.rank in (None, known.rank):
        tensor.set_shape(known)
    if array._buffer is None:
        shorter = array._with_buffer(None)
        shorter._tensors = array._tensors[:-1]
    elif isinstance(array._buffer, UnevenRows):
        shorter = array._with_buffer(array._buffer.resized(last))
    else:
        shorter = array._with_buffer(array._buffer[:-1])
    return [shorter, tensor]


@handles("TensorListResize")
def _resize(step: Step, values: list[Any], context: Context) -> Any:
    array, size = values
    count = _known(size)
    if array._buffer is None and count is not None:
        resized = array._with_buffer(None)
        resized._tensors = [*array._tensors[:count], *[None] * (count - len(array._tensors))]
        return [resized]
    buffer = array._as_buffer()
    if isinstance(buffer, UnevenRows):
        return [array._with_buffer(buffer.resized(size))]
    more = primitives.Maximum(size - primitives.Shape(buffer, "int32")[0], 0)
    rank = buffer.shape.rank
    if rank is None:
        raise NotImplementedError("a list whose elements have an unknown rank cannot be resized")
    paddings = primitives.Pack([0, more, *[0] * (2 * (rank - 1))], 0)
    return [array._with_buffer(primitives.PadV2(buffer, paddings, 0)[:size])]


@handles("TensorListGather")
def _gather(step: Step, values: list[Any], context: Context) -> Any:
    return [values[0].gather(values[1])]


@handles("TensorListScatter", "TensorListScatterV2")
def _scatter(step: Step, values: list[Any], context: Context) -> Any:
    tensor, indices, shape, *count = values
    size = count[0] if count and (_known(count[0]) or 0) >= 0 else primitives.Max(indices) + 1
    known = _known(size)
    array = _list(tensor.dtype, size if known is None else known, _shape(shape), True)
    return [array.scatter(indices, tensor)]


@handles("TensorListScatterIntoExistingList")
def _scatter_into(step: Step, values: list[Any], context: Context) -> Any:
    array, tensor, indices = values
    return [array.scatter(indices, tensor)]


@handles("TensorListSplit")
def _split(step: Step, values: list[Any], context: Context) -> Any:
    tensor, shape, lengths = values
    count = lengths.shape[0] or 0
    return [_list(tensor.dtype, count, _shape(shape), True).split(tensor, lengths)]


@handles("TensorListConcat", "TensorListConcatV2")
def _concat(step: Step, values: list[Any], context: Context) -> Any:
    array = values[0]
    joined = array.concat()
    if array._buffer is None:
        lengths = [primitives.Shape(t, "int64")[0] for t in array._tensors]
        return [joined, primitives.Pack(lengths, 0) if lengths else convert_to_tensor(np.zeros(0, np.int64))]
    sizes = primitives.Shape(array.stack(), "int64")
    return [joined, primitives.BroadcastTo(sizes[1], sizes[:1])]


@handles("TensorListConcatLists")
def _concat_lists(step: Step, values: list[Any], context: Context) -> Any:
    first, second = values
    if first._buffer is None and second._buffer is None:
        joined = first._with_buffer(None)
        joined._tensors = [*first._tensors, *second._tensors]
        return [joined]
    rows, more = first._as_buffer(), second._as_buffer()
    if isinstance(rows, UnevenRows):
        return [first._with_buffer(rows.followed_by(more))]
    return [first._with_buffer(primitives.ConcatV2([rows, more], 0))]
