"""Datasets by the source that they read, as TensorFlow's classes distinguish them."""

from __future__ import annotations

from typing import Any

from tapeflow._src.data.dataset import Dataset
from tapeflow._src.data.pipes import sources


class _SourceKind(type):
    """A class whose instances are the datasets that read a source."""

    def __new__(mcs, name: str, pipe: type) -> Any:
        return super().__new__(mcs, name, (), {"pipe": pipe})

    def __init__(cls, name: str, pipe: type) -> None:
        super().__init__(name, (), {})

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Dataset) and isinstance(instance._pipe, cls.pipe)  # type: ignore[attr-defined]


class _NoSource:
    """The source of datasets that TensorFlow 1 made of the rows of a sparse tensor: none reads it."""


names_by_module: dict[str, dict[str, Any]] = {
    "from_generator_op": {"_GeneratorDataset": _SourceKind("_GeneratorDataset", sources.Generated)},
    "range_op": {"_RangeDataset": _SourceKind("_RangeDataset", sources.Numbers)},
    "from_sparse_tensor_slices_op": {"_SparseTensorSliceDataset": _SourceKind("_SparseTensorSliceDataset", _NoSource)},
    "from_tensors_op": {"_TensorDataset": _SourceKind("_TensorDataset", sources.Tensors)},
    "from_tensor_slices_op": {"_TensorSliceDataset": _SourceKind("_TensorSliceDataset", sources.Slices)},
}
