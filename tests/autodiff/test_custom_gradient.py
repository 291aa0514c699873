"""Custom rules in all their forms, what is refused, and forward mode through them."""

import contextlib
import gc
import inspect
import weakref

import numpy as np
import pytest

import tapeflow as tf

X = tf.constant([1.0, 2.0])


def gradient(function, *xs, **keywords):
    with tf.GradientTape() as tape:
        tape.watch([x for x in xs if isinstance(x, tf.Tensor)])
        y = function(*xs, **keywords)
    return tape.gradient(y, list(xs))


def tangent(function, x):
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = function(x)
    return accumulator.jvp(y)


def test_variables_inside():
    v = tf.Variable(3.0, name="v")

    @tf.custom_gradient
    def function(x):
        def rule(dy, variables):
            assert variables[0] is v
            return dy * 10.0, [tf.reduce_sum(dy) * 100.0]

        return x * v, rule

    with tf.GradientTape() as tape:
        tape.watch(X)
        y = function(X)
    by_x, by_v = tape.gradient(y, [X, v])
    np.testing.assert_array_equal(by_x, [10, 10])
    assert float(by_v) == 200.0


def test_keywords_are_passed_on_and_have_no_gradient():
    @tf.custom_gradient
    def function(x, k=2.0):
        return x * k, lambda dy: dy * 100.0

    k = tf.constant(5.0)
    with tf.GradientTape() as tape:
        tape.watch([X, k])
        y = function(X, k=k)
    by_x, by_k = tape.gradient(y, [X, k])
    np.testing.assert_array_equal(by_x, [100, 100])
    assert by_k is None
    with tf.GradientTape() as tape:
        tape.watch([X, k])
        y = function(x=X, k=k)  # no positional tensor to which the rule could apply
    np.testing.assert_array_equal(tape.gradient(y, X), [5, 5])


def test_structures_several_results_and_none():
    @tf.custom_gradient
    def function(pair, n):
        def rule(first, second):
            return {"p": first, "q": None}, 2.0 * second

        return (pair["p"] * 1.0, n * 1.0), rule

    a, b, c = tf.constant(1.0), tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([a, b, c])
        y = function({"p": a, "q": b}, c)
    by_a, by_b, by_c = tape.gradient(y, [a, b, c])
    assert float(by_a) == 1.0 and by_b is None and float(by_c) == 2.0


def test_methods_nesting_and_second_order():
    class Layer:
        factor = 3.0

        @tf.custom_gradient
        def cube(self, x):
            return x**3, lambda dy: dy * self.factor * self.square(x)

        @tf.custom_gradient
        def square(self, x):
            return x**2, lambda dy: dy * 2.0 * x

    layer = Layer()
    with tf.GradientTape() as outer:
        outer.watch(X)
        (first,) = gradient(layer.cube, X)
    np.testing.assert_allclose(first, 3 * X**2)
    np.testing.assert_allclose(outer.gradient(first, X), 6 * X)


@pytest.mark.parametrize(
    "rule, error, words",
    [
        (lambda dy: (dy, dy), ValueError, "expected to return 1 gradients, but returned 2"),
        (lambda dy: tf.ones([3]), ValueError, r"gradient of input 0 must have the input's shape \(2,\); got \(3,\)"),
        (lambda dy: tf.cast(dy, tf.float64), ValueError, "gradient of input 0 must have the input's dtype float32"),
    ],
)
def test_a_rule_that_returns_something_else_is_told_so(rule, error, words):
    with pytest.raises(error, match=words):
        gradient(tf.custom_gradient(lambda x: (x * 1.0, rule)), X)


def test_what_else_is_refused():
    v = tf.Variable(2.0, name="v")
    with pytest.raises(TypeError, match="must return two things"):
        gradient(tf.custom_gradient(lambda x: x * 1.0), X)
    with pytest.raises(TypeError, match="unsupported callable"):
        gradient(tf.custom_gradient(lambda x: (x * 1.0, 3)), X)
    with pytest.raises(TypeError, match="must accept keyword argument 'variables'"):
        gradient(tf.custom_gradient(lambda x: (x * v, lambda dy: dy)), X)
    with pytest.raises(TypeError, match="two things"):
        gradient(tf.custom_gradient(lambda x: (x * v, lambda dy, variables: dy[0])), X)
    with pytest.raises(ValueError, match="gradient for each variable"):
        gradient(tf.custom_gradient(lambda x: (x * v, lambda dy, variables: (dy, [dy, dy]))), X)
    with pytest.raises(ValueError, match="gradient of variable v:0 must have the variable's shape"):
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = tf.custom_gradient(lambda x: (x * v, lambda dy, variables: (dy, [dy])))(X)
        tape.gradient(y, [X, v])


def test_forward_mode_uses_the_given_rule():
    @tf.custom_gradient
    def function(x, y):
        return (x * y, x + y), lambda a, b: (a * y + b, a * x + b)

    calls = []

    @function.def_jvp
    def forward(inputs, tangents):
        calls.append(tangents)
        (x, y), (dx, dy) = inputs, tangents
        dy = tf.zeros_like(y) if dy is None else dy
        return dx * y + x * dy, dx + dy

    assert len(calls) == 0
    with tf.autodiff.ForwardAccumulator(X, tf.ones([2])) as accumulator:
        a, b = function(X, tf.constant([3.0, 4.0]))
    np.testing.assert_array_equal(accumulator.jvp(a), [3, 4])
    np.testing.assert_array_equal(accumulator.jvp(b), [1, 1])
    assert len(calls) == 1 and calls[0][1] is None


def test_reverse_over_a_forward_rule():
    function = tf.custom_gradient(lambda x: (tf.sin(x), lambda dy: dy * tf.cos(x)))
    function.def_jvp(lambda inputs, tangents: tf.cos(inputs[0]) * tangents[0])
    with tf.GradientTape() as tape:
        tape.watch(X)
        derivative = tangent(function, X)
    np.testing.assert_allclose(tape.gradient(derivative, X), -np.sin(X), rtol=1e-6)
    with tf.autodiff.ForwardAccumulator(X, tf.ones([2])) as accumulator:
        (first,) = gradient(function, X)
    np.testing.assert_allclose(accumulator.jvp(first), -np.sin(X), rtol=1e-6)


@pytest.mark.parametrize("persistent", [False, True])
def test_effects_of_a_rule_in_a_function_run_in_the_backward_pass(persistent):
    came, total = [], tf.Variable(0.0)

    @tf.custom_gradient
    def noted(x):
        def rule(dy):
            tf.py_function(lambda value: came.append(float(value)), [dy], [])
            total.assign_add(dy)
            return tf.py_function(lambda value: 2.0 * value, [dy], tf.float32)

        return x * 1.0, rule

    function = tf.function(lambda x: noted(x) * 3.0)
    x = tf.constant(5.0)
    for run in (1, 2):
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            y = function(x)
        assert len(came) == run - 1 and float(y) == 15.0
        assert float(tape.gradient(y, x)) == 6.0
        assert came == [3.0] * run and float(total) == 3.0 * run


def test_forward_mode_uses_the_given_rule_in_functions():
    calls = []
    function = tf.custom_gradient(lambda x, y: (tf.round(x * y), lambda dy: (dy * y, dy * x)))

    @function.def_jvp
    def forward(inputs, tangents):
        calls.append(tangents)
        return tangents[0] * inputs[1] * 5.0

    def by_x(x, y):
        return tangent(lambda x: function(x, y) * 2.0, x)

    y = tf.constant([3.0, 4.0])
    np.testing.assert_array_equal(tf.function(by_x)(X, y), [30, 40])  # the accumulator is in the function
    inner = tf.function(lambda x, y: function(x, y) * 2.0)
    np.testing.assert_array_equal(tangent(lambda x: inner(x, y), X), [30, 40])  # it is around the call
    np.testing.assert_array_equal(gradient(inner, X, y)[0], [6, 8])
    assert all(of_y is None for _, of_y in calls)
    v = tf.Variable(2.0)
    uses = tf.custom_gradient(lambda x: (x * v, lambda dy, variables: (dy, [dy])))
    uses.def_jvp(lambda inputs, tangents: tangents[0])
    with tf.autodiff.ForwardAccumulator(v, tf.constant(1.0)), pytest.raises(ValueError, match="as an argument"):
        tf.function(uses)(tf.constant(3.0))


def test_a_forward_rule_whose_reverse_rule_is_not_traced():
    def refuse(dy):
        raise RuntimeError("not here")

    function = tf.custom_gradient(lambda x: (tf.round(x), refuse))
    function.def_jvp(lambda inputs, tangents: tangents[0] * inputs[0])
    np.testing.assert_array_equal(tf.function(lambda x: tangent(function, x))(X), X)


def test_forward_mode_without_a_rule():
    inside = tf.custom_gradient(lambda x: (x * 3.0, lambda dy: 10.0 * dy))
    np.testing.assert_array_equal(tangent(inside, X), [3, 3])  # the operations inside, as in TensorFlow
    hidden = tf.custom_gradient(lambda x: (tf.round(x), lambda dy: 10.0 * dy))
    np.testing.assert_array_equal(tangent(hidden, X), [10, 10])  # the reverse rule, transposed


def test_a_forward_rule_is_checked():
    function = tf.custom_gradient(lambda x: (x * 1.0, lambda dy: dy))
    function.def_jvp(lambda inputs, tangents: (tangents[0], tangents[0]))
    with pytest.raises(ValueError, match="must return 1 tangents"):
        tangent(function, X)
    function.def_jvp(lambda inputs, tangents: tf.ones([3]))
    with pytest.raises(ValueError, match="result 0"):
        tangent(function, X)
    v = tf.Variable(2.0)
    uses = tf.custom_gradient(lambda x: (x * v, lambda dy, variables: (dy, [dy])))
    uses.def_jvp(lambda inputs, tangents: tangents[0])
    with tf.autodiff.ForwardAccumulator(v, tf.constant(1.0)), pytest.raises(ValueError, match="as an argument"):
        uses(X)


def test_grad_pass_through_with_variables_and_several_results():
    v = tf.Variable(3.0)
    np.testing.assert_array_equal(gradient(tf.grad_pass_through(lambda x: x * v), X)[0], [1, 1])
    both = gradient(tf.grad_pass_through(lambda a, b: (a * b, a + b)), X, tf.constant([3.0, 4.0]))
    np.testing.assert_array_equal(both, np.ones((2, 2)))


def derivative(function):
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)

    return slope


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_a_rule_that_calls_its_own_function(order):
    calls = []

    @tf.custom_gradient
    def exponential(x):
        calls.append(1)
        return tf.exp(x), lambda dy: dy * 0.5 * exponential(x) + dy * 0.5 * exponential(x)

    inside, outside = exponential, tf.function(exponential)
    for _ in range(order):
        inside, outside = derivative(inside), derivative(outside)
    for run in (inside, tf.function(inside), outside):
        np.testing.assert_allclose(run(tf.constant(1.0)), np.e, rtol=1e-6)
    assert len(calls) < 200


def test_results_that_wait_for_another_value_than_the_arguments():
    @tf.function
    def f(start, count):
        @tf.custom_gradient
        def repeated(x):
            y = x
            for _ in tf.range(count):
                y = y * 2.0
            return y, lambda dy: float(dy) * 10.0  # a rule that cannot be traced

        return repeated(start), repeated(tf.constant(3.0))

    x, y = f(tf.constant(1.0), tf.constant(3))
    assert (float(x), float(y)) == (8.0, 24.0)


def test_of_ragged_tensors():
    @tf.custom_gradient
    def double(x, y):
        return (x * 2.0, y), lambda dx, dy: (dx * 3.0, dy * 5.0)

    rows, plain = tf.ragged.constant([[1.0, 2.0], [3.0]]), tf.constant(1.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([rows, plain])
        found, same = double(rows, plain)
    assert found.to_list() == [[2.0, 4.0], [6.0]]
    assert tape.gradient(found, rows).to_list() == [[3.0, 3.0], [3.0]]
    assert tape.gradient(same, plain).numpy() == 5.0


@pytest.mark.parametrize("nested", [False, True])
def test_a_rule_that_holds_its_tape_is_freed_with_it(nested):
    class Marker:
        pass

    def step():
        marker = Marker()
        with tf.GradientTape() as outer, tf.GradientTape() if nested else contextlib.nullcontext() as inner:

            @tf.custom_gradient
            def double(x):
                def grad(dy, held=(outer, inner, marker)):
                    return 2.0 * dy if held else None

                return 2.0 * x, grad

            y = double(tf.Variable(1.0))
        return weakref.ref(marker), weakref.ref(outer), y

    gc.collect()
    marker, tape, y = step()
    gc.collect()
    assert marker() is None and tape() is None
    assert float(y) == 2.0


def test_a_rule_of_a_live_tape_survives_a_collection():
    x = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as outer, tf.GradientTape() as inner:

        @tf.custom_gradient
        def cube(x):
            return x**3, lambda dy: (gc.collect(), 3.0 * x**2 * dy)[1]

        y = cube(x)
        dx = inner.gradient(y, x)
    gc.collect()
    assert float(dx) == 27.0
    assert float(outer.gradient(dx, x)) == 18.0
    gc.collect()
    assert float(outer.gradient(y, x)) == 27.0


def test_a_rule_behind_stop_gradient_is_not_run():
    @tf.custom_gradient
    def refuse(x):
        def rule(dy):
            raise AssertionError("the rule runs although no gradient goes further")

        return x * 1.0, rule

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = refuse(tf.stop_gradient(x)) * x
    assert tape.gradient(y, x).numpy() == 2.0
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = refuse(tf.floor(x))
    assert tape.gradient(y, x) is None


def test_arguments_can_be_inspected():
    @tf.custom_gradient
    def scaled(x, factor=2.0):
        return x * factor, lambda dy: dy * factor

    assert inspect.getfullargspec(scaled).args == ["x", "factor"]  # Keras's Lambda layers ask for them
    assert str(inspect.signature(scaled)) == "(x, factor=2.0)"
