"""Inner names of checkpoints and SavedModels: graphs of objects, tensors computed when one is written, structures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapeflow._src.function import spec_messages
from tapeflow._src.io.protos import messages
from tapeflow._src.train.checkpoint.object_graph import GRAPH_KEY
from tapeflow._src.train.checkpoint.tensor_bundle import Bundle


def object_metadata(save_path: str) -> Any:
    """The graph of the objects whose values a checkpoint holds, as a message."""
    bundle = Bundle(save_path)
    if GRAPH_KEY not in bundle:
        raise ValueError(
            f'The specified checkpoint "{save_path}" does not appear to be object-based (saved with TF2) since it is '
            f'missing the key "{GRAPH_KEY}". Likely it was created with the TF1 name-based saver and does not contain '
            "an object dependency graph."
        )
    return messages.TrackableObjectGraph.FromString(bundle.value(GRAPH_KEY).item())


class DeferredTensor:
    """A tensor for `_serialize_to_tensors` that a function gives when a checkpoint is written."""

    def __init__(self, tensor_callable: Callable[[], Any], dtype: Any, device: str | None) -> None:
        self._compute, self._dtype, self._device = tensor_callable, dtype, device

    dtype = property(lambda self: self._dtype)
    device = property(lambda self: self._device)

    def __call__(self) -> Any:
        return self._compute()


def can_encode(nested_structure: Any) -> bool:
    """Whether a structure of specs, shapes, dtypes and Python values can be written into a SavedModel."""
    try:
        spec_messages.encode(nested_structure)
    except spec_messages.NotEncodableError:
        return False
    return True


names_by_path: dict[str, dict[str, Any]] = {
    "python.checkpoint.checkpoint": {"object_metadata": object_metadata},
    "python.checkpoint.tensor_callable": {"Callable": DeferredTensor},
    "python.saved_model.nested_structure_coder": {
        "NotEncodableError": spec_messages.NotEncodableError,
        "can_encode": can_encode,
    },
}
