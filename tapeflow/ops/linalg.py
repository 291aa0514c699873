"""Linear algebra that is made of other operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapeflow import primitives
from tapeflow.namespace import public
from tapeflow.ops.conversion import cast, convert_to_tensor


@public("linalg.matvec")
def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Any:
    """A matrix times a vector, with batches.

    >>> tf.linalg.matvec([[1., 2.], [3., 4.]], [1., 1.])
    [3., 7.]
    """
    b = convert_to_tensor(b)
    column = primitives.MatMul(a, primitives.ExpandDims(b, -1), transpose_a=transpose_a, adjoint_a=adjoint_a)
    return primitives.Squeeze(column, -1)


@public("norm", "linalg.norm")
def norm(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: bool = False, name: str | None = None  # noqa: A002
) -> Any:
    """The norm of vectors (or of matrices, with two axes).

    >>> tf.norm([3., 4.])
    5.0
    """
    matrix_norm = isinstance(axis, list | tuple | np.ndarray) and len(axis) == 2
    supported = ["euclidean", "fro", 1, 2, np.inf] if matrix_norm else ["euclidean", 1, 2, np.inf]
    if isinstance(axis, list | tuple) and len(axis) not in (1, 2):
        raise ValueError(f"'axis' must be None, an integer, or a tuple of 1 or 2 unique integers, got {axis}")
    if ord not in supported and (matrix_norm or not isinstance(ord, int | float) or ord <= 0):
        raise ValueError(f"'ord' must be a supported norm in {supported}, got {ord}")
    x = convert_to_tensor(tensor)
    if ord in ("euclidean", "fro", 2) and not (matrix_norm and ord == 2):
        squares = primitives.Real(x * primitives.Conj(x)) if x.dtype.is_complex else x * x
        result = primitives.Sqrt(primitives.Sum(squares, axis, True))
        result = cast(result, x.dtype)
    else:
        size = primitives.ComplexAbs(x) if x.dtype.is_complex else primitives.Abs(x)
        if matrix_norm:
            rows, columns = axis
            if ord == 1:
                result = primitives.Max(primitives.Sum(size, rows, True), columns, True)
            elif ord == np.inf:
                result = primitives.Max(primitives.Sum(size, columns, True), rows, True)
            else:
                raise ValueError("norm: the 2-norm of a matrix needs its singular values; use tf.linalg.svd")
        elif ord == 1:
            result = primitives.Sum(size, axis, True)
        elif ord == np.inf:
            result = primitives.Max(size, axis, True)
        else:
            result = primitives.Pow(primitives.Sum(primitives.Pow(size, ord), axis, True), 1.0 / ord)
    return result if keepdims else primitives.Squeeze(result, axis)
