"""Shapes as TensorFlow 1 shows them."""

import numpy as np
import pytest

import tapeflow as tf

v1 = tf.compat.v1


@pytest.fixture
def older():
    v1.disable_v2_tensorshape()
    yield
    v1.enable_v2_tensorshape()


def test_dimensions(older):
    shape = tf.TensorShape([None, 20])
    assert [d.value for d in shape] == [None, 20]
    assert shape[1].value == 20
    assert int(shape[1] * 2) == 40
    assert str(shape) == "(?, 20)"
    assert repr(shape) == "TensorShape([Dimension(None), Dimension(20)])"
    assert shape[1:].as_list() == [20]
    assert int(np.prod(tf.TensorShape([3, 4, 5])[1:])) == 20


def test_programs(older):
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 2, 3])
        assert str(x) == 'Tensor("Placeholder:0", shape=(?, 2, 3), dtype=float32)'
        assert str(v1.placeholder(tf.float32)) == 'Tensor("Placeholder_1:0", dtype=float32)'
        size = x.get_shape()[1].value * x.get_shape()[2].value
        w = v1.get_variable("w", [size, x.shape[1]], initializer=v1.ones_initializer())
        y = tf.reduce_mean(tf.nn.softmax(tf.matmul(tf.reshape(x, [-1, size]), w), axis=1), axis=1)
        session.run(v1.global_variables_initializer())
        assert session.run(y, {x: np.ones([4, 2, 3])}).tolist() == [0.5] * 4


def test_sizes_are_numbers_again():
    v1.disable_v2_tensorshape()
    v1.enable_v2_tensorshape()
    assert tf.TensorShape([None, 3])[1] == 3
    assert tf.TensorShape([None, 3])[0] is None
    assert str(tf.TensorShape([None, 3])) == "(None, 3)"
    assert str(tf.constant(1)) == "tf.Tensor(1, shape=(), dtype=int32)"


def test_dimensions_among_sizes(older):
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 4, 5])
        assert tf.reshape(x, [-1, x.shape[1] * x.shape[2]]).shape.as_list() == [None, 20]
        assert tf.reshape(x, [tf.shape(x)[0], x.shape[1] * x.shape[2]]).shape.as_list() == [None, 20]
        assert tf.tile(x, [1, v1.Dimension(2), 1]).shape.as_list() == [None, 8, 5]
        assert tf.broadcast_to(1.0, [x.shape[1], 2]).shape.as_list() == [4, 2]
        assert x[:, : x.shape[1] // 2].shape.as_list() == [None, 2, 5]


def test_shapes_that_contradict():
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [2, None])
        with pytest.raises(ValueError, match=r"Dimension 0 in both shapes must be equal, but are 2 and 3"):
            x.set_shape([3, 3])
        with pytest.raises(ValueError, match="Shapes must be equal rank, but are 2 and 1"):
            x.set_shape([2])
        assert graph.graph_def_versions.producer > 0


def test_sizes_that_are_placeholders_of_unknown_rank():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        count = tf.compat.v1.placeholder(tf.int32)
        assert session.run(tf.reshape(tf.range(6), [count, 2]), {count: 3}).shape == (3, 2)
        assert session.run(tf.zeros([2, count]), {count: 3}).shape == (2, 3)


def test_the_shape_of_edit_distances():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        one, two = (tf.sparse.from_dense([[1, last], [3, 4]]) for last in (2, 5))
        found = tf.edit_distance(one, two)
        assert found.shape == [2]
        assert session.run(found).tolist() == [0.5, 0.0]


def test_a_set_shape_says_how_many_parts_there_are():
    with tf.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 3])
        y = x * 2.0
        y.set_shape([4, 3])
        with v1.Session() as session:
            np.testing.assert_array_equal(session.run(tf.add_n(tf.unstack(y)), {x: np.ones((4, 3))}), [8.0] * 3)
