"""`tf.experimental.numpy`: sums of products."""

from __future__ import annotations

from typing import Any

from tapeflow._src import primitives
from tapeflow._src._core import Tensor
from tapeflow._src.namespace import public
from tapeflow._src.numpy.arrays import stack
from tapeflow._src.numpy.promotion import promoted
from tapeflow._src.numpy.shaping import broadcast_arrays, moveaxis
from tapeflow._src.ops.arrays import padding
from tapeflow._src.ops.arrays.constants import dynamic_dims
from tapeflow._src.ops.linalg import einsum, products

# ---- sums of products


@public("experimental.numpy.dot")
def dot(a: Any, b: Any) -> Any:
    """The sum of products over the last axis of `a` and the last but one of `b`.

    >>> tf.experimental.numpy.dot([1, 2], [3, 4])
    <tf.Tensor: shape=(), dtype=int64, numpy=11>
    """
    x, y = promoted(a, b)
    if x.shape.rank == 0 or y.shape.rank == 0:
        return x * y
    return products.tensordot(x, y, [[x.shape.rank - 1], [max(y.shape.rank - 2, 0)]])


@public("experimental.numpy.inner")
def inner(a: Any, b: Any) -> Any:
    """The sum of products over the last axes.

    >>> tf.experimental.numpy.inner([1, 2], [3, 4])
    <tf.Tensor: shape=(), dtype=int64, numpy=11>
    """
    x, y = promoted(a, b)
    if x.shape.rank == 0 or y.shape.rank == 0:
        return x * y
    return products.tensordot(x, y, [[x.shape.rank - 1], [y.shape.rank - 1]])


@public("experimental.numpy.vdot")
def vdot(a: Any, b: Any) -> Any:
    """The sum of products of all elements, those of `a` conjugated.

    >>> tf.experimental.numpy.vdot([[1, 2]], [[3, 4]])
    <tf.Tensor: shape=(), dtype=int64, numpy=11>
    """
    x, y = (primitives.Reshape(v, [-1]) for v in promoted(a, b))
    return dot(primitives.Conj(x) if x.dtype.is_complex else x, y)


@public("experimental.numpy.tensordot")
def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """The sum of products over the given axes of both.

    >>> tf.experimental.numpy.tensordot([[1, 2]], [[3], [4]], 1)
    <tf.Tensor: shape=(1, 1), dtype=int64, numpy=array([[11]])>
    """
    a, b = promoted(a, b)
    return products.tensordot(a, b, axes)


@public("experimental.numpy.einsum")
def einsum_(subscripts: str, *operands: Any, **kwargs: Any) -> Any:
    """Sums of products by index letters.

    >>> tf.experimental.numpy.einsum("ij->i", [[1, 2]])
    <tf.Tensor: shape=(1,), dtype=int64, numpy=array([3])>
    """
    order = kwargs.pop("casting", "safe"), kwargs.pop("order", "K"), kwargs.pop("optimize", False)
    if order[0] != "safe" or order[1] != "K" or kwargs:
        raise ValueError("einsum: only casting='safe' and order='K' exist, and neither `out` nor `dtype`.")
    return einsum.einsum(subscripts, *promoted(*operands))


@public("experimental.numpy.kron")
def kron(a: Any, b: Any) -> Tensor:
    """The Kronecker product.

    >>> tf.experimental.numpy.kron([1, 2], [1, 1])
    <tf.Tensor: shape=(4,), dtype=int64, numpy=array([1, 1, 2, 2])>
    """
    x, y = promoted(a, b)
    rank = max(x.shape.rank, y.shape.rank)
    left = [1] * (rank - x.shape.rank) + dynamic_dims(x)
    right = [1] * (rank - y.shape.rank) + dynamic_dims(y)
    interleaved = [d for n in left for d in (n, 1)], [d for n in right for d in (1, n)]
    left_part, right_part = primitives.Reshape(x, interleaved[0]), primitives.Reshape(y, interleaved[1])
    product = primitives.LogicalAnd(left_part, right_part) if x.dtype.is_bool else left_part * right_part
    return primitives.Reshape(product, [m * n for m, n in zip(left, right)])


@public("experimental.numpy.cross")
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Tensor:
    """The cross product of vectors with two or three elements.

    >>> tf.experimental.numpy.cross([1, 0, 0], [0, 1, 0])
    <tf.Tensor: shape=(3,), dtype=int64, numpy=array([0, 0, 1])>
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = promoted(a, b)
    x, y = moveaxis(x, axisa, -1), moveaxis(y, axisb, -1)
    if not {x.shape[-1], y.shape[-1]} <= {2, 3}:
        raise ValueError(f"cross: the vectors must have 2 or 3 elements; got {x.shape[-1]} and {y.shape[-1]}")
    plane = x.shape[-1] == y.shape[-1] == 2
    x, y = (v if v.shape[-1] == 3 else padding.pad(v, [[0, 0]] * (v.shape.rank - 1) + [[0, 1]]) for v in (x, y))
    (x1, x2, x3), (y1, y2, y3) = (primitives.Unpack(v, -1, -1) for v in (x, y))
    if plane:
        return x1 * y2 - x2 * y1
    return moveaxis(stack(broadcast_arrays(x2 * y3 - x3 * y2, x3 * y1 - x1 * y3, x1 * y2 - x2 * y1), -1), -1, axisc)
