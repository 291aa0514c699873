"""The seeds of datasets and the random numbers made of them: TensorFlow's Philox streams, number for number."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from random import SystemRandom
from typing import Any

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.data.pipes.pipe import Iteration, Pipe
from tapeflow._src.ops.random.seeds import DEFAULT_GLOBAL_SEED, get_seed
from tapeflow._src.ops.random.stateless import PHILOX

_LIMIT = 2**31 - 1


def random_block(seeds: tuple[int, int], start: int, count: int) -> np.ndarray:
    """`count` 32-bit numbers of a stream, from number `start` on, which is a multiple of 4."""
    key, counter = np.array([seeds[0]], np.uint64), np.array([start // 4, seeds[1]], np.uint64)
    values: np.ndarray = primitives.StatelessRandomUniformFullIntV2([count], key, counter, PHILOX, "uint32").numpy()
    return values


def random_words(seeds: tuple[int, int], block: int = 1024) -> Iterator[int]:
    """The numbers of a stream without end."""
    start = 0
    while True:
        yield from random_block(seeds, start, block).tolist()
        start += block


def _seeds_for(seed: int | None) -> tuple[Any, Any]:
    """The two seeds of a dataset; in a graph of TensorFlow 1, from the seed of the graph and its own."""
    graph = _core.current_graph()
    if graph is None or not graph.graph_mode:
        return get_seed(seed)
    if graph.seed is None:
        return (None, None) if seed is None else (DEFAULT_GLOBAL_SEED, seed)
    return graph.seed, graph.node_count if seed is None else seed


class SeedSource:
    """The seeds of the iterations of one dataset: the same for each iteration, or two numbers of a stream for each."""

    def __init__(self, seed: Any, changes: bool) -> None:
        self.symbols = [seed] if _core.is_symbolic(seed) else []
        self._changes = changes
        self._source_by_seed: dict[int, SeedSource] = {}  # if the seed is known only when an iteration begins
        first, second = _seeds_for(None if seed is None or self.symbols else int(seed))
        if first is None:
            first, second = SystemRandom().randrange(_LIMIT), SystemRandom().randrange(_LIMIT)
        self._seeds = (first, second)
        self._words: Iterator[int] | None = random_words(self._seeds, 64) if changes else None
        self._drawn = 0

    @property
    def seeds(self) -> tuple[int, int]:
        """What the stream begins with."""
        return self._seeds

    @property
    def changes(self) -> bool:
        """Whether each iteration has seeds of its own."""
        return self._changes

    def begin_at(self, seeds: tuple[int, int]) -> None:
        """Begins the stream of other seeds."""
        self._seeds = seeds
        self._drawn = 0
        if self._words is not None:
            self._words = random_words(seeds, 64)

    @property
    def state(self) -> tuple[int, int, int]:
        """What the stream began with, and how many iterations drew from it."""
        return (*self._seeds, self._drawn)

    def go_on_from(self, state: tuple[int, int, int]) -> None:
        """Goes on with the seeds that come after a state."""
        self.begin_at(state[:2])
        self._drawn = state[2]
        if self._words is not None:
            self._words = itertools.islice(self._words, 2 * state[2], None)

    def draw(self, iteration: Iteration) -> tuple[int, int]:
        """The seeds of the next iteration."""
        if self.symbols:
            seed = int(iteration.value(self.symbols[0]))
            if seed not in self._source_by_seed:
                self._source_by_seed[seed] = SeedSource(seed, self._changes)
            return self._source_by_seed[seed].draw(iteration)
        self._drawn += 1
        if self._words is None:
            return self._seeds
        return next(self._words), next(self._words)


class SeededPipe(Pipe):
    """A pipe that draws the seeds of each iteration from its source."""

    _source: SeedSource

    def draw_seeds(self, iteration: Iteration) -> tuple[int, int]:
        """The seeds of the next iteration."""
        return self._source.draw(iteration)

    def advance(self, iteration: Iteration) -> None:
        iteration.seeds(self)
        super().advance(iteration)
