"""Windows: datasets that are elements of a dataset."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from tapeflow._src.data.pipes.pipe import UNKNOWN, Iteration, Pipe, as_count, known
from tapeflow._src.data.pipes.structure import Leaves, spec_of_leaf
from tapeflow._src.types import nest
from tapeflow._src.types.errors import InvalidArgumentError


class Window(Pipe):
    """Elements that are there."""

    name = "_WindowDataset"

    def __init__(self, spec: Any, elements: list[Leaves]) -> None:
        super().__init__(spec)
        self._elements = elements

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        return iter(self._elements)

    def count(self) -> int:
        return len(self._elements)


class Windows(Pipe):
    """Windows over elements: each is a structure like an element, with a dataset for each leaf."""

    name = "_WindowDataset"

    def __init__(
        self, before: Pipe, size: Any, shift: Any, stride: Any, drops: Any, dataset: Callable[[Pipe], Any]
    ) -> None:
        self._size = as_count(size, "size")
        self._shift = self._size if shift is None else as_count(shift, "shift")
        self._stride = as_count(stride, "stride")
        for name, value in (("size", self._size), ("shift", self._shift), ("stride", self._stride)):
            if isinstance(value, int) and value <= 0:
                raise InvalidArgumentError.of(f"Window {name} must be greater than zero.")
        self._drops, self._dataset = bool(drops), dataset
        leaf_spec = [spec_of_leaf(dataset(Window(spec, []))) for spec in before.specs]
        super().__init__(
            nest.pack_sequence_as(before.spec, leaf_spec), before, symbols=[self._size, self._shift, self._stride]
        )

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        size, shift, stride = (iteration.number(n) for n in (self._size, self._shift, self._stride))
        span = (size - 1) * stride + 1
        waiting: list[Leaves] = []
        before = self.inputs[0].begin(iteration)
        while True:
            waiting += itertools.islice(before, span - len(waiting))
            if not waiting or (self._drops and len(waiting) < span):
                return
            yield self._window(waiting[:span:stride])
            if shift > len(waiting):
                for _ in itertools.islice(before, shift - len(waiting)):
                    pass
            del waiting[:shift]

    def _window(self, elements: list[Leaves]) -> Leaves:
        parts = zip(*elements)
        return tuple(
            [self._dataset(Window(spec, [(x,) for x in part])) for spec, part in zip(self.inputs[0].specs, parts)]
        )

    def count(self) -> int:
        before, size, shift, stride = self.inputs[0].count(), *map(known, (self._size, self._shift, self._stride))
        if before < 0:
            return before
        if size is None or shift is None or stride is None:
            return UNKNOWN
        if self._drops:
            return max(0, (before - ((size - 1) * stride + 1)) // shift + 1)
        return -(-before // shift)
