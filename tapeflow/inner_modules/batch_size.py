"""The size of a dataset's batches, as far as the shapes of its elements tell."""

from __future__ import annotations

from typing import Any

from tapeflow.ops.conversion import constant
from tapeflow.types import nest
from tapeflow.types.dtypes import int64


def compute_batch_size(dataset: Any) -> Any:
    """The common first dimension of all parts of an element; -1 if they differ or it is not known."""
    sizes = set()
    for spec in nest.flatten(dataset.element_spec):
        shape = spec.shape
        sizes.add(shape[0] if shape.rank else None)
    size = sizes.pop() if len(sizes) == 1 else None
    return constant(-1 if size is None else size, dtype=int64)
