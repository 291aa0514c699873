"""Sizes that the callers of operators' constructors give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src.types.tensor_shape import TensorShape


def checked_size(name: str, size: Any) -> int:
    """A number of rows or columns, as an integer."""
    number = np.asarray(size)
    if number.dtype.kind not in "iu":
        raise TypeError(f"Argument `{name}` must be integer type. Found: {size!r}")
    if number.ndim:
        raise ValueError(f"Argument `{name}` must be a 0-D Tensor. Found: {size!r}")
    if number < 0:
        raise ValueError(f"Argument `{name}` must be non-negative. Found: {int(number)}")
    return int(number)


def checked_batch_shape(batch_shape: Any) -> list[int]:
    """A batch shape as a list; of None, the empty one."""
    if batch_shape is None:
        return []
    if isinstance(batch_shape, TensorShape):
        batch_shape = batch_shape.as_list()
    sizes = np.asarray(batch_shape)
    if sizes.size and sizes.dtype.kind not in "iu":
        raise TypeError(f"Argument `batch_shape` must be integer type. Found: {batch_shape!r}")
    if sizes.ndim != 1:
        raise ValueError(f"Argument `batch_shape` must be a 1-D Tensor. Found: {batch_shape!r}")
    if (sizes < 0).any():
        raise ValueError(f"Argument `batch_shape` must be non-negative. Found: {batch_shape!r}")
    return [int(d) for d in sizes]


def joined_size(join: Callable[[list[int]], int], sizes: list[Any]) -> Any:
    """The sum or product of sizes; None if one of them is unknown."""
    return None if None in sizes else join(sizes)
