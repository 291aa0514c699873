"""Derivatives against each other: `tf.test.compute_gradient` and `tf.debugging.check_gradients`.

Jacobians here are real matrices, [outputs, inputs]; a complex number counts as two: its real and imaginary part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapeflow._src import _core, primitives
from tapeflow._src.autodiff.finite_differences import directional_derivative
from tapeflow._src.autodiff.forward_accumulator import ForwardAccumulator
from tapeflow._src.autodiff.gradient_tape import GradientTape
from tapeflow._src.autodiff.graph_gradients import gradients
from tapeflow._src.namespace import find_public, public
from tapeflow._src.ops.arrays.conversion import convert_to_tensor
from tapeflow._src.types import nest

# How exact a derivative is, by the dtype it is computed in, relative to the largest of the same output.
_MOST_ORDERS = 8
_TOLERANCE = {
    "float64": 1e-6,
    "complex128": 1e-6,
    "float32": 2e-3,
    "complex64": 2e-3,
    "float16": 5e-2,
    "bfloat16": 2e-1,
}


def _is_differentiable(x: Any) -> bool:
    return isinstance(x, _core.Tensor) and (x.dtype.is_floating or x.dtype.is_complex)


def _parts(x: Any) -> int:
    return 2 if x.dtype.is_complex else 1


def _to_vector(values: list[Any]) -> np.ndarray:
    """Tensors or arrays as one vector of real numbers."""
    arrays = [np.asarray(v.numpy() if isinstance(v, _core.Tensor) else v).ravel() for v in values]
    wide = [a.astype(np.complex128).view(np.float64) if np.iscomplexobj(a) else a.astype(np.float64) for a in arrays]
    return np.concatenate([np.zeros(0), *wide])


def _from_vector(vector: np.ndarray, like: list[Any]) -> list[Any]:
    """Tensors of the dtypes and shapes of `like` from one vector of real numbers."""
    return [convert_to_tensor(array) for array in _arrays(vector, like)]


def _arrays(vector: np.ndarray, like: list[Any]) -> list[Any]:
    result, start = [], 0
    for x in like:
        count = int(np.prod(x.shape)) * _parts(x)
        part, start = vector[start : start + count], start + count
        array = part.copy().view(np.complex128) if x.dtype.is_complex else part
        result.append(array.reshape(x.shape).astype(x.dtype.as_numpy_dtype))
    return result


class _Problem:
    """A function and the point at which it is differentiated."""

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        self.function = function
        self.arguments = [convert_to_tensor(a) for a in arguments]
        self.places = [i for i, a in enumerate(self.arguments) if _is_differentiable(a)]
        self.xs = [self.arguments[i] for i in self.places]
        self.point = _to_vector(self.xs)
        with _core.StopRecording(True):
            self.ys = self.results(self.xs)

    def results(self, xs: list[Any]) -> list[Any]:
        arguments = list(self.arguments)
        for place, x in zip(self.places, xs):
            arguments[place] = x
        ys = [convert_to_tensor(y) for y in nest.flatten(self.function(*arguments))]
        return [y for y in ys if _is_differentiable(y)]

    def value(self, vector: np.ndarray) -> np.ndarray:
        with _core.StopRecording(True):
            return _to_vector(self.results(_from_vector(vector, self.xs)))

    def reverse(self) -> np.ndarray:
        """The Jacobian, a row for each output: what the tape gives for one 1 (or i) at a time."""
        with GradientTape(persistent=True) as tape:
            tape.watch(self.xs)
            ys = self.results(self.xs)
        rows = []
        outputs = _to_vector(ys).size
        for unit in np.eye(outputs):
            gradients = tape.gradient(ys, self.xs, output_gradients=_from_vector(unit, ys))
            dense = [_zeros(x) if g is None else convert_to_tensor(g) for g, x in zip(gradients, self.xs)]
            rows.append(_to_vector(dense))
        return np.stack(rows) if rows else np.zeros((0, self.point.size))

    def forward(self) -> np.ndarray:
        """The Jacobian, a column for each input: what forward mode gives for one 1 (or i) at a time."""
        columns = []
        for unit in np.eye(self.point.size):
            with ForwardAccumulator(self.xs, _from_vector(unit, self.xs)) as accumulator:
                ys = self.results(self.xs)
            tangents = [accumulator.jvp(y) for y in ys]
            columns.append(_to_vector([_zeros(y) if t is None else t for t, y in zip(tangents, ys)]))
        return np.stack(columns, axis=1) if columns else np.zeros((_to_vector(self.ys).size, 0))

    def describe(self, values: list[Any], position: int) -> tuple[int, tuple[int, ...]]:
        """Which of `values`, and which element of it, stands at `position` of their vector."""
        for which, x in enumerate(values):
            count = int(np.prod(x.shape)) * _parts(x)
            if position < count:
                return which, tuple(int(i) for i in np.unravel_index(position // _parts(x), tuple(x.shape)))
            position -= count
        raise IndexError(position)


class _SessionProblem(_Problem):
    """The same in a graph of TensorFlow 1: the nodes are made once, and run in the default session."""

    def __init__(self, function: Callable[..., Any], arguments: Sequence[Any], graph: Any) -> None:
        self._session = graph.default_session()
        if self._session is None:
            raise ValueError("compute_gradient: in a graph there must be a default session; open one with `with`")
        values = [self._session.run(a) if _core.is_symbolic(a) else a.numpy() for a in arguments]
        self.point = _to_vector(values)
        placeholder = find_public("compat.v1.placeholder")
        self.xs = [placeholder(a.dtype, np.shape(value)) for a, value in zip(arguments, values)]
        self.function, self.arguments, self.places = function, list(arguments), list(range(len(arguments)))
        self.ys = self.results(self.xs)

    def _run(self, fetches: list[Any], feeds: list[Any], vectors: list[np.ndarray]) -> list[Any]:
        values = [_arrays(vector, like) for vector, like in zip(vectors, feeds)]
        pairs = zip([key for like in feeds for key in like], [value for part in values for value in part])
        found: list[Any] = self._session.run(fetches, dict(pairs))
        return found

    def value(self, vector: np.ndarray) -> np.ndarray:
        return _to_vector(self._run(self.ys, [self.xs], [vector]))

    def reverse(self) -> np.ndarray:
        shapes = [np.shape(y) for y in self._run(self.ys, [self.xs], [self.point])]
        weights = [find_public("compat.v1.placeholder")(y.dtype, shape) for y, shape in zip(self.ys, shapes)]
        found = gradients(self.ys, self.xs, weights, unconnected_gradients="zero")
        dense = [convert_to_tensor(g) for g in found]
        units = np.eye(sum(int(np.prod(shape)) * _parts(y) for y, shape in zip(self.ys, shapes)))
        rows = [_to_vector(self._run(dense, [self.xs, weights], [self.point, unit])) for unit in units]
        return np.stack(rows) if rows else np.zeros((0, self.point.size))


def _zeros(x: Any) -> Any:
    return convert_to_tensor(np.zeros(tuple(x.shape), x.dtype.as_numpy_dtype))


def _gradient_of(function: Callable[..., Any], seed: int) -> Callable[..., list[Any]]:
    """The gradient of a random weighting of the results of `function`, as a function of the same arguments."""

    def gradient(*arguments: Any) -> list[Any]:
        random = np.random.default_rng(seed)
        sources = [a for a in arguments if _is_differentiable(a)]
        with GradientTape() as tape:
            tape.watch(sources)
            total = []
            for y in nest.flatten(function(*arguments)):
                if _is_differentiable(y):
                    weight = random.uniform(0.5, 1.5, tuple(y.shape)) * random.choice([-1, 1], tuple(y.shape))
                    total.append(primitives.Sum(y * convert_to_tensor(weight.astype(y.dtype.as_numpy_dtype))))
        gradients = tape.gradient(total, sources)
        return [_zeros(x) if g is None else convert_to_tensor(g) for g, x in zip(gradients, sources)]

    return gradient


@public("test.compute_gradient")
def compute_gradient(f: Callable[..., Any], x: Any, delta: float | None = None) -> tuple[Any, Any]:
    """The Jacobians of `f` at the arguments `x`, by the tape and by central differences with step `delta`.

    Gives two tuples of matrices [outputs, inputs], one for each argument. A complex number counts as two real ones.

    >>> tf.test.compute_gradient(lambda v: v * v, [[1., 2.]])[0]
    (array([[2., 0.],
           [0., 4.]], dtype=float32),)
    """
    if not isinstance(x, list | tuple):
        raise ValueError(
            "`x` must be a list or tuple of values convertible to a Tensor (arguments to `f`), not a "
            f"{type(x)}. compute_gradient: write compute_gradient(f, [x])."
        )
    delta = 1.0 / 1024 if delta is None else delta
    arguments = [convert_to_tensor(a) for a in x]
    for i, a in enumerate(arguments):
        if not _is_differentiable(a):
            raise AssertionError(f"Cannot compute gradient for unsupported type {a.dtype.name} of argument {i}")
    graph = _core.current_graph()
    in_session = graph is not None and graph.graph_mode
    problem = _SessionProblem(f, arguments, graph) if in_session else _Problem(f, arguments)
    theory, columns = problem.reverse(), []
    for unit in np.eye(problem.point.size):
        high, low = problem.value(problem.point + delta * unit), problem.value(problem.point - delta * unit)
        columns.append((high - low) / (2 * delta))
    measured = np.stack(columns, axis=1) if columns else np.zeros(theory.shape)
    ends = np.cumsum([int(np.prod(a.shape)) * _parts(a) for a in problem.xs])[:-1]

    def by_argument(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        kinds = [np.float64 if a.dtype.is_complex else a.dtype.as_numpy_dtype for a in arguments]
        return tuple(part.astype(kind) for part, kind in zip(np.split(matrix, ends, axis=1), kinds))

    return by_argument(theory), by_argument(measured)


class Disagreement(NamedTuple):
    """One element of a Jacobian about which reverse mode, forward mode and differences do not agree."""

    order: int
    culprit: str  # "reverse", "forward", "reverse and forward", "numeric"
    argument: int
    element: tuple[int, ...]  # of the argument
    output: int
    output_element: tuple[int, ...]
    reverse: float
    forward: float
    numeric: float
    numeric_error: float
    smooth: bool

    def __str__(self) -> str:
        verdict = {
            "reverse": "reverse mode is wrong: forward mode and differences agree",
            "forward": "forward mode is wrong: reverse mode and differences agree",
            "reverse and forward": "reverse and forward mode agree with each other, but not with differences",
            "all": "no two of the three agree",
        }[self.culprit]
        place = (
            f"order {self.order}, output {self.output} element {list(self.output_element)} by argument {self.argument} "
            f"element {list(self.element)}"
        )
        kink = (
            ""
            if self.smooth
            else "; the function is not smooth there, and the value is outside its one-sided derivatives"
        )
        return (
            f"{place}: {verdict}{kink} (reverse {self.reverse:.9g}, forward {self.forward:.9g}, "
            f"numeric {self.numeric:.9g} +- {self.numeric_error:.1g})"
        )


class GradientReport(NamedTuple):
    """What `tf.debugging.check_gradients` found."""

    passed: bool
    checked: int  # elements of Jacobians
    disagreements: list[Disagreement]
    not_smooth: list[Disagreement]  # kinks where the value is a derivative between those of the two sides

    def __str__(self) -> str:
        if self.passed:
            kinks = f"; not smooth in {len(self.not_smooth)}" if self.not_smooth else ""
            return f"check_gradients: {self.checked} derivatives agree{kinks}"
        shown = "\n  ".join(str(d) for d in self.disagreements[:5])
        return f"check_gradients: {len(self.disagreements)} of {self.checked} derivatives disagree:\n  {shown}"


@public("debugging.check_gradients")
def check_gradients(
    function: Callable[..., Any],
    arguments: Any,
    order: int = 2,
    tolerance: float | None = None,
    raise_error: bool = True,
) -> GradientReport:
    """Compares the derivatives of `function` by reverse mode, forward mode and differences, up to `order`.

    Raises AssertionError that says which of the three is wrong, in which element, and whether the function is simply
    not smooth there; with `raise_error=False` the report is only returned. At a kink any value between the
    one-sided derivatives is right. `tolerance` is relative to the largest derivative of the same output.

    >>> tf.debugging.check_gradients(lambda x: tf.sin(x) * x, [tf.constant([0.5, 2.], tf.float64)]).passed
    True
    """
    if not isinstance(arguments, list | tuple):
        raise ValueError(f"check_gradients: arguments must be a list or tuple; got {type(arguments).__name__}")
    if not 1 <= order <= _MOST_ORDERS:
        raise ValueError(
            f"check_gradients: order must be at least 1 and at most {_MOST_ORDERS}, as each order differentiates all "
            f"that the ones below compute; got {order}"
        )
    wrong: list[Disagreement] = []
    kinks: list[Disagreement] = []
    checked = 0
    tensors = [convert_to_tensor(a) for a in arguments]
    for level in range(1, order + 1):
        problem = _Problem(function, tensors)
        if not problem.xs:
            raise ValueError("check_gradients: no argument is a float or complex tensor, so there is no derivative")
        again = problem.value(problem.point)
        if not np.array_equal(again, _to_vector(problem.ys), equal_nan=True):
            raise ValueError("check_gradients: the function gives other values when called again; fix its random seed")
        checked += again.size * problem.point.size
        _compare(problem, level, tolerance, wrong, kinks)
        if wrong:
            break
        function = _gradient_of(function, level)
    report = GradientReport(not wrong, checked, wrong, kinks)
    if wrong and raise_error:
        raise AssertionError(str(report))
    return report


def _compare(
    problem: _Problem, order: int, tolerance: float | None, wrong: list[Disagreement], kinks: list[Disagreement]
) -> None:
    """Adds to `wrong` and `kinks` the elements of one Jacobian on which the three methods do not agree."""
    reverse, forward = problem.reverse(), problem.forward()
    names = {x.dtype.name for x in [*problem.xs, *problem.ys]}
    relative = max(_TOLERANCE[name] for name in names) if tolerance is None else tolerance
    for column, unit in enumerate(np.eye(problem.point.size)):
        numeric = directional_derivative(problem.value, problem.point, unit)
        for row in range(reverse.shape[0]):
            back, ahead, derivative = (
                float(reverse[row, column]),
                float(forward[row, column]),
                float(numeric.value[row]),
            )
            error = float(numeric.error[row])
            largest = max(
                float(np.max(np.abs(reverse[row]))), abs(ahead), abs(derivative) if np.isfinite(derivative) else 0.0
            )
            exact = relative * max(largest, 1e-3)
            measured = exact + min(4 * error, 0.05 * max(largest, 1e-3))
            close = abs(back - ahead) <= exact, abs(back - derivative) <= measured, abs(ahead - derivative) <= measured
            smooth = bool(numeric.smooth[row])
            if all(close) and smooth:
                continue
            culprit = _culprit(*close)
            argument, element = problem.describe(problem.xs, column)
            output, output_element = problem.describe(problem.ys, row)
            found = Disagreement(
                order,
                culprit,
                problem.places[argument],
                element,
                output,
                output_element,
                back,
                ahead,
                derivative,
                error,
                smooth,
            )
            low, high = sorted((float(numeric.left[row]), float(numeric.right[row])))
            slack = measured + 1e-3 * (high - low)
            if not smooth and low - slack <= back <= high + slack and low - slack <= ahead <= high + slack:
                kinks.append(found)
            elif not all(close):
                wrong.append(found)


def _culprit(same_modes: bool, reverse_fits: bool, forward_fits: bool) -> str:
    if same_modes and not (reverse_fits and forward_fits):
        return "reverse and forward"
    if forward_fits:
        return "reverse"
    return "forward" if reverse_fits else "all"
