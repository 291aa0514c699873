"""The files in which TensorFlow keeps its classes: libraries tell its tensors from others' by `type(x).__module__`."""

from __future__ import annotations

from tapeflow._src.namespace import find_public

_PLACE_BY_PATH = {
    "IndexedSlices": ("python.framework.indexed_slices", "IndexedSlices"),
    "RaggedTensor": ("python.ops.ragged.ragged_tensor", "RaggedTensor"),
    "SparseTensor": ("python.framework.sparse_tensor", "SparseTensor"),
    "Tensor": ("python.framework.tensor", "Tensor"),
    "Variable": ("python.ops.resource_variable_ops", "ResourceVariable"),
    "data.Dataset": ("python.data.ops.dataset_ops", "DatasetV2"),
}

_own_names: dict[type, tuple[str, str, str]] = {}


def place_by_class() -> dict[type, tuple[str, str]]:
    """The inner module below `tensorflow` and the name there, for each class that has a place."""
    return {find_public(path): place for path, place in _PLACE_BY_PATH.items()}


def take_places() -> None:
    """Lets the classes say that they stand where TensorFlow has them, until `leave_places`."""
    for kind, (path, name) in place_by_class().items():
        _own_names.setdefault(kind, (kind.__module__, kind.__name__, kind.__qualname__))
        kind.__module__, kind.__name__, kind.__qualname__ = f"tensorflow.{path}", name, name


def leave_places() -> None:
    """Gives the classes their own names back."""
    for kind, names in _own_names.items():
        kind.__module__, kind.__name__, kind.__qualname__ = names
    _own_names.clear()
