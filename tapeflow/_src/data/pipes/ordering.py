"""Which elements come, and when: shuffled, repeated, taken, skipped, joined, kept."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

from tapeflow._src.data.pipes.background import Ahead
from tapeflow._src.data.pipes.pipe import INFINITE, UNKNOWN, Iteration, Order, Pipe, as_count, count_in, known
from tapeflow._src.data.pipes.seeds import SeedSource, random_words
from tapeflow._src.data.pipes.structure import Leaves, common_spec
from tapeflow._src.data.snapshots import has_elements, saved_elements, write_elements
from tapeflow._src.types import nest
from tapeflow._src.types.errors import FailedPreconditionError, InvalidArgumentError, OpError

_AUTOTUNED_BUFFER = 8  # elements


class _ShuffleBuffer:
    """Items in random order, each from a buffer of `size`; the order is TensorFlow's for these seeds.

    The buffer is a ring. A random item of it goes out, the oldest takes its place, and a new one that of the oldest.
    After an error of the source it goes on with the item that follows.
    """

    def __init__(self, items: Iterable[Any], size: int, seeds: tuple[int, int]) -> None:
        self._source, self._size = iter(items), size
        self._ring: list[Any] = []
        self._oldest = 0
        self._word = random_words(seeds).__next__
        self._rest = self._run()

    def __iter__(self) -> _ShuffleBuffer:
        return self

    def __next__(self) -> Any:
        try:
            return next(self._rest)
        except StopIteration:
            raise
        except BaseException:
            self._rest = self._run()
            raise

    def _run(self) -> Iterator[Any]:
        """What is left. Whenever the source is asked for an item, the state is that of a new run."""
        ring, source, word = self._ring, self._source, self._word
        ring.extend(itertools.islice(source, self._size - len(ring)))
        size = len(ring)
        for item in source:
            oldest = self._oldest
            place = (oldest + word() % size) % size
            yield ring[place]
            ring[place] = ring[oldest]
            ring[oldest] = item
            oldest += 1
            self._oldest = 0 if oldest == size else oldest
        oldest = self._oldest
        for left in range(size, 0, -1):
            place = (oldest + word() % left) % size
            yield ring[place]
            ring[place] = ring[oldest]
            oldest = (oldest + 1) % size


class Passing(Pipe):
    """The elements of another pipe as they are."""

    name = "_OptionsDataset"

    def __init__(self, before: Pipe, name: str | None = None) -> None:
        super().__init__(before.spec, before)
        self.name = name or self.name
        self.identity = name is None
        self.indexed, self.sequential = before.indexed, before.sequential

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        return self.inputs[0].begin(iteration)

    def order(self, iteration: Iteration) -> Order:
        return self.inputs[0].order(iteration)

    def count(self) -> int:
        return self.inputs[0].count()


class Configured(Passing):
    """The elements of another pipe, in the order that options ask for."""

    def __init__(self, before: Pipe, deterministic: bool | None, external_state_policy: Any = None) -> None:
        super().__init__(before)
        self._deterministic, self.external_state_policy = deterministic, external_state_policy

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        self._configure(iteration)
        return super().begin(iteration)

    def order(self, iteration: Iteration) -> Order:
        self._configure(iteration)
        return super().order(iteration)

    def _configure(self, iteration: Iteration) -> None:
        if iteration.deterministic is None:  # later options go before earlier ones, and begin first
            iteration.deterministic = self._deterministic


class Prefetched(Passing):
    """The elements of another pipe, some of them computed ahead by a thread."""

    def __init__(self, before: Pipe, buffer_size: Any) -> None:
        super().__init__(before, "_PrefetchDataset")
        self._size = as_count(buffer_size, "buffer_size")
        self.symbols += [] if isinstance(self._size, int) else [self._size]
        self._at_once = before.runs_python()
        if isinstance(self._size, int) and self._size < -1:
            raise InvalidArgumentError.of(f"buffer_size must be greater than or equal to 0; got {self._size}")

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        elements = self.inputs[0].begin(iteration)
        size = iteration.number(self._size)
        if self.indexed or size == 0:
            return elements
        return Ahead(elements, _AUTOTUNED_BUFFER if size < 0 else size, at_once=self._at_once)


class Reordered(Pipe):
    """A pipe that gives elements of another one, chosen without looking at them.

    `chosen` works on elements and on their numbers alike, so that what comes later can still take rows by number.
    """

    def __init__(self, before: Pipe, *counts: Any) -> None:
        super().__init__(before.spec, before, symbols=counts)
        self.indexed = before.indexed

    def chosen(self, items: Iterable[Any], iteration: Iteration) -> Iterable[Any]:
        """The items that come, in their order."""
        raise NotImplementedError

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        if self.indexed:
            return self.order(iteration).elements()
        return iter(self.chosen(self.inputs[0].begin(iteration), iteration))

    def order(self, iteration: Iteration) -> Order:
        table, places = self.inputs[0].order(iteration)
        return Order(table, self.chosen(places, iteration))


class Shuffled(Reordered):
    """Elements in random order."""

    name = "_ShuffleDataset"

    def __init__(self, before: Pipe, buffer_size: Any, seed: Any, changes: bool) -> None:
        self._size = as_count(buffer_size, "buffer_size")
        if known(self._size) is not None and self._size < 1 and self._size != UNKNOWN:
            raise InvalidArgumentError.of("buffer_size must be greater than zero or UNKNOWN_CARDINALITY")
        self._source = SeedSource(seed, changes)
        super().__init__(before, self._size, *self._source.symbols)

    def draw_seeds(self, iteration: Iteration) -> tuple[int, int]:
        """The seeds of the next iteration."""
        return self._source.draw(iteration)

    def advance(self, iteration: Iteration) -> None:
        iteration.seeds(self)  # what is before begins with the first element

    def chosen(self, items: Iterable[Any], iteration: Iteration) -> Iterable[Any]:
        size = iteration.number(self._size)
        return _ShuffleBuffer(items, 2**62 if size == UNKNOWN else size, iteration.seeds(self))

    def count(self) -> int:
        return self.inputs[0].count()


class Taken(Reordered):
    """The first elements."""

    name = "_TakeDataset"

    def __init__(self, before: Pipe, count: Any) -> None:
        self._count = as_count(count, "count")
        super().__init__(before, self._count)
        self.identity = self._count == -1

    def chosen(self, items: Iterable[Any], iteration: Iteration) -> Iterable[Any]:
        count = iteration.number(self._count)
        if count < 0:
            return items
        return items[:count] if isinstance(items, range) else itertools.islice(items, count)

    def count(self) -> int:
        before, count = self.inputs[0].count(), known(self._count)
        if count is None or before == UNKNOWN:
            return UNKNOWN
        if count < 0:
            return before
        return count if before == INFINITE else min(before, count)


class Skipped(Reordered):
    """The elements after the first ones."""

    name = "_SkipDataset"

    def __init__(self, before: Pipe, count: Any) -> None:
        self._count = as_count(count, "count")
        super().__init__(before, self._count)
        self.identity = self._count == 0

    def chosen(self, items: Iterable[Any], iteration: Iteration) -> Iterable[Any]:
        count = iteration.number(self._count)
        if count < 0:
            return ()
        return items[count:] if isinstance(items, range) else itertools.islice(items, count, None)

    def count(self) -> int:
        before, count = self.inputs[0].count(), known(self._count)
        if count is None or before == UNKNOWN:
            return UNKNOWN
        if count < 0:
            return 0
        return before if before == INFINITE else max(0, before - count)


class Sharded(Reordered):
    """Every `num_shards`-th element."""

    name = "_ShardDataset"

    def __init__(self, before: Pipe, num_shards: Any, index: Any) -> None:
        self._shards, self._index = as_count(num_shards, "num_shards"), as_count(index, "index")
        if isinstance(self._shards, int) and self._shards < 1:
            raise InvalidArgumentError.of(
                f"Number of shards must be greater than zero (currently num_shards = {self._shards})."
            )
        if isinstance(self._index, int) and isinstance(self._shards, int) and not 0 <= self._index < self._shards:
            raise InvalidArgumentError.of(
                f"Index must be between 0 and {self._shards - 1} (currently index = {self._index}).",
            )
        super().__init__(before, self._shards, self._index)
        self.identity = self._shards == 1

    def chosen(self, items: Iterable[Any], iteration: Iteration) -> Iterable[Any]:
        shards, index = iteration.number(self._shards), iteration.number(self._index)
        return items[index::shards] if isinstance(items, range) else itertools.islice(items, index, None, shards)

    def count(self) -> int:
        before, shards, index = self.inputs[0].count(), known(self._shards), known(self._index)
        if before < 0 or shards is None or index is None:
            return before if before == INFINITE else UNKNOWN
        return before // shards + (index < before % shards)


class Repeated(Pipe):
    """All elements, again and again.

    As in TensorFlow, a read past the last of several repetitions begins one more: seeds are drawn for it.
    Only a shuffle directly before is spared, with which TensorFlow makes one operation; identity pipes do not count.
    Endless repetitions end with an empty one; of a shuffle, only if it is the first.
    """

    name = "_RepeatDataset"

    def __init__(self, before: Pipe, count: Any) -> None:
        self._count = -1 if count is None else as_count(count, "count")
        super().__init__(before.spec, before, symbols=[self._count])
        self.identity = self._count == 1
        self.indexed = before.indexed

    def _rounds(self, iteration: Iteration) -> Iterable[Any]:
        count = iteration.number(self._count)
        return itertools.repeat(None) if count < 0 else itertools.repeat(None, count)

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        # Unlike a generator, `chain` goes on with the next element after an error.
        return itertools.chain.from_iterable(self._repetitions(iteration))

    def _repetitions(self, iteration: Iteration) -> Iterator[Iterator[Leaves]]:
        before, seen = self.inputs[0], False
        for _ in self._rounds(iteration):
            elements = before.begin(iteration)
            first = next(elements, None)
            if first is not None:
                seen = True
                yield itertools.chain((first,), elements)
            elif iteration.number(self._count) < 0 and not (seen and isinstance(before, Shuffled)):
                return
        self._end(iteration)

    def _end(self, iteration: Iteration) -> None:
        before = self.inputs[0]
        while before.identity:
            before = before.inputs[0]
        if iteration.number(self._count) > 1 and not isinstance(before, Shuffled):
            before.advance(iteration)

    def order(self, iteration: Iteration) -> Order:
        before = self.inputs[0]
        first = before.order(iteration)

        def places() -> Iterator[int]:
            rows: Iterable[int] = first.places
            empty = True
            for number, _ in enumerate(self._rounds(iteration)):
                if number:
                    rows = before.order(iteration).places
                for place in rows:
                    empty = False
                    yield place
                if empty and iteration.number(self._count) < 0:
                    return
            self._end(iteration)

        return Order(first.table, places())

    def count(self) -> int:
        before, count = self.inputs[0].count(), known(self._count)
        if before == 0 or count == 0:
            return 0
        if count is None:
            return UNKNOWN
        if count < 0:
            return INFINITE
        return before if before < 0 else before * count


class Joined(Pipe):
    """The elements of one pipe after those of another."""

    name = "_ConcatenateDataset"

    def __init__(self, first: Pipe, second: Pipe) -> None:
        super().__init__(common_spec(first.spec, second.spec, "concatenate"), first, second)

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        return itertools.chain.from_iterable(pipe.begin(iteration) for pipe in self.inputs)

    def advance(self, iteration: Iteration) -> None:
        self.inputs[0].advance(iteration)

    def count(self) -> int:
        counts = [pipe.count() for pipe in self.inputs]
        return INFINITE if INFINITE in counts else UNKNOWN if UNKNOWN in counts else sum(counts)


class _SideBySide:
    """The elements of iterators side by side. After an error in one of them, all have gone on by one."""

    def __init__(self, iterators: list[Iterator[Leaves]]) -> None:
        self._iterators = iterators

    def __iter__(self) -> Iterator[Leaves]:
        return self

    def __next__(self) -> Leaves:
        if not self._iterators:
            raise StopIteration
        found: list[Any] = []
        for i, iterator in enumerate(self._iterators):
            try:
                found += next(iterator)
            except OpError:
                for later in self._iterators[i + 1 :]:
                    with suppress(OpError, StopIteration):
                        next(later)
                raise
        return tuple(found)


class Zipped(Pipe):
    """Elements side by side, as long as all pipes have some."""

    name = "_ZipDataset"

    def __init__(self, pipes: Any) -> None:
        flat = nest.flatten(pipes)
        super().__init__(nest.map_structure(lambda pipe: pipe.spec, pipes), *flat)
        self.indexed = self.sequential = bool(flat) and all(pipe.sequential for pipe in flat)

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        if self.indexed:
            return self.order(iteration).elements()
        return _SideBySide([pipe.begin(iteration) for pipe in self.inputs])

    def order(self, iteration: Iteration) -> Order:
        orders = [pipe.order(iteration) for pipe in self.inputs]
        table = tuple([leaf for order in orders for leaf in order.table])
        return Order(table, min((order.places for order in orders), key=len))  # type: ignore[arg-type]

    def count(self) -> int:
        counts = [pipe.count() for pipe in self.inputs]
        known_counts = [count for count in counts if count >= 0]
        if UNKNOWN in counts:
            return UNKNOWN
        return min(known_counts) if known_counts else INFINITE


def _with_number(element: Leaves, number: Leaves) -> Leaves:
    return (*number, *element)


class Numbered(Pipe):
    """Elements with their numbers."""

    name = "_ZipDataset"

    def __init__(self, before: Pipe, numbers: Pipe) -> None:
        super().__init__((numbers.spec, before.spec), numbers, before)

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        numbers, before = (pipe.begin(iteration) for pipe in self.inputs)
        return map(_with_number, before, numbers)  # asks for an element first, then for its number

    def count(self) -> int:
        return self.inputs[1].count()


class Cached(Pipe):
    """Elements that are kept, in memory or in a folder, when the first iteration has seen all of them."""

    name = "_CacheDataset"

    def __init__(self, before: Pipe, folder: str = "") -> None:
        super().__init__(before.spec, before)
        self.indexed = before.indexed and not folder
        self._folder = folder
        self._kept: list[Any] | None = None
        self._table: Leaves = ()

    def _keeping(self, items: Iterable[Any], iteration: Iteration) -> Iterator[Any]:
        seen, whole = [], count_in(self.inputs[0], iteration)
        for item in items:
            seen.append(item)
            if len(seen) == whole:  # whoever knows their number need not ask for one more
                self._keep(seen)
            yield item
        if self._kept is None:
            self._keep(seen)

    def _keep(self, items: list[Any]) -> None:
        self._kept = items
        if self._folder:
            write_elements(self._folder, self.spec, items)

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        if self.indexed:
            return self.order(iteration).elements()
        if self._kept is None and self._folder and has_elements(self._folder):
            self._kept = saved_elements(self._folder)[1]
        return iter(self._kept) if self._kept is not None else self._keeping(self.inputs[0].begin(iteration), iteration)

    def order(self, iteration: Iteration) -> Order:
        if self._kept is not None:
            return Order(self._table, self._kept)
        self._table, places = self.inputs[0].order(iteration)
        return Order(self._table, self._keeping(places, iteration))

    def advance(self, iteration: Iteration) -> None:
        if self._kept is None:
            super().advance(iteration)

    def count(self) -> int:
        return self.inputs[0].count()


class Counted(Passing):
    """Elements of which the number is asserted."""

    name = "_AssertCardinalityDataset"

    def __init__(self, before: Pipe, expected: int) -> None:
        super().__init__(before)
        self._expected = expected
        self.indexed = self.sequential = False

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        number = 0
        for element in self.inputs[0].begin(iteration):
            number += 1
            if number > self._expected != INFINITE:
                raise FailedPreconditionError.of(
                    f"Input dataset was expected to contain {self._expected} elements but contained at least {number} "
                    "elements.",
                )
            yield element
        if number != self._expected:
            words = "an infinite number of" if self._expected == INFINITE else str(self._expected)
            raise FailedPreconditionError.of(
                f"Input dataset was expected to contain {words} elements but contained only {number} elements.",
            )

    def count(self) -> int:
        return self._expected
