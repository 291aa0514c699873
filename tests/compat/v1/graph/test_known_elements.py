"""Shapes in graphs that follow from constants and known shapes, as TensorFlow's shape inference folds them."""

import numpy as np
import pytest

import tapeflow as tf

v1 = tf.compat.v1


def x():
    return tf.random.uniform([3, 4, 2])


def chosen():
    last = tf.where(tf.less(tf.constant(-1), 0), tf.rank(x()) - 1, -1)
    return tf.transpose(x(), tf.concat([tf.range(1, last + 1), [0]], 0))


SHAPES = {
    "range": (lambda: tf.transpose(x(), tf.concat([tf.range(1, 3), [0]], 0)), (4, 2, 3)),
    "where": (chosen, (4, 2, 3)),
    "gather": (lambda: tf.zeros(tf.gather(tf.shape(x()), [2, 0])), (2, 3)),
    "maximum": (lambda: tf.zeros(tf.maximum(tf.shape(x()), 3)), (3, 4, 3)),
    "fill": (lambda: tf.zeros(tf.fill([tf.rank(x())], 2)), (2, 2, 2)),
    "pad": (lambda: tf.zeros(tf.pad(tf.shape(x()), [[1, 0]], constant_values=1)), (1, 3, 4, 2)),
    "split": (lambda: tf.zeros(tf.split(tf.shape(x()), [1, 2])[1]), (4, 2)),
    "unstack": (lambda: tf.zeros(tf.unstack(tf.shape(x()))[::-1]), (2, 4, 3)),
    "invert_permutation": (lambda: tf.transpose(x(), tf.math.invert_permutation([2, 0, 1])), (4, 2, 3)),
    "scatter": (lambda: tf.zeros(tf.tensor_scatter_nd_update(tf.shape(x()), [[0]], [9])), (9, 4, 2)),
    "float": (lambda: tf.zeros([tf.cast(tf.floor(tf.constant(2.5)), tf.int32)]), (2,)),
    "range of floats": (lambda: tf.range(0.0, 1.0, 0.25), (4,)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_follow_from_constants(name):
    make, shape = SHAPES[name]
    with tf.Graph().as_default():
        assert make().shape == shape


def test_what_is_fed_or_random_is_not_known():
    with tf.Graph().as_default():
        fed = v1.placeholder(tf.int32, [2])
        drawn = tf.random.uniform([2], 1, 5, tf.int32)
        for sizes in (tf.maximum(fed, 3), tf.maximum(drawn, 3), tf.maximum(v1.get_variable("v", [2], tf.int32), 1)):
            assert tf.zeros(sizes).shape.as_list() == [None, None]
        with pytest.raises(tf.errors.InvalidArgumentError):
            v1.Session().run(tf.zeros([tf.constant(1) // tf.constant(0)]))


def test_long_chains_and_many_paths_take_no_time():
    with tf.Graph().as_default():
        number = tf.constant(1)
        for _ in range(60):
            number = tf.maximum(number, number)  # 2**60 paths
        assert tf.zeros([number]).shape == (1,)
        for _ in range(2000):
            number = tf.maximum(number, 1)
        assert tf.zeros([number]).shape.rank == 1


def test_conditions_that_follow_from_constants_are_decided():
    smart_cond = tf.__internal__.smart_cond.smart_cond
    with tf.Graph().as_default():
        decided = tf.logical_and(tf.less(tf.constant(1.0), 2.0), tf.equal(tf.rank(x()), 3))
        assert smart_cond(decided, lambda: "yes", lambda: "no") == "yes"
        assert tf.is_tensor(smart_cond(v1.placeholder(tf.bool, []), lambda: 1, lambda: 2))


def test_shapes_do_not_follow_from_defaults():
    """A session may feed another value."""
    with tf.Graph().as_default(), v1.Session() as session:
        size = v1.placeholder_with_default(tf.constant([3, 4]), [2])
        assert tf.get_static_value(size) is None
        zeros = tf.zeros(size)
        assert zeros.shape.as_list() == [None, None]
        assert session.run(zeros).shape == (3, 4)
        assert session.run(zeros, {size: [1, 2]}).shape == (1, 2)
        rows = v1.sparse_placeholder(tf.float32, [None, -1, 1])
        assert rows.shape.as_list() == [None, None, 1]
        assert tf.sparse.reshape(rows, tf.shape(rows)[:2]).shape.as_list() == [None, None]
    with tf.__internal__.FuncGraph("keras_graph").as_default():
        rows = v1.sparse_placeholder(tf.float32, [None, None, 1])
        assert tf.is_symbolic_tensor(rows.dense_shape)
        assert tf.sparse.reshape(rows, tf.shape(rows)[:2]).shape.as_list() == [None, None]


def test_static_values_of_small_constants():
    with tf.Graph().as_default():
        for x, expected in [
            (tf.constant(2), 2),
            (tf.zeros([2]), [0.0, 0.0]),
            (tf.cast(tf.constant(2), tf.float32), 2.0),
            (tf.concat([tf.constant([1.0]), [2.0]], 0), [1.0, 2.0]),
            (tf.equal(tf.constant(2), 3), False),
            (tf.rank(tf.zeros([2, 3])), 2),
        ]:
            found = tf.get_static_value(x)
            assert isinstance(found, np.ndarray)
            np.testing.assert_array_equal(found, expected)
        assert tf.get_static_value(tf.compat.v1.placeholder(tf.float32, [2]) + 1.0) is None


def test_none_is_refused_as_in_tensorflow():
    with tf.Graph().as_default():
        for function in (tf.convert_to_tensor, tf.constant, tf.sin):
            with pytest.raises(ValueError, match="None values not supported"):
                function(None)
        with pytest.raises(TypeError, match="Failed to convert elements"):
            tf.constant([1, None])
