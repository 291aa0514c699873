"""Functions of users in datasets: traced once with symbolic elements, then run as one graph for each element."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, cast

import numpy as np

from tapeflow._src import _core
from tapeflow._src.control_flow.tracing import FuncGraph, building
from tapeflow._src.data.handles import tensors_of
from tapeflow._src.data.pipes.pipe import Iteration, Pipe, count_in
from tapeflow._src.data.pipes.structure import Leaves, all_dense, as_leaf, map_leaves, spec_of_leaf
from tapeflow._src.function.autograph.conversion import convert, user_traceback
from tapeflow._src.function.escape import refused_while_tracing
from tapeflow._src.function.function import Function
from tapeflow._src.ops.arrays.conversion import cast as cast_to
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.ops.random.seeds import seeded_streams
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import int64
from tapeflow._src.types.errors import InvalidArgumentError, OpError


class Traced:
    """A traced function of elements with the given specification; a plain tuple is passed as several arguments."""

    def __init__(self, function: Callable[..., Any], spec: Any, who: str) -> None:
        self._who = who
        self._input_specs = nest.flatten(spec)
        self._dense_inputs = all_dense(self._input_specs)
        self.graph = graph = FuncGraph(_core.current_graph())
        graph.is_function = True
        graph.name = f"Dataset_{who}"
        if isinstance(function, Function):
            converted: Any = function
        elif not callable(function):
            raise ValueError(f"Argument `func` must be a callable. Received func={function} (of type {type(function)})")
        else:
            converted = convert(function)
        with building(graph):
            flat = nest.flatten(self._input_specs, expand_composites=True)
            inputs = [graph.add_input(part.dtype, part.shape) for part in flat]
            element = nest.pack_sequence_as(spec, inputs, expand_composites=True)
            try:
                result = converted(*element) if type(element) is tuple else converted(element)
            except Exception as error:
                refused = refused_while_tracing(error)
                raise refused.with_traceback(user_traceback(error.__traceback__)) from error.__cause__
            self._set_result(tuple(result) if isinstance(result, list) else result)
            self.is_identity = len(self.leaves) == len(inputs) and all(map(operator.is_, self.leaves, inputs))
        self._streams, self._lock = seeded_streams(graph), Lock()
        nodes = filter(None, map(graph.node, range(graph.node_count)))  # None for a node that was taken back
        self.calls_python = any(operation == "EagerPyFunc" for operation, *_ in nodes)
        self.captures = graph.captures
        self.symbols = [tensor for tensor in self.captures if _core.is_symbolic(tensor)]

    def _set_result(self, result: Any) -> None:
        result = map_leaves(self._as_result, result)
        self.leaves = nest.flatten(result)
        self.spec = map_leaves(spec_of_leaf, result)
        self.specs = nest.flatten(self.spec)
        self._dense = all_dense(self.specs)
        self._parts = [self._parts_of(leaf) for leaf in self.leaves]
        self.graph.set_outputs([convert_to_tensor(part) for parts in self._parts for part in parts])

    def _as_result(self, leaf: Any) -> Any:
        try:
            return as_leaf(leaf)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"Unsupported return value from function passed to Dataset.{self._who}(): {leaf}. Consider casting "
                "to a tensor or a structure of tensors. The exception raised was: " + str(error)
            ) from None

    def _parts_of(self, leaf: Any) -> list[Any]:
        """The tensors that the graph must give for a leaf: for a dataset, the symbolic ones that it uses."""
        pipe = getattr(leaf, "_pipe", None)
        if isinstance(pipe, Pipe):
            symbols = [(tensor, _core.place_of(tensor)) for tensor in pipe.all_symbols()]
            return [tensor for tensor, place in symbols if place is not None and place[0] is self.graph]
        return nest.flatten(leaf, expand_composites=True) if leaf is not None else []

    def inner_pipes(self) -> list[Pipe]:
        """The pipes of the datasets among the leaves of the result."""
        found = [getattr(leaf, "_pipe", None) for leaf in self.leaves]
        return [pipe for pipe in found if isinstance(pipe, Pipe)]

    @property
    def has_random_streams(self) -> bool:
        """Whether it draws seeded random numbers: the calls for the elements then have an order."""
        return bool(self._streams)

    # ---- running

    def __call__(self, iteration: Iteration, leaves: Sequence[Any]) -> Leaves:
        """The leaves of the result for one element."""
        found = self._outputs(iteration, leaves)
        if self._dense:
            return tuple(found)
        rest = iter(found)
        return tuple(
            [
                self._rebuilt(iteration, leaf, spec, [next(rest) for _ in parts], leaves)
                for leaf, spec, parts in zip(self.leaves, self.specs, self._parts)
            ]
        )

    def _outputs(self, iteration: Iteration, leaves: Sequence[Any]) -> list[Any]:
        flat = leaves if self._dense_inputs else tensors_of(leaves)
        captures = self.captures
        if self.symbols:
            captures = [iteration.value(tensor) for tensor in captures]
        with _core.StopRecording(True):
            if self._streams:
                return self._outputs_of_run(iteration, [*flat, *captures])
            return self.graph.call([*flat, *captures])

    def _outputs_of_run(self, iteration: Iteration, arguments: list[Any]) -> list[Any]:
        """The outputs of a function with seeded random operations: their streams begin anew in each iteration."""
        with self._lock:
            states = iteration.states.get(id(self)) or [state for _, state in self._streams]
            for (stream, _), state in zip(self._streams, states):
                stream.assign(state)
            found = self.graph.call(arguments)
            iteration.states[id(self)] = [stream.read_value() for stream, _ in self._streams]
        return found

    def _rebuilt(self, iteration: Iteration, leaf: Any, spec: Any, parts: list[Any], given: Sequence[Any]) -> Any:
        if leaf is None or isinstance(leaf, _core.Tensor):
            return parts[0] if parts else None
        pipe = getattr(leaf, "_pipe", None)
        if isinstance(pipe, Pipe):
            return type(leaf)(Bound(pipe, iteration.within(self._parts_of(leaf), parts), given))
        return nest.pack_sequence_as(spec, parts, expand_composites=True)

    def as_bool(self, iteration: Iteration, leaves: Sequence[Any]) -> bool:
        """The result, one bool, for one element."""
        return bool(self._outputs(iteration, leaves)[0])

    def check_bool(self) -> None:
        """Raises unless the result is one bool."""
        spec = self.spec
        scalar = not nest.is_nested(spec) and getattr(spec, "shape", None) is not None and spec.shape.rank in (0, None)
        if not scalar or spec.dtype.name != "bool":
            raise ValueError(
                "Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor, but its return type is "
                f"{spec}."
            )

    def inner(self) -> Pipe:
        """The pipe of the one dataset that the function returns."""
        pipe = getattr(self.leaves[0], "_pipe", None) if len(self.leaves) == 1 else None
        if not isinstance(pipe, Pipe) or nest.is_nested(self.spec):
            raise TypeError(f"The `map_func` argument must return a `Dataset` object. Got {_type_name(self.spec)!r}.")
        return pipe

    def inner_run(self, iteration: Iteration, leaves: Sequence[Any]) -> Iteration:
        """An iteration over the dataset that the function returns for one element."""
        return iteration.within(self._parts[0], self._outputs(iteration, leaves))


def in_user_function(error: OpError, pipe: Pipe, iteration: Iteration) -> OpError:
    """The error of a user's function, with the place of the function in the dataset."""
    stage, kind = pipe.name.strip("_"), cast("Any", type(error))
    message = f"Error in user-defined function passed to {stage} transformation with iterator: "
    found: OpError = kind(error.node_def, error.op, f"{message}{iteration.path_to(pipe)}: {error.message}")
    return found


@contextmanager
def user_function(pipe: Pipe, iteration: Iteration) -> Iterator[None]:
    """A block that runs the user's function of a pipe; errors say so."""
    try:
        yield
    except OpError as error:
        raise in_user_function(error, pipe, iteration) from error


def _type_name(spec: Any) -> str:
    return type(spec).__name__ if nest.is_nested(spec) else getattr(spec.value_type, "__name__", str(spec))


class Bound(Pipe):
    """A pipe with the values of its symbolic tensors; `holds` must live as long as it."""

    def __init__(self, pipe: Pipe, iteration: Iteration, holds: Any = None) -> None:
        super().__init__(pipe.spec)
        self.name, self.indexed, self.sequential = pipe.name, pipe.indexed, pipe.sequential
        self._inner, self._iteration, self._holds = pipe, iteration, holds

    def begin(self, iteration: Iteration) -> Any:
        return self._inner.begin(self._iteration)

    def order(self, iteration: Iteration) -> Any:
        return self._inner.order(self._iteration)

    def advance(self, iteration: Iteration) -> None:
        self._inner.advance(self._iteration)

    def count(self) -> int:
        return count_in(self._inner, self._iteration)


def integer_function(function: Callable[..., Any], spec: Any, who: str, what: str) -> Traced:
    """The traced function, which gives one number, as int64."""
    converted: Any = function if isinstance(function, Function) else convert(function)

    def as_int64(*element: Any) -> Any:
        found = converted(*element)
        return cast_to(found, int64) if _core.is_tensor(found) or isinstance(found, int | np.generic) else found

    traced = Traced(as_int64, spec, who)
    found = traced.spec
    if nest.is_nested(found) or getattr(found, "dtype", None) != int64 or found.shape.rank:
        raise ValueError(f"Invalid `{what}`. `{what}` must return a single `tf.int64` scalar tensor, but got {found}.")
    return traced


def out_of_bounds(message: str) -> InvalidArgumentError:
    """An error of a value that a function gave."""
    return InvalidArgumentError.of(message)
