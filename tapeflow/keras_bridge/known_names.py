"""The names by which Keras knows classes of TensorFlow: it asks in which file a class stands, not for the class."""

from __future__ import annotations

from typing import Any

from tapeflow import _core
from tapeflow.namespace import find_public

PLACE_BY_CLASS: dict[Any, tuple[str, str]] = {
    _core.Tensor: ("python.framework.tensor", "Tensor"),
    find_public("SparseTensor"): ("python.framework.sparse_tensor", "SparseTensor"),
    find_public("RaggedTensor"): ("python.ops.ragged.ragged_tensor", "RaggedTensor"),
    find_public("data.Dataset"): ("python.data.ops.dataset_ops", "DatasetV2"),
}


def take_known_names() -> None:
    """Lets the classes say what Keras asks for; inner_modules.py offers them at these places, for pickles."""
    for kind, (path, name) in PLACE_BY_CLASS.items():
        kind.__module__, kind.__name__, kind.__qualname__ = f"tensorflow.{path}", name, name
