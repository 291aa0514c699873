"""Variables of graphs as `VariableDef` messages, and back; shapes and values that are checked."""

import numpy as np
import pytest

import tapeflow as tf

v1 = tf.compat.v1


def test_a_variable_and_its_message():
    with tf.Graph().as_default(), v1.Session() as session:
        with v1.variable_scope("a"):
            v = v1.Variable(3.0, name="v", trainable=False)
        message = v.to_proto()
        assert (message.variable_name, message.is_resource, message.trainable) == ("a/v:0", True, False)
        assert message.snapshot_name == "a/v/Read/Identity:0" and message.initial_value_name
        w = v1.Variable.from_proto(message)
        assert w is v and v1.Variable(variable_def=message) is v
        assert v.to_proto("b") is None
        inner = v.to_proto("a")
        assert inner.variable_name == "v:0" and v1.Variable.from_proto(inner, import_scope="a") is v
        session.run(message.initializer_name)
        assert session.run(w) == 3.0


def test_a_variable_that_is_not_there():
    with tf.Graph().as_default():
        message = v1.Variable(3.0, name="v").to_proto()
    with tf.Graph().as_default(), pytest.raises(KeyError, match="refers to a Tensor which does not exist"):
        v1.Variable.from_proto(message)
    with pytest.raises(ValueError, match="not supported in eager execution"):
        v1.Variable.from_proto(message)
    with pytest.raises(RuntimeError, match="to_proto not supported in EAGER mode"):
        tf.Variable(1.0).to_proto()


def test_the_initial_value_has_the_declared_shape():
    for build in (lambda: tf.Variable(np.zeros(3), shape=[4]), lambda: v1.Variable(np.zeros(3), shape=[4])):
        with pytest.raises(ValueError, match="not compatible with the explicitly supplied `shape`"):
            build()
        with tf.Graph().as_default(), pytest.raises(ValueError, match="not compatible with the explicitly"):
            build()


def test_load_without_a_session():
    v = v1.Variable([1.0, 2.0])
    v.load([3.0, 4.0])
    assert v.numpy().tolist() == [3.0, 4.0]


def test_an_update_of_another_shape():
    v = tf.Variable([0, 1, 2, 3])
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"with shape \(4,\) using .* shape \(\), shapes must be equal"
    ):
        v.assign_add(1)
