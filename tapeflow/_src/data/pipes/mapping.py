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
from tapeflow._src.data.pipes.traced import Traced, in_user_function, integer_function, out_of_bounds
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import int64
from tapeflow._src.types.errors import InvalidArgumentError, OpError, OutOfRangeError
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

    def __init__(
        self,
        before: Pipe,
        function: Callable[..., Any],
        calls: Any = None,
        deterministic: bool | None = None,
        preserves_count: bool = True,
    ) -> None:
        self._function = Traced(function, before.spec, "map")
        super().__init__(self._function.spec, before, symbols=self._function.symbols)
        self._calls, self._deterministic = parallel_calls(calls, self), deterministic
        self.name = "_MapDataset" if calls is None else "_ParallelMapDataset"
        self.identity = self._function.is_identity
        self.calls_python = self._function.calls_python
        self._preserves_count = preserves_count

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        function, elements = functools.partial(self._mapped, iteration), self.inputs[0].begin(iteration)
        threads = threads_for(self._calls, iteration)
        if threads > 1 and not self._function.has_random_streams:
            ordered = iteration.is_ordered(self._deterministic)
            return Ahead(elements, threads, function, threads, ordered, at_once=self.calls_python or not ordered)
        # Unlike a generator, `map` goes on with the next element after an error.
        return map(function, elements)

    def _mapped(self, iteration: Iteration, element: Leaves) -> Leaves:
        try:
            return self._function(iteration, element)
        except OutOfRangeError as error:
            if not self._preserves_count:  # the function says where the elements end
                raise StopIteration from None
            raise InvalidArgumentError.of(f"Function invocation produced OutOfRangeError: {error.message}") from error
        except OpError as error:
            raise in_user_function(error, self, iteration) from error

    def count(self) -> int:
        return self.inputs[0].count()


class Filtered(Pipe):
    """The elements for which a function holds."""

    name = "_FilterDataset"

    def __init__(self, before: Pipe, function: Callable[..., Any]) -> None:
        self._function = Traced(function, before.spec, "filter")
        self._function.check_bool()
        super().__init__(before.spec, before, symbols=self._function.symbols)
        self.calls_python = self._function.calls_python

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        return filter(functools.partial(self._holds, iteration), self.inputs[0].begin(iteration))

    def _holds(self, iteration: Iteration, element: Leaves) -> bool:
        try:
            return self._function.as_bool(iteration, element)
        except OpError as error:
            raise in_user_function(error, self, iteration) from error

    def count(self) -> int:
        return UNKNOWN


class TakenWhile(Filtered):
    """The elements before the first for which a function does not hold."""

    name = "_TakeWhileDataset"

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        return itertools.takewhile(functools.partial(self._holds, iteration), self.inputs[0].begin(iteration))


class Scanned(Pipe):
    """`state, output = function(state, element)` for each element."""

    name = "_ScanDataset"

    def __init__(self, before: Pipe, initial: Any, function: Callable[..., Any]) -> None:
        self._state = as_element(initial)
        self._function, spec = trace_with_state(function, self._state, before.spec, "scan", lambda result: result[0])
        self._states = len(self.state_leaves())
        super().__init__(spec[1], before, symbols=[*self._function.symbols, *nest.flatten(self._state, True)])
        self.calls_python = self._function.calls_python

    def state_leaves(self) -> list[Any]:
        """The leaves of the first state."""
        return list(nest.flatten(self._state))

    def begin(self, iteration: Iteration) -> Iterator[Leaves]:
        state = tuple([iteration.leaf(leaf) for leaf in nest.flatten(self._state)])

        def advance(element: Leaves) -> Leaves:
            nonlocal state
            try:
                found = self._function(iteration, (*state, *element))
            except OutOfRangeError as error:  # only the source ends the elements
                raise InvalidArgumentError.of(
                    f"Function invocation produced OutOfRangeError: {error.message}"
                ) from error
            state = found[: self._states]
            return found[self._states :]

        return map(advance, self.inputs[0].begin(iteration))

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
        self._key = integer_function(key, before.spec, "group_by_window", "key_func")
        self._size = integer_function(window_size, self._key.spec, "group_by_window", "window_size_func")
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

    def count(self) -> int:
        return INFINITE if self.inputs[0].count() == INFINITE else UNKNOWN

    def _reduced(self, iteration: Iteration, key: Any, group: list[Leaves]) -> Iterator[Leaves]:
        part = self._dataset(self._window(self.inputs[0].spec, group))
        yield from self._inner.begin(self._reduce.inner_run(iteration, (key, part)))


class GroupedByReducer(Pipe):
    """One element for each key: what is left of the elements with that key."""

    name = "_GroupByReducerDataset"

    def __init__(self, before: Pipe, key: Callable[..., Any], init: Any, reduce: Any, finalize: Any) -> None:
        self._key = integer_function(key, before.spec, "group_by_reducer", "key_func")
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


def numbering(function: Callable[..., Any], spec: Any, who: str, iteration: Iteration) -> Callable[[Leaves], int]:
    """A function of elements that gives a number, traced."""
    traced = Traced(function, spec, who)
    if len(traced.leaves) != 1:
        raise TypeError(f"{who}: the function of elements must return one integer; got {traced.spec}")
    return lambda element: int(traced(iteration, element)[0])
