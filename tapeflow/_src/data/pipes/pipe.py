"""Pipes: the stages of a dataset. A pipe knows the specification of its elements and begins runs over them.

A pipe that was made while a graph was traced may hold symbolic tensors. Their values are given when a run begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import local
from typing import Any, NamedTuple

from tapeflow._src import _core
from tapeflow._src.data.pipes.structure import Leaves, row
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.errors import InvalidArgumentError

INFINITE, UNKNOWN = -1, -2


class Run:
    """One pass over a dataset: the values of its symbolic tensors, the seeds that it drew, and its random streams.

    A run can be repeated: with the seeds that another run drew, all elements come in the same order again.
    """

    __slots__ = ("_repeats", "drawn", "held", "states", "values")

    def __init__(self, values: Mapping[int, Any] | None = None, drawn: dict[int, list[Any]] | None = None) -> None:
        self.values: Mapping[int, Any] = values or {}
        self._repeats = drawn is not None
        self.states: dict[int, list[Any]] = {}  # where the random streams of functions stand in this run
        self.held: list[Any] = []  # what must live as long as the run
        self.drawn: dict[int, list[Any]] = {k: list(v) for k, v in drawn.items()} if drawn else {}

    def value(self, tensor: Any) -> Any:
        """The value of a tensor, which may be symbolic."""
        if not _core.is_symbolic(tensor):
            return tensor
        found = self.values.get(id(tensor))
        if found is None:
            raise InvalidArgumentError.of(f"a dataset uses {tensor!r}, which has no value outside of its graph")
        return found

    def leaf(self, leaf: Any) -> Any:
        """The value of a leaf, which may be built of symbolic tensors."""
        if not self.values:
            return leaf
        parts = [self.value(part) for part in nest.flatten(leaf, expand_composites=True)]
        return nest.pack_sequence_as(leaf, parts, expand_composites=True)

    def number(self, value: Any) -> int:
        """The value of a count."""
        return value if isinstance(value, int) else int(self.value(value))

    def seeds(self, pipe: Any) -> tuple[int, int]:
        """The seeds of one pass of a pipe that draws them."""
        if self._repeats and self.drawn.get(id(pipe)):
            found: tuple[int, int] = self.drawn[id(pipe)].pop(0)
            return found
        seeds: tuple[int, int] = pipe.draw_seeds()
        if not self._repeats:
            self.drawn.setdefault(id(pipe), []).append(seeds)
        return seeds

    def within(self, tensors: Sequence[Any], values: Sequence[Any]) -> Run:
        """This run, with the values of further symbolic tensors."""
        inner = Run()
        inner.values = {**self.values, **{id(t): v for t, v in zip(tensors, values)}}
        inner.drawn, inner.held, inner._repeats = self.drawn, self.held, self._repeats
        inner.states = self.states
        return inner


class Order(NamedTuple):
    """Elements by number: leaves that hold all of them, and the rows that a run takes, one after the other."""

    table: Leaves
    places: Iterable[int]

    def elements(self) -> Iterator[Leaves]:
        """The elements, one by one."""
        table = self.table
        if len(table) == 1 and isinstance(table[0], _core.Tensor):
            (only,) = table
            return ((only[place],) for place in self.places)
        if all(isinstance(leaf, _core.Tensor) for leaf in table):
            return (tuple([leaf[place] for leaf in table]) for place in self.places)
        return (tuple([row(leaf, place) for leaf in table]) for place in self.places)


class Pipe:
    """A stage of a dataset: `spec` is the structure of specifications of its elements.

    `indexed` says that runs give their elements by number; `sequential`, that they take all rows of a table in turn;
    `idle`, that its elements are those of the pipe before.
    """

    name = "Dataset"
    indexed = False
    sequential = False
    idle = False

    def __init__(self, spec: Any, *inputs: Pipe, symbols: Iterable[Any] = ()) -> None:
        self.spec = spec
        self.specs = nest.flatten(spec)
        self.inputs = inputs
        self.symbols = [tensor for tensor in symbols if _core.is_symbolic(tensor)]

    def begin(self, run: Run) -> Iterator[Leaves]:
        """The elements of a run, each a flat tuple of leaves."""
        return self.order(run).elements()

    def order(self, run: Run) -> Order:
        """The elements of a run by number, if the pipe is indexed; either this or `begin` is asked, once per run."""
        raise NotImplementedError

    def touch(self, run: Run) -> None:
        """Draws the seeds that a run would draw at its beginning, and begins none."""
        for pipe in self.inputs:
            pipe.touch(run)

    def count(self) -> int:
        """The number of elements, INFINITE or UNKNOWN."""
        return UNKNOWN

    def all_symbols(self) -> list[Any]:
        """The symbolic tensors of this pipe and of those before it, each once."""
        found = {id(tensor): tensor for tensor in self.symbols}
        for pipe in self.inputs:
            found.update((id(tensor), tensor) for tensor in pipe.all_symbols())
        return list(found.values())


def as_count(value: Any, name: str) -> Any:
    """An argument that counts: an int, or a symbolic tensor."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if _core.is_symbolic(value):
        return value
    tensor = convert_to_tensor(value)
    if tensor.shape.rank != 0 or not tensor.dtype.is_integer:
        raise TypeError(f"{name} must be an integer; got {value!r}")
    return int(tensor)


class _Counting(local):
    """The run for which elements are counted, while they are."""

    run: Run | None = None


_counting = _Counting()


def counting() -> Run | None:
    """The run for which elements are counted, or None while no values are known."""
    return _counting.run


def count_in(pipe: Pipe, run: Run) -> int:
    """The number of elements of one run."""
    before, _counting.run = _counting.run, run
    try:
        return pipe.count()
    finally:
        _counting.run = before


def known(value: Any) -> int | None:
    """A count, if it is known."""
    if isinstance(value, int):
        return value
    run = counting()
    return None if run is None else run.number(value)
