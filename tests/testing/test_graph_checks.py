"""Gradients against differences in a session, equal graphs, and benchmarks."""

import os
import tempfile

import numpy as np
import pytest

import tapeflow as tf

v1 = tf.compat.v1


def test_gradients_against_differences():
    with tf.Graph().as_default(), v1.Session() as session:
        x, w = v1.placeholder(tf.float64, [2]), v1.Variable(3.0, dtype=tf.float64)
        y = w * tf.stack([x[0] * x[1], x[1] ** 2, tf.sin(x[0])])
        start = np.array([0.5, 2.0])
        exact, differences = v1.test.compute_gradient(x, [2], y, [3], start, init_targets=w.initializer)
        np.testing.assert_allclose(exact, [[6.0, 0.0, 3 * np.cos(0.5)], [1.5, 12.0, 0.0]])
        np.testing.assert_allclose(differences, exact, atol=1e-5)
        assert v1.test.compute_gradient_error(x, [2], y, [3], start) < 1e-5
        both = v1.test.compute_gradient([x, w], [[2], []], y, [3], [start, 3.0], extra_feed_dict={x: start})
        assert [exact.shape for exact, _ in both] == [(2, 3), (1, 3)]
        assert session.run(w) == 3.0

    @tf.custom_gradient
    def wrong(x):
        return 2.0 * x, lambda dy: 3.0 * dy

    with tf.Graph().as_default(), v1.Session():
        x = tf.constant([1.0])
        assert v1.test.compute_gradient_error(x, [1], wrong(x), [1]) > 0.9


def test_graphs_are_compared_node_by_node():
    def definition(value):
        with tf.Graph().as_default() as graph:
            tf.identity(tf.constant(value, name="c"), name="i")
        return graph.as_graph_def()

    tf.test.assert_equal_graph_def(definition(1.0), definition(1.0))
    with pytest.raises(AssertionError, match="Node 'c' differs"):
        v1.test.assert_equal_graph_def(definition(1.0), definition(2.0))


def test_benchmarks(capsys):
    with tf.Graph().as_default(), v1.Session() as session:
        found = tf.test.Benchmark().run_op_benchmark(session, tf.constant(1.0) + 1.0, min_iters=3, name="add")
    assert found["iters"] == 3 and capsys.readouterr().out.startswith("add: 3 iterations")


def test_the_folder_of_tests_is_their_own():
    folder = v1.test.get_temp_dir()
    assert os.path.isdir(folder) and folder == v1.test.get_temp_dir()
    assert not os.path.samefile(folder, tempfile.gettempdir())  # a test may remove it


def test_complex_jacobians_are_those_of_pairs_of_reals():
    factor = 2.0 + 3.0j
    with tf.Graph().as_default(), tf.compat.v1.Session():
        x = tf.constant(1.0 + 1.0j, tf.complex64)
        exact, differences = tf.compat.v1.test.compute_gradient(x, [], factor * x, [])
        error = tf.compat.v1.test.compute_gradient_error(x, [], x * x, [])
    np.testing.assert_allclose(exact, [[2.0, 3.0], [-3.0, 2.0]])
    np.testing.assert_allclose(differences, exact, atol=1e-2)
    assert error < 1e-2


def test_the_input_that_is_moved_goes_before_feeds_of_it():
    with tf.Graph().as_default(), v1.Session():
        x = v1.placeholder(tf.float64)
        start = np.array([1.0, 2.0])
        assert v1.test.compute_gradient_error([x], [[2]], x * x, [2], extra_feed_dict={x: start}) < 1e-6
