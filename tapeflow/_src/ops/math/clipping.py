"""Clipping by norms, and norms over lists of tensors. Sparse gradients stay sparse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapeflow._src import _core, primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.indexed_slices import IndexedSlices


@public("clip_by_norm")
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """Scaled down so that the 2-norm (over `axes`) is at most `clip_norm`.

    Args:
        t: The tensor, or `tf.IndexedSlices`.
        clip_norm: The largest Euclidean norm; a negative one counts as 0.
        axes: The dimensions over which the norm is taken; all if None.
        name: A name for the operation in graphs.

    Returns:
        A tensor of the shape of `t`.

    Gradient:
        That of the scaling, the norm included.

    >>> tf.clip_by_norm([3., 4.], 1.)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.6, 0.8], dtype=float32)>
    """
    values = convert_to_tensor(t.values if isinstance(t, IndexedSlices) else t)
    if isinstance(clip_norm, int | float):
        limit = convert_to_tensor(max(clip_norm, 0), dtype_hint=values.dtype)
    else:
        limit = cast(primitives.Maximum(convert_to_tensor(clip_norm, dtype_hint=values.dtype), 0), values.dtype)
    squares = primitives.SumOfSquares(values, axes, True)
    positive = squares > 0
    # The square root has no derivative at 0: it is taken of 1 there and thrown away.
    safe = primitives.SelectV2(positive, squares, cast(1, values.dtype))
    norm = primitives.SelectV2(positive, primitives.Sqrt(safe), squares)
    scaled = values * limit
    if not values.shape.is_compatible_with(scaled.shape):
        raise ValueError(
            f"clip_by_norm: Shapes {values.shape} and {scaled.shape} are incompatible: clip_norm broadcasts"
        )
    clipped = scaled / primitives.Maximum(norm, limit)
    return IndexedSlices(clipped, t.indices, t.dense_shape) if isinstance(t, IndexedSlices) else clipped


@public("linalg.global_norm")
def global_norm(t_list: Any, name: str | None = None) -> Any:
    """The 2-norm of all elements of a list of tensors; None entries are left out.

    >>> tf.linalg.global_norm([[3.], [4.]])
    <tf.Tensor: shape=(), dtype=float32, numpy=5.0>
    """
    if not isinstance(t_list, Sequence) or isinstance(t_list, str):
        raise TypeError("t_list should be a sequence")
    values = [convert_to_tensor(t.values if isinstance(t, IndexedSlices) else t) for t in t_list if t is not None]
    if not values:
        return convert_to_tensor(0.0)
    squares = [primitives.SumOfSquares(v) for v in values]
    return primitives.Sqrt(squares[0] if len(squares) == 1 else primitives.AddN(squares))


@public("clip_by_global_norm")
def clip_by_global_norm(
    t_list: Any, clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Any]:
    """A list of tensors scaled by one factor so that their joint 2-norm is at most `clip_norm`; also that norm.

    >>> tf.clip_by_global_norm([[3.], [4.]], 1.)[0]
    [<tf.Tensor: shape=(1,), dtype=float32, numpy=array([0.6], dtype=float32)>, <tf.Tensor: shape=(1,),
     dtype=float32, numpy=array([0.8], dtype=float32)>]
    """
    if not isinstance(t_list, Sequence) or isinstance(t_list, str):
        raise TypeError("`t_list` should be a sequence.")
    t_list = list(t_list)
    norm = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    limit = convert_to_tensor(clip_norm, dtype_hint=norm.dtype)
    # An infinite norm makes everything NaN, so that a diverged step is seen.
    scale = limit * primitives.Minimum(1 / norm, 1 / limit)
    scale = scale + (norm - norm)
    clipped: list[Any] = []
    for t in t_list:
        if t is None:
            clipped.append(None)
        elif type(t) is not _core.Tensor and isinstance(t, IndexedSlices):
            clipped.append(IndexedSlices(t.values * cast(scale, t.values.dtype), t.indices, t.dense_shape))
        else:
            t = convert_to_tensor(t)
            clipped.append(t * (scale if t.dtype is scale.dtype else cast(scale, t.dtype)))
    return clipped, norm
