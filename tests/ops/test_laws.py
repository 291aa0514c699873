"""Laws that hold for every primitive, whichever way it is run: eagerly, in a function, in a TensorFlow 1 graph, when
recomputed; to the third order; and however often its rule has run before. test_rules.py and test_batching.py have the
others: reverse = forward = numeric, linear in the upstream gradient, rows together = rows alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapeflow as tf
from tests.ops import samples
from tests.ops.sample_makers import Maker
from tests.ops.samples import builders
from tests.ops.test_rules import (
    CASES,
    TWICE,
    WITH_RULE,
    Arrays,
    Function,
    assert_close,
    dense,
    difference,
    functions,
    inner,
    moved,
    prepared,
    pullback,
    pushforward,
    random_like,
    tensors,
)

v1 = tf.compat.v1
WITHOUT_THIRD_ORDER = ("Igamma", "Igammac", "CTCLossDense")  # they say so
REAL = [name for name in WITH_RULE if (name, "float64") in CASES]


def as_function(f: Callable[..., Any]) -> Callable[..., Any]:
    return tf.function(f, autograph=False)


def value_and_gradients(f: Function, x: list[Any], w: list[Any]) -> list[Any]:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(*x)
    return [*y, *dense(tape.gradient(y, x, output_gradients=w), f.x)]


def in_function(f: Function) -> list[Any]:
    run = as_function(lambda x, w: value_and_gradients(f, x, w))
    run(tensors(f.x), tensors(f.w))
    return run(tensors(f.x), tensors(f.w))  # the second call runs the plan


def in_session(f: Function) -> list[Any]:
    with tf.Graph().as_default(), v1.Session() as session:
        x = [v1.placeholder(a.dtype, a.shape) for a in f.x]
        w = [v1.placeholder(a.dtype, a.shape) for a in f.w]
        y = f(*x)
        dx = dense(tf.gradients(y, x, grad_ys=w), x)
        return session.run([*y, *dx], dict(zip([*x, *w], [*f.x, *f.w])))


def recomputed(f: Function) -> list[Any]:
    x, w = tensors(f.x), tensors(f.w)
    again = tf.recompute_grad(lambda *x: tuple(f(*x)))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = list(again(*x))
    return [*y, *dense(tape.gradient(y, x, output_gradients=w), f.x)]


@pytest.mark.parametrize("run", [in_function, in_session, recomputed])
@pytest.mark.parametrize("name", REAL)
def test_every_way_to_run_gives_what_eager_gives(name, run):
    for f, _, _ in functions(name, "float64"):
        expected = value_and_gradients(f, tensors(f.x), tensors(f.w))
        found = run(f)
        assert len(found) == len(expected)
        for got, value in zip(found, expected):
            message = f"{f.describe()}: {run.__name__}"
            np.testing.assert_allclose(np.asarray(got), np.asarray(value), rtol=1e-11, atol=1e-11, err_msg=message)


class Slopes:
    """<v, d<u, d<w, y>/dx>/dx> along fixed directions, and its derivative: the third order."""

    def __init__(self, f: Function, direction: Arrays, random: np.random.Generator):
        self.f, self.v = f, direction
        self.u = [d if i in f.followed else 0 * d for i, d in enumerate(random_like(random, f.x))]
        self.t = [d if i in f.followed else 0 * d for i, d in enumerate(random_like(random, f.x))]

    def first(self, *x: Any) -> list[Any]:
        return dense(pullback(self.f, list(x), tensors(self.f.w)), self.f.x)

    def second(self, *x: Any) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            dx = self.first(*x)
        return dense(tape.gradient(dx, list(x), output_gradients=tensors(self.v)), self.f.x)

    def third(self, *x: Any) -> list[Any]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            dx = self.second(*x)
        return dense(tape.gradient(dx, list(x), output_gradients=tensors(self.u)), self.f.x)

    def check(self) -> None:
        x = tensors(self.f.x)

        def slope_at(step: float) -> float:
            return inner(self.u, self.second(*tensors(moved(self.f.x, self.t, step))))

        expected, scale = difference(slope_at), 10 * abs(slope_at(0.0))
        reverse = inner(self.third(*x), self.t)
        assert_close(reverse, expected, scale, "the third derivative against differences", self.f)
        forward = inner(self.u, pushforward(self.second, x, tensors(self.t)))
        assert_close(forward, reverse, scale, "forward over reverse over reverse", self.f)
        traced = inner(as_function(self.third)(*x), self.t)
        assert_close(traced, reverse, scale, "the third derivative inside a function", self.f)


@pytest.mark.parametrize("name", [name for name in REAL if (name, "float64") in TWICE])
def test_third_order(name):
    if not samples.rule_is_derivative(name, "float64"):
        return
    f, direction, random = functions(name, "float64")[0]
    slopes = Slopes(f, direction, random)
    if name in WITHOUT_THIRD_ORDER:
        with pytest.raises(LookupError, match="third derivative"):
            slopes.third(*tensors(f.x))
        return
    slopes.check()


@pytest.mark.parametrize("name", REAL)
def test_rules_and_plans_keep_no_state(name):
    """The same call gives the same bits, whatever ran in between: other values, other shapes, other options."""
    calls = [prepared(name, builder(Maker(seed, "float64")), np.random.default_rng(seed))[0]
             for seed, builder in enumerate(builders(name))]  # fmt: skip
    runs = [as_function(lambda x, w, f=f: value_and_gradients(f, x, w)) for f in calls]
    eager = lambda f: value_and_gradients(f, tensors(f.x), tensors(f.w))  # noqa: E731
    first = [[np.asarray(t).tobytes() for t in eager(f)] for f in calls]
    traced = [[np.asarray(t).tobytes() for t in run(tensors(f.x), tensors(f.w))] for run, f in zip(runs, calls)]
    for f, run in zip(calls, runs):
        others = [0.5 * a for a in f.w]
        run(tensors(f.x), tensors(others))
        value_and_gradients(f, tensors(f.x), tensors(others))
    for f, run, before, before_traced in zip(calls, runs, first, traced):
        assert [np.asarray(t).tobytes() for t in eager(f)] == before, f.describe()
        assert [np.asarray(t).tobytes() for t in run(tensors(f.x), tensors(f.w))] == before_traced, f.describe()
