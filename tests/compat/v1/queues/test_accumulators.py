"""Conditional accumulators: steps, means, waiting, what each session has, and their errors."""

import logging
import threading

import numpy as np
import pytest

import tapeflow
import tapeflow.compat.v1 as tf


@pytest.fixture(autouse=True)
def graph():
    with tapeflow.Graph().as_default() as graph:
        yield graph


def test_the_mean_of_a_step_and_its_names():
    gradients = tf.ConditionalAccumulator(tf.float32, shape=[2], name="Q")
    apply, take, count = gradients.apply_grad([1.0, 2.0]), gradients.take_grad(1), gradients.num_accumulated()
    assert apply.name == "ResourceAccumulatorApplyGradient"
    assert (take.name, take.shape.as_list()) == ("ResourceAccumulatorTakeGradient:0", [2])
    assert (count.name, count.dtype) == ("Q_NumAccumulated:0", tf.int32)
    assert (gradients.name, gradients.dtype) == ("Q", tf.float32)
    with tf.Session() as session:
        session.run(apply)
        session.run(gradients.apply_grad([3.0, 6.0]))
        assert session.run(count) == 2
        assert session.run(take).tolist() == [2.0, 4.0]
        assert session.run(count) == 0
        session.run(apply)  # of step 0, while the accumulator is at 1
        assert session.run(count) == 0


def test_a_sum():
    gradients = tf.ConditionalAccumulator(tf.float16, reduction_type="SUM")
    with tf.Session() as session:
        session.run([gradients.apply_grad(1.5), gradients.apply_grad(2.0)])
        assert session.run(gradients.take_grad(2)) == np.float16(3.5)


def test_the_step_can_be_set_back_with_a_warning(caplog):
    gradients = tf.ConditionalAccumulator(tf.float32)
    apply, count = gradients.apply_grad(1.0, local_step=4), gradients.num_accumulated()
    with tf.Session() as session, caplog.at_level(logging.WARNING, logger="tensorflow"):
        session.run(gradients.set_global_step(5))
        session.run(apply)
        assert session.run(count) == 0 and not caplog.records
        session.run(gradients.set_global_step(4))
        session.run(apply)
        assert session.run(count) == 1
    assert "smaller value" in caplog.text


def test_taking_waits_for_gradients_of_another_thread():
    gradients = tf.ConditionalAccumulator(tf.float32)
    apply, take = gradients.apply_grad(2.0), gradients.take_grad(3)
    with tf.Session() as session:
        found = []
        thread = threading.Thread(target=lambda: found.append(session.run(take)))
        thread.start()
        for _ in range(3):
            session.run(apply)
        thread.join()
        assert found == [2.0]


def test_closing_the_session_sends_waiting_threads_away():
    gradients = tf.ConditionalAccumulator(tf.float32)
    take = gradients.take_grad(1)
    session, errors = tf.Session(), []

    def wait():
        try:
            session.run(take)
        except tf.errors.CancelledError as error:
            errors.append(str(error))

    session.run(gradients.num_accumulated())
    thread = threading.Thread(target=wait)
    thread.start()
    session.close()
    thread.join()
    assert len(errors) == 1


def test_errors():
    with pytest.raises(ValueError, match="reduction_type must be 'MEAN' or 'SUM'; got 'Invalid'"):
        tf.ConditionalAccumulator(tf.float32, reduction_type="Invalid")
    with pytest.raises(ValueError, match="dtype must be floating"):
        tf.ConditionalAccumulator(tf.int32)
    gradients, fed = tf.ConditionalAccumulator(tf.float32, shape=[2]), tf.placeholder(tf.float32)
    with pytest.raises(ValueError, match="incompatible"):
        gradients.apply_grad([[1.0, 2.0]])
    with tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"expected \[2\], got \[1\]"):
            session.run(gradients.apply_grad(fed), {fed: [1.0]})
        with pytest.raises(tf.errors.InvalidArgumentError, match="num_required must be positive, but was 0"):
            session.run(gradients.take_grad(0))
        any_shape = tf.ConditionalAccumulator(tf.float32)
        session.run(any_shape.apply_grad([1.0, 2.0]))
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"expected \[2\], got \[3\]"):
            session.run(any_shape.apply_grad([1.0, 2.0, 3.0]))


def test_each_session_has_its_own_gradients_and_a_shared_name_joins_two():
    one = tf.ConditionalAccumulator(tf.float32, shared_name="both")
    other = tf.ConditionalAccumulator(tf.float32, shared_name="both")
    third = tf.ConditionalAccumulator(tf.float32)
    with tf.Session() as session:
        session.run(one.apply_grad(1.0))
        assert session.run([other.num_accumulated(), third.num_accumulated()]) == [1, 0]
    with tf.Session() as session:
        assert session.run(other.num_accumulated()) == 0


def test_the_mean_of_a_slice_is_over_the_gradients_that_have_it():
    gradients = tf.SparseConditionalAccumulator(tf.float32, shape=[None, 2])
    take = gradients.take_indexed_slices_grad(2)
    with tf.Session() as session:
        session.run(gradients.apply_grad([0, 2], [[1.0, 1.0], [2.0, 2.0]], [3, 2]))
        session.run(
            gradients.apply_indexed_slices_grad(tapeflow.IndexedSlices(tf.constant([[4.0, 6.0]]), tf.constant([2])))
        )
        found = session.run(take)
        assert found.indices.tolist() == [0, 2]
        assert found.values.tolist() == [[1.0, 1.0], [3.0, 4.0]]
        assert found.dense_shape.tolist() == [-1, 2]
        empty = gradients.apply_grad(np.zeros([0], np.int64), np.zeros([0, 2], np.float32), local_step=1)
        session.run(empty)
        assert session.run(gradients.take_grad(1)).values.shape == (0, 2)


def test_a_sparse_sum_adds_the_slices_of_one_index():
    gradients = tf.SparseConditionalAccumulator(tf.float64, shape=[4], reduction_type="SUM")
    with tf.Session() as session:
        session.run(gradients.apply_grad([3, 1, 3], [1.0, 2.0, 3.0]))
        indices, values, shape = session.run(gradients.take_grad(1))
    assert (indices.tolist(), values.tolist(), shape.tolist()) == ([1, 3], [2.0, 4.0], [4])


@pytest.mark.parametrize(
    ("indices", "values", "shape", "message"),
    [
        ([[0]], [[[1.0]]], None, r"should be vector but received shape: \[1,1\]"),
        ([0], 1.0, None, "Values cannot be 0-dimensional"),
        ([0, 1], [[[1.0], [2.0]]], None, "Expected 2 non-empty input values, got 1"),
        ([0], [[1.0, 2.0]], [2, 2], "expected shape rank at least 3, got 2"),
        ([0], [[[1.0], [2.0]]], [2, 3, 1], "expected shape dim 1 to be 2, got 3"),
        ([3], [[[1.0], [2.0]]], None, "index is 3 exceeded 2"),
        ([0], [[1.0, 2.0]], None, "expected values rank at least 3, got 2"),
        ([0], [[[1.0], [2.0], [3.0]]], None, "expected values dim 1 to be 2, got 3"),
    ],
)
def test_sparse_errors(indices, values, shape, message):
    gradients = tf.SparseConditionalAccumulator(tf.float32, shape=[2, 2, None])
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=message):
        session.run(gradients.apply_grad(indices, values, shape))


def test_the_first_sparse_gradient_of_a_step_fixes_the_shape_of_slices():
    gradients = tf.SparseConditionalAccumulator(tf.float32)
    with tf.Session() as session:
        session.run(gradients.apply_grad([0], [[1.0, 2.0]]))
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected values rank 2, got 1"):
            session.run(gradients.apply_grad([0], [1.0]))
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected values dim 1 to be 2, got 3"):
            session.run(gradients.apply_grad([0], [[1.0, 2.0, 3.0]]))
        session.run(gradients.take_grad(1))
        session.run(gradients.apply_grad([0], [1.0], local_step=1))
