"""Parts of graphs, and graphs whose variables have become constants."""

import numpy as np
import pytest

import tapeflow as tf

v1 = tf.compat.v1
graph_util = v1.graph_util


def test_a_trained_graph_without_its_variables():
    with tf.Graph().as_default() as graph, v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        w = v1.get_variable("w", [2, 3])
        y = tf.nn.relu(tf.matmul(x, w) + v1.Variable([1.0, 2.0, 3.0]), name="y")
        v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y))
        session.run(v1.global_variables_initializer())
        given = np.ones([4, 2], np.float32)
        expected = session.run(y, {x: given})
        frozen = graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["y"])
    assert {node.op for node in frozen.node} == {"Placeholder", "Const", "MatMul", "AddV2", "Relu"}
    with tf.Graph().as_default(), v1.Session() as session:
        (y,) = tf.import_graph_def(frozen, return_elements=["y:0"])
        np.testing.assert_array_equal(session.run(y, {"import/x:0": given}), expected)


def test_what_is_not_there():
    with tf.Graph().as_default() as graph:
        tf.constant(1.0, name="x")
    definition = graph.as_graph_def()
    with pytest.raises(AssertionError, match="y is not in graph"):
        graph_util.extract_sub_graph(definition, ["y"])
    with pytest.raises(TypeError, match="dest_nodes must be an iterable of strings"):
        graph_util.extract_sub_graph(definition, "x")
    with pytest.raises(TypeError, match=r"must be a graph_pb2.GraphDef proto"):
        graph_util.extract_sub_graph(graph, ["x"])
