"""Values that branches may leave out: TensorFlow's gradients of branches read what only one of them computed.

In a graph both branches must give the same tensors. So a value that may be absent travels as a boolean and its
components, for which the branch without the value gives empty tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src import _core
from tapeflow._src.compat.graph_def.program import Context
from tapeflow._src.compat.raw_ops.optional_values import Optional
from tapeflow._src.control_flow.tracing import FuncGraph, building_inside
from tapeflow._src.ops.arrays.constants import zeros
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest

Branch = Callable[[], list[Any]]


def give_optionals(names: list[str], context: Context) -> bool:
    """Whether functions make values that may be absent."""
    return any(step.op.startswith("Optional") for name in names for step in context.library.program(name).steps)


def run_with_optionals(branches: list[Branch], choose: Callable[[list[Branch]], Any]) -> list[Any]:
    """The outputs of the branch that `choose` takes."""
    if not _core.is_tracing():
        return list(choose(branches))
    tried = [_tried(branch) for branch in branches]
    samples = [next((x for x in outputs if _has_components(x)), None) for outputs in zip(*tried)]
    absent = [all(isinstance(x, Optional) and x.components is None for x in outputs) for outputs in zip(*tried)]

    def spread(branch: Branch) -> Branch:
        return lambda: [
            None if nothing else x if sample is None else _parts(x, sample)
            for x, sample, nothing in zip(branch(), samples, absent)
        ]

    found = choose([spread(branch) for branch in branches])
    return [
        Optional(None) if nothing else x if sample is None else Optional(list(x[1]), x[0])
        for x, sample, nothing in zip(found, samples, absent)
    ]


def _tried(branch: Branch) -> list[Any]:
    """What a branch gives, traced into a graph that is not used."""
    with building_inside(FuncGraph(_core.current_graph())):
        return branch()


def _has_components(value: Any) -> bool:
    return isinstance(value, Optional) and value.components is not None


def _parts(value: Optional, sample: Optional) -> tuple[Any, list[Any]]:
    if value.components is not None:
        return convert_to_tensor(value.has_value), list(value.components)
    return convert_to_tensor(False), nest.map_structure(_empty, sample.components, expand_composites=True)


def _empty(like: Any) -> Any:
    """A tensor of the same dtype and rank without elements."""
    return zeros([0] * (like.shape.rank or 0), like.dtype)
