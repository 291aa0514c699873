"""`tf.train.GradientAccumulator`: gradients of a large batch from those of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapeflow._src import primitives
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types.indexed_slices import IndexedSlices


@public("train.GradientAccumulator")
class GradientAccumulator:
    """Adds up gradients over micro-batches, dense and sparse, and gives their weighted mean.

    The mean is the gradient of one large batch whose loss is a mean over examples, if each part is added with its
    number of examples as `weight`. Sparse gradients (`IndexedSlices`) stay sparse; None stays until a part has one.

    >>> accumulator = tf.train.GradientAccumulator()
    >>> accumulator.add([tf.constant([1., 2.])])
    >>> accumulator.add([tf.constant([3., 6.])], weight=3.)
    >>> accumulator.mean()
    [<tf.Tensor: shape=(2,), dtype=float32, numpy=array([2.5, 5. ], dtype=float32)>]
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begins anew."""
        self._totals: list[Any] | None = None
        self._weight = 0.0

    @property
    def weight(self) -> float:
        """The sum of the weights so far."""
        return self._weight

    def add(self, gradients: Sequence[Any], weight: float = 1.0) -> None:
        """Adds the gradients of one part, one for each variable, in the same order every time."""
        scaled = [_scaled(g, weight) for g in gradients]
        if self._totals is None:
            self._totals = scaled
        elif len(scaled) != len(self._totals):
            raise ValueError(
                f"GradientAccumulator.add: as many gradients must be given every time; got {len(scaled)} after "
                f"{len(self._totals)}. Call reset() to begin anew."
            )
        else:
            self._totals = [_added(total, more) for total, more in zip(self._totals, scaled)]
        self._weight += float(weight)

    def sum(self) -> list[Any]:
        """The weighted sum of what was added."""
        if self._totals is None:
            raise ValueError("GradientAccumulator: nothing was added yet")
        return list(self._totals)

    def mean(self) -> list[Any]:
        """The weighted sum, divided by the sum of the weights."""
        totals = self.sum()
        if not self._weight:
            raise ValueError("GradientAccumulator.mean: the weights add up to 0")
        return [_scaled(total, 1 / self._weight) for total in totals]


def _scaled(gradient: Any, factor: float) -> Any:
    if gradient is None or factor == 1.0:
        return gradient
    if isinstance(gradient, IndexedSlices):
        return IndexedSlices(_scaled(gradient.values, factor), gradient.indices, gradient.dense_shape)
    gradient = convert_to_tensor(gradient)
    return gradient * convert_to_tensor(factor, gradient.dtype)


def _added(total: Any, more: Any) -> Any:
    if total is None or more is None:
        return more if total is None else total
    if not (isinstance(total, IndexedSlices) and isinstance(more, IndexedSlices)):
        return convert_to_tensor(total) + convert_to_tensor(more)
    indices = [total.indices, more.indices]
    if indices[0].dtype != indices[1].dtype:
        indices = [cast(i, "int64") for i in indices]
    values = primitives.ConcatV2([total.values, more.values], 0)
    dense_shape = more.dense_shape if total.dense_shape is None else total.dense_shape
    return IndexedSlices(values, primitives.ConcatV2(indices, 0), dense_shape)
