"""The examples: their derivatives against references computed in float64 without a tape."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.autodiff.finite_differences import directional_derivative


def example(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / "examples" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("dtype, tolerance", [(tf.float64, 1e-12), (tf.float32, 1e-5)])
def test_hessian_of_200_parameters(dtype, tolerance):
    module = example("hessian")
    x, labels, w = module.make_problem(dtype=dtype)
    found = module.hessian(x, labels, w)
    wide = x.numpy().astype(np.float64)
    p = 1 / (1 + np.exp(-wide @ w.numpy().astype(np.float64)))
    exact = wide.T @ (wide * (p * (1 - p))[:, None]) / len(wide) + np.eye(200)
    assert found.shape == [200, 200] and found.dtype == dtype
    np.testing.assert_allclose(found, exact, atol=tolerance)


def tanh_of_series(a):
    """Taylor coefficients of tanh of a series, whose coefficients stand along the first axis: T' = (1 - T^2) a'."""
    t = np.zeros_like(a)
    t[0] = np.tanh(a[0])
    for k in range(1, len(a)):
        for j in range(1, k + 1):
            square = sum(t[i] * t[k - j - i] for i in range(k - j + 1))
            t[k] += j * a[j] * ((k == j) - square) / k
    return t


def taylor_derivative(parameters, point, axis, order):
    """A derivative of the network by one coordinate, from Taylor series carried through its layers."""
    weights, biases = ([np.asarray(v.numpy(), np.float64) for v in group] for group in parameters)
    h = np.zeros((order + 1, *point.shape))
    h[0], h[1, :, axis] = point, 1.0
    for i, (w, b) in enumerate(zip(weights, biases)):
        h = h @ w
        h[0] += b
        h = tanh_of_series(h) if i + 1 < len(weights) else h
    return h[order, :, 0] * np.prod(np.arange(1.0, order + 1))


@pytest.mark.parametrize("dtype, tolerance", [(tf.float64, 1e-11), (tf.float32, 2e-4)])
def test_fourth_derivative_of_a_physics_informed_network(dtype, tolerance):
    module = example("physics_informed")
    parameters = module.make_parameters(dtype)
    points = np.random.default_rng(2).uniform(size=(8, 2)).astype(dtype.as_numpy_dtype)
    x, t = tf.constant(points[:, 0]), tf.constant(points[:, 1])
    found = module.derivative(lambda z: module.network(parameters, z, t), x, 4)
    exact = taylor_derivative(parameters, points.astype(np.float64), 0, 4)
    assert np.abs(exact).max() > 0.1
    np.testing.assert_allclose(found, exact, atol=tolerance * np.abs(exact).max())
    residual = module.beam_residual(parameters, x, t)
    exact += taylor_derivative(parameters, points.astype(np.float64), 1, 2)
    np.testing.assert_allclose(residual, exact, atol=tolerance * np.abs(exact).max())


def test_the_gradient_of_a_loss_with_fourth_derivatives():
    module = example("physics_informed")
    parameters = module.make_parameters()
    points = np.random.default_rng(2).uniform(size=(4, 2))
    _, gradients = module.loss_and_gradients(parameters, tf.constant(points[:, 0]), tf.constant(points[:, 1]))
    w = parameters[0][1]
    direction = np.random.default_rng(3).normal(size=w.shape)
    start = w.numpy()

    def loss(step):
        w.assign(start + step[0] * direction)
        both = taylor_derivative(parameters, points, 0, 4) + taylor_derivative(parameters, points, 1, 2)
        return np.array([np.mean(both**2)])

    exact = directional_derivative(loss, np.zeros(1), np.ones(1)).value[0]
    assert np.sum(gradients[1].numpy() * direction) == pytest.approx(exact, rel=1e-7)
    assert module.main(steps=5)[-1] < module.main(steps=1)[0]


def numpy_loss_and_gradient(p, x, y):
    w1, b1, w2, b2 = p
    h = np.tanh(x @ w1 + b1)
    off = h @ w2 + b2 - y
    d = 2 * off / off.size
    back = (d @ w2.T) * (1 - h**2)
    return np.mean(off**2), [x.T @ back, back.sum(0), h.T @ d, d.sum(0)]


def test_a_step_of_meta_learning():
    module = example("meta_learning")
    parameters = module.make_parameters()
    task = module.make_task(np.random.default_rng(5))
    total, gradients = module.meta_gradient(parameters, [task])
    x, y, new_x, new_y = (part.numpy() for part in task)
    shapes = [p.shape.as_list() for p in parameters]
    ends = np.cumsum([int(np.prod(s)) for s in shapes])[:-1]

    def adapted(vector):
        p = [part.reshape(s) for part, s in zip(np.split(vector, ends), shapes)]
        _, inner = numpy_loss_and_gradient(p, x, y)
        return np.array([numpy_loss_and_gradient([a - 0.1 * g for a, g in zip(p, inner)], new_x, new_y)[0]])

    start = np.concatenate([p.numpy().ravel() for p in parameters])
    assert float(total) == pytest.approx(adapted(start)[0], rel=1e-13)
    exact = [directional_derivative(adapted, start, unit).value[0] for unit in np.eye(start.size)]
    np.testing.assert_allclose(np.concatenate([g.numpy().ravel() for g in gradients]), exact, rtol=1e-7, atol=1e-9)
    losses = module.main(steps=20)
    assert losses[-1] < losses[0]
