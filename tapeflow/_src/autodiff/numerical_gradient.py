"""`tf.numerical_gradient`: black boxes of Python and NumPy whose derivative is measured, not derived."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeflow._src import _core
from tapeflow._src.autodiff import finite_differences
from tapeflow._src.autodiff.custom_gradient import custom_gradient
from tapeflow._src.autodiff.finite_differences import ArrayFunction, Jacobian
from tapeflow._src.namespace import public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest
from tapeflow._src.types.logging import warn


class _BlackBox:
    """A function of arrays as an operation. Its pullback is a black box in turn, so there is a derivative of any order.

    `evaluate` takes the list of float64 arrays that are differentiated by, and gives the list of result arrays.
    """

    def __init__(self, evaluate: Callable[[list[np.ndarray]], list[np.ndarray]], owner: NumericalGradient) -> None:
        self.evaluate = evaluate
        self.owner = owner
        self.last: tuple[bytes, Jacobian] | None = None

    def flat(self, shapes: list[tuple[int, ...]]) -> ArrayFunction:
        """`evaluate` as a function from one vector to one vector."""

        def function(vector: np.ndarray) -> np.ndarray:
            results = self.evaluate(_split(vector, shapes))
            kind = complex if any(np.iscomplexobj(y) for y in results) else float
            return np.concatenate([np.zeros(0), *[np.asarray(y).ravel().astype(kind) for y in results]])

        return function

    def jacobian(self, xs: list[np.ndarray]) -> Jacobian:
        """The Jacobian at `xs`, measured once for as long as the point stays the same."""
        point = np.concatenate([np.zeros(0), *[x.ravel() for x in xs]])
        key = point.tobytes()
        if self.last is None or self.last[0] != key:
            function = self.flat([x.shape for x in xs])
            found = finite_differences.jacobian(function, point, self.owner.method, self.owner.step)
            self.owner.judge(found)
            self.last = key, found
        return self.last[1]

    def pull(self, xs: list[np.ndarray], dys: list[np.ndarray]) -> list[np.ndarray]:
        """The gradients by `xs` of the sum of `dys` times the results."""
        dy = np.concatenate([np.zeros(0), *[np.asarray(d).ravel() for d in dys]])
        return _split(dy @ self.jacobian(xs).value, [x.shape for x in xs])

    def push(self, xs: list[np.ndarray], x_dots: list[np.ndarray]) -> np.ndarray:
        """The derivative along `x_dots`, as one vector."""
        direction = np.concatenate([np.zeros(0), *[t.ravel() for t in x_dots]])
        values: np.ndarray = np.matmul(self.jacobian(xs).value, direction)
        return values

    def record(self, inputs: list[Any], results: list[Any]) -> list[Any]:
        """The results as tensors whose gradient by the tensors `inputs` is measured."""

        def run(*tensors: Any) -> tuple[Any, Callable[..., Any]]:
            arrays = [_wide(x) for x in tensors]

            def rule(*dys: Any) -> list[Any]:
                count = len(arrays)
                pullback = _BlackBox(lambda both: self.pull(both[:count], both[count:]), self.owner)
                gradients = self.pull(arrays, [_wide(dy) for dy in dys])
                return pullback.record(
                    [*tensors, *dys],
                    [convert_to_tensor(g.astype(x.dtype.as_numpy_dtype)) for g, x in zip(gradients, tensors)],
                )

            return list(results), rule

        operation = custom_gradient(run)

        def tangents(primals: Any, x_dots: Any) -> list[Any]:
            arrays = [_wide(x) for x in primals]
            moved = self.push(arrays, [np.zeros(x.shape) if t is None else _wide(t) for x, t in zip(arrays, x_dots)])
            shapes = [tuple(y.shape) for y in results]
            return [
                convert_to_tensor(part.astype(y.dtype.as_numpy_dtype))
                for part, y in zip(_split(moved, shapes), results)
            ]

        operation.def_jvp(tangents)
        return list(operation(*inputs))


class NumericalGradient:
    """A decorated black box; `estimate` reports how well its derivative is known."""

    def __init__(self, function: Callable[..., Any], method: str, step: float | None, tolerance: float) -> None:
        self.function = function
        self.method = method
        self.step = step
        self.tolerance = tolerance
        functools.update_wrapper(self, function)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """The function as a method: the instance is no input."""
        if instance is None:
            return self
        return NumericalGradient(functools.partial(self.function, instance), self.method, self.step, self.tolerance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, box, structure, results = self._prepare(args, kwargs)
        floats = [x for x in leaves if _is_real(x)]
        differentiable = [y for y in results if y.dtype.is_floating]
        recorded = iter(box.record(floats, differentiable) if floats and differentiable else differentiable)
        return nest.pack_sequence_as(structure, [next(recorded) if y.dtype.is_floating else y for y in results])

    def estimate(self, *args: Any, **kwargs: Any) -> Jacobian:
        """The Jacobian by all arguments side by side, the error of each element, smoothness, and the method used."""
        leaves, box, _, _ = self._prepare(args, kwargs)
        return box.jacobian([_wide(x) for x in leaves if _is_real(x)])

    def judge(self, found: Jacobian) -> None:
        """Warns if a derivative is known badly."""
        scale = np.max(np.abs(found.value), initial=0.0) + 1e-30
        poor = ~(found.error <= self.tolerance * np.maximum(np.abs(found.value), 0.03 * scale)) & (found.error > 1e-12)
        poor |= ~found.smooth
        if poor.any():
            row, column = (int(i) for i in np.argwhere(poor)[0])
            reason = "its error is large" if found.smooth[row, column] else "the function is not smooth there"
            warn(
                "numerical_gradient: the derivative of %s is poor in %d of %d elements; the first is output element %d "
                "by input element %d: %g +- %g (%s). Give `step`, the distance over which the function is smooth.",
                getattr(self.function, "__name__", self.function),
                int(poor.sum()),
                poor.size,
                row,
                column,
                found.value[row, column],
                found.error[row, column],
                reason,
            )

    def _prepare(self, args: Any, kwargs: Any) -> tuple[list[Any], _BlackBox, Any, list[Any]]:
        """The tensors among the arguments, the function of the floats among them, and the results as they come."""
        opaque = str | bytes | None
        leaves = [x if callable(x) or isinstance(x, opaque) else convert_to_tensor(x) for x in nest.flatten(args)]
        given = [x.numpy() if isinstance(x, _core.Tensor) else x for x in leaves]
        places = [i for i, x in enumerate(leaves) if _is_real(x)]
        structure = self._call(args, given, kwargs)
        results = [convert_to_tensor(y) for y in nest.flatten(structure)]
        kept = [i for i, y in enumerate(results) if y.dtype.is_floating]

        def evaluate(arrays: list[np.ndarray]) -> list[np.ndarray]:
            def run(cast: bool) -> list[np.ndarray]:
                values = list(given)
                for place, array in zip(places, arrays):
                    values[place] = array.astype(given[place].dtype) if cast else array.copy()
                outputs = nest.flatten(self._call(args, values, kwargs))
                return [np.asarray(outputs[i]) for i in kept]

            if any(np.iscomplexobj(a) for a in arrays):
                return run(cast=False)
            try:
                return run(cast=False)  # in float64, whatever the arguments: differences need the digits
            except (TypeError, ValueError):
                return run(cast=True)

        return leaves, _BlackBox(evaluate, self), structure, results

    def _call(self, args: Any, values: list[Any], kwargs: Any) -> Any:
        with _core.StopRecording(True):
            copies = [v.copy() if isinstance(v, np.ndarray) else v for v in values]
            return self.function(*nest.pack_sequence_as(args, copies), **kwargs)


def _is_real(x: Any) -> bool:
    return isinstance(x, _core.Tensor) and x.dtype.is_floating


def _wide(x: Any) -> np.ndarray:
    return np.asarray(x.numpy(), dtype=np.float64)


def _split(vector: np.ndarray, shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """A vector cut into arrays of the given shapes."""
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    return [part.reshape(shape) for part, shape in zip(np.split(vector, ends[:-1]), shapes)]


@public("numerical_gradient")
def numerical_gradient(
    f: Callable[..., Any] | None = None, *, method: str = "auto", step: float | None = None, tolerance: float = 1e-4
) -> Any:
    """Decorates a function of NumPy arrays so that tapes and accumulators differentiate it, by measuring.

    The derivative comes from a complex step where the function is analytic and takes complex arrays, and otherwise from
    extrapolated differences with an error estimate; `method` ("auto", "complex", "real") decides, and `step` gives the
    largest step. A warning is logged where the error exceeds `tolerance`, relative to the derivative, or where the
    function is not smooth. A gradient costs some ten calls for each input element (one, by complex steps).

    >>> @tf.numerical_gradient
    ... def black_box(x):
    ...     return np.sin(x) * x
    >>> x = tf.constant([0., 1.])
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = black_box(x)
    >>> tape.gradient(y, x)
    <tf.Tensor: shape=(2,), dtype=float32, numpy=array([0.       , 1.3817732], dtype=float32)>
    """
    if method not in ("auto", "complex", "real"):
        raise ValueError(f"numerical_gradient: method must be 'auto', 'complex' or 'real'; got {method!r}")
    if f is None:
        return functools.partial(numerical_gradient, method=method, step=step, tolerance=tolerance)
    return NumericalGradient(f, method, step, tolerance)
