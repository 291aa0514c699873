"""Products of two sparse matrices; a compressed matrix is kept as the sparse tensor it is made of."""

from __future__ import annotations

from typing import Any

from tapeflow._src.namespace import find_public
from tapeflow._src.types.sparse_tensor import SparseTensor

sparse_dense_matmul = find_public("sparse.sparse_dense_matmul")
matmul = find_public("matmul")
from_dense, to_dense = find_public("sparse.from_dense"), find_public("sparse.to_dense")


def sparse_tensor_to_csr_sparse_matrix(indices: Any, values: Any, dense_shape: Any) -> SparseTensor:
    """The matrix with these elements."""
    return SparseTensor(indices, values, dense_shape)


def sparse_matrix_sparse_mat_mul(a: SparseTensor, b: SparseTensor, type: Any) -> SparseTensor:
    """The product of two matrices, or of each pair in two batches; elements that come out as zero are left out."""
    if a.shape.rank == 3:
        product = matmul(to_dense(a), to_dense(b))
    else:
        product = sparse_dense_matmul(a, to_dense(b))
    sparse: SparseTensor = from_dense(product)
    return sparse


def csr_sparse_matrix_to_sparse_tensor(sparse_matrix: SparseTensor, type: Any) -> SparseTensor:
    """The elements of a matrix."""
    return sparse_matrix
