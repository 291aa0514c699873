"""Loops and branches as TensorFlow 1 calls them; variables and changes inside of them."""

import numpy as np
import pytest

import tapeflow as tf

v1 = tf.compat.v1


@pytest.fixture
def session():
    with tf.Graph().as_default(), v1.Session() as session:
        yield session


def test_one_loop_variable_is_given_bare(session):
    assert session.run(v1.while_loop(lambda i: i < 10, lambda i: (i + 1,), [tf.constant(0)])) == 10
    found = v1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), [0, 1.0])
    assert session.run(found) == [3, 8.0]
    same = v1.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)], return_same_structure=True)
    assert session.run(same) == [3]
    assert found[0].name.startswith("while")


@pytest.fixture
def older_results():
    v1.disable_control_flow_v2()
    yield
    v1.enable_control_flow_v2()


def test_results_of_loops_as_the_body_gives_them(session, older_results):
    found = v1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2.0), [0, 1.0])
    assert session.run(found) == (3, 8.0)
    same = v1.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)], return_same_structure=True)
    assert session.run(same) == [3]


def test_single_results_of_branches(session, older_results):
    x = v1.placeholder(tf.float32)
    assert session.run(v1.cond(x > 0, lambda: [x], lambda: [-x]), {x: -2.0}) == 2.0
    assert session.run(v1.case([(x > 0, lambda: [x])], default=lambda: [-x]), {x: -2.0}) == 2.0
    assert session.run(v1.cond(x > 0, lambda: [x], lambda: [-x], strict=True), {x: -2.0}) == [2.0]


def test_older_arguments_of_branches(session):
    x = v1.placeholder(tf.float32)
    y = v1.cond(x > 0, fn1=lambda: [x], fn2=lambda: [-x])
    assert session.run(y, {x: -2.0}) == [2.0]
    strict = v1.cond(x > 0, lambda: [x], lambda: [-x], strict=True)
    assert session.run(strict, {x: -2.0}) == [2.0]
    with pytest.raises(TypeError, match="may not be set simultaneously"):
        v1.cond(x > 0, lambda: 1, lambda: 2, fn1=lambda: 1)


def test_a_moving_average_inside_a_branch(session):
    x = v1.placeholder(tf.float32, [None, 3])
    training = v1.placeholder(tf.bool)
    mean, variance = tf.nn.moments(x, [0])
    averages = tf.train.ExponentialMovingAverage(decay=0.5)

    def update():
        with tf.control_dependencies([averages.apply([mean, variance])]):
            return tf.identity(mean), tf.identity(variance)

    chosen, _ = tf.cond(training, update, lambda: (averages.average(mean), averages.average(variance)))
    session.run(v1.global_variables_initializer())
    values = np.arange(6.0).reshape(2, 3)
    assert session.run(chosen, {x: values, training: True}).tolist() == [1.5, 2.5, 3.5]
    assert session.run(chosen, {x: values, training: False}).tolist() == [0.75, 1.25, 1.75]


def test_parts_of_variables_are_assigned(session):
    v = v1.Variable(tf.zeros([4]))
    changed = v[1:3].assign([9.0, 9.0])
    session.run(v1.global_variables_initializer())
    assert session.run(changed).tolist() == [0.0, 9.0, 9.0, 0.0]
    assert session.run(v).tolist() == [0.0, 9.0, 9.0, 0.0]


def test_counting_ends(session):
    count = v1.count_up_to(v1.Variable(0), 2)
    session.run(v1.global_variables_initializer())
    assert [session.run(count), session.run(count)] == [0, 1]
    with pytest.raises(tf.errors.OutOfRangeError, match="Reached limit of 2"):
        session.run(count)


def test_ragged_results(session):
    value = session.run(tf.ragged.constant([[1, 2], [3]]) * 2)
    assert value.to_list() == [[2, 4], [6]]
    assert str(value) == "<tf.RaggedTensorValue [[2, 4], [6]]>"


def test_branches_may_give_operations():
    with tf.Graph().as_default(), v1.Session() as session:
        v = v1.get_variable("v", initializer=1.0)

        def double():
            return tf.cond(tf.math.is_finite(v), lambda: v.assign(v * 2.0).op, tf.no_op)

        operation = tf.cond(v < 5.0, lambda: tf.group(double(), v.assign_add(10.0)), tf.no_op)
        session.run(v.initializer)
        session.run(tf.group(operation))
        assert session.run(v) == 12.0
        session.run(operation)
        assert session.run(v) == 12.0


def test_what_stands_for_the_operation_of_a_branch():
    with tf.Graph().as_default(), v1.Session() as session:
        v = v1.get_variable("v", initializer=1.0, use_resource=True)
        session.run(v.initializer)
        both = tf.cond(v > 0.0, lambda: tf.group(v.assign_add(1.0)), tf.no_op)
        assert both.dtype == tf.bool and session.run(tf.identity(both)) is np.True_ and session.run(v) == 2.0
        chosen = tf.case([(v > 5.0, tf.no_op)], default=lambda: tf.group(v.assign_add(1.0)))
        assert chosen.dtype == tf.bool and not session.run(chosen) and session.run(v) == 3.0
        number = tf.switch_case(tf.constant(1), [tf.no_op, lambda: tf.group(v.assign_add(1.0))])
        assert number.dtype == tf.int32 and session.run(number) == 1 and session.run(v) == 4.0


def test_functions_wait_for_operations_of_the_session_graph():
    with tf.Graph().as_default(), v1.Session() as session:
        v = v1.get_variable("v", initializer=1.0, use_resource=True)
        session.run(v.initializer)
        operation = v.assign_add(1.0)

        def waiting(result):
            def run(x):
                with tf.control_dependencies([operation]):
                    return result(x)

            return tf.function(run)

        def in_another(x):
            return waiting(lambda y: y + 1.0)(x)

        assert session.run(waiting(lambda x: 1.0)(1.0)) == 1.0 and session.run(v) == 2.0
        assert session.run(waiting(lambda x: x * 2.0)(tf.constant(3.0))) == 6.0 and session.run(v) == 3.0
        assert session.run(waiting(lambda x: v + 0.0)(1.0)) == 4.0 and session.run(v) == 4.0
        assert session.run(tf.function(in_another)(tf.constant(1.0))) == 2.0 and session.run(v) == 5.0


def test_the_operations_of_arguments_are_placeholders():
    concrete = tf.function(lambda a, b=2: a + b).get_concrete_function(tf.TensorSpec([], tf.float32))
    operation = concrete.inputs[0].op
    assert (operation.type, operation.name) == ("Placeholder", "a")
    assert operation.get_attr("_user_specified_name") == b"a" and operation.get_attr("dtype") == tf.float32
