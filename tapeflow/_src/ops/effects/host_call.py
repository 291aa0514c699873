"""Operations that are Python functions of their arguments' values: run at once, or as one node while tracing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from tapeflow._src import _core
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.tensor_spec import CompositeTensor


def host_call(
    run: Callable[..., Any],
    inputs: list[Any],
    outputs: list[tuple[Any, Any]],
    *,
    reads: bool = False,
    effect: bool = False,
) -> list[Any]:
    """`run(*inputs)`, which gives a list of tensors of the dtypes and shapes `outputs`.

    While tracing it becomes a node if an input is symbolic, or if it `reads` or changes (`effect`) the world outside.
    """
    traced = any(_core.is_symbolic(x) for x in inputs)
    if not traced and not ((reads or effect) and _core.current_graph() is not None):
        found: list[Any] = run(*inputs)
        return found
    raw_call = getattr(run, "raw_call", None) or _composition_call(inputs, effect)
    dtypes, shapes = [as_dtype(dtype) for dtype, _ in outputs], [TensorShape(shape) for _, shape in outputs]
    return _core.call_python(_OneByOne(run, raw_call), inputs, dtypes, shapes, None, effect)


class _Frames(threading.local):
    """The compositions that are being traced, the innermost last: function, arguments, named arguments."""

    def __init__(self) -> None:
        self.stack: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []


frames = _Frames()


class Place:
    """In place of a tensor among the arguments of a call: which input of the node it is."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number


class CompositePlace:
    """In place of a sparse or ragged tensor among the arguments: its parts, places or tensors."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: type, parts: list[Any]) -> None:
        self.kind, self.parts = kind, parts


class CompositionCall(NamedTuple):
    """The public function that a node stands for, with its arguments; symbolic tensors are places among the inputs."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    effect: bool = False
    whole: bool = False  # the outputs of the node are what the function gives
    resource: Any = None  # the variable that it changes


def _composition_call(inputs: list[Any], effect: bool) -> CompositionCall | None:
    """What is being traced, unless it uses other tensors than the inputs."""
    if not frames.stack:
        return None
    function, args, kwargs = frames.stack[-1]
    place_by_id = {id(x): Place(i) for i, x in enumerate(inputs)}
    flat: list[int] = []

    def placed(leaf: Any) -> Any:
        if isinstance(leaf, CompositeTensor):
            parts = [place_by_id.get(id(part)) for part in nest.flatten(leaf, expand_composites=True)]
            if None not in parts:
                return CompositePlace(type(leaf), parts)
            values = id(getattr(leaf, "flat_values", None))  # a function of each string runs on these alone
            if values not in place_by_id:
                raise KeyError(leaf)
            flat.append(values)
            return place_by_id[values]
        found = place_by_id.get(id(leaf))
        if found is None and _core.is_symbolic(leaf):
            raise KeyError(leaf)
        return leaf if found is None else found

    try:
        found = nest.map_structure(placed, [list(args), kwargs])
    except KeyError:
        return None
    if flat and any(_core.is_symbolic(x) and id(x) not in flat for x in inputs):  # the rows matter, too
        return None
    return CompositionCall(function, tuple(found[0]), found[1], effect)


class _OneByOne:
    """A function of a list that gives its items to another one. `raw_call` says what is written into files for it."""

    def __init__(self, run: Callable[..., Any], raw_call: Any) -> None:
        self._run, self.raw_call = run, raw_call

    def __call__(self, tensors: list[Any]) -> Any:
        return self._run(*tensors)


def host_effect(run: Callable[..., Any], inputs: list[Any]) -> Any:
    """`run(*inputs)`, which changes the world outside and gives nothing; in a graph of TensorFlow 1, the operation."""
    graph = _core.current_graph()
    if graph is None or not graph.graph_mode:
        host_call(_Effect(run, False), inputs, [], effect=True)
        return None
    return host_call(_Effect(run, True), inputs, [("bool", [])], effect=True)[0].op


class WithCall:
    """A function for its effect on its tensors, which files know as the call of a function `named`."""

    def __init__(
        self, run: Callable[..., Any], named: Callable[..., Any], count: int, options: dict[str, Any] | None = None
    ) -> None:
        self._run = run
        self.raw_call = CompositionCall(named, tuple(Place(i) for i in range(count)), options or {}, effect=True)

    def __call__(self, *values: Any) -> Any:
        return self._run(*values)


def call_with_places(
    function: Callable[..., Any], structure: Any, leaves: list[Any], places: list[int], effect: bool, whole: bool
) -> CompositionCall:
    """The call of a function whose tensors, the leaves at these places of its arguments, are inputs of a node."""
    given = list(leaves)
    for number, place in enumerate(places):
        given[place] = Place(number)
    rest = iter(given)

    def taken(leaf: Any) -> Any:
        if not isinstance(leaf, CompositeTensor):
            return next(rest)
        return CompositePlace(type(leaf), [next(rest) for _ in nest.flatten(leaf, expand_composites=True)])

    args, kwargs = nest.map_structure(taken, structure)
    return CompositionCall(function, tuple(args), kwargs, effect, whole)


class _Effect:
    """A function for its effect, which gives nothing, or true where a node must have an output."""

    def __init__(self, run: Callable[..., Any], reports: bool) -> None:
        self._run, self._reports, self.raw_call = run, reports, getattr(run, "raw_call", None)

    def __call__(self, *values: Any) -> list[Any]:
        self._run(*values)
        return [_core.convert_to_tensor(True, None, None, "host_effect")] if self._reports else []
