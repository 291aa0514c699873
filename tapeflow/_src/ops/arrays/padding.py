"""`tf.pad` in its three modes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import holds_symbolic, shape_argument
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor, padding_value_of
from tapeflow._src.ops.arrays.indexing import boolean_mask as boolean_mask
from tapeflow._src.ops.arrays.indexing import gather as gather
from tapeflow._src.ops.arrays.indexing import take
from tapeflow._src.ops.arrays.indexing import where as where
from tapeflow._src.types.dtypes import bool_, int64, string
from tapeflow._src.types.errors import InvalidArgumentError


def _flat_pairs(pairs: list[Any]) -> list[int] | None:
    """A list of pairs of Python integers, one after the other; None if it is something else."""
    flat: list[int] = []
    for pair in pairs:
        if type(pair) is not list or len(pair) != 2 or type(pair[0]) is not int or type(pair[1]) is not int:
            return None
        flat += pair
    return flat


@public("pad")
def pad(tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None) -> Any:
    """More elements before and after each dimension: a constant, or a reflection of the tensor at its edge.

    `paddings` has the shape [rank, 2]. REFLECT leaves the edge out, SYMMETRIC repeats it.

    Args:
        tensor: The tensor.
        paddings: For each dimension how many elements to add before and after: `[[1, 1], [0, 2]]`.
        mode: 'CONSTANT', 'REFLECT' or 'SYMMETRIC'.
        constant_values: The value of the new elements in mode 'CONSTANT'.
        name: A name for the operation in graphs.

    Returns:
        A tensor, larger by the padding.

    Gradient:
        The part of `dy` that belongs to `tensor`, plus what reflections add.

    >>> tf.pad([1, 2], [[1, 2]])
    <tf.Tensor: shape=(5,), dtype=int32, numpy=array([0, 1, 2, 0, 0], dtype=int32)>
    """
    x = convert_to_tensor(tensor)
    if mode == "CONSTANT" and type(constant_values) is int and type(paddings) is list:
        flat = _flat_pairs(paddings) if x.dtype not in (bool_, string) else None
        if flat is not None and not _core.is_tracing() and len(paddings) == x.ndim > 0:
            return primitives.PadV2(x, flat, constant_values)
    if mode.upper() == "CONSTANT" and (holds_symbolic(paddings) or x.shape.rank is None):
        value = padding_value_of(constant_values, x.dtype)
        amounts = primitives.Reshape(convert_to_tensor(paddings), [-1])
        return primitives.PadV2(x, shape_argument(amounts), value)
    if mode.upper() in ("REFLECT", "SYMMETRIC") and holds_symbolic(paddings) and x.shape.rank:
        return _mirrored(x, convert_to_tensor(paddings), 0 if mode.upper() == "SYMMETRIC" else 1)
    pairs = np.asarray(paddings)
    if x.shape.rank == 0 and pairs.size == 0:
        return x
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.shape[0] != x.shape.rank:
        raise InvalidArgumentError.of(
            f"pad: The first dimension of paddings must be the rank of inputs {x.shape.as_list()}; paddings must be of "
            f"shape [{x.shape.rank}, 2], got {list(pairs.shape)}",
        )
    mode = mode.upper()
    if mode == "CONSTANT":
        value = padding_value_of(constant_values, x.dtype)
        return primitives.PadV2(x, [int(p) for p in pairs.reshape(-1)], value)
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise ValueError(
            "Value of argument `mode` expected to be one of 'CONSTANT', 'REFLECT', or 'SYMMETRIC'. "
            f"Received `mode` = {mode}"
        )
    edge = 0 if mode == "SYMMETRIC" else 1
    for axis, (before, after) in enumerate(pairs.tolist()):
        length = x.shape[axis]
        if before < 0 or after < 0 or (length is not None and max(before, after) > length - edge):
            raise InvalidArgumentError.of(
                "pad: paddings must be non-negative and no greater than the dimension size: "
                f"{before}, {after} greater than {None if length is None else length - edge}",
            )
        if (before or after) and (x.shape.num_elements() or 0) >= _WORTH_SLICING:
            front = _reversed_slice(x, axis, before - 1 + edge, before)
            back = _reversed_slice(x, axis, x.shape[axis] - 1 - edge, after)
            x = primitives.ConcatV2([*front, x, *back], axis)
        elif before or after:
            places = (_reflected if length is not None else _staged_reflected)(
                primitives.Shape(x, int64)[axis] if length is None else length, before, after, edge
            )
            x = take(x, places, axis)
    return x


_WORTH_SLICING = 4096  # elements: fewer are looked up faster than cut and joined


def _reversed_slice(x: Any, axis: int, first: int, count: int) -> list[Any]:
    """`count` positions of an axis from `first` on, backwards, in a list, which is empty if there are none."""
    if count == 0:
        return []
    begin, step, counts = [0] * x.ndim, [1] * x.ndim, x.shape.as_list()
    begin[axis], step[axis], counts[axis] = first, -1, count
    return [primitives.StridedSlice(x, begin, step, counts)]


def _mirrored(x: Any, paddings: Any, edge: int) -> Any:
    """The tensor with as much of its reflections as only the graph knows."""
    rank = x.shape.rank
    if not paddings.shape.is_compatible_with([rank, 2]):
        raise InvalidArgumentError.of(
            f"pad: The first dimension of paddings must be the rank of inputs {x.shape.as_list()}; paddings must be of "
            f"shape [{rank}, 2], got {paddings.shape}",
        )
    amounts, sizes = cast(paddings, int64), primitives.Shape(x, int64)
    most = primitives.ExpandDims(sizes - edge, 1)
    fits = primitives.LogicalAnd(primitives.GreaterEqual(amounts, 0), primitives.LessEqual(amounts, most))
    text = "pad: paddings must be non-negative and no greater than the dimension size"
    amounts = _core.required(amounts, primitives.All(fits), text)
    for axis in range(rank):
        last = sizes[axis] - 1
        places = primitives.Range(-amounts[axis, 0], last + 1 + amounts[axis, 1], 1)
        places = where(places < 0, edge - 1 - places, places)
        x = take(x, where(places > last, 2 * last + (1 - edge) - places, places), axis)
    return x


@lru_cache(64)
def _reflected(length: int, before: int, after: int, edge: int) -> Any:
    """The positions of a dimension with those of its reflection before and after it."""
    front = np.arange(before - 1 + edge, edge - 1, -1)
    back = np.arange(length - 1 - edge, length - 1 - edge - after, -1)
    return convert_to_tensor(np.concatenate([front, np.arange(length), back]).astype(np.int64))


def _staged_reflected(length: Any, before: int, after: int, edge: int) -> Any:
    """The same for a dynamic length."""
    one, last = cast(1, int64), length - 1 - edge
    front = convert_to_tensor(np.arange(before - 1 + edge, edge - 1, -1).astype(np.int64))
    parts = [primitives.Range(cast(0, int64), length, one), primitives.Range(last, last - after, -one)]
    return primitives.ConcatV2([front, *parts], 0)
