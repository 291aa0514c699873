"""Graphs: names, scopes, elements, collections, order of operations."""

import json
from pathlib import Path

import numpy as np
import pytest

import tapeflow
from tapeflow.compat import v1 as tf

NAMES = json.loads((Path(__file__).parents[1] / "tensorflow_values.json").read_text())["names"]


@pytest.fixture
def graph():
    with tapeflow.Graph().as_default() as graph:
        yield graph


def test_names_are_tensorflows(graph):
    x = tf.placeholder(tf.float32, [None, 2])
    made = []
    with tf.name_scope("a"):
        made += [x + 1, tf.identity(x, name="i")]
        with tf.name_scope("b"):
            made += [x * 2.0, tf.reduce_sum(x, name="s")]
    with tf.name_scope("a"):
        made += [x + 1]
    with tf.variable_scope("v"):
        made += [tf.get_variable("w", [1]), tf.Variable(1.0), x - 1]
    with tf.variable_scope("v", reuse=tf.AUTO_REUSE):
        made += [tf.get_variable("w", [1]), x - 1]
    for _ in range(2):
        with tf.variable_scope(None, default_name="d"):
            made += [tf.get_variable("w", [1])]
    with tf.variable_scope("o") as scope:
        made += [tf.get_variable("w", [1]), x + 2]
    with tf.variable_scope(scope, reuse=True):
        made += [tf.get_variable("w", [1]), x + 2]
    with tf.variable_scope("o/p"):
        made += [tf.get_variable("w", [1])]
    made += [
        tf.constant(1.0), tf.constant(2.0, name="c"), tf.constant(2.0, name="c"), tf.Variable(1.0, name="vv"),
        tf.no_op(), tf.group(x + 1), tf.matmul(x, x, transpose_b=True, name="mm"), tf.zeros([2], name="z"),
        tf.random_normal([2], name="rn"), tf.placeholder(tf.float32, name="p"),
    ]  # fmt: skip
    assert [element.name for element in made] == NAMES


def test_operators_and_functions_name_their_nodes(graph):
    x = tf.placeholder(tf.float32, [2, 2])
    made = [x + x, x - x, x * x, x / x, x**x, x @ x, -x, x < x, tf.add(x, x), tf.matmul(x, x), tf.reduce_mean(x)]
    assert [y.name for y in made] == [
        "add:0", "sub:0", "mul:0", "truediv:0", "pow:0", "matmul:0", "Neg:0", "Less:0", "Add_1:0",
        "MatMul_1:0", "Mean:0",
    ]  # fmt: skip
    assert made[0].op.type == "AddV2"
    assert str(made[0]) == 'Tensor("add:0", shape=(2, 2), dtype=float32)'


def test_elements_by_name(graph):
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.multiply(x, 2.0, name="twice")
    assert graph.get_tensor_by_name("twice:0") is y
    assert graph.get_operation_by_name("twice") is y.op
    assert graph.as_graph_element("twice:0") is y
    assert y.op.inputs[0] is x and x.consumers() == [y.op]
    assert [op.name for op in graph.get_operations()] == ["x", "twice/y", "twice"]
    with pytest.raises(KeyError, match=r"refers to an Operation not in the graph"):
        graph.get_operation_by_name("none")
    with pytest.raises(KeyError, match=r"exists but only has 1 outputs"):
        graph.get_tensor_by_name("twice:7")
    with pytest.raises(ValueError, match=r"Tensor names must be of the form"):
        graph.get_tensor_by_name("twice")
    with pytest.raises(TypeError, match=r"Can not convert a int into a Tensor or Operation"):
        graph.as_graph_element(3)


def test_tensors_are_keys_and_compare_by_identity(graph):
    x, y = tf.constant(1.0), tf.constant(1.0)
    assert (x == y) is False and {x: 1, y: 2}[x] == 1 and y in [x, y]


def test_collections(graph):
    graph.add_to_collection("c", 1)
    graph.get_collection_ref("c").append(2)
    assert tf.get_collection("c") == [1, 2]
    with tf.variable_scope("a"):
        v = tf.get_variable("v", [1])
    tf.get_variable("b", [1], trainable=False)
    assert tf.trainable_variables() == [v]
    assert tf.global_variables("a/") == [v]


def test_control_dependencies_run_first(graph):
    v = tf.Variable(0.0)
    with tf.control_dependencies([v.assign_add(1.0)]):
        with tf.control_dependencies([v.assign_add(10.0)]):
            y = tf.identity(v)
        with tf.control_dependencies(None):
            free = tf.constant(7.0)
    group = tf.group(v.assign_add(100.0), v.assign_add(1000.0))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(free) == 7.0 and session.run(v) == 0.0
        assert session.run(y) == 11.0
        assert session.run(group) is None
        assert session.run(v) == 1111.0


def test_a_finalized_graph_takes_nothing_more(graph):
    x = tf.constant(1.0)
    graph.finalize()
    with pytest.raises(RuntimeError, match=r"Graph is finalized and cannot be modified"):
        x + 1.0


def test_tuple_waits_for_all(graph):
    v = tf.Variable(0.0)
    (x,) = tf.tuple([tf.constant(1.0)], control_inputs=[v.assign_add(1.0)])
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(x) == 1.0 and session.run(v) == 1.0


def test_graphs_do_not_mix(graph):
    x = tf.constant(1.0)
    with tapeflow.Graph().as_default(), pytest.raises(Exception, match=r"must be from the same graph"):
        x + 1.0


def test_eager_execution_goes_on_outside():
    with tapeflow.Graph().as_default():
        assert not tapeflow.executing_eagerly()
    assert tapeflow.executing_eagerly()
    assert (tapeflow.constant(1.0) + 1.0).numpy() == 2.0


def test_random_numbers_begin_anew_in_each_session(graph):
    tf.set_random_seed(5)
    a, b = tf.random_normal([3]), tf.random_normal([3], seed=1)
    runs = []
    for _ in range(2):
        with tf.Session() as session:
            runs.append([session.run(x) for x in (a, a, b, b)])
    np.testing.assert_array_equal(runs[0], runs[1])
    first, second = runs[0][:2]
    assert not np.array_equal(first, second)


def test_operations_are_named_as_in_tensorflow(graph):
    made = [
        tf.shape([1.0]), tf.size([1.0]), tf.slice([1.0, 2.0], [0], [1]), tf.pad([1.0], [[0, 1]]),
        tf.split([1.0, 2.0], 2)[1], tf.unstack([1.0, 2.0])[1], tf.nn.top_k([1.0, 2.0])[0],
        tf.nn.conv2d(tf.ones([1, 2, 2, 1]), tf.ones([1, 1, 1, 1]), [1, 1, 1, 1], "SAME"),
        tf.nn.sigmoid_cross_entropy_with_logits(labels=[1.0], logits=[1.0]), tf.where([True], [1], [2]),
    ]  # fmt: skip
    names = ["Shape:0", "Size:0", "Slice:0", "Pad:0", "split:1", "unstack:1", "TopKV2:0", "Conv2D:0", "logistic_loss:0"]
    assert [x.name for x in made] == [*names, "Select:0"]


def test_names_that_no_operation_can_have(graph):
    for make in (lambda: tf.constant(1, name="a b"), lambda: tf.placeholder(tf.float32, name="_x")):
        with pytest.raises(ValueError, match="is not a valid node name"):
            make()
    with pytest.raises(ValueError, match="'_x' is not a valid root scope name"), tf.name_scope("_x"):
        pass
    with tf.name_scope("s"), tf.name_scope("_x"):
        assert tf.constant(1).name == "s/_x/Const:0"


def test_the_graph_of_a_function_is_the_default_while_it_is_traced():
    seen = []

    @tapeflow.function
    def f(x):
        graph = tf.get_default_graph()
        with graph.as_default(), graph.control_dependencies([x]), graph.name_scope("inner"):
            y = tf.square(x)
        seen.extend([graph.building_function, x.graph is graph, y.name, len(graph.inputs), graph.outer_graph])
        graph.add_to_collection("things", 1)
        return y

    with tf.Graph().as_default() as outer:
        f(tf.constant(2.0))
        assert tf.get_default_graph() is outer and outer.get_collection("things") == [1]
    assert seen == [True, True, "inner/Square:0", 1, outer]


def test_name_scopes_in_functions():
    names = []

    @tapeflow.function
    def f(x):
        with tapeflow.name_scope("a"):
            first = x * 2.0
            with tapeflow.name_scope("b"):
                second = first * 2.0
        with tapeflow.name_scope("a"):
            third = second * 2.0
        names.extend(y.name for y in (first, second, third, third * 2.0))
        return third

    f(tapeflow.constant(1.0))
    assert names == ["a/mul:0", "a/b/mul:0", "a_1/mul:0", "mul:0"]
