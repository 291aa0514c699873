"""The derivative of every primitive: reverse = forward = finite differences, at orders 1 and 2, real and complex.

A primitive is seen as a function of its float arrays. Complex gradients follow TensorFlow: with upstream gradient w,
dx is the steepest ascent of Re<w, y>. All comparisons are of such inner products along random directions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tapeflow as tf
from tapeflow._src import primitives
from tapeflow._src.primitives import facts_by_name
from tests.ops import sample_makers, sample_rows, samples
from tests.ops.sample_makers import Call, Maker
from tests.ops.samples import builders, gradient_dtypes_of, undifferentiated_inputs

Arrays = list[np.ndarray]

WITH_RULE = [name for name, facts in facts_by_name.items() if facts["gradient"] == "rule"]
CASES = [(name, dtype) for name in WITH_RULE for dtype in gradient_dtypes_of(name)]
TWICE = [case for case in CASES if case[0] not in samples.first_order_only]
STEP = 1e-3


def is_inexact(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind in "fc"


class Function:
    """One call of a primitive as a function from its float arrays to its float outputs."""

    def __init__(self, name: str, call: Call):
        self.name, self.call = name, call
        self.keys = list(call.kwargs)
        self.slots = tf.nest.flatten([list(call.args), [call.kwargs[key] for key in self.keys]])
        self.places = [i for i, slot in enumerate(self.slots) if is_inexact(slot)]
        self.x: Arrays = [self.slots[i] for i in self.places]
        self.w: Arrays = []

    def __call__(self, *x: Any) -> list[Any]:
        before = samples.before_by_name.get(self.name)
        if before:
            x = before(*x)
        slots = list(self.slots)
        for place, value in zip(self.places, x):
            slots[place] = value
        structure = [list(self.call.args), [self.call.kwargs[key] for key in self.keys]]
        args, values = tf.nest.pack_sequence_as(structure, slots)
        result = getattr(primitives, self.name)(*args, **dict(zip(self.keys, values)))
        if self.name in samples.after_by_name:
            result = samples.after_by_name[self.name](*tf.nest.flatten(result))
        return [y for y in tf.nest.flatten(result) if y.dtype.is_floating or y.dtype.is_complex]

    def describe(self) -> str:
        return f"{self.name} on {[(s.shape, s.dtype.name) if is_inexact(s) else s for s in self.slots]}"

    @property
    def followed(self) -> list[int]:
        """The inputs that have a gradient."""
        return [i for i in range(len(self.x)) if i not in undifferentiated_inputs.get(self.name, ())]


def tensors(arrays: Arrays) -> list[Any]:
    return [tf.constant(array) for array in arrays]


def dense(gradients: list[Any], like: Arrays) -> list[Any]:
    """Gradients as tensors: zeros where there is no path, IndexedSlices spread out."""
    return [tf.zeros_like(x) if dx is None else tf.convert_to_tensor(dx) for dx, x in zip(gradients, like)]


def inner(first: list[Any], second: list[Any]) -> float:
    """Re<first, second>, over all arrays."""
    return float(sum(np.sum(np.conj(np.asarray(a)) * np.asarray(b)).real for a, b in zip(first, second)))


def random_like(random: np.random.Generator, arrays: list[Any]) -> Arrays:
    """Directions of the arrays' shapes, with components in [-1, 1]."""
    directions = []
    for array in map(np.asarray, arrays):
        direction = random.uniform(-1, 1, array.shape)
        if array.dtype.kind == "c":
            direction = direction + 1j * random.uniform(-1, 1, array.shape)
        directions.append(direction.astype(array.dtype))
    return directions


def moved(arrays: Arrays, directions: Arrays, step: float) -> Arrays:
    return [array + step * direction for array, direction in zip(arrays, directions)]


def difference(f: Callable[[float], float]) -> float:
    """f'(0) by central differences at two distances, so that the error is of the fourth order."""
    near, far = (f(STEP) - f(-STEP)) / (2 * STEP), (f(2 * STEP) - f(-2 * STEP)) / (4 * STEP)
    return (4 * near - far) / 3


def assert_close(got: float, expected: float, scale: float, what: str, f: Function) -> None:
    __tracebackhide__ = True
    if not abs(got - expected) <= 1e-7 * (1 + abs(expected) + scale):
        pytest.fail(f"{f.describe()}\n{what}: got {got!r}, expected {expected!r}; inputs {f.slots}", pytrace=False)


def pullback(f: Function, x: list[Any], w: list[Any]) -> list[Any]:
    """dx for the upstream gradient w."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(*x)
    return tape.gradient(y, x, output_gradients=w)


def pushforward(f: Callable[..., list[Any]], x: list[Any], x_dot: list[Any]) -> list[Any]:
    """y_dot for the tangents x_dot."""
    with tf.autodiff.ForwardAccumulator(x, x_dot) as accumulator:
        y = f(*x)
    return accumulator.jvp(y, unconnected_gradients="zero")


def prepared(name: str, call: Call, random: np.random.Generator) -> tuple[Function, Arrays]:
    """The function with upstream gradients w for it, and a direction that leaves inputs without gradient alone."""
    f = Function(name, call)
    y = [np.asarray(t) for t in f(*tensors(f.x))]
    assert all(np.isfinite(a).all() for a in y), f"{f.describe()} is not finite: give it a domain in samples.py"
    f.w = random_like(random, y)
    direction = [d if i in f.followed else 0 * d for i, d in enumerate(random_like(random, f.x))]
    return f, direction


# ------------------------------------------------------------------------------------------------------- the laws


def check_reverse(f: Function, v: Arrays, _: Any = None) -> None:
    """<dx, v> is the slope of <w, y> along v, for each input apart."""
    dx = pullback(f, tensors(f.x), tensors(f.w))
    for i, gradient in enumerate(dx):
        if i not in f.followed:
            assert gradient is None, f"{f.describe()}: input {i} has a gradient; correct undifferentiated_inputs"
    dx = dense(dx, f.x)
    for gradient, x in zip(dx, f.x):
        assert gradient.shape == x.shape, f"{f.describe()}: a gradient of shape {gradient.shape} for {x.shape}"
        assert gradient.dtype.as_numpy_dtype == x.dtype
    for i in f.followed:
        along = [d if i == j else 0 * d for j, d in enumerate(v)]
        slope = difference(lambda t, along=along: inner(f.w, f(*tensors(moved(f.x, along, t)))))
        assert_close(inner([dx[i]], [v[i]]), slope, 0, f"gradient of input {i} against differences", f)


def check_forward(f: Function, v: Arrays, _: Any = None) -> None:
    """<w, J v> = <J^T w, v>"""
    x, w = tensors(f.x), tensors(f.w)
    forward = inner(w, pushforward(f, x, tensors(v)))
    reverse = inner(dense(pullback(f, x, w), f.x), v)
    assert_close(forward, reverse, 0, "forward mode against reverse mode", f)


def check_linear(f: Function, _: Arrays, random: np.random.Generator) -> None:
    """The gradient of 2 w - 3 w' is 2 dx - 3 dx'."""
    x, other = tensors(f.x), random_like(random, f.w)
    both = dense(pullback(f, x, tensors([2 * a - 3 * b for a, b in zip(f.w, other)])), f.x)
    first, second = (dense(pullback(f, x, tensors(w)), f.x) for w in (f.w, other))
    for dx, a, b in zip(both, map(np.asarray, first), map(np.asarray, second)):
        np.testing.assert_allclose(np.asarray(dx), 2 * a - 3 * b, rtol=1e-9, atol=1e-9, err_msg=f.describe())


def check_second_order(f: Function, v: Arrays, random: np.random.Generator) -> None:
    """The gradient of <dx, v> by x and by w: reverse over reverse = forward over reverse = differences."""
    x, w, v = tensors(f.x), tensors(f.w), tensors(v)
    count = len(x)
    u = random_like(random, f.x + f.w)
    u = [d if i >= count or i in f.followed else 0 * d for i, d in enumerate(u)]

    def gradient(*arguments: Any) -> list[Any]:
        return dense(pullback(f, list(arguments[:count]), list(arguments[count:])), f.x)

    def slope_at(t: float) -> float:
        return inner(v, gradient(*tensors(moved(f.x + f.w, u, t))))

    expected = difference(slope_at)
    scale = abs(slope_at(0.0))
    with tf.GradientTape() as tape:
        tape.watch(x + w)
        dx = gradient(*x, *w)
    reverse = dense(tape.gradient(dx, x + w, output_gradients=v), f.x + f.w)
    if samples.rule_is_derivative(f.name, f.x[0].dtype.name):
        assert_close(inner(reverse, u), expected, scale, "gradient of the gradient against differences", f)
    forward = inner(v, pushforward(gradient, x + w, tensors(u)))
    assert_close(forward, inner(reverse, u), scale, "forward over reverse against reverse over reverse", f)


def check_reverse_over_forward(f: Function, v: Arrays, random: np.random.Generator) -> None:
    """The gradient of <w, J v> by x is that of <dx, v>."""
    x, w, v = tensors(f.x), tensors(f.w), tensors(v)
    u = [d if i in f.followed else 0 * d for i, d in enumerate(random_like(random, f.x))]
    with tf.GradientTape() as tape:
        tape.watch(x)
        dx = dense(pullback(f, x, w), f.x)
    expected = inner(dense(tape.gradient(dx, x, output_gradients=v), f.x), u)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y_dot = pushforward(f, x, v)
    got = inner(dense(tape.gradient(y_dot, x, output_gradients=w), f.x), u)
    assert_close(got, expected, 0, "reverse over forward against reverse over reverse", f)


# ------------------------------------------------------------------------------------------------------- the tests


@pytest.mark.parametrize("name", facts_by_name)
def test_every_primitive_has_samples(name):
    try:
        rows = builders(name)
    except LookupError as error:
        pytest.fail(str(error), pytrace=False)
    assert rows
    assert facts_by_name[name]["gradient"] != "rule" or gradient_dtypes_of(name), f"{name} is never differentiated"


def functions(name: str, dtype: str) -> list[tuple[Function, Arrays, np.random.Generator]]:
    """One function for each builder of the primitive."""
    made = []
    for seed, builder in enumerate(builders(name)):
        random = np.random.default_rng(seed)
        made.append((*prepared(name, builder(Maker(seed, dtype)), random), random))
    return made


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_reverse_mode_is_the_derivative(name, dtype):
    for f, v, _ in functions(name, dtype):
        if samples.rule_is_derivative(name, dtype):
            check_reverse(f, v)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_forward_mode_equals_reverse_mode(name, dtype):
    for f, v, _ in functions(name, dtype):
        check_forward(f, v)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_gradient_is_linear_in_the_upstream_gradient(name, dtype):
    for f, v, random in functions(name, dtype):
        check_linear(f, v, random)


@pytest.mark.parametrize(("name", "dtype"), TWICE)
def test_second_order(name, dtype):
    for f, v, random in functions(name, dtype):
        check_second_order(f, v, random)


@pytest.mark.parametrize(("name", "dtype"), TWICE)
def test_reverse_over_forward(name, dtype):
    for f, v, random in functions(name, dtype):
        check_reverse_over_forward(f, v, random)


@pytest.mark.parametrize("name", WITH_RULE)
def test_examples(name):
    """Hypothesis chooses dtype, builder, shapes, parameters and the law to check; the values come from the seed."""
    choices = [(dtype, builder) for dtype in gradient_dtypes_of(name) for builder in builders(name)]

    @given(st.data())
    def run(data: st.DataObject) -> None:
        dtype, builder = choices[data.draw(st.integers(0, len(choices) - 1), "row")]
        law = data.draw(st.sampled_from(laws_of(name, dtype)), "law")
        seed = data.draw(st.integers(0, 2**32 - 1), "seed")
        call = builder(Maker(seed, dtype, lambda options: data.draw(st.sampled_from(options))))
        random = np.random.default_rng(seed)
        law(*prepared(name, call, random), random)

    run()


def laws_of(name: str, dtype: str) -> list[Callable[..., None]]:
    laws: list[Callable[..., None]] = [check_forward, check_linear]
    if samples.rule_is_derivative(name, dtype):
        laws.append(check_reverse)
    if name not in samples.first_order_only:
        laws += [check_second_order, check_reverse_over_forward]
    return laws


# ---------------------------------------------------------------------------------------- empty tensors and scalars

SHAPES_BY_FAMILY = {
    "unary": [((0,),), ((2, 0, 3),), ((),)],
    "binary": [((0,), (0,)), ((2, 0), (1, 1)), ((), (0, 3)), ((), ())],
    "reduction": [((0,),), ((2, 0, 3),), ((),)],
}
NO_EMPTY_RESULT = {"EuclideanNorm", "Max", "Mean", "Min"}  # of nothing: no derivative, infinite, or NaN
FAMILY_CASES = [
    (name, dtype)
    for name, dtype in CASES
    if facts_by_name[name]["family"] in SHAPES_BY_FAMILY and name not in sample_rows.builders_by_name
]


@pytest.mark.parametrize(("name", "dtype"), FAMILY_CASES)
def test_empty_tensors_and_scalars(name, dtype):
    family = facts_by_name[name]["family"]
    domains = samples.binary_domain(name) if family == "binary" else [samples.unary_domain(name)]
    for shapes in SHAPES_BY_FAMILY[family]:
        if family == "reduction" and () not in shapes and name in NO_EMPTY_RESULT:
            continue
        m = Maker(0, dtype)
        call = sample_makers.call(*(m(*shape, within=domain) for shape, domain in zip(shapes, domains)))
        f = Function(name, call)
        f.w = random_like(m.random, f(*tensors(f.x)))
        dx = dense(pullback(f, tensors(f.x), tensors(f.w)), f.x)
        assert [tuple(g.shape) for g in dx] == [x.shape for x in f.x], f.describe()
        assert all(np.isfinite(g).all() for g in dx), f.describe()
        v = [d if i in f.followed else 0 * d for i, d in enumerate(random_like(m.random, f.x))]
        check_forward(f, v)
        if name not in samples.first_order_only:
            check_second_order(f, v, m.random)


# ------------------------------------------------------------------------------------------------------ no gradient

FLOATING = [name for name in facts_by_name if gradient_dtypes_of(name)]


@pytest.mark.parametrize("name", [name for name in FLOATING if facts_by_name[name]["gradient"] == "none"])
def test_the_gradient_is_none(name):
    for dtype in gradient_dtypes_of(name):
        for builder in builders(name):
            f = Function(name, builder(Maker(0, dtype)))
            if not f.x:
                continue
            x = tensors(f.x)
            with tf.GradientTape() as tape, tf.autodiff.ForwardAccumulator(x, tensors(f.x)) as accumulator:
                tape.watch(x)
                y = f(*x)
            assert tape.gradient(y, x) == [None] * len(x) if y else True
            assert accumulator.jvp(y) == [None] * len(y)


@pytest.mark.parametrize("name", [name for name in FLOATING if facts_by_name[name]["gradient"] == "missing"] or [None])
def test_a_missing_gradient_is_an_error(name):
    if name is None:
        return
    f = Function(name, builders(name)[0](Maker(0, gradient_dtypes_of(name)[0])))
    with pytest.raises(LookupError, match=name):
        pullback(f, tensors(f.x), None)


# -------------------------------------------------------------------------------------------------------- one by one


def test_labels_have_a_gradient():
    """At the first order: in the second, TensorFlow takes the labels of a cross entropy for constants."""
    logits, labels = tensors([Maker(seed, "float64")(2, 3) for seed in (0, 1)])
    with tf.GradientTape() as tape:
        tape.watch(labels)
        losses = primitives.SoftmaxCrossEntropyWithLogits(logits, labels)
    np.testing.assert_allclose(tape.gradient(losses, labels), -primitives.LogSoftmax(logits), rtol=1e-12)
