"""What is known of tensors before they have values: shapes that tensors hold, conditions that are decided already."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.namespace import find_public
from tapeflow._src.types.tensor_shape import TensorShape, unknown_shape

_get_static_value = find_public("get_static_value")


def constant_value_as_shape(tensor: Any) -> TensorShape:
    """The shape that a vector of sizes stands for; sizes that are not known, or are -1, are None."""
    sizes = _get_static_value(tensor, partial=True)
    if sizes is None:
        return unknown_shape(tensor.shape[0] if tensor.shape.rank == 1 else None)
    return TensorShape([None if size is None or size == -1 else int(size) for size in sizes])


def try_evaluate_constant(tensor: Any) -> Any:
    """The value of a tensor of a graph if it is known while the graph is made, else None."""
    known = _core.known_value(tensor)
    return None if known is None else known.numpy()
