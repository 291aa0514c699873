"""`TensorList`, the value behind TensorFlow's `TensorList...` operations.

A list is a `tf.TensorArray` that never changes: every operation gives a new one. So it travels through loops, branches
and functions as an array does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapeflow._src import _core
from tapeflow._src.control_flow.tensor_array import TensorArray, TensorArraySpec
from tapeflow._src.control_flow.uneven_list import UnevenRows
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types.dtypes import variant
from tapeflow._src.types.tensor_shape import TensorShape


class TensorListSpec(TensorArraySpec):
    """The kind of a tensor list: the shape and dtype of its elements, and how many it may hold."""

    def __init__(
        self,
        element_shape: Any = None,
        dtype: Any = "float32",
        dynamic_size: bool = True,
        infer_shape: bool = False,
        max_num_elements: int = -1,
    ) -> None:
        super().__init__(element_shape, dtype, dynamic_size, infer_shape)
        self._max_num_elements = max_num_elements

    value_type = property(lambda self: TensorList)

    @classmethod
    def from_value(cls, value: TensorArray) -> TensorListSpec:
        """The kind of a list."""
        spec = super().from_value(value)
        assert isinstance(spec, TensorListSpec) and isinstance(value, TensorList)
        spec._max_num_elements = value._max_num_elements
        return spec

    def _serialize(self) -> tuple[Any, ...]:
        return *super()._serialize(), self._max_num_elements

    def _empty(self) -> TensorList:
        return TensorList(self.dtype, 0, self._element_shape, self._dynamic_size, self._max_num_elements)

    def _from_components(self, components: Any) -> TensorArray:
        array = super()._from_components(components)
        rows = array._buffer
        if isinstance(rows, UnevenRows) and all(isinstance(t, _core.Tensor) for t in rows) and not _in_graph(rows):
            written = rows.shapes.numpy()[:, 0] > 0
            array._tensors = [rows.element(convert_to_tensor(i)) if known else None for i, known in enumerate(written)]
            array._buffer = None
        return array


def _in_graph(tensors: Sequence[Any]) -> bool:
    return _core.is_tracing() or any(_core.is_symbolic(t) for t in tensors)


class TensorList(TensorArray):
    """A list of tensors of one dtype that never changes."""

    def __init__(
        self, element_dtype: Any, size: Any, element_shape: Any, dynamic_size: bool = True, max_num_elements: int = -1
    ) -> None:
        super().__init__(
            element_dtype,
            size,
            dynamic_size=dynamic_size,
            clear_after_read=False,
            infer_shape=False,
            element_shape=element_shape,
        )
        self._max_num_elements = max_num_elements

    dtype = property(lambda self: variant)
    shape = property(lambda self: TensorShape([]))
    _type_spec = property(TensorListSpec.from_value)

    def _own(self) -> TensorArray:
        return self._holding(self._tensors)

    def _holding(self, tensors: Any) -> TensorList:
        """A list like this one with these elements, None for one that is not set."""
        array = self._with_buffer(None)
        assert isinstance(array, TensorList)
        array._tensors = list(tensors)
        return array

    def __repr__(self) -> str:
        return f"<tensor list: element_dtype={self._dtype.name}, element_shape={self._element_shape}>"
