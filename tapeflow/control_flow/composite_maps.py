"""`tf.map_fn` over ragged and sparse tensors, or with ragged results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow import _core, primitives
from tapeflow.control_flow.loops import while_loop
from tapeflow.control_flow.tensor_array import TensorArray
from tapeflow.control_flow.tracing import scratch_graph
from tapeflow.ops import ragged
from tapeflow.ops.constants import zeros
from tapeflow.ops.conversion import convert_to_tensor
from tapeflow.ops.ragged import RaggedTensor, RaggedTensorSpec
from tapeflow.types import nest
from tapeflow.types.dtypes import as_dtype, int32, int64
from tapeflow.types.errors import InvalidArgumentError
from tapeflow.types.sparse_tensor import SparseTensor
from tapeflow.types.tensor_shape import TensorShape
from tapeflow.types.tensor_spec import TypeSpec


def applies(elems: Any, signature: Any) -> bool:
    """Whether some of the elements or results are not tensors."""
    return any(isinstance(x, RaggedTensor | SparseTensor) for x in nest.flatten(elems)) or any(
        isinstance(kind, RaggedTensorSpec) for kind in nest.flatten(signature)
    )


def composite_map(fn: Callable[[Any], Any], elems: Any, signature: Any) -> Any:
    """`fn` applied to each slice; results that the signature calls ragged become the rows of a ragged tensor."""
    kinds = nest.map_structure(_row_kind, elems) if signature is None else signature
    parts = [x if isinstance(x, RaggedTensor | SparseTensor) else convert_to_tensor(x) for x in nest.flatten(elems)]

    def apply(position: Any) -> list[Any]:
        result = fn(nest.pack_sequence_as(elems, [_slice(x, position) for x in parts]))
        nest.assert_same_structure(kinds, result, check_types=False)
        leaves = [x if isinstance(x, RaggedTensor) else convert_to_tensor(x) for x in nest.flatten(result)]
        for leaf, kind in zip(leaves, nest.flatten(kinds)):
            _check_dtype(leaf, kind)
        return leaves

    flat_kinds = nest.flatten(kinds)
    if _core.is_tracing():
        results = _in_loop(apply, _row_count(parts[0]), flat_kinds)
    else:
        rows = [apply(i) for i in range(int(_row_count(parts[0])))]
        results = [_stacked([row[k] for row in rows], kind) for k, kind in enumerate(flat_kinds)]
    return nest.pack_sequence_as(kinds, results)


def _row_kind(x: Any) -> Any:
    """What a slice of the elements is, if the signature does not say what `fn` returns."""
    if not isinstance(x, RaggedTensor):
        return convert_to_tensor(x).dtype
    return RaggedTensorSpec(x.shape[1:], x.dtype, x.ragged_rank - 1, x.row_splits.dtype)


def _check_dtype(leaf: Any, kind: Any) -> None:
    wanted = kind.dtype if isinstance(kind, TypeSpec) else as_dtype(kind)
    if leaf.dtype != wanted:
        raise InvalidArgumentError(
            None,
            None,
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


def _stacked(rows: list[Any], kind: Any) -> Any:
    if not isinstance(kind, RaggedTensorSpec):
        return primitives.Pack(rows, 0) if rows else zeros([0], kind.dtype if isinstance(kind, TypeSpec) else kind)
    if rows:
        return ragged.stack(rows)
    return RaggedTensor.from_row_splits(zeros([0], kind.dtype), convert_to_tensor([0], int64), validate=False)


# ---- in a graph: the rows of a ragged result are joined, and their lengths noted


def _in_loop(apply: Callable[[Any], list[Any]], count: Any, kinds: list[Any]) -> list[Any]:
    with scratch_graph():
        samples = apply(convert_to_tensor(0))
    if any(isinstance(x, RaggedTensor) for x in samples):
        raise NotImplementedError("map_fn: in a function, fn can return tensors of several lengths, not ragged tensors")
    row_shapes = [None if x.shape.rank is None else x.shape[1:] for x in samples]
    arrays, joined = [], []
    for sample, kind, row_shape in zip(samples, kinds, row_shapes):
        if not isinstance(kind, RaggedTensorSpec):
            arrays.append(TensorArray(sample.dtype, count, element_shape=sample.shape))
            continue
        if row_shape is None or not row_shape.is_fully_defined():
            raise ValueError(f"map_fn: the rows of a ragged result must have a known inner shape; got {sample.shape}")
        arrays.append(TensorArray(int64, count, element_shape=[]))
        joined.append(zeros([0, *row_shape], sample.dtype))

    def step(position: Any, arrays: list[Any], joined: list[Any]) -> Any:
        arrays, joined, place = list(arrays), list(joined), 0
        for k, (found, kind) in enumerate(zip(apply(position), kinds)):
            if isinstance(kind, RaggedTensorSpec):
                joined[place] = primitives.ConcatV2([joined[place], found], 0)
                place += 1
                found = primitives.Shape(found, int64)[0]
            arrays[k] = arrays[k].write(position, found)
        return position + 1, arrays, joined

    start = (convert_to_tensor(0), arrays, joined)
    open_rows = [TensorShape([None, *x.shape[1:]]) for x in joined]
    invariants = (TensorShape([]), [TensorShape(None) for _ in arrays], open_rows)
    _, arrays, joined = while_loop(lambda position, *_: position < count, step, start, invariants)
    rest = iter(joined)
    return [
        RaggedTensor.from_row_lengths(next(rest), array.stack(), validate=False)
        if isinstance(kind, RaggedTensorSpec)
        else array.stack()
        for array, kind in zip(arrays, kinds)
    ]
