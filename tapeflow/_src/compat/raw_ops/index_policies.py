"""Raw operations that take or change elements by index, and what they do about indices that lie outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor


def _gather_nd(params: Any, indices: Any, bad_indices_policy: str) -> Any:
    return primitives.GatherNd(params, indices, 0, bad_indices_policy)


def _update(tensor: Any, indices: Any, updates: Any, bad_indices_policy: str) -> Any:
    if bad_indices_policy != "IGNORE":
        return primitives.TensorScatterUpdate(tensor, indices, updates)
    tensor, indices, mask = convert_to_tensor(tensor), convert_to_tensor(indices), find_public("boolean_mask")
    limits = cast(primitives.Shape(tensor)[: indices.shape[-1]], indices.dtype)
    inside = primitives.All(primitives.LogicalAnd(indices >= 0, indices < limits), [-1], False)
    return primitives.TensorScatterUpdate(tensor, mask(indices, inside), mask(updates, inside))


_POLICY = "bad_indices_policy=''"
_SCATTERS: dict[str, Callable[..., Any]] = {
    "Add": primitives.TensorScatterAdd,
    "Max": primitives.TensorScatterMax,
    "Min": primitives.TensorScatterMin,
    "Sub": primitives.TensorScatterSub,
    "Update": _update,
}
ROWS: list[tuple[str, str, Any]] = [
    ("GatherNd", f"params, indices, {_POLICY}", _gather_nd),
    ("ScatterNd", f"indices, updates, shape, {_POLICY}", primitives.ScatterNd),
    ("ScatterNdNonAliasingAdd", f"input, indices, updates, {_POLICY}", primitives.TensorScatterAdd),
    *((f"TensorScatter{name}", f"tensor, indices, updates, {_POLICY}", scatter) for name, scatter in _SCATTERS.items()),
]
