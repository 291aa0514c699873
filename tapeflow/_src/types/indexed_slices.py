"""`tf.IndexedSlices`, the sparse gradient of a gather, and its spec; the operations make it dense."""

from __future__ import annotations

from typing import Any

from tapeflow._src import _core
from tapeflow._src.namespace import public
from tapeflow._src.types.dtypes import as_dtype, float32, int64
from tapeflow._src.types.tensor_shape import TensorShape, as_shape, unknown_shape
from tapeflow._src.types.tensor_spec import TensorSpec, TypeSpec, ValuesTensor


@public("IndexedSlices", "compat.v1.IndexedSlices")
class IndexedSlices(ValuesTensor):
    """Rows `values[i]` of a larger tensor, which stand there at `indices[i]`; an index may occur more than once.

    >>> slices = tf.IndexedSlices(values=[[1.0, 2.0]], indices=[3])
    >>> slices.indices
    [3]
    """

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self._values = values
        self._indices = indices
        self._dense_shape = dense_shape

    @property
    def values(self) -> Any:
        """The rows, of shape `[n, ...]`."""
        return self._values

    @property
    def indices(self) -> Any:
        """The places of the rows, of shape `[n]`."""
        return self._indices

    @property
    def dense_shape(self) -> Any:
        """The shape of the larger tensor as a tensor, or None if it was not given."""
        return self._dense_shape

    @property
    def shape(self) -> TensorShape:
        """The shape of the larger tensor, as far as it is known."""
        if self._dense_shape is None:
            return unknown_shape()
        if _core.is_symbolic(self._dense_shape):
            rank = self._dense_shape.shape[0]
            return unknown_shape() if rank is None else TensorShape([None] * rank)
        read = getattr(self._dense_shape, "numpy", None)
        return TensorShape(self._dense_shape if read is None else read().tolist())

    @property
    def name(self) -> str:
        """The name of the values."""
        return str(self._values.name)

    @property
    def device(self) -> str:
        """The device that holds the values."""
        return str(self._values.device)

    @property
    def _type_spec(self) -> IndexedSlicesSpec:
        shape, dense_shape_dtype = self.shape, None
        if self._dense_shape is None:
            shape = TensorShape([None]).concatenate(self._values.shape[1:])
        else:
            dense_shape_dtype = self._dense_shape.dtype
        return IndexedSlicesSpec(shape, self.dtype, self._indices.dtype, dense_shape_dtype, self._indices.shape)

    def _shape_invariant_to_type_spec(self, shape: Any) -> IndexedSlicesSpec:
        shape = as_shape(shape)
        dense_shape_dtype = None if self._dense_shape is None else self._dense_shape.dtype
        return IndexedSlicesSpec(shape, self.dtype, self._indices.dtype, dense_shape_dtype, [None])

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self._values, self._indices, self._dense_shape)

    def __str__(self) -> str:
        dense_shape = "" if self._dense_shape is None else f", dense_shape={self._dense_shape!s}"
        return f"IndexedSlices(indices={self._indices!s}, values={self._values!s}{dense_shape})"


@public("IndexedSlicesSpec")
class IndexedSlicesSpec(TypeSpec):
    """The spec of an `IndexedSlices`; `shape` is that of the larger tensor.

    >>> tf.IndexedSlicesSpec([3])
    IndexedSlicesSpec(TensorShape([3]), tf.float32, tf.int64, None, TensorShape([None]))
    """

    value_type = IndexedSlices

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = float32,
        indices_dtype: Any = int64,
        dense_shape_dtype: Any = None,
        indices_shape: Any = None,
    ) -> None:
        self._shape = as_shape(shape)
        self._values_dtype = as_dtype(dtype)
        self._indices_dtype = as_dtype(indices_dtype)
        self._dense_shape_dtype = None if dense_shape_dtype is None else as_dtype(dense_shape_dtype)
        self._indices_shape = as_shape(indices_shape).with_rank(1)

    def _serialize(self) -> tuple[Any, ...]:
        return self._shape, self._values_dtype, self._indices_dtype, self._dense_shape_dtype, self._indices_shape

    @property
    def _component_specs(self) -> tuple[TensorSpec, ...]:
        values = TensorSpec(self._indices_shape.concatenate(self._shape[1:]), self._values_dtype)
        indices = TensorSpec(self._indices_shape, self._indices_dtype)
        if self._dense_shape_dtype is None:
            return values, indices
        return values, indices, TensorSpec([self._shape.rank], self._dense_shape_dtype)

    def _to_components(self, value: IndexedSlices) -> tuple[Any, ...]:
        if value.dense_shape is None:
            return value.values, value.indices
        return value.values, value.indices, value.dense_shape

    def _from_components(self, components: Any) -> IndexedSlices:
        return IndexedSlices(*components)
