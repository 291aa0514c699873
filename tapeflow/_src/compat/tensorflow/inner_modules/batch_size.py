"""The size of a dataset's batches, as far as the shapes of its elements or its stages determine it."""

from __future__ import annotations

from typing import Any

from tapeflow._src.data.pipes.batching import Batching, Rebatched
from tapeflow._src.data.pipes.mapping import Filtered
from tapeflow._src.data.pipes.ordering import Cached, Joined, Passing, Reordered, Repeated, Zipped
from tapeflow._src.data.pipes.pipe import Pipe
from tapeflow._src.ops.arrays.conversion import constant
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import int64

_KEEPS_ELEMENTS = (Cached, Filtered, Joined, Passing, Reordered, Repeated, Zipped)


def compute_batch_size(dataset: Any) -> Any:
    """The common first dimension of all parts of an element, or the size of full batches; -1 if it is not known."""
    shapes = [spec.shape for spec in nest.flatten(dataset.element_spec) if hasattr(spec, "shape")]  # not None's
    size = _only([shape[0] if shape.rank else None for shape in shapes])
    if size is None:
        size = _size_of_full_batches(dataset._pipe)
    return constant(-1 if size is None else size, dtype=int64)


def _size_of_full_batches(pipe: Pipe) -> int | None:
    if isinstance(pipe, Batching) and not isinstance(pipe, Rebatched):
        return pipe.size
    if isinstance(pipe, _KEEPS_ELEMENTS):
        return _only([_size_of_full_batches(before) for before in pipe.inputs])
    return None


def _only(sizes: list[int | None]) -> int | None:
    """What all of them are, if they agree."""
    return sizes[0] if len(set(sizes)) == 1 else None
