"""Calls of functions in a graph of TensorFlow 1."""

import tapeflow as tf


def test_a_function_without_results_is_an_operation():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        a, b = tf.Variable(1.0), tf.Variable(10.0)

        @tf.function
        def both(x):
            a.assign_add(x)
            b.assign_sub(x)

        calls = [both(tf.constant(1.0)), both(tf.constant(2.0))]
        assert all(isinstance(call, tf.Operation) for call in calls)
        session.run(tf.compat.v1.global_variables_initializer())
        calls[0].run()
        assert session.run([a, b]) == [2.0, 9.0]
        with tf.control_dependencies([calls[1]]):
            after = tf.constant(7.0)
        assert session.run(after) == 7.0
        assert session.run([a, b]) == [4.0, 7.0]
