"""Coordinates of stored elements: flat positions, columns, order and choice."""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.ops.arrays.indexing import take
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor, SparseTensorValue


def is_sparse(x: Any) -> bool:
    """Whether `x` is a SparseTensor (or the NumPy tuple of one)."""
    return isinstance(x, SparseTensor | SparseTensorValue)


def as_sparse(x: Any, who: str) -> SparseTensor:
    """`x` as a SparseTensor; a TypeError if it is not one."""
    if not is_sparse(x):
        raise TypeError(f"{who}: Input must be a SparseTensor. Received: {x!r}")
    return x if isinstance(x, SparseTensor) else SparseTensor.from_value(x)


def dims_of_sparse(x: SparseTensor) -> list[int]:
    found: list[int] = x.dense_shape.numpy().tolist()
    return found


def row_major_strides(dims: list[int]) -> np.ndarray:
    return np.cumprod([1, *dims[::-1]])[:-1][::-1].astype(np.int64)


def can_flatten(dims: list[int]) -> bool:
    """Whether positions in a dense tensor of these dimensions are single int64 numbers."""
    return math.prod(dims) < 2**63


def flat_positions(indices: Any, dims: list[int]) -> Tensor:
    """Positions as single numbers, in the order of the elements of the dense tensor."""
    if not can_flatten(dims):
        raise InvalidArgumentError.of(f"tf.sparse: the dense shape must have less than 2**63 elements; got {dims}")
    return primitives.Sum(indices * row_major_strides(dims), 1, False)


def coordinates_of(flat: Any, dims: list[int]) -> Tensor:
    """Single numbers as positions."""
    if not dims:
        return (
            primitives.Reshape(flat, [-1, 0])
            if not flat.shape[0]
            else primitives.BroadcastTo(flat[:, None][:, :0], [flat.shape[0], 0])
        )
    columns = [
        primitives.FloorMod(primitives.FloorDiv(flat, int(step)), builtins.max(d, 1))
        for step, d in zip(row_major_strides(dims), dims)
    ]
    return primitives.Pack(columns, 1)


def true_positions(mask: Any) -> Tensor:
    return primitives.Squeeze(primitives.Where(mask), [1])


def chosen_elements(x: SparseTensor, mask: Any) -> tuple[Any, Any]:
    """The positions and elements of `x` where the mask is true, with dense gradients."""
    places = true_positions(mask)
    return primitives.GatherV2(x.indices, places, 0, 0), take(x.values, places, 0)
