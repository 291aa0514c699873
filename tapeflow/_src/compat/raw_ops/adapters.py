"""Functions that bring raw operations in line with the functions that run them; the table names them."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from string import ascii_letters
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.compat.raw_ops.count_checks import checked_length
from tapeflow._src.ops.arrays import indexing
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.linalg.factorizations import lstsq
from tapeflow._src.ops.math import quantization
from tapeflow._src.ops.math.segments import count_bins
from tapeflow._src.ops.sparse import binary as sparse_binary
from tapeflow._src.ops.sparse import conversion as sparse_conversion
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor
from tapeflow._src.types.tensor_shape import TensorShape

BlockLSTMV2 = namedtuple("BlockLSTMV2", ["i", "cs", "f", "o", "ci", "co", "h"])


def division(x: Any, y: Any) -> Any:
    x = convert_to_tensor(x)
    return primitives.TruncateDiv(x, y) if x.dtype.is_integer else primitives.RealDiv(x, y)


def nearly_equal(x: Any, y: Any, tolerance: float) -> Any:
    x = convert_to_tensor(x)
    y = convert_to_tensor(y, x.dtype)
    if not x.shape.is_compatible_with(y.shape):
        raise InvalidArgumentError.of(
            f"ApproximateEqual: x and y must be of the same shape. x shape: {x.shape.as_list()}. y shape: "
            f"{y.shape.as_list()}"
        )
    return primitives.Less(primitives.Abs(x - y), tolerance)


def reverse_dims(tensor: Any, dims: Any) -> Any:
    return primitives.ReverseV2(tensor, np.flatnonzero(np.asarray(dims)).tolist())


def einsum_with_diagonals(einsum: Callable[..., Any]) -> Callable[..., Any]:
    """`Einsum` takes a label that the result repeats: there it is a diagonal, a product with an identity matrix."""

    def run(inputs: Any, equation: str) -> Any:
        left, _, right = equation.replace(" ", "").partition("->")
        operands, unused = list(inputs), (c for c in ascii_letters if c not in equation)
        for label in sorted({c for c in right if c.isalpha() and right.count(c) > 1}):
            term, place = next((t, t.index(label)) for t in left.split(",") if label in t)
            operand = convert_to_tensor(operands[left.split(",").index(term)])
            at = place if "." not in term[:place] else place - len(term)
            size = primitives.Shape(operand)[at] if operand.shape.rank is None else operand.shape[at]
            identity = primitives.MatrixDiagV3(
                primitives.BroadcastTo(convert_to_tensor(1, operand.dtype), [size]), [0], -1, -1, 0, "RIGHT_LEFT"
            )
            while right.count(label) > 1:
                other = next(unused)
                left, right = f"{left},{label}{other}", right.replace(label, other, 1)
                operands.append(identity)
        return einsum(f"{left}->{right}" if "->" in equation else equation, *operands)

    return run


def parallel_concat(concat: Callable[..., Any]) -> Callable[..., Any]:
    """Values of one row each, put below one another."""

    def run(values: Any, shape: Any) -> Any:
        tensors = [convert_to_tensor(value) for value in values]
        for value in tensors:
            if value.shape.rank == 0 or value.shape[:1].as_list() not in ([1], [None]):
                raise InvalidArgumentError.of(f"ParallelConcat: values must have one row each; got shape {value.shape}")
        dims = TensorShape(shape)
        if dims.rank is not None and dims.rank and dims[0] != len(tensors):
            raise InvalidArgumentError.of(
                f"ParallelConcat: 0th dimension of value = {dims[0]} must be greater than loc_ = {len(tensors) - 1}: "
                f"it must be the number of values, {len(tensors)}"
            )
        return concat(tensors, 0)

    return run


def pad_pairs(input: Any, paddings: Any, constant_values: Any) -> Any:
    if _core.is_symbolic(paddings):
        return primitives.PadV2(input, primitives.Reshape(paddings, [-1]), constant_values)
    return primitives.PadV2(input, np.asarray(paddings).reshape(-1).tolist(), constant_values)


def update_slice(input: Any, begin: Any, end: Any, strides: Any, value: Any, *masks: int) -> Any:
    return indexing.update_slice(input, indexing.slice_key(begin, end, strides, *masks), value)


def select(condition: Any, x: Any, y: Any) -> Any:
    condition, x = convert_to_tensor(condition), convert_to_tensor(x)
    if condition.shape.rank == 1 and x.shape.rank > 1:
        condition = primitives.Reshape(condition, [-1] + [1] * (x.shape.rank - 1))
    return primitives.SelectV2(condition, x, y)


def searcher(right: bool) -> Callable[..., Any]:
    def search(sorted_inputs: Any, values: Any, out_type: Any) -> Any:
        return primitives.SearchSorted(sorted_inputs, values, right, out_type)

    return search


def matmul(x: Any, y: Any, adj_x: bool, adj_y: bool) -> Any:
    return primitives.MatMul(x, y, False, False, adj_x, adj_y)


def least_squares(matrix: Any, rhs: Any, l2_regularizer: Any, fast: bool) -> Any:
    matrix = convert_to_tensor(matrix)
    return lstsq(matrix, rhs, cast(l2_regularizer, matrix.dtype), fast)


def bias_gradient(out_backprop: Any, data_format: str) -> Any:
    dy = convert_to_tensor(out_backprop)
    channels = 1 if data_format.startswith("NC") else dy.shape.rank - 1
    return primitives.Sum(dy, [i for i in range(dy.shape.rank) if i != channels], False)


def bin_count(arr: Any, size: Any, weights: Any) -> Any:
    weights = convert_to_tensor(weights)
    numbers = primitives.Reshape(cast(arr, "int64"), [-1])
    dtype = weights.dtype
    given = None if weights.shape.num_elements() == 0 else primitives.Reshape(weights, [-1])
    zero = _core.convert_to_tensor(0, "int64", None, "bincount")
    length = checked_length("raw_ops.Bincount", size)
    return primitives.Reshape(count_bins(numbers, zero, 1, given, length, False, dtype), [length])


def quantize_3(
    input: Any,
    input_min: Any,
    input_max: Any,
    num_bits: Any,
    signed_input: bool,
    range_given: bool,
    narrow_range: bool,
    axis: int,
) -> Any:
    return quantization.quantize_and_dequantize(
        input, input_min, input_max, signed_input, int(num_bits), range_given, "HALF_TO_EVEN", None, narrow_range, axis
    )


def quantize(version: Callable[..., Any]) -> Callable[..., Any]:
    def quantize(
        input: Any,
        input_min: Any,
        input_max: Any,
        signed_input: bool,
        num_bits: int,
        range_given: bool,
        round_mode: str,
        narrow_range: bool,
        axis: int,
    ) -> Any:
        return version(
            input, input_min, input_max, signed_input, num_bits, range_given, round_mode, None, narrow_range, axis
        )

    return quantize


def sparse_of(indices: Any, values: Any, shape: Any) -> SparseTensor:
    return SparseTensor(cast(convert_to_tensor(indices), "int64"), values, cast(convert_to_tensor(shape), "int64"))


def sparse_dense_add(sp_indices: Any, sp_values: Any, sp_shape: Any, dense: Any) -> Any:
    x = sparse_of(sp_indices, sp_values, sp_shape)
    return x.values + sparse_binary.dense_elements(x, dense, "SparseDenseCwiseAdd")


def sparse_matmul(a_indices: Any, a_values: Any, a_shape: Any, b: Any, adjoint_a: bool, adjoint_b: bool) -> Any:
    return sparse_binary.sparse_dense_matmul(sparse_of(a_indices, a_values, a_shape), b, adjoint_a, adjoint_b)


def sparse_to_dense(
    sparse_indices: Any, output_shape: Any, sparse_values: Any, default_value: Any, validate_indices: bool
) -> Any:
    indices = convert_to_tensor(sparse_indices)
    shape = convert_to_tensor(output_shape)
    if indices.shape.rank < 2:
        indices = primitives.Reshape(indices, [-1, 1] if indices.shape.rank == 1 or shape.shape[0] == 1 else [1, -1])
    values = convert_to_tensor(sparse_values)
    default_value = convert_to_tensor(default_value, values.dtype)
    if default_value.shape.rank:
        raise InvalidArgumentError.of(
            f"SparseToDense: default_value should be a scalar; got shape {default_value.shape.as_list()}"
        )
    if values.shape.rank == 0:
        values = primitives.BroadcastTo(values, primitives.Shape(indices, "int64")[:1])
    if _core.is_symbolic(indices) or _core.is_symbolic(shape):
        default = primitives.BroadcastTo(default_value, shape)
        return primitives.TensorScatterUpdate(default, indices, values)
    return sparse_conversion.to_dense(sparse_of(indices, values, shape), default_value, validate_indices)


def block_lstm(
    seq_len_max: Any,
    x: Any,
    cs_prev: Any,
    h_prev: Any,
    w: Any,
    wci: Any,
    wcf: Any,
    wco: Any,
    b: Any,
    cell_clip: float,
    use_peephole: bool,
) -> Any:
    """An LSTM over the first dimension; the gates stand in the order input, forget, cell, output."""
    x, cs, h = convert_to_tensor(x), convert_to_tensor(cs_prev), convert_to_tensor(h_prev)
    steps = int(seq_len_max)
    rows: list[list[Any]] = [[] for _ in BlockLSTMV2._fields]
    for t in range(x.shape[0]):
        if t >= steps:
            for row in rows:
                row.append(
                    primitives.BroadcastTo(_core.convert_to_tensor(0, x.dtype, None, "lstm"), cs.shape.as_list())
                )
            continue
        gates = primitives.MatMul(primitives.ConcatV2([x[t], h], 1), w) + b
        i, f, ci, o = primitives.SplitV(gates, [cs.shape[1]] * 4, 1)
        if use_peephole:
            i, f = i + cs * wci, f + cs * wcf
        i, f, ci = primitives.Sigmoid(i), primitives.Sigmoid(f), primitives.Tanh(ci)
        cs = ci * i + cs * f
        if cell_clip > 0:
            cs = primitives.Minimum(primitives.Maximum(cs, -cell_clip), cell_clip)
        o = primitives.Sigmoid(o + cs * wco if use_peephole else o)
        co = primitives.Tanh(cs)
        h = co * o
        for row, value in zip(rows, (i, cs, f, o, ci, co, h)):
            row.append(value)
    return BlockLSTMV2(*(primitives.Pack(row, 0) for row in rows))
