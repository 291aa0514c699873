"""Datasets made of elements by a function: their elements one dataset after the other, or in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tapeflow._src.data.pipes.background import Ahead
from tapeflow._src.data.pipes.mapping import parallel_calls, threads_for
from tapeflow._src.data.pipes.pipe import INFINITE, UNKNOWN, Iteration, Pipe, as_count
from tapeflow._src.data.pipes.structure import Leaves
from tapeflow._src.data.pipes.traced import Traced, out_of_bounds, user_function

_LARGEST_CYCLE = 1 << 20


class FlatMapped(Pipe):
    """The elements of the dataset that a function makes of each element."""

    name = "_FlatMapDataset"

    def __init__(self, before: Pipe, function: Callable[..., Any], who: str = "flat_map") -> None:
        self._function = Traced(function, before.spec, who)
        self._inner = self._function.inner()
        super().__init__(self._inner.spec, before, symbols=self._function.symbols + _outside(self._function))
        self.calls_python = self._function.calls_python or self._inner.runs_python()

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        return _Flattened(self, iteration)

    def begin_before(self, iteration: Iteration) -> Iterator[Leaves]:
        """The elements that the function is given."""
        return self.inputs[0].begin(iteration)

    def begin_inner(self, iteration: Iteration, element: Leaves) -> Iterator[Leaves]:
        """The elements of the dataset of one element; the function runs when the first is asked for."""
        with user_function(self, iteration):
            inner = self._function.inner_run(iteration, element)
        yield from self._inner.begin(inner)

    def count(self) -> int:
        before, inner = self.inputs[0].count(), self._inner.count()
        if before == 0 or inner == 0:
            return 0
        if before < 0 or inner < 0:
            return UNKNOWN if UNKNOWN in (before, inner) else INFINITE
        return before * inner


class _Flattened:
    """Elements of one dataset after the other. After an error it goes on with what comes next."""

    def __init__(self, pipe: FlatMapped, iteration: Iteration) -> None:
        self._pipe, self._iteration = pipe, iteration
        self._before = pipe.begin_before(iteration)
        self._inner: Iterator[Leaves] = iter(())

    def __iter__(self) -> _Flattened:
        return self

    def __next__(self) -> Leaves:
        while True:
            found = next(self._inner, None)
            if found is not None:
                return found
            self._inner = self._pipe.begin_inner(self._iteration, next(self._before))


def _outside(function: Traced) -> list[Any]:
    """The symbolic tensors of the dataset that a function returns which belong to the graphs around it."""
    own = {id(tensor) for parts in function._parts for tensor in parts}
    pipes = [leaf._pipe for leaf in function.leaves if hasattr(leaf, "_pipe")]
    return [tensor for pipe in pipes for tensor in pipe.all_symbols() if id(tensor) not in own]


class Interleaved(FlatMapped):
    """Like `FlatMapped`, with `cycle_length` datasets open at a time; they give `block_length` elements in turn."""

    def __init__(
        self,
        before: Pipe,
        function: Callable[..., Any],
        cycle: Any,
        block: Any,
        calls: Any = None,
        deterministic: bool | None = None,
    ) -> None:
        super().__init__(before, function, "interleave")
        self._cycle, self._block = as_count(cycle, "cycle_length"), as_count(block, "block_length")
        self._calls = None if calls is None else parallel_calls(calls, self)
        self._deterministic = deterministic
        self.name = "_InterleaveDataset" if calls is None else "_ParallelInterleaveDataset"
        self.symbols += [x for x in (self._cycle, self._block) if not isinstance(x, int)]
        for name, value in (("cycle_length", self._cycle), ("block_length", self._block)):
            if isinstance(value, int):
                _check_length(name, value)

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        cycle, block = iteration.number(self._cycle), iteration.number(self._block)
        _check_length("cycle_length", cycle)
        _check_length("block_length", block)
        threads = 0 if self._calls is None else threads_for(self._calls, iteration)
        return _InTurn(self, iteration, cycle, block, threads, iteration.is_ordered(self._deterministic))


def _check_length(name: str, value: int) -> None:
    if value <= 0:
        raise out_of_bounds(f"`{name}` must be > 0; got {value}")
    if name == "cycle_length" and value > _LARGEST_CYCLE:
        raise out_of_bounds(f"`{name}` must be at most {_LARGEST_CYCLE}; got {value}")


class _InTurn:
    """Elements of the open datasets in turn. After an error it goes on with what comes next.

    `threads` of them are computed ahead. Those need not be in order: then one that is not ready is passed over.
    """

    def __init__(
        self, pipe: Interleaved, iteration: Iteration, cycle: int, block: int, threads: int, ordered: bool
    ) -> None:
        self._pipe, self._iteration = pipe, iteration
        self._cycle, self._block, self._threads, self._ordered = cycle, block, threads, ordered
        self._before = pipe.begin_before(iteration)
        self._open: list[Iterator[Leaves] | None] = [None] * cycle
        self._count = 0  # of open datasets
        self._exhausted = False
        self._place = self._taken = 0

    def __iter__(self) -> _InTurn:
        return self

    def __next__(self) -> Leaves:
        passed_over = 0
        while True:
            current = self._open[self._place] or self._opened()
            if current is None:
                if self._exhausted and not self._count:
                    raise StopIteration
                self._turn()
                continue
            late = not self._ordered and isinstance(current, Ahead) and not current.is_ready()
            if late and passed_over < self._cycle:
                passed_over += 1
                self._turn()
                continue
            found = next(current, None)
            if found is None:
                self._open[self._place] = None
                self._count -= 1
                self._turn()
                continue
            self._taken += 1
            if self._taken == self._block:
                self._turn()
            return found

    def _turn(self) -> None:
        self._place, self._taken = (self._place + 1) % self._cycle, 0

    def _opened(self) -> Iterator[Leaves] | None:
        """The next dataset, opened at this place, or None."""
        element = None if self._exhausted else next(self._before, None)
        if element is None:
            self._exhausted = True
            return None
        begun = self._pipe.begin_inner(self._iteration, element)
        if self._place < self._threads:
            begun = Ahead(begun, self._block + 1, at_once=not self._ordered)
        self._open[self._place] = begun
        self._count += 1
        return begun
