"""Batches of elements of similar length."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from tapeflow._src.data.pipes.batching import Batched
from tapeflow._src.data.pipes.padding import PaddedBatched, as_shape_list
from tapeflow._src.data.pipes.pipe import INFINITE, UNKNOWN, Iteration, Pipe
from tapeflow._src.data.pipes.structure import Leaves, batched_spec, unbatched_spec
from tapeflow._src.data.pipes.traced import Traced
from tapeflow._src.types import nest, nest_paths
from tapeflow._src.types.errors import InvalidArgumentError
from tapeflow._src.types.tensor_shape import TensorShape


class Buckets(NamedTuple):
    """How elements are put into buckets, and what becomes of full ones."""

    length: Callable[..., Any]
    boundaries: Sequence[int]
    sizes: Sequence[int]
    shapes: Any
    values: Any
    to_boundary: bool
    no_padding: bool
    drops: bool


class Bucketed(Pipe):
    """Elements in buckets by length; a full bucket is a batch."""

    name = "_GroupByWindowDataset"

    def __init__(self, before: Pipe, given: Buckets) -> None:
        self.given = given
        self._boundaries, self._sizes = [int(b) for b in given.boundaries], [int(s) for s in given.sizes]
        if len(self._sizes) != len(self._boundaries) + 1:
            raise ValueError(
                "`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but "
                f"`len(bucket_batch_sizes)={len(self._sizes)}` and `len(bucket_boundaries)={len(self._boundaries)}`."
            )
        self._length = Traced(given.length, before.spec, "bucket_by_sequence_length")
        self.to_boundary = given.to_boundary and not given.no_padding
        shapes = given.shapes if given.shapes is not None else nest.map_structure(lambda spec: spec.shape, before.spec)
        flat = (
            nest_paths.flatten_up_to(before.spec, shapes, check_types=False)
            if nest.is_nested(before.spec)
            else [shapes]
        )
        self.shapes = [as_shape_list(shape) for shape in flat]
        makers: list[Pipe] = []
        for number, size in enumerate(self._sizes):
            if given.no_padding:
                makers.append(Batched(before, size, given.drops))
                continue
            limit = self._boundaries[number] - 1 if self.to_boundary and number < len(self._boundaries) else None
            makers.append(PaddedBatched(before, size, _bounded(before, self.shapes, limit), given.values, given.drops))
        self._makers = makers
        spec = makers[0].spec
        for maker in makers[1:]:
            spec = nest.map_structure(lambda a, b: a.most_specific_common_supertype([b]), spec, maker.spec)
        spec = nest.map_structure(lambda part: batched_spec(unbatched_spec(part), None), spec)
        super().__init__(spec, before, symbols=self._length.symbols)

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        groups: list[list[Leaves]] = [[] for _ in self._sizes]
        for element in self.inputs[0].begin(iteration):
            bucket = bisect.bisect_right(self._boundaries, int(self._length(iteration, element)[0]))
            if self.to_boundary and bucket == len(self._boundaries):
                raise InvalidArgumentError.of(
                    "When pad_to_bucket_boundary=True, elements must have length < max(bucket_boundaries)."
                )
            groups[bucket].append(element)
            if len(groups[bucket]) == self._sizes[bucket]:
                yield self._makers[bucket].together(groups[bucket])  # type: ignore[attr-defined]
                groups[bucket] = []
        for maker, group in zip(self._makers, groups):
            if group and not self.given.drops:
                yield maker.together(group)  # type: ignore[attr-defined]

    def function_around(self) -> Any:
        """The graph of the function in which the dataset was made, or None."""
        return self._length.graph.outer

    def count(self) -> int:
        before = self.inputs[0].count()
        return INFINITE if before == INFINITE else UNKNOWN


def _bounded(before: Pipe, shapes: list[list[Any]], limit: int | None) -> Any:
    """The shapes with `limit` in place of unknown dimensions."""
    known = [[limit if size in (None, -1) else size for size in shape] for shape in shapes]
    return nest.pack_sequence_as(before.spec, [TensorShape(sizes) for sizes in known])
