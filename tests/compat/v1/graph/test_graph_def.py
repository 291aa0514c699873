"""Nodes of graphs as messages and by name, of sessions and of functions."""

import pytest

import tapeflow as tf

v1 = tf.compat.v1


def test_a_graph_of_a_session():
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, 2], name="x")
        tf.nn.relu(tf.matmul(x, [[1.0], [2.0]]), name="out")
    nodes = [(node.name, node.op, list(node.input)) for node in graph.as_graph_def().node]
    assert nodes == [
        ("x", "Placeholder", []),
        ("MatMul/b", "Const", []),
        ("MatMul", "MatMul", ["x", "MatMul/b"]),
        ("out", "Relu", ["MatMul"]),
    ]
    definition = v1.GraphDef.FromString(graph.as_graph_def().SerializeToString())
    assert definition.node[0].attr["dtype"].type == tf.float32.as_datatype_enum
    assert [dim.size for dim in definition.node[0].attr["shape"].shape.dim] == [-1, 2]
    assert x.op.node_def.name == "x"


def test_the_graph_of_a_function():
    double = tf.function(lambda a: a + a)
    graph = double.get_concrete_function(tf.TensorSpec([], tf.string)).graph
    assert [(list(node.input), node.name) for node in graph.as_graph_def().node] == [
        ([], "a"),
        (["a", "a"], "add"),
        (["add"], "Identity"),
    ]
    assert [operation.type for operation in graph.get_operations()] == ["Placeholder", "AddV2", "Identity"]
    assert graph.get_tensor_by_name("add:0") is graph.outputs[0]
    assert graph.get_tensor_by_name("Identity:0") is graph.outputs[0]
    assert graph.get_tensor_by_name("a:0") is graph.inputs[0]
    with pytest.raises(KeyError, match="does not exist in the graph"):
        graph.get_tensor_by_name("mul:0")


def test_names_in_functions():
    names = []

    @tf.function
    def function(x):
        y = tf.add(x * 2.0, x * 3.0, name="total")
        names.extend([y.name, (x * 4.0).name, tf.nn.relu(y).name])
        return y

    function(tf.constant(1.0))
    assert names == ["total:0", "mul_2:0", "Relu:0"]


def test_names_that_mean_something_else():
    with tf.Graph().as_default() as graph:
        tf.constant(1.0, name="c")
    with pytest.raises(ValueError, match="refers to an Operation, not a Tensor"):
        graph.get_tensor_by_name("c")
    with pytest.raises(ValueError, match="appears to refer to a Tensor, not a Operation"):
        graph.get_operation_by_name("c:0")


def test_tensors_of_two_graphs_do_not_mix():
    with tf.Graph().as_default():
        one = tf.constant(1.0)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="must be from the same graph"):
        one + tf.constant(2.0)


def test_operations_have_definitions():
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, [2, 2])
        tf.compat.v1.get_variable("v", initializer=1.0)
        y = tf.concat([tf.matmul(x, x), x], 0)
        names = {op.op_def.name for op in graph.get_operations() if op.op_def}
    assert {"Placeholder", "MatMul", "ConcatV2"} <= names
    definition = y.op.op_def
    assert [(a.name, a.type_attr, a.number_attr) for a in definition.input_arg] == [
        ("values", "T", "N"),
        ("axis", "Tidx", ""),
    ]
    assert {a.name: a.type for a in definition.attr} == {"N": "int", "T": "type", "Tidx": "type"}
    assert [a.name for a in definition.output_arg] == ["output"]
