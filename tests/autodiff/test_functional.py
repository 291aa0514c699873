"""Functional forms: the same derivatives as tapes and accumulators give, for any structure, order and mode."""

import numpy as np
import pytest

import tapeflow as tf

ad = tf.autodiff


def loss(params, x):
    return tf.reduce_sum(tf.tanh(tf.linalg.matvec(params["w"], x) + params["b"]) ** 2)


@pytest.fixture
def params():
    return {"w": tf.constant([[0.5, -0.2], [0.1, 0.3]]), "b": tf.Variable([0.1, 0.2])}


X = tf.constant([0.7, -1.1])


def taped(params):
    with tf.GradientTape() as tape:
        tape.watch(params["w"])
        y = loss(params, X)
    return y, tape.gradient(y, params)


def test_value_and_grad_of_a_structure(params):
    expected, gradients = taped(params)
    for run in (ad.value_and_grad(loss), tf.function(ad.value_and_grad(loss))):
        value, found = run(params, X)
        np.testing.assert_array_equal(value, expected)
        assert found.keys() == params.keys()
        for key, gradient in found.items():
            np.testing.assert_allclose(gradient, gradients[key], rtol=1e-6)


def test_orders_and_arguments():
    third = ad.grad(ad.grad(ad.grad(lambda x: x**4)))
    assert float(third(2.0)) == 48.0
    (value, aux), (da, db) = ad.value_and_grad(lambda a, b: (a * b, "aux"), (0, -1), has_aux=True)(2.0, 3.0)
    assert (float(value), aux, float(da), float(db)) == (6.0, "aux", 3.0, 2.0)
    gradient, aux = ad.grad(lambda x, *, scale: (scale * x, x), has_aux=True)(2.0, scale=5.0)
    assert float(gradient) == 5.0 and float(aux) == 2.0
    x = tf.constant(3.0)
    assert [float(g) for g in ad.grad(lambda a, b: a * a * b, (0, 1))(x, x)] == [18.0, 9.0]  # one tensor, given twice
    assert ad.grad(lambda x: tf.constant(1.0))(1.0) is None
    assert float(ad.grad(lambda x: tf.constant(1.0), unconnected_gradients="zero")(1.0)) == 0.0


def test_vjp_jvp_hvp_and_linearize_agree(params):
    def f(p, x):
        return {"y": tf.tanh(tf.linalg.matvec(p["w"], x) + p["b"]), "count": tf.size(x)}

    tangents = [{"w": tf.ones([2, 2]), "b": tf.constant([2.0, -1.0])}, tf.constant([0.5, 0.25])]
    value, tangent = ad.jvp(f, [params, X], tangents)
    same, derivative = ad.linearize(f, params, X)
    np.testing.assert_array_equal(same["y"], value["y"])
    np.testing.assert_allclose(derivative(*tangents)["y"], tangent["y"], rtol=1e-6)
    assert int(derivative(*tangents)["count"]) == 0
    value, pullback = ad.vjp(lambda p, x: f(p, x)["y"], params, X)
    dy = tf.constant([3.0, -2.0])
    for _ in range(2):
        dp, dx = pullback(dy)
        inner = sum(float(tf.reduce_sum(d * t)) for d, t in zip(tf.nest.flatten([dp, dx]), tf.nest.flatten(tangents)))
        np.testing.assert_allclose(inner, float(tf.reduce_sum(tangent["y"] * dy)), rtol=1e-5)
    hessian = tf.hessians(lambda x: loss(params, x), X)[0]
    (product,) = ad.hvp(lambda x: loss(params, x), [X], [tangents[1]])
    np.testing.assert_allclose(product, tf.linalg.matvec(hessian, tangents[1]), rtol=1e-5)


def test_complex_linearize_is_the_derivative():
    z, direction = tf.constant(1 + 2j), tf.constant(0.5 - 1j)
    _, derivative = ad.linearize(tf.square, z)
    np.testing.assert_allclose(derivative(direction), 2 * (1 + 2j) * (0.5 - 1j))


def test_auxiliary_outputs():
    value, pullback, aux = ad.vjp(lambda x: (x * 2.0, "aux"), 3.0, has_aux=True)
    assert float(value) == 6.0 and aux == "aux" and float(pullback(1.0)[0]) == 2.0
    value, tangent, aux = ad.jvp(lambda x: (x * 2.0, x), [3.0], [1.0], has_aux=True)
    assert float(tangent) == 2.0 and float(aux) == 3.0


def test_sparse_gradients_have_hessian_products():
    table = tf.Variable(tf.ones([4, 2]))
    (product,) = ad.hvp(lambda t: tf.reduce_sum(tf.gather(t, [1, 1]) ** 3), [table], [tf.ones([4, 2])])
    np.testing.assert_array_equal(product, [[0, 0], [12, 12], [0, 0], [0, 0]])


def test_per_example_gradients_are_those_of_each_example(params):
    xs = tf.constant([[0.7, -1.1], [0.2, 0.3], [1.0, 0.0]])
    found = ad.per_example_gradients(loss)(params, xs)
    for i, x in enumerate(xs):
        one = ad.grad(loss)(params, x)
        for key, gradients in found.items():
            np.testing.assert_allclose(gradients[i], one[key], rtol=1e-5)
    gradients, aux = ad.per_example_gradients(lambda w, x: (w * x, x), has_aux=True)(2.0, tf.constant([1.0, 3.0]))
    np.testing.assert_array_equal(gradients, [1, 3])
    np.testing.assert_array_equal(aux, [1, 3])


@pytest.mark.parametrize("compiled", [False, True])
def test_a_hook_sees_and_replaces_the_gradient(compiled):
    seen = []
    x = tf.Variable([3.0, 4.0])

    def step():
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(10.0 * ad.hook_gradient(x, seen.append)) + tf.reduce_sum(
                ad.hook_gradient(x, lambda dy: dy * 0.5)
            )
        return tape.gradient(y, x)

    np.testing.assert_array_equal((tf.function(step) if compiled else step)(), [10.5, 10.5])
    assert len(seen) == 1


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: ad.grad(lambda x: x)(tf.ones(3)), ValueError, "grad: the function must return a scalar; got shape"),
        (lambda: ad.grad(lambda x: x)(3), TypeError, "grad: .* must be floating or complex; got int32"),
        (lambda: ad.value_and_grad(lambda x: x, 2)(3.0), ValueError, "argnums has 2, but the call has 1"),
        (lambda: ad.grad(lambda x: x, "x"), TypeError, "argnums must be an integer"),
        (lambda: ad.grad(lambda x: x, has_aux=True)(1.0), TypeError, r"must return \(value, aux\)"),
        (lambda: ad.jvp(lambda x: x, 3.0, 1.0), TypeError, "jvp: primals must be a list or tuple"),
        (lambda: ad.jvp(lambda x: x, [3.0], [1.0, 2.0]), ValueError, "jvp: tangents must have the structure"),
        (lambda: ad.hvp(lambda x: x, [tf.ones(2)], [tf.ones(3)]), ValueError, "hvp: a tangent must have the shape"),
        (lambda: ad.vjp(lambda x: x, tf.ones(2))[1](tf.ones(3)), ValueError, "vjp: a tangent must have the shape"),
        (lambda: ad.per_example_gradients(lambda w: w)(1.0), TypeError, "at least one batch"),
    ],
)
def test_mistakes(call, error, message):
    with pytest.raises(error, match=message):
        call()
