"""What the open tapes record, and how gradients are added: `tensorflow.python.eager.record` and `backprop_util`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tapeflow._src import _core
from tapeflow._src.namespace import find_public
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.indexed_slices import IndexedSlices


def should_record_backprop(tensors: Sequence[Any]) -> bool:
    """Whether an open tape tracks one of these tensors or variables."""
    return any(_core.is_tracked(x) for x in tensors if _core.is_tensor(x))


def stop_recording() -> Any:
    """A block whose operations no open tape or accumulator records."""
    return _core.StopRecording(True)


def is_trainable(tensor_or_dtype: Any) -> bool:
    """Whether values of a dtype can change by infinitesimal steps."""
    dtype = as_dtype(getattr(tensor_or_dtype, "dtype", tensor_or_dtype))
    return dtype.is_floating or dtype.is_complex or dtype.name in ("resource", "variant")


def _flat(slices: IndexedSlices) -> IndexedSlices:
    """Slices of slices as slices of a tensor."""
    if not isinstance(slices.values, IndexedSlices):
        return slices
    inner = _flat(slices.values)
    return IndexedSlices(inner.values, find_public("gather")(slices.indices, inner.indices), inner.dense_shape)


def aggregate_gradients(grads: Sequence[Any]) -> Any:
    """The sum of gradients: a tensor if one of them is, else all their slices; None of none."""
    if len(grads) <= 1:
        return grads[0] if grads else None
    given = [grad for grad in grads if grad is not None]
    if not all(isinstance(grad, IndexedSlices) for grad in given):
        return find_public("add_n")(given)
    slices = [_flat(grad) for grad in given]
    wide = any(part.indices.dtype.name == "int64" for part in slices)
    indices = [find_public("cast")(part.indices, "int64" if wide else "int32") for part in slices]
    concat = find_public("concat")
    return IndexedSlices(concat([part.values for part in slices], 0), concat(indices, 0), slices[0].dense_shape)


names_by_path: dict[str, dict[str, Any]] = {
    "python.eager.backprop_util": {
        "AggregateIndexedSlicesGradients": aggregate_gradients,
        "FlattenNestedIndexedSlices": _flat,
        "IsTrainable": is_trainable,
    },
    "python.eager.record": {"should_record_backprop": should_record_backprop, "stop_recording": stop_recording},
    "python.eager.tape": {"should_record_backprop": should_record_backprop, "stop_recording": stop_recording},
}
