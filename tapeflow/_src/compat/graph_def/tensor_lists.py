"""Nodes that use lists of tensors: a list is a `TensorList`, which travels through loops and branches."""

from __future__ import annotations

from typing import Any

from tapeflow._src.compat.graph_def.program import Context, Step, handles
from tapeflow._src.compat.graph_def.variants import VariantList, is_variant_list
from tapeflow._src.control_flow import tensor_list
from tapeflow._src.ops.arrays.conversion import convert_to_tensor, get_static_value


@handles("EmptyTensorList")
def _empty(step: Step, values: list[Any], context: Context) -> Any:
    if step.attributes["element_dtype"].name == "variant":
        return [VariantList(convert_to_tensor(0), [])]
    shape, most = values
    if get_static_value(most) is None:  # a bound of memory, as large as the loop that fills the list is long
        most = -1
    return [tensor_list.empty_list(shape, most, step.attributes["element_dtype"])]


@handles("TensorListReserve")
def _reserve(step: Step, values: list[Any], context: Context) -> Any:
    shape, count = values
    if step.attributes["element_dtype"].name == "variant":
        return [VariantList(count, [])]
    return [tensor_list.reserved_list(shape, count, step.attributes["element_dtype"], context.library.lists_grow)]


@handles("TensorListFromTensor")
def _from_tensor(step: Step, values: list[Any], context: Context) -> Any:
    tensor, shape = values
    return [tensor if is_variant_list(tensor) else tensor_list.list_from_tensor(tensor, shape)]


@handles("TensorListStack")
def _stack(step: Step, values: list[Any], context: Context) -> Any:
    array, shape = values
    if is_variant_list(array):
        return [array]
    return [tensor_list.stacked(array, shape, None, step.attributes.get("num_elements", -1))]


@handles("TensorListGetItem")
def _get(step: Step, values: list[Any], context: Context) -> Any:
    array, index, shape = values
    return [array.element(index) if is_variant_list(array) else tensor_list.get_item(array, index, shape, None)]


@handles("TensorListSetItem")
def _set(step: Step, values: list[Any], context: Context) -> Any:
    array, index, item = values
    if isinstance(array, VariantList):
        return [array.with_element(index, item)]
    return [tensor_list.set_item(array, index, item, step.attributes.get("resize_if_index_out_of_bounds", False))]


@handles("TensorListLength")
def _length(step: Step, values: list[Any], context: Context) -> Any:
    return [values[0].row_count() if is_variant_list(values[0]) else tensor_list.list_length(values[0])]


@handles("TensorListElementShape")
def _element_shape(step: Step, values: list[Any], context: Context) -> Any:
    kind = step.attributes["shape_type"]
    if is_variant_list(values[0]):
        return [convert_to_tensor([], dtype=kind)]
    return [tensor_list.list_element_shape(values[0], kind)]


@handles("TensorListPushBack")
def _push(step: Step, values: list[Any], context: Context) -> Any:
    return [tensor_list.push_back(*values)]


@handles("TensorListPopBack")
def _pop(step: Step, values: list[Any], context: Context) -> Any:
    array, shape = values
    return list(tensor_list.pop_back(array, shape, None))


@handles("TensorListResize")
def _resize(step: Step, values: list[Any], context: Context) -> Any:
    return [tensor_list.resized(*values)]


@handles("TensorListGather")
def _gather(step: Step, values: list[Any], context: Context) -> Any:
    array, indices, shape = values
    return [tensor_list.gathered(array, indices, shape, None)]


@handles("TensorListScatter", "TensorListScatterV2")
def _scatter(step: Step, values: list[Any], context: Context) -> Any:
    return [tensor_list.scattered_list(*values)]


@handles("TensorListScatterIntoExistingList")
def _scatter_into(step: Step, values: list[Any], context: Context) -> Any:
    return [tensor_list.scatter_into_list(*values)]


@handles("TensorListSplit")
def _split(step: Step, values: list[Any], context: Context) -> Any:
    return [tensor_list.list_from_parts(*values)]


@handles("TensorListConcat")
def _concat(step: Step, values: list[Any], context: Context) -> Any:
    return list(tensor_list.concatenated(values[0], step.attributes.get("element_shape"), [], None))


@handles("TensorListConcatV2")
def _concat_v2(step: Step, values: list[Any], context: Context) -> Any:
    array, shape, leading = values
    return list(tensor_list.concatenated(array, shape, leading, None))


@handles("TensorListConcatLists")
def _concat_lists(step: Step, values: list[Any], context: Context) -> Any:
    first, second = values
    return [tensor_list.lists_joined(first, second, step.attributes["element_dtype"])]
