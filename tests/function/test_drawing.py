"""Drawings of the graphs of functions."""

from xml.dom import minidom

import tapeflow as tf


def titles_by_class(svg):
    found = {}
    for group in minidom.parseString(svg).getElementsByTagName("g"):
        kind = group.getElementsByTagName("rect")[0].getAttribute("class")
        found.setdefault(kind, []).append(group.getElementsByTagName("text")[0].firstChild.data)
    return found


def test_variables_have_their_names():
    kernel, count = tf.Variable([[2.0]], name="dense/<kernel>"), tf.Variable(0.0, name="count")

    @tf.function
    def function(x):
        count.assign_add(1.0)
        return tf.sin(tf.matmul(x, kernel))

    function(tf.ones([1, 1]))
    drawn = titles_by_class(function.graph_svg())
    assert drawn["variable"] == ["dense/<kernel>"] and drawn["output"] == ["Sin"]
    assert drawn[""] == ["AssignVariableOp count", "MatMul"]


def test_states_of_random_numbers_are_not_variables():
    @tf.function
    def function(x):
        return x + tf.random.normal([])

    function(tf.constant(1.0))
    assert "variable" not in titles_by_class(function.graph_svg())


def test_layers_of_a_long_function_are_folded():
    kernels = [tf.Variable([[2.0]], name=f"layer{i}/kernel") for i in range(100)]

    @tf.function
    def function(x):
        for kernel in kernels:
            x = tf.tanh(tf.matmul(x, kernel))
        return tf.reduce_sum(x)

    function(tf.ones([1, 1]))
    svg = function.graph_svg()
    drawn = titles_by_class(svg)
    assert drawn["group"] == ["layer0/kernel ... layer99/kernel"] and drawn["fold"] == ["MatMul, Tanh"]
    assert "200 operations, 100 times 2" in svg and "variable" not in drawn
