"""The files in which TensorFlow keeps its classes: libraries recognise its tensors by `type(x).__module__`."""

from __future__ import annotations

from tapeflow._src.namespace import find_public

_CLASS_NAME_BY_PATH = {
    "IndexedSlices": ("python.framework.indexed_slices", "IndexedSlices"),
    "RaggedTensor": ("python.ops.ragged.ragged_tensor", "RaggedTensor"),
    "SparseTensor": ("python.framework.sparse_tensor", "SparseTensor"),
    "Tensor": ("python.framework.tensor", "Tensor"),
    "Variable": ("python.ops.resource_variable_ops", "ResourceVariable"),
    "data.Dataset": ("python.data.ops.dataset_ops", "DatasetV2"),
}

_own_names: dict[type, tuple[str, str, str]] = {}


def name_by_class() -> dict[type, tuple[str, str]]:
    """The inner module below `tensorflow` and the name there, for each class that has one."""
    return {find_public(path): name for path, name in _CLASS_NAME_BY_PATH.items()}


def take_class_names() -> None:
    """Gives the classes the module and name that TensorFlow's have, until `restore_class_names`."""
    for kind, (path, name) in name_by_class().items():
        _own_names.setdefault(kind, (kind.__module__, kind.__name__, kind.__qualname__))
        kind.__module__, kind.__name__, kind.__qualname__ = f"tensorflow.{path}", name, name


def restore_class_names() -> None:
    """Gives the classes their own names back."""
    for kind, names in _own_names.items():
        kind.__module__, kind.__name__, kind.__qualname__ = names
    _own_names.clear()
