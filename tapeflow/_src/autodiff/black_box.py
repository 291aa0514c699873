"""Python functions inside a computation: `tf.py_function` and `tf.numpy_function`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.autodiff.gradient_tape import GradientTape
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import cast, convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.dtypes import as_dtype
from tapeflow._src.types.errors import (
    InvalidArgumentError,
    OpError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
)
from tapeflow._src.types.tensor_shape import TensorShape
from tapeflow._src.types.tensor_spec import CompositeTensor, TensorSpec, TypeSpec


class GradientCall(NamedTuple):
    """What a node that runs a gradient computes: of which call, for which inputs, and for cotangents of which outputs.

    The node takes the inputs of the call and these cotangents.
    """

    run: Callable[[list[Any]], list[Any]]
    inputs: int
    sources: list[int]
    flowing: list[int]


def differentiable_call(
    run: Callable[[list[Any]], list[Any]],
    inputs: list[Any],
    specs: list[tuple[Any, TensorShape]],
    effect: bool,
    traceable: bool = False,
) -> list[Any]:
    """A node that calls `run` on the values of `inputs`; its gradient runs it again under a tape, to any order.

    What is `traceable` gives the same each time, and is traced into the graph when the shapes of its inputs are known.
    """

    def rule(inputs: list[Any], outputs: list[Any], dy: list[Any]) -> list[Any]:
        sources = [i for i, x in enumerate(inputs) if x.dtype.is_floating or x.dtype.is_complex]
        flowing = [j for j, d in enumerate(dy) if d is not None]

        def run_back(tensors: list[Any]) -> list[Any]:
            given, cotangents = list(tensors[: len(inputs)]), tensors[len(inputs) :]
            with GradientTape() as tape:
                # One tensor may be given twice; each place has a gradient of its own.
                watched = [primitives.Identity(given[i]) for i in sources]
                tape.watch(watched)
                for i, x in zip(sources, watched):
                    given[i] = x
                targets = run(given)
            dx: list[Any] = tape.gradient(
                [targets[j] for j in flowing], watched, cotangents, unconnected_gradients="zero"
            )
            return dx

        run_back.gradient_of = GradientCall(run, len(inputs), sources, flowing)  # type: ignore[attr-defined]
        specs = [(inputs[i].dtype, inputs[i].shape) for i in sources]
        found = differentiable_call(run_back, [*inputs, *(dy[j] for j in flowing)], specs, False, traceable)
        result: list[Any] = [None] * len(inputs)
        for i, dx in zip(sources, found):
            result[i] = dx
        return result

    dtypes, shapes = [dtype for dtype, _ in specs], [shape for _, shape in specs]
    return _core.call_python(run, inputs, dtypes, shapes, rule, effect, traceable)


def _call_in_graph(run: Callable[[list[Any]], Any], inputs: list[Any], types: Any, differentiable: bool) -> Any:
    """A node that calls `run`, a function of the user, which gives one tensor for each of the promised types."""
    several = isinstance(types, list | tuple)
    specs = [(as_dtype(dtype), TensorShape(None)) for dtype in (types if several else [types])]

    def run_flat(tensors: list[Any]) -> list[Any]:
        result = run(tensors)
        return result if several else [result]

    run_flat.user_function = "EagerPyFunc" if differentiable else "PyFunc"  # type: ignore[attr-defined]
    if differentiable:
        found = differentiable_call(run_flat, inputs, specs, effect=True)
    else:
        dtypes, shapes = [dtype for dtype, _ in specs], [shape for _, shape in specs]
        found = _core.call_python(run_flat, inputs, dtypes, shapes, None, True)
    graph = _core.current_graph()
    if not specs and graph is not None and graph.graph_mode:
        return graph.operation_at(graph.node_count - 1)
    return found if several else found[0]


def _outputs(result: Any, types: Any, convert: Callable[[Any, Any], Any]) -> Any:
    """The results of a call as tensors of the promised types: a list if a list of types is given."""
    if not isinstance(types, list | tuple):
        return convert(result, as_dtype(types))
    values = list(result) if isinstance(result, list | tuple) else [] if result is None else [result]
    if len(values) < len(types):
        raise InvalidArgumentError.of(
            f"py_function: Tout promises {len(types)} results; the function returned {len(values)}"
        )
    return [convert(value, as_dtype(dtype)) for value, dtype in zip(values, types)]


_KIND_BY_CLASS: dict[type[Exception], Any] = {
    TypeError: InvalidArgumentError,
    ValueError: InvalidArgumentError,
    StopIteration: OutOfRangeError,
    MemoryError: ResourceExhaustedError,
    NotImplementedError: UnimplementedError,
}


@functools.cache
def _both(kind: Any, own: Any) -> Any:
    """A class of errors that are of TensorFlow's kind for a failed operation, and of the function's own."""
    if own is StopIteration:  # it would end the loops that it passes
        return kind
    try:
        return type(kind.__name__, (kind, own), {})
    except TypeError:
        return kind


@contextmanager
def _told_as_operation() -> Iterator[None]:
    """Errors of the Python function become those of an operation, as in TensorFlow, and keep their own class too."""
    try:
        yield
    except OpError:
        raise
    except Exception as error:
        kind = next((kind for own, kind in _KIND_BY_CLASS.items() if isinstance(error, own)), UnknownError)
        plain = kind(None, None, f"{type(error).__name__}: {error}")
        own: Any = type(error)
        converted = Exception.__new__(_both(kind, own))  # the arguments of its __init__ are gone
        converted.__dict__.update({**vars(error), **vars(plain)})
        converted.args = plain.args
        raise converted from error


@public("py_function")
def py_function(
    func: Callable[..., Any] | None = None, inp: Any = None, Tout: Any = None, name: str | None = None
) -> Any:
    """Calls a Python function with tensors; gradients flow through the operations it runs.

    >>> tf.py_function(lambda x: x * 2., [3.], tf.float32)
    <tf.Tensor: shape=(), dtype=float32, numpy=6.0>
    """
    if func is None:
        return functools.partial(_decorated, py_function, Tout)
    _require_callable(func, "py_function")
    if any(isinstance(x, CompositeTensor) for x in inp) or any(
        isinstance(t, TypeSpec) for t in (Tout if isinstance(Tout, list | tuple) else [Tout])
    ):
        return _call_with_specs(func, inp, Tout)

    def convert(value: Any, dtype: Any) -> Any:
        if _core.is_tensor(value) and value.dtype != dtype:
            raise InvalidArgumentError.of(
                f"py_function: Tout promises {dtype.name}; the function returned {value.dtype.name}"
            )
        return convert_to_tensor(0 if value is None else value, dtype=dtype)

    def run(tensors: list[Any]) -> Any:
        with _told_as_operation():
            result = func(*tensors)
        return _outputs(result, Tout, convert)

    inputs = [convert_to_tensor(x) for x in inp]
    return _call_in_graph(run, inputs, Tout, True) if _core.is_tracing() else run(inputs)


def _require_callable(func: Any, who: str) -> None:
    if not callable(func):
        raise ValueError(f"{who}: `func` must be a callable; got {func!r}")


def _call_with_specs(func: Callable[..., Any], inp: Any, types: Any) -> Any:
    """`py_function` with ragged, sparse or other composite tensors among its arguments or promised results."""
    several = isinstance(types, list | tuple)
    specs = [t if isinstance(t, TypeSpec) else TensorSpec(None, t) for t in (types if several else [types])]

    def run(*tensors: Any) -> list[Any]:
        result = func(*nest.pack_sequence_as(list(inp), list(tensors), expand_composites=True))
        values = list(result) if isinstance(result, list | tuple) else [] if several and result is None else [result]
        values = [convert_to_tensor(v) if isinstance(spec, TensorSpec) and not isinstance(v, CompositeTensor) else v
                  for v, spec in zip(values, specs)]  # fmt: skip
        if len(values) != len(specs) or not all(spec.is_compatible_with(v) for v, spec in zip(values, specs)):
            raise InvalidArgumentError.of(
                f"py_function: func={func} returned {result!r}, which did not match Tout={types!r}."
            )
        return [tensor for v, spec in zip(values, specs) for tensor in spec._to_tensor_list(v)]

    parts: list[list[Any]] = [spec._flat_tensor_specs for spec in specs]
    leaves = nest.flatten(list(inp), expand_composites=True)
    found: Any = py_function(run, leaves, [part.dtype for flat in parts for part in flat])
    if not specs:
        return found
    results, flat_results = [], iter(found)
    for spec, flat in zip(specs, parts):
        tensors = [next(flat_results) for _ in flat]
        for tensor, part in zip(tensors, flat):
            tensor.set_shape(part.shape)
        results.append(spec._from_tensor_list(tensors))
    return results if several else results[0]


def _decorated(function: Callable[..., Any], types: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """`@tf.py_function(Tout=...)` above a function."""
    return functools.wraps(func)(lambda *args: function(func, list(args), types))


@public("numpy_function")
def numpy_function(
    func: Callable[..., Any] | None = None,
    inp: Any = None,
    Tout: Any = None,
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Calls a Python function with NumPy arrays. No gradient flows through it.

    >>> tf.numpy_function(lambda x: x + x, [3.], tf.float32)
    <tf.Tensor: shape=(), dtype=float32, numpy=6.0>
    """
    if func is None:
        return functools.partial(_decorated, numpy_function, Tout)
    _require_callable(func, "numpy_function")

    in_graph = _core.is_tracing()

    def run(tensors: list[Any]) -> Any:
        arrays = [np.asarray(tensor.numpy()) for tensor in tensors]
        with _core.StopRecording(True), _told_as_operation() if in_graph else nullcontext():
            result = func(*arrays)
        return _outputs(result, Tout, lambda value, dtype: cast(convert_to_tensor(value), dtype))

    inputs = [convert_to_tensor(x) for x in inp]
    return _call_in_graph(run, inputs, Tout, False) if in_graph else run(inputs)
