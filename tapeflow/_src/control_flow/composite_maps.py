"""`tf.map_fn` over ragged and sparse tensors, or with such results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from tapeflow._src import _core, primitives
from tapeflow._src.control_flow.loops import while_loop
from tapeflow._src.control_flow.tensor_array import TensorArray
from tapeflow._src.control_flow.tracing import FuncGraph, building_inside, scratch_graph
from tapeflow._src.ops.arrays.constants import zeros
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.arrays.shaping import ensure_shape
from tapeflow._src.ops.extension.extension_type import BatchableExtensionType, BatchableExtensionTypeSpec
from tapeflow._src.ops.ragged import joining as ragged_joining
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor, RaggedTensorSpec
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import as_dtype, int32, int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor, SparseTensorSpec
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.tensor_spec import TensorSpec, TypeSpec


def applies(elems: Any, signature: Any) -> bool:
    """Whether some of the elements or results are not tensors."""
    return any(isinstance(x, RaggedTensor | SparseTensor) for x in nest.flatten(elems)) or any(
        isinstance(kind, RaggedTensorSpec | SparseTensorSpec) for kind in nest.flatten(signature)
    )


def encodes(elems: Any, signature: Any) -> bool:
    """Whether some of the elements or results are objects of extension types."""
    return any(isinstance(x, BatchableExtensionType) for x in nest.flatten(elems)) or any(
        isinstance(kind, BatchableExtensionTypeSpec) for kind in nest.flatten(signature)
    )


def encoded_map(run: Callable[..., Any], fn: Callable[[Any], Any], elems: Any, signature: Any) -> Any:
    """`run`, which maps over tensors, for objects of extension types: over the tensors that they consist of."""
    leaves = nest.flatten(elems)
    rows = [x._type_spec._unbatch() if isinstance(x, BatchableExtensionType) else None for x in leaves]
    if signature is None:
        given = [_row_kind(x) if row is None else row for x, row in zip(leaves, rows)]
        signature = nest.pack_sequence_as(elems, given)
    kinds = nest.flatten(signature)

    def apply(parts: Any) -> Any:
        objects = [part if row is None else row._decoded(list(part)) for part, row in zip(parts, rows)]
        result = fn(nest.pack_sequence_as(elems, objects))
        nest.assert_same_structure(signature, result, check_types=False)
        return _encoded(nest.flatten(result), kinds)

    parts = _encoded(leaves, [x._type_spec if row is not None else None for x, row in zip(leaves, rows)])
    specs = [tuple(k._encoder.encoding_specs(k)) if isinstance(k, BatchableExtensionTypeSpec) else k for k in kinds]
    found = run(apply, parts, tuple(specs))
    whole = [k._batch(None) if isinstance(k, BatchableExtensionTypeSpec) else None for k in kinds]
    results = [part if kind is None else kind._decoded(list(part)) for part, kind in zip(found, whole)]
    return nest.pack_sequence_as(signature, results)


def _encoded(leaves: list[Any], kinds: list[Any]) -> tuple[Any, ...]:
    pairs = zip(leaves, kinds)
    return tuple([tuple(k._encoded(x)) if isinstance(k, BatchableExtensionTypeSpec) else x for x, k in pairs])


def composite_map(fn: Callable[[Any], Any], elems: Any, signature: Any) -> Any:
    """`fn` applied to each slice; results that the signature calls ragged become the rows of a ragged tensor."""
    kinds = nest.map_structure(_row_kind, elems) if signature is None else signature
    parts = [x if isinstance(x, RaggedTensor | SparseTensor) else convert_to_tensor(x) for x in nest.flatten(elems)]

    def apply(position: Any) -> list[Any]:
        result = fn(nest.pack_sequence_as(elems, [_slice(x, position) for x in parts]))
        nest.assert_same_structure(kinds, result, check_types=False)
        leaves = [
            x if isinstance(x, RaggedTensor | SparseTensor) else convert_to_tensor(x) for x in nest.flatten(result)
        ]
        for k, (leaf, kind) in enumerate(zip(leaves, nest.flatten(kinds))):
            _check_dtype(leaf, kind)
            if isinstance(kind, RaggedTensorSpec) and leaf.shape.rank is None:
                leaves[k] = ensure_shape(leaf, kind.shape)
        return leaves

    flat_kinds = nest.flatten(kinds)
    if _core.is_tracing():
        results = _in_loop(apply, _row_count(parts[0]), flat_kinds)
    else:
        rows = [apply(i) for i in range(int(_row_count(parts[0])))]
        results = [_stacked([row[k] for row in rows], kind) for k, kind in enumerate(flat_kinds)]
    return nest.pack_sequence_as(kinds, results)


def map_as_found(fn: Callable[[Any], Any], elems: Any) -> Any:
    """The same; the result of `fn` for the first slice shows which results are ragged."""

    def kind(leaf: Any) -> Any:
        return leaf._type_spec if isinstance(leaf, RaggedTensor) else convert_to_tensor(leaf).dtype

    parts = [x if isinstance(x, RaggedTensor | SparseTensor) else convert_to_tensor(x) for x in nest.flatten(elems)]
    with building_inside(FuncGraph(_core.current_graph())):
        kinds = nest.map_structure(kind, fn(nest.pack_sequence_as(elems, [_slice(x, 0) for x in parts])))
    return composite_map(fn, elems, kinds)


def _row_kind(x: Any) -> Any:
    """What a slice of the elements is, if the signature does not say what `fn` returns."""
    if isinstance(x, SparseTensor):
        return SparseTensorSpec(x.shape[1:], x.dtype)
    if not isinstance(x, RaggedTensor):
        return convert_to_tensor(x).dtype
    return RaggedTensorSpec(x.shape[1:], x.dtype, x.ragged_rank - 1, x.row_splits.dtype)


def _dtype_of(kind: Any) -> Any:
    return cast(Any, kind).dtype if isinstance(kind, TypeSpec) else as_dtype(kind)


def _check_dtype(leaf: Any, kind: Any) -> None:
    wanted = _dtype_of(kind)
    if isinstance(kind, RaggedTensorSpec):
        given = leaf.ragged_rank if isinstance(leaf, RaggedTensor) else 0
        if given != kind.ragged_rank:
            raise ValueError(
                f"map_fn: Expected `fn` to return a:\n  {kind}\nBut it returned a:\n  {leaf}\n"
                "To fix, update the `fn_output_signature` (or `dtype`) argument to `map_fn`."
            )
    if leaf.dtype != wanted:
        raise InvalidArgumentError.of(
            f"map_fn: TensorArray dtype is {wanted.name} but Op is trying to write dtype {leaf.dtype.name}. "
            "Say what fn returns with fn_output_signature.",
        )


def _row_count(x: Any) -> Any:
    if isinstance(x, RaggedTensor):
        return primitives.Cast(x.nrows(), int32)
    if isinstance(x, SparseTensor):
        return primitives.Cast(x.dense_shape[0], int32)
    return primitives.Shape(x, int32)[0]


def _slice(x: Any, position: Any) -> Any:
    if isinstance(x, RaggedTensor):
        if x.ragged_rank > 1:
            return x[position]
        return x.values[x.row_splits[position] : x.row_splits[position + 1]]
    if not isinstance(x, SparseTensor):
        return x[position]
    inside = primitives.Where(primitives.Equal(x.indices[:, 0], primitives.Cast(position, int64)))[:, 0]
    places = primitives.GatherV2(x.indices, inside, 0, 0)[:, 1:]
    return SparseTensor(places, primitives.GatherV2(x.values, inside, 0, 0), x.dense_shape[1:])


def _indices_in_row(row: SparseTensor, number: Any) -> Any:
    """The indices of a sparse tensor that becomes the row of this number."""
    count = primitives.Shape(row.indices, int64)[:1]
    number = primitives.Reshape(primitives.Cast(number, int64), [1, 1])
    return primitives.ConcatV2([primitives.BroadcastTo(number, primitives.ConcatV2([count, [1]], 0)), row.indices], 1)


def _stacked_sparse(rows: list[Any], kind: Any) -> SparseTensor:
    """Sparse tensors side by side, in a shape that holds them all."""
    if not rows:
        rank = kind.shape.rank or 0
        return SparseTensor(zeros([0, rank + 1], int64), zeros([0], kind.dtype), zeros([rank + 1], int64))
    places = [_indices_in_row(row, number) for number, row in enumerate(rows)]
    sizes = primitives.Max(primitives.Pack([row.dense_shape for row in rows], 0), 0, False)
    sizes = primitives.ConcatV2([convert_to_tensor([len(rows)], int64), sizes], 0)
    return SparseTensor(primitives.ConcatV2(places, 0), primitives.ConcatV2([row.values for row in rows], 0), sizes)


def _known_dims(kind: Any) -> list[int]:
    """The sizes of one row, with 0 for those that are not known."""
    shape = kind.shape if isinstance(kind, TensorSpec) else TensorShape(None)
    return [] if shape.rank is None else [size or 0 for size in shape]


def _stacked(rows: list[Any], kind: Any) -> Any:
    if isinstance(kind, SparseTensorSpec):
        return _stacked_sparse(rows, kind)
    if not isinstance(kind, RaggedTensorSpec):
        return primitives.Pack(rows, 0) if rows else zeros([0, *_known_dims(kind)], _dtype_of(kind))
    if rows:
        return ragged_joining.stack(rows).with_row_splits_dtype(kind.row_splits_dtype)
    return RaggedTensor.from_row_splits(zeros([0], kind.dtype), convert_to_tensor([0], int64), validate=False)


# ---- in a graph: the rows of ragged and sparse results are joined, and their lengths or shapes recorded


def _in_loop(apply: Callable[[Any], list[Any]], count: Any, kinds: list[Any]) -> list[Any]:
    with scratch_graph() as graph:
        first = graph.add_input(int32, TensorShape([]))  # symbolic, as there may be no rows
        samples = [_recorded(row, kind, 0) for row, kind in zip(apply(first), kinds)]
    arrays = [TensorArray(one.dtype, count, element_shape=one.shape) for one, _ in samples]
    joined = [[_nothing_like(part) for part in parts] for _, parts in samples]

    def step(position: Any, arrays: list[Any], joined: list[Any]) -> Any:
        found = [_recorded(row, kind, position) for row, kind in zip(apply(position), kinds)]
        written = [array.write(position, one) for array, (one, _) in zip(arrays, found)]
        longer = [
            [primitives.ConcatV2([before, part], 0) for before, part in zip(known, parts)]
            for known, (_, parts) in zip(joined, found)
        ]
        return position + 1, written, longer

    start = (convert_to_tensor(0), arrays, joined)
    open_rows = [[TensorShape([None, *part.shape[1:]]) for part in parts] for parts in joined]
    invariants = (TensorShape([]), [TensorShape(None) for _ in arrays], open_rows)
    _, arrays, joined = while_loop(lambda position, *_: position < count, step, start, invariants)
    return [_from_records(array.stack(), parts, kind) for array, parts, kind in zip(arrays, joined, kinds)]


def _recorded(row: Any, kind: Any, position: Any) -> tuple[Any, list[Any]]:
    """What is kept of a result in each iteration, and what is joined with that of the iterations before.

    Of a dense result it is kept; of a ragged one the number of rows, beside which its parts are joined; of a sparse
    one the shape, beside which its indices and values are joined.
    """
    if isinstance(kind, SparseTensorSpec):
        return row.dense_shape, [_indices_in_row(row, position), row.values]
    if not isinstance(kind, RaggedTensorSpec):
        return row, []
    if not isinstance(row, RaggedTensor):
        return primitives.Shape(row, int64)[0], [row]
    lengths = [primitives.Cast(lengths, int64) for lengths in row.nested_row_lengths()]
    return primitives.Cast(row.nrows(), int64), [row.flat_values, *lengths]


def _from_records(kept: Any, joined: list[Any], kind: Any) -> Any:
    if isinstance(kind, SparseTensorSpec):
        indices, values = joined
        sizes = primitives.Maximum(primitives.Max(kept, 0, False), convert_to_tensor(0, int64))  # 0 without rows
        return SparseTensor(indices, values, primitives.ConcatV2([primitives.Shape(kept, int64)[:1], sizes], 0))
    if isinstance(kind, TensorSpec) and kind.shape.rank is not None:
        kept.set_shape(TensorShape([None]).concatenate(kind.shape))
    if not isinstance(kind, RaggedTensorSpec):
        return kept
    flat, *lengths = joined
    result = RaggedTensor.from_nested_row_lengths(flat, [kept, *lengths], validate=False)
    return result.with_row_splits_dtype(kind.row_splits_dtype)


def _nothing_like(part: Any) -> Any:
    if part.shape.rank is None or not part.shape[1:].is_fully_defined():
        raise ValueError(f"map_fn: the rows of a ragged result must have a known inner shape; got {part.shape}")
    return zeros([0, *part.shape[1:]], part.dtype)
