"""Indexing tensors by lists, arrays and masks, as NumPy does; plain slices and numbers belong to the core."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import int64


def _is_array(part: Any) -> bool:
    """Whether a part of a key is one that only NumPy's rules cover: a list, an array or a tensor with dimensions."""
    if isinstance(part, list | tuple | np.ndarray):
        return True
    if not _core.is_tensor(part):
        return False
    return bool(part.shape.rank != 0 or part.dtype.is_bool)


def needs_numpy_rules(key: Any) -> bool:
    """Whether a key has lists, arrays or masks in it."""
    return any(_is_array(part) for part in key) if isinstance(key, tuple) else _is_array(key)


def take_like_numpy(x: Any, key: Any) -> Any:
    """`x[key]` by NumPy's rules: index arrays broadcast, and stand at the place of the first if they are neighbours."""
    x = convert_to_tensor(x)
    converted = _converted(key if isinstance(key, tuple) else (key,))
    _check_masks(converted, x.shape)
    given = _with_positions(converted)
    order = [number for number, part in enumerate(given) if _core.is_tensor(part)]
    neighbours = order[-1] - order[0] + 1 == len(order)  # as they are written: an ellipsis parts them, even if empty
    parts = _with_every_dimension(given, x.shape.rank)
    arrays = [(axis, part) for axis, part in enumerate(parts) if _core.is_tensor(part)]
    x = x[tuple(slice(None) if _core.is_tensor(part) else part for part in parts)]
    return _gathered(x, arrays, arrays[0][0] if neighbours else 0)


def _converted(key: tuple[Any, ...]) -> list[Any]:
    """The key with tensors in place of index arrays, masks and numbers."""
    return [
        part
        if part is None or part is Ellipsis or isinstance(part, slice)
        else convert_to_tensor(np.asarray(part, np.int64) if isinstance(part, list | tuple) and not part else part)
        for part in key
    ]


def _check_masks(key: list[Any], shape: Any) -> None:
    """A mask has the sizes of the dimensions that it stands for, or is empty there."""
    counts = [0 if part is None or part is Ellipsis else part.shape.rank if _is_mask(part) else 1 for part in key]
    axis = 0
    for number, part in enumerate(key):
        if part is Ellipsis:
            axis = shape.rank - sum(counts[number + 1 :])
        elif _is_mask(part):
            for d, size in enumerate(part.shape.as_list(), axis):
                if d < shape.rank and None not in (size, shape[d]) and size not in (0, shape[d]):
                    raise IndexError(
                        f"boolean index did not match indexed array along axis {d}; size of axis is {shape[d]} but "
                        f"size of corresponding boolean axis is {size}"
                    )
        axis += counts[number]


def _is_mask(part: Any) -> bool:
    return _core.is_tensor(part) and part.dtype.is_bool


def _with_positions(key: list[Any]) -> list[Any]:
    """The key with index arrays in place of masks, and of numbers, which count as arrays beside other arrays."""
    parts: list[Any] = []
    for part in key:
        if not _core.is_tensor(part):
            parts.append(part)
        elif not part.dtype.is_bool:
            if not part.dtype.is_integer:
                raise IndexError(f"arrays used as indices must be of integer (or boolean) type; got {part.dtype.name}")
            parts.append(cast(part, int64))
        else:
            places = primitives.Where(part)
            parts += [places[:, i] for i in range(part.shape.rank)]
    return parts


def _with_every_dimension(parts: list[Any], rank: int) -> list[Any]:
    """The key with a part for each dimension: full slices for an ellipsis and at the end."""
    count = sum(part is not None and part is not Ellipsis for part in parts)
    if count > rank:
        raise IndexError(f"too many indices for array: array is {rank}-dimensional, but {count} were indexed")
    filling = [slice(None)] * (rank - count)
    places = [number for number, part in enumerate(parts) if part is Ellipsis]
    if len(places) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if not places:
        return parts + filling
    return parts[: places[0]] + filling + parts[places[0] + 1 :]


def _gathered(x: Any, arrays: list[tuple[int, Any]], place: int) -> Any:
    """`x` taken at index arrays along some axes; their dimensions go to `place`."""
    axes = [axis for axis, _ in arrays]
    rest = [axis for axis in range(x.shape.rank) if axis not in axes]
    sizes = primitives.Shape(x, int64)
    positions = [primitives.SelectV2(index < 0, index + sizes[axis], index) for axis, index in arrays]
    shape = primitives.Shape(_sum(positions), int64)
    rank = _sum(positions).shape.rank
    stacked = primitives.Pack([primitives.BroadcastTo(index, shape) for index in positions], -1)
    found = primitives.GatherNd(primitives.Transpose(x, axes + rest), stacked)
    before = [rank + i for i in range(place)]
    after = [rank + i for i in range(place, len(rest))]
    return primitives.Transpose(found, before + list(range(rank)) + after)


def _sum(tensors: list[Any]) -> Any:
    total = tensors[0]
    for tensor in tensors[1:]:
        total = total + tensor
    return total
