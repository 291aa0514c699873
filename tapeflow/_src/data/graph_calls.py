"""What nodes of graphs that run datasets mean: `compat/graph_def` writes them into files as TensorFlow's nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tapeflow._src.data.pipes.pipe import Pipe
from tapeflow._src.data.pipes.traced import Traced


class IteratorToken:
    """Stands for the iterator that a node begins, for the nodes that read it."""

    name = "an iterator of a dataset"
    is_made_by_nodes = True


class RowsToken:
    """Stands for the next element of an iterator, in a loop over its elements; there may be none."""

    name = "an element of a dataset"
    graph_dtype = "variant"
    is_made_by_nodes = True

    def __init__(self, iterator: IteratorToken, specs: list[Any]) -> None:
        self.iterator, self.specs = iterator, specs


class DatasetCall(NamedTuple):
    """What a node does with a dataset or an iterator. Its inputs are the values of the symbolic tensors `symbols`."""

    kind: str
    pipe: Pipe | None
    symbols: list[Any]
    specs: list[Any]
    function: Traced | None = None
    state: Any = ()  # leaves of the first state of a reduction, or the number of an element
    token: IteratorToken | RowsToken | None = None

    def functions(self) -> Iterator[Traced]:
        """All functions of elements, those of the datasets inside of others included."""
        if self.function is not None:
            yield from _with_inner(self.function)
        if self.pipe is not None:
            yield from functions_of(self.pipe)

    @property
    def begins(self) -> bool:
        """Whether the node makes the iterator that the token stands for."""
        return self.kind == "begin"


def functions_of(pipe: Pipe) -> Iterator[Traced]:
    """The functions of elements of a pipe and of those before it."""
    for stage in pipe.stages():
        for value in vars(stage).values():
            if isinstance(value, Traced):
                yield from _with_inner(value)


def _with_inner(function: Traced) -> Iterator[Traced]:
    yield function
    for pipe in function.inner_pipes():
        yield from functions_of(pipe)


def with_call(run: Any, call: DatasetCall | None) -> Any:
    """The function of a node, which says what the node means."""
    run.raw_call = call
    return run
