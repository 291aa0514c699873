"""Arguments that are NumPy integers and arrays, in graphs of TensorFlow 1: constants, whatever their dtype."""

import numpy as np
import pytest

import tapeflow as tf

CALLS = {
    "reshape": lambda x: tf.reshape(x, np.array([4])),
    "transpose": lambda x: tf.transpose(x, np.array([1, 0])),
    "reduce": lambda x: tf.reduce_sum(x, np.int64(0)),
    "reduce many": lambda x: tf.reduce_max(x, np.array([0, 1])),
    "tile": lambda x: tf.tile(x, np.array([2, 1])),
    "reverse": lambda x: tf.reverse(x, np.array([0])),
    "broadcast": lambda x: tf.broadcast_to(x, np.array([3, 2, 2])),
    "expand": lambda x: tf.expand_dims(x, np.int64(0)),
    "concat": lambda x: tf.concat([x, x], np.array(0)),
    "cumsum": lambda x: tf.cumsum(x, np.int64(0)),
    "stack": lambda x: tf.stack([x, x], axis=np.int64(0)),
    "band": lambda x: tf.linalg.band_part(x, np.int64(0), np.int64(-1)),
    "segment": lambda x: tf.math.unsorted_segment_sum(x, np.array([0, 1]), np.int64(2)),
    "raw": lambda x: tf.raw_ops.Sum(input=x, axis=np.array([0])),
    "unsigned": lambda x: tf.reshape(x, np.array([4], np.uint8)),
}


@pytest.mark.parametrize("name", CALLS)
def test_numpy_integers(name):
    value = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    expected = CALLS[name](tf.constant(value))
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.float32, [2, 2])
        y = CALLS[name](x)
        assert y.shape == expected.shape
        assert "Cast" not in [operation.type for operation in graph.get_operations()]
        np.testing.assert_array_equal(session.run(y, {x: value}), expected)


def test_gradients_by_differences_in_a_session():
    with tf.Graph().as_default(), tf.compat.v1.Session():
        square = np.array([1.0, 2.0], np.float32)
        theory, measured = tf.test.compute_gradient(lambda x: x * x, [square])
        np.testing.assert_array_equal(theory[0], [[2.0, 0.0], [0.0, 4.0]])
        np.testing.assert_allclose(measured[0], theory[0], rtol=1e-3)
        both, _ = tf.test.compute_gradient(lambda x, y: tf.tensordot(x, y, 1), [tf.constant([1.0, 2.0]), [3.0, 4.0]])
        np.testing.assert_array_equal(both[0], [[3.0, 4.0]])
        np.testing.assert_array_equal(both[1], [[1.0, 2.0]])
        turned, _ = tf.test.compute_gradient(lambda z: z * 1j, [np.array([1 + 2j])])
        np.testing.assert_array_equal(turned[0], [[0.0, -1.0], [1.0, 0.0]])
    with tf.Graph().as_default(), pytest.raises(ValueError, match="default session"):
        tf.test.compute_gradient(lambda x: x, [square])


@pytest.mark.parametrize("call", [lambda x: tf.batch_to_space(x, [2], [[0, 0]]), lambda x: tf.matmul(x, x)])
def test_arguments_that_do_not_fit_raise_a_value_error(call):
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [3, 2, 1])
        with pytest.raises(ValueError) as raised:
            call(x)
        assert isinstance(raised.value, tf.errors.InvalidArgumentError)


def test_the_last_element_fills_a_constant():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        assert session.run(tf.compat.v1.constant([1, 2], shape=[2, 2])).tolist() == [[1, 2], [2, 2]]
        with pytest.raises(TypeError, match="Expected Tensor's shape"):
            tf.compat.v1.constant([1, 2], shape=[3], verify_shape=True)
        with pytest.raises(ValueError, match="Too many elements"):
            tf.compat.v1.constant([1, 2], shape=[1])
        with pytest.raises(TypeError, match="Expected Tensor's shape"):
            tf.constant([1, 2], shape=[3])


def test_a_fed_tensor_does_not_run_for_what_depends_on_it():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.compat.v1.placeholder(tf.int32, [])
        with tf.control_dependencies([x]):
            five = tf.constant(5)
        assert session.run(x * five, {x: np.int64(2)}) == 10


def test_name_scopes_outside_of_graphs_name_variables():
    with tf.compat.v1.name_scope("outer") as scope, tf.compat.v1.name_scope(None, "inner"):
        assert tf.Variable(1.0, name="v").name == "outer/inner/v:0"
    assert scope == "outer/"


def test_batch_gather_of_a_vector_takes_rows():
    assert tf.compat.v1.batch_gather([[1, 2], [3, 4]], [1]).numpy().tolist() == [[3, 4]]
    assert tf.compat.v1.batch_gather([[[1], [2]], [[3], [4]]], [[1], [0]]).numpy().tolist() == [[[2]], [[3]]]


def test_constants_of_a_traced_function_belong_to_its_graph():
    found = []

    @tf.function
    def f(x):
        constant = tf.constant(1.0)
        found.append(constant.graph is x.graph is tf.zeros([2]).op.graph)
        found.append((constant.name, constant.op.type, constant.op.inputs))
        tf.cond(x > 0, lambda: found.append(tf.constant(1).graph is x.graph), lambda: None)
        return x

    f(tf.constant(1.0))
    assert found == [True, ("Const:0", "Const", ()), False]
    with pytest.raises(AttributeError, match="is undefined when eager execution is enabled"):
        _ = tf.constant(1.0).graph
