"""Conditional accumulators: they collect gradients of the present step, and give the mean of enough of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tapeflow._src.compat.v1.queues.accumulator_contents import AccumulatedGradients, DenseGradients, SparseGradients
from tapeflow._src.compat.v1.queues.queues import PerSession, full_name, named_call, named_effect
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.dtypes import as_dtype, int32, int64
from tapeflow._src.types.indexed_slices import IndexedSlices
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.variables import session_graph


@public("compat.v1.ConditionalAccumulatorBase")
class ConditionalAccumulatorBase:
    """What both accumulators of gradients have.

    >>> issubclass(tf.compat.v1.ConditionalAccumulator, tf.compat.v1.ConditionalAccumulatorBase)
    True
    """

    _op_prefix: ClassVar[str] = ""
    _contents_type: ClassVar[type[AccumulatedGradients]]

    def __init__(self, dtype: Any, shape: Any, shared_name: str | None, name: str, reduction_type: str) -> None:
        if reduction_type not in ("MEAN", "SUM"):
            raise ValueError(f"{type(self).__name__}: reduction_type must be 'MEAN' or 'SUM'; got {reduction_type!r}")
        self._dtype, self._shape = as_dtype(dtype), TensorShape(shape)
        if not self._dtype.is_floating:
            raise ValueError(f"{type(self).__name__}: dtype must be floating; got {self._dtype}")
        graph = session_graph()
        self._full_name = name if graph is None else full_name(graph, name)
        label, mean, make = f"{type(self).__name__} {self._full_name!r}", reduction_type == "MEAN", self._contents_type
        key = (type(self).__name__, shared_name) if shared_name else None
        self._contents = PerSession(lambda: make(label, self._shape, mean), key)

    name = property(lambda self: self._full_name.rpartition("/")[2], doc="The name of the accumulator.")
    dtype = property(lambda self: self._dtype, doc="The dtype of the gradients.")
    accumulator_ref = property(lambda self: self, doc="The accumulator.")

    def num_accumulated(self, name: str | None = None) -> Any:
        """How many gradients it has collected in this step."""
        return named_call(
            name or f"{self.name}_NumAccumulated",
            lambda: [convert_to_tensor(len(self._contents.now()), int32)], [], [(int32, [])],
        )[0]  # fmt: skip

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Any:
        """Makes this the present step: gradients of earlier ones are dropped."""
        return named_effect(
            name or f"{self._op_prefix}AccumulatorSetGlobalStep",
            lambda step: self._contents.now().set_step(int(step)), [_as_step(new_global_step)],
        )  # fmt: skip

    def _apply(self, name: str | None, run: Callable[..., None], inputs: list[Any]) -> Any:
        return named_effect(name or f"{self._op_prefix}AccumulatorApplyGradient", run, inputs)

    def _take(self, name: str | None, run: Callable[[Any], list[Any]], wanted: Any, outputs: list[Any]) -> list[Any]:
        name = name or f"{self._op_prefix}AccumulatorTakeGradient"
        return named_call(name, run, [convert_to_tensor(wanted, int32)], outputs)


def _as_step(step: Any) -> Any:
    return find_public("cast")(convert_to_tensor(step), int64)


@public("compat.v1.ConditionalAccumulator")
class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Collects dense gradients; `take_grad` waits until there are enough and gives their mean, or their sum.

    >>> gradients = tf.compat.v1.ConditionalAccumulator(tf.float32, shape=[2])
    >>> gradients.apply_grad([1., 2.])
    >>> gradients.apply_grad([3., 6.])
    >>> gradients.take_grad(2)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([2., 4.], dtype=float32)>
    """

    _op_prefix = "Resource"
    _contents_type = DenseGradients

    def __init__(
        self, dtype: Any, shape: Any = None, shared_name: str | None = None, name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:  # fmt: skip
        super().__init__(dtype, shape, shared_name, name, reduction_type)

    def apply_grad(self, grad: Any, local_step: Any = 0, name: str | None = None) -> Any:
        """Adds a gradient, unless `local_step` is before the step of the accumulator."""
        grad = convert_to_tensor(grad, self._dtype)
        grad.shape.assert_is_compatible_with(self._shape)

        def run(step: Any, value: Any) -> None:
            self._contents.now().add(int(step), value.numpy())

        return self._apply(name, run, [_as_step(local_step), grad])

    def take_grad(self, num_required: Any, name: str | None = None) -> Any:
        """Waits for so many gradients, gives their mean or sum, and begins the next step."""

        def run(wanted: Any) -> list[Any]:
            return [convert_to_tensor(self._contents.now().take(int(wanted)), self._dtype)]

        return self._take(name, run, num_required, [(self._dtype, self._shape)])[0]


class SparseAccumulatorTakeGradient(NamedTuple):
    """The parts of a sparse gradient."""

    indices: Any
    values: Any
    shape: Any


@public("compat.v1.SparseConditionalAccumulator", "compat.v1.sparse.SparseConditionalAccumulator")
class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """Collects sparse gradients; the mean of a slice is over the gradients that have it.

    >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    ...     gradients = tf.compat.v1.SparseConditionalAccumulator(tf.float32)
    ...     _ = session.run(gradients.apply_grad([0, 2], [1., 2.]))
    ...     _ = session.run(gradients.apply_grad([2], [4.]))
    ...     print(session.run(gradients.take_grad(2)).values)
    [1. 3.]
    """

    _op_prefix = "Sparse"
    _contents_type = SparseGradients

    def __init__(
        self, dtype: Any, shape: Any = None, shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator", reduction_type: str = "MEAN",
    ) -> None:  # fmt: skip
        super().__init__(dtype, shape, shared_name, name, reduction_type)

    def apply_indexed_slices_grad(self, grad: Any, local_step: Any = 0, name: str | None = None) -> Any:
        """Adds a gradient, an `IndexedSlices`, unless `local_step` is before the step of the accumulator."""
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(
        self, grad_indices: Any, grad_values: Any, grad_shape: Any = None, local_step: Any = 0, name: str | None = None
    ) -> Any:
        """Adds a gradient of these slices, unless `local_step` is before the step of the accumulator."""
        indices = find_public("cast")(grad_indices, int64)
        inputs = [_as_step(local_step), indices, convert_to_tensor(grad_values, self._dtype)]
        if grad_shape is not None:
            inputs.append(find_public("cast")(grad_shape, int64))

        def run(step: Any, indices: Any, values: Any, *shapes: Any) -> None:
            shape = np.reshape(shapes[0].numpy(), [-1]) if shapes else None
            self._contents.now().add(int(step), indices.numpy(), values.numpy(), shape)

        return self._apply(name, run, inputs)

    def take_grad(self, num_required: Any, name: str | None = None) -> SparseAccumulatorTakeGradient:
        """Waits for so many gradients, gives indices, values and shape of their mean, and begins the next step."""

        def run(wanted: Any) -> list[Any]:
            indices, values, shape = self._contents.now().take(int(wanted))
            return [
                convert_to_tensor(indices, int64), convert_to_tensor(values, self._dtype),
                convert_to_tensor(shape, int64),
            ]  # fmt: skip

        outputs = [(int64, None), (self._dtype, None), (int64, None)]
        return SparseAccumulatorTakeGradient(*self._take(name, run, num_required, outputs))

    def take_indexed_slices_grad(self, num_required: Any, name: str | None = None) -> IndexedSlices:
        """`take_grad` as an `IndexedSlices`."""
        found = self.take_grad(num_required, name)
        return IndexedSlices(found.values, found.indices, found.shape)
