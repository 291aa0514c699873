"""Factorisations with TensorFlow's signatures, and what is made of them: solvers, ranks, pseudo-inverses."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import dynamic_dims, eye, ones_like
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.ops.arrays.indexing import boolean_mask
from tapeflow._src.ops.linalg.products import adjoint, swapped_ends
from tapeflow._src.types.dtypes import int32
from tapeflow._src.types.errors import InvalidArgumentError


class Qr(NamedTuple):
    """What `tf.linalg.qr` returns."""

    q: Any
    r: Any


class Lu(NamedTuple):
    """What `tf.linalg.lu` returns."""

    lu: Any
    p: Any


class LogMatrixDeterminant(NamedTuple):
    """What `tf.linalg.slogdet` returns."""

    sign: Any
    log_abs_determinant: Any


@public("linalg.qr", "compat.v1.qr")
def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> Qr:
    """`q` with orthonormal columns and upper triangular `r` with `q r = input`, of shapes (m, k) and (k, n).

    >>> tf.linalg.qr([[3., 1.], [4., 2.]]).r[0, 0]
    <tf.Tensor: shape=(), dtype=float32, numpy=-5.0>
    """
    return Qr(*primitives.Qr(input, full_matrices))


@public("linalg.lu")
def lu(input: Any, output_idx_type: Any = int32, name: str | None = None) -> Lu:
    """Both triangular factors in one matrix, and the order `p` of the rows: `L U = input[p]`.

    >>> tf.linalg.lu([[0., 1.], [2., 3.]]).p
    <tf.Tensor: shape=(2,), dtype=int32, numpy=array([1, 0], dtype=int32)>
    """
    return Lu(*primitives.Lu(input, output_idx_type))


@public("linalg.slogdet")
def slogdet(input: Any, name: str | None = None) -> LogMatrixDeterminant:
    """The sign of the determinant and the logarithm of its absolute value.

    >>> tf.linalg.slogdet([[0., 1.], [1., 0.]]).sign
    <tf.Tensor: shape=(), dtype=float32, numpy=-1.0>
    """
    return LogMatrixDeterminant(*primitives.LogMatrixDeterminant(input))


@public("linalg.logdet")
def logdet(matrix: Any, name: str | None = None) -> Tensor:
    """The logarithm of the determinant of Hermitian positive definite matrices.

    >>> tf.linalg.logdet([[1., 0.], [0., 1.]])
    <tf.Tensor: shape=(), dtype=float32, numpy=0.0>
    """
    diagonal = primitives.MatrixDiagPartV3(primitives.Cholesky(matrix), 0, 0)
    if diagonal.dtype.is_complex:
        diagonal = primitives.Real(diagonal)
    return 2.0 * primitives.Sum(primitives.Log(diagonal), -1)


@public("linalg.svd", "compat.v1.svd")
def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """Singular values, falling, and with `compute_uv` the vectors: `s`, `u`, `v` with `u diag(s) v^H = tensor`.

    Args:
        tensor: A batch of matrices, `[..., m, n]`.
        full_matrices: Whether `u` and `v` are square.
        compute_uv: Whether to compute `u` and `v`.
        name: A name for the operation in graphs.

    Returns:
        The singular values `s`, and with `compute_uv` a tuple `(s, u, v)` with `tensor = u diag(s) v^H`.

    Gradient:
        For distinct singular values.

    >>> tf.linalg.svd([[3., 0.], [0., 4.]], compute_uv=False)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([4., 3.], dtype=float32)>
    """
    if not compute_uv:
        return primitives.Svd(tensor, False, False)[0]
    return tuple(primitives.Svd(tensor, True, full_matrices))


@public("linalg.eigh", "compat.v1.self_adjoint_eig")
def eigh(tensor: Any, name: str | None = None) -> tuple[Any, Any]:
    """Eigenvalues, rising, and eigenvectors (as columns) of Hermitian matrices; only the lower triangle is read.

    >>> tf.linalg.eigh([[2., 0.], [0., 1.]])[0]
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
    """
    values, vectors = primitives.SelfAdjointEigV2(tensor, True)
    return values, vectors


@public("linalg.eigvalsh", "compat.v1.self_adjoint_eigvals")
def eigvalsh(tensor: Any, name: str | None = None) -> Tensor:
    """Eigenvalues, rising, of Hermitian matrices; only the lower triangle is read.

    >>> tf.linalg.eigvalsh([[2., 0.], [0., 1.]])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
    """
    return primitives.SelfAdjointEigV2(tensor, False)[0]


@public("linalg.eig", "eig")
def eig(tensor: Any, name: str | None = None) -> tuple[Any, Any]:
    """Complex eigenvalues and eigenvectors (as columns, of norm 1) of square matrices, in no particular order.

    >>> tf.math.real(tf.linalg.eig([[2., 1.], [0., 3.]])[0])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 3.], dtype=float32)>
    """
    values, vectors = primitives.Eig(tensor, True)
    return values, vectors


@public("linalg.eigvals", "eigvals")
def eigvals(tensor: Any, name: str | None = None) -> Tensor:
    """Complex eigenvalues of square matrices, in no particular order.

    >>> tf.math.real(tf.linalg.eigvals([[2., 1.], [0., 3.]]))
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 3.], dtype=float32)>
    """
    return primitives.Eig(tensor, False)[0]


@public("linalg.cholesky_solve", "compat.v1.cholesky_solve")
def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> Tensor:
    """`X` in `A X = rhs`, given the Cholesky factor of `A`.

    Args:
        chol: A batch of Cholesky factors, `[..., n, n]`, as `tf.linalg.cholesky` gives them.
        rhs: The right-hand sides, `[..., n, k]`.
        name: A name for the operation in graphs.

    Returns:
        A tensor of the shape of `rhs`.

    Gradient:
        That of the two triangular solutions.

    >>> tf.linalg.cholesky_solve([[2., 0.], [0., 1.]], [[4.], [3.]])
    <tf.Tensor: shape=(2, 1), dtype=float32, numpy=
    array([[1.],
           [3.]], dtype=float32)>
    """
    half = primitives.MatrixTriangularSolve(chol, rhs, True, False)
    return primitives.MatrixTriangularSolve(chol, half, True, True)


# ---- with the factors that lu() gives


def _spread_batch(x: Any, batch: list[int], kept: int) -> Tensor:
    """`x` with the leading batch dimensions `batch` before its last `kept` ones."""
    wanted = batch + x.shape.as_list()[x.shape.rank - kept :]
    return x if x.shape.as_list() == wanted else primitives.BroadcastTo(x, wanted)


def take_rows(x: Any, order: Any) -> Tensor:
    """Rows of the last two dimensions in another order; unlike that of a plain gather the gradient is always dense."""
    if x.shape.rank > 2:
        return primitives.GatherV2(x, order, x.shape.rank - 2, 0)
    return primitives.Squeeze(primitives.GatherV2(primitives.ExpandDims(x, 0), order, 1, 0), 0)


def _lower_part(lower_upper: Any) -> Tensor:
    ones = ones_like(primitives.MatrixDiagPartV3(lower_upper, 0, cast(0, lower_upper.dtype), "RIGHT_LEFT"))
    return primitives.MatrixSetDiagV3(primitives.MatrixBandPart(lower_upper, -1, 0), ones, 0)


def _check_factors(who: str, lower_upper: Any, perm: Any) -> None:
    if lower_upper.shape.rank < 2:
        raise ValueError(f"{who}: `lower_upper` must have at least 2 dimensions; got shape {lower_upper.shape}.")
    if perm.shape.rank < 1 or perm.shape[-1] != lower_upper.shape[-1]:
        raise ValueError(
            f"{who}: `perm` must hold one index for each row of `lower_upper`; got shapes {perm.shape} and "
            f"{lower_upper.shape}."
        )


@public("linalg.lu_solve")
def lu_solve(lower_upper: Any, perm: Any, rhs: Any, validate_args: bool = False, name: str | None = None) -> Tensor:
    """`X` in `A X = rhs`, given what `tf.linalg.lu(A)` returns.

    >>> tf.linalg.lu_solve(*tf.linalg.lu([[0., 1.], [2., 0.]]), [[1.], [4.]])
    <tf.Tensor: shape=(2, 1), dtype=float32, numpy=
    array([[2.],
           [1.]], dtype=float32)>
    """
    lower_upper, perm = convert_to_tensor(lower_upper), convert_to_tensor(perm)
    rhs = convert_to_tensor(rhs, dtype_hint=lower_upper.dtype)
    _check_factors("lu_solve", lower_upper, perm)
    if rhs.shape.rank < 2:
        raise ValueError(f"lu_solve: `rhs` must have at least 2 dimensions; got shape {rhs.shape}.")
    if rhs.shape[-2] != lower_upper.shape[-1]:
        raise ValueError(
            f"lu_solve: `lower_upper` and `rhs` must have as many rows; got shapes {lower_upper.shape} and {rhs.shape}."
        )
    batch = list(np.broadcast_shapes(tuple(lower_upper.shape[:-2]), tuple(perm.shape[:-1]), tuple(rhs.shape[:-2])))
    if perm.shape.rank == 1:
        moved = take_rows(rhs, perm)
    else:
        moved = primitives.GatherV2(_spread_batch(rhs, batch, 2), _spread_batch(perm, batch, 1), len(batch), len(batch))
    half = primitives.MatrixTriangularSolve(_lower_part(lower_upper), moved, True, False)
    return primitives.MatrixTriangularSolve(lower_upper, half, False, False)


def inverse_permutation(perm: Any) -> Tensor:
    """For each i, where i stands in `perm`."""
    places = primitives.ExpandDims(primitives.Range(0, dynamic_dims(perm)[-1], 1), -1)
    here = primitives.Equal(primitives.ExpandDims(perm, -2), cast(places, perm.dtype))
    return primitives.ArgMax(cast(here, int32), -1)


@public("linalg.lu_reconstruct")
def lu_reconstruct(lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The matrices whose factors `tf.linalg.lu` gave.

    >>> tf.linalg.lu_reconstruct(*tf.linalg.lu([[0., 1.], [2., 3.]]))
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[0., 1.],
           [2., 3.]], dtype=float32)>
    """
    lower_upper, perm = convert_to_tensor(lower_upper), convert_to_tensor(perm)
    _check_factors("lu_reconstruct", lower_upper, perm)
    product = primitives.MatMul(_lower_part(lower_upper), primitives.MatrixBandPart(lower_upper, 0, -1))
    order = inverse_permutation(perm)
    if perm.shape.rank == 1:
        return take_rows(product, order)
    return primitives.GatherV2(product, order, product.shape.rank - 2, perm.shape.rank - 1)


@public("linalg.lu_matrix_inverse")
def lu_matrix_inverse(lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The inverse of the matrices whose factors `tf.linalg.lu` gave.

    >>> tf.linalg.lu_matrix_inverse(*tf.linalg.lu([[0., 1.], [2., 0.]]))
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[0. , 0.5],
           [1. , 0. ]], dtype=float32)>
    """
    lower_upper = convert_to_tensor(lower_upper)
    if lower_upper.shape.rank < 2:
        raise ValueError(f"lu_matrix_inverse: lower_upper must have at least 2 dimensions; got {lower_upper.shape}")
    identity = eye(lower_upper.shape[-1], dtype=lower_upper.dtype)
    return lu_solve(lower_upper, perm, identity, validate_args)


# ---- least squares, ranks


def _require_matrix(a: Any) -> Any:
    a = convert_to_tensor(a)
    if not (a.dtype.is_floating or a.dtype.is_complex):
        raise TypeError(f"Input `a` must have `float`-like `dtype` (saw {a.dtype.name}).")
    if a.shape.rank < 2:
        raise ValueError(f"Input `a` must have at least 2 dimensions (saw: {a.shape.rank}).")
    return a


def _epsilon_times_size(a: Tensor) -> Any:
    """The rounding of the dtype times the greater side of the matrices, a tensor while tracing if it is unknown."""
    dtype, sides = a.dtype.real_dtype, a.shape[-2:].as_list()
    epsilon = float(np.finfo(dtype.as_numpy_dtype).eps)
    if None in sides:
        return cast(primitives.Max(primitives.Shape(a)[-2:], None, False), dtype) * cast(epsilon, dtype)
    return convert_to_tensor(epsilon * max(sides), dtype=dtype)


@public("linalg.matrix_rank")
def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """How many singular values are greater than `tol`.

    >>> tf.linalg.matrix_rank([[1., 2.], [2., 4.]])
    <tf.Tensor: shape=(), dtype=int32, numpy=1>
    """
    a = _require_matrix(a)
    values = svd(a, compute_uv=False)
    if tol is None:
        tol = primitives.Max(values, -1, True) * _epsilon_times_size(a)
    return primitives.Sum(cast(values > tol, int32), -1)


@public("linalg.pinv")
def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The Moore-Penrose pseudo-inverse; singular values up to `rcond` times the largest count as zero.

    >>> tf.linalg.pinv([[2., 0.], [0., 0.]])
    <tf.Tensor: shape=(2, 2), dtype=float32, numpy=
    array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)>
    """
    a = _require_matrix(a)
    dtype = a.dtype.real_dtype
    if rcond is None:
        return primitives.MatrixPseudoInverse(a, 10.0 * _epsilon_times_size(a))
    # Values that are left out but not zero turn with the others, which only the singular vectors know.
    s, u, v = svd(a)
    cutoff = convert_to_tensor(rcond, dtype=dtype) * primitives.Max(s, -1)
    kept = s > primitives.ExpandDims(cutoff, -1)
    s = primitives.SelectV2(kept, s, cast(np.inf, dtype))
    scaled = v / primitives.ExpandDims(cast(s, a.dtype), -2)
    return primitives.MatMul(scaled, u, adjoint_b=True)


@public("linalg.lstsq", "compat.v1.matrix_solve_ls")
def lstsq(matrix: Any, rhs: Any, l2_regularizer: Any = 0.0, fast: bool = True, name: str | None = None) -> Tensor:
    """`X` that makes `matrix X - rhs` least, and of several such the smallest.

    `fast` takes the Cholesky factor of the normal equations; otherwise singular values are used, which also serve
    matrices without full rank, and `l2_regularizer` is not.

    >>> tf.linalg.lstsq([[1.], [1.]], [[1.], [3.]])
    <tf.Tensor: shape=(1, 1), dtype=float32, numpy=array([[1.9999999]], dtype=float32)>
    """
    matrix = convert_to_tensor(matrix)
    rhs = convert_to_tensor(rhs, dtype_hint=matrix.dtype)
    if matrix.shape.rank < 2 or rhs.shape.rank < 2:
        raise InvalidArgumentError.of(f"lstsq: Shape must be at least rank 2 but is {matrix.shape} and {rhs.shape}")
    if matrix.shape[-2] != rhs.shape[-2]:
        raise InvalidArgumentError.of(
            f"lstsq: Input matrix and rhs are incompatible: mismatch of their rows, shapes {matrix.shape.as_list()} "
            f"and {rhs.shape.as_list()}",
        )
    if not fast:
        return primitives.MatMul(pinv(matrix, rcond=_epsilon_times_size(matrix)), rhs)
    rows, columns = matrix.shape[-2:]
    tall = rows >= columns
    gramian = primitives.MatMul(matrix, matrix, adjoint_a=tall, adjoint_b=not tall)
    weight = convert_to_tensor(l2_regularizer, dtype=matrix.dtype.real_dtype)
    diagonal = primitives.MatrixDiagPartV3(gramian, 0, 0) + cast(weight, matrix.dtype)
    factor = primitives.Cholesky(primitives.MatrixSetDiagV3(gramian, diagonal, 0))
    if tall:
        return cholesky_solve(factor, primitives.MatMul(matrix, rhs, adjoint_a=True))
    return primitives.MatMul(matrix, cholesky_solve(factor, rhs), adjoint_a=True)


# ---- bands


def _padded_diagonals(diagonals: Any, diagonals_format: str) -> tuple[Any, Any, Any]:
    """The diagonals above, on and below the main one, each (..., n); the last above and first below do not count."""
    if diagonals_format == "compact":
        diagonals = convert_to_tensor(diagonals)
        if diagonals.shape.rank < 2 or diagonals.shape[-2] != 3:
            raise ValueError(f"Expected diagonals of shape [..., 3, n]; got {diagonals.shape}")
        upper, main, lower = primitives.Unpack(diagonals, -1, diagonals.shape.rank - 2)
        return upper, main, lower
    if diagonals_format == "matrix":
        matrix = convert_to_tensor(diagonals)
        if matrix.shape.rank < 2 or matrix.shape[-1] != matrix.shape[-2]:
            raise ValueError(f"Expected last two dimensions of diagonals to be same, got {matrix.shape}")
        if matrix.shape[-1] == 1:
            main = primitives.MatrixDiagPartV3(matrix, 0, 0)
            return main, main, main
        packed = primitives.MatrixDiagPartV3(matrix, (-1, 1), 0, "LEFT_RIGHT")
        upper, main, lower = primitives.Unpack(packed, -1, packed.shape.rank - 2)
        return upper, main, lower
    if diagonals_format != "sequence":
        raise ValueError(f"Unrecognized diagonals_format: {diagonals_format}")
    if not isinstance(diagonals, list | tuple) or len(diagonals) != 3:
        raise ValueError("Expected diagonals to be a sequence of length 3.")
    above, main, below = (convert_to_tensor(d) for d in diagonals)
    n = main.shape[-1]
    for d in (above, below):
        if d.shape[-1] not in (n, n - 1):
            raise ValueError(
                f"Tensors representing subdiagonal and superdiagonal must have length {n} or {n - 1}; got {d.shape}"
            )

    def pad_end(d: Any, before: int) -> Any:
        if d.shape[-1] == n:
            return d
        paddings = [0] * (2 * d.shape.rank)
        paddings[-2:] = [before, 1 - before]
        return primitives.PadV2(d, paddings, cast(0, d.dtype))

    return pad_end(above, 0), main, pad_end(below, 1)


@public("linalg.tridiagonal_solve")
def tridiagonal_solve(
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Tensor:
    """`X` in `A X = rhs` for tridiagonal `A`, given as (..., 3, n), as three diagonals or as matrices.

    >>> tf.linalg.tridiagonal_solve([[0., 0.], [2., 4.], [0., 0.]], [2., 8.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>
    """
    if perturb_singular and not partial_pivoting:
        raise ValueError("partial_pivoting must be True if perturb_singular is True.")
    parts = _padded_diagonals(diagonals, diagonals_format)
    rhs = convert_to_tensor(rhs, dtype_hint=parts[1].dtype)
    batch = list(np.broadcast_shapes(*(tuple(p.shape[:-1]) for p in parts)))
    packed = primitives.Pack([_spread_batch(p, batch, 1) for p in parts], len(batch))
    vector = rhs.shape.rank == len(batch) + 1
    if vector:
        if transpose_rhs:
            raise ValueError("transpose_rhs is not possible with a right-hand side that is a vector.")
        rhs = primitives.ExpandDims(rhs, -1)
    elif transpose_rhs:
        rhs = adjoint(rhs) if conjugate_rhs else primitives.Transpose(rhs, swapped_ends(rhs.shape.rank))
    if conjugate_rhs and (vector or not transpose_rhs):
        rhs = primitives.Conj(rhs)
    if rhs.shape.rank != packed.shape.rank or rhs.shape[:-2] != packed.shape[:-2]:
        raise ValueError(f"Batch shapes {packed.shape[:-2]} and {rhs.shape[:-2]} are incompatible")
    if rhs.shape[-2] != packed.shape[-1]:
        raise ValueError(
            "Expected number of left-hand sided and right-hand sides to be equal, got "
            f"{packed.shape[-1]} and {rhs.shape[-2]}"
        )
    result = primitives.TridiagonalSolve(packed, rhs, partial_pivoting, perturb_singular)
    return primitives.Squeeze(result, -1) if vector else result


@public("linalg.tridiagonal_matmul")
def tridiagonal_matmul(diagonals: Any, rhs: Any, diagonals_format: str = "compact", name: str | None = None) -> Any:
    """`A rhs` for tridiagonal `A`, given as (..., 3, n), as three diagonals or as matrices.

    >>> tf.linalg.tridiagonal_matmul([[1., 0.], [2., 4.], [0., 3.]], [[1.], [1.]])
    <tf.Tensor: shape=(2, 1), dtype=float32, numpy=
    array([[3.],
           [7.]], dtype=float32)>
    """
    above, main, below = (primitives.ExpandDims(d, -1) for d in _padded_diagonals(diagonals, diagonals_format))
    rhs = convert_to_tensor(rhs, dtype_hint=main.dtype)
    rank, n = main.shape.rank, main.shape[-2]
    if rhs.shape.rank != rank or (n is not None and rhs.shape[-2] not in (n, None)):
        raise InvalidArgumentError.of(
            f"tridiagonal_matmul: All input tensors must have the same rank; got {main.shape[:-1]} and {rhs.shape}",
        )

    def rows(x: Any, first: int) -> Any:
        return x[..., 1:, :] if first else x[..., :-1, :]

    def shifted(x: Any, before: int) -> Tensor:
        paddings = [0] * (2 * x.shape.rank)
        paddings[-4:-2] = [before, 1 - before]
        return primitives.PadV2(x, paddings, cast(0, x.dtype))

    if n is not None and n < 2:
        return main * rhs
    upper = shifted(rows(above, 0) * rows(rhs, 1), 0)
    lower = shifted(rows(below, 1) * rows(rhs, 0), 1)
    return main * rhs + upper + lower


@public("linalg.banded_triangular_solve")
def banded_triangular_solve(
    bands: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """`X` in `A X = rhs` for triangular `A` with few diagonals, given as (..., diagonals, n).

    The main diagonal is the first row if `lower`, else the last one. Row `i` holds an element of row `i` of `A`.

    >>> tf.linalg.banded_triangular_solve([[2., 4.], [0., 1.]], [[2.], [5.]])
    <tf.Tensor: shape=(2, 1), dtype=float32, numpy=
    array([[1.],
           [1.]], dtype=float32)>
    """
    bands = convert_to_tensor(bands)
    if bands.shape.rank < 2 or bands.shape[-2] < 1:
        raise InvalidArgumentError.of(
            f"banded_triangular_solve: In[0] ndims must be >= 2 with at least one band; got {bands.shape}"
        )
    count, n = bands.shape[-2:]
    if count > n:
        raise InvalidArgumentError.of(
            f"banded_triangular_solve: the number of bands must not be above the number of rows {n}; got {count}",
        )
    k: Any = (1 - count, 0) if lower else (0, count - 1)
    if count == 1:
        bands, k = primitives.Squeeze(bands, bands.shape.rank - 2), 0
    matrix = primitives.MatrixDiagV3(bands, k, n, n, 0, "LEFT_RIGHT")
    return primitives.MatrixTriangularSolve(matrix, rhs, lower, adjoint)


@public("linalg.eigh_tridiagonal")
def eigh_tridiagonal(
    alpha: Any,
    beta: Any,
    eigvals_only: bool = True,
    select: str = "a",
    select_range: Any = None,
    tol: Any = None,
    name: str | None = None,
) -> Any:
    """Eigenvalues (and vectors) of Hermitian tridiagonal matrices: all, or those in a range of indices or values.

    `alpha` is the main diagonal, `beta` the one below it. `select` is 'a', 'i' (both ends included) or 'v' (half open,
    from above the lower to the upper end).

    >>> tf.linalg.eigh_tridiagonal([1., 1.], [1.])
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0., 2.], dtype=float32)>
    """
    if select not in ("a", "i", "v"):
        raise ValueError("'select must have a value in {'a', 'i', 'v'}.")
    if select != "a" and select_range is None:
        raise TypeError("eigh_tridiagonal: select_range must be given with select='i' or select='v'")
    alpha = convert_to_tensor(alpha)
    beta = convert_to_tensor(beta, dtype_hint=alpha.dtype)
    ranks = alpha.shape.rank, beta.shape.rank
    main, below = (None, None) if min(ranks) < 1 else (alpha.shape[-1], beta.shape[-1])
    if min(ranks) < 1 or (main is not None and below is not None and below != main - 1):
        raise InvalidArgumentError.of(
            f"eigh_tridiagonal: Incompatible shapes: beta must have one element less than alpha; got "
            f"{alpha.shape.as_list()} vs. {beta.shape.as_list()}",
        )
    matrix = primitives.MatrixDiagV3(alpha, 0, padding_value=0)
    if beta.shape[-1] != 0:
        matrix = primitives.MatrixSetDiagV3(matrix, beta, -1)
    values, *vectors = primitives.SelfAdjointEigV2(matrix, not eigvals_only)
    if values.dtype.is_complex:
        values = primitives.Real(values)
    if select == "i":
        first, last = (int(i) for i in select_range)
        if not 0 <= first <= last < alpha.shape[-1]:
            raise ValueError(
                f"eigh_tridiagonal: select_range must be indices below {alpha.shape[-1]} in order; got {select_range}"
            )
        values = values[..., first : last + 1]
        vectors = [v[..., first : last + 1] for v in vectors]
    elif select == "v":
        low, high = select_range
        if low >= high:
            raise ValueError(
                f"eigh_tridiagonal: the lower end of select_range must be below the upper; got {select_range}"
            )
        inside = primitives.LogicalAnd(values > low, values <= high)
        axis = values.shape.rank - 1
        if axis:
            raise ValueError(
                "eigh_tridiagonal: select='v' takes one matrix, for each could have its own number of values"
            )
        values = boolean_mask(values, inside)
        vectors = [boolean_mask(v, inside, axis=v.shape.rank - 1) for v in vectors]
    return values if eigvals_only else (values, *vectors)
