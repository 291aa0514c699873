"""Raw operations that take or change elements by index, and what they do about indices that lie outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.errors import InvalidArgumentError


def _ignores(policy: str) -> bool:
    """Whether indices that lie outside count as nothing; otherwise they are an error."""
    if policy not in ("", "DEFAULT", "ERROR", "IGNORE"):
        raise InvalidArgumentError.of(
            f"bad_indices_policy must be one of '', 'DEFAULT', 'ERROR', 'IGNORE'; got {policy!r}"
        )
    return policy == "IGNORE"


def _lies_inside(indices: Any, shape: Any) -> Any:
    """Which of the indices lie inside a shape."""
    depth = int(indices.shape[-1])
    limits = cast(shape[:depth], indices.dtype)
    inside = primitives.LogicalAnd(indices >= 0, indices < limits)
    return find_public("reduce_all")(inside, axis=-1)


def gather_nd(params: Any, indices: Any, bad_indices_policy: str) -> Any:
    """The elements at the indices; zeros for those that lie outside, if they are ignored."""
    take = find_public("gather_nd")
    if not _ignores(bad_indices_policy):
        return take(params, indices)
    params, indices = convert_to_tensor(params), convert_to_tensor(indices)
    inside = _lies_inside(indices, primitives.Shape(params))
    safe = find_public("where")(primitives.ExpandDims(inside, -1), indices, find_public("zeros_like")(indices))
    found = take(params, safe)
    for _ in range(found.shape.rank - inside.shape.rank):
        inside = primitives.ExpandDims(inside, -1)
    return find_public("where")(inside, found, find_public("zeros_like")(found))


def scatter_nd(indices: Any, updates: Any, shape: Any, bad_indices_policy: str) -> Any:
    """A tensor of zeros with the updates at the indices."""
    if _ignores(bad_indices_policy):
        indices, updates = _inside(indices, updates, convert_to_tensor(shape))
    return find_public("scatter_nd")(indices, updates, shape)


def _tensor_scatter(name: str) -> Callable[..., Any]:
    def scatter(tensor: Any, indices: Any, updates: Any, bad_indices_policy: str) -> Any:
        if _ignores(bad_indices_policy):
            indices, updates = _inside(indices, updates, primitives.Shape(convert_to_tensor(tensor)))
        return find_public(f"tensor_scatter_nd_{name}")(tensor, indices, updates)

    return scatter


def _inside(indices: Any, updates: Any, shape: Any) -> tuple[Any, Any]:
    """The indices that lie inside, and their updates."""
    indices, updates = convert_to_tensor(indices), convert_to_tensor(updates)
    inside, mask = _lies_inside(indices, shape), find_public("boolean_mask")
    return mask(indices, inside), mask(updates, inside)


_POLICY = "bad_indices_policy=''"
ROWS: list[tuple[str, str, Any]] = [
    ("GatherNd", f"params, indices, {_POLICY}", gather_nd),
    ("ScatterNd", f"indices, updates, shape, {_POLICY}", scatter_nd),
    ("ScatterNdNonAliasingAdd", f"input, indices, updates, {_POLICY}", _tensor_scatter("add")),
    *(
        (f"TensorScatter{name.title()}", f"tensor, indices, updates, {_POLICY}", _tensor_scatter(name))
        for name in ("add", "max", "min", "sub", "update")
    ),
]
