"""`tf.map_fn` in a graph: every slice sees what the slices before it have changed."""

import numpy as np

import tapeflow as tf


def test_every_slice_draws_its_own_numbers():
    def drawn(x):
        return tf.map_fn(lambda r: tf.random.normal([]), x)

    for function in (tf.function(drawn), tf.function(drawn, input_signature=[tf.TensorSpec([None, 3])])):
        assert len(np.unique([function(tf.ones([4, 3])), function(tf.ones([4, 3]))])) == 8


def test_a_variable_that_slices_change():
    total = tf.Variable(1.0)

    def doubled(x):
        before = total * 1.0
        total.assign(total * 2.0)
        return x + before

    np.testing.assert_array_equal(tf.function(lambda x: tf.map_fn(doubled, x))(tf.zeros([4])), [1.0, 2.0, 4.0, 8.0])
    assert float(total) == 16.0
