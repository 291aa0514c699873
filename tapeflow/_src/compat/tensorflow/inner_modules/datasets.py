"""Inner names of `tf.data`: structures of elements, in which a list is a tensor to be, and a shuffle of the whole."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src.data.dataset import Dataset
from tapeflow._src.data.pipes.structure import as_element, map_leaves, spec_of_leaf
from tapeflow._src.namespace import find_public
from tapeflow._src.types import nest, nest_paths
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_spec import TypeSpec


class _Leaf:
    """A leaf that no other function takes apart."""

    def __init__(self, value: Any) -> None:
        self.value = value


def is_nested(structure: Any) -> bool:
    """Whether an element has parts; a list has none."""
    return not isinstance(structure, list) and nest.is_nested(structure)


def flatten(structure: Any) -> list[Any]:
    """The leaves of an element."""
    return [leaf.value for leaf in nest.flatten(map_leaves(_Leaf, structure))]


def pack_sequence_as(structure: Any, flat_sequence: Any) -> Any:
    """Leaves in the structure of an element."""
    if not isinstance(flat_sequence, list | tuple):
        raise TypeError(f"Argument `flat_sequence` must be a sequence. Got {flat_sequence!r}")
    if not is_nested(structure):
        if len(flat_sequence) != 1:
            raise ValueError(f"Argument `structure` is a scalar but `len(flat_sequence)`={len(flat_sequence)} > 1")
        return flat_sequence[0]
    return nest.pack_sequence_as(map_leaves(_Leaf, structure), list(flat_sequence))


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """An error unless two elements have the same structure."""
    nest.assert_same_structure(map_leaves(_Leaf, nest1), map_leaves(_Leaf, nest2), check_types)


def map_structure(func: Callable[..., Any], *structure: Any, **check_types_dict: Any) -> Any:
    """A structure of `func(...)` of the leaves of elements."""
    if not callable(func):
        raise TypeError(f"Argument `func` must be callable, got: {func}")
    if not structure:
        raise ValueError("Must provide at least one structure")
    check_types = check_types_dict.pop("check_types", True)
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in zip(*map(flatten, structure))])


def are_compatible(spec1: Any, spec2: Any) -> bool:
    """Whether elements of one specification are elements of another."""
    try:
        assert_same_structure(spec1, spec2)
    except (TypeError, ValueError):
        return False
    pairs = zip(flatten(spec1), flatten(spec2))
    return all(a.is_compatible_with(b) and b.is_compatible_with(a) for a, b in pairs)


def type_spec_from_value(element: Any, use_fallback: bool = True) -> Any:
    """The specification of an element."""
    return map_leaves(lambda leaf: leaf if isinstance(leaf, TypeSpec) else spec_of_leaf(leaf), element)


def global_shuffle(
    input_dataset: Dataset, seed: Any = None, reshuffle_each_iteration: bool = True, name: str | None = None
) -> Dataset:
    """All elements of a dataset in a random order; their number must be known."""
    count = int(find_public("data.experimental.cardinality")(input_dataset))
    if count < 0:
        kind = "infinite" if count == find_public("data.INFINITE_CARDINALITY") else "unknown"
        raise InvalidArgumentError.of(
            "`global_shuffle` requires the input dataset to have a non-empty finite cardinality. Got cardinality "
            f"{count} ({kind})."
        )
    shuffled: Dataset = input_dataset.shuffle(max(count, 1), seed, reshuffle_each_iteration, name)
    return shuffled


def flatten_up_to(shallow_tree: Any, input_tree: Any) -> list[Any]:
    """The parts of an element at the leaves of a shallower structure."""
    assert_shallow_structure(shallow_tree, input_tree)
    found: list[Any] = nest_paths.flatten_up_to(map_leaves(_Leaf, shallow_tree), input_tree, check_types=False)
    return found


def assert_shallow_structure(shallow_tree: Any, input_tree: Any, check_types: bool = True) -> None:
    """An error unless one structure is the upper part of another."""
    nest_paths.assert_shallow_structure(map_leaves(_Leaf, shallow_tree), input_tree, check_types)


def map_structure_up_to(shallow_tree: Any, func: Callable[..., Any], *inputs: Any) -> Any:
    """`func` of the parts of elements at the leaves of a shallower structure."""
    if not inputs:
        raise ValueError("Argument `inputs` is empty. Cannot map over no sequences.")
    parts = [flatten_up_to(shallow_tree, tree) for tree in inputs]
    return pack_sequence_as(shallow_tree, [func(*leaves) for leaves in zip(*parts)])


def get_flat_tensor_specs(element_spec: Any) -> list[Any]:
    """The specifications of the tensors of which an element consists."""
    return [part for spec in flatten(element_spec) for part in nest.flatten(spec, expand_composites=True)]


def get_flat_tensor_types(element_spec: Any) -> list[Any]:
    """The dtypes of the tensors of which an element consists."""
    return [spec.dtype for spec in get_flat_tensor_specs(element_spec)]


def get_flat_tensor_shapes(element_spec: Any) -> list[Any]:
    """The shapes of the tensors of which an element consists."""
    return [spec.shape for spec in get_flat_tensor_specs(element_spec)]


def to_tensor_list(element_spec: Any, element: Any) -> list[Any]:
    """The tensors of which an element consists."""
    assert_same_structure(element_spec, element)
    pairs = list(zip(flatten(element_spec), flatten(as_element(element))))
    for spec, leaf in pairs:
        if not spec.is_compatible_with(leaf):
            raise ValueError(f"Value {leaf} is not compatible with {spec}.")
    return [part for _, leaf in pairs for part in nest.flatten(leaf, expand_composites=True)]


def from_tensor_list(element_spec: Any, tensor_list: Any) -> Any:
    """An element of the tensors of which it consists."""
    specs = get_flat_tensor_specs(element_spec)
    if len(specs) != len(tensor_list):
        raise ValueError(f"Expected {len(specs)} tensors but got {len(tensor_list)}.")
    for spec, tensor in zip(specs, tensor_list):
        if not spec.is_compatible_with(tensor):
            raise ValueError(f"Tensor {tensor} is not compatible with {spec}.")
    rest = iter(tensor_list)
    leaves = []
    for spec in flatten(element_spec):
        parts = [next(rest) for _ in nest.flatten(spec, expand_composites=True)]
        leaves.append(nest.pack_sequence_as(spec, parts, expand_composites=True))
    return pack_sequence_as(element_spec, leaves)


def sleep(sleep_microseconds: int) -> Callable[[Dataset], Dataset]:
    """A transformation that waits before each element."""

    def wait(_: Any) -> Any:
        time.sleep(int(sleep_microseconds) / 1e6)
        return np.int64(0)

    def apply(dataset: Dataset) -> Dataset:
        def after(*element: Any) -> Any:
            waited = find_public("numpy_function")(wait, [find_public("constant")(0, "int64")], "int64")
            with find_public("control_dependencies")([waited]):
                found = map_structure(find_public("identity"), element)
            return found[0] if len(found) == 1 else found

        slow: Dataset = dataset.map(after)
        return slow

    return apply


class _TestMode:
    """Whether tests of datasets run: nothing depends on it."""

    on = False


def toggle_test_mode(test_mode: bool) -> None:
    """Says that tests of datasets run."""
    _TestMode.on = test_mode


names_by_path: dict[str, dict[str, Any]] = {
    "python.data.experimental.ops.global_shuffle_op": {"_global_shuffle": global_shuffle},
    "python.data.experimental.ops.testing": {"sleep": sleep},
    "python.data.ops.test_mode": {"toggle_test_mode": toggle_test_mode},
    "python.data.util.nest": {
        "assert_same_structure": assert_same_structure,
        "assert_shallow_structure": assert_shallow_structure,
        "flatten": flatten,
        "flatten_up_to": flatten_up_to,
        "is_nested": is_nested,
        "map_structure": map_structure,
        "map_structure_up_to": map_structure_up_to,
        "pack_sequence_as": pack_sequence_as,
    },
    "python.data.util.structure": {
        "are_compatible": are_compatible,
        "from_tensor_list": from_tensor_list,
        "get_flat_tensor_shapes": get_flat_tensor_shapes,
        "get_flat_tensor_specs": get_flat_tensor_specs,
        "get_flat_tensor_types": get_flat_tensor_types,
        "to_tensor_list": to_tensor_list,
        "type_spec_from_value": type_spec_from_value,
    },
}
