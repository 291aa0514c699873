"""The names of inner modules for ragged tensors, beside those of `table`."""

from __future__ import annotations

from typing import Any

from tapeflow._src.compat.tensorflow.inner_modules.suite_table import convert_to_tensor_or_ragged_tensor
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.ragged.gathering import gather
from tapeflow._src.ops.ragged.joining import concat
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor, RaggedTensorSpec
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import int64


class RaggedTensorType:
    """What a function of `map_fn` gives: a ragged tensor of this dtype and ragged rank."""

    def __init__(self, dtype: Any, ragged_rank: int, row_splits_dtype: Any = int64) -> None:
        as_dtype = find_public("as_dtype")
        self._dtype, self._row_splits_dtype = as_dtype(dtype), as_dtype(row_splits_dtype)
        self._ragged_rank = ragged_rank

    dtype = property(lambda self: self._dtype)
    ragged_rank = property(lambda self: self._ragged_rank)
    row_splits_dtype = property(lambda self: self._row_splits_dtype)

    def __repr__(self) -> str:
        return f"RaggedTensorType({self.dtype!r}, {self.ragged_rank!r}, {self.row_splits_dtype!r})"


def from_tensor(
    tensor: Any,
    lengths: Any = None,
    padding: Any = None,
    ragged_rank: int = 1,
    row_splits_dtype: Any = int64,
    name: str | None = None,
) -> Any:
    """A ragged tensor of a dense one; a ragged tensor as it is."""
    if isinstance(tensor, RaggedTensor):
        return tensor
    return RaggedTensor.from_tensor(tensor, lengths, padding, ragged_rank, name, row_splits_dtype)


def to_tensor(rt_input: Any, default_value: Any = None, name: str | None = None) -> Any:
    """A dense tensor of a ragged one; a dense tensor as it is."""
    return rt_input.to_tensor(default_value, name) if isinstance(rt_input, RaggedTensor) else rt_input


def from_sparse(st_input: Any, name: str | None = None, row_splits_dtype: Any = int64) -> Any:
    """A ragged tensor of a sparse one."""
    return RaggedTensor.from_sparse(st_input, name, row_splits_dtype)


def to_sparse(rt_input: Any, name: str | None = None) -> Any:
    """A sparse tensor of a ragged one."""
    return rt_input.to_sparse(name)


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Any:
    """From each row of `params` the elements at the same row of `indices`."""
    params, indices = convert_to_tensor_or_ragged_tensor(params), convert_to_tensor_or_ragged_tensor(indices)
    if indices.shape.rank is None:
        raise ValueError("batch_gather: batch_dims=-1 may only be negative if rank(indices) is statically known.")
    return gather(params, indices, batch_dims=-1, name=name)


def map_fn(
    fn: Any,
    elems: Any,
    dtype: Any = None,
    parallel_iterations: Any = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """`tf.map_fn`, whose function may also give what a `RaggedTensorType` says."""
    signature = nest.map_structure(_as_spec, dtype if fn_output_signature is None else fn_output_signature)
    return find_public("map_fn")(
        fn, elems, parallel_iterations=parallel_iterations, infer_shape=infer_shape, fn_output_signature=signature
    )


def _as_spec(kind: Any) -> Any:
    if not isinstance(kind, RaggedTensorType):
        return kind
    return RaggedTensorSpec(None, kind.dtype, kind.ragged_rank, kind.row_splits_dtype)


names_by_path: dict[str, dict[str, Any]] = {
    "python.ops.ragged.ragged_array_ops": {
        "ragged_one_hot": find_public("one_hot"),
        "ragged_reshape": find_public("reshape"),
    },
    "python.ops.ragged.ragged_batch_gather_ops": {"batch_gather": batch_gather},
    "python.ops.ragged.ragged_concat_ops": {"concat": concat, "stack": find_public("ragged.stack")},
    "python.ops.ragged.ragged_conversion_ops": {
        "from_sparse": from_sparse,
        "from_tensor": from_tensor,
        "to_sparse": to_sparse,
        "to_tensor": to_tensor,
    },
    "python.ops.ragged.ragged_gather_ops": {"gather": gather, "gather_nd": find_public("gather_nd")},
    "python.ops.ragged.ragged_math_ops": {
        f"segment_{kind}": find_public(f"math.unsorted_segment_{kind}")
        for kind in ["sum", "prod", "min", "max", "mean", "sqrt_n"]
    },
    "python.ops.ragged.ragged_map_ops": {"map_fn": map_fn},
    "python.ops.ragged.ragged_squeeze_op": {"squeeze": find_public("squeeze")},
    "python.ops.ragged.ragged_tensor": {"RaggedTensorType": RaggedTensorType},
    "python.ops.ragged.ragged_util": {"repeat": find_public("repeat")},
    "python.ops.ragged.ragged_where_op": {"where": find_public("compat.v1.where"), "where_v2": find_public("where")},
    "python.ops.tensor_getitem_override": {
        "_SLICE_TYPE_ERROR": "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
        "tf.int32/tf.int64 tensors are valid indices"
    },
}
