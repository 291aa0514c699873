"""Figures of a course of training: the noise scale of its gradients."""

import numpy as np

import tapeflow as tf


def course(gradients):
    w = tf.Variable(tf.zeros([3]))
    with tf.debugging.Doctor() as doctor:
        for g in gradients:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(w * tf.constant(g))
            w.assign_sub(0.1 * tape.gradient(loss, w))
    return doctor.report()["courses"][0]


def test_equal_gradients_have_no_noise():
    row = course([np.array([1.0, 2.0, 3.0], np.float32)] * 6)
    assert row["steps"] == 6
    assert abs(row["noise_scale"]) < 1e-5


def test_the_noise_scale_is_variance_by_squared_mean():
    g = np.random.default_rng(0).normal(1.0, 2.0, size=(8, 3)).astype(np.float32)
    mean = g.mean(0)
    expected = np.sum(np.var(g, axis=0, ddof=1)) / np.sum(mean * mean)
    np.testing.assert_allclose(course(g)["noise_scale"], expected, rtol=1e-3)
