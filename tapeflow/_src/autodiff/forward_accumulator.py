"""`tf.autodiff.ForwardAccumulator`: derivatives along a direction, computed beside the values."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.constants import zeros
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.enums import UnconnectedGradients
from tapeflow._src.types.indexed_slices import IndexedSlices


@public("autodiff.ForwardAccumulator")
class ForwardAccumulator(_core.ForwardAccumulator):
    """Computes Jacobian-vector products while operations run.

    >>> x = tf.constant([2., 3.])
    >>> with tf.autodiff.ForwardAccumulator(x, tf.constant([1., 0.])) as acc:
    ...     y = x * x
    >>> acc.jvp(y)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([4., 0.], dtype=float32)>
    """

    __slots__ = ("__weakref__",)

    def __init__(self, primals: Any, tangents: Any) -> None:
        self._follow(primals, tangents)

    @classmethod
    def _batch_accumulator(cls, primals: Any, tangents: Any) -> ForwardAccumulator:
        """An accumulator along a batch of directions: tangents, and what `jvp` gives, have a leading dimension for it.

        >>> x = tf.constant([2., 3.])
        >>> with tf.autodiff.ForwardAccumulator._batch_accumulator(x, tf.eye(2)) as acc:
        ...     y = x * x
        >>> acc.jvp(y)
        [[4., 0.], [0., 6.]]
        """
        accumulator = cls.__new__(cls, primals, tangents)
        directions = [convert_to_tensor(t).shape for t in nest.flatten(tangents)]
        if any(shape.rank == 0 for shape in directions):
            raise ValueError("ForwardAccumulator: tangents of many directions must have a first dimension for them")
        if directions:
            accumulator._track_directions(directions[0][0])
        accumulator._follow(primals, tangents)
        return accumulator

    def _follow(self, primals: Any, tangents: Any) -> None:
        nest.assert_same_structure(primals, tangents)
        seen: set[int] = set()
        for primal, tangent in zip(nest.flatten(primals), nest.flatten(tangents)):
            if id(primal) in seen:
                raise ValueError(
                    f"Tensor {primal!r} was specified as a primal multiple times. This may indicate an error. If it "
                    "was intended, please sum the corresponding tangents."
                )
            seen.add(id(primal))
            self._watch(primal, tangent)

    def __new__(cls, primals: Any, tangents: Any) -> ForwardAccumulator:
        return super().__new__(cls)

    def jvp(self, primals: Any, unconnected_gradients: Any = UnconnectedGradients.NONE) -> Any:
        """The product of the Jacobian of `primals` and the tangents; None (or zeros) where there is no path."""
        wants_zeros = UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO

        def tangent_of(primal: Any) -> Any:
            if isinstance(primal, IndexedSlices):
                rows = tangent_of(primal.values)
                return rows if rows is None else IndexedSlices(rows, primal.indices, primal.dense_shape)
            tangent = self._tangent(primal)
            if tangent is not None or not wants_zeros:
                return tangent
            return zeros([*self._directions, *primal.shape], primal.dtype)

        return nest.map_structure(tangent_of, primals)
