"""`TensorListStack` and the like: raw operations on tensor lists."""

from __future__ import annotations

from typing import Any

from tapeflow._src.control_flow import tensor_list
from tapeflow._src.types.errors import InvalidArgumentError


def concat(input_handle: Any, element_dtype: Any, element_shape: Any = None) -> tuple[Any, Any]:
    """`TensorListConcat`: the elements joined, and their lengths; `element_shape` is an attribute here."""
    if tensor_list.element_shape_of(element_shape, "TensorListConcat").rank == 0:
        raise InvalidArgumentError.of("TensorListConcat: element_shape must not be empty")
    return tensor_list.concatenated(input_handle, element_shape, [], element_dtype)


ROWS: list[tuple[str, str, Any]] = [
    ("EmptyTensorList", "element_shape, max_num_elements, element_dtype", tensor_list.empty_list),
    ("TensorListConcat", "input_handle, element_dtype, element_shape=None", concat),
    ("TensorListConcatLists", "input_a, input_b, element_dtype", tensor_list.lists_joined),
    ("TensorListConcatV2", "input_handle, element_shape, leading_dims, element_dtype", tensor_list.concatenated),
    ("TensorListElementShape", "input_handle, shape_type", tensor_list.list_element_shape),
    ("TensorListFromTensor", "tensor, element_shape", tensor_list.list_from_tensor),
    ("TensorListGather", "input_handle, indices, element_shape, element_dtype", tensor_list.gathered),
    ("TensorListGetItem", "input_handle, index, element_shape, element_dtype", tensor_list.get_item),
    ("TensorListLength", "input_handle", tensor_list.list_length),
    ("TensorListPopBack", "input_handle, element_shape, element_dtype", tensor_list.pop_back),
    ("TensorListPushBack", "input_handle, tensor", tensor_list.push_back),
    ("TensorListReserve", "element_shape, num_elements, element_dtype", tensor_list.reserved_list),
    ("TensorListResize", "input_handle, size", tensor_list.resized),
    ("TensorListScatter", "tensor, indices, element_shape", tensor_list.scattered_list),
    ("TensorListScatterIntoExistingList", "input_handle, tensor, indices", tensor_list.scatter_into_list),
    ("TensorListScatterV2", "tensor, indices, element_shape, num_elements", tensor_list.scattered_list),
    ("TensorListSetItem", "input_handle, index, item, resize_if_index_out_of_bounds=False", tensor_list.set_item),
    ("TensorListSplit", "tensor, element_shape, lengths", tensor_list.list_from_parts),
    ("TensorListStack", "input_handle, element_shape, element_dtype, num_elements=-1", tensor_list.stacked),
]
