"""Second order by every route, third and fourth order of smooth operations, and tf.hessians."""

import functools

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src import primitives
from tapeflow._src.autodiff.finite_differences import directional_derivative
from tapeflow._src.primitives import facts_by_name
from tests.ops import sample_makers, samples


def network(x, w):
    return tf.reduce_sum(tf.nn.softplus(tf.linalg.matvec(w, tf.tanh(tf.linalg.matvec(w, x)))) ** 2)


FUNCTIONS = {
    "network": lambda x: network(x, tf.constant(np.random.default_rng(1).normal(size=(4, 4)))),
    "product": lambda x: tf.reduce_prod(tf.exp(tf.sin(x))),
    "logsumexp": lambda x: tf.reduce_logsumexp(x * x),
    "quotient": lambda x: tf.reduce_sum(x[::-1] / (1.0 + x**2)),
    "gather": lambda x: tf.reduce_sum(tf.gather(x, [0, 0, 3]) ** 3 * tf.gather(x, [1, 2, 0])),
    "solve": lambda x: tf.reduce_sum(tf.linalg.solve(tf.linalg.diag(x) + 3.0 * x[:, None] * x, x[:, None] ** 2)),
}
X = tf.constant([0.7, 1.1, 0.4, 0.9], tf.float64)
V = tf.constant([0.3, -1.0, 0.5, 0.2], tf.float64)


def gradient(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tf.convert_to_tensor(tape.gradient(y, x))


def tangent(function, x, v):
    with tf.autodiff.ForwardAccumulator(x, v) as accumulator:
        y = function(x)
    return accumulator.jvp(y)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_hessian_vector_products_by_all_routes(name):
    function = FUNCTIONS[name]
    routes = {
        "reverse over reverse": gradient(lambda x: tf.reduce_sum(gradient(function, x) * V), X),
        "forward over reverse": tangent(lambda x: gradient(function, x), X, V),
        "reverse over forward": gradient(lambda x: tangent(function, x, V), X),
        "hessian": tf.linalg.matvec(tf.hessians(function, X)[0], V),
    }
    first = routes.pop("reverse over reverse")
    for route, product in routes.items():
        np.testing.assert_allclose(product, first, rtol=1e-11, atol=1e-12, err_msg=route)
    numeric = directional_derivative(lambda x: gradient(function, tf.constant(x)).numpy(), X.numpy(), V.numpy())
    np.testing.assert_allclose(first, numeric.value, rtol=1e-7, atol=1e-9)


SMOOTH = [
    name
    for name, facts in facts_by_name.items()
    if facts["gradient"] == "rule" and facts["family"] in ("unary", "binary") and name not in samples.first_order_only
]


FIXED = {"Igamma": (0,), "Igammac": (0,)}  # by the first argument there are two derivatives only


@pytest.mark.parametrize("name", [name for name in SMOOTH if "float64" in samples.gradient_dtypes_of(name)])
def test_third_and_fourth_order(name):
    """Along a line through the arguments: tapes nested four deep against differences of those nested three deep."""
    call = samples.builders(name)[0](sample_makers.Maker(3, "float64"))
    random = np.random.default_rng(4)
    fixed = FIXED.get(name, samples.undifferentiated_inputs.get(name, ()))
    directions = [
        0.05 * random.normal(size=a.shape) if isinstance(a, np.ndarray) and i not in fixed else None
        for i, a in enumerate(call.args)
    ]

    def along(t):
        arguments = [a if d is None else tf.constant(a) + t * d for a, d in zip(call.args, directions)]
        y = getattr(primitives, name)(*arguments, **call.kwargs)
        return tf.reduce_sum(tf.math.real(y) if y.dtype.is_complex else y)

    def derivative(order, t):
        if order == 0:
            return along(t)
        with tf.GradientTape() as tape:
            tape.watch(t)
            y = derivative(order - 1, t)
        return tape.gradient(y, t, unconnected_gradients="zero")

    zero, one = tf.constant(0.0, tf.float64), tf.constant(1.0, tf.float64)
    for order in (3, 4):
        below = functools.partial(derivative, order - 1)
        exact = float(derivative(order, zero))
        numeric = directional_derivative(_of_arrays(below), np.zeros(1), np.ones(1))
        assert abs(exact - numeric.value[0]) <= 1e-5 * max(abs(exact), 1e-4) + 10 * numeric.error[0], order
        ahead = tangent(below, zero, one)
        np.testing.assert_allclose(0.0 if ahead is None else float(ahead), exact, rtol=1e-9, atol=1e-12)


def _of_arrays(function):
    return lambda t: function(tf.constant(t[0])).numpy().reshape(1)


def test_a_sparse_gradient_has_a_sparse_tangent():
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.autodiff.ForwardAccumulator(x, tf.ones([2, 2])) as accumulator:
        with tf.GradientTape() as tape:
            y = tf.gather(x, [0, 0]) ** 2
        dx = tape.gradient(y, x)
    moved = accumulator.jvp(dx)
    assert isinstance(dx, tf.IndexedSlices) and isinstance(moved, tf.IndexedSlices)
    np.testing.assert_array_equal(tf.convert_to_tensor(moved), [[4, 4], [0, 0]])


def test_hessians():
    x, y = tf.constant([3.0, 2.0]), tf.constant(2.0)
    by_x, by_y = tf.hessians(lambda a, b: a[0] ** 2 * a[1] * b**3, [x, y])
    np.testing.assert_allclose(by_x, [[32, 48], [48, 0]])
    assert float(by_y) == 9 * 2 * 12
    assert tf.hessians(lambda a: a**3, tf.ones([2, 2]))[0].shape == [2, 2, 2, 2]
    np.testing.assert_array_equal(tf.hessians(lambda a: 3.0 * a, x)[0], np.zeros((2, 2)))
    np.testing.assert_allclose(tf.hessians(lambda a, b: tf.reduce_sum(a * b * a), [x, x])[0], [[6, 0], [0, 4]])
    with pytest.raises(RuntimeError, match=r"tf\.gradients is not supported when eager execution is enabled"):
        tf.hessians(x, x)
