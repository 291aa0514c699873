"""Functions of TensorFlow 1 that are called eagerly."""

import tapeflow as tf

v1 = tf.compat.v1


def test_variables_are_made_once_and_keep_their_values():
    traced = []

    def count(x):
        traced.append(x)
        total = v1.get_variable("total", initializer=0.0)
        free = v1.Variable(1.0, name="free")
        return tf.identity(total.assign_add(x) + free, name="out")

    wrapped = v1.wrap_function(count, [tf.TensorSpec([], tf.float32)])
    assert [wrapped(tf.constant(2.0)).numpy(), wrapped(tf.constant(3.0)).numpy()] == [3.0, 6.0]
    assert len(traced) == 1
    assert sorted(v.name for v in wrapped.variables) == ["free:0", "total:0"]
    again = v1.wrap_function(count, [tf.TensorSpec([], tf.float32)])
    assert again(tf.constant(2.0)).numpy() == 3.0


def test_a_part_of_the_graph():
    def f(x):
        y = tf.multiply(x, 2.0, name="double")
        return y + 1.0

    wrapped = v1.wrap_function(f, [tf.TensorSpec([None], tf.float32)])
    part = wrapped.prune(wrapped.inputs[0], "double:0")
    assert part([3.0]).numpy().tolist() == [6.0]


def test_an_argument_that_is_no_tensor():
    assert v1.wrap_function(lambda x, k: x * k, [tf.TensorSpec([], tf.int32), 3])(tf.constant(2)).numpy() == 6
