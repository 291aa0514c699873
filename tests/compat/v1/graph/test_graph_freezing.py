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


def test_without_what_only_training_needs():
    with tf.Graph().as_default() as graph:
        x = tf.debugging.check_numerics(v1.placeholder(tf.float32, [2], name="x"), "x", name="checked")
        with tf.control_dependencies([x]):
            y = tf.identity(graph.get_tensor_by_name("x:0"), name="y")
        z = tf.identity(tf.identity(y, name="once"), name="twice")
        tf.negative(z, name="z")
        with tf.control_dependencies([tf.identity(z, name="before")]):
            tf.constant(1.0, name="after")
    definition = graph.as_graph_def()
    found = graph_util.remove_training_nodes(definition)
    assert [(node.name, list(node.input)) for node in found.node] == [
        ("x", []),
        ("z", ["x"]),
        ("before", ["x"]),
        ("after", ["^before"]),
    ]
    kept = graph_util.remove_training_nodes(definition, ["checked", "once"])
    assert {"checked", "once"} < {node.name for node in kept.node}
    assert graph_util.tensor_shape_from_node_def_name(graph, "z") == [2]


def test_graphs_that_are_equal_in_another_order():
    def definition(names, value):
        with tf.Graph().as_default() as graph:
            for name in names:
                tf.constant(value, name=name)
        return graph.as_graph_def()

    equal = tf.__internal__.graph_util.graph_defs_equal
    assert equal(definition("ab", 1.0), definition("ba", 1.0))
    assert not equal(definition("ab", 1.0), definition("ab", 2.0))
    assert not equal(definition("ab", 1.0), definition("ac", 1.0))
    nan = definition("a", np.nan)
    assert not equal(nan, nan)
    assert equal(nan, nan, treat_nan_as_equal=True)
