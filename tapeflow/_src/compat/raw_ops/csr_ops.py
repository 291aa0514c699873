"""Raw operations on compressed sparse matrices and batches of them.

A matrix is kept as a `tf.SparseTensor` whose elements are in the order of rows, so that gradients flow to its values.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import find_public
from tapeflow._src.ops.arrays.constants import ones_like as _ones_like
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.effects.host_call import host_call
from tapeflow._src.ops.linalg.products import matrix_transpose
from tapeflow._src.ops.sparse import binary, reductions, sparse
from tapeflow._src.ops.sparse.conversion import to_dense
from tapeflow._src.types.dtypes import int32, int64
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.sparse_tensor import SparseTensor

CSRSparseMatrixComponents = namedtuple("CSRSparseMatrixComponents", ["row_ptrs", "col_inds", "values"])
CSRSparseMatrixToSparseTensor = namedtuple("CSRSparseMatrixToSparseTensor", ["indices", "values", "dense_shape"])
_LARGEST = 2**31 - 1


def _matrix(x: Any) -> SparseTensor:
    if not isinstance(x, SparseTensor) or x.indices.shape[1] not in (2, 3):
        raise InvalidArgumentError.of(f"Invalid input matrix: expected a sparse matrix or a batch of them; got {x!r}")
    return x


def _from_parts(indices: Any, values: Any, dense_shape: Any) -> SparseTensor:
    """`SparseTensorToCSRSparseMatrix`."""
    indices, values, shape = (convert_to_tensor(x) for x in (indices, values, dense_shape))
    for x, rank, name in ((indices, 2, "indices"), (values, 1, "values"), (shape, 1, "dense_shape")):
        if x.shape.rank not in (None, rank):
            raise InvalidArgumentError.of(f"SparseTensorToCSRSparseMatrix: {name} must be rank {rank}; got {x.shape}")
    if shape.shape[0] not in (None, 2, 3):
        raise InvalidArgumentError.of(
            f"SparseTensorToCSRSparseMatrix: SparseTensor must have rank 2 or 3; but indices has rank: {shape.shape[0]}"
        )
    if not _core.is_symbolic(shape):
        _check_sizes(shape.numpy().tolist())
    return sparse.reorder(SparseTensor(cast(indices, int64), values, cast(shape, int64)))


def _check_sizes(sizes: list[int]) -> None:
    if len(sizes) == 3 and sizes[0] >= _LARGEST:
        raise InvalidArgumentError.of(f"dense_shape batch_size must be < Int32Max; got {sizes[0]}")
    count = sizes[0] * (sizes[1] + 1) if len(sizes) == 3 else sizes[0] + 1
    if count > _LARGEST:
        raise InvalidArgumentError.of(f"csr row index size, num_rows + 1, must be <= Int32Max; got {count}")


def _from_dense(dense_input: Any, indices: Any) -> SparseTensor:
    """`DenseToCSRSparseMatrix`: the elements at `indices`."""
    dense, indices = convert_to_tensor(dense_input), convert_to_tensor(indices)
    if dense.shape.rank not in (None, 2, 3):
        raise InvalidArgumentError.of(f"DenseToCSRSparseMatrix: the input must have rank 2 or 3; got {dense.shape}")
    values = primitives.GatherNd(dense, indices)
    return SparseTensor(cast(indices, int64), values, primitives.Shape(dense, int64))


def _components(csr_sparse_matrix: Any, index: Any, type: Any) -> CSRSparseMatrixComponents:
    """`CSRSparseMatrixComponents` of one matrix of a batch."""
    x = _matrix(csr_sparse_matrix)
    indices, values, rows = x.indices, x.values, x.dense_shape[-2]
    if x.indices.shape[1] == 3:
        of_matrix = primitives.Reshape(primitives.Where(primitives.Equal(indices[:, 0], cast(index, int64))), [-1])
        indices = primitives.GatherV2(indices, of_matrix, 0, 0)[:, 1:]
        values = primitives.GatherV2(values, of_matrix, 0, 0)
    counts = primitives.UnsortedSegmentSum(_ones_like(indices[:, 0]), indices[:, 0], rows)
    starts = primitives.ConcatV2([cast([0], int64), primitives.Cumsum(counts, 0, False, False)], 0)
    return CSRSparseMatrixComponents(cast(starts, int32), cast(indices[:, 1], int32), values)


def _dense(sparse_input: Any, type: Any = None) -> Any:
    """`CSRSparseMatrixToDense`."""
    return to_dense(_matrix(sparse_input))


def _at(dense: Any, indices: Any, shape: Any) -> SparseTensor:
    """The sparse matrices of the elements of dense ones at `indices`."""
    return SparseTensor(indices, primitives.GatherNd(dense, indices), shape)


def _sum(a: Any, b: Any, alpha: Any, beta: Any) -> SparseTensor:
    """`SparseMatrixAdd`: alpha * a + beta * b, with an element where one of the two has one."""
    a, b = _matrix(a), _matrix(b)
    scaled = [x.with_values(x.values * cast(by, x.dtype)) for x, by in ((a, alpha), (b, beta))]
    total: SparseTensor = binary.add(*scaled)
    return total


def _turned(x: Any, transpose: bool, adjoint: bool) -> Any:
    return matrix_transpose(x, conjugate=adjoint) if transpose or adjoint else x


def _check_flags(transpose_a: bool, transpose_b: bool, adjoint_a: bool, adjoint_b: bool) -> None:
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        raise InvalidArgumentError.of("Only one of adjoint and transpose may be true.")


def _product(
    a: Any, b: Any, transpose_a: bool, transpose_b: bool, adjoint_a: bool, adjoint_b: bool, transpose_output: bool,
    conjugate_output: bool,
) -> Any:  # fmt: skip
    """`SparseMatrixMatMul` with dense matrices."""
    _check_flags(transpose_a, transpose_b, adjoint_a, adjoint_b)
    product = _matmul(_turned(_dense(a), transpose_a, adjoint_a), _turned(convert_to_tensor(b), transpose_b, adjoint_b))
    if conjugate_output:
        product = find_public("math.conj")(product)
    return matrix_transpose(product) if transpose_output else product


def _matmul(a: Any, b: Any) -> Any:
    return primitives.MatMul(a, b, False, False)


def _sparse_product(
    a: Any, b: Any, type: Any, transpose_a: bool, transpose_b: bool, adjoint_a: bool, adjoint_b: bool
) -> SparseTensor:
    """`SparseMatrixSparseMatMul`: with an element wherever elements meet, even if their sum is zero."""
    _check_flags(transpose_a, transpose_b, adjoint_a, adjoint_b)
    left, right = _matrix(a), _matrix(b)
    product = _matmul(_turned(_dense(left), transpose_a, adjoint_a), _turned(_dense(right), transpose_b, adjoint_b))
    places = [x.with_values(_ones_like(cast(find_public("abs")(x.values), "float32"))) for x in (left, right)]
    met = _matmul(
        _turned(to_dense(places[0]), transpose_a or adjoint_a, False),
        _turned(to_dense(places[1]), transpose_b or adjoint_b, False),
    )
    return _at(product, primitives.Where(primitives.Greater(met, 0.0)), primitives.Shape(product, int64))


def _scaled(a: Any, b: Any) -> SparseTensor:
    """`SparseMatrixMul` by a scalar, or by one number for each matrix of a batch."""
    a, b = _matrix(a), convert_to_tensor(b)
    if b.shape.rank:
        b = primitives.GatherV2(primitives.Reshape(b, [-1]), a.indices[:, 0], 0, 0)
    scaled: SparseTensor = a.with_values(a.values * b)
    return scaled


def _count(sparse_matrix: Any) -> Any:
    """`SparseMatrixNNZ`: the number of elements, of a batch for each matrix."""
    x = _matrix(sparse_matrix)
    if x.indices.shape[1] == 2:
        return primitives.Shape(x.values, int32)[0]
    rows = x.indices[:, 0]
    return primitives.UnsortedSegmentSum(cast(_ones_like(rows), int32), rows, x.dense_shape[0])


def _softmax(logits: Any, type: Any) -> SparseTensor:
    """`SparseMatrixSoftmax` of the elements of each row."""
    return reductions.softmax(_matrix(logits))


def _softmax_gradient(softmax: Any, grad_softmax: Any, type: Any) -> SparseTensor:
    """`SparseMatrixSoftmaxGrad`, at the elements of the softmax."""
    softmax = _matrix(softmax)
    y, dy = to_dense(softmax), _dense(grad_softmax)
    dx = y * (dy - primitives.Sum(y * dy, [-1], True))
    return _at(dx, softmax.indices, softmax.dense_shape)


def _transposed(input: Any, type: Any, conjugate: bool) -> SparseTensor:
    """`SparseMatrixTranspose`."""
    x = _matrix(input)
    result = sparse.transpose(x, [1, 0] if x.indices.shape[1] == 2 else [0, 2, 1])
    return result.with_values(primitives.Conj(result.values)) if conjugate and x.dtype.is_complex else result


def _zeros(dense_shape: Any, type: Any) -> SparseTensor:
    """`SparseMatrixZeros`: matrices without elements."""
    shape = cast(convert_to_tensor(dense_shape), int64)
    if shape.shape.rank != 1 or shape.shape[0] not in (2, 3):
        raise InvalidArgumentError.of(f"SparseMatrixZeros: dense_shape must have 2 or 3 elements; got {shape.shape}")
    empty = np.zeros([0, shape.shape[0]], np.int64)
    return SparseTensor(empty, convert_to_tensor(np.zeros(0), type), shape)


def _ordering(input: Any) -> Any:
    """`SparseMatrixOrderingAMD`: for each matrix an order of rows in which elimination adds few elements."""
    x = _matrix(input)

    def run(places: Any, shape: Any) -> list[Any]:
        *batch, size, _ = shape.numpy().tolist()
        found = []
        for number in range(batch[0] if batch else 1):
            own = places.numpy()
            own = own[own[:, 0] == number][:, 1:] if batch else own
            found.append(_minimum_degree(own.tolist(), size))
        return [convert_to_tensor(np.asarray(found, np.int32).reshape([*batch, size]))]

    sizes = [None] * (x.indices.shape[1] - 1) if x.shape.rank is None else x.shape[:-1]
    return host_call(run, [x.indices, x.dense_shape], [("int32", sizes)])[0]


def _minimum_degree(places: list[list[int]], size: int) -> list[int]:
    """The rows of a symmetric matrix, of those that are left always one with the fewest neighbours first."""
    neighbours: list[set[int]] = [set() for _ in range(size)]
    for row, column in places:
        if row != column:
            neighbours[row].add(column)
            neighbours[column].add(row)
    left, order = set(range(size)), []
    while left:
        row = min(left, key=lambda i: (len(neighbours[i]), i))
        order.append(row)
        left.remove(row)
        for other in neighbours[row]:  # elimination connects them all
            neighbours[other] |= neighbours[row]
            neighbours[other] -= {row, other}
    return order


def _cholesky(input: Any, permutation: Any, type: Any) -> SparseTensor:
    """`SparseMatrixSparseCholesky` of the matrices with their rows and columns in the given order."""
    x, order = _dense(input), convert_to_tensor(permutation)
    depth = _matrix(input).indices.shape[1] - 2
    lower = find_public("linalg.band_part")(x, -1, 0)  # of which the other half is taken to be the mirror image
    diagonal = find_public("linalg.diag")(find_public("linalg.diag_part")(x))
    whole = lower + matrix_transpose(lower, conjugate=True) - diagonal
    gather = find_public("gather")
    permuted = gather(gather(whole, order, axis=depth, batch_dims=depth), order, axis=depth + 1, batch_dims=depth)
    factor = primitives.Cholesky(permuted)
    return _at(factor, primitives.Where(primitives.NotEqual(factor, cast(0, factor.dtype))), _matrix(input).dense_shape)


_FLAGS = "transpose_a=False, transpose_b=False, adjoint_a=False, adjoint_b=False"

ROWS: list[tuple[str, str, Any]] = [
    ("CSRSparseMatrixComponents", "csr_sparse_matrix, index, type", _components),
    ("CSRSparseMatrixToDense", "sparse_input, type", _dense),
    (
        "CSRSparseMatrixToSparseTensor",
        "sparse_matrix, type",
        lambda x, _: CSRSparseMatrixToSparseTensor(_matrix(x).indices, x.values, x.dense_shape),
    ),
    ("DenseToCSRSparseMatrix", "dense_input, indices", _from_dense),
    ("SparseMatrixAdd", "a, b, alpha, beta", _sum),
    ("SparseMatrixMatMul", f"a, b, {_FLAGS}, transpose_output=False, conjugate_output=False", _product),
    ("SparseMatrixMul", "a, b", _scaled),
    ("SparseMatrixNNZ", "sparse_matrix", _count),
    ("SparseMatrixOrderingAMD", "input", _ordering),
    ("SparseMatrixSoftmax", "logits, type", _softmax),
    ("SparseMatrixSoftmaxGrad", "softmax, grad_softmax, type", _softmax_gradient),
    ("SparseMatrixSparseCholesky", "input, permutation, type", _cholesky),
    ("SparseMatrixSparseMatMul", f"a, b, type, {_FLAGS}", _sparse_product),
    ("SparseMatrixTranspose", "input, type, conjugate=False", _transposed),
    ("SparseMatrixZeros", "dense_shape, type", _zeros),
    ("SparseTensorToCSRSparseMatrix", "indices, values, dense_shape", _from_parts),
]
