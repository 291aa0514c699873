"""`tf.data.DatasetSpec`, datasets that a graph knows by their handles, and arrays of datasets, which batches hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.data.handles import HandleSpec, from_handle, hold_for_graph
from tapeflow._src.data.pipes.pipe import UNKNOWN, Iteration, Pipe, counting
from tapeflow._src.data.pipes.structure import common_spec
from tapeflow._src.namespace import find_public, public
from tapeflow._src.types.dtypes import int64
from tapeflow._src.types.tensor_shape import TensorShape, as_shape
from tapeflow._src.types.tensor_spec import CompositeTensor, TensorSpec


@public("data.DatasetSpec", "compat.v1.data.DatasetSpec")
class DatasetSpec(HandleSpec):
    """The specification of a dataset: that of its elements. With a shape, of an array of datasets.

    >>> tf.data.DatasetSpec(tf.TensorSpec([], tf.int64)).is_compatible_with(tf.data.Dataset.range(3))
    True
    """

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        super().__init__(element_spec)
        self._dataset_shape = as_shape(dataset_shape)

    value_type = property(lambda self: find_public("data.Dataset"))
    element_spec = property(lambda self: self._element_spec, doc="The specification of the elements.")

    @property
    def _component_specs(self) -> TensorSpec:  # type: ignore[override]
        return TensorSpec(self._dataset_shape, int64)

    def _serialize(self) -> tuple[Any, ...]:
        return self._element_spec, self._dataset_shape

    def _from_components(self, components: Any) -> Any:
        if self._dataset_shape.rank == 0:
            return super()._from_components(components)
        return DatasetArray(components, self._element_spec)

    def _named(self, number: Any) -> Any:
        return self.value_type(NamedDataset(number, self._element_spec))

    @staticmethod
    def from_value(value: Any) -> DatasetSpec:
        """The specification of a dataset."""
        return DatasetSpec(value.element_spec)

    def _batch(self, size: int | None) -> DatasetSpec:
        return DatasetSpec(self._element_spec, TensorShape([size]).concatenate(self._dataset_shape))

    def _unbatch(self) -> DatasetSpec:
        if self._dataset_shape.rank == 0:
            raise ValueError("Slicing dataset elements is not supported for rank 0.")
        return DatasetSpec(self._element_spec, self._dataset_shape[1:])

    def _stacked(self, parts: Sequence[Any]) -> DatasetArray:
        """Datasets, or arrays of them, as the rows of one array."""
        spec = self._element_spec
        for part in parts:
            spec = common_spec(spec, part._type_spec.element_spec, "batch")
        return DatasetArray(primitives.Pack([part._handle_tensor() for part in parts], 0), spec, list(parts))


class NamedDataset(Pipe):
    """The pipe of a dataset that a graph knows by its handle."""

    def __init__(self, number: Any, spec: Any) -> None:
        super().__init__(spec, symbols=[number])
        self.handle = number

    def begin(self, iteration: Iteration) -> Any:
        dataset = from_handle(iteration.value(self.handle))
        iteration.held.append(dataset)
        return dataset._pipe.begin(iteration)

    def count(self) -> int:
        iteration = counting()
        return UNKNOWN if iteration is None else from_handle(iteration.value(self.handle))._pipe.count()


class DatasetArray(CompositeTensor):
    """An array of datasets with elements of one kind, as batches of datasets are. Its rows are datasets or arrays."""

    def __init__(self, handles: Any, element_spec: Any, holds: Any = None) -> None:
        self._handles, self._element_spec = handles, element_spec
        if holds is None and not _core.is_symbolic(handles):
            holds = [from_handle(handle) for handle in handles.numpy().flat]
        self._holds = holds

    element_spec = property(lambda self: self._element_spec, doc="The specification of the elements of each dataset.")
    shape = property(lambda self: self._handles.shape, doc="The shape of the array.")
    _type_spec = property(lambda self: DatasetSpec(self._element_spec, self._handles.shape))

    def _handle_tensor(self) -> Any:
        hold_for_graph(self)
        return self._handles

    def __getitem__(self, place: int | slice) -> Any:
        handles = self._handles[place]
        return DatasetSpec(self._element_spec, handles.shape)._from_components(handles)

    def _gathered(self, places: np.ndarray) -> DatasetArray:
        """The rows at these places."""
        return DatasetArray(primitives.GatherV2(self._handles, places, 0), self._element_spec)

    def __repr__(self) -> str:
        return f"<DatasetArray shape={self.shape} element_spec={self._element_spec}>"
