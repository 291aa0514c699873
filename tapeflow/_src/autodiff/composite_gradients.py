"""Gradients of and by values that consist of several tensors: which of their tensors take part."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.types import nest
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.types.tensor_spec import CompositeTensor


def is_composite(value: Any) -> bool:
    """Whether a value consists of several tensors."""
    if isinstance(value, _core.Tensor | _core.Variable):
        return False
    return isinstance(value, CompositeTensor | IndexedSlices) or hasattr(value, "_type_spec")


def _parts(value: Any) -> list[Any] | None:
    """All tensors of a value that consists of several; None for everything else."""
    if not is_composite(value) or _core.is_tensor(value):
        return None
    return [part for part in nest.flatten(value, expand_composites=True) if _core.is_tensor(part)]


def _components(value: Any) -> Any:
    """The tensors of a value by which, or of which, a derivative is taken."""
    if value is None or _core.is_tensor(value) or not is_composite(value):
        return value
    if isinstance(value, RaggedTensor):
        return value.flat_values
    if isinstance(value, IndexedSlices):
        return value.values
    protocol = getattr(value, "__composite_gradient__", None)
    if protocol is None:
        raise ValueError(
            f"Type {type(value).__name__} is not supported as a gradient source or gradient target. Take its tensors "
            "instead."
        )
    return nest.map_structure(_components, protocol.get_gradient_components(value))


def _replaced(value: Any, components: Any) -> Any:
    """The derivative by a value, from those by its tensors; None if all of them are."""
    if value is None or _core.is_tensor(value) or not is_composite(value):
        return components
    if all(part is None for part in nest.flatten(components)):
        return None
    if isinstance(value, RaggedTensor):
        return value.with_flat_values(components)
    if isinstance(value, IndexedSlices):
        return IndexedSlices(components, value.indices, value.dense_shape)
    return value.__composite_gradient__.replace_gradient_components(value, components)


def flat_tensors(leaves: list[Any]) -> list[Any]:
    """The tensors that take part in derivatives: the leaves themselves, and those of values that consist of several."""
    return [part for leaf in leaves for part in (nest.flatten(_components(leaf)) if is_composite(leaf) else [leaf])]


def with_tensors(leaves: list[Any], tensors: list[Any]) -> list[Any]:
    """The leaves with other tensors in place of those that `flat_tensors` gives."""
    found = iter(tensors)
    result = []
    for leaf in leaves:
        if not is_composite(leaf):
            result.append(next(found))
            continue
        components = _components(leaf)
        parts = [next(found) for _ in nest.flatten(components)]
        result.append(_replaced(leaf, nest.pack_sequence_as(components, parts)))
    return result


def _composite_gradient(tape: Any, target: Any, sources: Any, output_gradients: Any, unconnected: Any) -> Any:
    """`tape.gradient` where a target or a source is no tensor itself."""
    leaves = nest.flatten(sources)
    components = [_components(leaf) for leaf in leaves]
    targets = [_components(leaf) for leaf in nest.flatten(target)]
    dys = None if output_gradients is None else [_components(leaf) for leaf in nest.flatten(output_gradients)]
    choice = {} if unconnected is None else {"unconnected_gradients": unconnected}
    found = tape.gradient(targets, components, output_gradients=dys, **choice)
    return nest.pack_sequence_as(sources, [_replaced(*pair) for pair in zip(leaves, found)])


_core.register_objects({"composite_parts": _parts, "composite_gradient": _composite_gradient})
