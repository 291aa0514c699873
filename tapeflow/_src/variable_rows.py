"""Which operation changes rows of a variable, and what fails if rows, indices or shapes do not fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_shape import TensorShape

ROW_UPDATES = ("scatter_add", "scatter_sub", "scatter_update")
SCATTER_BY_METHOD = {
    "scatter_add": primitives.TensorScatterAdd,
    "scatter_sub": primitives.TensorScatterSub,
    "scatter_max": primitives.TensorScatterMax,
    "scatter_min": primitives.TensorScatterMin,
    "scatter_update": primitives.TensorScatterUpdate,
}
SCATTER_BY_FUNCTION = {
    np.add.at: primitives.TensorScatterAdd,
    np.subtract.at: primitives.TensorScatterSub,
    np.maximum.at: primitives.TensorScatterMax,
    np.minimum.at: primitives.TensorScatterMin,
    None: primitives.TensorScatterUpdate,
}


def batch_places(indices: Any) -> Any:
    """For `indices` (batches..., n) their places (batches..., n, dimensions) for `scatter_nd_update`."""
    indices = cast(convert_to_tensor(indices), int64)
    rank = indices.shape.rank
    if not rank:
        raise ValueError(
            f"batch_scatter_update: indices must have a known rank of at least 1; got a tensor of shape {indices.shape}"
        )
    sizes, leading = primitives.Shape(indices), []
    for axis in range(rank - 1):
        numbers = cast(primitives.Range(0, sizes[axis], 1), int64)
        column = primitives.Reshape(numbers, [-1 if i == axis else 1 for i in range(rank)])
        leading.append(primitives.BroadcastTo(column, sizes))
    return primitives.Pack([*leading, indices], rank)


def check_rows(who: str, updates: TensorShape, indices: TensorShape, variable: TensorShape) -> None:
    """Checks what is known: new rows for all indices."""
    if variable.rank and not indices.concatenate(variable[1:]).is_compatible_with(updates):
        fail_rows(who, updates, indices, variable)


def fail_rows(who: str, updates: Any, indices: Any, variable: Any) -> None:
    raise InvalidArgumentError.of(
        f"{who}: Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got updates.shape "
        f"{list(updates)}, indices.shape {list(indices)}, params.shape {list(variable)}"
    )


def fail_index(who: str, position: int, index: int, limit: int) -> None:
    raise InvalidArgumentError.of(f"{who}: indices[{position}] = {index} is not in [0, {limit})")


def check_declared(initial: TensorShape, declared: TensorShape) -> None:
    """Checks the shape of an initial value against the one that the variable is to have."""
    if not declared.is_compatible_with(initial):
        raise ValueError(
            f"Variable: The initial value's shape ({initial}) is not compatible with the explicitly supplied `shape` "
            f"argument ({declared})."
        )
