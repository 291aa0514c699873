"""Gradients added up over parts of a batch equal those of the whole batch; clipping keeps them sparse."""

import numpy as np
import pytest

import tapeflow as tf


def test_parts_of_a_batch_give_the_gradient_of_the_batch():
    random = np.random.default_rng(0)
    table, w = tf.Variable(random.normal(size=(10, 4))), tf.Variable(random.normal(size=(4, 1)))
    unused = tf.Variable(1.0)
    words, y = random.integers(0, 10, 12), random.normal(size=(12, 1))

    def gradients(part):
        with tf.GradientTape() as tape:
            rows = tf.nn.embedding_lookup(table, words[part])
            loss = tf.reduce_mean((tf.tanh(rows @ w) - y[part]) ** 2)
        return tape.gradient(loss, [table, w, unused])

    accumulator = tf.train.GradientAccumulator()
    for part in (slice(0, 5), slice(5, 6), slice(6, 12)):
        accumulator.add(gradients(part), weight=part.stop - part.start)
    assert accumulator.weight == 12.0
    whole, parts = gradients(slice(None)), accumulator.mean()
    assert isinstance(parts[0], tf.IndexedSlices) and parts[2] is None
    np.testing.assert_allclose(tf.convert_to_tensor(parts[0]), tf.convert_to_tensor(whole[0]), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(parts[1], whole[1], rtol=1e-12)


def test_sparse_and_dense_parts_of_one_variable():
    sparse = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([1]), tf.constant([3, 2]))
    accumulator = tf.train.GradientAccumulator()
    accumulator.add([sparse, None])
    accumulator.add([tf.ones([3, 2]), tf.constant(2.0)])
    total, late = accumulator.sum()
    np.testing.assert_array_equal(total, [[1, 1], [2, 3], [1, 1]])
    assert float(late) == 2.0


def test_what_is_refused():
    accumulator = tf.train.GradientAccumulator()
    with pytest.raises(ValueError, match="nothing was added"):
        accumulator.mean()
    accumulator.add([tf.ones([2])])
    with pytest.raises(ValueError, match="got 2 after 1"):
        accumulator.add([tf.ones([2]), tf.ones([2])])
    assert accumulator.weight == 1.0
    accumulator.reset()
    accumulator.add([None], weight=0.0)
    with pytest.raises(ValueError, match="add up to 0"):
        accumulator.mean()


def test_clipping_keeps_gradients_sparse():
    sparse = tf.IndexedSlices(tf.constant([[3.0, 4.0], [0.0, 0.0]]), tf.constant([0, 0]), tf.constant([2, 2]))
    by_value, by_norm = tf.clip_by_value(sparse, -1.0, 1.0), tf.clip_by_norm(sparse, 1.0)
    (by_global_norm, nothing, dense), norm = tf.clip_by_global_norm([sparse, None, tf.ones([2])], 1.0)
    assert nothing is None and not isinstance(dense, tf.IndexedSlices)
    for clipped, values in (
        (by_value, [[1, 1], [0, 0]]),
        (by_norm, [[0.6, 0.8], [0, 0]]),
        (by_global_norm, np.array([[3, 4], [0, 0]]) / 27**0.5),
    ):
        assert isinstance(clipped, tf.IndexedSlices)
        np.testing.assert_allclose(clipped.values, values, rtol=1e-6)
        assert clipped.indices is sparse.indices
    assert float(norm) == pytest.approx(27**0.5)
