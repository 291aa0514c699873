"""`tf.map_fn` in a graph: every slice sees what the slices before it have changed."""

import numpy as np
import pytest

import tapeflow as tf
from tapeflow._src.control_flow import maps


@pytest.mark.parametrize("seed", [7, None])
def test_every_slice_draws_its_own_numbers(seed):
    def drawn(x):
        return tf.map_fn(lambda r: tf.random.normal([]), x)

    @tf.function
    def looped(x):
        numbers = tf.TensorArray(tf.float32, 4)
        for i in tf.range(4):
            numbers = numbers.write(i, tf.random.normal([]))
        return numbers.stack()

    tf.random.set_seed(seed)
    open_ended = tf.function(drawn, input_signature=[tf.TensorSpec([None, 3])])
    for function in (tf.function(drawn), open_ended, looped):
        assert len(np.unique([function(tf.ones([4, 3])), function(tf.ones([4, 3]))])) == 8


def test_a_variable_that_slices_change():
    total = tf.Variable(1.0)

    def doubled(x):
        before = total * 1.0
        total.assign(total * 2.0)
        return x + before

    np.testing.assert_array_equal(tf.function(lambda x: tf.map_fn(doubled, x))(tf.zeros([4])), [1.0, 2.0, 4.0, 8.0])
    assert float(total) == 16.0


def test_sparse_results():
    rows = tf.map_fn(tf.sparse.eye, tf.constant([2, 3]), fn_output_signature=tf.SparseTensorSpec(None, tf.float32))
    expected = np.zeros([2, 3, 3])
    expected[0, :2, :2], expected[1] = np.eye(2), np.eye(3)
    np.testing.assert_array_equal(tf.sparse.to_dense(rows), expected)


def test_rows_in_several_blocks(monkeypatch):
    def results():
        x = tf.Variable(tf.reshape(tf.range(14.0), [7, 2]))
        with tf.GradientTape() as tape:
            y = tf.map_fn(lambda row: row * row, x)
            z = tf.scan(lambda total, row: {"a": total["a"] + row[0]}, x, {"a": 0.0})["a"]
            pair = tf.map_fn(lambda rows: (rows[0] + 1.0, rows[1]), (x, 2.0 * x))
            loss = tf.reduce_sum(y) + tf.reduce_sum(z**2) + tf.reduce_sum(pair[0] * pair[1])
        return [t.numpy() for t in (y, z, *pair, tape.gradient(loss, x))]

    whole = results()
    monkeypatch.setattr(maps, "_BLOCK", 3)
    for expected, found in zip(whole, results(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
