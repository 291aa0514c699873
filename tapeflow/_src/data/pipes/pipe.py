"""Pipes: the stages of a dataset. A pipe knows the specification of its elements and begins iterations over them.

A pipe that was made while a graph was traced may hold symbolic tensors. An iteration begins with their values.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import local
from typing import Any, NamedTuple

from tapeflow._src import _core
from tapeflow._src.data.pipes.structure import Leaves, row
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.errors import InvalidArgumentError, ResourceExhaustedError

INFINITE, UNKNOWN = -1, -2


class Iteration:
    """One pass over a dataset: the values of its symbolic tensors, the seeds that it drew, and its random streams.

    An iteration can be repeated: with the seeds that another iteration drew, all elements come in the same order again.
    """

    __slots__ = ("_replay", "deterministic", "drawn", "held", "root", "states", "values")

    def __init__(
        self, values: Mapping[int, Any] | None = None, seeds: Mapping[int, Iterable[tuple[int, int]]] | None = None
    ) -> None:
        self.values: Mapping[int, Any] = values or {}
        self.states: dict[int, list[Any]] = {}  # where the random streams of functions stand in this iteration
        self.held: list[Any] = []  # what must live as long as the iteration
        # Seeds by the identity of the pipe: those to be used first, and those that were.
        self._replay: dict[int, Iterator[tuple[int, int]]] = {k: iter(v) for k, v in (seeds or {}).items()}
        self.drawn: dict[int, list[tuple[int, int]]] = {}
        self.deterministic: bool | None = None  # what `tf.data.Options` say of the order of elements
        self.root: Pipe | None = None  # the last stage, over which it goes

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
        replay = self._replay.get(id(pipe))
        seeds = None if replay is None else next(replay, None)
        if seeds is None:
            seeds = pipe.draw_seeds(self)
        self.drawn.setdefault(id(pipe), []).append(seeds)
        return seeds

    def within(self, tensors: Sequence[Any], values: Sequence[Any]) -> Iteration:
        """This iteration, with the values of further symbolic tensors."""
        inner = Iteration()
        inner.values = {**self.values, **{id(t): v for t, v in zip(tensors, values)}}
        inner.drawn, inner.held, inner._replay = self.drawn, self.held, self._replay
        inner.states, inner.deterministic, inner.root = self.states, self.deterministic, self.root
        return inner

    def is_ordered(self, deterministic: bool | None) -> bool:
        """Whether a stage keeps the order of elements: as its own argument says, or else the options."""
        return (self.deterministic is not False) if deterministic is None else deterministic

    def path_to(self, pipe: Pipe) -> str:
        """The stages from the last one to this one, as TensorFlow writes them: `Iterator::Root::Batch::Map`."""
        stages = _stages_between(self.root, pipe) or [pipe]
        return "::".join(["Iterator::Root", *[stage.name.strip("_").removesuffix("Dataset") for stage in stages]])


def _stages_between(root: Pipe | None, pipe: Pipe) -> list[Pipe]:
    """The stages from `root` back to `pipe`, both included; empty if there is no such way."""
    waiting: list[list[Pipe]] = [] if root is None else [[root]]
    while waiting:
        stages = waiting.pop()
        if stages[-1] is pipe:
            return stages
        waiting += [[*stages, before] for before in stages[-1].inputs]
    return []


class Order(NamedTuple):
    """Elements by number: leaves that hold all of them, and the rows that an iteration takes, one after the other."""

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

    `indexed` says that iterations give elements by number; `sequential`, that they take all rows of a table in turn;
    `identity`, that its elements are those of the pipe before; `calls_python`, that it calls functions of Python.
    """

    name = "Dataset"
    indexed = False
    sequential = False
    identity = False
    calls_python = False

    def __init__(self, spec: Any, *inputs: Pipe, symbols: Iterable[Any] = ()) -> None:
        self.spec = spec
        self.specs = nest.flatten(spec)
        self.inputs = inputs
        self.symbols = [tensor for tensor in symbols if _core.is_symbolic(tensor)]

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        """The elements of an iteration, each a flat tuple of leaves."""
        return self.order(iteration).elements()

    def order(self, iteration: Iteration) -> Order:
        """The elements of an iteration by number, if the pipe is indexed; this or `begin` is called, once."""
        raise NotImplementedError

    def advance(self, iteration: Iteration) -> None:
        """Draws the seeds that an iteration would draw at its beginning, and begins none."""
        for pipe in self.inputs:
            pipe.advance(iteration)

    def count(self) -> int:
        """The number of elements, INFINITE or UNKNOWN."""
        return UNKNOWN

    def all_symbols(self) -> list[Any]:
        """The symbolic tensors of this pipe and of those before it, each once."""
        found = {id(tensor): tensor for pipe in self.stages() for tensor in pipe.symbols}
        return list(found.values())

    def stages(self) -> Iterator[Pipe]:
        """This pipe and those before it, always in the same order; a pipe that is used twice comes twice."""
        waiting: list[Pipe] = [self]
        while waiting:  # without recursion: chains may be long
            pipe = waiting.pop()
            yield pipe
            waiting += reversed(pipe.inputs)

    def runs_python(self) -> bool:
        """Whether this pipe or one before it calls functions of Python."""
        return any(pipe.calls_python for pipe in self.stages())


def chain_too_long(who: str) -> ResourceExhaustedError:
    """The error for a dataset whose stages are nested more deeply than the interpreter can call."""
    return ResourceExhaustedError.of(
        f"{who}: the dataset has too many transformations in a chain for Python's recursion limit "
        f"({sys.getrecursionlimit()}). Do the work of several in one `map`, or raise it with sys.setrecursionlimit."
    )


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
    """The iteration for which elements are counted, while they are."""

    iteration: Iteration | None = None


_counting = _Counting()


def counting() -> Iteration | None:
    """The iteration for which elements are counted, or None while no values are known."""
    return _counting.iteration


def count_in(pipe: Pipe, iteration: Iteration) -> int:
    """The number of elements of one iteration."""
    before, _counting.iteration = _counting.iteration, iteration
    try:
        return pipe.count()
    finally:
        _counting.iteration = before


def known(value: Any) -> int | None:
    """A count, if it is known."""
    if isinstance(value, int):
        return value
    iteration = counting()
    return None if iteration is None else iteration.number(value)
