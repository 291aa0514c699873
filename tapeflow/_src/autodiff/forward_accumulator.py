"""`tf.autodiff.ForwardAccumulator`: derivatives along a direction, computed beside the values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from tapeflow._src import _core
from tapeflow._src.autodiff.gradient_tape import GradientTape
from tapeflow._src.diagnostics import last_none
from tapeflow._src.diagnostics.observers import observers
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
        explained = cls is ForwardAccumulator and (last_none.shows() or observers.unseen is not None)
        return super().__new__(_ExplainedAccumulator if explained else cls)

    def explain(self, target: Any) -> Any:
        """Why `jvp(target)` is None, or that it is not: an answer for each primal, as `GradientTape.explain` gives it.

        Accumulators keep what an answer needs only after `tf.debugging.enable_gradient_explanations()`, or under a
        doctor: it takes the memory of a tape.

        >>> tf.debugging.enable_gradient_explanations()
        >>> x = tf.Variable(7.)
        >>> with tf.autodiff.ForwardAccumulator(x, tf.constant(1.)) as acc:
        ...     y = tf.floor(x) * 2.
        >>> tf.debugging.disable_gradient_explanations()
        >>> acc.explain(y).cause
        'operation without gradient'
        """
        raise RuntimeError(
            "ForwardAccumulator.explain: the accumulator keeps nothing to explain. Call "
            "tf.debugging.enable_gradient_explanations() before it is made, or set TAPEFLOW_EXPLAIN=1."
        )

    def _see_none(self, target: Any) -> None:
        last_none.register_none_jvp()

    def jvp(self, primals: Any, unconnected_gradients: Any = UnconnectedGradients.NONE) -> Any:
        """The product of the Jacobian of `primals` and the tangents; None (or zeros) where there is no path."""
        wants_zeros = UnconnectedGradients(unconnected_gradients) is UnconnectedGradients.ZERO

        def tangent_of(primal: Any) -> Any:
            if isinstance(primal, IndexedSlices):
                rows = tangent_of(primal.values)
                return rows if rows is None else IndexedSlices(rows, primal.indices, primal.dense_shape)
            tangent = self._tangent(primal)
            if tangent is None and not wants_zeros:
                self._see_none(primal)
            if tangent is not None or not wants_zeros:
                return tangent
            return zeros([*self._directions, *primal.shape], primal.dtype)

        return nest.map_structure(tangent_of, primals)


class _ExplainedAccumulator(ForwardAccumulator):
    """Has a tape beside it, which knows why a tangent is None."""

    __slots__ = ("_primals", "_tape")

    def _follow(self, primals: Any, tangents: Any) -> None:
        super()._follow(primals, tangents)
        self._primals = primals
        self._tape = GradientTape(persistent=True, watch_accessed_variables=False)

    def __enter__(self) -> Self:
        super().__enter__()
        (observers.unseen or _call)(self._tape.__enter__)
        self._tape.watch(self._primals)
        return self

    def __exit__(self, *about: Any) -> None:
        self._tape.__exit__(*about)
        super().__exit__(*about)

    def explain(self, target: Any) -> Any:
        return self._tape.explain(target, self._primals)

    def _see_none(self, target: Any) -> None:
        primals = nest.flatten(self._primals)
        last_none.register_missing(self._tape, target, primals, [None] * len(primals))


def _call(act: Callable[[], Any]) -> Any:
    return act()
