"""Functions of the standard for linear algebra."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tapeflow as tf
from tapeflow._src.array_api.array import Array, in_common, tensor_of
from tapeflow._src.array_api.dtypes import finfo
from tapeflow._src.array_api.reductions import sum as sum_
from tapeflow._src.array_api.shaping import axes_of


class EigenResult(NamedTuple):
    """Eigenvalues and eigenvectors."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """The factors of `qr`."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """The sign and the logarithm of the magnitude of a determinant."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """The factors of `svd`."""

    U: Array
    S: Array
    Vh: Array


def _product(compute: Callable[[Any, Any], Any], a: Any, b: Any) -> Array:
    """A sum of products; small and unsigned integers are computed in int64, modulo the size of their dtype."""
    if not a.dtype.is_integer:
        return Array(compute(a, b))
    return Array(tf.cast(compute(tf.cast(a, tf.int64), tf.cast(b, tf.int64)), a.dtype))


def matmul(x1: Any, x2: Any, /) -> Array:
    """The product of matrices; an array with one dimension is a vector."""
    a, b = in_common(x1, x2)
    if 0 in (a.shape.rank, b.shape.rank):
        raise ValueError("matmul: arrays without dimensions have no product; use multiply")
    return _product(tf.experimental.numpy.matmul, a, b)


def matrix_transpose(x: Any, /) -> Array:
    """The array with its last two dimensions exchanged."""
    return Array(tensor_of(x)).mT


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Array:
    """The sum of products over axes."""
    if not isinstance(axes, builtins.int):
        axes = [list(part) for part in axes]
    return _product(lambda a, b: tf.tensordot(a, b, axes), *in_common(x1, x2))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """The sum of products along an axis; x1 is conjugated."""
    a, b = in_common(x1, x2)
    rank = builtins.min(a.shape.rank, b.shape.rank)
    if not -rank <= axis < 0:
        raise ValueError(f"vecdot: axis must be from {-rank} to -1; got {axis}")
    if a.shape[axis] != b.shape[axis]:
        raise ValueError(f"vecdot: vectors must have one length; got {a.shape[axis]} and {b.shape[axis]}")
    return Array(tf.reduce_sum(tf.math.conj(a) * b, axis))


def outer(x1: Any, x2: Any, /) -> Array:
    """All products of an element of x1 and one of x2."""
    a, b = in_common(x1, x2)
    return Array(a[:, None] * b[None, :])


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """The cross product of vectors with three elements."""
    a, b = in_common(x1, x2)
    if a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ValueError(f"cross: vectors must have 3 elements; got {a.shape[axis]} and {b.shape[axis]}")
    one, two = (tf.experimental.numpy.moveaxis(part, axis, -1) for part in (a, b))
    parts = [one[..., i] * two[..., j] - one[..., j] * two[..., i] for i, j in ((1, 2), (2, 0), (0, 1))]
    return Array(tf.experimental.numpy.moveaxis(tf.stack(parts, -1), -1, axis))


def cholesky(x: Any, /, *, upper: builtins.bool = False) -> Array:
    """The triangular factor of positive definite matrices."""
    lower = tf.linalg.cholesky(tensor_of(x))
    return Array(tf.linalg.adjoint(lower) if upper else lower)


def det(x: Any, /) -> Array:
    """The determinants of matrices."""
    return Array(tf.linalg.det(tensor_of(x)))


def slogdet(x: Any, /) -> SlogdetResult:
    """The sign and the logarithm of the magnitude of determinants."""
    tensor = tensor_of(x)
    sign, logarithm = tf.linalg.slogdet(tensor)
    return SlogdetResult(Array(sign), Array(tf.cast(logarithm, tensor.dtype.real_dtype)))


def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """A diagonal of matrices."""
    return Array(tf.experimental.numpy.diagonal(tensor_of(x), offset, -2, -1))


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sum of a diagonal of matrices."""
    return sum_(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def eigh(x: Any, /) -> EigenResult:
    """The eigenvalues and eigenvectors of Hermitian matrices."""
    values, vectors = tf.linalg.eigh(tensor_of(x))
    return EigenResult(Array(_real(values)), Array(vectors))


def eigvalsh(x: Any, /) -> Array:
    """The eigenvalues of Hermitian matrices."""
    return Array(_real(tf.linalg.eigvalsh(tensor_of(x))))


def eig(x: Any, /) -> EigenResult:
    """The eigenvalues and eigenvectors of matrices."""
    values, vectors = tf.linalg.eig(tensor_of(x))
    return EigenResult(Array(values), Array(vectors))


def eigvals(x: Any, /) -> Array:
    """The eigenvalues of matrices."""
    return Array(tf.linalg.eigvals(tensor_of(x)))


def _real(tensor: Any) -> Any:
    return tf.math.real(tensor) if tensor.dtype.is_complex else tensor


def inv(x: Any, /) -> Array:
    """The inverses of matrices."""
    return Array(tf.linalg.inv(tensor_of(x)))


def solve(x1: Any, x2: Any, /) -> Array:
    """The solutions of `x1 @ x = x2`; an x2 with one dimension is a vector."""
    a, b = in_common(x1, x2)
    vector = b.shape.rank == 1
    b = b[:, None] if vector else b
    batch = np.broadcast_shapes(tuple(a.shape[:-2].as_list()), tuple(b.shape[:-2].as_list()))
    a, b = (tf.broadcast_to(part, [*batch, *part.shape[-2:].as_list()]) for part in (a, b))
    found = tf.linalg.solve(a, b)
    return Array(found[..., 0] if vector else found)


def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    """The orthogonal and the triangular factor of matrices."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode must be 'reduced' or 'complete'; got {mode!r}")
    q, r = tf.linalg.qr(tensor_of(x), full_matrices=mode == "complete")
    return QRResult(Array(q), Array(r))


def svd(x: Any, /, *, full_matrices: builtins.bool = True) -> SVDResult:
    """The singular value decomposition of matrices."""
    s, u, v = tf.linalg.svd(tensor_of(x), full_matrices=full_matrices)
    return SVDResult(Array(u), Array(_real(s)), Array(tf.linalg.adjoint(v)))


def svdvals(x: Any, /) -> Array:
    """The singular values of matrices."""
    return Array(_real(tf.linalg.svd(tensor_of(x), compute_uv=False)))


def _threshold(singular: Any, rtol: Any, shape: Any) -> Any:
    if rtol is None:
        rtol = builtins.max(shape[-2:]) * finfo(singular.dtype).eps
    limit = tensor_of(rtol, singular.dtype)
    return limit[..., None] * tf.reduce_max(singular, -1, keepdims=True)


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Array:
    """The numbers of singular values that are not small."""
    tensor = tensor_of(x)
    singular = svdvals(x)._tensor
    if 0 in tensor.shape[-2:]:
        return Array(tf.zeros(tensor.shape[:-2], tf.int64))
    above = singular > _threshold(singular, rtol, tensor.shape.as_list())
    return Array(tf.reduce_sum(tf.cast(above, tf.int64), -1))


def pinv(x: Any, /, *, rtol: Any = None) -> Array:
    """The pseudo-inverses of matrices."""
    tensor = tensor_of(x)
    if 0 in tensor.shape[-2:]:
        return Array(tf.zeros_like(tf.linalg.matrix_transpose(tensor)))
    s, u, v = tf.linalg.svd(tensor, full_matrices=False)
    above = _real(s) > _threshold(_real(s), rtol, tensor.shape.as_list())
    safe = tf.where(above, s, tf.ones_like(s))
    inverse = tf.cast(tf.where(above, 1 / safe, tf.zeros_like(s)), tensor.dtype)
    return Array(tf.matmul(v * inverse[..., None, :], tf.linalg.adjoint(u)))


def matrix_power(x: Any, n: int, /) -> Array:
    """Square matrices to an integer power."""
    tensor = tensor_of(x)
    if n < 0:
        tensor, n = tf.linalg.inv(tensor), -n
    result = tf.broadcast_to(tf.eye(tensor.shape[-1], dtype=tensor.dtype), tensor.shape)
    while n:
        result = tf.matmul(result, tensor) if n % 2 else result
        n //= 2
        tensor = tf.matmul(tensor, tensor) if n else tensor
    return Array(result)


def matrix_norm(x: Any, /, *, keepdims: builtins.bool = False, ord: Any = "fro") -> Array:
    """The norms of matrices."""
    tensor = tensor_of(x)
    size = tf.abs(tensor)
    if ord == "fro":
        result = tf.sqrt(tf.reduce_sum(size * size, [-2, -1]))
    elif ord in (1, -1, np.inf, -np.inf):
        sums = tf.reduce_sum(size, -2 if builtins.abs(ord) == 1 else -1)
        result = (tf.reduce_max if ord > 0 else tf.reduce_min)(sums, -1)
    elif ord in (2, -2, "nuc"):
        singular = svdvals(x)._tensor
        compute = {2: tf.reduce_max, -2: tf.reduce_min, "nuc": tf.reduce_sum}[ord]
        result = compute(singular, -1)
    else:
        raise ValueError(f"matrix_norm: ord must be 'fro', 'nuc', 1, 2, inf or one of their negatives; got {ord!r}")
    return Array(result[..., None, None] if keepdims else result)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: builtins.bool = False, ord: Any = 2) -> Array:
    """The norms of vectors along axes."""
    tensor = tensor_of(x)
    size = tf.abs(tensor)
    axes = axes_of(axis, tensor.shape.rank, "vector_norm")
    if ord == np.inf:
        result = tf.reduce_max(size, axes, keepdims)
    elif ord == -np.inf:
        result = tf.reduce_min(size, axes, keepdims)
    elif ord == 0:
        result = tf.reduce_sum(tf.cast(size != 0, size.dtype), axes, keepdims)
    elif ord == 1:
        result = tf.reduce_sum(size, axes, keepdims)
    elif ord == 2:
        result = tf.sqrt(tf.reduce_sum(size * size, axes, keepdims))
    else:
        power = tf.cast(ord, size.dtype)
        result = tf.reduce_sum(size**power, axes, keepdims) ** (1 / power)
    return Array(result)
