"""Raw operations on sparse and ragged tensors and sets, whose parts they take and give one by one."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.compat.raw_ops.count_checks import (
    check_elements,
    check_numbers,
    check_splits,
    check_weights,
    checked_length,
)
from tapeflow._src.ops.arrays import constants, sets
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.math import segments
from tapeflow._src.ops.ragged.construction import range_ as ragged_range
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor
from tapeflow._src.ops.ragged.rows import gather_rows
from tapeflow._src.ops.sparse import binary as sparse_binary
from tapeflow._src.ops.sparse import crosses as sparse_crosses
from tapeflow._src.ops.sparse import reductions as sparse_reductions
from tapeflow._src.ops.sparse import sparse
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.tensor_spec import TensorSpec

SparseAddGrad = namedtuple("SparseAddGrad", ["a_val_grad", "b_val_grad"])
SparseAdd = namedtuple("SparseAdd", ["sum_indices", "sum_values", "sum_shape"])
SparseOutput = namedtuple("SparseOutput", ["output_indices", "output_values", "output_shape"])
CountSparseOutput = namedtuple("CountSparseOutput", ["output_indices", "output_values", "output_dense_shape"])
SparseReorder = namedtuple("SparseReorder", ["output_indices", "output_values"])
SparseReshape = namedtuple("SparseReshape", ["output_indices", "output_shape"])
SparseFillEmptyRows = namedtuple(
    "SparseFillEmptyRows", ["output_indices", "output_values", "empty_row_indicator", "reverse_index_map"]
)
SparseSparse = namedtuple("SparseSparse", ["output_indices", "output_values"])
SparseSplit = namedtuple("SparseSplit", ["output_indices", "output_values", "output_shape"])
SetOperation = namedtuple("SetOperation", ["result_indices", "result_values", "result_shape"])
RaggedRange = namedtuple("RaggedRange", ["rt_nested_splits", "rt_dense_values"])
RaggedTensorToSparse = namedtuple("RaggedTensorToSparse", ["sparse_indices", "sparse_values", "sparse_dense_shape"])
RaggedGather = namedtuple("RaggedGather", ["output_nested_splits", "output_dense_values"])


def _sparse(indices: Any, values: Any, shape: Any) -> SparseTensor:
    return SparseTensor(cast(convert_to_tensor(indices), "int64"), values, cast(convert_to_tensor(shape), "int64"))


def _parts(x: SparseTensor) -> tuple[Any, Any, Any]:
    return x.indices, x.values, x.dense_shape


def _ragged(nested_splits: Any, values: Any) -> RaggedTensor:
    return RaggedTensor.from_nested_row_splits(values, nested_splits, validate=False)


def _reduce(function: Callable[..., Any], output_is_sparse: bool) -> Callable[..., Any]:
    def run(indices: Any, values: Any, shape: Any, axes: Any, keep_dims: bool) -> Any:
        axis = [int(a) for a in constants.dims_of(axes)] if convert_to_tensor(axes).shape.rank else int(axes)
        found = function(_sparse(indices, values, shape), axis, keep_dims, output_is_sparse)
        return SparseOutput(*_parts(found)) if output_is_sparse else found

    return run


def _reordered(indices: Any, values: Any, shape: Any) -> SparseReorder:
    return SparseReorder(*_parts(sparse.reorder(_sparse(indices, values, shape)))[:2])


def _reshaped(indices: Any, shape: Any, new_shape: Any) -> SparseReshape:
    indices = convert_to_tensor(indices)
    values = primitives.Reshape(indices, [-1])[: indices.shape[0]]
    found = sparse.reshape(_sparse(indices, values, shape), new_shape)
    return SparseReshape(found.indices, found.dense_shape)


def _filled(indices: Any, values: Any, shape: Any, default: Any) -> SparseFillEmptyRows:
    found, empty = sparse.fill_empty_rows(_sparse(indices, values, shape), default)
    rows = cast(convert_to_tensor(indices), "int64")[:, 0]
    before = primitives.Cumsum(cast(empty, "int64"), 0, False, False)
    places = constants.range(rows.shape[0], dtype="int64") + primitives.GatherV2(before, rows)
    return SparseFillEmptyRows(found.indices, found.values, empty, places)


def _values_at(indices: Any, other: Any, values: Any) -> Any:
    """For each place of `indices` the value that stands there in `other`; 0 if there is none."""
    indices, other, values = (convert_to_tensor(x) for x in (indices, other, values))
    same = primitives.All(primitives.Equal(indices[:, None, :], other[None, :, :]), [2], False)
    return primitives.Reshape(primitives.MatMul(cast(same, values.dtype), values[:, None]), [-1])


def _combined(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*parts: Any) -> SparseSparse:
        return SparseSparse(*_parts(function(_sparse(*parts[:3]), _sparse(*parts[3:])))[:2])

    return run


def _concatenated(indices: Any, values: Any, shapes: Any, concat_dim: int) -> SparseOutput:
    return SparseOutput(*_parts(sparse.concat(concat_dim, [_sparse(*part) for part in zip(indices, values, shapes)])))


def _split(split_dim: Any, indices: Any, values: Any, shape: Any, num_split: int) -> SparseSplit:
    found = sparse.split(_sparse(indices, values, shape), num_split, int(split_dim))
    return SparseSplit(*(list(column) for column in zip(*map(_parts, found))))


def _inputs(indices: Any, values: Any, shapes: Any, dense_inputs: Any) -> list[Any]:
    return [*(_sparse(*part) for part in zip(indices, values, shapes)), *dense_inputs]


def _crossed(indices: Any, values: Any, shapes: Any, dense_inputs: Any, sep: Any) -> SparseOutput:
    text = sep if isinstance(sep, str) else convert_to_tensor(sep).numpy().decode()
    found = sparse_crosses.cross(_inputs(indices, values, shapes, dense_inputs), separator=text)
    return SparseOutput(*_parts(found))


def _set_operation(operation: Any, a: Any, b: Any) -> SetOperation:
    name = operation.decode() if isinstance(operation, bytes) else operation
    function: dict[str, Callable[..., Any]] = {
        "a-b": sets.difference,
        "b-a": lambda a, b: sets.difference(a, b, aminusb=False),
        "intersection": sets.intersection,
        "union": sets.union,
    }
    return SetOperation(*_parts(function[name](a, b)))


def _dense_bin_count(input: Any, size: Any, weights: Any, binary_output: bool) -> Any:
    """Counts of 0 to size - 1 in a vector, or in each row of a matrix."""
    x, weights, length = (
        convert_to_tensor(input),
        convert_to_tensor(weights),
        checked_length("raw_ops.DenseBincount", size),
    )
    if x.shape.rank is not None and x.shape.rank > 2:
        raise InvalidArgumentError.of(f"raw_ops.DenseBincount: Shape must be at most rank 2 but is rank {x.shape.rank}")
    check_numbers("raw_ops.DenseBincount", x)
    check_weights("raw_ops.DenseBincount", x, weights)
    rows = x.shape[0] if x.shape.rank == 2 else 1
    numbers = primitives.Reshape(cast(x, "int64"), [-1])
    per_row = primitives.Reshape(constants.range(rows, dtype="int64"), [-1, 1])
    row = primitives.Reshape(primitives.BroadcastTo(per_row, [rows, x.shape.num_elements() // max(rows, 1)]), [-1])
    given = primitives.Reshape(weights, [-1]) if weights.shape.num_elements() else None
    found = segments.count_bins(numbers, row, rows, given, length, binary_output, weights.dtype)
    return primitives.Reshape(found, [rows, length] if x.shape.rank == 2 else [length])


def _counted(x: Any, weights: Any, binary_output: bool, minlength: int, maxlength: int) -> CountSparseOutput:
    weights = convert_to_tensor(weights)
    values = getattr(x, "values", None)
    values = convert_to_tensor(x) if values is None else values
    check_numbers("raw_ops.DenseCountSparseOutput", values)
    check_weights("raw_ops.DenseCountSparseOutput", values, weights)
    dtype, has_weights = weights.dtype, bool(weights.shape.num_elements())
    if has_weights and hasattr(x, "with_values"):
        weights = x.with_values(weights)
    found = sparse_reductions.bincount(
        x,
        weights if has_weights else None,
        axis=-1,
        minlength=None if minlength < 0 else minlength,
        maxlength=None if maxlength < 0 else maxlength,
        binary_output=binary_output,
    )
    return CountSparseOutput(found.indices, cast(found.values, dtype), found.dense_shape)


def _counted_rows(splits: Any, values: Any, *rest: Any) -> CountSparseOutput:
    check_splits("raw_ops.RaggedCountSparseOutput", splits, values)
    return _counted(_ragged([splits], values), *rest)


def _counted_elements(indices: Any, values: Any, shape: Any, *rest: Any) -> CountSparseOutput:
    check_elements("raw_ops.SparseCountSparseOutput", indices, values, shape)
    return _counted(_sparse(indices, values, shape), *rest)


def _ragged_range(starts: Any, limits: Any, deltas: Any, Tsplits: Any) -> RaggedRange:
    found = ragged_range(starts, limits, deltas, row_splits_dtype=Tsplits)
    return RaggedRange(found.row_splits, found.values)


def _ragged_to_tensor(
    shape: Any, values: Any, default_value: Any, row_partition_tensors: Any, row_partition_types: Any
) -> Any:
    """A dense tensor of ragged rows, whose partitions are given by their splits or by the row of each value."""
    kinds, parts = list(row_partition_types), list(row_partition_tensors)
    if kinds[:1] == ["FIRST_DIM_SIZE"] and all(kind == "VALUE_ROWIDS" for kind in kinds[1:]):
        counts = [parts[0], *(primitives.Shape(rows, rows.dtype)[0] for rows in parts[1:-1])]
        ragged = RaggedTensor.from_nested_value_rowids(values, parts[1:], counts, validate=False)
    elif all(kind == "ROW_SPLITS" for kind in kinds):
        ragged = _ragged(parts, values)
    else:
        raise NotImplementedError(f"RaggedTensorToTensor: row_partition_types={kinds}")
    shape = convert_to_tensor(shape)
    wanted = None
    if shape.shape.rank:
        wanted = shape if _core.is_symbolic(shape) else [None if n < 0 else int(n) for n in shape.numpy()]
    return ragged.to_tensor(default_value, shape=wanted)


def _ragged_to_sparse(nested_splits: Any, values: Any) -> RaggedTensorToSparse:
    return RaggedTensorToSparse(*_parts(_ragged(nested_splits, values).to_sparse()))


def _ragged_gather(nested_splits: Any, values: Any, indices: Any, rank: int) -> RaggedGather:
    found = gather_rows(_ragged(nested_splits, values), indices)
    return RaggedGather(list(found.nested_row_splits), found.flat_values)


# ---- what is known of the results where sizes are unknown while tracing


def _rows_spec(indices: Any, values: Any, columns: int | None = None) -> list[TensorSpec]:
    """Positions, values and shape of a sparse tensor with any number of elements."""
    rank = convert_to_tensor(indices).shape[1] if columns is None else columns
    kind = convert_to_tensor(values).dtype
    return [TensorSpec([None, rank], "int64"), TensorSpec([None], kind), TensorSpec([rank], "int64")]


def _with_specs(function: Any, specs: Any) -> Any:
    function.result_specs = specs
    return function


def _reshaped_specs(indices: Any, shape: Any, new_shape: Any) -> SparseReshape:
    rank = convert_to_tensor(new_shape).shape[0]
    return SparseReshape(TensorSpec([convert_to_tensor(indices).shape[0], rank], "int64"), TensorSpec([rank], "int64"))


def _reordered_specs(indices: Any, values: Any, shape: Any) -> SparseReorder:
    indices, values = convert_to_tensor(indices), convert_to_tensor(values)
    return SparseReorder(TensorSpec(indices.shape, "int64"), TensorSpec(values.shape, values.dtype))


def _filled_specs(indices: Any, values: Any, shape: Any, default: Any) -> SparseFillEmptyRows:
    places, filled, _ = _rows_spec(indices, values)
    rows = TensorSpec([convert_to_tensor(indices).shape[0]], "int64")
    return SparseFillEmptyRows(places, filled, TensorSpec([None], "bool"), rows)


def _split_specs(split_dim: Any, indices: Any, values: Any, shape: Any, num_split: int) -> SparseSplit:
    return SparseSplit(*([spec] * num_split for spec in _rows_spec(indices, values)))


def _sum_specs(indices: Any, values: Any, shape: Any, dense: Any) -> TensorSpec:
    dense = convert_to_tensor(dense)
    return TensorSpec(dense.shape, dense.dtype)


ROWS: list[tuple[str, str, Any]] = [
    ("DenseBincount", "input, size, weights, binary_output=False", _dense_bin_count),
    ("DenseCountSparseOutput", "values, weights, binary_output, minlength=-1, maxlength=-1", _counted),
    (
        "DenseToDenseSetOperation",
        "set1, set2, set_operation, validate_indices=True",
        lambda a, b, operation, _: _set_operation(operation, a, b),
    ),
    (
        "DenseToSparseSetOperation",
        "set1, set2_indices, set2_values, set2_shape, set_operation, validate_indices=True",
        lambda a, i, v, s, operation, _: _set_operation(operation, a, _sparse(i, v, s)),
    ),
    (
        "RaggedCountSparseOutput",
        "splits, values, weights, binary_output, minlength=-1, maxlength=-1",
        _counted_rows,
    ),
    ("RaggedFillEmptyRows", "value_rowids, values, nrows, default_value", "ragged_fill_empty_rows"),
    ("RaggedFillEmptyRowsGrad", "reverse_index_map, grad_values", "ragged_fill_empty_rows_grad"),
    ("RaggedGather", "params_nested_splits, params_dense_values, indices, OUTPUT_RAGGED_RANK", _ragged_gather),
    ("RaggedRange", "starts, limits, deltas, Tsplits='int64'", _ragged_range),
    (
        "RaggedTensorToTensor",
        "shape, values, default_value, row_partition_tensors, row_partition_types",
        _ragged_to_tensor,
    ),
    ("RaggedTensorToSparse", "rt_nested_splits, rt_dense_values", _ragged_to_sparse),
    (
        "SetSize",
        "set_indices, set_values, set_shape, validate_indices=True",
        lambda i, v, s, _: sets.size(_sparse(i, v, s)),
    ),
    (
        "SparseAdd",
        "a_indices, a_values, a_shape, b_indices, b_values, b_shape, thresh",
        lambda *p: SparseAdd(*_parts(sparse_binary.add(_sparse(*p[:3]), _sparse(*p[3:6]), p[6]))),
    ),
    (
        "SparseAddGrad",
        "backprop_val_grad, a_indices, b_indices, sum_indices",
        lambda dy, a, b, total: SparseAddGrad(_values_at(a, total, dy), _values_at(b, total, dy)),
    ),
    (
        "SparseSliceGrad",
        "backprop_val_grad, input_indices, input_start, output_indices",
        lambda dy, i, start, o: _values_at(convert_to_tensor(i) - convert_to_tensor(start), o, dy),
    ),
    ("SparseConcat", "indices, values, shapes, concat_dim", _concatenated),
    (
        "SparseCountSparseOutput",
        "indices, values, dense_shape, weights, binary_output, minlength=-1, maxlength=-1",
        _counted_elements,
    ),
    ("SparseCrossV2", "indices, values, shapes, dense_inputs, sep", _crossed),
    ("SparseFillEmptyRows", "indices, values, dense_shape, default_value", _with_specs(_filled, _filled_specs)),
    ("SparseFillEmptyRowsGrad", "reverse_index_map, grad_values", "ragged_fill_empty_rows_grad"),
    (
        "SparseReduceMax",
        "input_indices, input_values, input_shape, reduction_axes, keep_dims=False",
        _reduce(sparse_reductions.reduce_max, False),
    ),
    (
        "SparseReduceMaxSparse",
        "input_indices, input_values, input_shape, reduction_axes, keep_dims=False",
        _reduce(sparse_reductions.reduce_max, True),
    ),
    (
        "SparseReduceSum",
        "input_indices, input_values, input_shape, reduction_axes, keep_dims=False",
        _reduce(sparse_reductions.reduce_sum, False),
    ),
    (
        "SparseReduceSumSparse",
        "input_indices, input_values, input_shape, reduction_axes, keep_dims=False",
        _reduce(sparse_reductions.reduce_sum, True),
    ),
    ("SparseReorder", "input_indices, input_values, input_shape", _with_specs(_reordered, _reordered_specs)),
    ("SparseReshape", "input_indices, input_shape, new_shape", _with_specs(_reshaped, _reshaped_specs)),
    (
        "SparseSlice",
        "indices, values, shape, start, size",
        _with_specs(
            lambda i, v, s, start, size: SparseOutput(*_parts(sparse.slice_(_sparse(i, v, s), start, size))),
            lambda i, v, *_: SparseOutput(*_rows_spec(i, v)),
        ),
    ),
    (
        "SparseSoftmax",
        "sp_indices, sp_values, sp_shape",
        lambda i, v, s: sparse_reductions.softmax(_sparse(i, v, s)).values,
    ),
    (
        "SparseSparseMaximum",
        "a_indices, a_values, a_shape, b_indices, b_values, b_shape",
        _combined(sparse_binary.maximum),
    ),
    (
        "SparseSparseMinimum",
        "a_indices, a_values, a_shape, b_indices, b_values, b_shape",
        _combined(sparse_binary.minimum),
    ),
    ("SparseSplit", "split_dim, indices, values, shape, num_split", _with_specs(_split, _split_specs)),
    (
        "SparseTensorDenseAdd",
        "a_indices, a_values, a_shape, b",
        _with_specs(lambda i, v, s, b: sparse_binary.add(_sparse(i, v, s), b), _sum_specs),
    ),
    (
        "SparseToSparseSetOperation",
        "set1_indices, set1_values, set1_shape, set2_indices, set2_values, set2_shape, set_operation, "
        "validate_indices=True",
        lambda *p: _set_operation(p[6], _sparse(*p[:3]), _sparse(*p[3:6])),
    ),
]
