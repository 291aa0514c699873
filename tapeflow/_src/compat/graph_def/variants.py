"""Nodes that pack ragged and sparse tensors into variants, so that loops can keep one for each element.

A variant is no tensor here: it is a tuple of tensors and lists, which travels through loops and branches as they do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tapeflow._src import _core, primitives
from tapeflow._src.compat.graph_def.program import Context, Step, handles
from tapeflow._src.control_flow.tensor_array import TensorArray
from tapeflow._src.control_flow.tracing import FuncGraph, building_inside
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.constants import zeros
from tapeflow._src.ops.arrays.conversion import cast
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.tensor_shape import TensorShape


class RaggedVariant(NamedTuple):
    """One ragged tensor: the lengths of its rows, the outermost first, and its values."""

    lengths: list[Any]
    values: Any


class RaggedVariants(NamedTuple):
    """The rows of one ragged tensor, a variant each: its splits and its values."""

    splits: list[Any]
    values: Any

    def element(self, index: Any) -> Any:
        """The row at `index`."""
        row = RaggedTensor.from_nested_row_splits(self.values, self.splits, validate=False)[index]
        if not isinstance(row, RaggedTensor):
            return RaggedVariant([], row)
        return RaggedVariant(list(row.nested_row_lengths()), row.flat_values)

    def row_count(self) -> Any:
        """How many rows there are."""
        return primitives.Shape(self.splits[0], "int32")[0] - 1


class SparseVariants(NamedTuple):
    """The rows of one sparse tensor."""

    indices: Any
    values: Any
    shape: Any

    def element(self, index: Any) -> Any:
        """The row at `index`, without the first dimension."""
        inside = primitives.Equal(self.indices[:, 0], cast(index, "int64"))
        places = primitives.Where(inside)[:, 0]
        rows = primitives.GatherV2(self.indices, places, 0, 0)
        return SparseTensor(rows[:, 1:], primitives.GatherV2(self.values, places, 0, 0), self.shape[1:])

    def row_count(self) -> Any:
        """How many rows there are."""
        return cast(self.shape[0], "int32")


class VariantList(NamedTuple):
    """A list of variants: the size, and a list for each of their parts, none before one is written.

    The parts of a ragged tensor are its number of rows, the lengths of the rows, and the values.
    """

    size: Any
    parts: list[TensorArray]

    def with_element(self, index: Any, item: RaggedVariant) -> VariantList:
        """The list with a variant at `index`."""
        if not isinstance(item, RaggedVariant):
            raise NotImplementedError("a list of variants can be written with ragged tensors only")
        first = item.lengths[0] if item.lengths else item.values
        given = [primitives.Shape(first, "int32")[0], *item.lengths, item.values]
        parts = self.parts or [_blank(t.dtype, self.size, t.shape.rank) for t in given]
        return VariantList(self.size, [part.write(index, t) for part, t in zip(parts, given)])

    def element(self, index: Any) -> RaggedVariant:
        """The variant at `index`."""
        _, *lengths, values = [part.read(index) for part in self.parts]
        return RaggedVariant(lengths, values)

    def emptied(self) -> VariantList:
        """A list for variants of the same kind with nothing in it."""
        return VariantList(self.size, [_blank(p.dtype, self.size, p.element_shape.rank) for p in self.parts])

    def row_count(self) -> Any:
        """How many variants the list holds."""
        return self.size


def _blank(dtype: Any, size: Any, rank: int | None) -> TensorArray:
    shape = TensorShape(None if rank is None else [None] * rank)
    return TensorArray(dtype, size, clear_after_read=False, infer_shape=False, element_shape=shape)


def is_variant_list(value: Any) -> bool:
    """Whether a value is a list or vector of variants."""
    return isinstance(value, RaggedVariants | SparseVariants | VariantList)


def with_known_parts(values: list[Any], iterate: Any) -> list[Any]:
    """The first values of a loop: an iteration shows what is written into lists of variants that are still empty."""
    if not _core.is_tracing() or not any(isinstance(x, VariantList) and not x.parts for x in values):
        return values
    with building_inside(FuncGraph(_core.current_graph())):
        found = iterate(*values)
    kinds = [y.emptied() if isinstance(y, VariantList) else None for y in found]
    return [kind if isinstance(x, VariantList) and not x.parts and kind is not None else x
            for x, kind in zip(values, kinds)]  # fmt: skip


@handles("Shape")
def _shape(step: Step, values: list[Any], context: Context) -> Any:
    dtype = step.attributes["out_type"]
    if is_variant_list(values[0]):
        return [cast(values[0].row_count(), dtype)[None]]
    return [primitives.Shape(values[0], dtype)]


# ---- ragged tensors


@handles("RaggedTensorToVariant")
def _ragged_to_variant(step: Step, values: list[Any], context: Context) -> Any:
    *splits, flat = values
    if step.attributes["batched_input"]:
        return [RaggedVariants(splits, flat)]
    return [RaggedVariant([s[1:] - s[:-1] for s in splits], flat)]


@handles("RaggedTensorFromVariant")
def _ragged_from_variant(step: Step, values: list[Any], context: Context) -> Any:
    (encoded,), kind = values, step.attributes["Tsplits"]
    dtype, rank = step.attributes["Tvalues"], step.attributes["output_ragged_rank"]
    if isinstance(encoded, RaggedVariants):
        splits, flat = [cast(s, kind) for s in encoded.splits], encoded.values
    elif isinstance(encoded, RaggedVariant):
        splits, flat = [_splits(lengths, kind) for lengths in encoded.lengths], encoded.values
    elif isinstance(encoded, VariantList) and encoded.parts:
        counts, *lengths = [part.stack() if i == 0 else part.concat() for i, part in enumerate(encoded.parts)]
        *lengths, flat = lengths
        splits = [_splits(x, kind) for x in [counts, *lengths]]
    elif isinstance(encoded, VariantList):  # a loop without iterations
        splits, flat = [zeros([1], kind)] * rank, zeros([0], dtype)
    elif isinstance(encoded, _core.Tensor) and rank == 0:  # one tensor, as datasets keep it
        splits, flat = [], encoded
    else:
        raise InvalidArgumentError.of("the input must hold ragged tensors")
    if len(splits) != rank or flat.dtype != dtype:
        raise InvalidArgumentError.of(
            f"a ragged tensor of {rank} ragged dimensions and {dtype.name} is wanted; got {len(splits)} and "
            f"{flat.dtype.name}"
        )
    return [*splits, flat]


def _splits(lengths: Any, dtype: Any) -> Any:
    ends = primitives.Cumsum(cast(lengths, dtype), 0, False, False)
    return primitives.ConcatV2([zeros([1], dtype), ends], 0)


@handles("RaggedTensorToVariantGradient")
def _ragged_gradient(step: Step, values: list[Any], context: Context) -> Any:
    encoded, _, shape = values
    if isinstance(encoded, VariantList):
        found = encoded.parts[-1].concat() if encoded.parts else zeros(shape, step.attributes["Tvalues"])
    else:
        found = encoded.values
    return [primitives.Reshape(found, shape)]


# ---- sparse tensors


@handles("SerializeManySparse")
def _many_sparse(step: Step, values: list[Any], context: Context) -> Any:
    if step.attributes["out_type"].name == "variant":
        return [SparseVariants(*values)]
    return [find_public("io.serialize_many_sparse")(SparseTensor(*values))]


@handles("SerializeSparse")
def _one_sparse(step: Step, values: list[Any], context: Context) -> Any:
    if step.attributes["out_type"].name == "variant":
        return [SparseTensor(*values)]
    return [find_public("io.serialize_sparse")(SparseTensor(*values))]


@handles("DeserializeSparse", "DeserializeManySparse")
def _sparse_again(step: Step, values: list[Any], context: Context) -> Any:
    (serialized,) = values
    if isinstance(serialized, SparseTensor | SparseVariants):
        return list(serialized) if isinstance(serialized, SparseVariants) else _parts(serialized)
    dtype = step.attributes["dtype"]
    if serialized.shape.rank == 1:
        found = find_public("io.deserialize_many_sparse")(serialized[None], dtype)
        return [found.indices[:, 1:], found.values, found.dense_shape[1:]]
    return _parts(find_public("io.deserialize_many_sparse")(serialized, dtype))


def _parts(tensor: SparseTensor) -> list[Any]:
    return [tensor.indices, tensor.values, tensor.dense_shape]
