"""Elements changed, chosen and made by functions of the user."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from tapeflow._src.data.options import AUTOTUNE
from tapeflow._src.data.pipes.background import Ahead, processors
from tapeflow._src.data.pipes.pipe import INFINITE, UNKNOWN, Iteration, Pipe, as_count
from tapeflow._src.data.pipes.structure import Leaves, as_element, map_leaves, spec_of_leaf
from tapeflow._src.data.pipes.traced import Traced, check_integer, out_of_bounds
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import int64
from tapeflow._src.types.errors import OpError
from tapeflow._src.types.tensor_spec import TypeSpec


def parallel_calls(value: Any, pipe: Pipe) -> Any:
    """The argument `num_parallel_calls` of a pipe: an integer, a symbolic tensor, or 1 for None."""
    calls = 1 if value is None else as_count(value, "num_parallel_calls")
    if isinstance(calls, int) and calls < 1 and calls != AUTOTUNE:
        raise out_of_bounds(f"`num_parallel_calls` must be > 0 or tf.data.AUTOTUNE; got {calls}")
    pipe.symbols += [] if isinstance(calls, int) else [calls]
    return calls


def threads_for(calls: Any, iteration: Iteration) -> int:
    """The number of threads for so many parallel calls."""
    number = iteration.number(calls)
    return processors() if number < 0 else number


class Mapped(Pipe):
    """A function of each element."""

    def __init__(self, before: Pipe, function: Callable[..., Any], calls: Any = None, ordered: bool = True) -> None:
        self._function = Traced(function, before.spec, "map")
        super().__init__(self._function.spec, before, symbols=self._function.symbols)
        self._calls, self._ordered = parallel_calls(calls, self), ordered
        self.name = "_MapDataset" if calls is None else "_ParallelMapDataset"
        self.identity = self._function.is_identity

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        function, elements = functools.partial(self._function, iteration), self.inputs[0].begin(iteration)
        threads = threads_for(self._calls, iteration)
        if threads > 1 and not self._function.has_random_streams:
            return Ahead(elements, threads, function, threads, self._ordered)
        # Unlike a generator, `map` goes on with the next element after an error.
        return map(function, elements)

    def count(self) -> int:
        return self.inputs[0].count()


class Filtered(Pipe):
    """The elements for which a function holds."""

    name = "_FilterDataset"

    def __init__(self, before: Pipe, function: Callable[..., Any]) -> None:
        self._function = Traced(function, before.spec, "filter")
        self._function.check_bool()
        super().__init__(before.spec, before, symbols=self._function.symbols)

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        return filter(functools.partial(self._function.as_bool, iteration), self.inputs[0].begin(iteration))

    def count(self) -> int:
        return UNKNOWN


class TakenWhile(Filtered):
    """The elements before the first for which a function does not hold."""

    name = "_TakeWhileDataset"

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        return itertools.takewhile(
            functools.partial(self._function.as_bool, iteration), self.inputs[0].begin(iteration)
        )


class FlatMapped(Pipe):
    """The elements of the dataset that a function makes of each element."""

    name = "_FlatMapDataset"

    def __init__(self, before: Pipe, function: Callable[..., Any], who: str = "flat_map") -> None:
        self._function = Traced(function, before.spec, who)
        self._inner = self._function.inner()
        super().__init__(self._inner.spec, before, symbols=self._function.symbols + _outside(self._function))

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        for element in self.inputs[0].begin(iteration):
            yield from self._begun(iteration, element)

    def _begun(self, iteration: Iteration, element: Leaves) -> Iterator[Leaves]:
        yield from self._inner.begin(self._function.inner_run(iteration, element))

    def count(self) -> int:
        before, inner = self.inputs[0].count(), self._inner.count()
        if before == 0 or inner == 0:
            return 0
        if before < 0 or inner < 0:
            return UNKNOWN if UNKNOWN in (before, inner) else INFINITE
        return before * inner


def _outside(function: Traced) -> list[Any]:
    """The symbolic tensors of the dataset that a function returns which belong to the graphs around it."""
    own = {id(tensor) for parts in function._parts for tensor in parts}
    pipes = [leaf._pipe for leaf in function.leaves if hasattr(leaf, "_pipe")]
    return [tensor for pipe in pipes for tensor in pipe.all_symbols() if id(tensor) not in own]


class Interleaved(FlatMapped):
    """Like `FlatMapped`, with `cycle_length` datasets open at a time; they give `block_length` elements in turn."""

    def __init__(self, before: Pipe, function: Callable[..., Any], cycle: Any, block: Any, calls: Any = None) -> None:
        super().__init__(before, function, "interleave")
        self._cycle, self._block = as_count(cycle, "cycle_length"), as_count(block, "block_length")
        self._calls = None if calls is None else parallel_calls(calls, self)
        self.name = "_InterleaveDataset" if calls is None else "_ParallelInterleaveDataset"
        self.symbols += [x for x in (self._cycle, self._block) if not isinstance(x, int)]
        for name, value in (("cycle_length", self._cycle), ("block_length", self._block)):
            if isinstance(value, int) and value <= 0:
                raise out_of_bounds(f"`{name}` must be > 0")

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        cycle, block = iteration.number(self._cycle), iteration.number(self._block)
        threads = 0 if self._calls is None else threads_for(self._calls, iteration)
        before = self.inputs[0].begin(iteration)
        open_ones: list[Iterator[Leaves] | None] = [None] * cycle
        exhausted = False
        while True:
            for place in range(cycle):
                for _ in range(block):
                    if open_ones[place] is None and not exhausted:
                        element = next(before, None)
                        exhausted = element is None
                        if element is not None:
                            begun = self._begun(iteration, element)
                            open_ones[place] = Ahead(begun, block + 1) if place < threads else begun
                    current = open_ones[place]
                    found = None if current is None else next(current, None)
                    if found is None:
                        open_ones[place] = None
                        break
                    yield found
            if exhausted and all(one is None for one in open_ones):
                return


class Scanned(Pipe):
    """`state, output = function(state, element)` for each element."""

    name = "_ScanDataset"

    def __init__(self, before: Pipe, initial: Any, function: Callable[..., Any]) -> None:
        self._state = as_element(initial)
        self._function, spec = trace_with_state(function, self._state, before.spec, "scan", lambda result: result[0])
        self._states = len(nest.flatten(self._state))
        super().__init__(spec[1], before, symbols=[*self._function.symbols, *nest.flatten(self._state, True)])

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        state = tuple([iteration.leaf(leaf) for leaf in nest.flatten(self._state)])
        for element in self.inputs[0].begin(iteration):
            found = self._function(iteration, (*state, *element))
            state = found[: self._states]
            yield found[self._states :]

    def count(self) -> int:
        return self.inputs[0].count()


def trace_with_state(
    function: Callable[..., Any], state: Any, spec: Any, who: str, state_of: Callable[[Any], Any]
) -> tuple[Traced, Any]:
    """The function of a state and an element; what differs between iterations counts as unknown in the state."""
    state_spec = map_leaves(spec_of_leaf, state)
    while True:
        traced = Traced(function, (state_spec, spec), who)
        if who == "scan" and not (isinstance(traced.spec, tuple) and len(traced.spec) == 2):
            raise TypeError(
                "Invalid `scan_func`. `scan_func` should return a pair consisting of new state and the output value "
                f"but its return type is {traced.spec}."
            )
        result = state_of(traced.spec)
        try:
            nest.assert_same_structure(state_spec, result)
        except (TypeError, ValueError) as error:
            raise TypeError(
                "The element types and structure for the new state must match the initial state. Expected "
                f"{state_spec}; got {result}. {error}"
            ) from None
        wider = nest.map_structure(lambda one, two: _wider(one, two, who), state_spec, result)
        if wider == state_spec:
            return traced, traced.spec
        state_spec = wider


def _wider(before: TypeSpec, after: TypeSpec, who: str) -> TypeSpec:
    common: TypeSpec | None = before.most_specific_common_supertype([after]) if type(before) is type(after) else None
    if common is None:
        raise TypeError(
            f"The element types for the new state must match the initial state. Expected {before}; got {after}."
        )
    return common


class GroupedByWindow(Pipe):
    """Elements with equal keys, made into datasets of up to `window_size` and reduced."""

    name = "_GroupByWindowDataset"

    def __init__(
        self,
        before: Pipe,
        key: Callable[..., Any],
        reduce: Callable[..., Any],
        window_size: Callable[..., Any],
        dataset: Callable[[Pipe], Any],
        window: Callable[[Any, list[Leaves]], Pipe],
    ) -> None:
        self._key = Traced(key, before.spec, "group_by_window")
        check_integer(self._key, "key_func")
        self._size = Traced(window_size, self._key.spec, "group_by_window")
        check_integer(self._size, "window_size_func")
        part_spec = spec_of_leaf(dataset(window(before.spec, [])))
        self._reduce = Traced(reduce, (self._key.spec, part_spec), "group_by_window")
        self._inner = self._reduce.inner()
        self._dataset, self._window = dataset, window
        functions = (self._key, self._size, self._reduce)
        super().__init__(self._inner.spec, before, symbols=[s for f in functions for s in f.symbols])

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        group_by_key: dict[int, tuple[int, list[Leaves]]] = {}
        for element in self.inputs[0].begin(iteration):
            (tensor,) = self._key(iteration, element)
            key = int(tensor)
            if key not in group_by_key:
                size = int(self._size(iteration, (tensor,))[0])
                if size <= 0:
                    raise out_of_bounds(f"Window size must be greater than zero, but got {size}.")
                group_by_key[key] = (size, [])
            size, group = group_by_key[key]
            group.append(element)
            if len(group) == size:
                del group_by_key[key]
                yield from self._reduced(iteration, tensor, group)
        for key in sorted(group_by_key):
            yield from self._reduced(iteration, convert_to_tensor(key, int64), group_by_key[key][1])

    def _reduced(self, iteration: Iteration, key: Any, group: list[Leaves]) -> Iterator[Leaves]:
        part = self._dataset(self._window(self.inputs[0].spec, group))
        yield from self._inner.begin(self._reduce.inner_run(iteration, (key, part)))


class GroupedByReducer(Pipe):
    """One element for each key: what is left of the elements with that key."""

    name = "_GroupByReducerDataset"

    def __init__(self, before: Pipe, key: Callable[..., Any], init: Any, reduce: Any, finalize: Any) -> None:
        self._key = Traced(key, before.spec, "group_by_reducer")
        check_integer(self._key, "key_func")
        self._init = Traced(init, self._key.spec, "group_by_reducer")
        state = nest.pack_sequence_as(self._init.spec, self._init.specs)
        self._reduce, spec = trace_with_state(reduce, state, before.spec, "reduce", lambda result: result)
        self._finalize = Traced(finalize, spec, "group_by_reducer")
        functions = (self._key, self._init, self._reduce, self._finalize)
        super().__init__(self._finalize.spec, before, symbols=[s for f in functions for s in f.symbols])

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        state_by_key: dict[int, Leaves] = {}
        for element in self.inputs[0].begin(iteration):
            key = self._key(iteration, element)
            number = int(key[0])
            if number not in state_by_key:
                state_by_key[number] = self._init(iteration, key)
            state_by_key[number] = self._reduce(iteration, (*state_by_key[number], *element))
        for number in sorted(state_by_key):
            yield self._finalize(iteration, state_by_key[number])


class WithoutErrors(Pipe):
    """The elements that could be made."""

    name = "_IgnoreErrorsDataset"

    def __init__(self, before: Pipe, warn: Callable[[str], None] | None) -> None:
        super().__init__(before.spec, before)
        self._warn = warn

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        before = self.inputs[0].begin(iteration)
        while True:
            try:
                yield next(before)
            except StopIteration:
                return
            except OpError as error:
                if self._warn is not None:
                    self._warn(f"ignore_errors: {error}")
