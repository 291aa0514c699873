"""The largest eigenvalue of the Hessian on request."""

import numpy as np

import tapeflow as tf


def curvature_of(loss_of, variables, steps=2):
    with tf.debugging.Doctor(curvature=True) as doctor:
        for _ in range(steps):
            with tf.GradientTape() as tape:
                loss = loss_of()
            gradients = tape.gradient(loss, variables)
            for variable, gradient in zip(variables, gradients):
                variable.assign_sub(0.01 * gradient)
    (course,) = doctor.report()["courses"]
    assert [c for c in doctor.report()["checks"] if c["result"] == "failed"] == []
    return course["curvature"]


def test_of_a_quadratic():
    matrix = np.array([[2.0, 1.0], [1.0, 7.0]], np.float32)
    w = tf.Variable([1.0, -1.0])
    found = curvature_of(lambda: 0.5 * tf.tensordot(w, tf.linalg.matvec(matrix, w), 1), [w])
    largest = np.linalg.eigvalsh(matrix)[-1]
    np.testing.assert_allclose(found["eigenvalue"], largest, rtol=1e-2)
    np.testing.assert_allclose(found["largest_stable_rate"], 2 / largest, rtol=1e-2)
    assert found["converged"]


def test_over_several_variables():
    """The Hessian of a * b at (1, 1) has the eigenvalues 1 and -1 off its diagonal; with a square it is known."""
    a, b = tf.Variable(1.0), tf.Variable(1.0)
    found = curvature_of(lambda: 3.0 * a * a + a * b, [a, b])
    np.testing.assert_allclose(found["eigenvalue"], np.linalg.eigvalsh([[6.0, 1.0], [1.0, 0.0]])[-1], rtol=1e-2)


def test_a_largest_eigenvalue_below_zero_bounds_no_rate():
    w = tf.Variable([1.0, 2.0])
    found = curvature_of(lambda: -tf.reduce_sum(w**4), [w])
    np.testing.assert_allclose(found["eigenvalue"], -48.0, rtol=1e-2)
    assert found["largest_stable_rate"] is None


def test_only_on_request():
    w = tf.Variable(1.0)
    with tf.debugging.Doctor() as doctor:
        with tf.GradientTape() as tape:
            loss = w * w
        tape.gradient(loss, w)
    assert all("curvature" not in course for course in doctor.report()["courses"])
