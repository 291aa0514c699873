"""Elements of datasets: structures of leaves (tensors and what is built of them), and the specifications of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.control_flow.tensor_array import TensorArray
from tapeflow._src.data.handles import HandleSpec
from tapeflow._src.function.trace import running_at_once
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.extension.extension_type import BatchableExtensionType, BatchableExtensionTypeSpec
from tapeflow._src.ops.ragged.joining import stack as stack_ragged
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor, RaggedTensorSpec
from tapeflow._src.ops.ragged.rows import gather_rows
from tapeflow._src.ops.sparse import sparse
from tapeflow._src.types import nest
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor, SparseTensorSpec, SparseTensorValue
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.tensor_spec import CompositeTensor, NoneTensorSpec, TensorSpec, TypeSpec, type_spec_from_value

Leaves = tuple[Any, ...]


# ---- leaves


def as_leaf(value: Any) -> Any:
    """A value as a leaf of an element: a tensor, something built of tensors, or None."""
    if value is None or isinstance(value, _core.Tensor | CompositeTensor | TypeSpec):
        return value
    if isinstance(value, TensorArray):
        return value
    if (
        isinstance(value, list | tuple)
        and value
        and isinstance(spec := getattr(value[0], "_type_spec", None), HandleSpec)
    ):
        return spec._stacked(value)
    if isinstance(value, SparseTensorValue):
        return SparseTensor.from_value(value)
    if hasattr(value, "nested_row_splits"):  # what a session gave for a ragged tensor
        return RaggedTensor.from_nested_row_splits(value.flat_values, value.nested_row_splits)
    graph = _core.current_graph()
    if graph is None or not graph.graph_mode or _core.is_tensor(value) or _holds_symbols(value):
        return convert_to_tensor(value)
    with running_at_once():  # constants of a TensorFlow 1 graph have their values here, not in a session
        return convert_to_tensor(value)


def _holds_symbols(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(_core.is_symbolic(x) or _holds_symbols(x) for x in value)


def map_leaves(function: Callable[[Any], Any], structure: Any) -> Any:
    """The structure with `function(leaf)` for each leaf; a list is a leaf, as a tensor made of it will be."""
    if isinstance(structure, tuple) and not isinstance(structure, SparseTensorValue):
        parts = [map_leaves(function, part) for part in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    if isinstance(structure, Mapping):
        mapped = {key: map_leaves(function, structure[key]) for key in structure}
        kind: Any = type(structure)
        return mapped if kind is dict else kind(mapped)
    if hasattr(type(structure), "__attrs_attrs__"):
        names = [attribute.name for attribute in type(structure).__attrs_attrs__]
        return type(structure)(*[map_leaves(function, getattr(structure, name)) for name in names])
    if hasattr(type(structure), "__tf_flatten__"):
        metadata, components = structure.__tf_flatten__()
        parts = [map_leaves(function, part) for part in components]
        return structure.__tf_unflatten__(metadata, tuple(parts))  # a class method, or a method
    return function(structure)


def as_element(value: Any) -> Any:
    """The value with tensors, or what is built of them, for leaves."""
    return map_leaves(as_leaf, value)


# ---- specifications


def spec_of_leaf(leaf: Any) -> TypeSpec:
    """What is known of one leaf."""
    if isinstance(leaf, _core.Tensor):
        return TensorSpec(leaf.shape, leaf.dtype)
    return leaf if isinstance(leaf, TypeSpec) else type_spec_from_value(leaf)


def batched_spec(spec: TypeSpec, size: int | None) -> TypeSpec:
    """The specification of `size` such leaves in one."""
    if isinstance(spec, TensorSpec):
        return spec._batch(size)
    if isinstance(spec, SparseTensorSpec):
        return SparseTensorSpec(TensorShape([size]).concatenate(spec.shape), spec.dtype)
    if isinstance(spec, RaggedTensorSpec):
        shape = TensorShape([size]).concatenate(spec.shape)
        return RaggedTensorSpec(shape, spec.dtype, spec.ragged_rank + 1, spec.row_splits_dtype)
    if isinstance(spec, NoneTensorSpec):
        return spec
    if isinstance(spec, BatchableExtensionTypeSpec | HandleSpec):
        batched: TypeSpec = spec._batch(size)
        return batched
    raise TypeError(f"batch: elements of type {spec.value_type.__name__} cannot be put together")


def unbatched_spec(spec: TypeSpec) -> TypeSpec:
    """The specification of one row of such a leaf."""
    if isinstance(spec, SparseTensorSpec):
        return SparseTensorSpec(spec.shape[1:], spec.dtype)
    if isinstance(spec, RaggedTensorSpec):
        return RaggedTensorSpec(spec.shape[1:], spec.dtype, spec.ragged_rank - 1, spec.row_splits_dtype)
    if isinstance(spec, NoneTensorSpec):
        return spec
    if isinstance(spec, BatchableExtensionTypeSpec | HandleSpec):
        single: TypeSpec = spec._unbatch()
        return single
    if not isinstance(spec, TensorSpec):
        raise TypeError(f"unbatch: elements of type {spec.value_type.__name__} have no rows")
    return spec._unbatch()


_UNLIKE = "the datasets must have compatible element specs"


def common_spec(first: Any, second: Any, who: str) -> Any:
    """The narrowest specification of the elements of two datasets."""
    try:
        nest.assert_same_structure(first, second)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"Incompatible dataset elements:\n  {first} vs. \n  {second}\n{who}: {_UNLIKE}. {error}"
        ) from None
    found = []
    for one, two in zip(nest.flatten(first), nest.flatten(second)):
        common = one.most_specific_common_supertype([two]) if isinstance(one, TypeSpec) else None
        if common is None:
            raise TypeError(
                f"Incompatible dataset elements:\n  {first} vs. \n  {second}\n{who}: {_UNLIKE}; {one} is not {two}."
            )
        found.append(common)
    return nest.pack_sequence_as(first, found)


def all_dense(specs: Sequence[TypeSpec]) -> bool:
    """Whether every leaf is one plain tensor."""
    return all(isinstance(spec, TensorSpec) for spec in specs)


# ---- packing


def packer(structure: Any) -> Callable[[Leaves], Any]:
    """A function that puts a tuple of leaves into the structure; fast for those that programs use."""
    if type(structure) is tuple and not any(map(nest.is_nested, structure)):
        return tuple
    return _builder(structure, 0)[0]


def _builder(structure: Any, place: int) -> tuple[Callable[[Leaves], Any], int]:
    """The function that builds a part of which the leaves begin at `place`, and the place after it."""
    if not nest.is_nested(structure):
        return (lambda leaves: leaves[place]), place + 1
    builders = []
    keys = sorted(structure) if isinstance(structure, Mapping) else None
    plain = type(structure) in (tuple, dict) or hasattr(structure, "_fields")
    if not plain:
        end = place + len(nest.flatten(structure))
        return (lambda leaves: nest.pack_sequence_as(structure, list(leaves[place:end]))), end
    for part in structure if keys is None else [structure[key] for key in keys]:
        build, place = _builder(part, place)
        builders.append(build)
    if keys is not None:
        builder_by_key = dict(zip(keys, builders))
        pairs = [(key, builder_by_key[key]) for key in structure]
        return (lambda leaves: {key: build(leaves) for key, build in pairs}), place
    if hasattr(structure, "_fields"):
        cls = type(structure)
        return (lambda leaves: cls(*[build(leaves) for build in builders])), place
    return (lambda leaves: tuple([build(leaves) for build in builders])), place


# ---- rows


def row(leaf: Any, place: int) -> Any:
    """One row of a leaf."""
    if isinstance(leaf, SparseTensor):
        rank = int(leaf.dense_shape.shape[0])
        sizes = leaf.dense_shape.numpy().tolist()
        part = sparse.slice_(leaf, [place] + [0] * (rank - 1), [1, *sizes[1:]])
        return SparseTensor(part.indices[:, 1:], part.values, part.dense_shape[1:])
    if isinstance(leaf, BatchableExtensionType):
        return leaf._type_spec._unbatch()._decoded([row(part, place) for part in leaf._type_spec._encoded(leaf)])
    return None if leaf is None else leaf[place]


def static_row_count(leaf: Any) -> int | None:
    """The number of rows of a leaf as far as it is known while tracing."""
    if leaf is None:
        return None
    first = leaf._type_spec._encoded(leaf)[0] if isinstance(leaf, BatchableExtensionType) else leaf
    count: int | None = first.shape[0]
    return count


def row_count(leaf: Any) -> int:
    """The number of rows of a leaf that is there."""
    if isinstance(leaf, SparseTensor):
        return int(leaf.dense_shape.numpy()[0])
    if isinstance(leaf, RaggedTensor):
        return int(leaf.nrows())
    if isinstance(leaf, BatchableExtensionType):
        return row_count(leaf._type_spec._encoded(leaf)[0])
    return int(leaf.shape[0])


def gathered(leaf: Any, places: np.ndarray) -> Any:
    """The rows of a leaf at these places."""
    if leaf is None:
        return None
    if isinstance(leaf, _core.Tensor):
        return primitives.GatherV2(leaf, places, 0)
    if isinstance(leaf, BatchableExtensionType):
        parts = [gathered(part, places) for part in leaf._type_spec._encoded(leaf)]
        return leaf._type_spec._unbatch()._batch(len(places))._decoded(parts)
    if isinstance(leaf._type_spec, HandleSpec):
        return leaf._gathered(places)
    return gather_rows(leaf, places)


def stacked(parts: Sequence[Any], spec: TypeSpec, number: int) -> Any:
    """Leaves, component `number` of their elements, as rows of one."""
    first = parts[0]
    if isinstance(first, _core.Tensor) and isinstance(spec, TensorSpec):
        shape = first.shape
        for place, part in enumerate(parts):
            if part.shape != shape:
                raise InvalidArgumentError.of(
                    f"Cannot batch tensors with different shapes in component {number}. First element had shape "
                    f"{_shown(shape)} and element {place} had shape {_shown(part.shape)}.",
                )
        return primitives.Pack(list(parts), 0)
    if first is None:
        return None
    if isinstance(spec, SparseTensorSpec):
        wide = [sparse.expand_dims(part, 0) for part in parts]
        return sparse.concat(0, wide, expand_nonconcat_dims=True)
    if isinstance(spec, RaggedTensorSpec):
        deep = spec.ragged_rank > 0
        return stack_ragged([RaggedTensor.from_tensor(p) if deep and isinstance(p, _core.Tensor) else p for p in parts])
    if isinstance(spec, BatchableExtensionTypeSpec):
        columns = zip(*[spec._encoded(part) for part in parts])
        whole = [stacked(column, spec_of_leaf(column[0]), number) for column in columns]
        return spec._batch(len(parts))._decoded(whole)
    if isinstance(spec, HandleSpec):
        return spec._stacked(parts)
    raise TypeError(f"batch: elements of type {type(first).__name__} cannot be put together")


def _shown(shape: Any) -> str:
    return "[" + ",".join(map(str, shape.as_list())) + "]"
