"""What raw operations that count numbers refuse: ranks, sizes and values that do not fit each other."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.errors import InvalidArgumentError


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise InvalidArgumentError.of(message)


def check_size(who: str, size: Any) -> None:
    """Raises unless the number of bins is one number."""
    rank = size.shape.rank if _core.is_tensor(size) else np.ndim(size)
    _require(not rank, f"size must be a scalar: Shape must be rank 0 but is rank {rank}, in {who}")


def checked_length(who: str, size: Any) -> int:
    """The number of bins."""
    check_size(who, size)
    length = int(size)
    _require(length >= 0, f"{who}: size must be non-negative; got {length}")
    return length


def check_numbers(who: str, numbers: Any) -> None:
    """Raises unless all numbers that are counted are at least 0; values of a graph are not looked at."""
    if not _core.is_symbolic(numbers) and numbers.shape.num_elements():
        least = int(numbers.numpy().min())
        _require(least >= 0, f"{who}: Input values must all be non-negative: numbers must be non-negative; got {least}")


def check_weights(who: str, values: Any, weights: Any) -> None:
    """Raises unless there is one weight for each value, or none at all."""
    same = weights.shape.num_elements() == 0 or weights.shape.is_compatible_with(values.shape)
    _require(same, f"{who}: Weights and values must have the same shape; got {weights.shape} and {values.shape}")


def check_elements(who: str, indices: Any, values: Any, shape: Any) -> None:
    """Raises unless the parts of a sparse tensor have ranks and sizes that fit, and the indices lie in the shape."""
    indices, values, shape = (convert_to_tensor(x) for x in (indices, values, shape))
    rank = indices.shape.rank
    _require(rank in (None, 2), f"{who}: Input indices must be a 2-dimensional tensor; got shape {indices.shape}")
    _require(
        rank is None or indices.shape[:1].is_compatible_with(values.shape),
        f"{who}: Number of values must match first dimension of indices; got {values.shape} and {indices.shape}",
    )
    if _core.is_symbolic(indices) or _core.is_symbolic(shape):
        return
    places, sizes = indices.numpy(), shape.numpy()
    outside = ((places < 0) | (places >= sizes)).any(1)
    if outside.any():
        row = int(outside.argmax())
        _require(
            False, f"{who}: indices[{row}] = {places[row].tolist()} is out of bounds of the shape {sizes.tolist()}"
        )


def check_splits(who: str, splits: Any, values: Any) -> None:
    """Raises unless the splits of rows begin at 0 and end at the number of values."""
    splits, values = convert_to_tensor(splits), convert_to_tensor(values)
    count = splits.shape.num_elements()
    text = "Splits must be non-empty: Must provide at least 2 elements for the splits argument"
    _require(count is None or count >= 2, f"{who}: {text}; got {count}")
    if _core.is_symbolic(splits):
        return
    first, last = int(splits.numpy()[0]), int(splits.numpy()[-1])
    _require(first == 0, f"{who}: Splits must start with 0; got {first}")
    size = values.shape.num_elements()
    _require(size in (None, last), f"{who}: Splits must end with the number of values, {size}; got {last}")
