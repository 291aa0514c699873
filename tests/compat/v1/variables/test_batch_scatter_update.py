"""`batch_scatter_update`: rows of each batch, in a session and at once, and its errors."""

import pytest

import tapeflow
import tapeflow.compat.v1 as tf


def test_rows_of_each_batch():
    v = tapeflow.Variable(tapeflow.zeros([2, 3, 2]))
    tf.batch_scatter_update(v, [[0, 2], [1, 0]], tapeflow.reshape(tapeflow.range(8.0), [2, 2, 2]))
    assert v.numpy().tolist() == [[[0.0, 1.0], [0.0, 0.0], [2.0, 3.0]], [[6.0, 7.0], [4.0, 5.0], [0.0, 0.0]]]


def test_fewer_batches_leave_the_others_as_they_are():
    v = tapeflow.Variable([[1.0, 2.0], [3.0, 4.0]])
    tf.batch_scatter_update(v, [[1]], [[9.0]])
    assert v.numpy().tolist() == [[1.0, 9.0], [3.0, 4.0]]


@pytest.mark.parametrize("use_resource", [False, True])
def test_in_a_session_with_indices_that_are_fed(use_resource):
    with tapeflow.Graph().as_default(), tf.Session() as session:
        v = tf.get_variable("v", initializer=tf.zeros([2, 3]), use_resource=use_resource)
        fed = tf.placeholder(tf.int64, [None, 1])
        update = tf.batch_scatter_update(v, fed, [[5.0], [7.0]])
        session.run(tf.global_variables_initializer())
        assert session.run(update, {fed: [[0], [2]]}).tolist() == [[5.0, 0.0, 0.0], [0.0, 0.0, 7.0]]
        with pytest.raises(ValueError, match=r"indices must have a known rank"):
            tf.batch_scatter_update(v, tf.placeholder(tf.int64), [[5.0], [7.0]])


@pytest.mark.parametrize("indices", [[[0], [-1]], [[0], [3]], [[0], [0], [0]]])
def test_indices_outside_of_the_variable(indices):
    v = tapeflow.Variable(tapeflow.zeros([2, 3]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="indices"):
        tf.batch_scatter_update(v, indices, tapeflow.ones([len(indices), 1]))
    assert not v.numpy().any()
