"""Nodes of TensorFlow 1 that change reference variables."""

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.compat.graph_def import reference_updates, resources  # noqa: F401  register handlers
from tapeflow._src.compat.graph_def.library import FunctionLibrary
from tapeflow._src.compat.graph_def.program import run_node
from tapeflow._src.io.protos import messages


def run(op, *values):
    node = messages.NodeDef(name="n", op=op)
    return run_node(node, list(values), FunctionLibrary(messages.FunctionDefLibrary(), "test"), {})


def scalars(*numbers):
    return [tf.constant(number) for number in numbers]


def test_updates_give_the_variable():
    v, g = tf.Variable([1.0, 2.0]), tf.constant([1.0, 1.0])
    (found,) = run("ApplyGradientDescent", v, *scalars(0.5), g)
    assert found is v
    np.testing.assert_allclose(v, [0.5, 1.5])
    run("AssignAdd", v, g)
    run("ScatterSub", v, tf.constant([1, 1]), tf.constant([1.0, 1.0]))
    run("ScatterNdAdd", v, tf.constant([[0]]), tf.constant([3.0]))
    np.testing.assert_allclose(v, [4.5, 0.5])


def test_adam_and_sparse_momentum():
    v, m, s, g = (tf.Variable([1.0, 2.0]), tf.Variable([0.0, 0.0]), tf.Variable([0.0, 0.0]), tf.constant([1.0, -1.0]))
    run("ApplyAdam", v, m, s, *scalars(0.9, 0.999, 0.1, 0.9, 0.999, 1e-8), g)
    np.testing.assert_allclose(v, [0.9, 2.1], rtol=1e-5)
    w, a = tf.Variable([1.0, 2.0]), tf.Variable([0.0, 0.0])
    run("SparseApplyMomentum", w, a, *scalars(0.1), tf.constant([1.0]), tf.constant([1]), *scalars(0.9))
    np.testing.assert_allclose(w, [1.0, 1.9])


@pytest.mark.parametrize("value, expected", [(1.0, 0.3636364), (-1.0, -0.5454545), (0.04, 0.0)])
def test_proximal_descent(value, expected):
    v = tf.Variable([value])
    tf.raw_ops.ResourceApplyProximalGradientDescent(var=v, alpha=0.5, l1=1.0, l2=0.2, delta=tf.constant([0.2]))
    shrunk = np.sign(value - 0.1) * max(abs(value - 0.1) - 0.5, 0) / 1.1
    np.testing.assert_allclose(v, [shrunk], rtol=1e-5)
    assert shrunk == pytest.approx(expected, abs=1e-6)
