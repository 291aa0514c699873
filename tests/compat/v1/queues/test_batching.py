"""`tf.compat.v1.train.batch` and those like it: sparse elements, padding of several parts, `keep_input`."""

import numpy as np
import pytest

import tapeflow as tf

v1 = tf.compat.v1


def run_batches(make, steps=1):
    with tf.Graph().as_default(), v1.Session() as session:
        batch = make()
        coordinator = tf.train.Coordinator()
        threads = v1.train.start_queue_runners(session, coordinator)
        found = [session.run(batch) for _ in range(steps)]
        coordinator.request_stop()
        session.close()
        coordinator.join(threads, stop_grace_period_secs=5)
    return batch, found


@pytest.mark.parametrize("join", [False, True])
def test_sparse_elements_go_through_a_queue(join):
    def make():
        sparse = tf.SparseTensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 3])
        if join:
            return v1.train.batch_join([[sparse, 5], [sparse, 5]], batch_size=2)
        return v1.train.batch([sparse, tf.constant(5)], batch_size=2)

    (sparse, dense), [(value, number)] = run_batches(make)
    assert sparse.dense_shape.shape == [3] and dense.shape == [2]
    np.testing.assert_array_equal(value.indices, [[0, 0, 1], [0, 1, 0], [1, 0, 1], [1, 1, 0]])
    np.testing.assert_array_equal(value.values, [1.0, 2.0, 1.0, 2.0])
    np.testing.assert_array_equal(value.dense_shape, [2, 2, 3])
    np.testing.assert_array_equal(number, [5, 5])


def test_rows_of_sparse_tensors_are_elements_with_enqueue_many():
    def make():
        sparse = tf.SparseTensor([[0, 1], [1, 0], [1, 2]], ["a", "b", "c"], [2, 3])
        return v1.train.shuffle_batch({"s": sparse}, 2, capacity=8, min_after_dequeue=0, enqueue_many=True)

    batch, [found] = run_batches(make)
    assert batch["s"].dense_shape.shape == [2]
    assert set(found["s"].values) <= {b"a", b"b", b"c"} and list(found["s"].dense_shape) == [2, 3]


def test_a_component_is_sparse_in_all_lists_or_in_none():
    with tf.Graph().as_default(), pytest.raises(TypeError, match="component 0 is sparse in some"):
        v1.train.batch_join([[tf.SparseTensor([[0]], [1], [2])], [tf.constant([1, 2])]], 2)


def test_scalars_beside_padded_vectors():
    def make():
        count = tf.constant(3)
        return v1.train.batch([tf.ones([count]), count], batch_size=2, dynamic_pad=True, shapes=[[None], []])

    _, [(rows, counts)] = run_batches(make)
    assert rows.shape == (2, 3)
    np.testing.assert_array_equal(counts, [3, 3])


@pytest.mark.parametrize(("keep", "message"), [([True], "cannot be a vector"), ([[True]], "must be 0 or 1 dimensions")])
def test_keep_input_is_one_bool_for_an_element(keep, message):
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        v1.train.maybe_batch([tf.constant(1.0)], tf.constant(keep), 2)


@pytest.mark.parametrize("function", [v1.train.batch_join, v1.train.shuffle_batch_join])
def test_dictionaries_of_elements_have_the_same_keys(function):
    more = {"capacity": 4, "min_after_dequeue": 1} if function is v1.train.shuffle_batch_join else {}
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"must have the same keys.*'b'.*'c'"):
        function([{"a": 1, "b": 2}, {"a": 1, "c": 2}], batch_size=2, **more)
