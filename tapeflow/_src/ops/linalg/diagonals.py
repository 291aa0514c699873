"""Diagonals of matrices and tensors: making, taking and replacing them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor, padding_value_of
from tapeflow._src.types.errors import InvalidArgumentError


@public("linalg.diag", "compat.v1.matrix_diag")
def diag(
    diagonal: Any,
    name: str = "diag",
    k: Any = 0,
    num_rows: int = -1,
    num_cols: int = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Matrices with the given diagonal, or diagonals `k = (lowest, highest)`, and `padding_value` elsewhere.

    Args:
        diagonal: The diagonals, along the last dimension (the last two for several).
        name: A name for the operation in graphs.
        k: Which diagonal: 0 the main one, positive above it; a pair for a band.
        num_rows: The number of rows; as few as possible if -1.
        num_cols: The number of columns; as few as possible if -1.
        padding_value: The other elements.
        align: How shorter diagonals of a band are padded: 'RIGHT_LEFT' and the like.

    Returns:
        A tensor of matrices.

    Gradient:
        The diagonals of `dy`.

    >>> tf.linalg.diag([1, 2])
    <tf.Tensor: shape=(2, 2), dtype=int32, numpy=
    array([[1, 0],
           [0, 2]], dtype=int32)>
    """
    diagonal = convert_to_tensor(diagonal)
    padding = padding_value_of(padding_value, diagonal.dtype)
    return primitives.MatrixDiagV3(diagonal, k, int(num_rows), int(num_cols), padding, align)


@public("linalg.diag_part", "compat.v1.matrix_diag_part")
def diag_part(
    input: Any,
    name: str = "diag_part",
    k: Any = 0,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """The diagonal `k` of matrices, or the diagonals `k = (lowest, highest)` as rows, filled with `padding_value`.

    Args:
        input: A batch of matrices, `[..., m, n]`.
        name: A name for the operation in graphs.
        k: Which diagonal: 0 the main one, positive above it; a pair for a band.
        padding_value: What fills shorter diagonals of a band.
        align: Where the padding stands: 'RIGHT_LEFT' and the like.

    Returns:
        A tensor of diagonals.

    Gradient:
        `dy` on the diagonals, 0 elsewhere.

    >>> tf.linalg.diag_part([[1, 2], [3, 4]])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 4], dtype=int32)>
    """
    input = convert_to_tensor(input)
    return primitives.MatrixDiagPartV3(input, k, padding_value_of(padding_value, input.dtype), align)


@public("linalg.set_diag", "compat.v1.matrix_set_diag")
def set_diag(
    input: Any,
    diagonal: Any,
    name: str = "set_diag",
    k: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Matrices with their diagonal `k`, or diagonals `k = (lowest, highest)`, replaced.

    >>> tf.linalg.set_diag([[1, 2], [3, 4]], [8, 9])
    <tf.Tensor: shape=(2, 2), dtype=int32, numpy=
    array([[8, 2],
           [3, 9]], dtype=int32)>
    """
    return primitives.MatrixSetDiagV3(input, diagonal, k, align)


@public("linalg.tensor_diag", "compat.v1.diag")
def tensor_diag(diagonal: Any, name: str | None = None) -> Tensor:
    """The tensor of twice the rank that has the elements of `diagonal` where both halves of the index agree.

    >>> tf.linalg.tensor_diag([1, 2])
    <tf.Tensor: shape=(2, 2), dtype=int32, numpy=
    array([[1, 0],
           [0, 2]], dtype=int32)>
    """
    diagonal = convert_to_tensor(diagonal)
    dims = diagonal.shape.as_list()
    if not dims:
        raise InvalidArgumentError.of("tensor_diag: Input must be at least rank 1, got 0")
    flat = primitives.Reshape(diagonal, [-1])
    return primitives.Reshape(primitives.MatrixDiagV3(flat, 0, padding_value=0), dims + dims)


@public("linalg.tensor_diag_part", "compat.v1.diag_part")
def tensor_diag_part(input: Any, name: str | None = None) -> Tensor:
    """The elements where the first and the second half of the index agree.

    >>> tf.linalg.tensor_diag_part([[1, 2], [3, 4]])
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 4], dtype=int32)>
    """
    tensor = convert_to_tensor(input)
    dims = tensor.shape.as_list()
    half = len(dims) // 2
    if not dims or len(dims) % 2:
        raise InvalidArgumentError.of(
            f"tensor_diag_part: The rank of the tensor should be even and positive, got shape {dims}"
        )
    if dims[:half] != dims[half:]:
        raise InvalidArgumentError.of(f"tensor_diag_part: Invalid shape {dims}: dimensions {half} apart must be equal")
    size = int(np.prod(dims[:half], dtype=np.int64))
    return primitives.Reshape(primitives.MatrixDiagPartV3(primitives.Reshape(tensor, [size, size]), 0, 0), dims[:half])
