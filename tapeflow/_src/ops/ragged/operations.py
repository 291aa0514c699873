"""Operations that have a meaning of their own for ragged tensors, by the name of the operation."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.constants import dims_of, one_hot
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.passing import after
from tapeflow._src.ops.arrays.shaping import repeat, size
from tapeflow._src.ops.effects.assertions import assert_equal
from tapeflow._src.ops.math.reductions import reduce_logsumexp, reduce_std, reduce_variance
from tapeflow._src.ops.ragged.elementwise import same_splits
from tapeflow._src.ops.ragged.gathering import dynamic_partition, gather, gather_nd
from tapeflow._src.ops.ragged.joining import boolean_mask, concat, stack
from tapeflow._src.ops.ragged.ragged_tensor import RaggedTensor, add_operation
from tapeflow._src.ops.ragged.reductions import (
    mean_over_several,
    of_bool,
    of_inexact,
    reduction,
    segment_bool,
    segment_deviations,
    segment_fold,
    segment_logsumexp,
    segment_mean,
    segment_std,
    segment_variance,
    variance_over_several,
    with_axis,
)
from tapeflow._src.ops.ragged.rows import axis_in, expand_dims
from tapeflow._src.ops.strings.strings import reduce_join
from tapeflow._src.types.dtypes import int64
from tapeflow._src.types.errors import InvalidArgumentError


def _where(condition: RaggedTensor, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    if (x is None) != (y is None):
        raise ValueError("where: x and y must be either both None or both non-None")
    if x is not None:
        return primitives.SelectV2(condition, x, y)
    places = primitives.Where(condition.flat_values)
    outer = cast(primitives.GatherV2(condition._coordinates(), places[:, 0], 0, 0), int64)
    return primitives.ConcatV2([outer, places[:, 1:]], 1)


def _reverse(tensor: RaggedTensor, axis: Any, name: str | None = None) -> Any:
    for place, a in enumerate(dims_of(axis)):
        at = axis_in(a, tensor.shape.rank, f"axis[{place}]")
        key = [builtins.slice(None)] * at + [builtins.slice(None, None, -1)]
        tensor = tensor[tuple(key)]
    return tensor


def _tile(input: RaggedTensor, multiples: Any, name: str | None = None) -> Any:
    counts, rank = dims_of(multiples), input.shape.rank
    if len(counts) != rank or min(counts) < 0:
        raise InvalidArgumentError.of(
            f"tile: Expected multiples argument to be a vector of length {rank} without negative numbers; got {counts}"
        )
    for axis, times in enumerate(counts):
        input = (
            concat([input] * times, axis) if times else input[(builtins.slice(None),) * axis + (builtins.slice(0, 0),)]
        )
    return input


def _softmax(logits: RaggedTensor, axis: int | None = None, name: str | None = None) -> Any:
    if axis not in (None, -1, logits.shape.rank - 1):
        raise ValueError(f"softmax: a ragged tensor is normalized along its last dimension; got axis={axis}")
    if logits.flat_values.shape.rank > 1:
        return logits.with_flat_values(primitives.Softmax(logits.flat_values))
    if isinstance(logits.values, RaggedTensor):
        return logits.with_values(_softmax(logits.values))
    ids, count = logits.value_rowids(), logits.nrows()
    largest = primitives.StopGradient(primitives.UnsortedSegmentMax(logits.values, ids, count))
    powers = primitives.Exp(segment_deviations(logits.values, ids, largest))
    total = primitives.UnsortedSegmentSum(powers, ids, count)
    return logits.with_values(powers / primitives.GatherV2(total, ids, 0, 0))


def _squeeze(input: RaggedTensor, axis: Any = None, name: str | None = None) -> Any:
    if axis is None:
        raise ValueError("Ragged.squeeze must have an axis argument.")
    if not isinstance(axis, int | list | tuple):
        raise TypeError(f"squeeze: Axis must be a list or tuple of integers; got {axis!r}")
    for a in sorted((a % input.shape.rank for a in dims_of(axis)), reverse=True):
        input = _squeezed(input, a)
    return input


def _one_hot(
    indices: RaggedTensor,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    *rest: Any,
    **named: Any,
) -> Any:
    if axis is not None and axis >= 0:
        if axis <= indices.ragged_rank:
            raise ValueError(f"axis ({axis}) must be greater than indices.ragged_rank ({indices.ragged_rank}).")
        axis -= indices.ragged_rank
    return indices.with_flat_values(one_hot(indices.flat_values, depth, on_value, off_value, axis, *rest, **named))


def _squeezed(x: Any, axis: int) -> Any:
    if not isinstance(x, RaggedTensor):
        return primitives.Squeeze(x, [axis])
    if axis > 1:
        return x.with_values(_squeezed(x.values, axis - 1))
    lengths = [int(x.nrows())] if axis == 0 else x.row_lengths().numpy().tolist()
    if any(n != 1 for n in lengths):
        raise InvalidArgumentError.of(f"squeeze: Can not squeeze dim[{axis}], expected a dimension of 1")
    return x.values


def _split(
    value: RaggedTensor, num_or_size_splits: Any, axis: Any = 0, num: Any = None, name: str | None = None
) -> Any:
    if int(axis) != 0:
        raise ValueError(f"split: a ragged tensor is split along axis 0; got axis={axis}")
    sizes = num_or_size_splits
    if num is not None and _core.is_symbolic(sizes) and sizes.shape.rank in (None, 1):
        return _split_by(value, sizes, num)
    rows = int(value.nrows())
    if not isinstance(sizes, list | tuple) and not getattr(sizes, "shape", None):
        if int(sizes) < 1 or rows % int(sizes):
            raise InvalidArgumentError.of(f"split: {rows} rows cannot be divided into {int(sizes)} equal parts")
        sizes = [rows // int(sizes)] * int(sizes)
    ends = np.cumsum(dims_of(sizes)).tolist()
    return [value[begin:end] for begin, end in zip([0, *ends[:-1]], ends)]


def _split_by(value: RaggedTensor, sizes: Any, num: int) -> list[Any]:
    """The rows in `num` groups whose sizes the graph computes."""
    sizes = cast(primitives.Reshape(sizes, [-1]), int64)
    check = assert_equal(size(sizes), num, "split: `num` must be the number of sizes")
    ends = primitives.Cumsum(after(check, sizes), 0, False, False)
    starts = ends - sizes
    return [value[starts[i] : ends[i]] for i in range(num)]


def _reduce_join(
    inputs: RaggedTensor, axis: Any = None, keepdims: bool = False, separator: str = "", name: str | None = None
) -> Any:
    def join(words: Any, ids: Any, count: Any) -> Any:
        return find_public("strings.unsorted_segment_join")(words, ids, count, separator)

    def join_all(words: Any, axis: Any, keepdims: bool) -> Any:
        return reduce_join(words, axis, keepdims, separator)

    return reduction(join, join_all)(inputs, axis, keepdims)


def _add_n(inputs: list[Any], name: str | None = None) -> Any:
    total = inputs[0]
    for x in inputs[1:]:
        total = total + x
    return total


def _reshape(tensor: RaggedTensor, shape: Any, name: str | None = None) -> Any:
    if dims_of(shape) != [-1]:
        raise ValueError(f"reshape: of a ragged tensor only all elements can be had, as shape [-1]; got {shape}")
    return primitives.Reshape(tensor.flat_values, [-1])


def _cumsum(
    x: RaggedTensor, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> RaggedTensor:
    rank = x.shape.rank
    axis = int(axis)
    if not -rank <= axis < rank:
        raise ValueError(f"cumsum: axis must be in [{-rank}, {rank}); got {axis}")
    axis %= rank
    if axis > 1 and isinstance(x.values, RaggedTensor):
        return x.with_values(_cumsum(x.values, axis - 1, exclusive, reverse))
    if axis > 1:
        return x.with_values(primitives.Cumsum(x.values, axis - 1, exclusive, reverse))
    if isinstance(x.values, RaggedTensor):
        raise ValueError(f"cumsum: along dimension {axis} of a ragged tensor the rows must be plain; got {x.shape}")
    sums = primitives.Cumsum(x.to_tensor(), axis, exclusive, reverse)
    result = RaggedTensor.from_tensor(sums, lengths=x.row_lengths())
    return x.with_values(result.values) if axis else result


_RAGGED_ROWS = "The matrices in `a` and `b` may not be ragged in their innermost dimension."


def _matmul(
    a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, adjoint_a: bool = False,
    adjoint_b: bool = False, *rest: Any, **named: Any,
) -> Any:  # fmt: skip
    a, b = (x if isinstance(x, RaggedTensor) else convert_to_tensor(x) for x in (a, b))
    if a.dtype != b.dtype:
        raise ValueError(f"matmul: `a` and `b` must have the same dtype; got {a.dtype.name} and {b.dtype.name}")
    if a.shape.rank is None and b.shape.rank is None:
        raise ValueError("matmul requires at least one input to have known rank if either input is ragged.")
    rank = b.shape.rank if a.shape.rank is None else a.shape.rank
    if rank < 2 or b.shape.rank not in (None, rank):
        raise ValueError(f"matmul: `a` and `b` must have the same rank; got shapes {a.shape} and {b.shape}")
    if rank > 3:
        a, b = (x if isinstance(x, RaggedTensor) else RaggedTensor.from_tensor(x) for x in (a, b))
        text = "matmul: Batch dimensions of `a` and `b` do not have the same size."
        check = assert_equal(a.row_splits, b.row_splits, text)
        return a.with_values(
            _matmul(after(check, a.values), b.values, transpose_a, transpose_b, adjoint_a, adjoint_b, *rest, **named)
        )
    if rank == 2:
        a, b = _uniform(a), _uniform(b)
    product = find_public("matmul")(
        _dense(a), _dense(b), transpose_a, transpose_b, adjoint_a, adjoint_b, *rest, **named
    )
    if rank == 2:
        return product
    if (
        isinstance(a, RaggedTensor)
        and a.ragged_rank == 1
        and not (isinstance(b, RaggedTensor) or transpose_a or adjoint_a)
    ):
        return a.with_values(RaggedTensor.from_tensor(product, lengths=a.row_lengths()).values)
    rows, shared = _matrix_sizes(a, transpose_a or adjoint_a)
    same, columns = _matrix_sizes(b, transpose_b or adjoint_b)
    if any(n != m for n, m, count in zip(shared, same, rows) if count):
        raise InvalidArgumentError.of("matmul: the rows of `b` must be as many as the columns of `a`")
    height, width = a.shape[-1 if transpose_a or adjoint_a else -2], b.shape[-2 if transpose_b or adjoint_b else -1]
    if width is None:
        return RaggedTensor.from_tensor(product, lengths=[rows, np.repeat(columns, rows)])
    return RaggedTensor.from_tensor(product, lengths=rows if height is None else None)


def _dense(matrices: Any) -> Any:
    """Matrices as a dense tensor, with zeros behind the ends of their rows."""
    return matrices.to_tensor() if isinstance(matrices, RaggedTensor) else matrices


def _uniform(matrix: Any) -> Any:
    """A matrix as a dense tensor; its rows must have one length."""
    if not isinstance(matrix, RaggedTensor):
        return matrix
    dense = matrix.to_tensor()
    check = assert_equal(size(matrix.flat_values), size(dense), _RAGGED_ROWS)
    return after(check, dense)


def _matrix_sizes(matrices: Any, swapped: bool) -> tuple[Any, Any]:
    """The numbers of rows and columns of each matrix of a batch, as arrays."""
    shape = matrices.bounding_shape().numpy() if isinstance(matrices, RaggedTensor) else dims_of(matrices.shape)
    rows, columns = np.full(shape[0], shape[1], np.int64), np.full(shape[0], shape[2], np.int64)
    if isinstance(matrices, RaggedTensor):
        rows = matrices.row_lengths().numpy().astype(np.int64)
    if isinstance(getattr(matrices, "values", None), RaggedTensor):
        lengths, owners = matrices.values.row_lengths().numpy(), matrices.value_rowids().numpy()
        columns = np.zeros(len(rows), np.int64)
        columns[owners] = lengths
        if (columns[owners] != lengths).any():
            raise InvalidArgumentError.of(_RAGGED_ROWS)
    return (columns, rows) if swapped else (rows, columns)


_mean = reduction(segment_mean, of_inexact(primitives.Mean), mean_over_several)
_variance = reduction(segment_variance, of_inexact(reduce_variance), variance_over_several)
_std = reduction(
    segment_std, of_inexact(reduce_std), lambda x, axes, _: primitives.Sqrt(variance_over_several(x, axes, _variance))
)


def _moments(
    x: RaggedTensor, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Any, Any]:
    return _mean(x, axes, keepdims), _variance(x, axes, keepdims)  # `shift` is not used, as for dense tensors


def _repeat(input: RaggedTensor, repeats: Any, axis: Any = None, name: str | None = None) -> Any:
    if axis is not None:
        raise ValueError(f"repeat: of a ragged tensor only all elements can be repeated, without axis; got {axis}")
    return repeat(primitives.Reshape(input.flat_values, [-1]), repeats, 0)


def _by_segment(function: Any) -> Any:
    """Elements by the number that stands in their place, or rows by the number of the row."""

    def run(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
        if isinstance(segment_ids, RaggedTensor):
            if not all(map(same_splits, data.nested_row_splits, segment_ids.nested_row_splits)):
                raise InvalidArgumentError.of("segment_ids must have the rows of data")
            return function(data.flat_values, segment_ids.flat_values, num_segments)
        return segment_fold(function, data, convert_to_tensor(segment_ids), num_segments)

    return run


def _scaled_segments(scale: Any) -> Any:
    """Sums by segment, divided by a function of how many elements each has."""
    sums = _by_segment(primitives.UnsortedSegmentSum)

    def run(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
        total = sums(data, segment_ids, num_segments)
        flat = data.flat_values
        ones = primitives.BroadcastTo(cast(1, flat.dtype), primitives.Shape(flat, int64))
        counts = sums(data.with_flat_values(ones), segment_ids, num_segments)
        if isinstance(total, RaggedTensor):
            return total.with_flat_values(scale(total.flat_values, counts.flat_values))
        return scale(total, primitives.Maximum(counts, cast(1, counts.dtype)))

    return run


for _name, _function in {
    "reduce_sum": reduction(primitives.UnsortedSegmentSum, with_axis(primitives.Sum)),
    "reduce_prod": reduction(primitives.UnsortedSegmentProd, with_axis(primitives.Prod)),
    "reduce_max": reduction(primitives.UnsortedSegmentMax, with_axis(primitives.Max)),
    "reduce_min": reduction(primitives.UnsortedSegmentMin, with_axis(primitives.Min)),
    "reduce_mean": _mean,
    "reduce_any": reduction(segment_bool(primitives.UnsortedSegmentMax), of_bool(primitives.Any)),
    "reduce_all": reduction(segment_bool(primitives.UnsortedSegmentMin), of_bool(primitives.All)),
    "reduce_variance": _variance,
    "reduce_std": _std,
    "reduce_logsumexp": reduction(segment_logsumexp, reduce_logsumexp),
    "moments": _moments,
    "repeat": _repeat,
    "concat": concat,
    "stack": stack,
    "expand_dims": expand_dims,
    "gather": gather,
    "gather_nd": gather_nd,
    "dynamic_partition": dynamic_partition,
    "boolean_mask": boolean_mask,
    "where": _where,
    "reverse": _reverse,
    "tile": _tile,
    "softmax": _softmax,
    "squeeze": _squeeze,
    "one_hot": _one_hot,
    "split": _split,
    "reduce_join": _reduce_join,
    "add_n": _add_n,
    "reshape": _reshape,
    "cumsum": _cumsum,
    "matmul": _matmul,
    "unsorted_segment_sum": _by_segment(primitives.UnsortedSegmentSum),
    "unsorted_segment_mean": _scaled_segments(lambda sums, counts: sums / counts),
    "unsorted_segment_sqrt_n": _scaled_segments(lambda sums, counts: sums / primitives.Sqrt(counts)),
    "unsorted_segment_prod": _by_segment(primitives.UnsortedSegmentProd),
    "unsorted_segment_max": _by_segment(primitives.UnsortedSegmentMax),
    "unsorted_segment_min": _by_segment(primitives.UnsortedSegmentMin),
}.items():
    add_operation(_name, _function)
