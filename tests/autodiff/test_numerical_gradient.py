"""Black boxes: measured derivatives are right, compose with everything, and say so when they are poor."""

import logging

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.autodiff.finite_differences import directional_derivative


def gradient(function, *xs):
    with tf.GradientTape() as tape:
        tape.watch(xs)
        y = function(*xs)
    return tape.gradient(y, list(xs))


SMOOTH = [
    (np.sin, np.cos, [0.0, 0.3, 2.0, -5.0]),
    (np.exp, np.exp, [0.0, 1.0, -3.0]),
    (np.log, lambda x: 1 / x, [1e-3, 0.5, 100.0]),
    (np.sqrt, lambda x: 0.5 / np.sqrt(x), [1e-4, 2.0]),
    (lambda x: np.sin(50 * x), lambda x: 50 * np.cos(50 * x), [0.1, 1.0]),
    (lambda x: x**7, lambda x: 7 * x**6, [0.0, 1.1, 30.0]),
    (np.arctan, lambda x: 1 / (1 + x * x), [0.0, 1e3]),
    (lambda x: np.abs(x) * x, lambda x: 2 * np.abs(x), [0.7, -0.2]),
]


@pytest.mark.parametrize("method", ["auto", "real"])
@pytest.mark.parametrize("case", range(len(SMOOTH)))
def test_derivatives_and_their_errors(case, method):
    function, derivative, points = SMOOTH[case]
    for point in points:
        found = tf.numerical_gradient(function, method=method).estimate(tf.constant([point], tf.float64))
        exact = derivative(np.array([point]))
        off = np.abs(found.value[0] - exact)
        assert off <= 1e-7 * np.maximum(1, np.abs(exact)), (point, found)
        assert off <= 20 * found.error[0] + 1e-12 * np.maximum(1, np.abs(exact)), (point, found)
        assert found.smooth.all()


def test_the_complex_step_is_taken_where_it_is_right_and_only_there():
    x = tf.constant([0.7, 1.3], tf.float64)
    assert tf.numerical_gradient(lambda v: np.sin(v) * v[0]).estimate(x).method == "complex"
    for deaf in (np.abs, lambda v: np.conj(v) * v[0], lambda v: np.array([float(v[0]) ** 2]), lambda v: v.real**2):
        assert tf.numerical_gradient(deaf).estimate(x).method == "real"
    with pytest.raises(ValueError, match="analytic"):
        tf.numerical_gradient(np.abs, method="complex").estimate(x)
    with pytest.raises(ValueError, match="method"):
        tf.numerical_gradient(np.abs, method="guess")


def test_inside_other_operations_and_with_several_inputs_and_results():
    @tf.numerical_gradient
    def black_box(a, n, b):
        return {"sum": np.tensordot(a, b, 1) * n, "count": np.arange(2), "square": b**2}

    a, b = tf.constant(np.arange(6.0).reshape(2, 3)), tf.constant([0.1, 0.2, 0.3], tf.float64)

    def loss(a, b, function):
        found = function(tf.sin(a), 3, b)
        return tf.reduce_sum(tf.exp(found["sum"])) + tf.reduce_sum(found["square"])

    def visible(a, n, b):
        return {"sum": tf.linalg.matvec(a, b) * n, "square": b**2}

    assert black_box(a, 3, b)["count"].numpy().tolist() == [0, 1]
    for ours, exact in zip(
        gradient(lambda *x: loss(*x, black_box), a, b), gradient(lambda *x: loss(*x, visible), a, b)
    ):
        np.testing.assert_allclose(ours, exact, rtol=1e-9)


def test_float32_arguments_are_measured_in_float64():
    x = tf.constant([0.5, 1.5])
    (found,) = gradient(tf.numerical_gradient(lambda v: np.abs(np.sin(v))), x)
    assert found.dtype == tf.float32
    np.testing.assert_allclose(found, np.cos(x), rtol=1e-6)


def test_second_order_and_forward_mode():
    black_box = tf.numerical_gradient(lambda v: np.sin(v) * np.abs(v[::-1]))
    visible = lambda v: tf.sin(v) * tf.abs(v[::-1])  # noqa: E731
    x, direction = tf.constant([0.4, 1.2], tf.float64), tf.constant([0.3, -1.0], tf.float64)
    results = []
    for function in (black_box, visible):
        with tf.GradientTape() as outer:
            outer.watch(x)
            (first,) = gradient(function, x)
        with tf.autodiff.ForwardAccumulator(x, direction) as accumulator:
            y = function(x)
        results.append([first, outer.gradient(first, x), accumulator.jvp(y)])
    for ours, exact in zip(*results):
        np.testing.assert_allclose(ours, exact, rtol=1e-6, atol=1e-9)


def test_a_poor_estimate_is_told(caplog):
    x = tf.constant([0.0, 1.0], tf.float64)
    with caplog.at_level(logging.WARNING):
        gradient(tf.numerical_gradient(np.sin), x)
        assert not caplog.records
        gradient(tf.numerical_gradient(np.abs), x)
    assert "not smooth" in caplog.text
    caplog.clear()
    noise = np.random.default_rng(0)
    with caplog.at_level(logging.WARNING):
        gradient(tf.numerical_gradient(lambda v: v + noise.normal(size=2)), x)
    assert "poor" in caplog.text


def test_methods_keywords_and_arguments_the_function_overwrites():
    class Model:
        @tf.numerical_gradient
        def run(self, x, factor=1.0):
            x *= factor
            return x

    x = tf.constant([1.0, 2.0])
    np.testing.assert_allclose(gradient(lambda v: Model().run(v, factor=4.0), x)[0], [4.0, 4.0], rtol=1e-6)
    np.testing.assert_array_equal(x, [1.0, 2.0])


def test_a_kink_is_seen_from_both_sides():
    found = directional_derivative(lambda v: np.maximum(v, 0.2 * v), np.array([0.0]), np.array([1.0]))
    assert not found.smooth[0]
    np.testing.assert_allclose([found.left[0], found.right[0]], [0.2, 1.0])
