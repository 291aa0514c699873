"""Iterators over datasets, eager and in graphs.

In a graph an iterator is a number. So it can be an argument of a `tf.function`, and one graph serves all iterators with
elements of one kind.
"""

from __future__ import annotations

import itertools
import sys
import zlib
from collections.abc import Callable
from collections.abc import Iterator as PythonIterator
from opcode import opmap
from threading import RLock
from types import FrameType
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.data.graph_calls import DatasetCall, IteratorToken, RowsToken, with_call
from tapeflow._src.data.handles import HandleSpec, Recent, from_handle, handle_of, tensor_specs, tensors_of
from tapeflow._src.data.optional import Optional
from tapeflow._src.data.pipes.external_state import check_external_state
from tapeflow._src.data.pipes.ordering import Taken
from tapeflow._src.data.pipes.pipe import Iteration, Pipe, chain_too_long
from tapeflow._src.data.pipes.sources import Generated
from tapeflow._src.data.pipes.structure import Leaves, packer
from tapeflow._src.function.autograph.operators import Rows
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import bool_, int64
from tapeflow._src.types.errors import NotFoundError, OutOfRangeError
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.tensor_spec import CompositeTensor

_END = "End of sequence"
_FOR_ITER = opmap["FOR_ITER"]
_MOST_ROUNDS = 10_000
_recent = Recent(512)


class Cursor:
    """A place in an iteration over a pipe. Graph loops ask for elements by number: their gradient runs them again."""

    def __init__(self, pipe: Pipe, iteration: Iteration) -> None:
        self._pipe, self._iteration = pipe, iteration
        iteration.root = pipe
        self._elements: PythonIterator[Leaves] | None = None
        self.drawn = 0
        self._last: Leaves | None = None
        self._finished = False
        self._again: Cursor | None = None
        self._lock = RLock()  # several threads may share an iterator: each element goes to one of them

    @property
    def root(self) -> Pipe:
        """The pipe over which it goes."""
        return self._pipe

    @property
    def source(self) -> Pipe:
        """The pipe that elements come from; behind `take`, the one that they are taken from."""
        return self._pipe.inputs[0] if isinstance(self._pipe, Taken) else self._pipe

    @property
    def is_random(self) -> bool:
        """Whether another iteration may give other elements: seeds were drawn, or a Python generator gives them."""
        stages = self._pipe.stages()
        drawn = self._iteration.drawn or self._iteration.states
        return bool(drawn) or any(isinstance(stage, Generated) for stage in stages)

    def next(self) -> Leaves:
        """The next element; StopIteration at the end."""
        with self._lock:
            try:
                if self._elements is None:
                    self._elements = iter(self._pipe.begin(self._iteration))
                element = next(self._elements)
            except RecursionError as error:
                raise chain_too_long("tf.data.Iterator.get_next") from error
            self.drawn += 1
            return element

    def has(self, place: int) -> bool:
        """Whether there is an element with this number: the last one, the next one, or one of a repeated run."""
        if self._finished or place < self.drawn - 1:
            return self._repeated(place).has(place)
        if place < self.drawn:
            return True
        try:
            self._last = self.next()
        except StopIteration:
            return False
        return True

    def at(self, place: int) -> Leaves:
        """The element with this number, for which `has` was asked."""
        if self._finished or place < self.drawn - 1:
            return self._repeated(place).at(place)
        assert self._last is not None
        return self._last

    def _repeated(self, place: int) -> Cursor:
        again = self._again
        if again is None or again.drawn - 1 > place:
            again = self._again = Cursor(self._pipe, Iteration(self._iteration.values, self._iteration.drawn))
            for _ in range(place):
                again.next()
        return again

    def state(self) -> np.ndarray:
        """How many elements were taken; then for each stage that drew seeds its number, the state of their source, and
        how many it drew and which; then the complement of the checksum of the stages."""
        numbers = [self.drawn]
        for number, stage in enumerate(self._pipe.stages()):
            pairs = self._iteration.drawn.get(id(stage))
            if pairs:
                source: Any = stage._source  # type: ignore[attr-defined]
                numbers += [number, *source.state, len(pairs), *[seed for pair in pairs for seed in pair]]
        return np.array([*numbers, ~self._checksum()], np.int64)

    def _checksum(self) -> int:
        """A number, at least 0, for the kinds of the stages: a state fits to datasets that are made in the same way."""
        return zlib.crc32(" ".join(stage.name for stage in self._pipe.stages()).encode())

    def begun_at(self, state: np.ndarray) -> Cursor:
        """A new iteration, after the elements and with the seeds of a state."""
        rest = iter(state.reshape(-1).tolist())
        count, stages, seeds = next(rest), list(self._pipe.stages()), dict[int, Any]()
        for number in rest:
            if number < 0:
                if ~number != self._checksum():
                    raise NotFoundError.of(
                        "Failed to restore the iterator: the checkpoint is of a dataset with other transformations. "
                        "Make sure the dataset definition has not changed between the process that saved the "
                        "checkpoint and the process that is restoring it."
                    )
                continue
            source = (next(rest, 0), next(rest, 0), next(rest, 0))
            flat = list(itertools.islice(rest, 2 * next(rest, 0)))
            stage: Any = stages[number] if number < len(stages) else None
            if hasattr(stage, "_source"):  # unless the dataset has become another one
                seeds[id(stage)] = zip(flat[::2], flat[1::2])
                stage._source.go_on_from(source)
        cursor = Cursor(self._pipe, Iteration(self._iteration.values, seeds))
        for _ in range(count):
            if next(cursor, None) is None:
                break
        return cursor

    def __next__(self) -> Leaves:
        return self.next()

    def finish(self) -> None:
        """Lets go of everything that is not needed to run again."""
        self._elements, self._last, self._finished = None, None, True


@public("data.IteratorSpec")
class IteratorSpec(HandleSpec):
    """The specification of an iterator: that of its elements.

    >>> iterator = iter(tf.data.Dataset.range(3))
    >>> tf.data.IteratorSpec(tf.TensorSpec([], tf.int64)).is_compatible_with(iterator)
    True
    """

    value_type = property(lambda self: Iterator)

    @staticmethod
    def from_value(value: Any) -> IteratorSpec:
        """The specification of an iterator."""
        return IteratorSpec(value.element_spec)


@public("data.Iterator")
class Iterator(CompositeTensor):
    """An iterator over a dataset.

    >>> iterator = iter(tf.data.Dataset.range(2))
    >>> next(iterator)
    <tf.Tensor: shape=(), dtype=int64, numpy=0>
    >>> iterator.get_next()
    <tf.Tensor: shape=(), dtype=int64, numpy=1>
    """

    def __init__(self, cursor: Cursor | None, element_spec: Any, number: Any = None) -> None:
        self._cursor, self._element_spec, self._handle = cursor, element_spec, number
        self._pack = packer(element_spec)
        self._rounds = 0  # of loops while a function is traced
        self._token: IteratorToken | None = None  # stands for it in files, if a node makes it

    is_tensor_like = False
    element_spec = property(lambda self: self._element_spec, doc="The specification of the elements.")
    _type_spec = property(lambda self: IteratorSpec(self._element_spec))
    _trace_key = property(lambda self: repr(self._element_spec))

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        if self._cursor is None or _core.is_tracing():
            self._check_loop(sys._getframe(1))
            return self.get_next()
        return self._pack(self._cursor.next())

    next = __next__

    def _check_loop(self, frame: FrameType) -> None:
        """Stops a Python loop over what only a graph can end."""
        self._rounds += 1
        in_for = frame.f_code.co_code[frame.f_lasti] == _FOR_ITER
        if self._rounds > (1 if in_for else _MOST_ROUNDS):
            raise TypeError(
                "Iterating over a `tf.data` iterator in a Python loop while a function is traced would never end. "
                "Write a `for` statement over the dataset in a function that AutoGraph converts."
            )

    def get_next(self, name: str | None = None) -> Any:
        """The next element; OutOfRangeError at the end."""
        if self._cursor is None or _core.is_tracing():
            found = self._in_graph(*tensor_specs([self._element_spec]), _next_tensors)
            return nest.pack_sequence_as(self._element_spec, found, expand_composites=True)
        try:
            return self._pack(self._cursor.next())
        except StopIteration:
            raise OutOfRangeError.of(_END) from None

    _next_internal = get_next

    def get_next_as_optional(self) -> Optional:
        """The next element in an optional, which is empty at the end."""
        if self._cursor is None or _core.is_tracing():
            (number,) = self._in_graph(
                [int64], [TensorShape([])], lambda cursor: [Optional.held(self._optional(cursor))._handle_tensor()]
            )
            return Optional(None, self._element_spec, number)
        return self._optional(self._cursor)

    def _optional(self, cursor: Cursor) -> Optional:
        try:
            return Optional(self._pack(cursor.next()), self._element_spec)
        except StopIteration:
            return Optional.empty(self._element_spec)

    # ---- in graphs

    def _handle_tensor(self) -> Any:
        if self._handle is None:
            self._handle = handle_of(self)
        return self._handle

    def _in_graph(self, dtypes: list[Any], shapes: list[Any], take: Callable[[Cursor], list[Any]]) -> list[Any]:
        """A node that takes an element."""

        def evaluate(inputs: list[Any]) -> list[Any]:
            return take(self._cursor or from_handle(inputs[0])._cursor)

        call = None
        if self._token is not None and take is _next_tensors:
            call = DatasetCall("next", None, [], nest.flatten(self._element_spec), token=self._token)
        return _core.call_python(with_call(evaluate, call), [self._handle_tensor()], dtypes, shapes, None, True)

    # ---- in checkpoints: how many elements were taken, and with which seeds

    _checkpoint_attribute = "ITERATOR_STATE"

    def _checkpoint_value(self) -> np.ndarray:
        assert self._cursor is not None
        check_external_state(self._cursor.root)
        return self._cursor.state()

    def _restore_checkpoint_value(self, value: np.ndarray) -> None:
        if self._cursor is not None and value.dtype.kind == "i" and value.size:
            self._cursor = self._cursor.begun_at(value)

    def __autograph_rows__(self) -> Rows:
        """The rest of the elements as the rows of a loop in a graph."""
        return rows_of_cursor(self, ends=False)

    def __repr__(self) -> str:
        return f"<tf.data.Iterator element_spec={self._element_spec}>"


def _next_tensors(cursor: Cursor) -> list[Any]:
    try:
        return tensors_of(cursor.next())
    except StopIteration:
        raise OutOfRangeError.of(_END) from None


def begin_in_graph(pipe: Pipe) -> Iterator:
    """An iterator that a node begins whenever the graph runs."""
    symbols, token = pipe.all_symbols(), IteratorToken()

    def begin(values: list[Any]) -> list[Any]:
        iteration = Iteration({id(symbol): value for symbol, value in zip(symbols, values)})
        return [_recent.hold(Iterator(Cursor(pipe, iteration), pipe.spec))._handle_tensor()]

    call = DatasetCall("begin", pipe, symbols, pipe.specs, token=token)
    (number,) = _core.call_python(with_call(begin, call), symbols, [int64], [TensorShape([])], None, True)
    iterator = Iterator(None, pipe.spec, number)
    iterator._token = token
    return iterator


def rows_of_cursor(iterator: Iterator, ends: bool) -> Rows:
    """The elements of an iterator as the rows of a loop in a graph, which may be the end of the iterator, too."""
    number, element_spec = iterator._handle_tensor(), iterator.element_spec
    dtypes, shapes = tensor_specs([element_spec])

    specs = nest.flatten(element_spec)
    token = None if iterator._token is None else RowsToken(iterator._token, specs)

    def known(kind: str, run: Any) -> Any:
        return with_call(run, None if token is None else DatasetCall(kind, None, [], specs, token=token))

    def cursor(tensor: Any) -> Any:
        return iterator._cursor or from_handle(tensor)._cursor

    def begin(inputs: list[Any]) -> list[Any]:
        return [convert_to_tensor(cursor(inputs[0]).drawn, int64)]

    def more(inputs: list[Any]) -> list[Any]:
        return [convert_to_tensor(cursor(inputs[0]).has(int(inputs[1])))]

    def take(inputs: list[Any]) -> list[Any]:
        return tensors_of(cursor(inputs[0]).at(int(inputs[1])))

    def finish(inputs: list[Any]) -> list[Any]:
        cursor(inputs[0]).finish()
        return []

    def row(place: Any) -> Any:
        found = _core.call_python(known("take", take), [number, place], dtypes, shapes, None, False)
        return nest.pack_sequence_as(element_spec, found, expand_composites=True)

    return Rows(
        None,
        row,
        start=_core.call_python(known("start", begin), [number], [int64], [TensorShape([])], None, True)[0],
        more=lambda place: _core.call_python(
            known("more", more), [number, place], [bool_], [TensorShape([])], None, True
        )[0],
        finish=(lambda: _core.call_python(known("finish", finish), [number], [], [], None, True)) if ends else None,
    )
