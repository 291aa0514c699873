"""Effects in graphs of TensorFlow 1: those of functions, and of operations that a branch or body waits for."""

import pytest

import tapeflow as tf

v1 = tf.compat.v1


@pytest.fixture
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def counter(name="count"):
    return v1.get_variable(name, [], initializer=v1.zeros_initializer(), use_resource=True)


def started():
    session = v1.Session()
    session.run(v1.global_variables_initializer())
    return session


def test_a_function_has_its_effects_when_a_constant_result_is_fetched(graph):
    count = counter()

    @tf.function
    def f():
        count.assign_add(1.0)
        return tf.constant(3.0)

    result = f()
    with started() as session:
        assert [session.run(result), session.run(count), session.run(result), session.run(count)] == [3, 1, 3, 2]


def test_each_result_of_a_function_brings_all_effects(graph):
    first, second = counter("first"), counter("second")
    x = v1.placeholder(tf.float32, [])

    @tf.function
    def f(x):
        first.assign_add(x)
        second.assign(first * 2.0)
        return x + 1.0, {"same": x}

    result = f(x)
    with started() as session:
        assert session.run(result[0], {x: 2.0}) == 3.0
        assert session.run([first, second]) == [2.0, 4.0]
        assert session.run(result[1], {x: 5.0}) == {"same": 5.0}
        assert session.run([first, second]) == [7.0, 14.0]


def test_the_gradient_passes_a_function_with_effects(graph):
    count = counter()
    x = tf.constant(3.0)

    @tf.function
    def f(x):
        count.assign_add(1.0)
        return x * x

    (slope,) = tf.gradients(f(x), x)
    with started() as session:
        assert session.run(slope) == 6.0


@pytest.mark.parametrize("kind", ["while", "cond", "both", "graph"])
def test_a_graph_inside_waits_for_operations_of_the_program(graph, kind):
    count = counter()
    update = count.assign_add(1.0)

    def body(i):
        with tf.control_dependencies([update]):
            return tf.identity(i) + 1

    def inner(i):
        return tf.cond(i >= 0, lambda: body(i), lambda: i)

    def by_the_graph(i):
        with v1.get_default_graph().control_dependencies([update]):
            return tf.identity(i) + 1

    start = tf.constant(0)
    if kind == "cond":
        result = inner(start)
    else:
        step = {"while": body, "both": inner, "graph": by_the_graph}[kind]
        (result,) = tf.while_loop(lambda i: i < 3, step, [start])
    with started() as session:
        assert session.run(result) == (1 if kind == "cond" else 3)
        assert session.run(count) == 1.0


def test_assertions_about_constants_of_a_graph_fail_at_once():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        small, big = tf.constant([1, 2]), tf.constant([3, 4])
        with pytest.raises(tf.errors.InvalidArgumentError, match="fail"):
            tf.compat.v1.assert_equal(big, small, message="fail")
        with pytest.raises(tf.errors.InvalidArgumentError):
            tf.debugging.assert_negative(small)
        with tf.control_dependencies([tf.compat.v1.assert_less(small, big)]):
            assert session.run(tf.identity(small)).tolist() == [1, 2]
        x = tf.compat.v1.placeholder(tf.int32)
        with tf.control_dependencies([tf.compat.v1.assert_less(x, big)]):
            y = tf.identity(x)
        with pytest.raises(tf.errors.InvalidArgumentError):
            session.run(y, {x: [9, 9]})
