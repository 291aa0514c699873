"""`operator[...]`: the operator of some of the matrices of a batch."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.ops.arrays.conversion import convert_to_tensor


def sliced_operator(operator: Any, key: Any, batch: Any = None) -> Any:
    """The operator of the matrices that `key` takes from the batch, whose shape is `batch`."""
    keys = tuple(key) if isinstance(key, list | tuple) else (key,)
    batch = operator.batch_shape_tensor() if batch is None else batch
    components, plain = operator._divided_arguments()
    parts = {
        name: _sliced_part(part, operator._matrix_ndims.get(name, 0), keys, batch) for name, part in components.items()
    }
    if "batch_shape" in plain:  # of an operator without tensors
        ones = primitives.BroadcastTo(convert_to_tensor(0), batch)
        plain = {**plain, "batch_shape": _taken(ones, keys, 0).shape.as_list()}
    return type(operator)(**parts, **plain)


def _sliced_part(part: Any, ndims: int, keys: tuple[Any, ...], batch: Any) -> Any:
    if isinstance(part, list | tuple):
        return [_sliced_part(one, ndims, keys, batch) for one in part]
    if not _core.is_tensor(part):
        return sliced_operator(part, keys, batch)
    tensor = convert_to_tensor(part)
    sizes = primitives.Shape(tensor, batch.dtype)
    inner = sizes[-ndims:] if ndims else sizes[:0]
    return _taken(primitives.BroadcastTo(tensor, primitives.ConcatV2([batch, inner], 0)), keys, ndims)


def _taken(tensor: Any, keys: tuple[Any, ...], ndims: int) -> Any:
    """The slice of the leading dimensions; the last `ndims` stay whole."""
    has_ellipsis = any(key is Ellipsis for key in keys)
    return tensor[(*keys, *(() if has_ellipsis else (Ellipsis,)), *[slice(None)] * ndims)]
