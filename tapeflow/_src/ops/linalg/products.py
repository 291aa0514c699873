"""Linear algebra that is made of other operations: products, norms, transposes."""

from __future__ import annotations

import math
import os
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dynamic_dims
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.dtypes import int32
from tapeflow._src.types.errors import FailedPreconditionError, InvalidArgumentError

# NumPy's package may stand elsewhere, as in a virtual environment that sees the packages of the system.
if (_lapack := find_spec("scipy_openblas32")) and _lapack.submodule_search_locations:
    _core.set_library_path(os.path.join(_lapack.submodule_search_locations[0], "lib"))


def swapped_ends(rank: int) -> list[int]:
    """The permutation that exchanges the last two of `rank` dimensions."""
    return [*range(rank - 2), rank - 1, rank - 2]


@public("linalg.matrix_transpose", "compat.v1.matrix_transpose")
def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """The last two dimensions exchanged; with `conjugate`, the adjoint.

    >>> tf.linalg.matrix_transpose([[1, 2], [3, 4]])
    <tf.Tensor: shape=(2, 2), dtype=int32, numpy=
    array([[1, 3],
           [2, 4]], dtype=int32)>
    """
    a = convert_to_tensor(a)
    rank = a.shape.rank
    if rank is None:
        count = primitives.Shape(primitives.Shape(a, int32), int32)[0]
        order = primitives.Range(convert_to_tensor(0, int32), count, convert_to_tensor(1, int32))
        last = primitives.Pack([count - 1, count - 2], 0)
        result = primitives.Transpose(a, primitives.ConcatV2([order[:-2], last], 0))
        return primitives.Conj(result) if conjugate and a.dtype.is_complex else result
    if rank < 2:
        raise ValueError(
            f"matrix_transpose: Argument `a` should be a (batch) matrix with rank >= 2. Received `a` = {a} with "
            f"shape: {a.shape}"
        )
    result = primitives.Transpose(a, swapped_ends(rank))
    return primitives.Conj(result) if conjugate and a.dtype.is_complex else result


@public("linalg.adjoint")
def adjoint(matrix: Any, name: str | None = None) -> Tensor:
    """The conjugate transpose of the last two dimensions.

    Args:
        matrix: A batch of matrices, `[..., m, n]`.
        name: A name for the operation in graphs.

    Returns:
        A tensor of shape `[..., n, m]`.

    Gradient:
        The adjoint of `dy`.

    >>> tf.linalg.adjoint([[1., 2.], [3., 4.]])
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[1., 3.],
           [2., 4.]], dtype=float32)>
    """
    return matrix_transpose(matrix, conjugate=True)


@public("linalg.matvec")
def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """A matrix times a vector, with batches.

    >>> tf.linalg.matvec([[1., 2.], [3., 4.]], [1., 1.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 7.], dtype=float32)>
    """
    b = convert_to_tensor(b, dtype_hint=getattr(a, "dtype", None))
    column = primitives.MatMul(a, primitives.ExpandDims(b, -1), transpose_a=transpose_a, adjoint_a=adjoint_a)
    return primitives.Squeeze(column, -1)


@public("linalg.trace", "compat.v1.trace")
def trace(x: Any, name: str | None = None) -> Tensor:
    """The sum of the main diagonal of each matrix.

    >>> tf.linalg.trace([[1, 2], [3, 4]])
    <tf.Tensor: shape=(), dtype=int32, numpy=5>
    """
    return primitives.Sum(primitives.MatrixDiagPartV3(x, 0, 0), -1)


@public("linalg.cross", "compat.v1.cross")
def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """The cross product of vectors of length 3, over the last dimension.

    >>> tf.linalg.cross([1., 0., 0.], [0., 1., 0.])
    <tf.Tensor: shape=(3,), dtype=float32, numpy=array([0., 0., 1.], dtype=float32)>
    """
    a = convert_to_tensor(a)
    b = convert_to_tensor(b, dtype_hint=a.dtype)
    if a.shape != b.shape:
        raise InvalidArgumentError.of(
            f"cross: Both inputs must be of same shape: {a.shape.as_list()} vs. {b.shape.as_list()}"
        )
    if a.shape.rank == 0 or a.shape[-1] != 3:
        raise FailedPreconditionError.of(
            f"cross: Cross-products are only defined for 3-element vectors; got shape {a.shape.as_list()}"
        )
    (a0, a1, a2), (b0, b1, b2) = primitives.Unpack(a, -1, -1), primitives.Unpack(b, -1, -1)
    return primitives.Pack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], -1)


def _is_axis_pair(axis: Any) -> bool:
    """Whether `axis` names the two dimensions of matrices."""
    if not isinstance(axis, tuple | list | np.ndarray):
        return False
    pair = tuple(axis)
    if len(pair) == 1:
        return False
    if len(pair) != 2 or pair[0] == pair[1]:
        raise ValueError(f"'axis' must be None, an integer, or a tuple of 2 unique integers, got {pair}")
    return True


def _spectral_norm(x: Any, axis: Any) -> Any:
    """The largest singular value over two dimensions, which are kept with size 1."""
    rank = x.shape.rank
    rows, columns = (int(a) % rank for a in axis)
    order = [d for d in range(rank) if d not in (rows, columns)] + [rows, columns]
    values = primitives.Svd(primitives.Transpose(x, order), compute_uv=False)[0]
    largest = primitives.ExpandDims(primitives.Max(values, -1, True), -1)
    return primitives.Transpose(largest, [order.index(d) for d in range(rank)])


@public("norm", "linalg.norm")
def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """The norm of vectors, or of matrices with two axes: 'euclidean', 'fro', 1, 2, np.inf, or any positive order.

    Args:
        tensor: The tensor.
        ord: The kind of norm: 'euclidean', 'fro', 1, 2, `np.inf` or a positive number.
        axis: None for the norm of all elements, a dimension for vectors, two dimensions for matrices.
        keepdims: Whether reduced dimensions stay, with size 1.
        name: A name for the operation in graphs.

    Returns:
        A tensor without the dimensions `axis`, or with size 1 there if `keepdims`.

    Gradient:
        `dy * x / y` for the Euclidean norm; at 0 NaN, or 0 if `dy` is 0.

    >>> tf.norm([3., 4.])
    <tf.Tensor: shape=(), dtype=float32, numpy=5.0>
    """
    x = convert_to_tensor(tensor)
    if ord == "euclidean" and (axis is None or type(axis) is int) and x.dtype.is_floating and not _core.is_tracing():
        return primitives.EuclideanNorm(x, axis, bool(keepdims))
    matrix_norm = _is_axis_pair(axis)
    if matrix_norm:
        axis = [int(a) for a in axis]
        supported = ["euclidean", "fro", 1, 2, np.inf]
        if ord not in supported:
            raise ValueError(f"'ord' must be a supported matrix norm in {supported}, got {ord}")
    elif ord != "euclidean" and (isinstance(ord, str) or ord <= 0):
        raise ValueError(f"'ord' must be a supported vector norm, got {ord}")
    if ord in ("euclidean", "fro") or (ord == 2 and not matrix_norm):
        squares = x * primitives.Conj(x) if x.dtype.is_complex else x * x
        result = primitives.Sqrt(primitives.Sum(squares, axis, True))
    elif matrix_norm and ord == 2:
        result = _spectral_norm(x, axis)
    else:
        size = primitives.ComplexAbs(x) if x.dtype.is_complex else primitives.Abs(x)
        if ord == 1:
            result = primitives.Sum(size, axis[0] if matrix_norm else axis, True)
        elif ord == np.inf:
            result = primitives.Sum(size, axis[1], True) if matrix_norm else primitives.Max(size, axis, True)
        else:
            result = primitives.Pow(primitives.Sum(primitives.Pow(size, ord), axis, True), 1.0 / ord)
        if matrix_norm:
            result = primitives.Max(result, axis[1] if ord == 1 else axis[0], True)
    return result if keepdims else primitives.Squeeze(result, axis)


@public("linalg.normalize")
def normalize(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """The tensor over its norm, and the norm with the reduced dimensions kept.

    >>> tf.linalg.normalize([3., 4.])[0]
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.6, 0.8], dtype=float32)>
    """
    tensor = convert_to_tensor(tensor)
    size = cast(norm(tensor, ord, axis, keepdims=True), tensor.dtype)
    return tensor / size, size


@public("math.l2_normalize", "linalg.l2_normalize", "nn.l2_normalize")
def l2_normalize(x: Any, axis: Any = None, epsilon: Any = 1e-12, name: str | None = None, dim: Any = None) -> Any:
    """Scaled to 2-norm 1 along `axis`; sums of squares below `epsilon` count as `epsilon`.

    >>> tf.math.l2_normalize([3., 4.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.6, 0.8], dtype=float32)>
    """
    if dim is not None:
        if axis is not None:
            raise ValueError("Cannot specify both 'axis' and 'dim'")
        axis = dim
    x = convert_to_tensor(x)
    if x.dtype.is_complex:
        re, im = primitives.Real(x), primitives.Imag(x)
        squares = primitives.Sum(re * re + im * im, axis, True)
        scale = primitives.Rsqrt(primitives.Maximum(squares, epsilon))
        return primitives.Complex(re * scale, im * scale)
    squares = primitives.SumOfSquares(x, axis, True)
    return x * primitives.Rsqrt(primitives.Maximum(squares, epsilon))


@public("tensordot", "linalg.tensordot", "compat.v1.tensordot")
def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """The product of two tensors summed over pairs of dimensions: the last and first `axes`, or those listed.

    Args:
        a: The first tensor.
        b: The second tensor.
        axes: How many of the last dimensions of `a` and first of `b` to sum over, or a pair of lists of dimensions.
        name: A name for the operation in graphs.

    Returns:
        A tensor.

    Gradient:
        A tensordot of `dy` and the other input.

    >>> tf.tensordot([[1., 2.], [3., 4.]], [1., 1.], 1)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([3., 7.], dtype=float32)>
    """
    a = convert_to_tensor(a)
    b = convert_to_tensor(b, dtype_hint=a.dtype)
    pair = None if _core.is_tracing() or a.ndim != 2 or b.ndim != 2 else _pair_of_axes(axes)
    if pair is not None:
        return primitives.MatMul(a, b, pair[0] == 0, pair[1] == 1)
    if type(axes) is int and axes > 0 and not _core.is_tracing():
        rows, columns = a.shape.as_list(), b.shape.as_list()
        if axes <= len(rows) and rows[-axes:] == columns[:axes]:  # as they lie, without another order
            shared, rows, columns = math.prod(columns[:axes]), rows[:-axes], columns[axes:]
            left = primitives.Reshape(a, (math.prod(rows), shared))
            right = primitives.Reshape(b, (shared, math.prod(columns)))
            return primitives.Reshape(primitives.MatMul(left, right), [*rows, *columns])
    a_axes, b_axes = _contracted_axes(a, b, axes)
    left, a_free, shared = _as_matrix(a, a_axes, False)
    right, b_free, other = _as_matrix(b, b_axes, True)
    if len(shared) != len(other):
        raise ValueError(f"Different number of contraction axes `a` and `b`, {len(a_axes)} != {len(b_axes)}.")
    result = primitives.MatMul(left, right)
    return result if len(a_free) == len(b_free) == 1 else primitives.Reshape(result, [*a_free, *b_free])


def _pair_of_axes(axes: Any) -> tuple[int, int] | None:
    """The one dimension of each of two matrices over which to sum, if `axes` says so plainly."""
    if type(axes) is int:
        return (1, 0) if axes == 1 else None
    if type(axes) not in (list, tuple) or len(axes) != 2:
        return None
    pair = [side[0] if type(side) in (list, tuple) and len(side) == 1 else side for side in axes]
    if any(type(side) is not int or not -2 <= side < 2 for side in pair):
        return None
    return pair[0] % 2, pair[1] % 2


def _as_matrix(x: Any, axes: list[int], contracted_first: bool) -> tuple[Any, list[int], list[int]]:
    """`x` as a matrix with the contracted dimensions on one side; the sizes of the free and of the contracted ones."""
    dims = dynamic_dims(x)
    order, free = _matrix_order(len(dims), tuple(axes), contracted_first)
    if order is not None:
        x = primitives.Transpose(x, order)
    free_dims, shared = [dims[d] for d in free], [dims[d] for d in axes]
    rows, columns = (shared, free_dims) if contracted_first else (free_dims, shared)
    if len(rows) != 1 or len(columns) != 1:
        x = primitives.Reshape(x, [math.prod(rows), math.prod(columns)])
    return x, free_dims, shared


@lru_cache(256)
def _matrix_order(rank: int, axes: tuple[int, ...], contracted_first: bool) -> tuple[list[int] | None, list[int]]:
    """The order of dimensions with the contracted ones on one side, None if it is that already; and the free ones."""
    free = [d for d in range(rank) if d not in axes]
    order = [*axes, *free] if contracted_first else [*free, *axes]
    return (None if order == list(range(rank)) else order), free


def _contracted_axes(a: Any, b: Any, axes: Any) -> tuple[list[int], list[int]]:
    a_rank, b_rank = a.shape.rank, b.shape.rank
    if not isinstance(axes, int | list | tuple):
        axes = np.asarray(axes).tolist()
    if isinstance(axes, int):
        if axes < 0:
            raise ValueError(f"`axes` must be at least 0. Received: {axes}.")
        for rank, shape in ((a_rank, a.shape), (b_rank, b.shape)):
            if axes > rank:
                raise ValueError(
                    f"`axes` must not be larger than the number of dimensions of tensor of shape {shape}.  "
                    f"Received {axes}, vs tensor dimensions {rank}."
                )
        return list(range(a_rank - axes, a_rank)), list(range(axes))
    if len(axes) != 2:
        raise ValueError(f"`axes` must be an integer or have length 2. Received {axes}.")
    a_axes, b_axes = (
        side if type(side) is list and all(type(d) is int for d in side) else np.asarray(side).reshape(-1).tolist()
        for side in axes
    )
    if len(a_axes) != len(b_axes):
        raise ValueError(f"Different number of contraction axes `a` and `b`, {len(a_axes)} != {len(b_axes)}.")
    for side, rank in ((a_axes, a_rank), (b_axes, b_rank)):
        if any(not -rank <= d < rank for d in side):
            raise ValueError(
                f"tensordot: the contracted axes must be dimensions of a tensor of rank {rank}; got {side}"
            )
    return [d % a_rank for d in a_axes], [d % b_rank for d in b_axes]
