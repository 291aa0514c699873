"""Sizes that the callers of operators' constructors give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.types.tensor_shape import TensorShape


def _refuse_variable(name: str, given: Any) -> None:
    if isinstance(given, _core.Variable):
        raise TypeError(f"Argument {name} cannot be reference type. Found: {given!r}")


def checked_size(name: str, size: Any) -> Any:
    """A number of rows or columns, as an integer; a tensor of a graph whose value is unknown stays one."""
    _refuse_variable(name, size)
    if _core.is_symbolic(size):
        return _checked_tensor(name, size, 0, checked_size)
    number = np.asarray(size)
    if number.dtype.kind not in "iu":
        raise TypeError(f"Argument `{name}` must be integer type. Found: {size!r}")
    if number.ndim:
        raise ValueError(f"Argument `{name}` must be a 0-D Tensor. Found: {size!r}")
    if number < 0:
        raise ValueError(f"Argument `{name}` must be non-negative. Found: {int(number)}")
    return int(number)


def checked_batch_shape(batch_shape: Any) -> Any:
    """A batch shape as a list; of None, the empty one; a tensor of a graph whose value is unknown stays one."""
    if batch_shape is None:
        return []
    _refuse_variable("batch_shape", batch_shape)
    if _core.is_symbolic(batch_shape):
        return _checked_tensor("batch_shape", batch_shape, 1, lambda _, known: checked_batch_shape(known))
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


def _checked_tensor(name: str, given: Any, rank: int, check: Callable[[str, Any], Any]) -> Any:
    if not given.dtype.is_integer:
        raise TypeError(f"Argument `{name}` must be integer type. Found: {given!r}")
    if given.shape.rank not in (None, rank):
        raise ValueError(f"Argument `{name}` must be a {rank}-D Tensor. Found: {given!r}")
    known = _core.known_value(given)
    return given if known is None else check(name, known)


def static_shape(batch: Any, *sizes: Any) -> Any:
    """The shape as far as it is known while tracing, from sizes that may be tensors of a graph; None without a rank."""
    if _core.is_symbolic(batch):
        if not batch.shape.is_fully_defined():
            return None
        batch = [None] * batch.shape[0]
    return [*batch, *(None if _core.is_symbolic(size) else size for size in sizes)]


def joined_size(join: Callable[[list[int]], int], sizes: list[Any]) -> Any:
    """The sum or product of sizes; None if one of them is unknown."""
    return None if None in sizes else join(sizes)
