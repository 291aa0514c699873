"""The functions of `tensorflow.python.ops.list_ops`: tensor lists with element shapes that may be left out."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.compat.tensorflow.inner_modules.module_map import find_object
from tapeflow._src.control_flow import tensor_list
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.dtypes import int32
from tapeflow._src.types.tensor_shape import TensorShape


def build_element_shape(shape: Any) -> Any:
    """A shape as the operations take it: -1 for what is not known."""
    if isinstance(shape, _core.Tensor):
        return shape
    if isinstance(shape, TensorShape):
        shape = None if shape.rank is None else shape.as_list()
    if shape is None:
        return -1
    if isinstance(shape, np.ndarray | np.generic) or not shape:
        return convert_to_tensor(shape, dtype=int32)
    return [-1 if n is None else n for n in (getattr(size, "value", size) for size in shape)]


def empty_tensor_list(element_shape: Any, element_dtype: Any, max_num_elements: Any = None, name: Any = None) -> Any:
    """A list without elements."""
    most = -1 if max_num_elements is None else max_num_elements
    return tensor_list.empty_list(build_element_shape(element_shape), most, element_dtype)


def tensor_list_reserve(element_shape: Any, num_elements: Any, element_dtype: Any, name: Any = None) -> Any:
    """A list of elements that are not set."""
    return tensor_list.reserved_list(build_element_shape(element_shape), num_elements, element_dtype)


def tensor_list_from_tensor(tensor: Any, element_shape: Any, name: Any = None) -> Any:
    """The slices of a tensor as a list."""
    return tensor_list.list_from_tensor(tensor, build_element_shape(element_shape))


def tensor_list_get_item(
    input_handle: Any, index: Any, element_dtype: Any, element_shape: Any = None, name: Any = None
) -> Any:
    """The element at a position."""
    return tensor_list.get_item(input_handle, index, build_element_shape(element_shape), element_dtype)


def tensor_list_pop_back(input_handle: Any, element_dtype: Any, name: Any = None) -> Any:
    """The list without its last element, and that element."""
    return tensor_list.pop_back(input_handle, -1, element_dtype)


def tensor_list_gather(
    input_handle: Any, indices: Any, element_dtype: Any, element_shape: Any = None, name: Any = None
) -> Any:
    """The elements at these positions along a new first dimension."""
    return tensor_list.gathered(input_handle, indices, build_element_shape(element_shape), element_dtype)


def tensor_list_scatter(
    tensor: Any, indices: Any, element_shape: Any = None, input_handle: Any = None, name: Any = None
) -> Any:
    """The slices of a tensor at these positions of a new list, or of `input_handle`."""
    if input_handle is not None:
        return tensor_list.scatter_into_list(input_handle, tensor, indices)
    return tensor_list.scattered_list(tensor, indices, build_element_shape(element_shape))


def tensor_list_stack(
    input_handle: Any, element_dtype: Any, num_elements: Any = -1, element_shape: Any = None, name: Any = None
) -> Any:
    """All elements along a new first dimension."""
    return tensor_list.stacked(input_handle, build_element_shape(element_shape), element_dtype, num_elements)


def tensor_list_concat(input_handle: Any, element_dtype: Any, element_shape: Any = None, name: Any = None) -> Any:
    """All elements joined along their first dimension."""
    return tensor_list.concatenated(input_handle, build_element_shape(element_shape), [], element_dtype)[0]


def tensor_list_split(tensor: Any, element_shape: Any, lengths: Any, name: Any = None) -> Any:
    """The parts of a tensor, of these lengths, as a list."""
    return tensor_list.list_from_parts(tensor, build_element_shape(element_shape), lengths)


def tensor_list_set_item(
    input_handle: Any, index: Any, item: Any, resize_if_index_out_of_bounds: bool = False, name: Any = None
) -> Any:
    """The list with a tensor at a position."""
    return tensor_list.set_item(input_handle, index, item, resize_if_index_out_of_bounds)


NAMES: dict[str, Any] = {
    "_build_element_shape": build_element_shape,
    "empty_tensor_list": empty_tensor_list,
    "tensor_list_concat": tensor_list_concat,
    "tensor_list_concat_lists": find_object("raw_ops.TensorListConcatLists"),
    "tensor_list_element_shape": find_object("raw_ops.TensorListElementShape"),
    "tensor_list_from_tensor": tensor_list_from_tensor,
    "tensor_list_gather": tensor_list_gather,
    "tensor_list_get_item": tensor_list_get_item,
    "tensor_list_length": find_object("raw_ops.TensorListLength"),
    "tensor_list_pop_back": tensor_list_pop_back,
    "tensor_list_push_back": find_object("raw_ops.TensorListPushBack"),
    "tensor_list_reserve": tensor_list_reserve,
    "tensor_list_resize": find_object("raw_ops.TensorListResize"),
    "tensor_list_scatter": tensor_list_scatter,
    "tensor_list_set_item": tensor_list_set_item,
    "tensor_list_split": tensor_list_split,
    "tensor_list_stack": tensor_list_stack,
}
