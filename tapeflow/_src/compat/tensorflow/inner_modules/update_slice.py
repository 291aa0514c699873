"""Taking and replacing a block of a tensor, as XLA does it."""

from __future__ import annotations

from typing import Any

from tapeflow._src.namespace import find_public as find
from tapeflow._src.types.dtypes import int32

cast, clip, convert_to_tensor = find("cast"), find("clip_by_value"), find("convert_to_tensor")
meshgrid, range_, shape, stack = find("meshgrid"), find("range"), find("shape"), find("stack")
slice_, tensor_scatter_nd_update = find("slice"), find("tensor_scatter_nd_update")


def dynamic_update_slice(operand: Any, update: Any, start_indices: Any) -> Any:
    """`operand` with the block that begins at `start_indices` replaced; the block is moved so that it lies inside."""
    operand, update = convert_to_tensor(operand), convert_to_tensor(update)
    if not operand.shape.rank:
        return update
    size = shape(update)
    start = clip(cast(start_indices, int32), 0, shape(operand) - size)
    lines = [start[axis] + range_(size[axis]) for axis in range(operand.shape.rank)]
    return tensor_scatter_nd_update(operand, stack(meshgrid(*lines, indexing="ij"), axis=-1), update)


def dynamic_slice(x: Any, starts: Any, sizes: Any, name: str | None = None) -> Any:
    """The block of `x` of these sizes that begins at `starts`; it is moved so that it lies inside."""
    x = convert_to_tensor(x)
    last = shape(x) - cast(convert_to_tensor(sizes), int32)
    return slice_(x, clip(cast(convert_to_tensor(starts), int32), 0, last), sizes)
