"""Layers for images as functions, in a network that is trained."""

import numpy as np
import pytest

import tapeflow as tf

v1 = tf.compat.v1


def test_a_network_is_trained():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 8, 8, 1])
        labels = v1.placeholder(tf.int32, [None])
        training = v1.placeholder(tf.bool)
        y = v1.layers.conv2d(x, 4, 3, padding="same", activation=tf.nn.relu, name="first")
        y = v1.layers.batch_normalization(y, training=training, momentum=0.5)
        y = v1.layers.max_pooling2d(y, 2, 2)
        y = v1.layers.dense(v1.layers.flatten(y), 2)
        loss = v1.losses.sparse_softmax_cross_entropy(labels, y)
        with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
            step = v1.train.AdamOptimizer(0.05).minimize(loss)
        names = [v.name for v in v1.trainable_variables()]
        assert names[:4] == [
            "first/kernel:0",
            "first/bias:0",
            "batch_normalization/gamma:0",
            "batch_normalization/beta:0",
        ]
        session.run(v1.global_variables_initializer())
        images = np.zeros([6, 8, 8, 1], "float32")
        images[:3, :4] = 1.0
        feed = {x: images, labels: [0, 0, 0, 1, 1, 1], training: True}
        values = [session.run([loss, step], feed)[0] for _ in range(30)]
        assert values[-1] < 0.1 * values[0]
        (mean,) = [v for v in v1.global_variables() if v.name.endswith("moving_mean:0")]
        before = session.run(mean)
        assert np.abs(before).max() > 0
        session.run(loss, {**feed, training: False})
        assert (session.run(mean) == before).all()


def test_shapes():
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 4, 4, 3])
        up = v1.layers.conv2d_transpose(x, 2, 3, strides=2, padding="same")
        assert up.shape.as_list()[-1] == 2
        small = v1.layers.average_pooling2d(up, [2, 2], [2, 2], "same")
        session.run(v1.global_variables_initializer())
        assert session.run(small, {x: np.ones([5, 4, 4, 3])}).shape == (5, 4, 4, 2)


def test_regularizers_of_outputs_and_what_is_not_there():
    with tf.Graph().as_default(), v1.Session() as session:
        x = tf.ones([1, 4, 4, 1])
        v1.layers.conv2d(x, 2, 1, kernel_initializer=tf.ones_initializer(), activity_regularizer=tf.reduce_sum)
        v1.layers.dense(
            tf.ones([2, 3]), 1, kernel_initializer=tf.ones_initializer(), activity_regularizer=tf.reduce_sum
        )
        session.run(v1.global_variables_initializer())
        assert session.run(v1.losses.get_regularization_losses()) == [32.0, 6.0]
        with pytest.raises(NotImplementedError, match="renorm"):
            v1.layers.batch_normalization(x, renorm=True)


def test_dropout_keeps_its_shape_whatever_decides():
    with tf.Graph().as_default(), v1.Session() as session:
        training = v1.placeholder(tf.bool)
        y = v1.layers.dropout(tf.ones([4, 3]), 0.9, training=training, seed=1)
        assert y.shape.as_list() == [4, 3]
        assert session.run(y, {training: False}).sum() == 12 and (session.run(y, {training: True}) == 0).any()
